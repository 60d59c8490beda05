/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

#include "kernel/chores.h"
#include "util/alloc.h"
#include "util/buffer.h"
#include "util/clock.h"
#include "util/error.h"

#include <stdlib.h>
#include <string.h>

#define LATE_LANES                                                                                 \
    2000 /* ids below the newest that may still be committed: every other one is given */

/* Beside the engine's own. Without handlers it serves nothing else, whatever its prefixes are: what it claimed would fail. */
static size_t pattern_count(const hf_worker *worker)
{
    if (worker->registry.count == 0)
        return 0;
    return worker->prefix_count ? worker->prefix_count : worker->registry.count;
}

static const char *pattern_at(const hf_worker *worker, size_t i)
{
    return worker->prefix_count ? worker->prefixes[i] : worker->registry.routes[i].pattern;
}

char *hf__lanes_patterns_json(const hf_worker *worker)
{
    struct hf__buffer json = { 0 };
    hf__buffer_add_text(&json, "[");
    for (size_t i = 0; i < pattern_count(worker); i++) {
        const char *pattern = pattern_at(worker, i);
        hf__buffer_add_text(&json, i ? "," : "");
        hf__buffer_add_json_string(&json, pattern, strlen(pattern));
    }
    hf__buffer_add_text(&json, "]");
    return hf__buffer_take(&json);
}

/* Names are compared byte by byte and consist of bytes above ' ' and below DEL: so a name alone
 * is [name, "name "), and a family is [stem, stem + DEL). */
static void add_range(struct hf__table *params, int tenant, const char *pattern)
{
    size_t length = strlen(pattern);
    bool family = pattern[length - 1] == '*';
    size_t stem = family ? length - 1 : length;
    char *high = hf__arena_alloc(params->arena, stem + 2);
    char *low = hf__arena_strndup(params->arena, pattern, stem);
    if (!high || !low) {
        params->failed = true;
        return;
    }
    memcpy(high, pattern, stem);
    memcpy(high + stem, family ? "\x7f" : " ", 2);
    struct hf__cell *row = hf__table_add(params);
    row[0] = hf__number(tenant);
    row[1] = hf__text(low);
    row[2] = hf__text(high);
}

static void add_ranges(hf_worker *worker, struct hf__table *params, int tenant)
{
    for (size_t i = 0; i < pattern_count(worker); i++)
        add_range(params, tenant, pattern_at(worker, i));
    add_range(params, tenant, "holdfast.*");
}

/* A newer program's chores are left to it, and the outbox to others where that is asked for. */
static bool may_serve(const hf_worker *worker, const char *workflow)
{
    if (strncmp(workflow, HF__CHORE_PREFIX, strlen(HF__CHORE_PREFIX)) != 0)
        return true;
    if (worker->no_dispatch && strcmp(workflow, HF__CHORE_DISPATCH) == 0)
        return false;
    return hf__chore_find(workflow) != NULL;
}

