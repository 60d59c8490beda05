/* Forking: a new run that remembers what an old one had done up to a chosen step.
 * SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <string.h>

#include "client/brood.h"
#include "client/check.h"
#include "client/client.h"
#include "util/arena.h"
#include "util/buffer.h"
#include "util/error.h"
#include "util/json.h"

#define PAGE 1000
#define MAX_STEPS 10000
#define MAX_BYTES                                                                                  \
    ((size_t)64 * 1024 * 1024) /* of remembered steps: one transaction writes them all */
#define NAMES_SHOWN 300        /* bytes of step names in an error */

struct fork {
    hf_client *client;
    hf_run *source;
    const char *step; /* where the new run begins; NULL: at the beginning */
    hf_fork_options options;
    struct hf__arena arena;
    hf_new_event *events; /* the first is forked_from, then the steps that are kept */
    size_t count;
    size_t capacity;
    size_t bytes;
    bool found;              /* `step` is in the journal */
    struct hf__buffer names; /* of the steps that there are, for the error */
    bool names_cut;
    size_t unseen;       /* children that kept steps started and whose ends no kept step has seen */
    const char *starter; /* the first step that started some of those */
};

/* ---- What is kept ---- */

static hf_code keep(struct fork *fork, hf_new_event event, hf_error *err)
{
    if (fork->count == fork->capacity) {
        size_t capacity = fork->capacity ? fork->capacity * 2 : 64;
        hf_new_event *grown = hf__arena_calloc(&fork->arena, capacity, sizeof *grown);
        if (!grown)
            return hf__nomem(err);
        if (fork->count > 0)
            memcpy(grown, fork->events, fork->count * sizeof *grown);
        fork->events = grown;
        fork->capacity = capacity;
    }
    fork->events[fork->count++] = event;
    return HF_OK;
}

/* Children belong to the old run, and so do their ends. `children` remembers those that it started, `children_wait` the
 * ends that it has seen, null for those that were still missing. */
static void note_children(struct fork *fork, const hf_new_event *event)
{
    json_t *data = event->data ? json_loads(event->data, JSON_DECODE_ANY, NULL) : NULL;
    const json_t *output = json_object_get(data, "output");
    const char *op = json_string_value(json_object_get(data, "op"));
    if (op && strcmp(op, "children") == 0) {
        struct hf__brood brood = { 0 };
        if (fork->unseen == 0)
            fork->starter = event->step;
        if (hf__brood_read(output, &brood))
            fork->unseen += brood.count;
    } else if (op && strcmp(op, "children_wait") == 0) {
        for (size_t i = 0; i < json_array_size(output) && fork->unseen > 0; i++)
            fork->unseen -= !json_is_null(json_array_get(output, i));
    }
    json_decref(data);
}

static hf_code keep_step(struct fork *fork, const hf_event *event, hf_error *err)
{
    hf_new_event kept = {
        .kind = "step",
        .name = strcmp(event->name, "failed") == 0 ? "failed" : "succeeded",
        .step = hf__arena_strdup(&fork->arena, event->step),
        .data = hf__arena_strdup(&fork->arena, event->data),
    };
    if (!kept.step || (event->data && !kept.data))
        return hf__nomem(err);
    fork->bytes += event->data ? strlen(event->data) : 0;
    if (fork->count > MAX_STEPS || fork->bytes > MAX_BYTES)
        return hf__fail(
            err, HF_TOO_LARGE,
            "there are more than %d steps or %zu MiB to keep: fork from an earlier step", MAX_STEPS,
            MAX_BYTES / 1024 / 1024);
    note_children(fork, &kept);
    return keep(fork, kept, err);
}

/* A step that was tried again has several lines. */
static bool is_noted(const struct fork *fork, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = fork->names.data; at && (at = strstr(at, name)); at++)
        if (at > fork->names.data && at[-1] == '"' && at[length] == '"')
            return true;
    return false;
}

