/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/field.h"

#include "cli/terminal.h"
#include "util/alloc.h"
#include "util/buffer.h"
#include "util/duration.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(type, member, kind)                                                                  \
    {                                                                                              \
#member, CLI_FIELD_##kind, offsetof(type, member)                                          \
    }

const struct cli_field cli_run_fields[] = {
    FIELD(hf_run, id, ID),
    FIELD(hf_run, tenant, TEXT),
    FIELD(hf_run, workflow, TEXT),
    FIELD(hf_run, key, TEXT),
    FIELD(hf_run, status, STATUS),
    FIELD(hf_run, priority, INT),
    FIELD(hf_run, attempt, INT),
    FIELD(hf_run, max_attempts, INT),
    FIELD(hf_run, version, INT64),
    FIELD(hf_run, revision, INT64),
    FIELD(hf_run, run_at, TIME),
    FIELD(hf_run, lease_until, TIME),
    FIELD(hf_run, leased_by, TEXT),
    FIELD(hf_run, pause_requested, BOOL),
    FIELD(hf_run, input, JSON),
    FIELD(hf_run, state, JSON),
    FIELD(hf_run, result, JSON),
    FIELD(hf_run, error, JSON),
    FIELD(hf_run, error_code, TEXT),
    FIELD(hf_run, last_error, TEXT),
    FIELD(hf_run, current_step, TEXT),
    FIELD(hf_run, waiting_kind, TEXT),
    FIELD(hf_run, waiting_token, TEXT),
    FIELD(hf_run, waiting_until, TIME),
    FIELD(hf_run, wait_count, INT),
    FIELD(hf_run, last_worker, TEXT),
    FIELD(hf_run, subject, TEXT),
    FIELD(hf_run, reference, TEXT),
    FIELD(hf_run, tags, WORDS),
    FIELD(hf_run, partition, TEXT),
    FIELD(hf_run, trace, TEXT),
    FIELD(hf_run, actor, TEXT),
    FIELD(hf_run, parent, ID),
    FIELD(hf_run, root, ID),
    FIELD(hf_run, timeout_at, TIME),
    FIELD(hf_run, created_at, TIME),
    FIELD(hf_run, started_at, TIME),
    FIELD(hf_run, updated_at, TIME),
    FIELD(hf_run, paused_at, TIME),
    FIELD(hf_run, finished_at, TIME),
    FIELD(hf_run, deleted_at, TIME),
    FIELD(hf_run, delete_reason, TEXT),
    FIELD(hf_run, flow_key, TEXT),
    FIELD(hf_run, debounce_key, TEXT),
    { NULL, CLI_FIELD_TEXT, 0 },
};

const struct cli_field cli_event_fields[] = {
    FIELD(hf_event, run, ID),        FIELD(hf_event, seq, INT64), FIELD(hf_event, position, INT64),
    FIELD(hf_event, version, INT64), FIELD(hf_event, kind, TEXT), FIELD(hf_event, name, TEXT),
    FIELD(hf_event, actor, TEXT),    FIELD(hf_event, step, TEXT), FIELD(hf_event, data, JSON),
    FIELD(hf_event, at, TIME),       { NULL, CLI_FIELD_TEXT, 0 },
};

const struct cli_field cli_workflow_fields[] = {
    FIELD(hf_workflow, name, TEXT),
    FIELD(hf_workflow, paused, BOOL),
    FIELD(hf_workflow, max_attempts, INT),
    FIELD(hf_workflow, retry_base, DURATION),
    FIELD(hf_workflow, retry_cap, DURATION),
    FIELD(hf_workflow, lease, DURATION),
    FIELD(hf_workflow, timeout, DURATION),
    FIELD(hf_workflow, retention, DURATION),
    FIELD(hf_workflow, dead_letter, TEXT),
    FIELD(hf_workflow, definition, TEXT),
    FIELD(hf_workflow, created_at, TIME),
    FIELD(hf_workflow, updated_at, TIME),
    FIELD(hf_workflow, due, INT64),
    FIELD(hf_workflow, delayed, INT64),
    FIELD(hf_workflow, leased, INT64),
    FIELD(hf_workflow, failed, INT64),
    FIELD(hf_workflow, workers, INT),
    FIELD(hf_workflow, max_running, INT),
    FIELD(hf_workflow, key_max_running, INT),
    { "rate_count", CLI_FIELD_INT, offsetof(hf_workflow, rate.count) },
    { "rate_interval", CLI_FIELD_DURATION, offsetof(hf_workflow, rate.interval) },
    { "rate_burst", CLI_FIELD_INT, offsetof(hf_workflow, rate.burst) },
    { "key_rate_count", CLI_FIELD_INT, offsetof(hf_workflow, key_rate.count) },
    { "key_rate_interval", CLI_FIELD_DURATION, offsetof(hf_workflow, key_rate.interval) },
    { "key_rate_burst", CLI_FIELD_INT, offsetof(hf_workflow, key_rate.burst) },
    FIELD(hf_workflow, weights, JSON),
    { NULL, CLI_FIELD_TEXT, 0 },
};

