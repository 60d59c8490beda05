/* holdfast events
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/run_ref.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "util/buffer.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 500 };
#define LOOK_AGAIN HF_SECONDS(30) /* a run whose end was missed is noticed after so long */

static struct {
    bool follow;
    int64_t after;
} args;

static const struct cli_option options[] = {
    CLI_OPT(SWITCH, 'f', "follow", NULL, "go on as they happen, until the run has ended",
            .value = &args.follow),
    CLI_OPT(NUMBER, 0, "after", "SEQ", "only those after this number", .value = &args.after,
            .min = 0, .max = INT64_MAX),
    CLI_OPTIONS_END,
};

static char *name_text(struct cli_session *session, const void *record)
{
    (void)session;
    const hf_event *event = record;
    struct hf__buffer text = { 0 };
    hf__buffer_add_text(&text, event->name ? event->name : "");
    if (event->step && (!event->name || strcmp(event->step, event->name) != 0))
        hf__buffer_addf(&text, " (%s)", event->step);
    char *raw = hf__buffer_take(&text);
    char *clean = raw ? cli_clean_line(raw) : NULL;
    free(raw);
    return clean;
}

static const struct cli_column columns[] = {
    { .header = "SEQ", .field = "seq", .right = true, .least = 4 },
    { .header = "AT", .field = "at", .least = 8 },
    { .header = "KIND", .field = "kind", .least = 9 },
    { .header = "NAME", .make = name_text, .shrinks = true, .least = 12 },
    { .header = "ACTOR", .field = "actor", .shrinks = true, .least = 12 },
    { .header = "DATA", .field = "data", .shrinks = true },
    { .header = NULL },
};

/* Shows what there is after *seq and moves *seq. */
static void show(struct cli_session *session, hf_events *events, int64_t *seq)
{
    cli_table_print(session, columns, hf__event_fields, events->items, sizeof *events->items,
                    events->count, *seq == args.after);
    fflush(stdout);
    if (events->count > 0)
        *seq = events->items[events->count - 1].seq;
    session->now = 0;
}

static hf_code show_stored(struct cli_session *session, hf_id id, int64_t *seq, hf_error *err)
{
    size_t got;
    do {
        hf_events *events = NULL;
        hf_code code = hf_events_list(session->client, &events, id, *seq, PAGE, err);
        if (code != HF_OK)
            return code;
        got = events->count;
        show(session, events, seq);
        hf_events_free(events);
    } while (got == PAGE);
    return HF_OK;
}

static hf_code show_next(struct cli_session *session, hf_id id, int64_t *seq, hf_error *err)
{
    hf_events *events = NULL;
    hf_code code = hf_events_follow(session->client, &events, id, *seq, PAGE, LOOK_AGAIN, err);
    if (code == HF_OK)
        show(session, events, seq);
    hf_events_free(events);
    return code == HF_TIMEOUT ? HF_OK : code;
}

static hf_code is_finished(struct cli_session *session, hf_id id, bool *out, hf_error *err)
{
    hf_run *run = NULL;
    hf_code code = hf_get(session->client, &run, id, err);
    *out = code == HF_OK && hf_status_finished(run->status);
    hf_run_free(run);
    return code;
}

/* The end is looked for before the last reading, so that no line written in between is missed. */
static hf_code show_events(struct cli_session *session, hf_id id, hf_error *err)
{
    int64_t seq = args.after;
    bool finished = false;
    hf_code code = is_finished(session, id, &finished, err);
    while (args.follow && code == HF_OK && !finished) {
        code = show_next(session, id, &seq, err);
        if (code == HF_OK)
            code = is_finished(session, id, &finished, err);
    }
    return code == HF_OK ? show_stored(session, id, &seq, err) : code;
}

static int events(struct cli_session *session, int count, char **operands)
{
    (void)count;
    hf_id id;
    int status = CLI_OK;
    hf_error err = { 0 };
    if (!cli_run_id(session, operands[0], &id, &status))
        return status;
    if (show_events(session, id, &err) != HF_OK)
        return cli_run_fail(session, operands[0], &err);
    return CLI_OK;
}

const struct cli_command cli_command_events = {
    .name = "events",
    .summary = "Show the journal of a run",
    .operands = "RUN",
    .details = "Every change of a run is one line of its journal: what happened, who did it, when. "
               "RUN is an id, or WORKFLOW/KEY.",
    .examples = "holdfast events billing.charge.v1/inv-42 --follow",
    .min_operands = 1,
    .max_operands = 1,
    .options = options,
    .run = events,
};
