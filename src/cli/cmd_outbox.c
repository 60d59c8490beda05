/* holdfast outbox list
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/pages.h"

#include <holdfast/outbox.h>

static struct {
    bool undelivered;
    const char *type;
    hf_id run;
} args;

static const struct cli_option options[] = {
    CLI_OPT(SWITCH, 0, "undelivered", NULL, "only what some subscription has not got yet",
            .value = &args.undelivered),
    CLI_OPT(TEXT, 0, "type", "TYPE", "a type, or a prefix with a star as in 'order.*'",
            .value = &args.type),
    CLI_OPT(ID, 0, "run", "RUN", "of this run", .value = &args.run),
    CLI_OPTIONS_OF(cli_pages_options),
    CLI_OPTIONS_END,
};

static const struct cli_column columns[] = {
    { .header = "ID", .field = "id" },
    { .header = "TYPE", .field = "type", .shrinks = true },
    { .header = "CREATED", .field = "created_at" },
    { .header = "PUBLISHED", .field = "published_at" },
    { .header = "PENDING", .field = "pending", .right = true },
    { .header = "ATTEMPTS", .field = "attempts", .right = true },
    { .header = "RUN", .field = "run" },
    { .header = "LAST ERROR", .field = "last_error", .shrinks = true },
    { .header = NULL },
};

static int list(struct cli_session *session, int count, char **operands)
{
    (void)count, (void)operands;
    int status = CLI_OK;
    hf_outbox_filter filter = HF_OUTBOX_FILTER_INIT;
    filter.undelivered = args.undelivered;
    filter.type = args.type;
    filter.run = args.run;
    if (!cli_open(session, &status))
        return status;
    struct cli_pages pages = cli_pages_begin(session);
    while (cli_pages_next(&pages)) {
        hf_outbox_page *page = NULL;
        hf_error err = { 0 };
        filter.cursor = pages.cursor;
        filter.limit = pages.limit;
        if (hf_outbox_list(session->client, &page, &filter, &err) == HF_OK)
            cli_pages_show(&pages, columns, hf__outbox_fields, page->items, sizeof *page->items,
                           page->count, page->next);
        else
            cli_pages_fail(&pages, &err);
        hf_outbox_page_free(page);
    }
    return cli_pages_end(&pages, "nothing in the outbox of");
}

const struct cli_command cli_command_outbox_list = {
    .name = "outbox list",
    .summary = "List events that runs put into the outbox, newest first",
    .operands = "",
    .details = "An event is published when every subscription that wants it has got it, or when "
               "none does.",
    .examples = "holdfast outbox list --undelivered\n"
                "holdfast outbox list --type 'order.*' --json",
    .options = options,
    .run = list,
};
