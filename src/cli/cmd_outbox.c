/* holdfast outbox list
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/table.h"
#include "record/field.h"

#include <holdfast/outbox.h>

static struct {
    bool undelivered;
    const char *type, *cursor;
    hf_id run;
    int64_t limit;
} args = { .limit = 50 };

static const struct cli_option options[] = {
    CLI_OPT(SWITCH, 0, "undelivered", NULL, "only what some subscription has not got yet",
            .value = &args.undelivered),
    CLI_OPT(TEXT, 0, "type", "TYPE", "a type, or a prefix with a star as in 'order.*'",
            .value = &args.type),
    CLI_OPT(ID, 0, "run", "RUN", "of this run", .value = &args.run),
    CLI_OPT(NUMBER, 'n', "limit", "N", "how many; default 50, at most 1000", .value = &args.limit,
            .min = 1, .max = 1000),
    CLI_OPT(TEXT, 0, "cursor", "CURSOR", "go on where the last page ended", .value = &args.cursor),
    CLI_OPTIONS_END,
};

static const struct cli_column columns[] = {
    { .header = "ID", .field = "id" },
    { .header = "TYPE", .field = "type", .shrinks = true },
    { .header = "RUN", .field = "run" },
    { .header = "CREATED", .field = "created_at" },
    { .header = "PUBLISHED", .field = "published_at" },
    { .header = "PENDING", .field = "pending", .right = true },
    { .header = "ATTEMPTS", .field = "attempts", .right = true },
    { .header = "LAST ERROR", .field = "last_error", .shrinks = true },
    { .header = NULL },
};

static int list(struct cli_session *session, int count, char **operands)
{
    (void)count, (void)operands;
    int status = CLI_OK;
    hf_error err = { 0 };
    hf_outbox_page *page = NULL;
    hf_outbox_filter filter = HF_OUTBOX_FILTER_INIT;
    filter.undelivered = args.undelivered;
    filter.type = args.type;
    filter.run = args.run;
    filter.limit = (int)args.limit;
    filter.cursor = args.cursor;
    if (!cli_open(session, &status))
        return status;
    if (hf_outbox_list(session->client, &page, &filter, &err) != HF_OK)
        return cli_fail(session, &err);
    cli_table_print(session, columns, hf__outbox_fields, page->items, sizeof *page->items,
                    page->count, true);
    if (page->count == 0)
        cli_notice(session, "nothing in the outbox of %s (tenant %s)", cli_store_name(session),
                   cli_tenant(session));
    if (page->next)
        cli_notice(session, "more: --cursor %s", page->next);
    hf_outbox_page_free(page);
    return CLI_OK;
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
