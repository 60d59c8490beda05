/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

#include "util/alloc.h"
#include "util/buffer.h"
#include "util/clock.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Runs that become due are not always committed in the order of their run_at; this much disorder
 * is allowed for. */
#define FLOOR_SLACK HF_SECONDS(1)
#define REMEMBERED 1024 /* empty heads */

static int by_urgency(const void *a, const void *b)
{
    const struct hf__head *x = a, *y = b;
    if (x->priority != y->priority)
        return x->priority > y->priority ? -1 : 1;
    return (x->lane > y->lane) - (x->lane < y->lane);
}

static struct hf__head *find(const struct hf__heads *heads, int32_t lane, int priority)
{
    struct hf__head wanted = { .lane = lane, .priority = priority };
    if (!heads->count)
        return NULL;
    return bsearch(&wanted, heads->items, heads->count, sizeof wanted, by_urgency);
}

int64_t hf__heads_now(const struct hf__heads *heads)
{
    return heads->store_now + (hf__monotonic_us() - heads->read_at);
}

bool hf__heads_due(const struct hf__heads *heads)
{
    int64_t now = hf__heads_now(heads);
    for (size_t i = 0; i < heads->count; i++)
        if (heads->items[i].run_at <= now)
            return true;
    return false;
}

int64_t hf__heads_next(const struct hf__heads *heads)
{
    int64_t now = hf__heads_now(heads), next = 0;
    for (size_t i = 0; i < heads->count; i++) {
        int64_t run_at = heads->items[i].run_at;
        if (run_at > now && run_at != HF__HEAD_EMPTY && (!next || run_at < next))
            next = run_at;
    }
    return next;
}

/* ---- Looking ---- */

static hf_code ask(hf_worker *worker, struct hf__buffer *lanes, struct hf__table *found,
                   hf_error *err)
{
    struct hf__table params;
    hf__buffer_add_text(lanes, "]");
    if (lanes->failed)
        return hf__nomem(err);
    hf__table_init(&params, found->arena, 1);
    hf__table_add(&params)[0] = hf__text(lanes->data);
    if (params.failed)
        return hf__nomem(err);
    return hf__worker_query(worker, HF__STMT_FIND_HEADS, &params, found, err);
}

static void add_lane(struct hf__buffer *json, int32_t lane)
{
    hf__buffer_addf(json, json->length ? ",%" PRId32 : "[%" PRId32, lane);
}

static void read_clock(struct hf__heads *heads, const struct hf__table *found)
{
    if (!found->nrows)
        return;
    heads->store_now = hf__as_number(hf__table_row(found, 0)[3]);
    heads->read_at = hf__monotonic_us();
}

static struct hf__head read_head(const struct hf__cell *row)
{
    return (struct hf__head){
        .lane = (int32_t)hf__as_number(row[0]),
        .priority = (int)hf__as_number(row[1]),
        .run_at = hf__as_number(row[2]),
    };
}

static bool stood_still(const struct hf__heads *before, const struct hf__head *head, int64_t now)
{
    const struct hf__head *old = find(before, head->lane, head->priority);
    return old && old->run_at == head->run_at && head->run_at < now;
}

/* What had work and has none now. `items` holds what was found, sorted, and has room for the old. */
static size_t remember_empty(const struct hf__heads *old, struct hf__head *items, size_t found)
{
    const struct hf__heads now = { .items = items, .count = found };
    size_t count = found;
    for (size_t i = 0; i < old->count && count - found < REMEMBERED; i++) {
        const struct hf__head *head = &old->items[i];
        if (!find(&now, head->lane, head->priority))
            items[count++] = (struct hf__head){
                .lane = head->lane,
                .priority = head->priority,
                .run_at = HF__HEAD_EMPTY,
            };
    }
    qsort(items, count, sizeof *items, by_urgency);
    return count;
}

static hf_code replace(struct hf__heads *heads, const struct hf__table *found, hf_error *err)
{
    size_t count = (size_t)found->nrows;
    struct hf__head *items = hf__calloc(count + heads->count + 1, sizeof *items);
    if (!items)
        return hf__nomem(err);
    read_clock(heads, found);
    heads->passed_over = false;
    for (int i = 0; i < found->nrows; i++) {
        items[i] = read_head(hf__table_row(found, i));
        heads->passed_over |= stood_still(heads, &items[i], heads->store_now);
    }
    qsort(items, count, sizeof *items, by_urgency);
    count = remember_empty(heads, items, count);
    free(heads->items);
    heads->items = items;
    heads->count = count;
    heads->looked_at = hf__monotonic_us();
    if (!heads->passed_over)
        heads->passed_since = 0;
    else if (!heads->passed_since)
        heads->passed_since = heads->looked_at;
    return HF_OK;
}

hf_code hf__heads_look(hf_worker *worker, hf_error *err)
{
    struct hf__arena arena = { 0 };
    struct hf__buffer lanes = { 0 };
    struct hf__table found;
    hf__table_init(&found, &arena, 4);
    for (size_t i = 0; i < worker->lanes.count; i++)
        if (worker->lanes.items[i].served)
            add_lane(&lanes, worker->lanes.items[i].id);

    hf_code code = lanes.length ? ask(worker, &lanes, &found, err) : HF_OK;
    if (code == HF_OK)
        code = replace(&worker->heads, &found, err);
    hf__buffer_free(&lanes);
    hf__arena_free(&arena);
    return code;
}

static bool is_among(const int32_t *lanes, size_t count, int32_t lane)
{
    for (size_t i = 0; i < count; i++)
        if (lanes[i] == lane)
            return true;
    return false;
}

