/* holdfast signal
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/field.h"
#include "cli/input.h"
#include "cli/run_ref.h"

#include <stdlib.h>

static struct {
    const char *id, *type, *token;
    int64_t revision, in;
} args;

static const struct cli_option options[] = {
    CLI_OPT(TEXT, 0, "id", "ID", "the signal's identity: a second one with it is dropped",
            .value = &args.id),
    CLI_OPT(TEXT, 0, "type", "TYPE", "its type, for handlers that look at it; default external",
            .value = &args.type),
    CLI_OPT(TEXT, 0, "token", "TOKEN", "ignored unless the run waits with this token",
            .value = &args.token),
    CLI_OPT(NUMBER, 0, "revision", "N", "refuse if the run's revision is another",
            .value = &args.revision, .min = 1, .max = INT64_MAX),
    CLI_OPT(DURATION, 0, "in", "DURATION", "the run sees it so long from now", .value = &args.in),
    CLI_OPTIONS_END,
};

struct answer {
    hf_id run;
    const char *name;
    bool duplicate;
};

static const struct hf__field answer_fields[] = {
    { "run", HF__FIELD_ID, offsetof(struct answer, run) },
    { "name", HF__FIELD_TEXT, offsetof(struct answer, name) },
    { "duplicate", HF__FIELD_BOOL, offsetof(struct answer, duplicate) },
    { NULL, HF__FIELD_TEXT, 0 },
};

static int send_signal(struct cli_session *session, const char *operand, const char *name,
                       const char *payload)
{
    struct answer answer = { .name = name };
    hf_error err = { 0 };
    int status = CLI_OK;
    hf_signal_spec spec = HF_SIGNAL_INIT;
    spec.id = args.id;
    spec.type = args.type;
    spec.name = name;
    spec.payload = payload;
    spec.token = args.token;
    spec.expected_revision = args.revision;
    spec.delay = args.in;
    if (!cli_run_id(session, operand, &answer.run, &status))
        return status;
    if (hf_signal(session->client, answer.run, &spec, &answer.duplicate, &err) != HF_OK)
        return cli_run_fail(session, operand, &err);
    if (answer.duplicate)
        cli_notice(session, "a signal with this id had arrived before; nothing was changed");
    if (session->json)
        cli_record_json(stdout, answer_fields, &answer);
    return CLI_OK;
}

static int signal_run(struct cli_session *session, int count, char **operands)
{
    char *payload = NULL;
    hf_error err = { 0 };
    if (count > 2 && cli_input_json(&payload, "payload", operands[2], &err) != HF_OK)
        return cli_fail(session, &err);
    int status = send_signal(session, operands[0], operands[1], payload);
    free(payload);
    return status;
}

const struct cli_command cli_command_signal = {
    .name = "signal",
    .summary = "Send a signal to a run",
    .operands = "RUN NAME [PAYLOAD|@FILE|-]",
    .details = "Signals are kept in the run's mailbox and taken one by one, in the order in which "
               "they came. PAYLOAD is JSON, default null. RUN is an id, or WORKFLOW/KEY.",
    .examples = "holdfast signal order.v1/o-17 approval '{\"by\":\"kim\"}' --id approval-17",
    .min_operands = 2,
    .max_operands = 3,
    .options = options,
    .run = signal_run,
};
