/* holdfast dead-letter list, show, requeue, discard
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/noun.h"
#include "cli/pages.h"
#include "cli/run_ref.h"

#include <holdfast/dead_letter.h>

static struct {
    const char *run, *reason;
} args;

static const struct cli_option list_options[] = {
    CLI_OPT(TEXT, 0, "run", "RUN", "of this run only: its id, or WORKFLOW/KEY", .value = &args.run),
    CLI_OPT(TEXT, 0, "reason", "TEXT", "whose reason begins so, such as poison",
            .value = &args.reason),
    CLI_OPTIONS_OF(cli_pages_options),
    CLI_OPTIONS_END,
};

static const struct cli_column columns[] = {
    { .header = "ID", .field = "id" },
    { .header = "CREATED", .field = "created_at" },
    { .header = "REASON", .field = "reason", .shrinks = true },
    { .header = "RUN", .field = "run", .least = 36 },
    { .header = "NODE", .field = "node", .shrinks = true, .least = 4 },
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
    struct cli_pages pages = cli_pages_begin(session);
    while (cli_pages_next(&pages)) {
        hf_dead_letters *page = NULL;
        hf_error err = { 0 };
        filter.cursor = pages.cursor;
        filter.limit = pages.limit;
        if (hf_dead_letter_list(session->client, &page, &filter, &err) == HF_OK)
            cli_pages_show(&pages, columns, hf__dead_letter_fields, page->items,
                           sizeof *page->items, page->count, page->next);
        else
            cli_pages_fail(&pages, &err);
        hf_dead_letters_free(page);
    }
    return cli_pages_end(&pages, "no such dead letters in");
}

/* ---- show, requeue, discard ---- */

static const struct cli_noun noun = { .term = "dead letter", .family = "dead-letter" };

static int show(struct cli_session *session, int count, char **operands)
{
    (void)count;
    int status = CLI_OK;
    hf_id id;
    hf_error err = { 0 };
    hf_dead_letter *letter = NULL;
    if (!cli_noun_id(session, &noun, operands[0], &id, &status))
        return status;
    if (hf_dead_letter_get(session->client, &letter, id, &err) != HF_OK)
        return cli_noun_fail(session, &noun, operands[0], &err);
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
        if (cli_noun_id(session, &noun, operands[i], &id, &status) &&
            act(session->client, id, &err) != HF_OK)
            status = cli_noun_fail(session, &noun, operands[i], &err);
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
