/* SPDX-License-Identifier: Apache-2.0 */
#include "record/reader.h"

#include "util/duration.h"
#include "util/error.h"
#include "util/json.h"
#include "util/json_members.h"
#include "util/suggest.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 100000 }; /* ids of children and of mail are many; bounds the array alone */

static hf_code copy_text(const char **out, struct hf__arena *arena, const char *text, size_t length,
                         hf_error *err)
{
    *out = hf__arena_strndup(arena, text, length);
    return *out ? HF_OK : hf__nomem(err);
}

static hf_code read_number(int64_t *out, const char *name, const char *text, int64_t min,
                           int64_t max, hf_error *err)
{
    char *end = NULL;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    bool digits = (*text >= '0' && *text <= '9') || (*text == '-' && end > text + 1);
    if (!digits || *end != '\0' || errno || number < min || number > max)
        return hf__fail(err, HF_INVALID,
                        "\"%s\" must be a whole number from %" PRId64 " to %" PRId64 ", not %.60s",
                        name, min, max, text);
    *out = number;
    return HF_OK;
}

static hf_code read_bool(bool *out, const char *name, const char *text, hf_error *err)
{
    *out = strcmp(text, "true") == 0;
    if (!*out && strcmp(text, "false") != 0)
        return hf__fail(err, HF_INVALID, "\"%s\" must be true or false", name);
    return HF_OK;
}

/* A bare number of a duration is seconds, as on the command line. */
static hf_code read_time(int64_t *out, const struct hf__member *member, const char *text,
                         hf_error *err)
{
    hf_code code = member->kind == HF__FIELD_TIME ? hf__time_parse(text, out, err)
                                                  : hf__duration_parse(text, out, err);
    return code == HF_OK ? HF_OK : hf__fail(err, code, "\"%s\": %s", member->name, err->message);
}

/* Parts of a second count as one. */
static hf_code read_seconds(int *out, const struct hf__member *member, const char *text,
                            hf_error *err)
{
    const struct hf__member duration = { .name = member->name, .kind = HF__FIELD_DURATION };
    int64_t us = 0;
    hf_code code = read_time(&us, &duration, text, err);
    if (code == HF_OK && us > HF_SECONDS(INT_MAX))
        code = hf__fail(err, HF_INVALID, "\"%s\" must be at most 68 years", member->name);
    if (code == HF_OK)
        *out = (int)((us + HF_SECONDS(1) - 1) / HF_SECONDS(1));
    return code;
}

static hf_code read_id(hf_id *out, const char *name, const char *text, hf_error *err)
{
    return hf_id_parse(text, out)
               ? HF_OK
               : hf__fail(err, HF_INVALID, "\"%s\" must be a UUID, not \"%.60s\"", name, text);
}

static hf_code read_status(hf_status *out, const char *name, const char *text, hf_error *err)
{
    return hf_status_parse(text, out) ? HF_OK
                                      : hf__fail(err, HF_INVALID,
                                                 "\"%s\": there is no status \"%.60s\"; there are "
                                                 "pending, leased, waiting, paused, succeeded, "
                                                 "failed, cancelled",
                                                 name, text);
}

struct words {
    const char **items;
    size_t count;
};

static hf_code read_statuses(unsigned *out, const char *name, const struct words *words,
                             hf_error *err)
{
    hf_code code = HF_OK;
    for (size_t i = 0; code == HF_OK && i < words->count; i++) {
        hf_status status = HF_PENDING;
        code = read_status(&status, name, words->items[i], err);
        *out |= 1u << status;
    }
    return code;
}

static hf_code store_words(void *record, const struct hf__member *member, const struct words *words,
                           hf_error *err)
{
    if (member->kind == HF__FIELD_STATUSES)
        return read_statuses((unsigned *)((char *)record + member->offset), member->name, words,
                             err);
    *(const char *const **)((char *)record + member->offset) = words->items;
    *(size_t *)((char *)record + member->count_offset) = words->count;
    return HF_OK;
}

static hf_code words_begin(struct words *words, const char *name, size_t count,
                           struct hf__arena *arena, hf_error *err)
{
    if (count > MOST_WORDS)
        return hf__fail(err, HF_INVALID, "\"%s\" has more than %d words", name, MOST_WORDS);
    words->items = hf__arena_calloc(arena, count + 1, sizeof *words->items);
    return words->items ? HF_OK : hf__nomem(err);
}