static int by_id(const void *a, const void *b)
{
    const struct hf__lane *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* Sorts and drops doubles; a served lane wins over a foreign one. */
static void tidy(struct hf__lanes *lanes)
{
    size_t kept = 0;
    qsort(lanes->items, lanes->count, sizeof *lanes->items, by_id);
    for (size_t i = 0; i < lanes->count; i++) {
        if (kept && lanes->items[kept - 1].id == lanes->items[i].id) {
            if (lanes->items[i].served)
                lanes->items[kept - 1] = lanes->items[i];
        } else
            lanes->items[kept++] = lanes->items[i];
    }
    lanes->count = kept;
}

static struct hf__lane read_lane(const struct hf__cell *row, bool served)
{
    return (struct hf__lane){
        .id = (int32_t)hf__as_number(row[0]),
        .workflow = (int32_t)hf__as_number(row[4]),
        .tenant = (int)hf__as_number(row[2]),
        .weight = (int)hf__as_number(row[5]),
        .limited = hf__as_number(row[6]) != 0,
        .served = served,
    };
}

static hf_code replace(hf_worker *worker, const struct hf__table *found, bool afresh, hf_error *err)
{
    struct hf__lanes *lanes = &worker->lanes;
    int64_t now = hf__monotonic_us();
    struct hf__lanes next = { .learned_at = now, .updated_at = now };
    next.items = hf__calloc((size_t)found->nrows + lanes->count + 1, sizeof *next.items);
    if (!next.items)
        return hf__nomem(err);
    for (int i = 0; i < found->nrows; i++) {
        const struct hf__cell *row = hf__table_row(found, i);
        next.items[next.count++] = read_lane(row, may_serve(worker, hf__as_text(row[1])));
    }
    for (size_t i = 0; !afresh && i < lanes->count; i++)
        if (!lanes->items[i].served)
            next.items[next.count++] = lanes->items[i];
    tidy(&next);
    free(lanes->items);
    *lanes = next;
    return HF_OK;
}

hf_code hf__lanes_learn(hf_worker *worker, bool afresh, hf_error *err)
{
    struct hf__arena arena = { 0 };
    struct hf__table params, found;
    hf__table_init(&params, &arena, 3);
    hf__table_init(&found, &arena, 7);
    if (worker->all_tenants)
        add_ranges(worker, &params, 0);
    else
        for (size_t i = 0; i < worker->master_count; i++)
            add_ranges(worker, &params, worker->masters[i]->id);

    hf_code code = params.failed ? hf__nomem(err) : HF_OK;
    if (code == HF_OK)
        code = hf__worker_query(worker, HF__STMT_SERVED_LANES, &params, &found, err);
    if (code == HF_OK)
        code = replace(worker, &found, afresh, err);
    hf__arena_free(&arena);
    return code;
}

static bool works_for(const hf_worker *worker, int tenant)
{
    bool found = worker->all_tenants;
    for (size_t i = 0; !found && i < worker->master_count; i++)
        found = worker->masters[i]->id == tenant;
    return found;
}

static bool fits_pattern(const char *pattern, const char *workflow)
{
    size_t length = strlen(pattern);
    if (length && pattern[length - 1] == '*')
        return strncmp(pattern, workflow, length - 1) == 0;
    return strcmp(pattern, workflow) == 0;
}

static bool serves(const hf_worker *worker, int tenant, const char *workflow)
{
    bool fits = fits_pattern("holdfast.*", workflow);
    for (size_t i = 0; !fits && i < pattern_count(worker); i++)
        fits = fits_pattern(pattern_at(worker, i), workflow);
    return fits && works_for(worker, tenant) && may_serve(worker, workflow);
}

static int32_t newest(const struct hf__lanes *lanes)
{
    return lanes->count ? lanes->items[lanes->count - 1].id : 0;
}

bool hf__lanes_is_new(const struct hf__lanes *lanes, int32_t id)
{
    return id > newest(lanes) - LATE_LANES;
}

static hf_code add(hf_worker *worker, const struct hf__table *found, hf_error *err)
{
    struct hf__lanes *lanes = &worker->lanes;
    struct hf__lane *items =
        hf__realloc(lanes->items, (lanes->count + (size_t)found->nrows + 1) * sizeof *items);
    if (!items)
        return hf__nomem(err);
    lanes->items = items;
    for (int i = 0; i < found->nrows; i++) {
        const struct hf__cell *row = hf__table_row(found, i);
        items[lanes->count++] =
            read_lane(row, serves(worker, (int)hf__as_number(row[2]), hf__as_text(row[1])));
    }
    tidy(lanes);
    return HF_OK;
}

hf_code hf__lanes_learn_new(hf_worker *worker, hf_error *err)
{
    struct hf__arena arena = { 0 };
    struct hf__table params, found;
    int32_t last = newest(&worker->lanes);
    hf__table_init(&params, &arena, 1);
    hf__table_init(&found, &arena, 7);
    hf__table_add(&params)[0] = hf__number(last > LATE_LANES ? last - LATE_LANES : 0);
    worker->lanes.updated_at = hf__monotonic_us();
    hf_code code = params.failed ? hf__nomem(err) : HF_OK;
    if (code == HF_OK)
        code = hf__worker_query(worker, HF__STMT_NEW_LANES, &params, &found, err);
    if (code == HF_OK)
        code = add(worker, &found, err);
    hf__arena_free(&arena);
    return code;
}

const struct hf__lane *hf__lanes_find(const struct hf__lanes *lanes, int32_t id)
{
    struct hf__lane wanted = { .id = id };
    if (!lanes->count)
        return NULL;
    return bsearch(&wanted, lanes->items, lanes->count, sizeof wanted, by_id);
}

hf_code hf__lanes_add_foreign(struct hf__lanes *lanes, const int32_t *ids, size_t count,
                              hf_error *err)
{
    struct hf__lane *items = hf__realloc(lanes->items, (lanes->count + count + 1) * sizeof *items);
    if (!items)
        return hf__nomem(err);
    lanes->items = items;
    for (size_t i = 0; i < count; i++)
        items[lanes->count++] = (struct hf__lane){ .id = ids[i] };
    tidy(lanes);
    return HF_OK;
}

void hf__lanes_free(struct hf__lanes *lanes)
{
    free(lanes->items);
    *lanes = (struct hf__lanes){ 0 };
}
