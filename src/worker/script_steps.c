/* The steps of a program, whose commands its peers run.
 * SPDX-License-Identifier: Apache-2.0 */
#include "worker/script_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "function/function.h"
#include "util/alloc.h"
#include "util/duration.h"

/* A step whose command the peer runs now. */
struct open_step {
    hf_step step;
    hf_step_options options;
};

/* A failure is remembered as "exit N: words", so that the program sees the same exit code every time. */
static void answer_failure(const struct hf__call *call, const char *message)
{
    struct hf__buffer *out = &call->peer->out;
    int number = 1, skipped = 0;
    if (sscanf(message, "exit %d: %n", &number, &skipped) != 1)
        number = 1;
    hf__buffer_addf(out, "{\"error\":\"%s\",\"exit\":%d", hf_code_name(HF_HANDLER_FAILED), number);
    hf__call_member(out, "message", message + skipped);
    hf__call_end(call);
}

/* What an ended step came to. */
static void answer_outcome(struct hf__call *call, const hf_step *step)
{
    const char *output = hf_step_output(step);
    hf_code code = hf_step_result(step, &call->error);
    if (code == HF_HANDLER_FAILED)
        answer_failure(call, call->error.message);
    if (code == HF_HANDLER_FAILED || !hf__call_went_well(call, code))
        return;
    hf__call_begin(call);
    hf__buffer_add_text(&call->peer->out, ",\"output\":");
    hf__buffer_add_text(&call->peer->out, output);
    hf__call_end(call);
}

/* A program that is over and has not waited for this step has not done what it was to do. */
void hf__script_refuse_open_steps(struct hf__script *script)
{
    for (size_t i = 0; i < HF__PEERS_MOST; i++) {
        const struct open_step *open = script->peers.all[i].business;
        if (open)
            hf__function_break(
                script->ctx, "not_awaited",
                "the program ended while its step \"%.100s\" was under way: wait for "
                "what runs in the background before the end, as `wait` does in a shell",
                open->step.name);
    }
}

void hf__script_forget_step(struct hf__script *script, struct hf__peer *peer)
{
    if (!peer->business)
        return;
    free(peer->business);
    peer->business = NULL;
    script->running--;
}

static void end_step(struct hf__call *call, const struct open_step *open, hf_code code)
{
    if (code == HF_HANDLER_FAILED)
        answer_outcome(call, &open->step);
    else
        hf__call_finish(call, code);
    hf__script_forget_step(call->script, call->peer);
}

/* Its time limit is kept by the peer, who can end the command. */
static bool read_step_options(struct hf__call *call, hf_step_options *options)
{
    int64_t attempts, limit;
    *options = (hf_step_options)HF_STEP_OPTIONS_INIT;
    if (!hf__call_number(call, "attempts", 1000000, &attempts) ||
        !hf__call_number(call, "base", HF__DURATION_MAX, &options->retry_base) ||
        !hf__call_number(call, "cap", HF__DURATION_MAX, &options->retry_cap) ||
        !hf__call_number(call, "after_limit", HF__DURATION_MAX, &limit))
        return false;
    if (json_object_get(call->request, "after_limit"))
        options->retry_after_limit = limit;
    options->max_attempts = (int)attempts;
    return true;
}

void hf__script_step(struct hf__call *call)
{
    struct hf__buffer *out = &call->peer->out;
    struct open_step *open = NULL;
    const char *name = hf__call_name(call, "name", "step name");
    if (!name)
        return;
    if (call->peer->business) {
        hf__call_refuse(call, HF_INVALID, "a step is under way on this connection");
        return;
    }
    if (!(open = hf__calloc(1, sizeof *open))) {
        hf__call_refuse(call, HF_NOMEM, NULL);
        return;
    }
    if (!read_step_options(call, &open->options)) {
        free(open);
        return;
    }
    if (!hf_step_begin_with(call->ctx, name, &open->options, &open->step)) {
        answer_outcome(call, &open->step);
        free(open);
        return;
    }
    call->peer->business = open;
    call->script->running++;
    hf__call_begin(call);
    hf__buffer_addf(out, ",\"run\":true,\"attempt\":%d,\"limit\":%zu", hf_step_attempt(&open->step),
                    call->script->max_payload);
    hf__call_member(out, "key", hf_step_key(&open->step));
    hf__call_end(call);
}

