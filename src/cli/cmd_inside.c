/* holdfast sleep, child start, child wait, progress, state, emit, now, uuid, random: for durable programs
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/inside.h"
#include "util/duration.h"

#include <stdlib.h>
#include <string.h>

#define INSIDE                                                                                     \
    "Works inside a program that `holdfast worker --exec` runs; see `holdfast help step`."

/* For requests whose answer has nothing to print. */
static int ask_and_say_nothing(struct cli_session *session, struct hf__buffer *request,
                               bool in_step)
{
    int status = CLI_OK;
    json_decref(cli_ask_worker(session, request, in_step, &status));
    return status;
}

static int ask_and_print(struct cli_session *session, struct hf__buffer *request,
                         const char *member)
{
    int status = CLI_OK;
    json_t *answer = cli_ask_worker(session, request, false, &status);
    const char *text = json_string_value(json_object_get(answer, member));
    if (answer)
        puts(text ? text : "");
    json_decref(answer);
    return status;
}

/* ---- sleep ---- */

static int sleep_here(struct cli_session *session, int count, char **operands)
{
    (void)count;
    int64_t us = 0, at = 0;
    struct hf__buffer request;
    if (hf__duration_parse(operands[1], &us, NULL) != HF_OK &&
        hf__time_parse(operands[1], &at, NULL) != HF_OK)
        return cli_usage(session,
                         "\"%.60s\" is neither a duration like 3d nor a time like "
                         "2026-11-15T09:30:00Z",
                         operands[1]);
    cli_request_begin(&request, "sleep");
    cli_request_text(&request, "name", operands[0]);
    cli_request_number(&request, "us", us);
    cli_request_number(&request, "at", at);
    return ask_and_say_nothing(session, &request, false);
}

const struct cli_command cli_command_sleep = {
    .name = "sleep",
    .summary = "Let time pass, without a process",
    .operands = "NAME DURATION|TIME",
    .details = "The program is ended and started again when the time has come; then this returns "
               "at once. NAME is what it is remembered by.\n" INSIDE,
    .examples = "holdfast sleep cool-down 3d\n"
                "holdfast sleep new-year 2027-01-01T00:00:00Z",
    .min_operands = 2,
    .max_operands = 2,
    .run = sleep_here,
};

/* ---- child start ---- */

static struct {
    const char *key;
} start_args;

static const struct cli_option start_options[] = {
    CLI_OPT(TEXT, 'k', "key", "KEY", "identity of the child among the runs of its workflow",
            .value = &start_args.key),
    CLI_OPTIONS_END,
};

static int child_start(struct cli_session *session, int count, char **operands)
{
    char *input = NULL;
    hf_error err = { 0 };
    struct hf__buffer request;
    if (count > 2 && cli_input_json(&input, "input", operands[2], &err) != HF_OK)
        return cli_fail(session, &err);
    cli_request_begin(&request, "start");
    cli_request_text(&request, "name", operands[0]);
    cli_request_text(&request, "workflow", operands[1]);
    cli_request_text(&request, "input", input);
    cli_request_text(&request, "key", start_args.key);
    free(input);
    return ask_and_print(session, &request, "id");
}

const struct cli_command cli_command_child_start = {
    .name = "child start",
    .summary = "Start a run that belongs to this one",
    .operands = "NAME WORKFLOW [INPUT]",
    .details = "Prints the child's id, every time the same. It is cancelled with this run. INPUT "
               "is JSON, @FILE or - for stdin.\n" INSIDE,
    .examples = "id=$(holdfast child start resize media.resize.v1 '{\"image\":7}')",
    .min_operands = 2,
    .max_operands = 3,
    .options = start_options,
    .run = child_start,
};

/* ---- child wait ---- */

static struct {
    bool any, fail_fast;
    int64_t timeout;
} wait_args;

static const struct cli_option wait_options[] = {
    CLI_OPT(SWITCH, 0, "any", NULL, "until one has ended", .value = &wait_args.any),
    CLI_OPT(SWITCH, 0, "fail-fast", NULL, "until all have ended or one has failed",
            .value = &wait_args.fail_fast),
    CLI_OPT(DURATION, 0, "timeout", "DURATION",
            "give up after so long, with exit code 6; 0: no limit", .value = &wait_args.timeout),
    CLI_OPTIONS_END,
};

