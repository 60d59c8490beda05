/* Payloads from the command line, from files and from stdin: bounded and checked.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_INPUT_H
#define HF_CLI_INPUT_H

#include <holdfast/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Bytes of one payload: --max-payload, else the library's default of 1 MiB. */
size_t cli_max_payload(void);
/* Bytes of one line: a payload with the options beside it. */
size_t cli_max_line(void);

/* The text itself, the content of a file for "@FILE", stdin for "-"; yours to free. At most cli_max_payload() bytes
 * of UTF-8 without NUL. `what` opens the error message, as in "input". */
hf_code cli_input_text(char **out, const char *what, const char *source,
                       hf_error *err) HF_MUST_CHECK;
/* The same, but it must be one JSON value. */
hf_code cli_input_json(char **out, const char *what, const char *source,
                       hf_error *err) HF_MUST_CHECK;

/* Reads a file line by line ("-" is stdin). */
struct cli_lines {
    FILE *file;
    const char *name; /* for messages; borrowed */
    char *line;       /* without its newline, NUL-terminated */
    size_t length;    /* bytes of the line; a NUL byte in it shows as strlen(line) < length */
    size_t capacity;
    long number;   /* of the line, from 1 */
    bool too_long; /* the line had more than cli_max_line() bytes, and was skipped */
};

hf_code cli_lines_open(struct cli_lines *lines, const char *name, hf_error *err) HF_MUST_CHECK;
/* False at the end; then *failed tells whether reading failed, with `err` filled. */
bool cli_lines_next(struct cli_lines *lines, bool *failed, hf_error *err) HF_MUST_CHECK;
void cli_lines_close(struct cli_lines *lines);

#endif
