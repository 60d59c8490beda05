/* holdfast trigger
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/field.h"
#include "cli/input.h"
#include "cli/outcome.h"
#include "cli/trigger.h"
#include "cli/workflow_name.h"
#include "client/check.h"

#include <stdlib.h>
#include <string.h>

static struct {
    const char *key, *flow_key, *debounce, *subject, *reference, *partition, *trace, *lines;
    int64_t priority, max_attempts, at, in, deadline, timeout, debounce_for, at_most;
    struct cli_texts tags;
    bool require_worker, full;
    struct cli_maybe wait;
} args;

static const struct cli_option options[] = {
    CLI_OPT(TEXT, 'k', "key", "KEY", "identity: the same key and input give the first run again",
            .value = &args.key),
    CLI_OPT(TEXT, 0, "flow-key", "KEY",
            "whose limits and share it counts against, such as a customer",
            .value = &args.flow_key),
    CLI_OPT(TEXT, 0, "debounce", "KEY",
            "as long as a run with this KEY has not begun, give it the input instead",
            .value = &args.debounce),
    CLI_OPT(DURATION, 0, "for", "DURATION", "with --debounce: start when no other came for so long",
            .value = &args.debounce_for),
    CLI_OPT(DURATION, 0, "at-most", "DURATION",
            "with --debounce: but no later than so long after the first", .value = &args.at_most),
    CLI_OPT(NUMBER, 'p', "priority", "N", "-1000 to 1000, higher is more urgent; default 0",
            .value = &args.priority, .min = -1000, .max = 1000),
    CLI_OPT(TIME, 0, "at", "TIME", "start no earlier than this time", .value = &args.at),
    CLI_OPT(DURATION, 0, "in", "DURATION", "start no earlier than so long from now",
            .value = &args.in),
    CLI_OPT(TIME, 0, "deadline", "TIME", "fail it if it has not ended by then",
            .value = &args.deadline),
    CLI_OPT(DURATION, 0, "timeout", "DURATION", "the same, counted from now",
            .value = &args.timeout, .min = -1),
    CLI_OPT(TEXTS, 't', "tag", "TAG", "a tag to find it by; may be repeated", .value = &args.tags),
    CLI_OPT(TEXT, 0, "subject", "TEXT", "what it is about", .value = &args.subject),
    CLI_OPT(TEXT, 0, "reference", "TEXT", "a business reference", .value = &args.reference),
    CLI_OPT(TEXT, 0, "partition", "TEXT", "your own shard key", .value = &args.partition),
    CLI_OPT(NUMBER, 0, "max-attempts", "N", "in place of the workflow's",
            .value = &args.max_attempts, .min = 1, .max = 1000000),
    CLI_OPT(SWITCH, 0, "require-worker", NULL, "refuse it when no live worker could run it",
            .value = &args.require_worker),
    CLI_OPT(TEXT, 0, "trace", "TRACEPARENT",
            "W3C trace context to carry through; default TRACEPARENT of the environment",
            .value = &args.trace),
    CLI_OPT(MAYBE_DURATION, 0, "wait", "DURATION",
            "wait until it ends, at most so long, and print its result", .value = &args.wait),
    CLI_OPT(TEXT, 0, "lines", "FILE", "one run per line of JSON in FILE (- for stdin)",
            .value = &args.lines),
    CLI_OPT(SWITCH, 0, "full", NULL,
            "with --lines: each line is an object {workflow, input, key, priority, ...}",
            .value = &args.full),
    CLI_OPTIONS_END,
};

/* Of the run whose program this is called from, or of whoever called the program. What is not well-formed there is not
 * the caller's fault. */
static const char *ambient_trace(void)
{
    const char *trace = getenv("TRACEPARENT");
    return trace && hf__trace_valid(trace) ? trace : NULL;
}

static hf_trigger_spec spec_from_options(const char *workflow)
{
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    spec.workflow = workflow;
    spec.key = args.key;
    spec.flow_key = args.flow_key;
    spec.debounce_key = args.debounce;
    spec.debounce_for = args.debounce_for;
    spec.debounce_at_most = args.at_most;
    spec.priority = (int)args.priority;
    spec.run_at = args.at;
    spec.delay = args.in;
    spec.timeout_at = args.deadline;
    spec.timeout = args.timeout;
    spec.max_attempts = (int)args.max_attempts;
    spec.subject = args.subject;
    spec.reference = args.reference;
    spec.tags = args.tags.items;
    spec.tag_count = args.tags.count;
    spec.partition = args.partition;
    spec.trace = args.trace ? args.trace : ambient_trace();
    spec.require_worker = args.require_worker;
    return spec;
}

static int trigger_fail(struct cli_session *session, const char *workflow, const hf_error *err)
{
    if (err->code == HF_UNKNOWN_WORKFLOW)
        return cli_unknown_workflow(session, workflow, err->code);
    return cli_fail(session, err);
}

struct answer {
    hf_id id;
    const char *workflow;
    bool existed;
    bool no_worker;
    bool debounced;
};