/* While another call waits, a step that runs may still end. What it records is on disk before the run is suspended; should
 * it have to wait for its next attempt, the run waits for whatever comes first. */
struct thaw {
    bool frozen;
    hf_transition first;
};

static struct thaw thaw(struct hf__call *call)
{
    hf_ctx *ctx = call->ctx;
    struct thaw before = { ctx->suspended, ctx->transition };
    if (before.frozen && ctx->function->over == HF_SUSPENDED)
        ctx->function->over = HF_OK;
    return before;
}

static void join(hf_ctx *ctx, const hf_transition *first)
{
    hf_transition *t = &ctx->transition, second = ctx->transition;
    size_t count = first->event_count + second.event_count;
    hf_new_event *events = hf__arena_calloc(&ctx->arena, count + 1, sizeof *events);
    *t = *first;
    if (events) {
        for (size_t i = 0; i < count; i++)
            events[i] =
                i < first->event_count ? first->events[i] : second.events[i - first->event_count];
        t->events = events;
        t->event_count = count;
    }
    if (second.waiting_until && (!t->waiting_until || second.waiting_until < t->waiting_until))
        t->waiting_until = second.waiting_until;
}

static void freeze(struct hf__call *call, const struct thaw *before)
{
    hf_ctx *ctx = call->ctx;
    if (!before->frozen)
        return;
    if (ctx->function->over == HF_SUSPENDED)
        join(ctx, &before->first);
    else if (ctx->function->over == HF_OK)
        ctx->function->over = HF_SUSPENDED;
}

static struct open_step *step_of(struct hf__call *call)
{
    if (!call->peer->business)
        hf__call_refuse(call, HF_INVALID, "no step is under way on this connection");
    return call->peer->business;
}

/* A string with its quotes, the caller's to free; NULL: no memory. */
static char *quoted(const char *text)
{
    struct hf__buffer json = { 0 };
    hf__buffer_add_json_string(&json, text, strlen(text));
    return hf__buffer_take(&json);
}

/* An output that cannot be remembered is a failure, else the step would be done over and over. */
static hf_code finish_step(struct hf__call *call, struct open_step *open, const char *output)
{
    char *json = quoted(output);
    if (!json)
        return HF_NOMEM;
    hf_code code = hf_step_done(&open->step, json);
    free(json);
    if (code != HF_TOO_LARGE && code != HF_INVALID)
        return code;
    char why[100];
    hf_step_failure failure = HF_STEP_FAILURE_INIT;
    snprintf(why, sizeof why, "exit 1: output too large: more than %zu bytes as JSON",
             call->script->max_payload);
    failure.code = HF_PERMANENT;
    failure.error_code = "result_refused";
    failure.message = why;
    return hf_step_fail_with(&open->step, &failure);
}

void hf__script_done(struct hf__call *call)
{
    struct open_step *open = step_of(call);
    const char *output = hf__call_text(call, "output");
    if (!open)
        return;
    struct thaw before = thaw(call);
    hf_code code = finish_step(call, open, output ? output : "");
    freeze(call, &before);
    end_step(call, open, code);
}

void hf__script_fail(struct hf__call *call)
{
    int64_t number;
    char text[sizeof call->error.message], exit_code[16];
    hf_step_failure failure = HF_STEP_FAILURE_INIT;
    struct open_step *open = step_of(call);
    const char *message = hf__call_text(call, "message");
    if (!open || !hf__call_number(call, "exit", 255, &number) ||
        !hf__call_number(call, "after", HF__DURATION_MAX, &failure.retry_after))
        return;
    snprintf(text, sizeof text, "exit %d: %s", (int)number, message ? message : "");
    snprintf(exit_code, sizeof exit_code, "exit_%d", (int)number);
    if (json_is_true(json_object_get(call->request, "permanent")))
        failure.code = HF_PERMANENT;
    failure.error_code = hf__call_text(call, "code");
    if (!failure.error_code)
        failure.error_code = exit_code;
    failure.message = text;
    struct thaw before = thaw(call);
    hf_code code = hf_step_fail_with(&open->step, &failure);
    freeze(call, &before);
    end_step(call, open, code);
}
