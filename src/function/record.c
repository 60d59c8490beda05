/* Recording a call, and suspending the run.
 * SPDX-License-Identifier: Apache-2.0 */
#include "function/function.h"

#include "client/check.h"
#include "client/ids.h"
#include "util/error.h"

#include <inttypes.h>
#include <string.h>

#define SIMULATED_PAYLOAD ((size_t)1 << 20)

static const char *status_name(enum hf__entry_status status)
{
    static const char *const names[] = {
        [HF__ENTRY_WAITING] = "waiting",
        [HF__ENTRY_SUCCEEDED] = "succeeded",
        [HF__ENTRY_FAILED] = "failed",
    };
    return names[status];
}

static void add_number(struct hf__buffer *json, const char *name, int64_t number)
{
    if (number)
        hf__buffer_addf(json, ",\"%s\":%" PRId64, name, number);
}

static void add_text(struct hf__buffer *json, const char *name, const char *text)
{
    if (!text)
        return;
    hf__buffer_addf(json, ",\"%s\":", name);
    hf__buffer_add_json_string(json, text, strlen(text));
}

static const char *data_of(hf_ctx *ctx, const struct hf__record *record)
{
    struct hf__buffer json = { 0 };
    hf__buffer_addf(&json, "{\"op\":\"%s\"", record->op);
    add_number(&json, "attempt", record->attempt);
    add_number(&json, "started", record->started);
    if (record->started)
        add_number(&json, "finished", hf__function_now(ctx));
    add_number(&json, "until", record->until);
    add_number(&json, "deferred", record->deferred);
    add_text(&json, "error", record->error);
    add_text(&json, "code", record->code);
    if (record->details) {
        hf__buffer_add_text(&json, ",\"details\":");
        hf__buffer_add_text(&json, record->details);
    }
    if (record->output) {
        hf__buffer_add_text(&json, ",\"output\":");
        hf__buffer_add_text(&json, record->output);
    }
    hf__buffer_add_text(&json, "}");
    const char *data = json.failed ? NULL : hf__arena_strdup(&ctx->arena, json.data);
    hf__buffer_free(&json);
    return data;
}

/* ---- Writing ---- */

/* An operation of the run at hand. The store may be away for a while: its lease is the limit. But nobody can claim the run
 * while it is locked. */
static struct hf__op op_of(hf_ctx *ctx, enum hf__op_kind kind)
{
    const hf_run *run = &ctx->claimed->run;
    return (struct hf__op){
        .kind = kind,
        .tenant = ctx->master->id,
        .actor = ctx->worker->name,
        .error = &ctx->function->error,
        .patience = ctx->claimed->lease,
        .bears_locks = true,
        .shard = hf__shard_of(hf_id_is_zero(run->root) ? run->id : run->root) | 1,
    };
}

/* The simulator stands in for the engine. */
static void apply(hf_ctx *ctx, struct hf__op *op)
{
    if (ctx->apply)
        ctx->apply(ctx, op);
    else if (!hf__haul_await(ctx))
        op->code = hf__fail(op->error, HF_STALE, "the claim of the run failed");
    else
        hf__engine_apply(ctx->worker->engine, op, 1);
}

size_t hf__function_max_payload(const hf_ctx *ctx)
{
    return ctx->apply ? SIMULATED_PAYLOAD : hf__engine_max_payload(ctx->worker->engine);
}

/* What is refused for its content is the caller's to handle; what the run or the store refuses ends the function. */
static hf_code settle(hf_ctx *ctx, const struct hf__op *op)
{
    switch (op->code) {
    case HF_OK:
    case HF_INVALID:
    case HF_TOO_LARGE:
    case HF_CONFLICT:
    case HF_UNKNOWN_WORKFLOW: break;
    case HF_STALE:
    case HF_RUN_CANCELLED:
        pthread_mutex_lock(&ctx->worker->lock);
        hf__turn_lose(ctx, op->code);
        pthread_mutex_unlock(&ctx->worker->lock);
        ctx->function->over = op->code;
        break;
    default: ctx->function->over = op->code;
    }
    return op->code;
}

static hf_code save(hf_ctx *ctx, const char *name, const char *status, const char *data)
{
    hf_step_record record = {
        .run = ctx->claimed->run.id,
        .run_version = ctx->claimed->run.version,
        .worker = ctx->worker->name,
        .name = name,
        .status = status,
        .data = data,
    };
    hf_code code = hf__check_step(&record, hf__function_max_payload(ctx), &ctx->function->error);
    if (code != HF_OK)
        return code;
    struct hf__op op = op_of(ctx, HF__OP_STEP);
    op.step.record = &record;
    apply(ctx, &op);
    return settle(ctx, &op);
}

hf_code hf__function_check(hf_ctx *ctx, hf_transition *t)
{
    t->version = HF_TRANSITION_VERSION;
    t->run = ctx->claimed->run.id;
    t->run_version = ctx->claimed->run.version;
    t->worker = ctx->worker->name;
    t->turn = HF_TURN_GO_ON;
    return hf__check_transition(t, hf__function_max_payload(ctx), &ctx->function->error);
}

