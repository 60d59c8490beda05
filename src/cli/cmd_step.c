/* holdfast step
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/inside.h"
#include "cli/step_command.h"
#include "util/duration.h"
#include "util/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_TRY_LATER 75 /* of the command: whom it asked is busy */
#define EXIT_FOR_GOOD 78  /* of the command: trying again would not help */

static struct {
    int64_t timeout, retry, retry_base, retry_cap, retry_after, retry_after_limit;
} args = { .retry = -1, .retry_after_limit = -1 }; /* not said */

static const struct cli_option options[] = {
    CLI_OPT(DURATION, 0, "timeout", "DURATION",
            "end a COMMAND that takes longer: it has failed; 0: no limit", .value = &args.timeout),
    CLI_OPT(
        NUMBER, 0, "retry", "N",
        "if it fails, try it up to N more times; default as often as the run itself may be tried",
        .value = &args.retry, .min = 0, .max = 999999),
    CLI_OPT(DURATION, 0, "retry-base", "DURATION",
            "before the second try, doubled each time; default 1s", .value = &args.retry_base,
            .min = -1),
    CLI_OPT(DURATION, 0, "retry-cap", "DURATION", "at most so long between tries; default 5m",
            .value = &args.retry_cap, .min = -1),
    CLI_OPT(DURATION, 0, "retry-after", "DURATION",
            "after exit code 75 try it again so much later; such a try does not count",
            .value = &args.retry_after, .min = -1),
    CLI_OPT(DURATION, 0, "retry-after-limit", "DURATION",
            "for so long, then tries count again; default 1h, 0: no limit",
            .value = &args.retry_after_limit),
    CLI_OPTIONS_END,
};

/* ---- What is remembered ---- */

static int show_output(const json_t *answer)
{
    const json_t *output = json_object_get(answer, "output");
    fwrite(json_string_value(output), 1, json_string_length(output), stdout);
    return CLI_OK;
}

/* A step that has failed for good: the exit code is the command's. */
static int show_failure(const struct cli_worker_link *link, const json_t *answer, bool say_why)
{
    const json_t *number = json_object_get(answer, "exit");
    const char *message = json_string_value(json_object_get(answer, "message"));
    if (!number)
        return cli_link_fail(link, answer);
    if (say_why && message && *message)
        fprintf(stderr, "%s\n", message);
    return (int)json_integer_value(number);
}

/* ---- Doing it ---- */

static bool put_number(char *out, size_t size, const json_t *answer, const char *member)
{
    return snprintf(out, size, "%lld",
                    (long long)json_integer_value(json_object_get(answer, member))) > 0;
}

static void run_command(struct cli_worker_link *link, const json_t *answer, char *const *argv,
                        struct hf__step_line_result *result)
{
    char attempt[24];
    const char *key = json_string_value(json_object_get(answer, "key"));
    struct hf__step_line_command command = {
        .argv = argv,
        .output_limit = (size_t)json_integer_value(json_object_get(answer, "limit")),
        .timeout = args.timeout,
        .watched = link->fd,
    };
    if (put_number(attempt, sizeof attempt, answer, "attempt"))
        setenv("HOLDFAST_STEP_ATTEMPT", attempt, 1);
    setenv("HOLDFAST_STEP_KEY", key ? key : "", 1);
    cli_step_command_run(&command, result);
}

/* Why an output cannot be remembered; NULL: it can. */
static const char *fault_of(const struct hf__buffer *output)
{
    if (output->length == 0)
        return NULL;
    if (memchr(output->data, '\0', output->length) || !hf__utf8_valid(output->data, output->length))
        return "its output is not UTF-8 text and cannot be remembered; encode it, for instance "
               "with base64";
    return NULL;
}

/* `code` NULL: the exit code's. */
static void request_failure(struct hf__buffer *request, int exit_code, const char *code,
                            const char *words, bool permanent)
{
    cli_request_begin(request, "fail");
    cli_request_number(request, "exit", exit_code);
    cli_request_text(request, "code", code);
    if (exit_code == EXIT_TRY_LATER)
        cli_request_number(request, "after", args.retry_after);
    cli_request_text(request, "message", words);
    if (permanent)
        hf__buffer_add_text(request, ",\"permanent\":true");
}

