/* holdfast workers
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/table.h"
#include "util/alloc.h"

#include <stdio.h>

static bool live_only;

static const struct cli_option options[] = {
    CLI_OPT(SWITCH, 0, "live", NULL, "only those that are heard of", .value = &live_only),
    CLI_OPTIONS_END,
};

static char *state_text(struct cli_session *session, const void *record)
{
    (void)session;
    const hf_worker_info *worker = record;
    if (!worker->live)
        return hf__strdup("dead");
    if (worker->stuck == 0)
        return hf__strdup(worker->draining ? "draining" : "live");
    char text[60];
    snprintf(text, sizeof text, "%s, %d stuck", worker->draining ? "draining" : "live",
             worker->stuck);
    return hf__strdup(text);
}

static const struct cli_column columns[] = {
    { .header = "NAME", .field = "name", .shrinks = true },
    { .header = "STATUS", .make = state_text },
    { .header = "RUNNING", .field = "running", .right = true },
    { .header = "THREADS", .field = "threads", .right = true },
    { .header = "SEEN", .field = "seen_at" },
    { .header = "SERVES", .field = "serves", .shrinks = true },
    { .header = "STARTED", .field = "started_at" },
    { .header = "HOST", .field = "host", .shrinks = true },
    { .header = "PID", .field = "pid", .right = true },
    { .header = "VERSION", .field = "program" },
    { .header = NULL },
};

/* Moves the live ones to the front; returns how many there are. */
static size_t keep_live(hf_worker_list *workers)
{
    size_t kept = 0;
    for (size_t i = 0; i < workers->count; i++)
        if (workers->items[i].live)
            workers->items[kept++] = workers->items[i];
    return kept;
}

static int list(struct cli_session *session, int count, char **operands)
{
    (void)count, (void)operands;
    int status = CLI_OK;
    hf_error err = { 0 };
    hf_worker_list *workers = NULL;
    if (!cli_open(session, &status))
        return status;
    if (hf_workers(session->client, &workers, &err) != HF_OK)
        return cli_fail(session, &err);
    size_t shown = live_only ? keep_live(workers) : workers->count;
    cli_table_print(session, columns, hf__worker_fields, workers->items, sizeof *workers->items,
                    shown, true);
    if (shown == 0)
        cli_notice(session, "no workers in %s; start one with `holdfast worker --exec`",
                   cli_store_name(session));
    hf_worker_list_free(workers);
    return CLI_OK;
}

const struct cli_command cli_command_workers = {
    .name = "workers",
    .summary = "List workers and what they serve",
    .operands = "",
    .details = "A worker is dead when its heartbeat is overdue; the runs that it held go to others "
               "when their leases end. One that is stuck has threads whose runs are gone and that "
               "do not come back.",
    .options = options,
    .run = list,
};
