/* Lines on stderr: text for people, JSON for machines. Each is one write, so that lines of several threads do not mix.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_LOG_H
#define HF_CLI_LOG_H

#include "util/buffer.h"

struct cli_log {
    bool json;
    bool quiet; /* only what went wrong */
};

/* Begins with the time; in JSON with `event`, the kind of the line, beside it. */
void cli_log_begin(const struct cli_log *log, struct hf__buffer *line, const char *event);
/* Adds a member of the object; NULL is null. */
void cli_log_member(struct hf__buffer *line, const char *name, const char *text);
/* Adds text after a blank, so that it cannot steer a terminal. */
void cli_log_text(struct hf__buffer *line, const char *text);
/* Ends the line, writes it and frees it. A log that cannot be written is no reason to stop. */
void cli_log_end(const struct cli_log *log, struct hf__buffer *line);

#endif
