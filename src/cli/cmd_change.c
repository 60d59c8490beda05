/* holdfast cancel, pause, resume, retry, delete, restore: one by one, or all that match a filter
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/field.h"
#include "cli/filter.h"
#include "cli/inside.h"
#include "cli/run_ref.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "record/step_lines.h"

#include <inttypes.h>
#include <string.h>

enum { FIRST_SHOWN = 10 };

static struct {
    const char *reason;
    int64_t revision, limit;
    unsigned limited;
    bool all, yes, dry_run;
} args;

#define CHANGE_OPTIONS                                                                             \
    CLI_OPT(TEXT, 'r', "reason", "TEXT", "why; kept in the journal", .value = &args.reason),       \
        CLI_OPT(NUMBER, 0, "revision", "N", "refuse if the run's revision is another",             \
                .value = &args.revision, .min = 1, .max = INT64_MAX),                              \
        CLI_OPTIONS_OF(cli_filter_options),                                                        \
        CLI_OPT(SWITCH, 0, "all", NULL, "every run of the tenant", .value = &args.all),            \
        CLI_OPT(SWITCH, 'n', "dry-run", NULL,                                                      \
                "change nothing: count the runs that match and show the first",                    \
                .value = &args.dry_run),                                                           \
        CLI_OPT(SWITCH, 'y', "yes", NULL, "do not ask before changing many", .value = &args.yes)

static const struct cli_option options[] = { CHANGE_OPTIONS, CLI_OPTIONS_END };

static const struct cli_option pause_options[] = {
    CHANGE_OPTIONS,
    CLI_OPT(DURATION, 0, "for", "DURATION",
            "inside a durable program: go on after so long if nobody resumed it",
            .value = &args.limit, .min = -1, .mask = &args.limited, .bit = 1),
    CLI_OPTIONS_END,
};

static hf_change change_from_options(void)
{
    hf_change change = HF_CHANGE_INIT;
    change.reason = args.reason;
    change.expected_revision = args.revision;
    return change;
}

struct changed {
    hf_id id;
    const char *action;
};

static const struct hf__field changed_fields[] = {
    { "id", HF__FIELD_ID, offsetof(struct changed, id) },
    { "action", HF__FIELD_TEXT, offsetof(struct changed, action) },
    { NULL, HF__FIELD_TEXT, 0 },
};

/* ---- What a retry will do ---- */

/* It is told again by each pass, and nothing waits for it. */
static bool is_only_told(const struct hf__step_line *step)
{
    return step->op && (strcmp(step->op, "progress") == 0 || strcmp(step->op, "published") == 0);
}

static bool has_failed(const struct hf__step_line *step)
{
    return step->status && strcmp(step->status, "failed") == 0;
}

/* The call that the run remembers last, and the last of those that failed; NULL: none. */
static void find_last(const struct hf__step_lines *steps, const struct hf__step_line **last,
                      const struct hf__step_line **failed)
{
    *last = *failed = NULL;
    for (size_t i = 0; i < steps->count; i++) {
        const struct hf__step_line *step = &steps->items[i];
        if (is_only_told(step))
            continue;
        if (!*last || step->seq > (*last)->seq)
            *last = step;
        if (has_failed(step) && (!*failed || step->seq > (*failed)->seq))
            *failed = step;
    }
}

static void tell_retry(struct cli_session *session, const char *operand,
                       const struct hf__step_lines *steps)
{
    const struct hf__step_line *last, *failed;
    find_last(steps, &last, &failed);
    if (!last)
        return;
    if (failed == last && last->op && strcmp(last->op, "step") == 0)
        cli_notice(session, "the step \"%s\" will be tried again, those before it will not",
                   last->name);
    else if (failed)
        cli_notice(session,
                   "the handler will be called again, and meets the failure of \"%s\" that the run "
                   "remembers; to have it done again: holdfast fork %s --from %s",
                   failed->name, operand, failed->name);
    else
        cli_notice(session,
                   "the handler will be called again; what it has done is remembered, up to \"%s\"",
                   last->name);
}

/* ---- One by one ---- */

static int change_one(struct cli_session *session, hf_action action, const char *operand)
{
    hf_id id;
    hf_error err = { 0 };
    int64_t seq = 0;
    int status = CLI_OK;
    struct hf__step_lines steps = HF__STEP_LINES_INIT;
    hf_change change = change_from_options();
    if (!cli_run_id(session, operand, &id, &status))
        return status;
    bool tells = action == HF_RETRY_RUN && !session->quiet &&
                 hf__step_lines_read(session->client, &steps, id, &seq, &err) == HF_OK;
    hf_code code = hf_change_run(session->client, id, action, &change, &err);
    if (code == HF_OK && tells && !steps.failed)
        tell_retry(session, operand, &steps);
    hf__step_lines_free(&steps);
    if (code != HF_OK)
        return cli_run_fail(session, operand, &err);
    if (session->json) {
        struct changed changed = { id, session->command->name };
        cli_record_json(stdout, changed_fields, &changed);
    }
    return CLI_OK;
}

