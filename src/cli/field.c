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

void cli_record_json(FILE *out, const struct hf__field *fields, const void *record)
{
    struct hf__buffer line = { 0 };
    hf__record_json(&line, fields, record);
    hf__buffer_add_text(&line, "\n");
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

void cli_until_text(struct cli_session *session, int64_t time, char out[CLI_UNTIL_TEXT])
{
    char when[CLI_TIME_TEXT];
    cli_time_text(session, time, when);
    bool ahead = strncmp(when, "in ", 3) == 0;
    snprintf(out, CLI_UNTIL_TEXT, "%s %s", ahead ? "for another" : "until",
             ahead ? when + 3 : when);
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

char *cli_field_text(struct cli_session *session, const struct hf__field *field, const void *record)
{
    switch (field->kind) {
    case HF__FIELD_TEXT:
    case HF__FIELD_JSON: {
        const char *text = hf__field_text(field, record);
        return cli_clean_line(text ? text : "");
    }
    case HF__FIELD_WORDS: {
        const char *json = hf__field_text(field, record);
        return json ? words_text(json) : hf__strdup("");
    }
    case HF__FIELD_INT:
    case HF__FIELD_INT64: return number_text(hf__field_number(field, record));
    case HF__FIELD_BOOL:
        return hf__strdup(*(const bool *)hf__field_place(field, record) ? "yes" : "no");
    case HF__FIELD_TIME: return time_text(session, hf__field_number(field, record));
    case HF__FIELD_SECONDS:
    case HF__FIELD_DURATION: return duration_text(hf__field_number(field, record));
    case HF__FIELD_ID: return id_text(*(const hf_id *)hf__field_place(field, record));
    case HF__FIELD_STATUS:
        return hf__strdup(hf_status_name(*(const hf_status *)hf__field_place(field, record)));
    case HF__FIELD_STATUSES: break;
    }
    return hf__strdup("");
}