static const struct hf__field answer_fields[] = {
    { "id", HF__FIELD_ID, offsetof(struct answer, id) },
    { "workflow", HF__FIELD_TEXT, offsetof(struct answer, workflow) },
    { "existed", HF__FIELD_BOOL, offsetof(struct answer, existed) },
    { "no_worker", HF__FIELD_BOOL, offsetof(struct answer, no_worker) },
    { "debounced", HF__FIELD_BOOL, offsetof(struct answer, debounced) },
    { NULL, HF__FIELD_TEXT, 0 },
};

static void show_answer(struct cli_session *session, const char *workflow,
                        const hf_triggered *triggered)
{
    struct answer answer = { triggered->id, workflow, triggered->existed, triggered->no_worker,
                             triggered->debounced };
    char id[HF_ID_TEXT];
    hf_id_format(triggered->id, id);
    if (triggered->existed)
        cli_notice(session, "a run with this key and input was there already");
    if (triggered->debounced)
        cli_notice(session, "debounced: a run that has not begun has this input now");
    if (triggered->no_worker)
        cli_notice(session,
                   "warning: no live worker serves %s; it will wait for one (start it with "
                   "`holdfast worker --exec '%s=PROGRAM'`)",
                   workflow, workflow);
    if (!session->json && !args.wait.given) /* who waits is told then */
        cli_warn_paused(session, workflow);
    if (args.wait.given)
        cli_notice(session, "run %s", id);
    else if (session->json)
        cli_record_json(stdout, answer_fields, &answer);
    else
        puts(id);
}

static int trigger_one(struct cli_session *session, const char *workflow, const char *source)
{
    hf_trigger_spec spec = spec_from_options(workflow);
    hf_triggered triggered = { 0 };
    hf_error err = { 0 };
    char *input = NULL;
    int status = CLI_OK;
    if (source && cli_input_json(&input, "input", source, &err) != HF_OK)
        return cli_fail(session, &err);
    spec.input = input;
    if (!cli_open(session, &status))
        goto done;
    if (hf_trigger(session->client, &triggered, &spec, &err) != HF_OK) {
        status = trigger_fail(session, workflow, &err);
        goto done;
    }
    show_answer(session, workflow, &triggered);
    if (args.wait.given) {
        char id[HF_ID_TEXT];
        hf_id_format(triggered.id, id);
        status = cli_wait_for(session, id, triggered.id, args.wait.value);
    }
done:
    free(input);
    return status;
}

static const char *conflict_in_options(int count)
{
    if (args.at && args.in)
        return "--at and --in exclude each other";
    if (args.deadline && args.timeout)
        return "--deadline and --timeout exclude each other";
    if (!args.debounce && (args.debounce_for || args.at_most))
        return "--for and --at-most belong to --debounce";
    if (args.debounce && !args.debounce_for && !args.full)
        return "--debounce needs --for";
    if (args.full && !args.lines)
        return "--full belongs to --lines";
    if (args.lines && args.wait.given)
        return "--wait is for one run; with --lines, use `holdfast wait` after";
    if (args.lines && args.key)
        return "--key is for one run; with --lines, give keys by --full";
    if (args.lines && count > 1)
        return "with --lines the inputs come from the file; leave INPUT away";
    if (count == 0 && !(args.lines && args.full))
        return "which workflow? give its name";
    return NULL;
}

static int trigger(struct cli_session *session, int count, char **operands)
{
    const char *conflict = conflict_in_options(count);
    if (conflict)
        return cli_usage(session, "%s", conflict);
    const char *workflow = count > 0 ? operands[0] : NULL;
    if (!args.lines)
        return trigger_one(session, workflow, count > 1 ? operands[1] : NULL);
    hf_trigger_spec base = spec_from_options(workflow);
    return cli_trigger_lines(session, args.lines, args.full, &base);
}

const struct cli_command cli_command_trigger = {
    .name = "trigger",
    .summary = "Start a run of a workflow",
    .operands = "WORKFLOW [INPUT|@FILE|-]",
    .details =
        "Prints the run's id once it is stored for good. INPUT is JSON, default null; @FILE reads "
        "a "
        "file, - reads stdin; at most 1 MiB.\n"
        "With --lines every line is one input, or with --full one object with the members "
        "workflow, input, key, priority, at, in, deadline, timeout, tags, subject, reference, "
        "partition, max_attempts, trace, require_worker, flow_key, debounce, for, at_most. Options "
        "given beside --lines hold for "
        "every line that does not say otherwise. Lines are accepted or refused one by one; each "
        "refused one is named with its number on stderr.",
    .examples =
        "holdfast trigger billing.charge.v1 '{\"invoice\":42}' --key inv-42\n"
        "holdfast trigger report.daily @params.json --in 2h --tag night\n"
        "holdfast trigger billing.charge.v1 --lines invoices.jsonl\n"
        "holdfast trigger search.index.v1 '{\"page\":7}' --debounce page-7 --for 5s --at-most 1m\n"
        "holdfast trigger billing.charge.v1 '{\"invoice\":42}' --wait=5m",
    .max_operands = 2,
    .options = options,
    .migrates = true,
    .run = trigger,
};
