/* The fields of a record as people read them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_HF__FIELD_H
#define HF_HF__FIELD_H

#include "cli/session.h"
#include "record/field.h"

/* Writes the record as one line of JSON with all its fields. */
void cli_record_json(FILE *out, const struct hf__field *fields, const void *record);
/* For people, free of control characters, the caller's to free(); "" where there is nothing; NULL when there is no
 * memory. */
char *cli_field_text(struct cli_session *session, const struct hf__field *field, const void *record)
    __attribute__((warn_unused_result));
/* "3m ago", "in 2h" on a terminal, exact otherwise; "" for 0. `out` has CLI_TIME_TEXT bytes. */
enum { CLI_TIME_TEXT = 40 };
void cli_time_text(struct cli_session *session, int64_t time, char out[CLI_TIME_TEXT]);
/* "until TIME"; on a terminal "for another 2h". `out` has CLI_UNTIL_TEXT bytes. */
enum { CLI_UNTIL_TEXT = CLI_TIME_TEXT + 16 };
void cli_until_text(struct cli_session *session, int64_t time, char out[CLI_UNTIL_TEXT]);
/* How long something took, to be read at a glance: "0ms", "0.3ms", "250ms", "1.2s", "2m 05s", "3h 10m", "2d 4h". */
enum { CLI_SPAN_TEXT = 32 };
void cli_span_text(int64_t us, char out[CLI_SPAN_TEXT]);
/* "9,950" */
enum { CLI_COUNT_TEXT = 32 };
void cli_count_text(int64_t count, char out[CLI_COUNT_TEXT]);

#endif
