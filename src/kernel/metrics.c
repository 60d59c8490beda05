/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "kernel/batch.h"
#include "util/alloc.h"
#include "util/error.h"

const int64_t hf__time_bounds[HF__METRIC_BUCKETS] = {
    HF_MILLISECONDS(1),   HF_MILLISECONDS(5),   HF_MILLISECONDS(10), HF_MILLISECONDS(50),
    HF_MILLISECONDS(100), HF_MILLISECONDS(500), HF_SECONDS(1),       HF_SECONDS(5),
    HF_SECONDS(15),       HF_MINUTES(1),        HF_MINUTES(10),      HF_HOURS(1),
};
const int64_t hf__size_bounds[HF__METRIC_BUCKETS] = { 1,   2,   5,   10,   20,   50,
                                                      100, 200, 500, 1000, 1500, 2000 };

hf_code hf__metrics_new(struct hf__metrics **out, hf_error *err)
{
    *out = hf__calloc(1, sizeof **out);
    if (!*out)
        return hf__nomem(err);
    pthread_mutex_init(&(*out)->mutex, NULL);
    return HF_OK;
}

void hf__metrics_free(struct hf__metrics *metrics)
{
    if (!metrics)
        return;
    for (int i = 0; i < HF__METRIC_SLOTS; i++)
        free(atomic_load(&metrics->slots[i]));
    pthread_mutex_destroy(&metrics->mutex);
    free(metrics);
}

/* ---- Finding a workflow's counters ---- */

static size_t hash_of(int tenant, const char *name)
{
    uint64_t hash = 14695981039346656037u ^ (uint64_t)(uint32_t)tenant;
    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    return (size_t)(hash ^ hash >> 32);
}

static bool is_it(const struct hf__workflow_counts *counts, int tenant, const char *name)
{
    return counts->tenant == tenant && strcmp(counts->name, name) == 0;
}

/* Its counters, or NULL and the slot where they belong. A slot that was filled stays as it is, so looking needs no lock;
 * there are always free ones. */
static struct hf__workflow_counts *look(struct hf__metrics *metrics, int tenant, const char *name,
                                        size_t *slot)
{
    for (size_t i = hash_of(tenant, name);; i++) {
        *slot = i % HF__METRIC_SLOTS;
        struct hf__workflow_counts *counts =
            atomic_load_explicit(&metrics->slots[*slot], memory_order_acquire);
        if (!counts || is_it(counts, tenant, name))
            return counts;
    }
}

static struct hf__workflow_counts *add(struct hf__metrics *metrics, int tenant, const char *name)
{
    size_t slot;
    pthread_mutex_lock(&metrics->mutex);
    struct hf__workflow_counts *counts = look(metrics, tenant, name, &slot);
    if (!counts && metrics->known < HF__METRIC_WORKFLOWS && strlen(name) < sizeof counts->name &&
        (counts = hf__calloc(1, sizeof *counts))) {
        counts->tenant = tenant;
        strcpy(counts->name, name);
        metrics->known++;
        atomic_store_explicit(&metrics->slots[slot], counts, memory_order_release);
    }
    pthread_mutex_unlock(&metrics->mutex);
    return counts ? counts : &metrics->others;
}

static struct hf__workflow_counts *find(struct hf__metrics *metrics, int tenant, const char *name)
{
    size_t slot;
    if (!name)
        return &metrics->others;
    struct hf__workflow_counts *counts = look(metrics, tenant, name, &slot);
    return counts ? counts : add(metrics, tenant, name);
}

const struct hf__workflow_counts *hf__metrics_next(struct hf__metrics *metrics, size_t *cursor)
{
    while (*cursor < HF__METRIC_SLOTS) {
        const struct hf__workflow_counts *counts =
            atomic_load_explicit(&metrics->slots[(*cursor)++], memory_order_acquire);
        if (counts)
            return counts;
    }
    return (*cursor)++ == HF__METRIC_SLOTS ? &metrics->others : NULL;
}

/* ---- Counting ---- */

