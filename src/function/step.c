/* Steps: named pieces of work whose outcome is remembered.
 * SPDX-License-Identifier: Apache-2.0 */
#include "function/function.h"

#include "kernel/retry.h"
#include "util/clock.h"
#include "util/duration.h"
#include "util/error.h"
#include "util/json.h"
#include "util/text.h"

#include <stdio.h>
#include <string.h>

static const hf_step_options plain = HF_STEP_OPTIONS_INIT;

static const hf_step_options *options_of(const hf_step *step)
{
    return step->options ? step->options : &plain;
}

static hf_code check_options(hf_ctx *ctx, const hf_step_options *options)
{
    if (!options)
        return HF_OK;
    if (options->version != HF_STEP_OPTIONS_VERSION)
        return hf__function_end(ctx, HF_INVALID, "hf_step_options has version %d, not %d",
                                options->version, HF_STEP_OPTIONS_VERSION);
    if (options->max_attempts < 0 || options->max_attempts > 1000000 || options->retry_base < 0 ||
        options->retry_cap < 0 || options->timeout < 0)
        return hf__function_end(ctx, HF_INVALID, "a step's attempts and times cannot be negative");
    return HF_OK;
}

static void write_key(hf_step *step)
{
    char run[HF_ID_TEXT];
    hf_id_format(step->ctx->claimed->run.id, run);
    snprintf(step->key, sizeof step->key, "%s/%s", run, step->name);
}

static hf_code wait_for_attempt(hf_step *step, const struct hf__record *record, int64_t until)
{
    return hf__function_suspend(step->ctx, record,
                                &(hf_transition){ .waiting_kind = "step", .waiting_until = until });
}

/* True: an attempt may begin. */
static bool begin_attempt(hf_step *step)
{
    const struct hf__entry *entry = step->entry;
    if (entry && entry->status != HF__ENTRY_WAITING)
        return false;
    if (entry && hf__function_now(step->ctx) < entry->until) {
        wait_for_attempt(step, NULL, entry->until);
        return false;
    }
    const hf_step_options *options = options_of(step);
    step->attempt = entry ? entry->attempt + 1 : 1;
    step->started_at = hf__function_now(step->ctx);
    step->deadline =
        options->timeout ? hf__function_later(hf__monotonic_us(), options->timeout) : INT64_MAX;
    return true;
}

bool hf_step_begin_with(hf_ctx *ctx, const char *name, const hf_step_options *options,
                        hf_step *step)
{
    struct hf__entry *entry = NULL;
    *step = (hf_step){ .ctx = ctx, .options = options };
    if (hf__function_call(ctx, "step", name, &step->name, &entry) != HF_OK ||
        check_options(ctx, options) != HF_OK)
        return false;
    step->entry = entry;
    write_key(step);
    bool begins = begin_attempt(step);
    if (begins && !ctx->function->by_name)
        ctx->function->open = step->name;
    return begins;
}

bool hf_step_begin(hf_ctx *ctx, const char *name, hf_step *step)
{
    return hf_step_begin_with(ctx, name, NULL, step);
}

const char *hf_step_key(const hf_step *step)
{
    return step->key;
}

int hf_step_attempt(const hf_step *step)
{
    return step->attempt;
}

hf_code hf_step_check(const hf_step *step)
{
    hf_code code = hf_check(step->ctx);
    return code == HF_OK && hf__monotonic_us() >= step->deadline ? HF_TIMEOUT : code;
}

static hf_code record(hf_step *step, enum hf__entry_status status, const char *output,
                      const char *error)
{
    struct hf__entry *entry = NULL;
    hf_code code = hf__function_record(step->ctx,
                                       &(struct hf__record){
                                           .op = "step",
                                           .name = step->name,
                                           .status = status,
                                           .output = output,
                                           .error = error,
                                           .attempt = step->attempt,
                                           .started = step->started_at,
                                       },
                                       NULL, NULL, &entry);
    if (code == HF_OK) {
        step->entry = entry;
        step->ctx->function->open = NULL;
    }
    return code;
}

/* HF_OK: the step may be ended. What is remembered of it stays. */
static hf_code may_end(const hf_step *step)
{
    hf_code code;
    const struct hf__entry *entry = step->entry;
    struct hf__function *function = hf__function_of(step->ctx, &code);
    if (function && entry && entry->status != HF__ENTRY_WAITING)
        code =
            hf__fail(&function->error, HF_INVALID, "the step \"%s\" has ended already", step->name);
    return code;
}

