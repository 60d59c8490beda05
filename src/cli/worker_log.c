/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/worker_log.h"

#include "cli/terminal.h"
#include "util/buffer.h"
#include "util/clock.h"
#include "util/duration.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
};

static const struct event_name unknown_event = { "unknown", "unknown event", false, true };

static const struct event_name *name_of(hf_worker_event_kind kind)
{
    size_t index = (size_t)kind;
    bool known = index < sizeof event_names / sizeof event_names[0] && event_names[index].name;
    return known ? &event_names[index] : &unknown_event;
}

static void add_json_member(struct hf__buffer *line, const char *name, const char *text)
{
    hf__buffer_addf(line, ",\"%s\":", name);
    if (text)
        hf__buffer_add_json_string(line, text, strlen(text));
    else
        hf__buffer_add_text(line, "null");
}

static void add_json(struct hf__buffer *line, const hf_worker_event *event,
                     const struct event_name *name, const char *time)
{
    char id[HF_ID_TEXT];
    hf_id_format(event->run, id);
    bool finished = event->kind == HF_WORKER_RUN_FINISHED;
    hf__buffer_addf(line, "{\"time\":\"%s\",\"event\":\"%s\"", time, name->name);
    if (name->about_run) {
        add_json_member(line, "run", id);
        add_json_member(line, "workflow", event->workflow);
        add_json_member(line, "tenant", event->tenant);
        hf__buffer_addf(line, ",\"attempt\":%d", event->attempt);
    }
    if (finished) {
        add_json_member(line, "status", hf_status_name(event->status));
        hf__buffer_addf(line, ",\"duration_us\":%" PRId64, event->duration);
    }
    add_json_member(line, "message", event->message);
    hf__buffer_add_text(line, "}\n");
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
                     const struct event_name *name, const char *time)
{
    hf__buffer_addf(line, "%s %s", time, name->text);
    if (name->about_run)
        add_run_text(line, event);
    char *message = event->message ? cli_clean_line(event->message) : NULL;
    if (message && *message)
        hf__buffer_addf(line, ": %s", message);
    free(message);
    hf__buffer_add_text(line, "\n");
}

static bool is_worth_a_line(const hf_worker_event *event, const struct event_name *name, bool quiet)
{
    return !quiet || name->trouble ||
           (event->kind == HF_WORKER_RUN_FINISHED && event->status == HF_FAILED);
}

void cli_worker_log(const hf_worker_event *event, void *arg)
{
    const struct cli_worker_log *log = arg;
    const struct event_name *name = name_of(event->kind);
    if (!is_worth_a_line(event, name, log->quiet))
        return;
    char time[HF__TIME_TEXT];
    hf__time_format(hf__clock_now(&hf__system_clock), time);
    struct hf__buffer line = { 0 };
    (log->json ? add_json : add_text)(&line, event, name, time);
    /* A log that cannot be written is no reason to stop working. */
    if (!line.failed && write(STDERR_FILENO, line.data, line.length) < 0)
        line.failed = true;
    hf__buffer_free(&line);
}
