/* Steps: named pieces of work whose outcome is remembered.
 * SPDX-License-Identifier: Apache-2.0 */
#include "function/function.h"

#include "client/check.h"
#include "kernel/retry.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/json.h"
#include "util/text.h"
#include "worker/gate.h"

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
    if (options->version < 1 || options->version > HF_STEP_OPTIONS_VERSION)
        return hf__function_break(ctx, "broken_rule", "hf_step_options has version %d, not %d",
                                  options->version, HF_STEP_OPTIONS_VERSION);
    if (options->max_attempts < 0 || options->max_attempts > 1000000 || options->retry_base < 0 ||
        options->retry_cap < 0)
        return hf__function_break(ctx, "broken_rule",
                                  "a step's attempts and pauses cannot be negative");
    return HF_OK;
}

static void write_key(hf_step *step)
{
    char run[HF_ID_TEXT];
    hf_id_format(step->ctx->claimed->run.id, run);
    snprintf(step->key, sizeof step->key, "%s/%s", run, step->name);
}

static hf_code wait_for_attempt(hf_step *step, struct hf__record *record, int64_t until)
{
    if (record) {
        record->op = "step";
        record->name = step->name;
        record->started = step->started_at;
    }
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
        options->timeout > 0 ? hf__function_later(hf__monotonic_us(), options->timeout) : INT64_MAX;
    return true;
}

/* The worker keeps its limit, too, if the handler does not come back. */
static void open_step(const hf_step *step)
{
    hf_ctx *ctx = step->ctx;
    struct hf__function *function = ctx->function;
    function->open = step->name;
    if (step->deadline == INT64_MAX)
        return;
    const hf_step_options *options = options_of(step);
    function->open_options = plain;
    function->open_options.max_attempts = options->max_attempts;
    function->open_options.retry_base = options->retry_base;
    function->open_options.retry_cap = options->retry_cap;
    function->open_options.timeout = options->timeout;
    function->open_step = *step;
    function->open_step.options = &function->open_options;
    atomic_store(&ctx->step_ends, step->deadline);
    if (atomic_load(&ctx->leavable))
        hf__stuck_expect(ctx->worker, step->deadline + ctx->worker->step_grace);
}

static void close_step(hf_ctx *ctx)
{
    ctx->function->open = NULL;
    atomic_store(&ctx->step_ends, 0);
}

static hf_code end_late(hf_step *step);

/* HF_OK: an attempt may begin. */
static hf_code begin(hf_step *step, const char *name, const hf_step_options *options)
{
    hf_ctx *ctx = step->ctx;
    struct hf__entry *entry = NULL;
    if (hf__function_call(ctx, "step", name, &step->name, &entry) != HF_OK ||
        check_options(ctx, options) != HF_OK)
        return HF_INVALID;
    step->entry = entry;
    write_key(step);
    bool begins = begin_attempt(step);
    if (begins && options_of(step)->timeout < 0) {
        end_late(step);
        return HF_CONFLICT;
    }
    if (begins && !ctx->function->by_name)
        open_step(step);
    return begins ? HF_OK : HF_CONFLICT;
}