static void note_name(struct fork *fork, const char *name)
{
    if (fork->names_cut || is_noted(fork, name))
        return;
    fork->names_cut = fork->names.length + strlen(name) > NAMES_SHOWN;
    if (fork->names_cut)
        hf__buffer_add_text(&fork->names, fork->names.length ? " and others" : "others");
    else
        hf__buffer_addf(&fork->names, "%s\"%s\"", fork->names.length ? ", " : "", name);
}

/* The end of a sleep or a pause has no line of its own: that another call came after it tells. */
static bool is_passed(const hf_event *event)
{
    json_t *data = event->data ? json_loads(event->data, JSON_DECODE_ANY, NULL) : NULL;
    const char *op = json_string_value(json_object_get(data, "op"));
    bool passed = op && (strcmp(op, "sleep") == 0 || strcmp(op, "pause") == 0);
    json_decref(data);
    return passed;
}

/* One line of the old journal. What has only begun to wait is not kept: the new run waits for itself. */
static hf_code take_event(struct fork *fork, const hf_event *event, hf_error *err)
{
    if (strcmp(event->kind, "step") != 0 || !event->step)
        return HF_OK;
    if (strcmp(event->step, fork->step) == 0) {
        fork->found = true;
        return HF_OK;
    }
    if (strcmp(event->name, "waiting") == 0 && !is_passed(event))
        return HF_OK;
    note_name(fork, event->step);
    return keep_step(fork, event, err);
}

static hf_code take_events(struct fork *fork, hf_error *err)
{
    int64_t seq = 0;
    size_t got = PAGE;
    hf_code code = HF_OK;
    while (code == HF_OK && got == PAGE && !fork->found) {
        hf_events *page = NULL;
        code = hf_events_list(fork->client, &page, fork->source->id, seq, PAGE, err);
        got = code == HF_OK ? page->count : 0;
        for (size_t i = 0; code == HF_OK && i < got && !fork->found; i++)
            code = take_event(fork, &page->items[i], err);
        seq = got > 0 ? page->items[got - 1].seq : seq;
        hf_events_free(page);
    }
    return code;
}

/* The steps of the old run up to the chosen one. */
static hf_code take_steps(struct fork *fork, hf_error *err)
{
    if (!fork->step)
        return HF_OK;
    hf_code code = take_events(fork, err);
    if (code != HF_OK || fork->found)
        return code;
    if (!fork->names.data)
        return hf__fail(err, HF_INVALID,
                        "the run has no step \"%.100s\": it has none at all; fork it from the "
                        "beginning",
                        fork->step);
    return hf__fail(err, HF_INVALID, "the run has no step \"%.100s\"; it has %s", fork->step,
                    fork->names.data);
}

static hf_code check_children(const struct fork *fork, hf_error *err)
{
    if (fork->unseen == 0)
        return HF_OK;
    return hf__fail(err, HF_NOT_ALLOWED,
                    "the step \"%.100s\" started children whose ends were not waited for before "
                    "\"%.100s\", and which belong to the old run: fork from \"%.100s\" or an "
                    "earlier step",
                    fork->starter, fork->step, fork->starter);
}

/* ---- The new run ---- */

static void add_text(struct hf__buffer *json, const char *name, const char *text)
{
    if (!text)
        return;
    hf__buffer_addf(json, ",\"%s\":", name);
    hf__buffer_add_json_string(json, text, strlen(text));
}

static hf_code keep_origin(struct fork *fork, hf_error *err)
{
    char id[HF_ID_TEXT];
    hf_id_format(fork->source->id, id);
    struct hf__buffer json = { 0 };
    hf__buffer_addf(&json, "{\"run\":\"%s\"", id);
    add_text(&json, "step", fork->step);
    add_text(&json, "reason", fork->options.reason);
    hf__buffer_add_text(&json, "}");
    char *data = json.failed ? NULL : hf__arena_strdup(&fork->arena, json.data);
    hf__buffer_free(&json);
    if (!data)
        return hf__nomem(err);
    return keep(fork, (hf_new_event){ .kind = "domain", .name = "forked_from", .data = data }, err);
}

