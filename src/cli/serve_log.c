/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve_log.h"

#include "cli/terminal.h"
#include "record/field.h"
#include "util/clock.h"
#include "util/duration.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

/* JSON may have bare control characters from U+007F on; whoever reads a log in a terminal should not meet them. */
static void add_clean_json(struct hf__buffer *line, const char *name, const char *text)
{
    char *clean = text ? cli_clean_line(text) : NULL;
    hf__buffer_addf(line, ",\"%s\":", name);
    hf__json_add_text(line, clean);
    free(clean);
}

static void add_json(struct hf__buffer *line, const struct hf__server_event *event,
                     const char *time)
{
    hf__buffer_addf(line, "{\"time\":\"%s\",\"event\":\"%s\"", time,
                    event->method ? "request" : "server");
    if (event->method) {
        add_clean_json(line, "method", event->method);
        add_clean_json(line, "path", event->path);
        hf__buffer_addf(line, ",\"status\":%d,\"duration_us\":%" PRId64, event->status,
                        event->duration);
        add_clean_json(line, "tenant", event->tenant);
        add_clean_json(line, "actor", event->actor);
    }
    add_clean_json(line, "message", event->message);
    hf__buffer_add_text(line, "}\n");
}

static void add_clean(struct hf__buffer *line, const char *text)
{
    char *clean = cli_clean_line(text);
    hf__buffer_addf(line, " %s", clean ? clean : "?");
    free(clean);
}

static void add_text(struct hf__buffer *line, const struct hf__server_event *event,
                     const char *time)
{
    hf__buffer_add_text(line, time);
    if (event->method) {
        char took[HF__DURATION_TEXT];
        hf__duration_format(event->duration, took);
        add_clean(line, event->method);
        add_clean(line, event->path);
        hf__buffer_addf(line, " %d in %s", event->status, took);
    }
    if (event->message)
        add_clean(line, event->message);
    hf__buffer_add_text(line, "\n");
}

void cli_serve_log(const struct hf__server_event *event, void *arg)
{
    const struct cli_serve_log *log = arg;
    if (log->quiet && event->status < 500)
        return;
    char time[HF__TIME_TEXT];
    hf__time_format(hf__clock_now(&hf__system_clock), time);
    struct hf__buffer line = { 0 };
    (log->json ? add_json : add_text)(&line, event, time);
    /* A log that cannot be written is no reason to stop serving. */
    if (!line.failed && write(STDERR_FILENO, line.data, line.length) < 0)
        line.failed = true;
    hf__buffer_free(&line);
}