bool hf_step_begin_with(hf_ctx *ctx, const char *name, const hf_step_options *options,
                        hf_step *step)
{
    *step = (hf_step){ .ctx = ctx, .options = options };
    return hf__inside(ctx, begin(step, name, options)) == HF_OK;
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

/* ---- Ending ---- */

/* An output that was refused is remembered until the step ends with another. */
static void note_refusal(const hf_step *step, hf_code code)
{
    struct hf__function *function = step->ctx->function;
    function->refused = NULL;
    if (code == HF_INVALID || code == HF_TOO_LARGE)
        function->refused = hf__arena_strdup(&step->ctx->arena, function->error.message);
}

static hf_code record(hf_step *step, struct hf__record *record)
{
    struct hf__entry *entry = NULL;
    record->op = "step";
    record->name = step->name;
    record->started = step->started_at;
    hf_code code = hf__function_record(step->ctx, record, NULL, NULL, &entry);
    if (code == HF_OK) {
        step->entry = entry;
        close_step(step->ctx);
    }
    note_refusal(step, code);
    return code;
}

/* HF_OK: the step may be ended. What is remembered of it stays. */
static hf_code may_end(const hf_step *step)
{
    hf_code code;
    const struct hf__entry *entry = step->entry;
    const struct hf__function *function = hf__function_of(step->ctx, &code);
    if (function && entry && entry->status != HF__ENTRY_WAITING)
        code =
            hf__function_break(step->ctx, "broken_rule",
                               "the step \"%.100s\" has ended already: do its work and end it only "
                               "where hf_step_begin returned true, and once",
                               step->name);
    return code;
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

static int64_t deferral_limit(const hf_step *step)
{
    const hf_step_options *options = options_of(step);
    return options->version >= 2 ? options->retry_after_limit : plain.retry_after_limit;
}

/* A failure that names its own time does not count, as long as the series that it belongs to is not too long. */
static bool is_deferred(const hf_step *step, const hf_step_failure *failure,
                        struct hf__record *record)
{
    const struct hf__entry *entry = step->entry;
    int64_t now = hf__function_now(step->ctx), limit = deferral_limit(step);
    if (failure->retry_after <= 0 || failure->code == HF_PERMANENT)
        return false;
    record->deferred = entry && entry->deferred ? entry->deferred : now;
    record->until = hf__function_later(now, failure->retry_after);
    record->attempt = step->attempt - 1;
    return limit == 0 || record->until <= hf__function_later(record->deferred, limit);
}

static hf_code fail_for_good(hf_step *step, struct hf__record *failed)
{
    failed->status = HF__ENTRY_FAILED;
    hf_code code = record(step, failed);
    if (code != HF_OK)
        return code;
    step->ctx->function->met_failure = true;
    step->ctx->function->failure = step->entry;
    return HF_HANDLER_FAILED;
}

/* What a failure is remembered as; `text` keeps the message. False: it is not acceptable. */
static hf_code read_failure(hf_ctx *ctx, const hf_step_failure *failure, hf_error *text,
                            struct hf__record *record)
{
    hf_error *err = &ctx->function->error;
    hf_code code = HF_OK;
    record->code = failure->error_code ? failure->error_code : hf_code_name(failure->code);
    record->details = failure->details;
    if (failure->version != HF_STEP_FAILURE_VERSION)
        return hf__function_break(ctx, "broken_rule",
                                  "start the failure of a step with HF_STEP_FAILURE_INIT");
    if (failure->error_code)
        code = hf__label_check("the code of a failure", failure->error_code, HF__NAME_MAX, err);
    if (code == HF_OK && failure->details)
        code = hf__json_check(failure->details, strlen(failure->details), err);
    const char *message = failure->message;
    hf__fail(text, failure->code, "%s",
             message && *message ? message : hf_code_meaning(failure->code));
    record->error = text->message;
    return code;
}

static hf_code end_failed(hf_step *step, const hf_step_failure *failure)
{
    hf_error text;
    struct hf__record failed = { .status = HF__ENTRY_WAITING };
    hf_code code = may_end(step);
    if (code == HF_OK)
        code = read_failure(step->ctx, failure, &text, &failed);
    if (code != HF_OK)
        return code;
    if (is_deferred(step, failure, &failed))
        return wait_for_attempt(step, &failed, failed.until);
    failed.attempt = step->attempt;
    failed.deferred = failed.until = 0;
    int64_t delay = next_delay(step, failure->code);
    if (delay < 0)
        return fail_for_good(step, &failed);
    failed.until = hf__function_later(hf__function_now(step->ctx), delay);
    return wait_for_attempt(step, &failed, failed.until);
}

/* The same words as in other languages. */
static void say_late(const hf_step *step, char message[96])
{
    int64_t limit = options_of(step)->timeout;
    if (limit < 0)
        snprintf(message, 96, "the step's time had passed before it began");
    else
        snprintf(message, 96, "the step took longer than its limit of %gs", (double)limit / 1e6);
}

static hf_code end_late(hf_step *step)
{
    char message[96];
    hf_step_failure late = HF_STEP_FAILURE_INIT;
    say_late(step, message);
    late.code = HF_TIMEOUT;
    late.message = message;
    return end_failed(step, &late);
}

/* The handler is not there to be told of a failure for good: the run is due at once, and the next replay tells it. */
hf_code hf__function_end_late(hf_ctx *ctx)
{
    char message[96];
    struct hf__function *function = ctx->function;
    if (!function || !function->open || function->over != HF_OK)
        return HF_TIMEOUT;
    hf_step *step = &function->open_step;
    struct hf__record late = { .status = HF__ENTRY_WAITING,
                               .error = message,
                               .code = hf_code_name(HF_TIMEOUT),
                               .attempt = step->attempt };
    int64_t now = hf__function_now(ctx), delay = next_delay(step, HF_TIMEOUT);
    say_late(step, message);
    if (delay < 0)
        late.status = HF__ENTRY_FAILED;
    else
        late.until = hf__function_later(now, delay);
    return wait_for_attempt(step, &late, delay < 0 ? now : late.until);
}

static hf_code end_done(hf_step *step, const char *json)
{
    hf_code code = may_end(step);
    if (code != HF_OK)
        return code;
    if (hf__monotonic_us() >= step->deadline)
        return end_late(step);
    const char *output = json ? json : "null";
    code = hf__json_check(output, strlen(output), &step->ctx->function->error);
    if (code == HF_OK)
        return record(step, &(struct hf__record){ .status = HF__ENTRY_SUCCEEDED,
                                                  .output = output,
                                                  .attempt = step->attempt });
    note_refusal(step, code);
    return code;
}

hf_code hf_step_done(hf_step *step, const char *json)
{
    return hf__inside(step->ctx, end_done(step, json));
}

hf_code hf_step_fail_with(hf_step *step, const hf_step_failure *failure)
{
    return hf__inside(step->ctx, end_failed(step, failure));
}

hf_code hf_step_fail(hf_step *step, hf_code code, const char *message)
{
    hf_step_failure failure = HF_STEP_FAILURE_INIT;
    failure.code = code;
    failure.message = message;
    return hf_step_fail_with(step, &failure);
}

/* ---- What became of it ---- */

static hf_code tell_result(const hf_step *step, hf_error *err)
{
    const struct hf__entry *entry = step->entry;
    struct hf__function *function = step->ctx->function;
    if (entry && entry->status == HF__ENTRY_SUCCEEDED)
        return HF_OK;
    if (entry && entry->status == HF__ENTRY_FAILED) {
        function->met_failure = true;
        function->failure = entry;
        return hf__fail(err, HF_HANDLER_FAILED, "%s", entry->error ? entry->error : step->name);
    }
    if (function && function->over != HF_OK)
        return hf__fail(err, function->over, "%s", function->error.message);
    return hf__fail(err, HF_INVALID, "the step \"%s\" is not done", step->name ? step->name : "");
}

hf_code hf_step_result(const hf_step *step, hf_error *err)
{
    hf_ctx *ctx = step->ctx;
    if (!hf__gate_enter(ctx))
        return hf__fail(err, hf__gate_refusal(ctx), "%s", hf_code_meaning(hf__gate_refusal(ctx)));
    return hf__gate_leave(ctx, tell_result(step, err));
}

static const struct hf__entry *failed_entry(const hf_step *step)
{
    const struct hf__entry *entry = step->entry;
    return entry && entry->status == HF__ENTRY_FAILED ? entry : NULL;
}

const char *hf_step_error_code(const hf_step *step)
{
    const struct hf__entry *entry = failed_entry(step);
    return entry ? hf__entry_code(entry) : NULL;
}

const char *hf_step_error_details(const hf_step *step)
{
    const struct hf__entry *entry = failed_entry(step);
    return entry ? entry->details : NULL;
}

const char *hf_step_output(const hf_step *step)
{
    const struct hf__entry *entry = step->entry;
    if (!entry || entry->status != HF__ENTRY_SUCCEEDED)
        return NULL;
    return entry->output ? entry->output : "null";
}

/* ---- All in one call ---- */

/* Work that neither said that it is done nor failed is done with nothing to tell. If its output was refused, that is why it
 * failed, for good: what was done is not to be done again for that. */
static hf_code after_work(hf_step *step, hf_code code, const hf_error *err)
{
    hf_step_failure failure = HF_STEP_FAILURE_INIT;
    char message[sizeof err->message];
    const struct hf__function *function = step->ctx->function;
    const struct hf__entry *entry = step->entry;
    bool over = entry && entry->status != HF__ENTRY_WAITING;
    if (code == HF_SUSPENDED || over || function->over != HF_OK)
        return code;
    failure.code = code;
    failure.message = err->message;
    if (function->refused && (code == HF_OK || code == HF_INVALID || code == HF_TOO_LARGE)) {
        snprintf(message, sizeof message, "its output was refused, after its work was done: %s",
                 function->refused);
        failure = (hf_step_failure)HF_STEP_FAILURE_INIT;
        failure.code = HF_PERMANENT;
        failure.error_code = "result_refused";
        failure.message = message;
    } else if (code == HF_OK) {
        return end_done(step, NULL);
    }
    return end_failed(step, &failure);
}

hf_code hf_step_run(hf_ctx *ctx, const char *name, const hf_step_options *options,
                    hf_step_work work, void *arg, const char **output, hf_error *err)
{
    hf_step step;
    if (hf_step_begin_with(ctx, name, options, &step)) {
        hf_error failure = { 0 };
        hf_code code = work(&step, &failure, arg);
        code = hf__inside(ctx, after_work(&step, code, &failure));
        if (code == HF_SUSPENDED)
            return hf__fail(err, code, "the run waits");
    }
    hf_code code = hf_step_result(&step, err);
    if (output)
        *output = code == HF_OK ? hf_step_output(&step) : NULL;
    return code;
}