static hf_code split_words(struct words *words, const char *name, struct hf__arena *arena,
                           const char *text, hf_error *err)
{
    size_t most = 1;
    for (const char *at = text; *at; at++)
        most += *at == ',';
    hf_code code = words_begin(words, name, most, arena, err);
    while (code == HF_OK && *text) {
        size_t length = strcspn(text, ",");
        if (length > 0)
            code = copy_text(&words->items[words->count++], arena, text, length, err);
        text += length + (text[length] == ',');
    }
    return code;
}

hf_code hf__member_read_text(void *record, const struct hf__member *member, struct hf__arena *arena,
                             const char *text, hf_error *err)
{
    void *place = (char *)record + member->offset;
    const char *name = member->name;
    struct words words = { 0 };
    int64_t number = 0;
    hf_code code;
    switch (member->kind) {
    case HF__FIELD_JSON:
    case HF__FIELD_TEXT: return copy_text(place, arena, text, strlen(text), err);
    case HF__FIELD_INT:
        code = read_number(&number, name, text, INT_MIN, INT_MAX, err);
        *(int *)place = (int)number;
        return code;
    case HF__FIELD_INT64: return read_number(place, name, text, INT64_MIN, INT64_MAX, err);
    case HF__FIELD_BOOL: return read_bool(place, name, text, err);
    case HF__FIELD_TIME:
    case HF__FIELD_DURATION: return read_time(place, member, text, err);
    case HF__FIELD_SECONDS: return read_seconds(place, member, text, err);
    case HF__FIELD_ID: return read_id(place, name, text, err);
    case HF__FIELD_STATUS: return read_status(place, name, text, err);
    case HF__FIELD_WORDS:
    case HF__FIELD_STATUSES:
        code = split_words(&words, name, arena, text, err);
        return code == HF_OK ? store_words(record, member, &words, err) : code;
    }
    return hf__fail(err, HF_INTERNAL, "\"%s\" has no kind", name);
}

/* ---- JSON ---- */

static hf_code copy_string(const char **out, const char *name, struct hf__arena *arena,
                           const json_t *value, hf_error *err)
{
    if (!json_is_string(value))
        return hf__fail(err, HF_INVALID, "\"%s\" must be a string", name);
    if (strlen(json_string_value(value)) != json_string_length(value))
        return hf__fail(err, HF_INVALID, "\"%s\" must not have a NUL character", name);
    return copy_text(out, arena, json_string_value(value), json_string_length(value), err);
}

static hf_code read_string(const char **out, const char *name, struct hf__arena *arena,
                           const char *raw, hf_error *err)
{
    json_t *value = *raw == '"' ? json_loads(raw, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) : NULL;
    hf_code code = copy_string(out, name, arena, value, err);
    json_decref(value);
    return code;
}

/* What is no string is not looked into: it may be large. */
static hf_code read_item(const char **out, const char *name, struct hf__arena *arena,
                         const char *item, size_t length, hf_error *err)
{
    const char *raw = NULL;
    hf_code code = *item == '"' ? copy_text(&raw, arena, item, length, err)
                                : hf__fail(err, HF_INVALID, "\"%s\" must be a string", name);
    return code == HF_OK ? read_string(out, name, arena, raw, err) : code;
}

static hf_code read_array(struct words *words, const char *name, struct hf__arena *arena,
                          const char *raw, hf_error *err)
{
    const char *item;
    size_t length;
    size_t count = 0;
    for (size_t at = 0; *raw == '[' && hf__json_item_next(raw, &at, &item, &length);)
        count++;
    hf_code code = *raw == '['
                       ? words_begin(words, name, count, arena, err)
                       : hf__fail(err, HF_INVALID, "\"%s\" must be an array of strings", name);
    for (size_t at = 0; code == HF_OK && hf__json_item_next(raw, &at, &item, &length);
         words->count++)
        code = read_item(&words->items[words->count], name, arena, item, length, err);
    return code;
}