static void add_ids(struct hf__buffer *request, int count, char **ids)
{
    hf__buffer_add_text(request, ",\"ids\":[");
    for (int i = 0; i < count; i++) {
        hf__buffer_add_text(request, i ? "," : "");
        hf__buffer_add_json_string(request, ids[i], strlen(ids[i]));
    }
    hf__buffer_add_text(request, "]");
}

static const char *text_in(const json_t *object, const char *member)
{
    return json_string_value(json_object_get(object, member));
}

static bool has_succeeded(const json_t *end)
{
    const char *status = text_in(end, "status");
    return status && strcmp(status, "succeeded") == 0;
}

/* Why the first of those that went wrong did; `more` others did as well. */
static int show_failure(struct cli_session *session, const json_t *end, size_t more)
{
    const char *error = text_in(end, "error");
    char others[40] = "";
    if (more)
        snprintf(others, sizeof others, " (and %zu more)", more);
    cli_failf(session, HF_HANDLER_FAILED, "the child %s is %s%s%s%.300s", text_in(end, "id"),
              text_in(end, "status"), others, error ? ": " : "", error ? error : "");
    return CLI_RUN_FAILED;
}

static void show_end(const json_t *end)
{
    const char *result = text_in(end, "result"), *error = text_in(end, "error");
    printf("{\"id\":\"%s\",\"status\":\"%s\",\"result\":%s,\"error\":%s}\n", text_in(end, "id"),
           text_in(end, "status"), result ? result : "null", error ? error : "null");
}

static void show_only_result(const json_t *end)
{
    const char *result = text_in(end, "result");
    if (has_succeeded(end))
        puts(result ? result : "null");
}

static int show_ends(struct cli_session *session, const json_t *answer)
{
    const json_t *ends = json_object_get(answer, "ends"), *failed = NULL;
    bool late = json_is_true(json_object_get(answer, "late"));
    bool alone = json_array_size(ends) == 1 && !late;
    size_t failures = 0;
    for (size_t i = 0; i < json_array_size(ends); i++) {
        const json_t *end = json_array_get(ends, i);
        if (!text_in(end, "status"))
            continue;
        if (alone)
            show_only_result(end);
        else
            show_end(end);
        if (!has_succeeded(end) && failures++ == 0)
            failed = end;
    }
    if (late)
        return cli_failf(session, HF_TIMEOUT, "not all children ended in time");
    return failed ? show_failure(session, failed, failures - 1) : CLI_OK;
}

static int child_wait(struct cli_session *session, int count, char **operands)
{
    int status = CLI_OK;
    struct hf__buffer request;
    if (wait_args.any && wait_args.fail_fast)
        return cli_usage(session, "--any or --fail-fast, not both");
    cli_request_begin(&request, "children");
    cli_request_text(&request, "name", operands[0]);
    cli_request_text(&request, "for",
                     wait_args.any         ? "any"
                     : wait_args.fail_fast ? "all_or_failure"
                                           : "all");
    cli_request_number(&request, "timeout", wait_args.timeout);
    add_ids(&request, count - 1, operands + 1);
    json_t *answer = cli_ask_worker(session, &request, false, &status);
    if (answer)
        status = show_ends(session, answer);
    json_decref(answer);
    return status;
}

const struct cli_command cli_command_child_wait = {
    .name = "child wait",
    .summary = "Wait for children to end",
    .operands = "NAME [ID...]",
    .details =
        "Without ids it waits for the children that `holdfast child start NAME` has started, or, "
        "where "
        "there are none of that name, for all children of this run; a wait for nobody is refused. "
        "For "
        "one child its result is printed; for several a line of JSON each, with id, status, result "
        "and "
        "error. If a child has failed or was cancelled, the exit code "
        "is 8. The program is ended meanwhile and started again when they have ended.\n" INSIDE,
    .examples = "holdfast child wait resized \"$first\" \"$second\" | jq .result\n"
                "holdfast child wait resize",
    .min_operands = 1,
    .max_operands = CLI_MANY,
    .options = wait_options,
    .run = child_wait,
};