/* `record`: what it is written for; NULL: nothing is remembered. */
static hf_code go_on(hf_ctx *ctx, hf_transition *t, const hf_id *child_ids,
                     const struct hf__record *record)
{
    hf_code code = hf__function_check(ctx, t);
    if (code != HF_OK)
        return code;
    struct hf__op op = op_of(ctx, HF__OP_COMMIT);
    op.commit.transition = t;
    op.commit.child_ids = child_ids;
    op.commit.new_ids = child_ids != NULL;
    op.commit.ends_from = record ? record->ends_from : 0;
    op.commit.ends_to = record ? record->ends_to : 0;
    apply(ctx, &op);
    return settle(ctx, &op);
}

hf_code hf__function_go_on(hf_ctx *ctx, hf_transition *t)
{
    return go_on(ctx, t, NULL, NULL);
}

/* ---- Remembering ---- */

static hf_code remember(hf_ctx *ctx, const struct hf__record *record, struct hf__entry **out)
{
    struct hf__function *function = ctx->function;
    struct hf__entry *entry = hf__function_find(function, record->name);
    bool fresh = !entry;
    if (fresh)
        entry = hf__arena_calloc(&ctx->arena, 1, sizeof *entry);
    if (!entry)
        return hf__function_end(ctx, HF_NOMEM, "%s", hf_code_meaning(HF_NOMEM));
    *entry = (struct hf__entry){
        .name = record->name,
        .op = record->op,
        .status = record->status,
        .output = record->output ? hf__arena_strdup(&ctx->arena, record->output) : NULL,
        .error = record->error ? hf__arena_strdup(&ctx->arena, record->error) : NULL,
        .code = record->code ? hf__arena_strdup(&ctx->arena, record->code) : NULL,
        .details = record->details ? hf__arena_strdup(&ctx->arena, record->details) : NULL,
        .attempt = record->attempt,
        .until = record->until,
        .deferred = record->deferred,
    };
    if (fresh && !hf__function_append(function, entry))
        return hf__function_end(ctx, HF_NOMEM, "%s", hf_code_meaning(HF_NOMEM));
    function->next += fresh;
    if (out)
        *out = entry;
    return HF_OK;
}

hf_code hf__function_record(hf_ctx *ctx, const struct hf__record *record, hf_transition *extra,
                            const hf_id *child_ids, struct hf__entry **entry)
{
    const char *data = data_of(ctx, record);
    const char *status = status_name(record->status);
    hf_code code;
    if (!data)
        return hf__function_end(ctx, HF_NOMEM, "%s", hf_code_meaning(HF_NOMEM));
    if (extra) {
        hf_new_event events[2];
        size_t told = extra->event_count; /* at most one */
        if (told)
            events[0] = extra->events[0];
        events[told] =
            (hf_new_event){ .kind = "step", .name = status, .step = record->name, .data = data };
        extra->events = events;
        extra->event_count = told + 1;
        code = go_on(ctx, extra, child_ids, record);
    } else {
        code = save(ctx, record->name, status, data);
    }
    return code == HF_OK ? remember(ctx, record, entry) : code;
}

/* ---- Suspending ---- */

/* The claim brought as much mail as it can, and nothing of it was for this turn: the run would be woken at once for what
 * it has not seen, and see the same again. */
static bool is_buried(const hf_ctx *ctx)
{
    const hf_claimed *claimed = ctx->claimed;
    for (size_t i = 0; i < claimed->mail_count; i++)
        if (ctx->function->taken[i])
            return false;
    return claimed->mail_count >= HF__LOAD_MOST;
}

hf_code hf__function_suspend(hf_ctx *ctx, const struct hf__record *record,
                             const hf_transition *wait)
{
    hf_new_event *event = hf__arena_calloc(&ctx->arena, 1, sizeof *event);
    const char *data = record ? data_of(ctx, record) : "";
    if (!event || !data)
        return hf__function_end(ctx, HF_NOMEM, "%s", hf_code_meaning(HF_NOMEM));
    if (!wait->pause && is_buried(ctx)) {
        ctx->error_code = "mailbox_full";
        return hf__function_end(ctx, HF_PERMANENT,
                                "the mailbox holds more than a function sees at once, %d signals "
                                "and ends of children, and none of them is what it waits for",
                                HF__LOAD_MOST);
    }
    ctx->transition = *wait;
    ctx->transition.turn = HF_TURN_WAIT;
    ctx->transition.seen_position = ctx->claimed->seen_position;
    ctx->transition.seen_at = ctx->claimed->seen_at;
    ctx->transition.current_step = record ? record->name : NULL;
    if (record) {
        *event = (hf_new_event){
            .kind = "step", .name = status_name(record->status), .step = record->name, .data = data
        };
        ctx->transition.events = event;
        ctx->transition.event_count = 1;
    }
    ctx->suspended = true;
    return hf__function_end(ctx, HF_SUSPENDED, "the run waits");
}