/* Kinds that are written as JSON strings; a duration may also be a number. */
static bool is_string_kind(enum hf__field_kind kind, const char *raw)
{
    return kind == HF__FIELD_TEXT || kind == HF__FIELD_TIME || kind == HF__FIELD_ID ||
           kind == HF__FIELD_STATUS ||
           ((kind == HF__FIELD_DURATION || kind == HF__FIELD_SECONDS) && *raw == '"');
}

static hf_code read_value(void *record, const struct hf__member *member, struct hf__arena *arena,
                          const char *raw, hf_error *err)
{
    struct words words = { 0 };
    hf_code code = HF_OK;
    if (member->kind == HF__FIELD_WORDS || member->kind == HF__FIELD_STATUSES) {
        code = read_array(&words, member->name, arena, raw, err);
        return code == HF_OK ? store_words(record, member, &words, err) : code;
    }
    if (is_string_kind(member->kind, raw))
        code = read_string(&raw, member->name, arena, raw, err);
    return code == HF_OK ? hf__member_read_text(record, member, arena, raw, err) : code;
}

const struct hf__member *hf__member_find(const struct hf__member *members, const char *name)
{
    for (; members && members->name; members++)
        if (strcmp(members->name, name) == 0)
            return members;
    return NULL;
}

/* As many as there is room for. */
static hf_code none_but(const struct hf__member *members, const char *name, hf_error *err)
{
    char names[300] = "";
    size_t length = 0;
    for (const struct hf__member *member = members; member && member->name; member++) {
        if (length + strlen(member->name) + 8 > sizeof names) {
            strcpy(names + length, ", ...");
            break;
        }
        length += (size_t)snprintf(names + length, sizeof names - length, "%s%s",
                                   length ? ", " : "", member->name);
    }
    if (!*names)
        return hf__fail(err, HF_INVALID, "there is no member \"%.60s\": none is expected", name);
    return hf__fail(err, HF_INVALID, "there is no member \"%.60s\"; there are %s", name, names);
}

hf_code hf__member_unknown(const struct hf__member *members, const char *name, hf_error *err)
{
    struct hf__suggestion suggestion;
    hf__suggest_start(&suggestion, name);
    for (const struct hf__member *member = members; member && member->name; member++)
        hf__suggest_offer(&suggestion, member->name);
    if (suggestion.best)
        return hf__fail(err, HF_INVALID, "there is no member \"%.60s\"; did you mean \"%s\"?", name,
                        suggestion.best);
    return none_but(members, name, err);
}

static hf_code read_member(void *record, const struct hf__member *members, struct hf__arena *arena,
                           const struct hf__json_member *found, unsigned *seen, unsigned *given,
                           hf_error *err)
{
    const char *name = NULL;
    const char *raw = NULL;
    hf_code code = copy_text(&name, arena, found->name, found->name_length, err);
    if (code == HF_OK)
        code = copy_text(&raw, arena, found->value, found->value_length, err);
    if (code != HF_OK)
        return code;
    const struct hf__member *member = hf__member_find(members, name);
    if (!member && !hf__member_find(members, "*"))
        return hf__member_unknown(members, name, err);
    if (!member || strcmp(raw, "null") == 0)
        return HF_OK;
    if (given)
        *given |= member->bit;
    *seen |= 1u << (member - members) % 32;
    return read_value(record, member, arena, raw, err);
}

static hf_code check_required(const struct hf__member *members, unsigned seen, hf_error *err)
{
    for (const struct hf__member *member = members; member->name; member++)
        if (member->required && !(seen & 1u << (member - members) % 32))
            return hf__fail(err, HF_INVALID, "\"%s\" is missing", member->name);
    return HF_OK;
}

hf_code hf__members_read(void *record, const struct hf__member *members, struct hf__arena *arena,
                         const char *json, size_t length, unsigned *given, hf_error *err)
{
    unsigned seen = 0; /* tables with required members have at most 32 */
    hf_code code = hf__json_check(json, length, err);
    if (code != HF_OK)
        return hf__fail(err, code, "it is not JSON: %s", err->message);
    if (!hf__json_is_object(json))
        return hf__fail(err, HF_INVALID, "it must be a JSON object");
    struct hf__json_member found;
    for (size_t at = 0; code == HF_OK && hf__json_member_next(json, &at, &found);)
        code = read_member(record, members, arena, &found, &seen, given, err);
    return code == HF_OK ? check_required(members, seen, err) : code;
}
