/* holdfast task list, show, claim, release, reassign, complete
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/noun.h"
#include "cli/pages.h"
#include "cli/run_ref.h"

#include <holdfast/task.h>

#include <stdlib.h>

/* ---- list ---- */

static struct {
    const char *status, *assignee, *role, *run, *name;
    bool overdue, by_due;
} args;

static const struct cli_option list_options[] = {
    CLI_OPT(TEXT, 0, "status", "STATUS",
            "open, claimed, completed, cancelled, with commas between, or all; default "
            "open,claimed",
            .value = &args.status),
    CLI_OPT(TEXT, 0, "assignee", "NAME", "that this person has", .value = &args.assignee),
    CLI_OPT(TEXT, 0, "role", "ROLE", "for this role", .value = &args.role),
    CLI_OPT(TEXT, 0, "run", "RUN", "of this run", .value = &args.run),
    CLI_OPT(TEXT, 0, "name", "NAME", "of this name", .value = &args.name),
    CLI_OPT(SWITCH, 0, "overdue", NULL, "only those past their due time", .value = &args.overdue),
    CLI_OPT(SWITCH, 0, "by-due", NULL, "by due time instead of newest first",
            .value = &args.by_due),
    CLI_OPTIONS_OF(cli_pages_options),
    CLI_OPTIONS_END,
};

static const struct cli_column columns[] = {
    { .header = "ID", .field = "id" },
    { .header = "NAME", .field = "name", .shrinks = true },
    { .header = "STATUS", .field = "status" },
    { .header = "ASSIGNEE", .field = "assignee", .shrinks = true },
    { .header = "ROLES", .field = "roles", .shrinks = true },
    { .header = "WORKFLOW", .field = "workflow", .shrinks = true },
    { .header = "DUE", .field = "due_at" },
    { .header = "CREATED", .field = "created_at" },
    { .header = NULL },
};

static int list(struct cli_session *session, int count, char **operands)
{
    (void)count, (void)operands;
    int status = CLI_OK;
    hf_task_filter filter = HF_TASK_FILTER_INIT;
    filter.status = args.status;
    filter.assignee = args.assignee;
    filter.role = args.role;
    filter.name = args.name;
    filter.overdue = args.overdue;
    filter.by_due = args.by_due;
    if (!cli_open(session, &status) ||
        (args.run && !cli_run_id(session, args.run, &filter.run, &status)))
        return status;
    struct cli_pages pages = cli_pages_begin(session);
    while (cli_pages_next(&pages)) {
        hf_task_page *page = NULL;
        hf_error err = { 0 };
        filter.cursor = pages.cursor;
        filter.limit = pages.limit;
        if (hf_task_list(session->client, &page, &filter, &err) == HF_OK)
            cli_pages_show(&pages, columns, hf__task_fields, page->items, sizeof *page->items,
                           page->count, page->next);
        else
            cli_pages_fail(&pages, &err);
        hf_task_page_free(page);
    }
    return cli_pages_end(&pages, "no such tasks in");
}

/* ---- One task ---- */

static const struct cli_column lines[] = {
    { .header = "id", .field = "id" },
    { .header = "name", .field = "name" },
    { .header = "status", .field = "status" },
    { .header = "assignee", .field = "assignee" },
    { .header = "roles", .field = "roles" },
    { .header = "due", .field = "due_at" },
    { .header = "payload", .field = "payload" },
    { .header = "form", .field = "form" },
    { .header = "outcome", .field = "outcome" },
    { .header = "result", .field = "result" },
    { .header = "workflow", .field = "workflow" },
    { .header = "run", .field = "run" },
    { .header = "version", .field = "version" },
    { .header = "created", .field = "created_at" },
    { .header = "updated", .field = "updated_at" },
    { .header = "completed", .field = "completed_at" },
    { .header = NULL },
};

static struct {
    int64_t version;
    const char *assignee, *outcome;
    char *result; /* owned */
} change_args;

#define VERSION_OPTION                                                                             \
    CLI_OPT(NUMBER, 0, "version-is", "N", "refuse if the task's version is another",               \
            .value = &change_args.version, .min = 1, .max = INT64_MAX)

static const struct cli_option change_options[] = {
    VERSION_OPTION,
    CLI_OPTIONS_END,
};

static const struct cli_option reassign_options[] = {
    CLI_OPT(TEXT, 0, "to", "NAME", "who has it from now on; default nobody",
            .value = &change_args.assignee),
    VERSION_OPTION,
    CLI_OPTIONS_END,
};

static int print(struct cli_session *session, const char *operand);

static const struct cli_noun noun = { "task", "task", print };

