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

/* What is to be purged, and how far it has come. */
struct hunt {
    hf_client *client;
    const char *workflow; /* NULL: all */
    int64_t before;       /* us */
    bool dry;             /* count only */
    hf_id after;          /* the last one of the pages so far */
    int64_t total;        /* removed, or counted */
};

static hf_code remove_found(struct hunt *hunt, struct hf__ask *ask, hf_error *err)
{
    struct hf__table runs;
    hf__table_init(&runs, &ask->arena, 2);
    for (int i = 0; i < ask->out.nrows; i++) {
        struct hf__cell *run = hf__table_add(&runs);
        run[0] = hf__number(hunt->client->tenant_id);
        run[1] = hf__table_row(&ask->out, i)[0];
    }
    if (runs.failed)
        return hf__nomem(err);
    return hf__purge_rows(hunt->client->engine, &runs, &hunt->total, err);
}

/* Finds one page and removes it; *more: there may be another. */
static hf_code hunt_some(struct hunt *hunt, bool *more, hf_error *err)
{
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, hunt->client->engine, HF__STMT_FIND_PURGEABLE);
    c[0] = hf__number(hunt->client->tenant_id);
    c[1] = hf__uuid_or_null(&hunt->after);
    c[2] = hf__number(PURGE_PAGE);
    c[3] = hf__text(hunt->workflow);
    c[4] = hf__number(hunt->before);
    hf_code code = hf__ask_send(&ask, err);
    int found = ask.out.nrows;
    *more = found == PURGE_PAGE;
    if (code == HF_OK && found > 0) {
        hunt->after = hf__as_uuid(hf__table_row(&ask.out, found - 1)[0]);
        if (hunt->dry)
            hunt->total += found;
        else
            code = remove_found(hunt, &ask, err);
    }
    hf__ask_end(&ask);
    return code;
}

static hf_code hunt_all(struct hunt *hunt, hf_error *err)
{
    bool more = true;
    hf_code code = hf__check_time("finished_before", hunt->before, err);
    if (code == HF_OK && hunt->workflow)
        code = hf__check_workflow_name(hunt->workflow, true, err);
    while (code == HF_OK && more)
        code = hunt_some(hunt, &more, err);
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
    struct hunt hunt = { .client = client, .workflow = workflow, .before = finished_before };
    hf_code code = hunt_all(&hunt, err);
    if (code == HF_OK)
        code = hf__forget_workers(client, err);
    if (removed)
        *removed = hunt.total;
    return code;
}

hf_code hf_purge_count(hf_client *client, int64_t *count, const char *workflow,
                       int64_t finished_before, hf_error *err)
{
    struct hunt hunt = {
        .client = client, .workflow = workflow, .before = finished_before, .dry = true
    };
    hf_code code = hunt_all(&hunt, err);
    *count = hunt.total;
    return code;
}