/* The failures that are this program's to tell of. */
static void request_refusal(struct cli_session *session, struct hf__buffer *request,
                            const struct hf__step_line_result *result)
{
    char limit[HF__DURATION_TEXT], words[300];
    const char *fault = fault_of(&result->output);
    const char *code = "result_refused";
    int exit_code = CLI_FAILED;
    if (result->end == CLI_STEP_LATE) {
        code = hf_code_name(HF_TIMEOUT);
        hf__duration_format(args.timeout, limit);
        snprintf(words, sizeof words, "it took longer than its limit of %s", limit);
        exit_code = CLI_TIMEOUT;
    } else if (result->end == CLI_STEP_BROKEN) {
        code = hf_code_name(HF_UNAVAILABLE);
        snprintf(words, sizeof words, "no process for it: %s", strerror(result->exit_code));
    } else {
        snprintf(words, sizeof words, "%s", fault ? fault : "output too large");
    }
    cli_notice(session, "the step has failed: %s", words);
    /* What was done is not to be done again because of what it printed. */
    request_failure(request, exit_code, code, words,
                    result->end != CLI_STEP_LATE && result->end != CLI_STEP_BROKEN);
}

static int tell(struct cli_worker_link *link, struct hf__step_line_result *result)
{
    int status = CLI_OK;
    struct hf__buffer request;
    bool exited = result->end == CLI_STEP_EXITED;
    if (exited && result->exit_code != 0) {
        request_failure(&request, result->exit_code, NULL, result->words,
                        result->exit_code == EXIT_FOR_GOOD);
    } else if (!exited || fault_of(&result->output)) {
        request_refusal(link->session, &request, result);
    } else {
        cli_request_begin(&request, "done");
        cli_request_text(&request, "output", result->output.data ? result->output.data : "");
    }
    json_t *answer = cli_link_ask(link, &request, &status);
    if (answer && json_object_get(answer, "error"))
        status = show_failure(link, answer, exited && result->exit_code == 0);
    else if (answer)
        fwrite(result->output.data ? result->output.data : "", 1, result->output.length, stdout);
    json_decref(answer);
    return status;
}

static int do_step(struct cli_worker_link *link, const json_t *answer, char *const *argv)
{
    struct hf__step_line_result result;
    run_command(link, answer, argv, &result);
    int status = result.end == CLI_STEP_LOST ? cli_link_lost(link) : tell(link, &result);
    hf__buffer_free(&result.output);
    return status;
}

static json_t *ask_for(struct cli_worker_link *link, const char *name, int *status)
{
    struct hf__buffer request;
    cli_request_begin(&request, "step");
    cli_request_text(&request, "name", name);
    cli_request_number(&request, "attempts", args.retry + 1);
    cli_request_number(&request, "base", args.retry_base);
    cli_request_number(&request, "cap", args.retry_cap);
    if (args.retry_after_limit >= 0)
        hf__buffer_addf(&request, ",\"after_limit\":%" PRId64, args.retry_after_limit);
    return cli_link_ask(link, &request, status);
}

static int step(struct cli_session *session, int count, char **operands)
{
    (void)count;
    int status = CLI_OK;
    struct cli_worker_link link;
    if (!cli_link_open(&link, session, false, &status))
        return status;
    json_t *answer = ask_for(&link, operands[0], &status);
    if (answer && json_object_get(answer, "error"))
        status = show_failure(&link, answer, true);
    else if (answer && json_object_get(answer, "output"))
        status = show_output(answer);
    else if (answer)
        status = do_step(&link, answer, operands + 1);
    json_decref(answer);
    cli_link_close(&link);
    return status;
}

const struct cli_command cli_command_step = {
    .name = "step",
    .summary = "Run a command once and remember its output",
    .operands = "NAME -- COMMAND [ARGUMENT...]",
    .details =
        "Works inside a program that `holdfast worker --exec` runs, in any language. After a "
        "crash, a retry or a wait the program is started again from the top; a step that is "
        "finished prints what it printed then and does not run COMMAND.\n"
        "What COMMAND prints is remembered, durably, before this prints it: UTF-8 text of at most "
        "1 MiB. If COMMAND fails, it is tried again as --retry says, and the program is ended "
        "meanwhile; after the last try the step has failed for good, and this exits with COMMAND's "
        "exit code now and every time. A program that then fails too, fails its run for good. Exit "
        "code 78 of COMMAND: failed for good, do not try again. 75, with --retry-after: whom it "
        "asked is busy, so it is tried again without using up a try. 6: it took longer than "
        "--timeout.\n"
        "COMMAND may run twice if the machine dies while it runs. It finds HOLDFAST_STEP_KEY in "
        "its environment, the same in every attempt of this step of this run and in no other: "
        "hand it to what must not happen twice. HOLDFAST_STEP_ATTEMPT counts from 1.\n"
        "NAME must differ from step to step; the second use of a name in a run is remembered as "
        "NAME#2. Steps may run at once, in background jobs.",
    .examples = "order=$(holdfast step fetch -- curl -sf https://shop.example/orders/7)\n"
                "holdfast step charge --retry 5 --timeout 30s -- ./charge.sh \"$order\"",
    .min_operands = 2,
    .max_operands = CLI_MANY,
    .options = options,
    .run = step,
};
