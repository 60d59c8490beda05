/* Standing by: while the claimer sleeps, its claim is lent. Whoever brings a run for it in this process makes the claim in
 * the flush that inserts the run; of others' runs, the thread that hears. The hands are woken by the answer, and the
 * claimer, if at all, after them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

/* Tenants and lanes are the claimer's, which sleeps; worker->lock is held. NULL: the claim must be the claimer's own. */
static const struct hf__master *master_of(const hf_worker *worker, int32_t lane)
{
    const struct hf__lane *known = hf__lanes_find(&worker->lanes, lane);
    if (!known || !known->served || known->limited)
        return NULL;
    return hf__master_known(worker, known->tenant);
}

/* The heads of a lane that are remembered, or the one that is asked for; worker->lock is held. */
static void pick_heads(struct hf__haul *haul, int32_t lane, const int *priority)
{
    const struct hf__heads *known = &haul->errand.worker->heads;
    struct hf__op *op = &haul->errand.op;
    struct hf__claim_head *heads =
        hf__arena_calloc(&haul->arena, priority ? 1 : known->count + 1, sizeof *heads);
    size_t count = 0;
    if (heads && priority)
        heads[count++] = (struct hf__claim_head){ .lane = lane, .priority = *priority };
    for (size_t i = 0; heads && !priority && i < known->count; i++)
        if (known->items[i].lane == lane)
            heads[count++] =
                (struct hf__claim_head){ .lane = lane, .priority = known->items[i].priority };
    op->claim.heads = heads;
    op->claim.head_count = count;
}

/* Whether a claim of this lane may be lent. If so, it counts as lent. */
static bool lend(struct hf__haul *haul, int32_t lane, const int *priority)
{
    hf_worker *worker = haul->errand.worker;
    pthread_mutex_lock(&worker->lock);
    int hands = hf__claimer_free_hands(worker);
    if (worker->standing_by && !worker->lent && !worker->stopping && hands > 0)
        haul->master = master_of(worker, lane);
    if (haul->master)
        pick_heads(haul, lane, priority);
    if (haul->master)
        haul->errand.op.tenant = haul->master->id;
    bool ready = haul->errand.op.claim.head_count > 0;
    haul->errand.op.claim.most = haul->errand.op.claim.hands = priority ? 1 : hands;
    worker->lent |= ready;
    pthread_mutex_unlock(&worker->lock);
    return ready;
}

/* A worker that has ended takes nothing in: the lease of what came ends by itself. */
static bool takes_in(hf_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    worker->returning = !worker->quit;
    bool open = worker->returning;
    pthread_mutex_unlock(&worker->lock);
    return open;
}

/* The claimer is woken only if there is something for it to do. */
static void take_back(hf_worker *worker, bool failed)
{
    pthread_mutex_lock(&worker->lock);
    worker->lent = worker->returning = false;
    worker->ring.any |= failed;
    worker->standing_by &= !failed;
    hf__claimer_prompt(worker);
    if (!worker->standing_by)
        pthread_cond_signal(&worker->claimer);
    pthread_mutex_unlock(&worker->lock);
}

/* From the thread that flushed it. */
static void answered(struct hf__op *op, void *arg)
{
    struct hf__haul *haul = arg;
    hf_worker *worker = hf__worker_ref(haul->errand.worker);
    bool failed = op->code != HF_OK || !op->claim.claims;
    if (op->told)
        haul->errand.settle(&haul->errand);
    if (failed)
        atomic_store(&worker->adopt, true); /* it may have happened all the same */
    else if (takes_in(worker))
        hf__haul_admit(haul);
    take_back(worker, failed);
    hf__haul_release(haul);
    hf__worker_unref(worker);
}

/* A claim that goes along with its run is kept or undone with it, so there is nothing to tell early. */
struct hf__op *hf__standby_lend(int32_t lane, const int *priority, void *arg)
{
    hf_worker *worker = arg;
    struct hf__haul *haul = hf__haul_new(worker);
    if (!haul)
        return NULL;
    struct hf__op *op = &haul->errand.op;
    op->kind = HF__OP_CLAIM;
    op->claim.worker = worker->name;
    op->claim.arena = &haul->arena;
    op->done = answered;
    op->done_arg = haul;
    op->claim.along = priority != NULL;
    if (priority)
        op->claim.early = NULL;
    if (lend(haul, lane, priority))
        return op;
    hf__haul_free(haul);
    return NULL;
}

void hf__standby_await(hf_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    while (worker->returning || (worker->lent && !worker->quit))
        pthread_cond_wait(&worker->claimer, &worker->lock);
    pthread_mutex_unlock(&worker->lock);
}
