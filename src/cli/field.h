/* The fields of a record, once for machines (JSON) and once for people (text).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_FIELD_H
#define HF_CLI_FIELD_H

#include "cli/session.h"
#include "util/buffer.h"

/* The comment names the C type at `offset`. */
enum cli_field_kind {
    CLI_FIELD_TEXT,     /* const char * */
    CLI_FIELD_JSON,     /* const char *: one JSON value */
    CLI_FIELD_WORDS,    /* const char *: a JSON array of strings */
    CLI_FIELD_INT,      /* int */
    CLI_FIELD_INT64,    /* int64_t */
    CLI_FIELD_BOOL,     /* bool */
    CLI_FIELD_TIME,     /* int64_t, us since the epoch; 0: none */
    CLI_FIELD_DURATION, /* int64_t, us */
    CLI_FIELD_ID,       /* hf_id; zero: none */
    CLI_FIELD_STATUS    /* hf_status */
};

struct cli_field {
    const char *name; /* in JSON; stable */
    enum cli_field_kind kind;
    size_t offset;
};

/* Tables end with a NULL name. */
extern const struct cli_field cli_run_fields[];
extern const struct cli_field cli_event_fields[];
extern const struct cli_field cli_workflow_fields[];
extern const struct cli_field cli_worker_fields[];
extern const struct cli_field cli_tenant_fields[];

const struct cli_field *cli_field_find(const struct cli_field *fields, const char *name);
/* Writes the record as one line of JSON with all its fields. */
void cli_record_json(FILE *out, const struct cli_field *fields, const void *record);
/* Adds the members of such an object, without the braces. */
void cli_record_members(struct hf__buffer *out, const struct cli_field *fields, const void *record);
/* For people, free of control characters, the caller's to free(); "" where there is nothing; NULL when there is no
 * memory. */
char *cli_field_text(struct cli_session *session, const struct cli_field *field, const void *record)
    __attribute__((warn_unused_result));
/* "3m ago", "in 2h" on a terminal, exact otherwise; "" for 0. `out` has CLI_TIME_TEXT bytes. */
enum { CLI_TIME_TEXT = 40 };
void cli_time_text(struct cli_session *session, int64_t time, char out[CLI_TIME_TEXT]);
/* How long something took, to be read at a glance: "0ms", "0.3ms", "250ms", "1.2s", "2m 05s", "3h 10m", "2d 4h". */
enum { CLI_SPAN_TEXT = 32 };
void cli_span_text(int64_t us, char out[CLI_SPAN_TEXT]);
/* "9,950" */
enum { CLI_COUNT_TEXT = 32 };
void cli_count_text(int64_t count, char out[CLI_COUNT_TEXT]);

#endif