/* The tags, stored as a JSON array, as a trigger wants them. */
static hf_code read_tags(struct fork *fork, hf_trigger_spec *spec, hf_error *err)
{
    hf_code code = HF_OK;
    json_t *array = fork->source->tags ? json_loads(fork->source->tags, 0, NULL) : NULL;
    size_t count = json_array_size(array);
    const char **tags = hf__arena_calloc(&fork->arena, count + 1, sizeof *tags);
    for (size_t i = 0; tags && code == HF_OK && i < count; i++) {
        tags[i] = hf__arena_strdup(&fork->arena, json_string_value(json_array_get(array, i)));
        if (!tags[i])
            code = hf__nomem(err);
    }
    json_decref(array);
    spec->tags = tags;
    spec->tag_count = count;
    return tags ? code : hf__nomem(err);
}

static bool is_same_origin(const struct fork *fork, const hf_events *events)
{
    return events->count > 0 && strcmp(events->items[0].name, "forked_from") == 0 &&
           hf__json_equal(events->items[0].data, fork->events[0].data);
}

/* The key had a run already: the same fork, sent again, or something else. */
static hf_code check_existing(struct fork *fork, hf_triggered *out, hf_error *err)
{
    hf_events *events = NULL;
    hf_code code = hf_events_list(fork->client, &events, out->id, 1, 1, err);
    if (code == HF_OK && !is_same_origin(fork, events)) {
        char id[HF_ID_TEXT];
        hf_id_format(out->id, id);
        code = hf__fail(err, HF_CONFLICT,
                        "the key \"%.100s\" belongs to run %s, which is not this fork: use another "
                        "key",
                        fork->options.key, id);
    }
    hf_events_free(events);
    return code;
}

static hf_code start(struct fork *fork, hf_triggered *out, hf_error *err)
{
    const hf_run *source = fork->source;
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    hf_transition first = {
        .version = HF_TRANSITION_VERSION,
        .turn = HF_TURN_RETRY,
        .events = fork->events,
        .event_count = fork->count,
    };
    spec.workflow = source->workflow;
    spec.input = fork->options.input ? fork->options.input : source->input;
    spec.key = fork->options.key;
    spec.priority = source->priority;
    spec.subject = source->subject;
    spec.reference = source->reference;
    spec.partition = source->partition;
    spec.flow_key = source->flow_key;
    spec.trace = source->trace && hf__trace_valid(source->trace) ? source->trace : NULL;
    hf_code code = read_tags(fork, &spec, err);
    if (code == HF_OK)
        code = hf_trigger_with(fork->client, out, &spec, &first, err);
    if (code == HF_OK && out->existed)
        code = check_existing(fork, out, err);
    return code;
}

static hf_code check_options(const struct fork *fork, hf_error *err)
{
    hf_code code =
        hf__check_version("hf_fork_options", fork->options.version, HF_FORK_VERSION, err);
    if (code == HF_OK)
        code = hf__check_optional_label("step", fork->step, err);
    if (code == HF_OK && fork->options.reason)
        code = hf__check_change(
            &(hf_change){ .version = HF_CHANGE_VERSION, .reason = fork->options.reason }, err);
    return code;
}

hf_code hf_fork(hf_client *client, hf_triggered *out, hf_id run, const char *step,
                const hf_fork_options *options, hf_error *err)
{
    static const hf_fork_options defaults = HF_FORK_INIT;
    struct fork fork = { .client = client, .step = step, .options = options ? *options : defaults };
    *out = (hf_triggered){ 0 };
    hf_code code = check_options(&fork, err);
    if (code == HF_OK)
        code = hf_get(client, &fork.source, run, err);
    if (code == HF_OK && fork.source->deleted_at)
        code = hf__fail(err, HF_NOT_ALLOWED, "the run is deleted: restore it first");
    if (code == HF_OK)
        code = keep_origin(&fork, err);
    if (code == HF_OK)
        code = take_steps(&fork, err);
    if (code == HF_OK)
        code = check_children(&fork, err);
    if (code == HF_OK)
        code = start(&fork, out, err);
    out->code = code;
    hf__buffer_free(&fork.names);
    hf__arena_free(&fork.arena);
    hf_run_free(fork.source);
    return code;
}
