/* holdfast fork
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/field.h"
#include "cli/input.h"
#include "cli/run_ref.h"

#include <stdlib.h>

static struct {
    const char *from, *input, *key, *reason;
} args;

static const struct cli_option options[] = {
    CLI_OPT(TEXT, 0, "from", "STEP", "the step to go on from; default the beginning",
            .value = &args.from),
    CLI_OPT(TEXT, 0, "input", "JSON|@FILE|-", "another input", .value = &args.input),
    CLI_OPT(TEXT, 'k', "key", "KEY", "a key for the new run; the same fork twice is then one run",
            .value = &args.key),
    CLI_OPT(TEXT, 'r', "reason", "TEXT", "why; kept in the journal", .value = &args.reason),
    CLI_OPTIONS_END,
};

struct answer {
    hf_id id;
    hf_id forked_from;
    const char *step;
    bool existed;
    bool no_worker;
};

static const struct hf__field answer_fields[] = {
    { "id", HF__FIELD_ID, offsetof(struct answer, id) },
    { "forked_from", HF__FIELD_ID, offsetof(struct answer, forked_from) },
    { "step", HF__FIELD_TEXT, offsetof(struct answer, step) },
    { "existed", HF__FIELD_BOOL, offsetof(struct answer, existed) },
    { "no_worker", HF__FIELD_BOOL, offsetof(struct answer, no_worker) },
    { NULL, HF__FIELD_TEXT, 0 },
};

static void show_answer(struct cli_session *session, const struct answer *answer)
{
    if (answer->existed)
        cli_notice(session, "this fork was there already");
    else if (answer->no_worker)
        cli_notice(session, "warning: no live worker could run it; it waits for one");
    char id[HF_ID_TEXT];
    hf_id_format(answer->id, id);
    if (session->json)
        cli_record_json(stdout, answer_fields, answer);
    else
        printf("%s\n", id);
}

static int fork_run(struct cli_session *session, const char *operand, const char *input)
{
    hf_triggered forked;
    hf_error err = { 0 };
    int status = CLI_OK;
    struct answer answer = { .step = args.from };
    hf_fork_options chosen = HF_FORK_INIT;
    chosen.input = input;
    chosen.key = args.key;
    chosen.reason = args.reason;
    if (!cli_run_id(session, operand, &answer.forked_from, &status))
        return status;
    if (hf_fork(session->client, &forked, answer.forked_from, args.from, &chosen, &err) != HF_OK)
        return cli_run_fail(session, operand, &err);
    answer.id = forked.id;
    answer.existed = forked.existed;
    answer.no_worker = forked.no_worker;
    show_answer(session, &answer);
    return CLI_OK;
}

static int fork_command(struct cli_session *session, int count, char **operands)
{
    (void)count;
    char *input = NULL;
    hf_error err = { 0 };
    if (args.input && cli_input_json(&input, "input", args.input, &err) != HF_OK)
        return cli_fail(session, &err);
    int status = fork_run(session, operands[0], input);
    free(input);
    return status;
}

const struct cli_command cli_command_fork = {
    .name = "fork",
    .summary = "Start a new run like an old one, from a chosen step",
    .operands = "RUN",
    .details = "The new run has the workflow, input, subject, reference, tags, flow key and "
               "priority of the "
               "old one. It remembers the steps that the old one had finished before STEP, and "
               "does STEP and what follows itself. The old run stays as it is, ended or not. "
               "`holdfast steps` shows what there is to choose from. Prints the new id. RUN is an "
               "id, or WORKFLOW/KEY.",
    .examples = "holdfast fork order.v1/o-17 --from charge --reason 'card was replaced'\n"
                "holdfast fork order.v1/o-17 --input @mended.json --key o-17-again",
    .min_operands = 1,
    .max_operands = 1,
    .options = options,
    .run = fork_command,
};