static int change_each(struct cli_session *session, hf_action action, int count, char **operands)
{
    int first_failure = CLI_OK;
    for (int i = 0; i < count; i++) {
        int status = change_one(session, action, operands[i]);
        if (first_failure == CLI_OK)
            first_failure = status;
    }
    return first_failure;
}

struct bulk_answer {
    const char *action;
    bool dry_run;
    hf_bulk_result result;
};

static const struct hf__field bulk_fields[] = {
    { "action", HF__FIELD_TEXT, offsetof(struct bulk_answer, action) },
    { "dry_run", HF__FIELD_BOOL, offsetof(struct bulk_answer, dry_run) },
    { "matched", HF__FIELD_INT64, offsetof(struct bulk_answer, result.matched) },
    { "changed", HF__FIELD_INT64, offsetof(struct bulk_answer, result.changed) },
    { "refused", HF__FIELD_INT64, offsetof(struct bulk_answer, result.refused) },
    { NULL, HF__FIELD_TEXT, 0 },
};

static void show_bulk(const struct cli_session *session, const hf_bulk_result *result)
{
    struct bulk_answer answer = { session->command->name, args.dry_run, *result };
    if (session->json)
        cli_record_json(stdout, bulk_fields, &answer);
    else if (session->quiet)
        return;
    else if (args.dry_run)
        printf("%" PRId64 " matched; nothing was changed\n", result->matched);
    else
        printf("%" PRId64 " matched, %" PRId64 " changed, %" PRId64
               " refused since their status does not allow it\n",
               result->matched, result->changed, result->refused);
}

/* Some of those that would be changed, so that a wrong filter is seen. */
static int show_first(struct cli_session *session, const hf_filter *filter)
{
    hf_runs *runs = NULL;
    hf_error err = { 0 };
    hf_filter few = *filter;
    few.limit = FIRST_SHOWN;
    if (session->json || session->quiet)
        return CLI_OK;
    if (hf_list(session->client, &runs, &few, &err) != HF_OK)
        return cli_fail(session, &err);
    cli_table_print(session, cli_run_columns, hf__run_fields, runs->items, sizeof *runs->items,
                    runs->count, true);
    if (runs->next)
        puts("...");
    hf_runs_free(runs);
    return CLI_OK;
}

struct bar {
    const struct cli_session *session;
    int64_t total;
};

static bool show_progress(const hf_bulk_result *so_far, void *arg)
{
    const struct bar *bar = arg;
    cli_progress_show(bar->session, bar->session->command->name, so_far->changed + so_far->refused,
                      bar->total);
    return true;
}

/* Counts what matches and asks whether to go on; *total is the count. */
static bool is_confirmed(struct cli_session *session, const hf_filter *filter, hf_action action,
                         int64_t *total, int *status)
{
    hf_bulk_result counted = { 0 };
    hf_error err = { 0 };
    if (hf_bulk(session->client, &counted, filter, action, NULL, true, NULL, NULL, &err) != HF_OK) {
        *status = cli_fail(session, &err);
        return false;
    }
    *total = counted.matched;
    if (args.yes)
        return true;
    char question[100];
    snprintf(question, sizeof question, "%s %" PRId64 " runs?", session->command->name,
             counted.matched);
    *status = CLI_FAILED;
    if (cli_ask(question))
        return true;
    cli_notice(session, "nothing was changed");
    return false;
}

static int change_matching(struct cli_session *session, hf_action action)
{
    int status = CLI_OK;
    hf_error err = { 0 };
    hf_bulk_result result = { 0 };
    hf_change change = change_from_options();
    struct bar bar = { session, 0 };
    if (!cli_open(session, &status))
        return status;
    hf_filter filter = cli_filter(session);
    if (action == HF_RESTORE)
        filter.deleted = true;
    if (args.dry_run && (status = show_first(session, &filter)) != CLI_OK)
        return status;
    if (!args.dry_run && !is_confirmed(session, &filter, action, &bar.total, &status))
        return status;
    hf_code code = hf_bulk(session->client, &result, &filter, action, &change, args.dry_run,
                           show_progress, &bar, &err);
    cli_progress_end(session);
    if (code == HF_OK || result.changed > 0)
        show_bulk(session, &result);
    return code == HF_OK ? CLI_OK : cli_fail(session, &err);
}

