/* SPDX-License-Identifier: Apache-2.0 */
#include "record/step_lines.h"

#include "client/read.h"
#include "util/alloc.h"
#include "util/json_members.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 500, PAGE_BYTES = 1 << 20 }; /* of the journal, at once */

#define FIELD(member, name, kind)                                                                  \
    {                                                                                              \
        name, HF__FIELD_##kind, offsetof(struct hf__step_line, member)                             \
    }

const struct hf__field hf__step_fields[] = {
    FIELD(seq, "seq", INT64),        FIELD(name, "name", TEXT),         FIELD(op, "op", TEXT),
    FIELD(status, "status", TEXT),   FIELD(attempt, "attempt", INT64),  FIELD(at, "at", TIME),
    FIELD(started, "started", TIME), FIELD(finished, "finished", TIME), FIELD(until, "until", TIME),
    FIELD(output, "output", JSON),   FIELD(error, "error", TEXT),       { NULL, HF__FIELD_TEXT, 0 },
};

size_t hf__step_base(const char *name)
{
    size_t length = strlen(name);
    size_t digits = 0;
    while (digits < length && name[length - digits - 1] >= '0' && name[length - digits - 1] <= '9')
        digits++;
    bool numbered = digits && digits < length && name[length - digits - 1] == '#';
    return numbered ? length - digits - 1 : length;
}

/* ---- Reading one event's data ---- */

static bool is_named(const struct hf__json_member *member, const char *name)
{
    return member->name_length == strlen(name) &&
           memcmp(member->name, name, member->name_length) == 0;
}

/* A string without its quotes; any other value as it is written; null is nothing. */
static char *plain_text(const struct hf__json_member *member)
{
    json_t *value = json_loadb(member->value, member->value_length, JSON_DECODE_ANY, NULL);
    char *text = NULL;
    if (json_is_string(value))
        text = hf__strdup(json_string_value(value));
    else if (!json_is_null(value))
        text = hf__strndup(member->value, member->value_length);
    json_decref(value);
    return text;
}

static int64_t number(const struct hf__json_member *member)
{
    json_t *value = json_loadb(member->value, member->value_length, JSON_DECODE_ANY, NULL);
    int64_t result = json_is_integer(value) ? (int64_t)json_integer_value(value) : 0;
    json_decref(value);
    return result;
}

static void replace(char **text, char *with)
{
    free(*text);
    *text = with;
}

static void read_member(struct hf__step_line *step, const struct hf__json_member *member)
{
    if (is_named(member, "op"))
        replace(&step->op, plain_text(member));
    else if (is_named(member, "error"))
        replace(&step->error, plain_text(member));
    else if (is_named(member, "output"))
        replace(&step->output, hf__strndup(member->value, member->value_length));
    else if (is_named(member, "attempt"))
        step->attempt = number(member);
    else if (is_named(member, "started"))
        step->started = number(member);
    else if (is_named(member, "finished"))
        step->finished = number(member);
    else if (is_named(member, "until"))
        step->until = number(member);
}

static void read_data(struct hf__step_line *step, const char *data)
{
    struct hf__json_member member;
    size_t at = 0;
    while (data && hf__json_is_object(data) && hf__json_member_next(data, &at, &member))
        read_member(step, &member);
}

/* ---- Gathering ---- */

static struct hf__step_line *last_of(const struct hf__step_lines *steps, const char *name)
{
    for (size_t i = steps->count; i > 0; i--)
        if (strcmp(steps->items[i - 1].name, name) == 0)
            return &steps->items[i - 1];
    return NULL;
}

static struct hf__step_line *new_step(struct hf__step_lines *steps, const char *name)
{
    if (steps->count == steps->capacity) {
        size_t capacity = steps->capacity ? steps->capacity * 2 : 32;
        struct hf__step_line *grown = hf__realloc(steps->items, capacity * sizeof *grown);
        if (!grown)
            return NULL;
        steps->items = grown;
        steps->capacity = capacity;
    }
    struct hf__step_line *step = &steps->items[steps->count];
    *step = (struct hf__step_line){ .name = hf__strdup(name), .took = -1 };
    if (!step->name)
        return NULL;
    steps->count++;
    return step;
}

static bool is_waiting(const struct hf__step_line *step)
{
    return step->status && strcmp(step->status, "waiting") == 0;
}

static bool is_asleep(const struct hf__step_line *step)
{
    return is_waiting(step) && step->until && step->op && strcmp(step->op, "sleep") == 0;
}

static int64_t span_of(const struct hf__step_line *step)
{
    if (step->started && step->finished >= step->started)
        return step->finished - step->started;
    return -1;
}

static int64_t size_of(const struct hf__step_line *step)
{
    size_t texts = strlen(step->name) + (step->output ? strlen(step->output) : 0) +
                   (step->error ? strlen(step->error) : 0);
    return (int64_t)(sizeof *step + texts);
}

