/* Changing runs: operators' actions, signals, bulk, purge.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "client/ask.h"
#include "client/check.h"
#include "client/client.h"
#include "client/ids.h"
#include "client/read.h"
#include "util/error.h"

#define BULK_PAGE 200
#define PURGE_PAGE 500
#define DEAD_WORKER_KEPT HF_DAYS(1)

hf_code hf_change_run(hf_client *client, hf_id id, hf_action action, const hf_change *change,
                      hf_error *err)
{
    hf_code code = hf__check_change(change, err);
    if (code == HF_OK && (action < HF_CANCEL || action > HF_RESTORE))
        code = hf__fail(err, HF_INVALID, "there is no action %d", (int)action);
    if (code != HF_OK)
        return code;
    struct hf__op op = {
        .kind = HF__OP_CHANGE,
        .tenant = client->tenant_id,
        .actor = client->actor,
        .change = { .run = id, .action = action, .change = change },
        .error = err,
        .shard = hf__shard_of(id),
    };
    hf__engine_apply(client->engine, &op, 1);
    return op.code;
}

hf_code hf_signal(hf_client *client, hf_id run, const hf_signal_spec *spec, bool *duplicate,
                  hf_error *err)
{
    hf_code code = hf__check_signal(spec, hf__engine_max_payload(client->engine), err);
    if (code != HF_OK)
        return code;
    hf_signal_spec filled = *spec;
    char id[HF_ID_TEXT];
    hf_id_format(hf__new_id(), id);
    if (!filled.id)
        filled.id = id;
    if (!filled.type)
        filled.type = "external";
    struct hf__op op = {
        .kind = HF__OP_SIGNAL,
        .tenant = client->tenant_id,
        .actor = client->actor,
        .signal = { .run = run, .spec = &filled },
        .error = err,
        .shard = hf__shard_of(run),
    };
    hf__engine_apply(client->engine, &op, 1);
    if (duplicate)
        *duplicate = op.signal.duplicate;
    return op.code;
}

/* ---- Bulk ---- */

/* One page of matching runs, each changed by an operation of its own; they share flushes. */
static hf_code change_page(hf_client *client, const hf_runs *page, hf_action action,
                           const hf_change *change, hf_bulk_result *result, hf_error *err)
{
    struct hf__op ops[BULK_PAGE];
    for (size_t i = 0; i < page->count; i++)
        ops[i] = (struct hf__op){
            .kind = HF__OP_CHANGE,
            .tenant = client->tenant_id,
            .actor = client->actor,
            .change = { .run = page->items[i].id, .action = action, .change = change },
            .shard = hf__shard_of(page->items[i].id),
        };
    hf__engine_apply(client->engine, ops, page->count);
    for (size_t i = 0; i < page->count; i++) {
        if (ops[i].code == HF_OK)
            result->changed++;
        else if (ops[i].code == HF_NOT_ALLOWED || ops[i].code == HF_NOT_FOUND ||
                 ops[i].code == HF_REVISION)
            result->refused++;
        else
            return hf__fail(err, ops[i].code, "%s", hf_code_meaning(ops[i].code));
    }
    return HF_OK;
}

hf_code hf_bulk(hf_client *client, hf_bulk_result *out, const hf_filter *filter, hf_action action,
                const hf_change *change, bool dry_run, hf_bulk_progress progress, void *arg,
                hf_error *err)
{
    *out = (hf_bulk_result){ 0 };
    hf_filter pages = *filter;
    pages.limit = BULK_PAGE;
    hf_code code = hf__check_filter(&pages, err);
    if (code == HF_OK)
        code = hf__check_change(change, err);
    if (code == HF_OK)
        code = hf__count_runs(client, &out->matched, &pages, err);
    if (code != HF_OK || dry_run)
        return code;

    char cursor[HF_ID_TEXT];
    bool more = true;
    while (code == HF_OK && more) {
        hf_runs *page = NULL;
        code = hf_list(client, &page, &pages, err);
        if (code != HF_OK)
            break;
        code = change_page(client, page, action, change, out, err);
        more = page->next != NULL;
        if (more) {
            strcpy(cursor, page->next);
            pages.cursor = cursor;
        }
        hf_runs_free(page);
        if (code == HF_OK && progress && !progress(out, arg))
            break;
    }
    return code;
}

/* ---- Purge ---- */

struct purge {
    const struct hf__table *runs; /* (tenant, id) */
    struct hf__table gone;        /* (id) */
};

static hf_code purge_page(const struct hf__driver *driver, struct hf__conn *conn, void *arg,
                          hf_error *err)
{
    struct purge *purge = arg;
    hf__table_init(&purge->gone, purge->gone.arena, 1);
    hf_code code = driver->send(conn, HF__STMT_PURGE_RUNS, purge->runs, &purge->gone, err);
    if (code == HF_OK)
        code = driver->send(conn, HF__STMT_PURGE_BELONGINGS, purge->runs, NULL, err);
    return code == HF_OK ? driver->sync(conn, err) : code;
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
        struct purge purge = { .runs = &runs };
        hf__table_init(&purge.gone, &ask.arena, 1);
        *after = hf__as_uuid(hf__table_row(&ask.out, *found - 1)[0]);
        code = runs.failed ? hf__nomem(err)
                           : hf__engine_transact(client->engine, purge_page, &purge, NULL, err);
        if (code == HF_OK)
            *removed += purge.gone.nrows;
    }
    hf__ask_end(&ask);
    return code;
}

static hf_code forget_workers(hf_client *client, hf_error *err)
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
        code = forget_workers(client, err);
    if (removed)
        *removed = total;
    return code;
}
