/* Changing runs: operators' actions, signals, bulk.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "client/ask.h"
#include "client/check.h"
#include "client/client.h"
#include "client/ids.h"
#include "client/read.h"
#include "util/error.h"

#define BULK_PAGE 200

static hf_code change_one(hf_client *client, hf_id id, hf_action action, const hf_change *change,
                          bool steers, hf_error *err)
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
        .change = { .run = id,
                    .action = action,
                    .change = change,
                    .steers = steers,
                    .from_afar = client->from_afar },
        .error = err,
        .shard = hf__shard_of(id),
    };
    hf__engine_apply(client->engine, &op, 1);
    return op.code;
}

hf_code hf_change_run(hf_client *client, hf_id id, hf_action action, const hf_change *change,
                      hf_error *err)
{
    return change_one(client, id, action, change, false, err);
}

hf_code hf__steer_run(hf_client *client, hf_id id, hf_action action, hf_error *err)
{
    return change_one(client, id, action, NULL, true, err);
}

/* A run that is gone, or not cancelled any more, is nothing to tell of. */
hf_code hf__tell_cancelled(hf_client *client, hf_id id, hf_status had, hf_error *err)
{
    hf_run *run = NULL;
    hf_change change = HF_CHANGE_INIT;
    hf_code code = hf_get(client, &run, id, err);
    if (code != HF_OK)
        return code == HF_NOT_FOUND ? HF_OK : code;
    if (run->last_error && strcmp(run->last_error, "cancelled") != 0)
        change.reason = run->last_error;
    struct hf__op op = {
        .kind = HF__OP_CHANGE,
        .tenant = client->tenant_id,
        .actor = client->actor,
        .change = { .run = id, .change = &change, .tells = true, .had = had },
        .error = err,
        .shard = hf__shard_of(id),
    };
    hf__engine_apply(client->engine, &op, 1);
    hf_run_free(run);
    return op.code;
}

static hf_code send_signal(hf_client *client, hf_id run, const hf_signal_spec *spec, bool steers,
                           bool *duplicate, hf_error *err)
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
        .signal = { .run = run, .spec = &filled, .steers = steers },
        .error = err,
        .shard = hf__shard_of(run),
    };
    hf__engine_apply(client->engine, &op, 1);
    if (duplicate)
        *duplicate = op.signal.duplicate;
    return op.code;
}

hf_code hf_signal(hf_client *client, hf_id run, const hf_signal_spec *spec, bool *duplicate,
                  hf_error *err)
{
    hf_code code = hf__check_sender(spec, err);
    return code == HF_OK ? send_signal(client, run, spec, false, duplicate, err) : code;
}

hf_code hf__steer(hf_client *client, hf_id run, const hf_signal_spec *spec, hf_error *err)
{
    return send_signal(client, run, spec, true, NULL, err);
}

/* ---- Bulk ---- */

/* One page of matching runs, each changed by an operation of its own; they share flushes. `locked` counts those that other
 * transactions kept to themselves: they do not save the others. */
static hf_code change_page(hf_client *client, const hf_runs *page, hf_action action,
                           const hf_change *change, hf_bulk_result *result, int64_t *locked,
                           hf_error *err)
{
    struct hf__op ops[BULK_PAGE];
    for (size_t i = 0; i < page->count; i++)
        ops[i] = (struct hf__op){
            .kind = HF__OP_CHANGE,
            .tenant = client->tenant_id,
            .actor = client->actor,
            .change = { .run = page->items[i].id,
                        .action = action,
                        .change = change,
                        .from_afar = client->from_afar },
            .shard = hf__shard_of(page->items[i].id),
        };
    hf__engine_apply(client->engine, ops, page->count);
    for (size_t i = 0; i < page->count; i++) {
        if (ops[i].code == HF_OK)
            result->changed++;
        else if (ops[i].code == HF_NOT_ALLOWED || ops[i].code == HF_NOT_FOUND ||
                 ops[i].code == HF_REVISION)
            result->refused++;
        else if (ops[i].code == HF_LOCKED)
            ++*locked;
        else
            return hf__fail(err, ops[i].code, "%s", hf_code_meaning(ops[i].code));
    }
    return HF_OK;
}

/* What both begin with: a filter for the pages, and what matches, unless some of it was changed before. */
static hf_code begin_bulk(hf_client *client, hf_bulk_result *out, hf_filter *pages,
                          const hf_change *change, bool count, hf_error *err)
{
    pages->limit = BULK_PAGE;
    *out = (hf_bulk_result){ 0 };
    hf_code code = hf__check_filter(pages, err);
    if (code == HF_OK)
        code = hf__check_change(change, err);
    return code == HF_OK && count ? hf__count_runs(client, &out->matched, pages, err) : code;
}

hf_code hf_bulk(hf_client *client, hf_bulk_result *out, const hf_filter *filter, hf_action action,
                const hf_change *change, bool dry_run, hf_bulk_progress progress, void *arg,
                hf_error *err)
{
    char next[HF_ID_TEXT];
    hf_filter pages = *filter;
    if (dry_run)
        return begin_bulk(client, out, &pages, change, true, err);
    return hf_bulk_part(client, out, next, filter, action, change, progress, arg, err);
}

hf_code hf_bulk_part(hf_client *client, hf_bulk_result *out, char next[HF_ID_TEXT],
                     const hf_filter *filter, hf_action action, const hf_change *change,
                     hf_bulk_progress progress, void *arg, hf_error *err)
{
    hf_filter pages = *filter;
    hf_code code = begin_bulk(client, out, &pages, change, !filter->cursor, err);
    if (filter->cursor != next)
        next[0] = '\0';

    bool more = true;
    int64_t locked = 0;
    while (code == HF_OK && more) {
        hf_runs *page = NULL;
        code = hf__list(client, &page, &pages, true, err);
        if (code != HF_OK)
            break;
        code = change_page(client, page, action, change, out, &locked, err);
        more = page->next != NULL;
        if (code == HF_OK)
            strcpy(next, more ? page->next : "");
        pages.cursor = next;
        hf_runs_free(page);
        if (filter->cursor)
            out->matched = out->changed + out->refused + locked;
        if (code == HF_OK && progress && !progress(out, arg))
            break;
    }
    if (code == HF_OK && locked > 0)
        code = hf__fail(err, HF_LOCKED,
                        "%" PRId64 " runs were left: other transactions keep them locked; end "
                        "those, then try again",
                        locked);
    return code;
}
