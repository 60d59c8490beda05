/* holdfast list
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/filter.h"
#include "cli/table.h"
#include "client/read.h"
#include "util/alloc.h"

#include <stdlib.h>

enum { PAGE = 1000 }; /* the most that the library gives at once */

static struct {
    int64_t limit;
    bool all;
    const char *cursor;
} args;

static const struct cli_option options[] = {
    CLI_OPTIONS_OF(cli_filter_options),
    CLI_OPT(NUMBER, 'n', "limit", "N", "show at most so many; default 50", .value = &args.limit,
            .min = 1, .max = 1000000000),
    CLI_OPT(SWITCH, 'a', "all", NULL, "show all of them", .value = &args.all),
    CLI_OPT(TEXT, 0, "cursor", "CURSOR", "go on after the page that named it",
            .value = &args.cursor),
    CLI_OPTIONS_END,
};

const struct cli_column cli_run_columns[] = {
    { .header = "ID", .field = "id" },
    { .header = "WORKFLOW", .field = "workflow", .shrinks = true, .least = 8 },
    { .header = "STATUS", .field = "status", .least = 9 },
    { .header = "TRY", .field = "attempt", .right = true },
    { .header = "CREATED", .field = "created_at" },
    { .header = "KEY", .field = "key", .shrinks = true },
    { .header = "STEP", .field = "current_step", .shrinks = true },
    { .header = "LAST ERROR", .field = "last_error", .shrinks = true },
    { .header = NULL },
};

/* Shows one page; *cursor (owned) becomes that of the next one, or NULL. */
static bool show_page(struct cli_session *session, hf_filter *filter, char **cursor, int64_t *shown,
                      int *status)
{
    hf_runs *runs = NULL;
    hf_error err = { 0 };
    if (hf__list(session->client, &runs, filter, !session->json, &err) != HF_OK) {
        *status = cli_fail(session, &err);
        return false;
    }
    cli_table_print(session, cli_run_columns, hf__run_fields, runs->items, sizeof *runs->items,
                    runs->count, *shown == 0);
    *shown += (int64_t)runs->count;
    free(*cursor);
    *cursor = runs->next ? hf__strdup(runs->next) : NULL;
    hf_runs_free(runs);
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
    if (!cli_open(session, &status))
        return status;
    hf_filter filter = cli_filter(session);
    char *cursor = args.cursor ? hf__strdup(args.cursor) : NULL;
    int64_t most = most_to_show();
    int64_t shown = 0;
    do {
        filter.cursor = cursor;
        filter.limit = most - shown < PAGE ? (int)(most - shown) : PAGE;
    } while (show_page(session, &filter, &cursor, &shown, &status) && cursor && shown < most);
    if (status == CLI_OK && shown == 0)
        cli_notice(session, "no such runs in %s (tenant %s)", cli_store_name(session),
                   cli_tenant(session));
    if (status == CLI_OK && cursor)
        cli_notice(session, "there are more: add --all, or --cursor %s", cursor);
    free(cursor);
    return status;
}

const struct cli_command cli_command_list = {
    .name = "list",
    .summary = "List runs, newest first",
    .operands = "",
    .details = "Without options: the newest 50 that are not deleted. Pages are stable while others "
               "write: what is made meanwhile does not move the next page.",
    .examples = "holdfast list --status failed --prefix billing. --created-after 1d\n"
                "holdfast list --all --json | jq -r 'select(.attempt > 1) | .id'",
    .options = options,
    .run = list,
};
