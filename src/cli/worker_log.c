/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/worker_log.h"

#include "cli/log.h"
#include "util/duration.h"

#include <inttypes.h>

/* By hf_worker_event_kind; the first name is for machines. */
static const struct event_name {
    const char *name;
    const char *text;
    bool about_run;
    bool trouble;
} event_names[] = {
    [HF_WORKER_STARTED] = { "started", "worker started", false, false },
    [HF_WORKER_RUN_STARTED] = { "run_started", "run started", true, false },
    [HF_WORKER_RUN_FINISHED] = { "run_finished", "run", true, false },
    [HF_WORKER_RUN_LOST] = { "run_lost", "run lost", true, true },
    [HF_WORKER_STORE_LOST] = { "store_lost", "store lost, trying again", false, true },
    [HF_WORKER_STORE_BACK] = { "store_back", "store is back", false, true },
    [HF_WORKER_DRAINING] = { "draining", "worker stops when its runs have ended", false, false },
    [HF_WORKER_STOPPED] = { "stopped", "worker stopped", false, false },
    [HF_WORKER_THREAD_LOST] = { "thread_lost",
                                "thread lost to a handler that does not come back:", true, true },
    [HF_WORKER_THREAD_BACK] = { "thread_back", "thread came back from", true, true },
};

static const struct event_name unknown_event = { "unknown", "unknown event", false, true };

static const struct event_name *name_of(hf_worker_event_kind kind)
{
    size_t index = (size_t)kind;
    bool known = index < sizeof event_names / sizeof event_names[0] && event_names[index].name;
    return known ? &event_names[index] : &unknown_event;
}

static void add_json(struct hf__buffer *line, const hf_worker_event *event,
                     const struct event_name *name)
{
    char id[HF_ID_TEXT];
    hf_id_format(event->run, id);
    if (name->about_run) {
        cli_log_member(line, "run", id);
        cli_log_member(line, "workflow", event->workflow);
        cli_log_member(line, "tenant", event->tenant);
        cli_log_member(line, "trace", event->trace);
        hf__buffer_addf(line, ",\"attempt\":%d", event->attempt);
    }
    if (event->kind == HF_WORKER_RUN_FINISHED) {
        cli_log_member(line, "status", hf_status_name(event->status));
        hf__buffer_addf(line, ",\"duration_us\":%" PRId64, event->duration);
    }
    cli_log_member(line, "message", event->message);
}

static void add_run_text(struct hf__buffer *line, const hf_worker_event *event)
{
    char id[HF_ID_TEXT];
    hf_id_format(event->run, id);
    if (event->kind == HF_WORKER_RUN_FINISHED)
        hf__buffer_addf(line, " %s", hf_status_name(event->status));
    hf__buffer_addf(line, " %s %s attempt %d", id, event->workflow ? event->workflow : "?",
                    event->attempt);
    if (event->kind == HF_WORKER_RUN_FINISHED) {
        char took[HF__DURATION_TEXT];
        hf__duration_format(event->duration, took);
        hf__buffer_addf(line, " in %s", took);
    }
}

static void add_text(struct hf__buffer *line, const hf_worker_event *event,
                     const struct event_name *name)
{
    hf__buffer_addf(line, " %s", name->text);
    if (name->about_run)
        add_run_text(line, event);
    if (event->message && *event->message) {
        hf__buffer_add_text(line, ":");
        cli_log_text(line, event->message);
    }
}

static bool is_worth_a_line(const hf_worker_event *event, const struct event_name *name, bool quiet)
{
    return !quiet || name->trouble ||
           (event->kind == HF_WORKER_RUN_FINISHED && event->status == HF_FAILED);
}

void cli_worker_log(const hf_worker_event *event, void *arg)
{
    const struct cli_log *log = arg;
    const struct event_name *name = name_of(event->kind);
    struct hf__buffer line = { 0 };
    if (!is_worth_a_line(event, name, log->quiet))
        return;
    cli_log_begin(log, &line, name->name);
    (log->json ? add_json : add_text)(&line, event, name);
    cli_log_end(log, &line);
}