static void empty(struct hf__step_line *step)
{
    replace(&step->output, NULL);
    replace(&step->error, NULL);
}

/* After a line has got what it holds now, where it held `before`: is it one of those that keep it, and have all of these
 * room? */
static void make_room(struct hf__step_lines *steps, size_t place, int64_t before)
{
    if (place < steps->first || place >= steps->end) {
        empty(&steps->items[place]);
        return;
    }
    steps->bytes += size_of(&steps->items[place]) - before;
    size_t end = steps->end < steps->count ? steps->end : steps->count;
    while (steps->bytes > steps->room && end > steps->first + 1) {
        struct hf__step_line *last = &steps->items[--end];
        steps->bytes -= size_of(last);
        empty(last);
        steps->end = end;
    }
}

static void add_step(struct hf__step_lines *steps, const hf_event *event)
{
    struct hf__step_line *step = last_of(steps, event->step);
    bool goes_on = step && is_waiting(step);
    int64_t begun = goes_on ? (step->started ? step->started : step->at) : 0;
    if (!goes_on)
        step = new_step(steps, event->step);
    if (!step) {
        steps->failed = true;
        return;
    }
    int64_t held = goes_on ? size_of(step) : 0;
    replace(&step->status, hf__strdup(event->name ? event->name : ""));
    empty(step);
    step->seq = event->seq;
    step->at = event->at;
    step->started = step->finished = step->until = 0;
    read_data(step, event->data);
    /* A wait has lasted since it began; a step's time is that of its last attempt. */
    if (begun && (!step->started || (step->op && strcmp(step->op, "step") != 0)))
        step->started = begun;
    if (is_waiting(step))
        step->finished = 0;
    else if (!step->finished && begun)
        step->finished = event->at;
    step->took = span_of(step);
    size_t place = (size_t)(step - steps->items) + 1;
    if (is_asleep(step))
        steps->asleep = place;
    else if (steps->asleep == place)
        steps->asleep = 0;
    make_room(steps, place - 1, held);
}

/* The end of a sleep has no line of its own: the first one after it tells that the run went on. */
static void end_sleep(struct hf__step_lines *steps, int64_t now)
{
    struct hf__step_line *sleep = steps->asleep ? &steps->items[steps->asleep - 1] : NULL;
    if (!sleep || now < sleep->until)
        return;
    replace(&sleep->status, hf__strdup("succeeded"));
    sleep->finished = sleep->until;
    sleep->took = span_of(sleep);
    steps->asleep = 0;
}

static void add_progress(struct hf__step_lines *steps, const hf_event *event)
{
    struct hf__json_member member;
    size_t at = 0;
    replace(&steps->message, NULL);
    while (event->data && hf__json_is_object(event->data) &&
           hf__json_member_next(event->data, &at, &member)) {
        if (is_named(&member, "percent")) {
            int64_t percent = number(&member);
            steps->percent = percent < 0 ? 0 : percent > 100 ? 100 : (int)percent;
        } else if (is_named(&member, "text")) {
            replace(&steps->message, plain_text(&member));
        }
    }
}

void hf__step_lines_add(struct hf__step_lines *steps, const hf_event *event)
{
    end_sleep(steps, event->at);
    if (strcmp(event->kind, "step") == 0 && event->step)
        add_step(steps, event);
    else if (strcmp(event->kind, "domain") == 0 && event->name &&
             strcmp(event->name, "progress") == 0)
        add_progress(steps, event);
}

const struct hf__step_line *hf__step_lines_find(const struct hf__step_lines *steps,
                                                const char *name)
{
    return last_of(steps, name);
}

void hf__step_lines_free(struct hf__step_lines *steps)
{
    for (size_t i = 0; i < steps->count; i++) {
        struct hf__step_line *step = &steps->items[i];
        free(step->name);
        free(step->op);
        free(step->status);
        free(step->output);
        free(step->error);
    }
    free(steps->items);
    free(steps->message);
    *steps = (struct hf__step_lines)HF__STEP_LINES_INIT;
}

hf_code hf__step_lines_read(hf_client *client, struct hf__step_lines *steps, hf_id run,
                            int64_t *seq, hf_error *err)
{
    bool more = true;
    while (more) {
        hf_events *page = NULL;
        hf_code code = hf__events_list(client, &page, run, *seq, PAGE, PAGE_BYTES, &more, err);
        if (code != HF_OK)
            return code;
        size_t got = page->count;
        for (size_t i = 0; i < got; i++)
            hf__step_lines_add(steps, &page->items[i]);
        *seq = got > 0 ? page->items[got - 1].seq : *seq;
        hf_events_free(page);
    }
    return HF_OK;
}