const struct cli_field cli_worker_fields[] = {
    FIELD(hf_worker_info, name, TEXT),
    FIELD(hf_worker_info, host, TEXT),
    FIELD(hf_worker_info, pid, INT),
    FIELD(hf_worker_info, program, TEXT),
    FIELD(hf_worker_info, serves, WORDS),
    FIELD(hf_worker_info, threads, INT),
    FIELD(hf_worker_info, live, BOOL),
    FIELD(hf_worker_info, idle, BOOL),
    FIELD(hf_worker_info, draining, BOOL),
    FIELD(hf_worker_info, running, INT64),
    FIELD(hf_worker_info, started_at, TIME),
    FIELD(hf_worker_info, seen_at, TIME),
    { NULL, CLI_FIELD_TEXT, 0 },
};

const struct cli_field cli_tenant_fields[] = {
    FIELD(hf_tenant, name, TEXT),
    FIELD(hf_tenant, disabled, BOOL),
    FIELD(hf_tenant, created_at, TIME),
    { NULL, CLI_FIELD_TEXT, 0 },
};

const struct cli_field *cli_field_find(const struct cli_field *fields, const char *name)
{
    for (; fields->name; fields++)
        if (strcmp(fields->name, name) == 0)
            return fields;
    return NULL;
}

static const void *place(const struct cli_field *field, const void *record)
{
    return (const char *)record + field->offset;
}

static const char *text_of(const struct cli_field *field, const void *record)
{
    return *(const char *const *)place(field, record);
}

static int64_t number_of(const struct cli_field *field, const void *record)
{
    if (field->kind == CLI_FIELD_INT)
        return *(const int *)place(field, record);
    return *(const int64_t *)place(field, record);
}

/* A line break outside of a string may be any white space, and inside it cannot be. */
static void add_json_on_one_line(struct hf__buffer *out, const char *json)
{
    for (; *json; json++)
        hf__buffer_add(out, *json == '\n' || *json == '\r' || *json == '\t' ? " " : json, 1);
}

static void add_json_text(struct hf__buffer *out, const char *text)
{
    if (text)
        hf__buffer_add_json_string(out, text, strlen(text));
    else
        hf__buffer_add_text(out, "null");
}

static void add_json_time(struct hf__buffer *out, int64_t time)
{
    char text[HF__TIME_TEXT];
    hf__time_format(time, text);
    add_json_text(out, time ? text : NULL);
}

static void add_json_duration(struct hf__buffer *out, int64_t us)
{
    char text[HF__DURATION_TEXT];
    hf__duration_format(us, text);
    add_json_text(out, text);
}

static void add_json_id(struct hf__buffer *out, hf_id id)
{
    char text[HF_ID_TEXT];
    hf_id_format(id, text);
    add_json_text(out, hf_id_is_zero(id) ? NULL : text);
}

static void add_json_value(struct hf__buffer *out, const struct cli_field *field,
                           const void *record)
{
    switch (field->kind) {
    case CLI_FIELD_TEXT: add_json_text(out, text_of(field, record)); break;
    case CLI_FIELD_JSON:
    case CLI_FIELD_WORDS: {
        const char *json = text_of(field, record);
        add_json_on_one_line(out, json ? json : "null");
        break;
    }
    case CLI_FIELD_INT:
    case CLI_FIELD_INT64: hf__buffer_addf(out, "%" PRId64, number_of(field, record)); break;
    case CLI_FIELD_BOOL:
        hf__buffer_add_text(out, *(const bool *)place(field, record) ? "true" : "false");
        break;
    case CLI_FIELD_TIME: add_json_time(out, number_of(field, record)); break;
    case CLI_FIELD_DURATION: add_json_duration(out, number_of(field, record)); break;
    case CLI_FIELD_ID: add_json_id(out, *(const hf_id *)place(field, record)); break;
    case CLI_FIELD_STATUS:
        add_json_text(out, hf_status_name(*(const hf_status *)place(field, record)));
        break;
    }
}

void cli_record_members(struct hf__buffer *out, const struct cli_field *fields, const void *record)
{
    for (const struct cli_field *field = fields; field->name; field++) {
        hf__buffer_addf(out, "%s\"%s\":", field == fields ? "" : ",", field->name);
        add_json_value(out, field, record);
    }
}

void cli_record_json(FILE *out, const struct cli_field *fields, const void *record)
{
    struct hf__buffer line = { 0 };
    hf__buffer_add_text(&line, "{");
    cli_record_members(&line, fields, record);
    hf__buffer_add_text(&line, "}\n");
    if (line.failed)
        fputs("holdfast: memory ran out\n", stderr);
    else
        fwrite(line.data, 1, line.length, out);
    hf__buffer_free(&line);
}