static int change_runs(struct cli_session *session, hf_action action, int count, char **operands)
{
    bool bulk = cli_filter_given() || args.all;
    if (bulk && count > 0)
        return cli_usage(session, "name runs, or choose them by options; not both");
    if (!bulk && count == 0)
        return cli_usage(session, "which runs? name them, choose them by options, or say --all");
    if (bulk && args.revision)
        return cli_usage(session, "--revision is for a run that is named");
    if (!bulk && args.dry_run)
        return cli_usage(session, "--dry-run is for runs that are chosen by options");
    if (!bulk)
        return change_each(session, action, count, operands);
    if (!args.yes && !args.dry_run && !cli_can_ask())
        return cli_usage(session, "this would change many runs: add --yes, or --dry-run to count");
    return change_matching(session, action);
}

#define BULK_DETAILS                                                                               \
    "\nRUN is an id, or WORKFLOW/KEY. Instead of naming runs, choose them by the options that "    \
    "`list` has: all that match are changed, after a question or with --yes; --dry-run counts "    \
    "them and shows the first."

#define CHANGE_FUNCTION(function, action_)                                                         \
    static int function(struct cli_session *session, int count, char **operands)                   \
    {                                                                                              \
        return change_runs(session, action_, count, operands);                                     \
    }

#define CHANGE_COMMAND(function, text, action_, summary_, details_, examples_)                     \
    CHANGE_FUNCTION(function, action_)                                                             \
    const struct cli_command cli_command_##function = {                                            \
        .name = text,                                                                              \
        .summary = summary_,                                                                       \
        .operands = "[RUN...]",                                                                    \
        .details = details_ BULK_DETAILS,                                                          \
        .examples = examples_,                                                                     \
        .max_operands = CLI_MANY,                                                                  \
        .options = options,                                                                        \
        .run = function,                                                                           \
    }

CHANGE_COMMAND(cancel, "cancel", HF_CANCEL, "Cancel runs that have not ended, and their children",
               "A worker that holds the run finds out about a second later and stops (a remote one "
               "with its next heartbeat, at most 10 s later); what it would still commit is "
               "refused.",
               "holdfast cancel billing.charge.v1/inv-42 --reason 'order withdrawn'\n"
               "holdfast cancel --status pending --prefix billing. --yes");

static int pause_runs(struct cli_session *session, int count, char **operands)
{
    if (count == 1 && cli_means_inside(operands[0]))
        return cli_pause_here(session, operands[0], args.limit);
    if (args.limited)
        return cli_usage(session, "--for is for a durable program that pauses itself");
    return change_runs(session, HF_PAUSE, count, operands);
}

const struct cli_command cli_command_pause = {
    .name = "pause",
    .summary = "Pause runs until they are resumed",
    .operands = "[RUN...]",
    .details =
        "A pending or waiting run pauses at once, one that a worker holds at its next "
        "commit." BULK_DETAILS
        "\nInside a durable program (see `holdfast help step`) a single word that is neither an id "
        "nor WORKFLOW/KEY is a name: the program pauses its own run there, until a person "
        "resumes it or --for has passed. NAME is what the pause is remembered by.",
    .examples = "holdfast pause --workflow billing.charge.v1 --yes\n"
                "holdfast pause check-the-list --for 7d",
    .max_operands = CLI_MANY,
    .options = pause_options,
    .run = pause_runs,
};

CHANGE_COMMAND(resume, "resume", HF_RESUME, "Let paused runs go on", "They go on where they were.",
               "holdfast resume --status paused --prefix billing. --yes");
CHANGE_COMMAND(
    retry, "retry", HF_RETRY_RUN, "Try failed or cancelled runs again",
    "They are pending again, with all their attempts. The step on which a run gave up "
    "is tried again, those before it are not. Where it gave up behind a failed step that the "
    "handler went on from, it meets that failure again: fork the run from that step. Of a "
    "run that is named it is said which of these it will be.",
    "holdfast retry --status failed --created-after 1d --yes");
CHANGE_COMMAND(delete, "delete", HF_DELETE, "Delete runs softly, so that purge removes them later",
               "A deleted run is hidden from lists and never starts again; its key is free. "
               "`restore` brings it back until it is purged.",
               "holdfast delete billing.charge.v1/inv-42 --reason duplicate");
CHANGE_COMMAND(restore, "restore", HF_RESTORE, "Bring deleted runs back",
               "Deleted runs have lost their keys: name them by their ids, from `holdfast list "
               "--deleted`.",
               "holdfast restore 0199a1b2-0000-7000-8000-000000000000");
