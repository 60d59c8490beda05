/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/log.h"

#include "cli/terminal.h"
#include "record/field.h"
#include "util/clock.h"
#include "util/duration.h"

#include <stdlib.h>
#include <unistd.h>

void cli_log_begin(const struct cli_log *log, struct hf__buffer *line, const char *event)
{
    char time[HF__TIME_TEXT];
    hf__time_format(hf__clock_now(&hf__system_clock), time);
    if (log->json)
        hf__buffer_addf(line, "{\"time\":\"%s\",\"event\":\"%s\"", time, event);
    else
        hf__buffer_add_text(line, time);
}

/* JSON may have bare control characters from U+007F on; whoever reads a log in a terminal should not meet them. */
void cli_log_member(struct hf__buffer *line, const char *name, const char *text)
{
    char *clean = text ? cli_clean_line(text) : NULL;
    hf__buffer_addf(line, ",\"%s\":", name);
    hf__json_add_text(line, clean);
    free(clean);
}

void cli_log_text(struct hf__buffer *line, const char *text)
{
    char *clean = cli_clean_line(text);
    hf__buffer_addf(line, " %s", clean ? clean : "?");
    free(clean);
}

void cli_log_end(const struct cli_log *log, struct hf__buffer *line)
{
    hf__buffer_add_text(line, log->json ? "}\n" : "\n");
    if (!line->failed && write(STDERR_FILENO, line->data, line->length) < 0)
        line->failed = true;
    hf__buffer_free(line);
}