static void relative_text(int64_t distance, char out[CLI_TIME_TEXT])
{
    static const struct {
        int64_t us;
        char unit;
    } units[] = { { HF_DAYS(1), 'd' }, { HF_HOURS(1), 'h' }, { HF_MINUTES(1), 'm' } };
    int64_t size = distance < 0 ? -distance : distance;
    int64_t unit = HF_SECONDS(1);
    char name = 's';
    for (size_t i = 0; i < sizeof units / sizeof units[0] && unit == HF_SECONDS(1); i++)
        if (size >= units[i].us) {
            unit = units[i].us;
            name = units[i].unit;
        }
    int64_t amount = size / unit;
    if (amount == 0)
        snprintf(out, CLI_TIME_TEXT, "now");
    else if (distance > 0)
        snprintf(out, CLI_TIME_TEXT, "in %" PRId64 "%c", amount, name);
    else
        snprintf(out, CLI_TIME_TEXT, "%" PRId64 "%c ago", amount, name);
}

void cli_time_text(struct cli_session *session, int64_t time, char out[CLI_TIME_TEXT])
{
    if (time == 0)
        out[0] = '\0';
    else if (session->utc || cli_terminal_width() == 0)
        hf__time_format(time, out);
    else
        relative_text(time - cli_now(session), out);
}

void cli_span_text(int64_t us, char out[CLI_SPAN_TEXT])
{
    int64_t seconds = us / 1000000;
    if (us < 0)
        us = seconds = 0;
    if (us < 100)
        snprintf(out, CLI_SPAN_TEXT, "0ms");
    else if (us < 10000)
        snprintf(out, CLI_SPAN_TEXT, "%.1fms", (double)(us / 100) / 10);
    else if (us < 1000000)
        snprintf(out, CLI_SPAN_TEXT, "%" PRId64 "ms", us / 1000);
    else if (seconds < 60)
        snprintf(out, CLI_SPAN_TEXT, "%.1fs", (double)(us / 100000) / 10);
    else if (seconds < 3600)
        snprintf(out, CLI_SPAN_TEXT, "%" PRId64 "m %02" PRId64 "s", seconds / 60, seconds % 60);
    else if (seconds < 86400)
        snprintf(out, CLI_SPAN_TEXT, "%" PRId64 "h %02" PRId64 "m", seconds / 3600,
                 seconds / 60 % 60);
    else
        snprintf(out, CLI_SPAN_TEXT, "%" PRId64 "d %" PRId64 "h", seconds / 86400,
                 seconds / 3600 % 24);
}

void cli_count_text(int64_t count, char out[CLI_COUNT_TEXT])
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRId64, count);
    char *to = out;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0 && digits[i - 1] != '-')
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
}

/* "a, b" for ["a","b"]; what is not such an array stays as it is. */
static char *words_text(const char *json)
{
    json_t *array = json_loads(json, 0, NULL);
    if (!json_is_array(array)) {
        json_decref(array);
        return cli_clean_line(json);
    }
    struct hf__buffer text = { 0 };
    size_t index;
    json_t *word;
    json_array_foreach(array, index, word)
    {
        if (index > 0)
            hf__buffer_add_text(&text, ", ");
        hf__buffer_add_text(&text, json_is_string(word) ? json_string_value(word) : "?");
    }
    json_decref(array);
    char *joined = hf__buffer_take(&text);
    char *clean = joined ? cli_clean_line(joined) : NULL;
    free(joined);
    return clean;
}

static char *number_text(int64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, number);
    return hf__strdup(text);
}

static char *time_text(struct cli_session *session, int64_t time)
{
    char text[CLI_TIME_TEXT];
    cli_time_text(session, time, text);
    return hf__strdup(text);
}

static char *duration_text(int64_t us)
{
    char text[HF__DURATION_TEXT];
    hf__duration_format(us, text);
    return hf__strdup(text);
}

static char *id_text(hf_id id)
{
    char text[HF_ID_TEXT];
    hf_id_format(id, text);
    return hf__strdup(hf_id_is_zero(id) ? "" : text);
}

char *cli_field_text(struct cli_session *session, const struct cli_field *field, const void *record)
{
    switch (field->kind) {
    case CLI_FIELD_TEXT:
    case CLI_FIELD_JSON: {
        const char *text = text_of(field, record);
        return cli_clean_line(text ? text : "");
    }
    case CLI_FIELD_WORDS: {
        const char *json = text_of(field, record);
        return json ? words_text(json) : hf__strdup("");
    }
    case CLI_FIELD_INT:
    case CLI_FIELD_INT64: return number_text(number_of(field, record));
    case CLI_FIELD_BOOL: return hf__strdup(*(const bool *)place(field, record) ? "yes" : "no");
    case CLI_FIELD_TIME: return time_text(session, number_of(field, record));
    case CLI_FIELD_DURATION: return duration_text(number_of(field, record));
    case CLI_FIELD_ID: return id_text(*(const hf_id *)place(field, record));
    case CLI_FIELD_STATUS:
        return hf__strdup(hf_status_name(*(const hf_status *)place(field, record)));
    }
    return hf__strdup("");
}