static void empty_lanes(struct hf__heads *heads, const int32_t *lanes, size_t count)
{
    for (size_t i = 0; i < heads->count; i++)
        if (is_among(lanes, count, heads->items[i].lane)) {
            heads->items[i].run_at = HF__HEAD_EMPTY;
            heads->items[i].rung = false;
        }
}

/* Floors of heads that are still there are kept. */
static hf_code merge(struct hf__heads *heads, const int32_t *lanes, size_t count,
                     const struct hf__table *found, hf_error *err)
{
    size_t most = heads->count + (size_t)found->nrows;
    struct hf__head *items = hf__realloc(heads->items, (most + 1) * sizeof *items);
    if (!items) {
        heads->looked_at = 0;
        return hf__nomem(err);
    }
    heads->items = items;
    empty_lanes(heads, lanes, count);
    size_t total = heads->count;
    for (int i = 0; i < found->nrows; i++) {
        struct hf__head fresh = read_head(hf__table_row(found, i));
        struct hf__head *old = find(heads, fresh.lane, fresh.priority);
        if (old)
            old->run_at = fresh.run_at;
        else
            items[total++] = fresh;
    }
    heads->count = total;
    qsort(items, total, sizeof *items, by_urgency);
    read_clock(heads, found);
    return HF_OK;
}

hf_code hf__heads_look_at(hf_worker *worker, const int32_t *lanes, size_t count, hf_error *err)
{
    struct hf__arena arena = { 0 };
    struct hf__buffer json = { 0 };
    struct hf__table found;
    hf__table_init(&found, &arena, 4);
    for (size_t i = 0; i < count; i++) {
        const struct hf__lane *lane = hf__lanes_find(&worker->lanes, lanes[i]);
        if (lane && lane->served)
            add_lane(&json, lanes[i]);
    }
    hf_code code = json.length ? ask(worker, &json, &found, err) : HF_OK;
    if (code == HF_OK && json.length)
        code = merge(&worker->heads, lanes, count, &found, err);
    hf__buffer_free(&json);
    hf__arena_free(&arena);
    return code;
}

bool hf__heads_ring(hf_worker *worker, const int32_t *lanes, size_t count)
{
    struct hf__heads *heads = &worker->heads;
    for (size_t i = 0; i < count; i++) {
        const struct hf__lane *lane = hf__lanes_find(&worker->lanes, lanes[i]);
        bool known = !lane || !lane->served;
        for (size_t j = 0; j < heads->count; j++)
            if (heads->items[j].lane == lanes[i])
                known = heads->items[j].rung = true;
        if (!known)
            return false;
    }
    return true;
}

/* ---- Claiming ---- */

static void add_head(struct hf__buffer *json, const struct hf__head *head, int64_t floor)
{
    hf__buffer_addf(json, "%s[%" PRId32 ",%d,%" PRId64 "]", json->length > 1 ? "," : "", head->lane,
                    head->priority, floor);
}

static char *close_json(struct hf__buffer *json, struct hf__arena *arena)
{
    hf__buffer_add_text(json, "]");
    char *text = json->failed ? NULL : hf__arena_strdup(arena, json->data);
    hf__buffer_free(json);
    return text;
}

static size_t same_priority(const struct hf__heads *heads, size_t from)
{
    size_t end = from;
    while (end < heads->count && heads->items[end].priority == heads->items[from].priority)
        end++;
    return end - from;
}

char *hf__heads_json(struct hf__heads *heads, struct hf__arena *arena, bool with_floors)
{
    struct hf__buffer json = { 0 };
    int64_t now = hf__heads_now(heads);
    hf__buffer_add_text(&json, "[");
    for (size_t from = 0; from < heads->count;) {
        size_t size = same_priority(heads, from);
        for (size_t i = 0; i < size; i++) {
            const struct hf__head *head = &heads->items[from + (i + heads->rotation) % size];
            if (head->run_at <= now || head->rung)
                add_head(&json, head, with_floors && !head->rung ? head->floor : 0);
        }
        from += size;
    }
    heads->rotation++;
    return close_json(&json, arena);
}

char *hf__heads_json_all(const struct hf__heads *heads, struct hf__arena *arena)
{
    struct hf__buffer json = { 0 };
    hf__buffer_add_text(&json, "[");
    for (size_t i = 0; i < heads->count; i++)
        if (heads->items[i].run_at != HF__HEAD_EMPTY)
            add_head(&json, &heads->items[i], 0);
    return close_json(&json, arena);
}

void hf__heads_taken(struct hf__heads *heads, int32_t lane, int priority, int64_t due_at)
{
    struct hf__head *head = find(heads, lane, priority);
    if (head && due_at - FLOOR_SLACK > head->floor)
        head->floor = due_at - FLOOR_SLACK;
}

hf_code hf__heads_ask_next(hf_worker *worker, int64_t *run_at, hf_error *err)
{
    struct hf__arena arena = { 0 };
    struct hf__table params, found;
    hf__table_init(&params, &arena, 1);
    hf__table_init(&found, &arena, 2);
    char *json = hf__heads_json_all(&worker->heads, &arena);
    hf__table_add(&params)[0] = hf__text(json);
    hf_code code = json && !params.failed ? HF_OK : hf__nomem(err);
    if (code == HF_OK)
        code = hf__worker_query(worker, HF__STMT_NEXT_DUE, &params, &found, err);
    *run_at = code == HF_OK && found.nrows ? hf__as_number(hf__table_row(&found, 0)[0]) : 0;
    hf__arena_free(&arena);
    return code;
}

void hf__heads_free(struct hf__heads *heads)
{
    free(heads->items);
    *heads = (struct hf__heads){ 0 };
}
