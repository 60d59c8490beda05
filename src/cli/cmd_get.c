/* holdfast get, holdfast wait
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/inside.h"
#include "cli/outcome.h"
#include "cli/run_ref.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/workflow_name.h"
#include "record/step_lines.h"
#include "util/alloc.h"
#include "util/buffer.h"

#include <stdlib.h>
#include <string.h>

static char *attempt_text(struct cli_session *session, const void *record)
{
    (void)session;
    const hf_run *run = record;
    struct hf__buffer text = { 0 };
    hf__buffer_addf(&text, "%d of %d", cli_attempts_made(run), run->max_attempts);
    return hf__buffer_take(&text);
}

static char *holder_text(struct cli_session *session, const void *record)
{
    const hf_run *run = record;
    if (run->status != HF_LEASED || !run->leased_by)
        return hf__strdup("");
    char until[CLI_TIME_TEXT];
    cli_time_text(session, run->lease_until, until);
    struct hf__buffer text = { 0 };
    hf__buffer_addf(&text, "%s, lease ends %s", run->leased_by, until);
    char *raw = hf__buffer_take(&text);
    char *clean = raw ? cli_clean_line(raw) : NULL;
    free(raw);
    return clean;
}

static char *due_text(struct cli_session *session, const hf_run *run, hf_status status)
{
    char when[CLI_TIME_TEXT] = "";
    if (run->status == status)
        cli_time_text(session, run->run_at, when);
    return hf__strdup(when);
}

static char *next_text(struct cli_session *session, const void *record)
{
    const hf_run *run = record;
    if (run->status == HF_PENDING && cli_workflow_paused(session, run->workflow))
        return hf__strdup("when its workflow, which is paused, is resumed");
    return due_text(session, run, HF_PENDING);
}

/* Unless what it waits for tells. */
static char *wake_text(struct cli_session *session, const void *record)
{
    const hf_run *run = record;
    return run->waiting_until == run->run_at ? hf__strdup("") : due_text(session, run, HF_WAITING);
}

/* A function's wait is named as its signal is. */
static void add_signal_name(struct hf__buffer *text, const hf_run *run)
{
    if (!run->waiting_kind || strcmp(run->waiting_kind, "signal") != 0 || !run->current_step)
        return;
    hf__buffer_addf(text, " \"%.*s\"", (int)hf__step_base(run->current_step), run->current_step);
}

static char *waiting_text(struct cli_session *session, const void *record)
{
    const hf_run *run = record;
    if (run->status != HF_WAITING)
        return hf__strdup("");
    struct hf__buffer text = { 0 };
    hf__buffer_add_text(&text, cli_waits_for(run));
    add_signal_name(&text, run);
    if (run->waiting_token)
        hf__buffer_addf(&text, " (token %s)", run->waiting_token);
    if (run->waiting_until) {
        char until[CLI_UNTIL_TEXT];
        cli_until_text(session, run->waiting_until, until);
        hf__buffer_addf(&text, ", %s", until);
    }
    char *raw = hf__buffer_take(&text);
    char *clean = raw ? cli_clean_line(raw) : NULL;
    free(raw);
    return clean;
}

static char *pause_text(struct cli_session *session, const void *record)
{
    (void)session;
    const hf_run *run = record;
    return hf__strdup(run->pause_requested ? "at its next commit" : "");
}