static void increase(atomic_uint_fast64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static void observe(struct hf__histogram *histogram, const int64_t *bounds, int64_t value)
{
    int bucket = 0;
    value = value < 0 ? 0 : value;
    while (bucket < HF__METRIC_BUCKETS && value > bounds[bucket])
        bucket++;
    increase(&histogram->counts[bucket]);
    atomic_fetch_add_explicit(&histogram->sum, (uint_fast64_t)value, memory_order_relaxed);
}

void hf__metrics_flush(struct hf__metrics *metrics, size_t ops, int64_t duration)
{
    observe(&metrics->flush_size, hf__size_bounds, (int64_t)ops);
    observe(&metrics->flush_time, hf__time_bounds, duration);
}

void hf__metrics_lost(struct hf__metrics *metrics, int tenant, const char *workflow)
{
    increase(&find(metrics, tenant, workflow)->lost);
}

/* Runs that an operation starts count if they were made: a key may have been taken. */
static void count_starts(struct hf__metrics *metrics, const struct hf__batch *batch, int tenant,
                         const hf_trigger_spec *specs, const hf_id *ids, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (hf__idmap_get(&batch->decided, ids[i]))
            increase(&find(metrics, tenant, specs[i].workflow)->triggered);
}

static void count_family(struct hf__metrics *metrics, const struct hf__batch *batch, int tenant,
                         const hf_transition *t, const hf_id *child_ids, const hf_id *start_ids)
{
    count_starts(metrics, batch, tenant, t->children, child_ids, t->child_count);
    count_starts(metrics, batch, tenant, t->starts, start_ids, t->start_count);
}

static void count_trigger(struct hf__metrics *metrics, const struct hf__batch *batch,
                          const struct hf__op *op)
{
    if (op->code != HF_OK || op->trigger.existed || op->trigger.debounced)
        return;
    increase(&find(metrics, op->tenant, op->trigger.spec->workflow)->triggered);
    if (op->trigger.initial)
        count_family(metrics, batch, op->tenant, op->trigger.initial, op->trigger.child_ids,
                     op->trigger.start_ids);
}

static void count_claims(struct hf__metrics *metrics, const hf_claims *claims)
{
    for (size_t i = 0; i < claims->count; i++) {
        const hf_claimed *claimed = &claims->items[i];
        struct hf__workflow_counts *counts =
            find(metrics, claimed->tenant_id, claimed->run.workflow);
        increase(&counts->started);
        if (claimed->suspect)
            increase(&counts->expired);
        else
            observe(&counts->wait, hf__time_bounds, claimed->seen_at - claimed->due_at);
    }
}

static void count_commit(struct hf__metrics *metrics, const struct hf__batch *batch,
                         const struct hf__op *op)
{
    const hf_transition *t = op->commit.transition;
    const char *workflow = op->commit.workflow;
    if (!workflow && op->row)
        workflow = op->row->workflow;
    struct hf__workflow_counts *counts = find(metrics, op->tenant, workflow);
    if (op->code == HF_STALE && !t->unleased)
        increase(&counts->lost);
    if (op->code != HF_OK)
        return;
    if (t->turn == HF_TURN_SUCCEED && !op->commit.children_fail)
        increase(&counts->succeeded);
    else if (t->turn == HF_TURN_FAIL || op->commit.children_fail)
        increase(&counts->failed);
    else if (t->turn == HF_TURN_RETRY)
        increase(&counts->retried);
    if (op->commit.duration > 0)
        observe(&counts->run, hf__time_bounds, op->commit.duration);
    count_family(metrics, batch, op->tenant, t, op->commit.child_ids, op->commit.start_ids);
}

static void count_op(struct hf__metrics *metrics, const struct hf__batch *batch,
                     const struct hf__op *op)
{
    if (op->kind == HF__OP_TRIGGER)
        count_trigger(metrics, batch, op);
    else if (op->kind == HF__OP_CLAIM && op->code == HF_OK)
        count_claims(metrics, op->claim.claims);
    else if (op->kind == HF__OP_COMMIT)
        count_commit(metrics, batch, op);
    else if (op->kind == HF__OP_CHANGE && op->code == HF_OK && op->change.action == HF_CANCEL)
        increase(&find(metrics, op->tenant, op->row ? op->row->workflow : NULL)->cancelled);
}

void hf__metrics_count(struct hf__metrics *metrics, const struct hf__batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        if (batch->ops[i]->decided && !batch->ops[i]->again)
            count_op(metrics, batch, batch->ops[i]);
}
