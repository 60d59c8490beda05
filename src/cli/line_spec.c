/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/line_spec.h"

#include "cli/input.h"
#include "cli/members.h"
#include "cli/option.h"
#include "cli/suggest.h"
#include "util/duration.h"
#include "util/error.h"
#include "util/json.h"

#include <jansson.h>
#include <limits.h>
#include <string.h>

enum kind { TEXT, NUMBER, TIME, DURATION, SWITCH, TAGS, RAW };

enum { MOST_TAGS = 1000 }; /* far above what the library accepts; bounds the array alone */

static const struct member {
    const char *name;
    enum kind kind;
    size_t offset; /* in hf_trigger_spec */
} members[] = {
    { "workflow", TEXT, offsetof(hf_trigger_spec, workflow) },
    { "input", RAW, offsetof(hf_trigger_spec, input) },
    { "key", TEXT, offsetof(hf_trigger_spec, key) },
    { "flow_key", TEXT, offsetof(hf_trigger_spec, flow_key) },
    { "debounce", TEXT, offsetof(hf_trigger_spec, debounce_key) },
    { "for", DURATION, offsetof(hf_trigger_spec, debounce_for) },
    { "at_most", DURATION, offsetof(hf_trigger_spec, debounce_at_most) },
    { "priority", NUMBER, offsetof(hf_trigger_spec, priority) },
    { "at", TIME, offsetof(hf_trigger_spec, run_at) },
    { "in", DURATION, offsetof(hf_trigger_spec, delay) },
    { "deadline", TIME, offsetof(hf_trigger_spec, timeout_at) },
    { "timeout", DURATION, offsetof(hf_trigger_spec, timeout) },
    { "tags", TAGS, offsetof(hf_trigger_spec, tags) },
    { "subject", TEXT, offsetof(hf_trigger_spec, subject) },
    { "reference", TEXT, offsetof(hf_trigger_spec, reference) },
    { "partition", TEXT, offsetof(hf_trigger_spec, partition) },
    { "max_attempts", NUMBER, offsetof(hf_trigger_spec, max_attempts) },
    { "trace", TEXT, offsetof(hf_trigger_spec, trace) },
    { "require_worker", SWITCH, offsetof(hf_trigger_spec, require_worker) },
};

enum { MEMBER_COUNT = sizeof members / sizeof members[0] };

static hf_code copy_text(const char **out, struct hf__arena *arena, const char *text, size_t length,
                         hf_error *err)
{
    *out = hf__arena_strndup(arena, text, length);
    return *out ? HF_OK : hf__nomem(err);
}

