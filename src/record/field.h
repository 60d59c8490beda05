/* The fields of a record: one table for each kind of record says how it is written as JSON, for the program, the server and
 * the description of the API.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_RECORD_FIELD_H
#define HF_RECORD_FIELD_H

#include "util/buffer.h"

#include <holdfast/types.h>

/* The comment names the C type at `offset`. */
enum hf__field_kind {
    HF__FIELD_TEXT,     /* const char * */
    HF__FIELD_JSON,     /* const char *: one JSON value */
    HF__FIELD_WORDS,    /* const char *: a JSON array of strings */
    HF__FIELD_INT,      /* int */
    HF__FIELD_INT64,    /* int64_t */
    HF__FIELD_BOOL,     /* bool */
    HF__FIELD_TIME,     /* int64_t, us since the epoch; 0: none */
    HF__FIELD_DURATION, /* int64_t, us */
    HF__FIELD_SECONDS,  /* int: a duration, of whole seconds */
    HF__FIELD_ID,       /* hf_id; zero: none */
    HF__FIELD_STATUS,   /* hf_status */
    HF__FIELD_STATUSES  /* unsigned: bits by status; only read */
};

struct hf__field {
    const char *name; /* in JSON; stable */
    enum hf__field_kind kind;
    size_t offset;
};

/* Tables end with a NULL name. */
extern const struct hf__field hf__run_fields[];
extern const struct hf__field hf__event_fields[];
extern const struct hf__field hf__workflow_fields[];
extern const struct hf__field hf__worker_fields[];
extern const struct hf__field hf__tenant_fields[];
extern const struct hf__field hf__schedule_fields[];
extern const struct hf__field hf__token_fields[];
extern const struct hf__field hf__subscription_fields[];
extern const struct hf__field hf__outbox_fields[];
extern const struct hf__field hf__task_fields[];
extern const struct hf__field hf__dead_letter_fields[];
extern const struct hf__field hf__audit_problem_fields[];

const struct hf__field *hf__field_find(const struct hf__field *fields, const char *name);
/* Where a field lies in a record; its value, if it is a text, or a number of any kind. Durations are in us. */
const void *hf__field_place(const struct hf__field *field, const void *record);
const char *hf__field_text(const struct hf__field *field, const void *record);
int64_t hf__field_number(const struct hf__field *field, const void *record);
/* Adds the record as a JSON object on one line, with all its fields. */
void hf__record_json(struct hf__buffer *out, const struct hf__field *fields, const void *record);
/* Adds the members of such an object, without the braces. */
void hf__record_members(struct hf__buffer *out, const struct hf__field *fields, const void *record);

/* Adds text as a JSON string, or null for NULL; a time (0: null); an id (zero: null). */
void hf__json_add_text(struct hf__buffer *out, const char *text);
void hf__json_add_time(struct hf__buffer *out, int64_t time);
void hf__json_add_id(struct hf__buffer *out, hf_id id);

#endif
