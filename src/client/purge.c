/* Removing runs for good, with all that belongs to them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "client/purge.h"

#include "client/ask.h"
#include "client/check.h"
#include "client/client.h"
#include "util/error.h"

#define PURGE_PAGE 500
#define DEAD_WORKER_KEPT HF_DAYS(1)

struct purge {
    const struct hf__table *runs; /* (tenant, id) */
    struct hf__table gone;        /* (id) */
};

static hf_code remove_page(const struct hf__driver *driver, struct hf__conn *conn, void *arg,
                           hf_error *err)
{
    struct purge *purge = arg;
    hf__table_init(&purge->gone, purge->gone.arena, 1);
    hf_code code = driver->send(conn, HF__STMT_PURGE_RUNS, purge->runs, &purge->gone, err);
    if (code == HF_OK)
        code = driver->send(conn, HF__STMT_PURGE_BELONGINGS, purge->runs, NULL, err);
    return code == HF_OK ? driver->sync(conn, err) : code;
}

hf_code hf__purge_rows(struct hf__engine *engine, const struct hf__table *runs, int64_t *removed,
                       hf_error *err)
{
    struct purge purge = { .runs = runs };
    hf__table_init(&purge.gone, runs->arena, 1);
    hf_code code = hf__engine_transact(engine, remove_page, &purge, NULL, err);
    if (code == HF_OK)
        *removed += purge.gone.nrows;
    return code;
}

/* Finds and removes one page; *after moves on, *found tells how many there were. */
static hf_code purge_some(hf_client *client, const char *workflow, int64_t before, hf_id *after,
                          int *found, int64_t *removed, hf_error *err)
{
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_FIND_PURGEABLE);
    c[0] = hf__number(client->tenant_id);
    c[1] = hf__uuid_or_null(after);
    c[2] = hf__number(PURGE_PAGE);
    c[3] = hf__text(workflow);
    c[4] = hf__number(before);
    hf_code code = hf__ask_send(&ask, err);
    *found = ask.out.nrows;
    if (code == HF_OK && *found > 0) {
        struct hf__table runs;
        hf__table_init(&runs, &ask.arena, 2);
        for (int i = 0; i < *found; i++) {
            struct hf__cell *run = hf__table_add(&runs);
            run[0] = hf__number(client->tenant_id);
            run[1] = hf__table_row(&ask.out, i)[0];
        }
        *after = hf__as_uuid(hf__table_row(&ask.out, *found - 1)[0]);
        code = runs.failed ? hf__nomem(err) : hf__purge_rows(client->engine, &runs, removed, err);
    }
    hf__ask_end(&ask);
    return code;
}

hf_code hf__forget_workers(hf_client *client, hf_error *err)
{
    int64_t now;
    hf_code code = hf_store_now(client, &now, err);
    if (code != HF_OK)
        return code;
    struct hf__ask ask;
    hf__ask_begin(&ask, client->engine, HF__STMT_FORGET_WORKERS)[0] =
        hf__number(now - DEAD_WORKER_KEPT);
    code = hf__ask_send(&ask, err);
    hf__ask_end(&ask);
    return code;
}

hf_code hf_purge(hf_client *client, int64_t *removed, const char *workflow, int64_t finished_before,
                 hf_error *err)
{
    int64_t total = 0;
    int found = PURGE_PAGE;
    hf_id after = { { 0 } };
    hf_code code = hf__check_time("finished_before", finished_before, err);
    if (code == HF_OK && workflow)
        code = hf__check_workflow_name(workflow, true, err);
    while (code == HF_OK && found == PURGE_PAGE)
        code = purge_some(client, workflow, finished_before, &after, &found, &total, err);
    if (code == HF_OK)
        code = hf__forget_workers(client, err);
    if (removed)
        *removed = total;
    return code;
}