static hf_code read_string(const char **out, const char *name, struct hf__arena *arena,
                           const char *raw, hf_error *err)
{
    json_t *value = json_loads(raw, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    hf_code code;
    if (!json_is_string(value))
        code = hf__fail(err, HF_INVALID, "\"%s\" must be a string", name);
    else if (strlen(json_string_value(value)) != json_string_length(value))
        code = hf__fail(err, HF_INVALID, "\"%s\" must not have a NUL character", name);
    else
        code = copy_text(out, arena, json_string_value(value), json_string_length(value), err);
    json_decref(value);
    return code;
}

static hf_code read_number(int *out, const char *name, const char *raw, hf_error *err)
{
    int64_t number = 0;
    hf_code code = cli_number_parse(name, raw, INT_MIN, INT_MAX, &number, err);
    *out = (int)number;
    return code;
}

static hf_code read_time(int64_t *out, const char *name, enum kind kind, struct hf__arena *arena,
                         const char *raw, hf_error *err)
{
    const char *text = raw; /* a bare number is seconds, as on the command line */
    hf_code code = HF_OK;
    if (kind == TIME || *raw == '"')
        code = read_string(&text, name, arena, raw, err);
    if (code != HF_OK)
        return code;
    code = kind == TIME ? hf__time_parse(text, out, err) : hf__duration_parse(text, out, err);
    return code == HF_OK ? HF_OK : hf__fail(err, code, "\"%s\": %s", name, err->message);
}

static hf_code read_switch(bool *out, const char *name, const char *raw, hf_error *err)
{
    *out = strcmp(raw, "true") == 0;
    if (!*out && strcmp(raw, "false") != 0)
        return hf__fail(err, HF_INVALID, "\"%s\" must be true or false", name);
    return HF_OK;
}

static hf_code copy_tags(hf_trigger_spec *spec, struct hf__arena *arena, const json_t *array,
                         hf_error *err)
{
    size_t count = json_array_size(array);
    if (count > MOST_TAGS)
        return hf__fail(err, HF_INVALID, "\"tags\" has more than %d tags", MOST_TAGS);
    const char **tags = hf__arena_calloc(arena, count + 1, sizeof *tags);
    if (!tags)
        return hf__nomem(err);
    for (size_t i = 0; i < count; i++) {
        const json_t *tag = json_array_get(array, i);
        if (!json_is_string(tag))
            return hf__fail(err, HF_INVALID, "\"tags\" must be strings");
        tags[i] = hf__arena_strdup(arena, json_string_value(tag));
        if (!tags[i])
            return hf__nomem(err);
    }
    spec->tags = tags;
    spec->tag_count = count;
    return HF_OK;
}

static hf_code read_tags(hf_trigger_spec *spec, struct hf__arena *arena, const char *raw,
                         hf_error *err)
{
    json_t *array = json_loads(raw, 0, NULL);
    hf_code code = json_is_array(array)
                       ? copy_tags(spec, arena, array, err)
                       : hf__fail(err, HF_INVALID, "\"tags\" must be an array of strings");
    json_decref(array);
    return code;
}

static hf_code read_member(hf_trigger_spec *spec, const struct member *member,
                           struct hf__arena *arena, const char *raw, hf_error *err)
{
    void *place = (char *)spec + member->offset;
    switch (member->kind) {
    case TEXT: return read_string(place, member->name, arena, raw, err);
    case NUMBER: return read_number(place, member->name, raw, err);
    case TIME:
    case DURATION: return read_time(place, member->name, member->kind, arena, raw, err);
    case SWITCH: return read_switch(place, member->name, raw, err);
    case TAGS: return read_tags(spec, arena, raw, err);
    case RAW: *(const char **)place = raw; return HF_OK;
    }
    return hf__fail(err, HF_INTERNAL, "\"%s\" has no kind", member->name);
}

static hf_code unknown_member(const char *name, hf_error *err)
{
    struct cli_suggestion suggestion;
    cli_suggest_start(&suggestion, name);
    for (int i = 0; i < MEMBER_COUNT; i++)
        cli_suggest_offer(&suggestion, members[i].name);
    if (suggestion.best)
        return hf__fail(err, HF_INVALID, "there is no member \"%.60s\"; did you mean \"%s\"?", name,
                        suggestion.best);
    return hf__fail(err, HF_INVALID,
                    "there is no member \"%.60s\"; see `holdfast help trigger` for those that are",
                    name);
}

static hf_code add_member(hf_trigger_spec *spec, struct hf__arena *arena,
                          const struct cli_member *found, hf_error *err)
{
    const char *name;
    const char *raw;
    hf_code code = copy_text(&name, arena, found->name, found->name_length, err);
    if (code == HF_OK)
        code = copy_text(&raw, arena, found->value, found->value_length, err);
    if (code != HF_OK)
        return code;
    for (int i = 0; i < MEMBER_COUNT; i++)
        if (strcmp(members[i].name, name) == 0)
            return strcmp(raw, "null") == 0 ? HF_OK
                                            : read_member(spec, &members[i], arena, raw, err);
    return unknown_member(name, err);
}

static hf_code read_object(hf_trigger_spec *spec, struct hf__arena *arena, const char *line,
                           hf_error *err)
{
    if (!cli_is_object(line))
        return hf__fail(err, HF_INVALID, "with --full a line must be an object");
    struct cli_member member;
    hf_code code = HF_OK;
    for (size_t at = 0; code == HF_OK && cli_member_next(line, &at, &member);)
        code = add_member(spec, arena, &member, err);
    if (code == HF_OK && !spec->workflow)
        return hf__fail(err, HF_INVALID, "which workflow? add \"workflow\", or give it as operand");
    return code;
}

hf_code cli_line_spec(hf_trigger_spec *spec, struct hf__arena *arena, const char *line,
                      size_t length, bool full, hf_error *err)
{
    hf_code code = hf__json_check(line, length, err);
    if (code != HF_OK)
        return hf__fail(err, code, "it is not JSON: %s", err->message);
    if (full)
        return read_object(spec, arena, line, err);
    if (length > cli_max_payload())
        return hf__fail(err, HF_TOO_LARGE, "the input is larger than %zu bytes", cli_max_payload());
    return copy_text(&spec->input, arena, line, length, err);
}
