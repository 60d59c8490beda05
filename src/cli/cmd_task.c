/* holdfast task list, show, claim, release, reassign, complete
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/run_ref.h"
#include "cli/table.h"
#include "record/field.h"

#include <holdfast/task.h>

#include <stdlib.h>

/* ---- list ---- */

static struct {
    const char *status, *assignee, *role, *run, *name, *cursor;
    bool overdue, by_due;
    int64_t limit;
} args = { .limit = 50 };

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
    CLI_OPT(NUMBER, 'n', "limit", "N", "how many; default 50, at most 1000", .value = &args.limit,
            .min = 1, .max = 1000),
    CLI_OPT(TEXT, 0, "cursor", "CURSOR", "go on where the last page ended", .value = &args.cursor),
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
    hf_error err = { 0 };
    hf_task_page *page = NULL;
    hf_task_filter filter = HF_TASK_FILTER_INIT;
    filter.status = args.status;
    filter.assignee = args.assignee;
    filter.role = args.role;
    filter.name = args.name;
    filter.overdue = args.overdue;
    filter.by_due = args.by_due;
    filter.limit = (int)args.limit;
    filter.cursor = args.cursor;
    if (!cli_open(session, &status) ||
        (args.run && !cli_run_id(session, args.run, &filter.run, &status)))
        return status;
    if (hf_task_list(session->client, &page, &filter, &err) != HF_OK)
        return cli_fail(session, &err);
    cli_table_print(session, columns, hf__task_fields, page->items, sizeof *page->items,
                    page->count, true);
    if (page->count == 0)
        cli_notice(session, "no such tasks in %s (tenant %s)", cli_store_name(session),
                   cli_tenant(session));
    if (page->next)
        cli_notice(session, "more: --cursor %s", page->next);
    hf_task_page_free(page);
    return CLI_OK;
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
    const char *assignee;
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

static bool read_id(struct cli_session *session, const char *operand, hf_id *id, int *status)
{
    if (hf_id_parse(operand, id))
        return cli_open(session, status);
    *status =
        cli_usage(session, "\"%.60s\" is not the id of a task: see `holdfast task list`", operand);
    return false;
}

static int task_fail(struct cli_session *session, const char *operand, const hf_error *err)
{
    if (err->code == HF_NOT_FOUND)
        return cli_failf(session, err->code,
                         "no task %.40s in tenant %.60s; see `holdfast task list`", operand,
                         cli_tenant(session));
    return cli_fail(session, err);
}

static int print(struct cli_session *session, const char *operand, hf_id id)
{
    hf_error err = { 0 };
    hf_task *task = NULL;
    if (hf_task_get(session->client, &task, id, &err) != HF_OK)
        return task_fail(session, operand, &err);
    cli_block_print(session, lines, hf__task_fields, task);
    hf_task_free(task);
    return CLI_OK;
}

static int show(struct cli_session *session, int count, char **operands)
{
    (void)count;
    int status = CLI_OK;
    hf_id id;
    return read_id(session, operands[0], &id, &status) ? print(session, operands[0], id) : status;
}

/* After a change: for machines, what the task is now. */
static int done(struct cli_session *session, const char *operand, hf_id id, hf_code code,
                const hf_error *err)
{
    if (code != HF_OK)
        return task_fail(session, operand, err);
    return session->json ? print(session, operand, id) : CLI_OK;
}

static int claim(struct cli_session *session, int count, char **operands)
{
    (void)count;
    int status = CLI_OK;
    hf_id id;
    hf_error err = { 0 };
    if (!read_id(session, operands[0], &id, &status))
        return status;
    hf_code code = hf_task_claim(session->client, id, change_args.version, &err);
    return done(session, operands[0], id, code, &err);
}

static int release(struct cli_session *session, int count, char **operands)
{
    (void)count;
    int status = CLI_OK;
    hf_id id;
    hf_error err = { 0 };
    if (!read_id(session, operands[0], &id, &status))
        return status;
    hf_code code = hf_task_release(session->client, id, change_args.version, &err);
    return done(session, operands[0], id, code, &err);
}

static int reassign(struct cli_session *session, int count, char **operands)
{
    (void)count;
    int status = CLI_OK;
    hf_id id;
    hf_error err = { 0 };
    if (!read_id(session, operands[0], &id, &status))
        return status;
    hf_code code =
        hf_task_reassign(session->client, id, change_args.assignee, change_args.version, &err);
    return done(session, operands[0], id, code, &err);
}

static int complete(struct cli_session *session, int count, char **operands)
{
    int status = CLI_OK;
    hf_id id;
    hf_error err = { 0 };
    char *result = NULL;
    if (!read_id(session, operands[0], &id, &status))
        return status;
    if (count > 2 && cli_input_json(&result, "result", operands[2], &err) != HF_OK)
        return cli_fail(session, &err);
    hf_code code =
        hf_task_complete(session->client, id, operands[1], result, change_args.version, &err);
    free(result);
    return done(session, operands[0], id, code, &err);
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
