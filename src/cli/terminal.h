/* What depends on whether a person sits in front of it: widths, colours, questions, progress.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_TERMINAL_H
#define HF_CLI_TERMINAL_H

#include "cli/session.h"

/* Columns of the terminal on stdout; 0: stdout is no terminal. */
int cli_terminal_width(void);
/* Its real size, 80 x 24 when it is not known. */
void cli_terminal_size(int *columns, int *rows);
/* Whether stdout is a terminal that shows more than ASCII. */
bool cli_terminal_utf8(void);
/* Whether stdout shows colours: a terminal, and nobody said no. */
bool cli_terminal_colors(const struct cli_session *session);
/* The escape sequence for a status, "" without colours; `cli_color_end` undoes it. */
const char *cli_color_of(const char *status);
extern const char cli_color_end[];

/* Writes text so that it cannot steer a terminal: control characters and those that turn text around
 * become '?', what is not UTF-8 U+FFFD. */
void cli_put_clean(FILE *out, const char *text);
/* The same text, the caller's to free(); NULL when there is no memory. Newlines become spaces. */
char *cli_clean_line(const char *text) __attribute__((warn_unused_result));
/* Columns that valid UTF-8 takes. */
int cli_text_width(const char *text);
/* Bytes of the longest start of the text that fits into so many columns. */
size_t cli_text_fit(const char *text, int columns);

/* Writes a clean line; where it is longer than the terminal is wide, the rest follows below, indented as its beginning. */
void cli_put_folded(FILE *out, const char *text, int indent);

/* Asks on the terminal; false when the answer is not yes. Call it only if cli_can_ask. */
bool cli_can_ask(void);
bool cli_ask(const char *question);

/* A bar on stderr, if that is a terminal and not --quiet; total 0: unknown. */
void cli_progress_show(const struct cli_session *session, const char *what, int64_t done,
                       int64_t total);
/* Removes it. */
void cli_progress_end(const struct cli_session *session);

#endif
