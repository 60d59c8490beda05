/* holdfast steps
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/run_ref.h"
#include "cli/steps.h"
#include "cli/table.h"
#include "util/alloc.h"

#include <stdlib.h>

static char *took_text(struct cli_session *session, const void *record)
{
    (void)session;
    const struct hf__step_line *step = record;
    char text[CLI_SPAN_TEXT] = "";
    if (step->took >= 0)
        cli_span_text(step->took, text);
    return hf__strdup(text);
}

static char *attempt_text(struct cli_session *session, const void *record)
{
    (void)session;
    const struct hf__step_line *step = record;
    char text[24] = "";
    if (step->attempt > 0)
        snprintf(text, sizeof text, "%lld", (long long)step->attempt);
    return hf__strdup(text);
}

static char *outcome_text(struct cli_session *session, const void *record)
{
    return cli_step_outcome(session, record);
}

static const struct cli_column columns[] = {
    { .header = "STEP", .field = "name", .shrinks = true },
    { .header = "WHAT", .field = "op" },
    { .header = "STATUS", .field = "status" },
    { .header = "TRY", .make = attempt_text, .right = true },
    { .header = "WHEN", .field = "at" },
    { .header = "TOOK", .make = took_text, .right = true },
    { .header = "OUTPUT", .make = outcome_text, .shrinks = true },
    { .header = NULL },
};

static int show_steps(struct cli_session *session, int count, char **operands)
{
    (void)count;
    hf_id id;
    int64_t seq = 0;
    int status = CLI_OK;
    hf_error err = { 0 };
    struct hf__step_lines steps = HF__STEP_LINES_INIT;
    if (!cli_run_id(session, operands[0], &id, &status))
        return status;
    if (hf__step_lines_read(session->client, &steps, id, &seq, &err) != HF_OK)
        status = cli_run_fail(session, operands[0], &err);
    else if (steps.failed)
        status = cli_failf(session, HF_NOMEM, "memory ran out");
    else if (steps.count == 0)
        cli_notice(session, "the run has no steps yet");
    else
        cli_table_print(session, columns, hf__step_fields, steps.items, sizeof *steps.items,
                        steps.count, true);
    hf__step_lines_free(&steps);
    return status;
}

const struct cli_command cli_command_steps = {
    .name = "steps",
    .summary = "Show the steps of a run: what it remembers of its work",
    .operands = "RUN",
    .details = "One line for each remembered call of a durable function, in the order in which "
               "they began: steps, sleeps, waits, children. RUN is an id, or WORKFLOW/KEY.",
    .examples =
        "holdfast steps order.v1/o-17\n"
        "holdfast steps order.v1/o-17 --json | jq -c 'select(.name == \"charge\") | .output'",
    .min_operands = 1,
    .max_operands = 1,
    .run = show_steps,
};
