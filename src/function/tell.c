/* What a function tells the world, and what is the same every time it is asked.
 * SPDX-License-Identifier: Apache-2.0 */
#include "function/function.h"

#include "worker/gate.h"

#include "client/ids.h"
#include "util/error.h"
#include "util/random.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Telling ---- */

/* Where calls come in any order nobody knows which of them an earlier pass came by. So what was told is remembered by its words:
 * a pass tells them only if it says them more often than those before. It is no call that could meet a failure. */
static hf_code tell_once(hf_ctx *ctx, hf_transition *t, const char *op, const char *words)
{
    char name[64];
    uint64_t hash[2];
    const char *full;
    struct hf__entry *entry;
    struct hf__function *function = ctx->function;
    const bool met_failure = function->met_failure;
    const struct hf__entry *failure = function->failure;
    const hf_id id = hf__function_hash(words);
    memcpy(hash, id.bytes, sizeof hash);
    snprintf(name, sizeof name, "%s %016" PRIx64 "%016" PRIx64, op, hash[0], hash[1]);
    const hf_new_event *event = t->events;
    hf_code code = hf__function_check(ctx, t);
    if (code != HF_OK || (code = hf__function_call(ctx, op, name, &full, &entry)) != HF_OK)
        return code;
    function->met_failure = met_failure;
    function->failure = failure;
    if (entry)
        return HF_OK;
    const struct hf__record record = { .op = op, .name = full, .status = HF__ENTRY_SUCCEEDED };
    hf_transition extra = { .events = event, .event_count = 1, .state = t->state };
    return hf__function_record(ctx, &record, &extra, NULL, NULL);
}

/* Once: what an earlier pass came by, it has told. But what is refused is refused every time. */
static hf_code tell(hf_ctx *ctx, const char *name, const char *data, const char *state)
{
    const hf_new_event event = { .kind = "domain", .name = name, .data = data };
    hf_transition t = { .events = &event, .event_count = 1, .state = state };
    if (ctx->function->by_name && !ctx->function->in_step)
        return tell_once(ctx, &t, name, data ? data : state);
    if (hf__function_replays(ctx->function))
        return hf__function_check(ctx, &t);
    return hf__function_go_on(ctx, &t);
}

static hf_code tell_progress(hf_ctx *ctx, int percent, const char *text)
{
    hf_code code;
    struct hf__buffer json = { 0 };
    if (!hf__function_of(ctx, &code))
        return code;
    if (percent < 0 || percent > 100)
        return hf__fail(&ctx->function->error, HF_INVALID,
                        "a progress of %d is not between 0 and 100", percent);
    hf__buffer_addf(&json, "{\"percent\":%d", percent);
    if (text) {
        hf__buffer_add_text(&json, ",\"text\":");
        hf__buffer_add_json_string(&json, text, strlen(text));
    }
    hf__buffer_add_text(&json, "}");
    code = json.failed ? HF_NOMEM : tell(ctx, "progress", json.data, NULL);
    hf__buffer_free(&json);
    return code;
}

hf_code hf_progress(hf_ctx *ctx, int percent, const char *text)
{
    return hf__inside(ctx, tell_progress(ctx, percent, text));
}

static hf_code publish(hf_ctx *ctx, const char *json)
{
    hf_code code;
    return hf__function_of(ctx, &code) ? tell(ctx, "published", NULL, json ? json : "null") : code;
}

hf_code hf_publish(hf_ctx *ctx, const char *json)
{
    return hf__inside(ctx, publish(ctx, json));
}

static hf_code emit(hf_ctx *ctx, const char *type, const char *json)
{
    const char *full;
    struct hf__entry *entry;
    hf_code code = hf__function_call(ctx, "emit", type, &full, &entry);
    if (code != HF_OK || entry)
        return code;
    const hf_new_outbox outbox = { .type = type, .payload = json ? json : "null" };
    hf_transition extra = { .outbox = &outbox, .outbox_count = 1 };
    const struct hf__record record = {
        .op = "emit",
        .name = full,
        .status = HF__ENTRY_SUCCEEDED,
        .started = hf__function_now(ctx),
    };
    return hf__function_record(ctx, &record, &extra, NULL, NULL);
}

hf_code hf_emit(hf_ctx *ctx, const char *type, const char *json)
{
    return hf__inside(ctx, emit(ctx, type, json));
}

/* ---- The same every time ---- */

