/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/script.h"

#include <string.h>

#include "function/function.h"
#include "worker/script_call.h"

#define BESIDE_PAYLOAD (64 * 1024) /* bytes of a request besides its payload */
#define PAYLOADS_AT_ONCE 4         /* as much may be under way at a time */

/* ---- Lines ---- */

static const struct {
    const char *name;
    void (*serve)(struct hf__call *call);
    bool ends_step; /* is served while another call waits */
} verbs[] = {
    { "step", hf__script_step, false },         { "done", hf__script_done, true },
    { "fail", hf__script_fail, true },          { "sleep", hf__script_sleep, false },
    { "pause", hf__script_pause, false },       { "wait", hf__script_wait, false },
    { "ask", hf__script_ask, false },           { "start", hf__script_start, false },
    { "children", hf__script_children, false }, { "progress", hf__script_progress, false },
    { "state", hf__script_state, false },       { "emit", hf__script_emit, false },
    { "now", hf__script_now, false },           { "uuid", hf__script_uuid, false },
    { "random", hf__script_random, false },
};

/* Calls of a program come from several processes, in any order. */
static bool may_call(struct hf__call *call)
{
    hf_code code = call->script->called ? HF_OK : hf__function_by_name(call->ctx);
    call->script->called |= code == HF_OK;
    return hf__call_went_well(call, code);
}

static void serve(struct hf__call *call)
{
    const char *verb = hf__call_text(call, "do");
    for (size_t i = 0; verb && i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(verbs[i].name, verb) != 0)
            continue;
        if (call->script->suspending && !verbs[i].ends_step)
            hf__call_hold(call);
        else if (verbs[i].ends_step || may_call(call))
            verbs[i].serve(call);
        return;
    }
    hf__call_refuse(
        call, HF_INVALID,
        "there is no such request; is the program `holdfast` of another version than the "
        "worker?");
}

static void serve_line(struct hf__peer *peer, char *line, size_t length, void *arg)
{
    struct hf__script *script = arg;
    json_error_t where;
    struct hf__call call = { .script = script, .peer = peer, .ctx = script->ctx };
    call.request = json_loadb(line, length, JSON_REJECT_DUPLICATES, &where);
    if (json_is_object(call.request))
        serve(&call);
    else
        hf__call_refuse(&call, HF_INVALID, "a request is one JSON object in one line");
    json_decref(call.request);
}

/* Whoever left in the middle of a step has not done it: it begins again when it is called again. */
static void forget(struct hf__peer *peer, void *arg)
{
    hf__script_forget_step(arg, peer);
}

/* ---- Its life ---- */

bool hf__script_open(struct hf__script *script, hf_ctx *ctx)
{
    char path[HF__SOCKET_PATH];
    size_t max_payload = hf__engine_max_payload(ctx->worker->engine);
    size_t line_limit = 2 * max_payload + BESIDE_PAYLOAD;
    *script = (struct hf__script){
        .ctx = ctx,
        .max_payload = max_payload,
        .peers = {
            .listener = -1,
            .line_limit = line_limit,
            .memory_limit = PAYLOADS_AT_ONCE * line_limit,
            .line = serve_line,
            .left = forget,
            .arg = script,
        },
    };
    pthread_mutex_lock(&ctx->worker->lock);
    bool named = hf__socket_dir_name(&ctx->worker->sockets, path);
    pthread_mutex_unlock(&ctx->worker->lock);
    return named && hf__peers_open(&script->peers, path);
}

void hf__script_close(struct hf__script *script)
{
    hf__peers_close(&script->peers);
}

bool hf__script_is_suspended(const struct hf__script *script)
{
    return script->suspending && script->running == 0;
}
