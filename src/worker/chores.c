/* The engine's own work, done by every worker.
 * SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

#include "kernel/chores.h"
#include "util/clock.h"
#include "util/error.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define PAGE 200
#define CALL_PERIOD HF_HOURS(1) /* as long as retention sleeps at most */

/* What the chore is for; see HF__CHORE_CANCEL_CHILDREN. */
struct cascade {
    hf_id run;
    char reason[64];
    bool tells;
    hf_status had;
};

static hf_code read_cascade(const char *input, struct cascade *out, hf_error *err)
{
    json_t *json = json_loads(input, JSON_DECODE_ANY, NULL);
    const char *run = json_string_value(json_object_get(json, "run"));
    const char *reason = json_string_value(json_object_get(json, "reason"));
    const char *had = json_string_value(json_object_get(json, "tell"));
    bool good = run && hf_id_parse(run, &out->run);
    snprintf(out->reason, sizeof out->reason, "%s", reason ? reason : "parent cancelled");
    out->tells = had && hf_status_parse(had, &out->had);
    json_decref(json);
    return good ? HF_OK : hf__fail(err, HF_PERMANENT, "the input names no run");
}

/* A child that finished meanwhile is as good as cancelled. */
static hf_code cancel_child(hf_client *client, hf_id child, const char *reason, hf_error *err)
{
    hf_change change = HF_CHANGE_INIT;
    change.reason = reason;
    hf_code code = hf_change_run(client, child, HF_CANCEL, &change, err);
    return code == HF_NOT_ALLOWED || code == HF_NOT_FOUND ? HF_OK : code;
}

/* One that others keep locked does not save its siblings. */
static hf_code cancel_page(hf_ctx *ctx, const hf_runs *children, const char *reason, bool *left,
                           hf_error *err)
{
    hf_code code = HF_OK;
    for (size_t i = 0; code == HF_OK && i < children->count; i++) {
        code = hf_check(ctx);
        if (code == HF_OK)
            code = cancel_child(hf_ctx_client(ctx), children->items[i].id, reason, err);
        if (code == HF_LOCKED) {
            *left = true;
            code = HF_OK;
        }
    }
    return code;
}

/* Idempotent: cancelled children are not listed again. */
static hf_code cancel_children(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)arg;
    hf_filter filter = HF_FILTER_INIT;
    filter.statuses = 1u << HF_PENDING | 1u << HF_LEASED | 1u << HF_WAITING | 1u << HF_PAUSED;
    filter.limit = PAGE;
    struct cascade cascade = { .tells = false };
    hf_code code = read_cascade(input, &cascade, err);
    filter.parent = cascade.run;
    if (code == HF_OK && cascade.tells)
        code = hf__tell_cancelled(hf_ctx_client(ctx), cascade.run, cascade.had, err);
    hf_runs *page = NULL;
    bool left = false;
    while (code == HF_OK) {
        hf_runs *before = page;
        filter.cursor = before ? before->next : NULL;
        page = NULL;
        code = hf_list(hf_ctx_client(ctx), &page, &filter, err);
        hf_runs_free(before);
        if (code == HF_OK)
            code = cancel_page(ctx, page, cascade.reason, &left, err);
        if (code != HF_OK || !page->next)
            break;
    }
    hf_runs_free(page);
    if (code == HF_OK && left)
        code = hf__fail(err, HF_LOCKED, "another transaction keeps a child locked: it stays");
    return code;
}

static const struct {
    const char *workflow;
    hf_handler handler;
} chores[] = {
    { HF__CHORE_CANCEL_CHILDREN, cancel_children }, { HF__CHORE_SCHEDULE, hf__schedule_chore },
    { HF__CHORE_DISPATCH, hf__dispatch_chore },     { HF__CHORE_SEAL, hf__seal_chore },
    { HF__CHORE_RETENTION, hf__retention_chore },
};

hf_handler hf__chore_find(const char *workflow)
{
    for (size_t i = 0; i < sizeof chores / sizeof *chores; i++)
        if (strcmp(workflow, chores[i].workflow) == 0)
            return chores[i].handler;
    return NULL;
}

hf_code hf__chore_wait(hf_ctx *ctx, const char *kind, int64_t until)
{
    ctx->transition = (hf_transition){
        .turn = HF_TURN_WAIT,
        .waiting_kind = kind,
        .waiting_until = until,
        .seen_position = ctx->claimed->seen_position,
        .seen_at = ctx->claimed->seen_at,
    };
    ctx->suspended = true;
    return HF_SUSPENDED;
}

hf_code hf__chores_prepare(hf_worker *worker, hf_error *err)
{
    struct hf__master *house = NULL;
    for (size_t i = 0; i < worker->master_count; i++)
        if (strcmp(worker->masters[i]->name, HF__HOUSE) == 0)
            house = worker->masters[i];
    if (!house)
        return HF_OK;
    worker->house = house->id;
    hf_code code = hf__workflow_ensure(house->client, HF__CHORE_SEAL, err);
    if (code == HF_OK)
        code = hf__retention_start(house->client, err);
    return code == HF_DISABLED ? HF_OK : code;
}

/* Of the two, sealing is wanted when something was written, retention always. */
bool hf__chores_call(hf_worker *worker, int64_t *called)
{
    int64_t now = hf__monotonic_us();
    if (!worker->house)
        return true;
    if (*called == 0 || now - *called >= CALL_PERIOD) {
        *called = now;
        if (!hf__retention_call(worker))
            return false;
    }
    return hf__seal_call(worker);
}
