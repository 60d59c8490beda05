/* holdfast dead-letter list, show, requeue, discard
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/run_ref.h"
#include "cli/table.h"
#include "util/alloc.h"

#include <holdfast/dead_letter.h>

#include <stdlib.h>

enum { PAGE = 1000 }; /* the most that the library gives at once */

static struct {
    int64_t limit;
    bool all;
    const char *run, *reason, *cursor;
} args;

static const struct cli_option list_options[] = {
    CLI_OPT(TEXT, 0, "run", "RUN", "of this run only: its id, or WORKFLOW/KEY", .value = &args.run),
    CLI_OPT(TEXT, 0, "reason", "TEXT", "whose reason begins so, such as poison",
            .value = &args.reason),
    CLI_OPT(NUMBER, 'n', "limit", "N", "show at most so many; default 50", .value = &args.limit,
            .min = 1, .max = 1000000000),
    CLI_OPT(SWITCH, 'a', "all", NULL, "show all of them", .value = &args.all),
    CLI_OPT(TEXT, 0, "cursor", "CURSOR", "go on after the page that named it",
            .value = &args.cursor),
    CLI_OPTIONS_END,
};

static const struct cli_column columns[] = {
    { .header = "ID", .field = "id" },
    { .header = "RUN", .field = "run", .least = 36 },
    { .header = "CREATED", .field = "created_at" },
    { .header = "NODE", .field = "node", .shrinks = true, .least = 4 },
    { .header = "REASON", .field = "reason", .shrinks = true },
    { .header = NULL },
};

static const struct cli_column lines[] = {
    { .header = "id", .field = "id" },
    { .header = "run", .field = "run" },
    { .header = "reason", .field = "reason" },
    { .header = "envelope", .field = "envelope" },
    { .header = "node", .field = "node" },
    { .header = "created", .field = "created_at" },
    { .header = NULL },
};

/* ---- list ---- */

/* Shows one page; *cursor (owned) becomes that of the next one, or NULL. */
static bool show_page(struct cli_session *session, hf_dead_letter_filter *filter, char **cursor,
                      int64_t *shown, int *status)
{
    hf_dead_letters *page = NULL;
    hf_error err = { 0 };
    if (hf_dead_letter_list(session->client, &page, filter, &err) != HF_OK) {
        *status = cli_fail(session, &err);
        return false;
    }
    cli_table_print(session, columns, hf__dead_letter_fields, page->items, sizeof *page->items,
                    page->count, *shown == 0);
    *shown += (int64_t)page->count;
    free(*cursor);
    *cursor = page->next ? hf__strdup(page->next) : NULL;
    hf_dead_letters_free(page);
    return true;
}

static int64_t most_to_show(void)
{
    if (args.all)
        return INT64_MAX;
    return args.limit ? args.limit : 50;
}

static int list(struct cli_session *session, int count, char **operands)
{
    (void)count, (void)operands;
    int status = CLI_OK;
    hf_dead_letter_filter filter = HF_DEAD_LETTER_FILTER_INIT;
    if (!cli_open(session, &status))
        return status;
    if (args.run && !cli_run_id(session, args.run, &filter.run, &status))
        return status;
    filter.reason = args.reason;
    char *cursor = args.cursor ? hf__strdup(args.cursor) : NULL;
    int64_t most = most_to_show();
    int64_t shown = 0;
    do {
        filter.cursor = cursor;
        filter.limit = most - shown < PAGE ? (int)(most - shown) : PAGE;
    } while (show_page(session, &filter, &cursor, &shown, &status) && cursor && shown < most);
    if (status == CLI_OK && shown == 0)
        cli_notice(session, "no such dead letters in %s (tenant %s)", cli_store_name(session),
                   cli_tenant(session));
    if (status == CLI_OK && cursor)
        cli_notice(session, "there are more: add --all, or --cursor %s", cursor);
    free(cursor);
    return status;
}

/* ---- show, requeue, discard ---- */

static bool read_id(struct cli_session *session, const char *operand, hf_id *id, int *status)
{
    if (hf_id_parse(operand, id))
        return cli_open(session, status);
    *status = cli_usage(session,
                        "\"%.60s\" is not the id of a dead letter: see `holdfast "
                        "dead-letter list`",
                        operand);
    return false;
}

static int letter_fail(struct cli_session *session, const char *operand, const hf_error *err)
{
    if (err->code == HF_NOT_FOUND)
        return cli_failf(session, err->code,
                         "no dead letter %.40s in tenant %.60s; see `holdfast dead-letter list`",
                         operand, cli_tenant(session));
    return cli_fail(session, err);
}

static int show(struct cli_session *session, int count, char **operands)
{
    (void)count;
    int status = CLI_OK;
    hf_id id;
    hf_error err = { 0 };
    hf_dead_letter *letter = NULL;
    if (!read_id(session, operands[0], &id, &status))
        return status;
    if (hf_dead_letter_get(session->client, &letter, id, &err) != HF_OK)
        return letter_fail(session, operands[0], &err);
    cli_block_print(session, lines, hf__dead_letter_fields, letter);
    hf_dead_letter_free(letter);
    return CLI_OK;
}

/* All that are named, whatever becomes of the others; the first failure is the exit code. */
static int settle(struct cli_session *session, int count, char **operands,
                  hf_code (*act)(hf_client *, hf_id, hf_error *))
{
    int worst = CLI_OK;
    for (int i = 0; i < count; i++) {
        int status = CLI_OK;
        hf_id id;
        hf_error err = { 0 };
        if (read_id(session, operands[i], &id, &status) && act(session->client, id, &err) != HF_OK)
            status = letter_fail(session, operands[i], &err);
        if (worst == CLI_OK)
            worst = status;
    }
    return worst;
}

static int requeue(struct cli_session *session, int count, char **operands)
{
    return settle(session, count, operands, hf_dead_letter_requeue);
}

static int discard(struct cli_session *session, int count, char **operands)
{
    return settle(session, count, operands, hf_dead_letter_discard);
}

const struct cli_command cli_command_dead_letter_list = {
    .name = "dead-letter list",
    .summary = "List dead letters, newest first",
    .operands = "",
    .details = "A dead letter is mail on which its run failed again and again: it was taken out of "
               "the mailbox so that the run could go on without it.",
    .examples = "holdfast dead-letter list --run order.v1/17\n"
                "holdfast dead-letter list --all --json | jq -r .id",
    .options = list_options,
    .run = list,
};

const struct cli_command cli_command_dead_letter_show = {
    .name = "dead-letter show",
    .summary = "Show a dead letter with its envelope",
    .operands = "LETTER",
    .min_operands = 1,
    .max_operands = 1,
    .run = show,
};

const struct cli_command cli_command_dead_letter_requeue = {
    .name = "dead-letter requeue",
    .summary = "Put dead letters back into the mailboxes of their runs",
    .operands = "LETTER...",
    .details = "Refused while the run has finished, or does not wait for it; then the letter "
               "stays. The journal of the run says who did it.",
    .min_operands = 1,
    .max_operands = CLI_MANY,
    .run = requeue,
};

const struct cli_command cli_command_dead_letter_discard = {
    .name = "dead-letter discard",
    .summary = "Remove dead letters for good",
    .operands = "LETTER...",
    .details = "The journal of the run says who did it.",
    .min_operands = 1,
    .max_operands = CLI_MANY,
    .run = discard,
};