/* ---- progress, state, emit ---- */

/* A step's command runs once, as far as the worker remembers; the rest of the program again and again. */
static void say_whether_in_step(struct hf__buffer *request)
{
    if (getenv("HOLDFAST_STEP_KEY"))
        hf__buffer_add_text(request, ",\"in_step\":true");
}

static int progress(struct cli_session *session, int count, char **operands)
{
    int64_t percent;
    hf_error err;
    struct hf__buffer request;
    if (cli_number_parse("the percentage", operands[0], 0, 100, &percent, &err) != HF_OK)
        return cli_usage(session, "%s", err.message);
    cli_request_begin(&request, "progress");
    cli_request_number(&request, "percent", percent);
    cli_request_text(&request, "text", count > 1 ? operands[1] : NULL);
    say_whether_in_step(&request);
    return ask_and_say_nothing(session, &request, true);
}

const struct cli_command cli_command_progress = {
    .name = "progress",
    .summary = "Say how far it is",
    .operands = "PERCENT [TEXT]",
    .details =
        "Seen at once by `holdfast watch`, in `holdfast events` and on the dashboard. A later pass "
        "does not tell it again; a step's command may call it too.\n" INSIDE,
    .examples = "holdfast progress 40 'resizing'",
    .min_operands = 1,
    .max_operands = 2,
    .run = progress,
};

static int state(struct cli_session *session, int count, char **operands)
{
    (void)count;
    char *json;
    hf_error err = { 0 };
    struct hf__buffer request;
    if (cli_input_json(&json, "state", operands[0], &err) != HF_OK)
        return cli_fail(session, &err);
    cli_request_begin(&request, "state");
    cli_request_text(&request, "json", json);
    say_whether_in_step(&request);
    free(json);
    return ask_and_say_nothing(session, &request, true);
}

const struct cli_command cli_command_state = {
    .name = "state",
    .summary = "Publish the run's state",
    .operands = "JSON",
    .details = "Shown by `holdfast get`. JSON may be @FILE or - for stdin; a step's command may "
               "call it too. A later pass does not publish it again.\n" INSIDE,
    .examples = "holdfast state '{\"phase\":\"packing\"}'",
    .min_operands = 1,
    .max_operands = 1,
    .run = state,
};

static int emit(struct cli_session *session, int count, char **operands)
{
    char *json = NULL;
    hf_error err = { 0 };
    struct hf__buffer request;
    if (count > 1 && cli_input_json(&json, "event", operands[1], &err) != HF_OK)
        return cli_fail(session, &err);
    cli_request_begin(&request, "emit");
    cli_request_text(&request, "type", operands[0]);
    cli_request_text(&request, "json", json);
    free(json);
    return ask_and_say_nothing(session, &request, false);
}

const struct cli_command cli_command_emit = {
    .name = "emit",
    .summary = "Put an event into the outbox, once",
    .operands = "TYPE [JSON]",
    .details = INSIDE,
    .examples = "holdfast emit order.packed '{\"order\":7}'",
    .min_operands = 1,
    .max_operands = 2,
    .run = emit,
};

/* ---- now, uuid, random ---- */

static int fixed(struct cli_session *session, int count, char **operands)
{
    (void)count, (void)operands;
    struct hf__buffer request;
    cli_request_begin(&request, session->command->name);
    return ask_and_print(session, &request, "text");
}

#define FIXED_COMMAND(name_, summary_)                                                             \
    const struct cli_command cli_command_##name_ = {                                               \
        .name = #name_,                                                                            \
        .summary = summary_,                                                                       \
        .operands = "",                                                                            \
        .details = "The same every time the program is started again.\n" INSIDE,                   \
        .run = fixed,                                                                              \
    }

FIXED_COMMAND(now, "Print the time of the first call");
FIXED_COMMAND(uuid, "Print a new id");
FIXED_COMMAND(random, "Print a random number of 64 bits");
