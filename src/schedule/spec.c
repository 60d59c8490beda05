/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/spec.h"

#include "util/buffer.h"
#include "util/error.h"

#include <jansson.h>
#include <string.h>

/* ---- Names ---- */

static const char *const overlap_names[] = {
    [HF_OVERLAP_SKIP] = "skip",
    [HF_OVERLAP_ALLOW] = "allow",
    [HF_OVERLAP_QUEUE] = "queue",
    [HF_OVERLAP_CANCEL] = "cancel",
};
static const char *const catch_up_names[] = {
    [HF_CATCH_UP_ONE] = "one",
    [HF_CATCH_UP_NONE] = "none",
    [HF_CATCH_UP_ALL] = "all",
};
#define COUNT(array) (sizeof(array) / sizeof *(array))

static int find_name(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; name && i < count; i++)
        if (strcmp(names[i], name) == 0)
            return (int)i;
    return -1;
}

const char *hf_overlap_name(hf_overlap overlap)
{
    return (size_t)overlap < COUNT(overlap_names) ? overlap_names[overlap] : "unknown";
}

bool hf_overlap_parse(const char *name, hf_overlap *out)
{
    int found = find_name(overlap_names, COUNT(overlap_names), name);
    if (found >= 0)
        *out = (hf_overlap)found;
    return found >= 0;
}

const char *hf_catch_up_name(hf_catch_up catch_up)
{
    return (size_t)catch_up < COUNT(catch_up_names) ? catch_up_names[catch_up] : "unknown";
}

bool hf_catch_up_parse(const char *name, hf_catch_up *out)
{
    int found = find_name(catch_up_names, COUNT(catch_up_names), name);
    if (found >= 0)
        *out = (hf_catch_up)found;
    return found >= 0;
}

/* ---- Writing ---- */

static void add_text(struct hf__buffer *json, const char *name, const char *text)
{
    hf__buffer_addf(json, "\"%s\":", name);
    hf__buffer_add_json_string(json, text, strlen(text));
    hf__buffer_add_text(json, ",");
}

static void add_spec(struct hf__buffer *json, const hf_schedule_spec *spec)
{
    hf__buffer_add_text(json, "{");
    add_text(json, "cron", spec->cron);
    add_text(json, "timezone", spec->timezone ? spec->timezone : "UTC");
    add_text(json, "workflow", spec->workflow);
    add_text(json, "input", spec->input ? spec->input : "null");
    add_text(json, "overlap", hf_overlap_name(spec->overlap));
    add_text(json, "catch_up", hf_catch_up_name(spec->catch_up));
    hf__buffer_addf(json, "\"priority\":%d,\"tags\":[", spec->priority);
    for (size_t i = 0; i < spec->tag_count; i++) {
        hf__buffer_add_text(json, i ? "," : "");
        hf__buffer_add_json_string(json, spec->tags[i], strlen(spec->tags[i]));
    }
    hf__buffer_add_text(json, "]}");
}

static char *keep(struct hf__buffer *json, struct hf__arena *arena)
{
    char *text = json->failed ? NULL : hf__arena_strdup(arena, json->data);
    hf__buffer_free(json);
    return text;
}

char *hf__schedule_spec_json(const hf_schedule_spec *spec, struct hf__arena *arena)
{
    struct hf__buffer json = { 0 };
    add_spec(&json, spec);
    return keep(&json, arena);
}

char *hf__schedule_state_json(const struct hf__schedule_state *state, struct hf__arena *arena)
{
    struct hf__buffer json = { 0 };
    char run[HF_ID_TEXT] = "";
    if (!hf_id_is_zero(state->last_run))
        hf_id_format(state->last_run, run);
    hf__buffer_add_text(&json, "{\"spec\":");
    add_spec(&json, &state->spec);
    hf__buffer_addf(&json,
                    ",\"from\":%lld,\"last_at\":%lld,\"last_run\":\"%s\",\"fired\":%lld,"
                    "\"skipped\":%lld,\"queue\":[",
                    (long long)state->from, (long long)state->last_at, run, (long long)state->fired,
                    (long long)state->skipped);
    for (int i = 0; i < state->queued; i++)
        hf__buffer_addf(&json, "%s%lld", i ? "," : "", (long long)state->queue[i]);
    hf__buffer_add_text(&json, "]}");
    return keep(&json, arena);
}

