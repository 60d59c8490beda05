/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve_log.h"

#include "cli/log.h"
#include "util/duration.h"

#include <inttypes.h>

static void add_json(struct hf__buffer *line, const struct hf__server_event *event)
{
    if (event->method) {
        cli_log_member(line, "method", event->method);
        cli_log_member(line, "path", event->path);
        hf__buffer_addf(line, ",\"status\":%d,\"duration_us\":%" PRId64, event->status,
                        event->duration);
        cli_log_member(line, "tenant", event->tenant);
        cli_log_member(line, "actor", event->actor);
        cli_log_member(line, "run", event->run);
        cli_log_member(line, "trace", event->trace);
    }
    cli_log_member(line, "message", event->message);
}

static void add_text(struct hf__buffer *line, const struct hf__server_event *event)
{
    if (event->method) {
        char took[HF__DURATION_TEXT];
        hf__duration_format(event->duration, took);
        cli_log_text(line, event->method);
        cli_log_text(line, event->path);
        hf__buffer_addf(line, " %d in %s", event->status, took);
    }
    if (event->started && event->run)
        hf__buffer_addf(line, " run %s", event->run);
    if (event->message)
        cli_log_text(line, event->message);
}

void cli_serve_log(const struct hf__server_event *event, void *arg)
{
    const struct cli_log *log = arg;
    struct hf__buffer line = { 0 };
    if (log->quiet && event->status < 500)
        return;
    cli_log_begin(log, &line, event->method ? "request" : "server");
    (log->json ? add_json : add_text)(&line, event);
    cli_log_end(log, &line);
}