static const struct cli_column lines[] = {
    { .header = "id", .field = "id" },
    { .header = "workflow", .field = "workflow" },
    { .header = "key", .field = "key" },
    { .header = "status", .field = "status" },
    { .header = "pauses", .make = pause_text },
    { .header = "attempt", .make = attempt_text },
    { .header = "held by", .make = holder_text },
    { .header = "next attempt", .make = next_text },
    { .header = "wakes up", .make = wake_text },
    { .header = "waits for", .make = waiting_text },
    { .header = "current step", .field = "current_step" },
    { .header = "last error", .field = "last_error" },
    { .header = "error code", .field = "error_code" },
    { .header = "last worker", .field = "last_worker" },
    { .header = "priority", .field = "priority" },
    { .header = "revision", .field = "revision" },
    { .header = "subject", .field = "subject" },
    { .header = "reference", .field = "reference" },
    { .header = "tags", .field = "tags" },
    { .header = "flow key", .field = "flow_key" },
    { .header = "debounce key", .field = "debounce_key" },
    { .header = "partition", .field = "partition" },
    { .header = "trace", .field = "trace" },
    { .header = "triggered by", .field = "actor" },
    { .header = "tenant", .field = "tenant" },
    { .header = "parent", .field = "parent" },
    { .header = "deadline", .field = "timeout_at" },
    { .header = "created", .field = "created_at" },
    { .header = "started", .field = "started_at" },
    { .header = "updated", .field = "updated_at" },
    { .header = "paused", .field = "paused_at" },
    { .header = "finished", .field = "finished_at" },
    { .header = "deleted", .field = "deleted_at" },
    { .header = "delete reason", .field = "delete_reason" },
    { .header = "input", .field = "input" },
    { .header = "state", .field = "state" },
    { .header = "result", .field = "result" },
    { .header = "error", .field = "error" },
    { .header = NULL },
};

static int get(struct cli_session *session, int count, char **operands)
{
    int worst = CLI_OK;
    for (int i = 0; i < count; i++) {
        int status = CLI_OK;
        hf_run *run = NULL;
        if (i > 0 && !session->json)
            putchar('\n');
        if (cli_run_get(session, operands[i], &run, &status))
            cli_block_print(session, lines, hf__run_fields, run);
        hf_run_free(run);
        if (worst == CLI_OK)
            worst = status;
    }
    return worst;
}

const struct cli_command cli_command_get = {
    .name = "get",
    .summary = "Show runs with all that is known about them",
    .operands = "RUN...",
    .details = "RUN is an id, or WORKFLOW/KEY.",
    .examples = "holdfast get billing.charge.v1/inv-42\n"
                "holdfast get --json 0199a1b2-0000-7000-8000-000000000000 | jq .result",
    .min_operands = 1,
    .max_operands = CLI_MANY,
    .run = get,
};

static struct {
    int64_t timeout;
    unsigned limited;
} wait_args;

static const struct cli_option wait_options[] = {
    CLI_OPT(DURATION, 0, "timeout", "DURATION", "give up after so long, with exit code 6",
            .value = &wait_args.timeout, .mask = &wait_args.limited, .bit = 1),
    CLI_OPTIONS_END,
};

static int wait_for_run(struct cli_session *session, int count, char **operands)
{
    (void)count;
    hf_id id;
    int status = CLI_OK;
    if (cli_means_inside(operands[0]))
        return cli_wait_for_signal(session, operands[0], wait_args.limited ? wait_args.timeout : 0);
    if (!cli_run_id(session, operands[0], &id, &status))
        return status;
    return cli_wait_for(session, operands[0], id, wait_args.limited ? wait_args.timeout : -1);
}

const struct cli_command cli_command_wait = {
    .name = "wait",
    .summary = "Wait until a run has ended and print its result",
    .operands = "RUN|SIGNAL",
    .details = "Prints the result as JSON when the run succeeded. When it failed or was cancelled, "
               "the error goes to stderr and the exit code is 8. RUN is an id, or WORKFLOW/KEY.\n"
               "Inside a durable program (see `holdfast help step`) a word that is neither means a "
               "signal: the program waits for the next one of this name, also one that came "
               "before, and prints its payload. It is ended meanwhile, and started again when the "
               "signal has come.",
    .examples = "holdfast wait billing.charge.v1/inv-42 --timeout 10m\n"
                "answer=$(holdfast wait approved --timeout 7d)",
    .min_operands = 1,
    .max_operands = 1,
    .options = wait_options,
    .run = wait_for_run,
};