hf_code hf_step_done(hf_step *step, const char *json)
{
    hf_code code = may_end(step);
    if (code != HF_OK)
        return code;
    if (hf__monotonic_us() >= step->deadline) {
        char limit[HF__DURATION_TEXT];
        hf__duration_format(options_of(step)->timeout, limit);
        char message[96];
        snprintf(message, sizeof message, "the step took longer than its limit of %s", limit);
        return hf_step_fail(step, HF_TIMEOUT, message);
    }
    const char *output = json ? json : "null";
    code = hf__json_check(output, strlen(output), &step->ctx->function->error);
    return code == HF_OK ? record(step, HF__ENTRY_SUCCEEDED, output, NULL) : code;
}

/* The delay before the next attempt; negative: there is none. */
static int64_t next_delay(const hf_step *step, hf_code code)
{
    const hf_step_options *options = options_of(step);
    const struct hf__retry_policy policy = {
        .max_attempts =
            options->max_attempts ? options->max_attempts : step->ctx->claimed->run.max_attempts,
        .base = options->retry_base ? options->retry_base : HF_SECONDS(1),
        .cap = options->retry_cap ? options->retry_cap : HF_MINUTES(5),
    };
    const struct hf__failure failure = { .permanent = code == HF_PERMANENT };
    struct hf__verdict verdict = hf__retry_decide(&policy, &failure, step->attempt, 0.5);
    return verdict.turn == HF_TURN_FAIL ? -1 : verdict.delay;
}

static hf_code fail_for_good(hf_step *step, const char *message)
{
    hf_code code = record(step, HF__ENTRY_FAILED, NULL, message);
    if (code != HF_OK)
        return code;
    step->ctx->function->met_failure = true;
    return HF_HANDLER_FAILED;
}

hf_code hf_step_fail(hf_step *step, hf_code code, const char *message)
{
    hf_error clean;
    hf_code over = may_end(step);
    if (over != HF_OK)
        return over;
    hf__fail(&clean, code, "%s", message && *message ? message : hf_code_meaning(code));
    int64_t delay = next_delay(step, code);
    if (delay < 0)
        return fail_for_good(step, clean.message);
    struct hf__record waiting = {
        .op = "step",
        .name = step->name,
        .status = HF__ENTRY_WAITING,
        .error = clean.message,
        .attempt = step->attempt,
        .started = step->started_at,
        .until = hf__function_later(hf__function_now(step->ctx), delay),
    };
    return wait_for_attempt(step, &waiting, waiting.until);
}

hf_code hf_step_result(const hf_step *step, hf_error *err)
{
    const struct hf__entry *entry = step->entry;
    struct hf__function *function = step->ctx->function;
    if (entry && entry->status == HF__ENTRY_SUCCEEDED)
        return HF_OK;
    if (entry && entry->status == HF__ENTRY_FAILED) {
        function->met_failure = true;
        return hf__fail(err, HF_HANDLER_FAILED, "%s", entry->error ? entry->error : step->name);
    }
    if (function && function->over != HF_OK)
        return hf__fail(err, function->over, "%s", function->error.message);
    return hf__fail(err, HF_INVALID, "the step \"%s\" is not done", step->name ? step->name : "");
}

const char *hf_step_output(const hf_step *step)
{
    const struct hf__entry *entry = step->entry;
    if (!entry || entry->status != HF__ENTRY_SUCCEEDED)
        return NULL;
    return entry->output ? entry->output : "null";
}

/* Work that neither said that it is done nor failed is done with nothing to tell. If its output was refused, that is why it
 * failed, for good: what was done is not to be done again for that. */
static hf_code after_work(hf_step *step, hf_code code, const hf_error *err)
{
    const struct hf__function *function = step->ctx->function;
    const struct hf__entry *entry = step->entry;
    bool over = entry && entry->status != HF__ENTRY_WAITING;
    if (code == HF_SUSPENDED || over)
        return code;
    if (code == HF_OK)
        return hf_step_done(step, NULL);
    if (!err->message[0] && function->error.code == code)
        return hf_step_fail(step, HF_PERMANENT, function->error.message);
    return hf_step_fail(step, code, err->message);
}

hf_code hf_step_run(hf_ctx *ctx, const char *name, const hf_step_options *options,
                    hf_step_work work, void *arg, const char **output, hf_error *err)
{
    hf_step step;
    if (hf_step_begin_with(ctx, name, options, &step)) {
        hf_error failure = { 0 };
        hf_code code = after_work(&step, work(&step, &failure, arg), &failure);
        if (code == HF_SUSPENDED)
            return hf__fail(err, code, "the run waits");
    }
    hf_code code = hf_step_result(&step, err);
    if (output)
        *output = code == HF_OK ? hf_step_output(&step) : NULL;
    return code;
}
