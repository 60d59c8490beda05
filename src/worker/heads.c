/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

#include "client/places.h"
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
#define RESTORE_PERIOD HF_SECONDS(1)

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

static bool is_ready(const struct hf__head *head, int64_t now)
{
    return (head->run_at <= now || head->rung) && head->closed_until <= now && !head->spent;
}

bool hf__heads_due(const struct hf__heads *heads)
{
    int64_t now = hf__heads_now(heads);
    for (size_t i = 0; i < heads->count; i++)
        if (heads->items[i].run_at <= now && is_ready(&heads->items[i], now))
            return true;
    return false;
}

int64_t hf__heads_next(const struct hf__heads *heads)
{
    int64_t now = hf__heads_now(heads), next = 0;
    for (size_t i = 0; i < heads->count; i++) {
        const struct hf__head *head = &heads->items[i];
        int64_t at = head->run_at > head->closed_until ? head->run_at : head->closed_until;
        if (at > now && head->run_at != HF__HEAD_EMPTY && (!next || at < next))
            next = at;
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

/* Keeps what was known of a head besides its runs. */
static void carry_over(struct hf__head *head, const struct hf__head *old)
{
    head->closed_until = old->closed_until;
    head->taking = old->taking;
    head->served = old->served;
}

/* Whether it is due as it was at the look before, and no limit is the reason, nor that many became due at once: then what
 * was taken last was due at that time too. */
static bool stood_still(const struct hf__head *old, const struct hf__head *head, int64_t now)
{
    return old->run_at == head->run_at && head->run_at < now && head->closed_until <= now &&
           old->taken_due != head->run_at;
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
        const struct hf__head *old = find(heads, items[i].lane, items[i].priority);
        if (!old)
            continue;
        carry_over(&items[i], old);
        items[i].passed_over = stood_still(old, &items[i], heads->store_now);
        heads->passed_over |= items[i].passed_over;
    }
    qsort(items, count, sizeof *items, by_urgency);
    count = remember_empty(heads, items, count);
    free(heads->items);
    heads->items = items;
    heads->count = count;
    heads->looked_at = hf__monotonic_us();
    heads->stale = false;
    if (!heads->passed_over)
        heads->passed_since = 0;
    else if (!heads->passed_since)
        heads->passed_since = heads->looked_at;
    return HF_OK;
}

static bool has_backlog(const struct hf__heads *heads)
{
    int64_t since = hf__heads_now(heads) - HF__BACKLOG;
    for (size_t i = 0; i < heads->count; i++)
        if (heads->items[i].run_at < since)
            return true;
    return false;
}

/* Where what is due has been due for a while, the order matters: a lease that ended meanwhile must not lie behind it. */
static hf_code keep_order(hf_worker *worker, hf_error *err)
{
    struct hf__heads *heads = &worker->heads;
    int64_t now = hf__monotonic_us();
    if (heads->restored_at && (now - heads->restored_at < RESTORE_PERIOD || !has_backlog(heads)))
        return HF_OK;
    heads->restored_at = now;
    return hf__places_restore(worker->engine, err);
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

    hf_code code = lanes.length ? keep_order(worker, err) : HF_OK;
    if (code == HF_OK && lanes.length)
        code = ask(worker, &lanes, &found, err);
    if (code == HF_OK)
        code = replace(&worker->heads, &found, err);
    hf__buffer_free(&lanes);
    hf__arena_free(&arena);
    return code;
}

static int by_number(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static bool is_among(const int32_t *lanes, size_t count, int32_t lane)
{
    return count && bsearch(&lane, lanes, count, sizeof lane, by_number);
}

static void empty_lanes(struct hf__heads *heads, const int32_t *lanes, size_t count)
{
    for (size_t i = 0; i < heads->count; i++)
        if (is_among(lanes, count, heads->items[i].lane)) {
            heads->items[i].run_at = HF__HEAD_EMPTY;
            heads->items[i].rung = false;
            heads->items[i].spent = false;
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

/* The given lanes and, with `known`, those that were not empty or were named: sorted, each once, served ones only. */
static int32_t *gather_lanes(const hf_worker *worker, const int32_t *lanes, size_t *count,
                             bool known)
{
    const struct hf__heads *heads = &worker->heads;
    int32_t *all = hf__calloc(*count + heads->count + 1, sizeof *all);
    size_t found = 0, kept = 0;
    if (!all)
        return NULL;
    for (size_t i = 0; i < *count; i++)
        all[found++] = lanes[i];
    for (size_t i = 0; known && i < heads->count; i++)
        if (heads->items[i].run_at != HF__HEAD_EMPTY || heads->items[i].rung)
            all[found++] = heads->items[i].lane;
    qsort(all, found, sizeof *all, by_number);
    for (size_t i = 0; i < found; i++) {
        const struct hf__lane *lane = hf__lanes_find(&worker->lanes, all[i]);
        if (lane && lane->served && (!kept || all[kept - 1] != all[i]))
            all[kept++] = all[i];
    }
    *count = kept;
    return all;
}

hf_code hf__heads_look_at(hf_worker *worker, const int32_t *lanes, size_t count, bool known,
                          hf_error *err)
{
    struct hf__arena arena = { 0 };
    struct hf__buffer json = { 0 };
    struct hf__table found;
    int32_t *all = gather_lanes(worker, lanes, &count, known);
    hf__table_init(&found, &arena, 4);
    for (size_t i = 0; all && i < count; i++)
        add_lane(&json, all[i]);
    hf_code code = !all ? hf__nomem(err) : json.length ? ask(worker, &json, &found, err) : HF_OK;
    if (code == HF_OK && json.length)
        code = merge(&worker->heads, all, count, &found, err);
    if (code == HF_OK && known)
        worker->heads.stale = false;
    free(all);
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
                known = heads->items[j].rung = true, heads->items[j].spent = false;
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

/* A head that takes part in a claim. */
struct taker {
    struct hf__head *head;
    const struct hf__lane *lane;
    int64_t weights; /* of all takers of its workflow */
};

static int by_workflow(const void *a, const void *b)
{
    const struct taker *x = a, *y = b;
    return (x->lane->workflow > y->lane->workflow) - (x->lane->workflow < y->lane->workflow);
}

static int by_turn(const void *a, const void *b)
{
    const struct taker *x = a, *y = b;
    if (x->head->served != y->head->served)
        return x->head->served < y->head->served ? -1 : 1;
    return (x->head->lane > y->head->lane) - (x->head->lane < y->head->lane);
}

/* Adds up the weights per workflow; returns how many workflows there are. */
static size_t weigh(struct taker *takers, size_t count)
{
    size_t workflows = 0;
    qsort(takers, count, sizeof *takers, by_workflow);
    for (size_t from = 0, end; from < count; from = end, workflows++) {
        int64_t weights = 0;
        for (end = from; end < count && by_workflow(&takers[from], &takers[end]) == 0; end++)
            weights += takers[end].lane->weight;
        for (size_t i = from; i < end; i++)
            takers[i].weights = weights;
    }
    return workflows;
}

/* Whoever comes back after a time without due runs has not saved up turns: it starts with the one that is next. */
static void join_turns(struct taker *takers, size_t count)
{
    double next = -1;
    for (size_t i = 0; i < count; i++)
        if (takers[i].head->taking && (next < 0 || takers[i].head->served < next))
            next = takers[i].head->served;
    for (size_t i = 0; i < count; i++)
        if (!takers[i].head->taking && takers[i].head->served < next)
            takers[i].head->served = next;
}

/* The takers of one priority, in their turn, each with its share. */
static void take_turns(struct taker *takers, size_t count, int most)
{
    join_turns(takers, count);
    size_t workflows = weigh(takers, count);
    qsort(takers, count, sizeof *takers, by_turn);
    for (size_t i = 0; i < count; i++) {
        struct hf__head *head = takers[i].head;
        int weight = takers[i].lane->weight;
        head->pace = (double)takers[i].weights * (double)workflows / weight;
        head->share = hf__fair_share(most, weight, takers[i].weights, workflows);
    }
}

/* The due heads of one priority, from `from` on. */
static size_t find_takers(struct hf__heads *heads, const struct hf__lanes *lanes, size_t from,
                          size_t size, const struct hf__pick *pick, struct taker *takers)
{
    int64_t now = hf__heads_now(heads);
    size_t count = 0;
    for (size_t i = from; i < from + size; i++) {
        struct hf__head *head = &heads->items[i];
        const struct hf__lane *lane = hf__lanes_find(lanes, head->lane);
        head->share = head->taken = 0;
        if (lane && lane->served && is_ready(head, now) &&
            (head->passed_over || !pick->passed_over))
            takers[count++] = (struct taker){ head, lane, 0 };
        else
            head->taking = false;
    }
    return count;
}

struct hf__claim_head *hf__heads_pick(struct hf__heads *heads, const struct hf__lanes *lanes,
                                      struct hf__arena *arena, const struct hf__pick *pick,
                                      size_t *count)
{
    struct hf__claim_head *picked = hf__arena_calloc(arena, heads->count + 1, sizeof *picked);
    struct taker *takers = hf__calloc(heads->count + 1, sizeof *takers);
    *count = 0;
    for (size_t from = 0, size; picked && takers && from < heads->count; from += size) {
        size = same_priority(heads, from);
        size_t found = find_takers(heads, lanes, from, size, pick, takers);
        take_turns(takers, found, pick->most);
        for (size_t i = 0; i < found; i++) {
            struct hf__head *head = takers[i].head;
            head->taking = true;
            head->limited = takers[i].lane->limited;
            if (*count >= (size_t)pick->breadth) {
                head->share = 0;
                continue;
            }
            picked[(*count)++] = (struct hf__claim_head){
                .lane = head->lane,
                .priority = head->priority,
                .floor = pick->with_floors && !head->rung ? head->floor : 0,
                .share = found > 1 ? head->share : 0,
                .limited = takers[i].lane->limited,
            };
        }
    }
    free(takers);
    return takers ? picked : NULL;
}

bool hf__heads_settle(struct hf__heads *heads, int got, int most)
{
    bool more = false;
    for (size_t i = 0; i < heads->count; i++)
        more |= heads->items[i].taking && heads->items[i].taken >= heads->items[i].share;
    for (size_t i = 0; got < most && more && i < heads->count; i++) {
        struct hf__head *head = &heads->items[i];
        if (head->share && head->taken < head->share && !(head->limited && head->taken))
            head->spent = true;
    }
    return got < most && !more;
}

static int by_lane(const void *a, const void *b)
{
    const struct hf__closed_lane *x = a, *y = b;
    return (x->lane > y->lane) - (x->lane < y->lane);
}

void hf__heads_close(struct hf__heads *heads, struct hf__closed_lane *lanes, size_t count,
                     int64_t latest)
{
    if (!count)
        return;
    qsort(lanes, count, sizeof *lanes, by_lane);
    for (size_t i = 0; i < heads->count; i++) {
        struct hf__closed_lane wanted = { .lane = heads->items[i].lane };
        const struct hf__closed_lane *closed =
            bsearch(&wanted, lanes, count, sizeof *lanes, by_lane);
        if (!closed)
            continue;
        heads->items[i].closed_until = closed->until < latest ? closed->until : latest;
        heads->items[i].rung = false;
    }
}

bool hf__heads_spent(const struct hf__heads *heads)
{
    for (size_t i = 0; i < heads->count; i++)
        if (heads->items[i].spent)
            return true;
    return false;
}

void hf__heads_open(struct hf__heads *heads, const struct hf__lanes *lanes, int32_t workflow)
{
    for (size_t i = 0; i < heads->count; i++) {
        struct hf__head *head = &heads->items[i];
        const struct hf__lane *lane =
            workflow && head->closed_until ? hf__lanes_find(lanes, head->lane) : NULL;
        if (!workflow || (lane && lane->workflow == workflow))
            head->closed_until = 0, head->spent = false;
    }
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
    if (head) {
        head->taken++;
        head->served += head->pace;
        if (due_at > head->taken_due)
            head->taken_due = due_at;
    }
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
