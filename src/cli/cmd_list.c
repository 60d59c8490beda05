/* holdfast list
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/filter.h"
#include "cli/pages.h"
#include "client/read.h"

static const struct cli_option options[] = {
    CLI_OPTIONS_OF(cli_filter_options),
    CLI_OPTIONS_OF(cli_pages_options),
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

static int list(struct cli_session *session, int count, char **operands)
{
    (void)count, (void)operands;
    int status = CLI_OK;
    if (!cli_open(session, &status))
        return status;
    hf_filter filter = cli_filter(session);
    struct cli_pages pages = cli_pages_begin(session);
    while (cli_pages_next(&pages)) {
        hf_runs *runs = NULL;
        hf_error err = { 0 };
        filter.cursor = pages.cursor;
        filter.limit = pages.limit;
        if (hf__list(session->client, &runs, &filter, !session->json, &err) == HF_OK)
            cli_pages_show(&pages, cli_run_columns, hf__run_fields, runs->items,
                           sizeof *runs->items, runs->count, runs->next);
        else
            cli_pages_fail(&pages, &err);
        hf_runs_free(runs);
    }
    return cli_pages_end(&pages, "no such runs in");
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