static int print(struct cli_session *session, const char *operand)
{
    int status = CLI_OK;
    hf_id id;
    hf_error err = { 0 };
    hf_task *task = NULL;
    if (!cli_noun_id(session, &noun, operand, &id, &status))
        return status;
    if (hf_task_get(session->client, &task, id, &err) != HF_OK)
        return cli_noun_fail(session, &noun, operand, &err);
    cli_block_print(session, lines, hf__task_fields, task);
    hf_task_free(task);
    return CLI_OK;
}

static int show(struct cli_session *session, int count, char **operands)
{
    (void)count;
    return print(session, operands[0]);
}

static int change(struct cli_session *session, const char *operand,
                  hf_code (*function)(hf_client *client, hf_id id, int64_t version, hf_error *err))
{
    int status = CLI_OK;
    hf_id id;
    hf_error err = { 0 };
    if (!cli_noun_id(session, &noun, operand, &id, &status))
        return status;
    hf_code code = function(session->client, id, change_args.version, &err);
    return cli_noun_changed(session, &noun, operand, code, &err);
}

static int claim(struct cli_session *session, int count, char **operands)
{
    (void)count;
    return change(session, operands[0], hf_task_claim);
}

static int release(struct cli_session *session, int count, char **operands)
{
    (void)count;
    return change(session, operands[0], hf_task_release);
}

static hf_code give_to_assignee(hf_client *client, hf_id id, int64_t version, hf_error *err)
{
    return hf_task_reassign(client, id, change_args.assignee, version, err);
}

static int reassign(struct cli_session *session, int count, char **operands)
{
    (void)count;
    return change(session, operands[0], give_to_assignee);
}

static hf_code give_answer(hf_client *client, hf_id id, int64_t version, hf_error *err)
{
    return hf_task_complete(client, id, change_args.outcome, change_args.result, version, err);
}

static int complete(struct cli_session *session, int count, char **operands)
{
    hf_error err = { 0 };
    if (count > 2 && cli_input_json(&change_args.result, "result", operands[2], &err) != HF_OK)
        return cli_fail(session, &err);
    change_args.outcome = operands[1];
    int status = change(session, operands[0], give_answer);
    free(change_args.result);
    return status;
}

const struct cli_command cli_command_task_list = {
    .name = "task list",
    .summary = "List questions to people, newest first",
    .operands = "",
    .details = "A task is a question that a run puts to people; the run goes on with the answer.",
    .examples = "holdfast task list --assignee kim --by-due\n"
                "holdfast task list --role boss --overdue --json",
    .options = list_options,
    .run = list,
};

const struct cli_command cli_command_task_show = {
    .name = "task show",
    .summary = "Show a task",
    .operands = "TASK",
    .min_operands = 1,
    .max_operands = 1,
    .run = show,
};

const struct cli_command cli_command_task_claim = {
    .name = "task claim",
    .summary = "Take a task",
    .operands = "TASK",
    .details = "Who takes it is the --actor. Nobody else can do anything with it then, until it "
               "is released or reassigned.",
    .examples = "holdfast --actor kim task claim 019a8f04-5c3b-7e21-9d40-52a7c1b0f3e6",
    .min_operands = 1,
    .max_operands = 1,
    .options = change_options,
    .run = claim,
};

const struct cli_command cli_command_task_release = {
    .name = "task release",
    .summary = "Give a task back to everybody",
    .operands = "TASK",
    .min_operands = 1,
    .max_operands = 1,
    .options = change_options,
    .run = release,
};

const struct cli_command cli_command_task_reassign = {
    .name = "task reassign",
    .summary = "Give a task to somebody else, whoever has it",
    .operands = "TASK",
    .examples = "holdfast task reassign 019a8f04-5c3b-7e21-9d40-52a7c1b0f3e6 --to kim",
    .min_operands = 1,
    .max_operands = 1,
    .options = reassign_options,
    .run = reassign,
};

const struct cli_command cli_command_task_complete = {
    .name = "task complete",
    .summary = "Answer a task",
    .operands = "TASK OUTCOME [RESULT|@FILE|-]",
    .details =
        "OUTCOME is the answer in a word, RESULT what else there is to say, as JSON; default "
        "null. The run that asked goes on with it. The same answer by the same --actor once "
        "more changes nothing.",
    .examples = "holdfast --actor kim task complete 019a8f04-5c3b-7e21-9d40-52a7c1b0f3e6 approved "
                "'{\"note\":\"fine\"}'",
    .min_operands = 2,
    .max_operands = 3,
    .options = change_options,
    .run = complete,
};
