/* SPDX-License-Identifier: Apache-2.0 */
#include "record/field.h"

#include "util/duration.h"

#include <inttypes.h>
#include <string.h>

const struct hf__field *hf__field_find(const struct hf__field *fields, const char *name)
{
    for (; fields->name; fields++)
        if (strcmp(fields->name, name) == 0)
            return fields;
    return NULL;
}

const void *hf__field_place(const struct hf__field *field, const void *record)
{
    return (const char *)record + field->offset;
}

const char *hf__field_text(const struct hf__field *field, const void *record)
{
    return *(const char *const *)hf__field_place(field, record);
}

int64_t hf__field_number(const struct hf__field *field, const void *record)
{
    if (field->kind == HF__FIELD_INT)
        return *(const int *)hf__field_place(field, record);
    if (field->kind == HF__FIELD_SECONDS)
        return HF_SECONDS(*(const int *)hf__field_place(field, record));
    return *(const int64_t *)hf__field_place(field, record);
}

/* A line break outside of a string may be any white space, and inside it cannot be. */
static void add_json_on_one_line(struct hf__buffer *out, const char *json)
{
    while (*json) {
        size_t span = strcspn(json, "\n\r\t");
        hf__buffer_add(out, json, span);
        json += span;
        size_t breaks = strspn(json, "\n\r\t");
        hf__buffer_add(out, " ", breaks > 0);
        json += breaks;
    }
}

void hf__json_add_text(struct hf__buffer *out, const char *text)
{
    if (text)
        hf__buffer_add_json_string(out, text, strlen(text));
    else
        hf__buffer_add_text(out, "null");
}

void hf__json_add_time(struct hf__buffer *out, int64_t time)
{
    char text[HF__TIME_TEXT];
    hf__time_format(time, text);
    hf__json_add_text(out, time ? text : NULL);
}

static void add_json_duration(struct hf__buffer *out, int64_t us)
{
    char text[HF__DURATION_TEXT];
    hf__duration_format(us, text);
    hf__json_add_text(out, text);
}

void hf__json_add_id(struct hf__buffer *out, hf_id id)
{
    char text[HF_ID_TEXT];
    hf_id_format(id, text);
    hf__json_add_text(out, hf_id_is_zero(id) ? NULL : text);
}

static void add_json_value(struct hf__buffer *out, const struct hf__field *field,
                           const void *record)
{
    switch (field->kind) {
    case HF__FIELD_TEXT: hf__json_add_text(out, hf__field_text(field, record)); break;
    case HF__FIELD_JSON:
    case HF__FIELD_WORDS: {
        const char *json = hf__field_text(field, record);
        add_json_on_one_line(out, json ? json : "null");
        break;
    }
    case HF__FIELD_INT:
    case HF__FIELD_INT64: hf__buffer_addf(out, "%" PRId64, hf__field_number(field, record)); break;
    case HF__FIELD_BOOL:
        hf__buffer_add_text(out, *(const bool *)hf__field_place(field, record) ? "true" : "false");
        break;
    case HF__FIELD_TIME: hf__json_add_time(out, hf__field_number(field, record)); break;
    case HF__FIELD_SECONDS:
    case HF__FIELD_DURATION: add_json_duration(out, hf__field_number(field, record)); break;
    case HF__FIELD_ID: hf__json_add_id(out, *(const hf_id *)hf__field_place(field, record)); break;
    case HF__FIELD_STATUS:
        hf__json_add_text(out, hf_status_name(*(const hf_status *)hf__field_place(field, record)));
        break;
    case HF__FIELD_STATUSES: hf__buffer_add_text(out, "null"); break;
    }
}

void hf__record_members(struct hf__buffer *out, const struct hf__field *fields, const void *record)
{
    for (const struct hf__field *field = fields; field->name; field++) {
        hf__buffer_addf(out, "%s\"%s\":", field == fields ? "" : ",", field->name);
        add_json_value(out, field, record);
    }
}

void hf__record_json(struct hf__buffer *out, const struct hf__field *fields, const void *record)
{
    hf__buffer_add_text(out, "{");
    hf__record_members(out, fields, record);
    hf__buffer_add_text(out, "}");
}