/* ---- Reading ---- */

static const char *text_of(const json_t *object, const char *name, struct hf__arena *arena)
{
    return hf__arena_strdup(arena, json_string_value(json_object_get(object, name)));
}

static int64_t number_of(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static bool read_tags(hf_schedule_spec *out, const json_t *tags, struct hf__arena *arena)
{
    size_t count = json_array_size(tags);
    const char **texts = hf__arena_calloc(arena, count + 1, sizeof *texts);
    for (size_t i = 0; texts && i < count; i++)
        if (!(texts[i] = hf__arena_strdup(arena, json_string_value(json_array_get(tags, i)))))
            return false;
    out->tags = texts;
    out->tag_count = count;
    return texts != NULL;
}

static hf_code read_spec(hf_schedule_spec *out, const json_t *json, struct hf__arena *arena,
                         hf_error *err)
{
    *out = (hf_schedule_spec)HF_SCHEDULE_INIT;
    out->cron = text_of(json, "cron", arena);
    out->timezone = text_of(json, "timezone", arena);
    out->workflow = text_of(json, "workflow", arena);
    out->input = text_of(json, "input", arena);
    int64_t priority = number_of(json, "priority");
    out->priority = (int)priority;
    if (out->cron && out->timezone && out->workflow && out->input && priority == out->priority &&
        hf_overlap_parse(json_string_value(json_object_get(json, "overlap")), &out->overlap) &&
        hf_catch_up_parse(json_string_value(json_object_get(json, "catch_up")), &out->catch_up) &&
        read_tags(out, json_object_get(json, "tags"), arena))
        return HF_OK;
    return hf__fail(err, HF_INVALID, "these are not the settings of a schedule");
}

hf_code hf__schedule_spec_read(hf_schedule_spec *out, const char *json, struct hf__arena *arena,
                               hf_error *err)
{
    json_t *root = json_loads(json ? json : "null", JSON_DECODE_ANY, NULL);
    hf_code code = read_spec(out, root, arena, err);
    json_decref(root);
    return code;
}

hf_code hf__schedule_state_read(struct hf__schedule_state *out, const char *json,
                                struct hf__arena *arena, hf_error *err)
{
    *out = (struct hf__schedule_state){ 0 };
    json_t *root = json_loads(json ? json : "null", JSON_DECODE_ANY, NULL);
    hf_code code = read_spec(&out->spec, json_object_get(root, "spec"), arena, err);
    const char *run = json_string_value(json_object_get(root, "last_run"));
    const json_t *queue = json_object_get(root, "queue");
    out->from = number_of(root, "from");
    out->last_at = number_of(root, "last_at");
    out->fired = number_of(root, "fired");
    out->skipped = number_of(root, "skipped");
    if (code == HF_OK && run && *run && !hf_id_parse(run, &out->last_run))
        code = hf__fail(err, HF_INVALID, "the schedule's state names no run");
    for (size_t i = 0; i < json_array_size(queue) && i < HF__SCHEDULE_QUEUE; i++)
        out->queue[out->queued++] = json_integer_value(json_array_get(queue, i));
    json_decref(root);
    return code;
}

hf_code hf__schedule_clock(const hf_schedule_spec *spec, struct hf__cron *cron,
                           struct hf__zone *zone, hf_error *err)
{
    hf_code code = hf__cron_parse(cron, spec->cron, err);
    return code == HF_OK ? hf__zone_load(zone, spec->timezone ? spec->timezone : "UTC", err) : code;
}
