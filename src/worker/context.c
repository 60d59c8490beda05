/* What a handler may ask and say about its run.
 * SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

#include "util/duration.h"
#include "util/error.h"
#include "util/json.h"
#include "util/text.h"
#include "worker/gate.h"

#include <string.h>

#define EVENTS_MOST 1000 /* of one attempt */

hf_id hf_ctx_run(const hf_ctx *ctx)
{
    return ctx->claimed->run.id;
}

const char *hf_ctx_workflow(const hf_ctx *ctx)
{
    return ctx->claimed->run.workflow;
}

const char *hf_ctx_key(const hf_ctx *ctx)
{
    return ctx->claimed->run.key;
}

int hf_ctx_attempt(const hf_ctx *ctx)
{
    return ctx->claimed->run.attempt;
}

const char *hf_ctx_trace(const hf_ctx *ctx)
{
    return ctx->claimed->run.trace;
}

/* What a handler reads with it, its own run too, is not older than its claim. */
hf_client *hf_ctx_client(hf_ctx *ctx)
{
    (void)!hf__haul_await(ctx); /* a run that is lost by then is told by hf_check */
    return ctx->master->client;
}

/* Checks and copies a JSON value; NULL if it is not acceptable, and why. */
static const char *keep_json(hf_ctx *ctx, const char *json, hf_error *err)
{
    size_t length = strlen(json);
    size_t most = hf__engine_max_payload(ctx->worker->engine);
    if (length > most) {
        hf__fail(err, HF_TOO_LARGE, "%zu bytes are more than the limit of %zu", length, most);
        return NULL;
    }
    if (hf__json_check(json, length, err) != HF_OK)
        return NULL;
    const char *copy = hf__arena_strndup(&ctx->arena, json, length);
    if (!copy)
        hf__nomem(err);
    return copy;
}

/* A result that was refused is remembered, since a handler that goes on all the same has not succeeded with it. */
static hf_code set_result(hf_ctx *ctx, const char *json)
{
    hf_error err = { 0 };
    ctx->refused = NULL;
    ctx->result = json ? keep_json(ctx, json, &err) : NULL;
    if (!json || ctx->result)
        return HF_OK;
    ctx->refused = hf__arena_strdup(&ctx->arena, err.message);
    if (!ctx->refused)
        ctx->refused = hf_code_meaning(err.code);
    return HF_INVALID;
}

hf_code hf_return(hf_ctx *ctx, const char *json)
{
    return hf__inside(ctx, set_result(ctx, json));
}

static hf_code set_retry_after(hf_ctx *ctx, int64_t delay)
{
    delay = delay > 0 ? delay : 1;
    ctx->retry_after = delay < HF__DURATION_MAX ? delay : HF__DURATION_MAX;
    return HF_OK;
}

void hf_retry_after(hf_ctx *ctx, int64_t delay)
{
    (void)hf__inside(ctx, set_retry_after(ctx, delay));
}

static hf_code set_error(hf_ctx *ctx, const char *error_code, const char *json)
{
    const char *code = NULL, *error = NULL;
    if (error_code) {
        if (hf__label_check("error code", error_code, HF__NAME_MAX, NULL) != HF_OK)
            return HF_INVALID;
        if (!(code = hf__arena_strdup(&ctx->arena, error_code)))
            return HF_NOMEM;
    }
    if (json && !(error = keep_json(ctx, json, NULL)))
        return HF_INVALID;
    ctx->error_code = code;
    ctx->error = error;
    return HF_OK;
}

hf_code hf_fail_with(hf_ctx *ctx, const char *error_code, const char *json)
{
    return hf__inside(ctx, set_error(ctx, error_code, json));
}

hf_code hf_check(const hf_ctx *ctx)
{
    hf_code lost = (hf_code)atomic_load_explicit(&ctx->lost, memory_order_relaxed);
    if (lost != HF_OK)
        return lost;
    return hf__turn_overdue(ctx) ? HF_TIMEOUT : HF_OK;
}

static bool make_place(hf_ctx *ctx)
{
    if (ctx->event_count < ctx->event_capacity)
        return true;
    size_t capacity = ctx->event_capacity ? ctx->event_capacity * 2 : 4;
    hf_new_event *events = hf__arena_calloc(&ctx->arena, capacity, sizeof *events);
    if (!events)
        return false;
    if (ctx->event_count)
        memcpy(events, ctx->events, ctx->event_count * sizeof *events);
    ctx->events = events;
    ctx->event_capacity = capacity;
    return true;
}

static hf_code add_event(hf_ctx *ctx, const char *name, const char *json)
{
    if (hf__label_check("event name", name, HF__NAME_MAX, NULL) != HF_OK)
        return HF_INVALID;
    if (ctx->event_count >= EVENTS_MOST)
        return HF_TOO_LARGE;
    const char *data = json ? keep_json(ctx, json, NULL) : NULL;
    if (json && !data)
        return HF_INVALID;
    const char *copy = hf__arena_strdup(&ctx->arena, name);
    if (!copy || !make_place(ctx))
        return HF_NOMEM;
    ctx->events[ctx->event_count++] = (hf_new_event){
        .kind = "domain",
        .name = copy,
        .data = data,
    };
    return HF_OK;
}

hf_code hf_record(hf_ctx *ctx, const char *name, const char *json)
{
    return hf__inside(ctx, add_event(ctx, name, json));
}