/* Remembers `fresh` under `op`'s own name, unless something is remembered; *output is what counts. */
static hf_code fix(hf_ctx *ctx, const char *op, const char *fresh, const char **output)
{
    const char *full;
    struct hf__entry *entry;
    hf_code code = hf__function_call(ctx, op, op, &full, &entry);
    if (code != HF_OK)
        return code;
    const struct hf__record record = {
        .op = op,
        .name = full,
        .status = HF__ENTRY_SUCCEEDED,
        .output = fresh,
    };
    if (!entry)
        code = hf__function_record(ctx, &record, NULL, NULL, &entry);
    *output = entry && entry->output ? entry->output : "null";
    return code;
}

static hf_code fix_now(hf_ctx *ctx, int64_t *us)
{
    char fresh[32];
    const char *output = "0";
    snprintf(fresh, sizeof fresh, "%" PRId64, hf__function_now(ctx));
    hf_code code = fix(ctx, "now", fresh, &output);
    *us = strtoll(output, NULL, 10);
    return code;
}

hf_code hf_now(hf_ctx *ctx, int64_t *us)
{
    return hf__inside(ctx, fix_now(ctx, us));
}

/* As text: JSON's numbers have no 64 bits everywhere. */
static hf_code fix_random(hf_ctx *ctx, uint64_t *number)
{
    char fresh[32];
    const char *output = "\"0\"";
    struct hf__random random;
    *number = 0;
    if (!hf__random_seed_os(&random))
        return HF_INTERNAL;
    snprintf(fresh, sizeof fresh, "\"%016" PRIx64 "\"", hf__random_u64(&random));
    hf_code code = fix(ctx, "random", fresh, &output);
    *number = strtoull(output + 1, NULL, 16);
    return code;
}

hf_code hf_random(hf_ctx *ctx, uint64_t *number)
{
    return hf__inside(ctx, fix_random(ctx, number));
}

static hf_code fix_uuid(hf_ctx *ctx, hf_id *id)
{
    char text[HF_ID_TEXT];
    char fresh[HF_ID_TEXT + 2];
    const char *output = "";
    hf_id_format(hf__new_id(), text);
    snprintf(fresh, sizeof fresh, "\"%s\"", text);
    *id = (hf_id){ 0 };
    hf_code code = fix(ctx, "uuid", fresh, &output);
    if (code != HF_OK)
        return code;
    snprintf(text, sizeof text, "%.36s", output + (*output == '"'));
    return hf_id_parse(text, id) ? HF_OK
                                 : hf__function_end(ctx, HF_PERMANENT,
                                                    "what is remembered as a "
                                                    "uuid is none: %s",
                                                    output);
}

hf_code hf_uuid(hf_ctx *ctx, hf_id *id)
{
    return hf__inside(ctx, fix_uuid(ctx, id));
}

/* Runs that passed here before there was a choice stay with version 0. */
static hf_code choose_version(hf_ctx *ctx, const char *change, int current, int *version)
{
    char fresh[16];
    const char *full;
    struct hf__entry *entry;
    if (!hf__function_expects(ctx, "version", change))
        return HF_OK;
    hf_code code = hf__function_call(ctx, "version", change, &full, &entry);
    if (code != HF_OK)
        return code;
    snprintf(fresh, sizeof fresh, "%d", current);
    const struct hf__record record = {
        .op = "version",
        .name = full,
        .status = HF__ENTRY_SUCCEEDED,
        .output = fresh,
    };
    if (!entry)
        code = hf__function_record(ctx, &record, NULL, NULL, &entry);
    if (code == HF_OK)
        *version = (int)strtol(entry->output ? entry->output : "0", NULL, 10);
    if (code == HF_OK && *version > current)
        code = hf__function_misfit(ctx,
                                   "version %d of \"%s\" is remembered, and this code knows "
                                   "versions up to %d: it is older than the run",
                                   *version, full, current);
    return code;
}

static hf_code fix_version(hf_ctx *ctx, const char *change, int current, int *version)
{
    hf_code code;
    *version = 0;
    struct hf__function *function = hf__function_of(ctx, &code);
    if (!function)
        return code;
    hf_id hash = hf__function_hash(change ? change : "");
    int *answered = hf__idmap_get(&function->versions, hash);
    if (!answered) {
        answered = hf__arena_calloc(&ctx->arena, 1, sizeof *answered);
        if (!answered || !hf__idmap_put(&function->versions, hash, answered))
            return hf__function_end(ctx, HF_NOMEM, "%s", hf_code_meaning(HF_NOMEM));
        code = choose_version(ctx, change, current, answered);
    }
    *version = *answered;
    return code;
}

hf_code hf_version(hf_ctx *ctx, const char *change, int current, int *version)
{
    return hf__inside(ctx, fix_version(ctx, change, current, version));
}
