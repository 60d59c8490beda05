/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

#include "util/alloc.h"
#include "util/clock.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define PAYLOAD_DECAY 0.99 /* per run */

static void dispose(struct hf__errand *errand)
{
    hf__haul_free((struct hf__haul *)errand);
}

struct hf__haul *hf__haul_new(hf_worker *worker)
{
    struct hf__haul *haul = hf__calloc(1, sizeof *haul);
    if (!haul)
        return NULL;
    hf__errand_init(&haul->errand, hf__worker_ref(worker), &worker->claimer, dispose);
    hf__arena_init(&haul->arena, 0);
    haul->sent_at = hf__monotonic_us();
    return haul;
}

void hf__haul_free(struct hf__haul *haul)
{
    hf_worker *worker = haul->errand.worker;
    hf__arena_free(&haul->arena);
    free(haul);
    hf__worker_unref(worker);
}

/* The store said when the claim was made; our clock carries on from when it was asked. */
static int64_t deadline_of(const struct hf__haul *haul, const hf_claimed *claimed)
{
    if (!claimed->run.timeout_at)
        return INT64_MAX;
    return haul->sent_at + (claimed->run.timeout_at - claimed->seen_at);
}

static void init_turn(hf_ctx *turn, struct hf__haul *haul, const hf_claimed *claimed,
                      const struct hf__master *master)
{
    memset(turn, 0, offsetof(hf_ctx, op_error));
    turn->worker = haul->errand.worker;
    turn->haul = haul;
    turn->claimed = claimed;
    turn->master = master;
    turn->deadline = deadline_of(haul, claimed);
    turn->extended_at = haul->sent_at;
    turn->granted_at = hf__monotonic_us();
    turn->users = 1;
    turn->wake_fd = -1;
    turn->alone = claimed->suspect && claimed->run.attempt >= HF__ALONE_ATTEMPT;
    atomic_init(&turn->lost, HF_OK);
    hf__arena_init(&turn->arena, 256);
}

/* worker->lock is held. */
static void hold(hf_worker *worker, hf_ctx *turn)
{
    turn->older = worker->held;
    if (worker->held)
        worker->held->newer = turn;
    worker->held = turn;
    worker->held_count++;
    worker->alone += turn->alone;
    int64_t lease = turn->claimed->lease;
    if (!worker->shortest_lease || lease < worker->shortest_lease) {
        worker->shortest_lease = lease;
        pthread_cond_signal(&worker->beat);
    }
}

/* worker->lock is held. */
static void note_payload(hf_worker *worker, const hf_run *run)
{
    size_t bytes = (run->input ? strlen(run->input) : 0) + (run->state ? strlen(run->state) : 0);
    worker->payload *= PAYLOAD_DECAY;
    if ((double)bytes > worker->payload)
        worker->payload = (double)bytes;
}

/* worker->lock is held. */
static void enqueue(hf_worker *worker, hf_ctx *turn)
{
    if (worker->last)
        worker->last->behind = turn;
    else
        worker->first = turn;
    worker->last = turn;
    worker->queued++;
    if (worker->queued <= worker->idle_hands)
        pthread_cond_signal(&worker->work);
}

void hf__haul_admit(struct hf__haul *haul)
{
    hf_worker *worker = haul->errand.worker;
    const hf_claims *claims = haul->errand.op.claim.claims;
    size_t count = 0;
    haul->turns =
        claims ? hf__arena_alloc(&haul->arena, claims->count * sizeof *haul->turns) : NULL;
    for (size_t i = 0; haul->turns && i < claims->count; i++) {
        const hf_claimed *claimed = &claims->items[i];
        const struct hf__master *master =
            hf__master_find(worker, claimed->tenant_id, claimed->run.tenant);
        if (master)
            init_turn(&haul->turns[count++], haul, claimed, master);
    }
    if (!count) {
        hf__haul_free(haul);
        return;
    }
    hf_ctx *turns = haul->turns;
    haul->left = count;
    pthread_mutex_lock(&worker->lock);
    bool stopping = worker->stopping;
    for (size_t i = 0; i < count; i++) {
        hold(worker, &turns[i]);
        note_payload(worker, &turns[i].claimed->run);
        if (stopping)
            turns[i].state = HF__TURN_COMMITTING;
        else
            enqueue(worker, &turns[i]);
    }
    pthread_mutex_unlock(&worker->lock);
    for (size_t i = 0; stopping && i < count; i++)
        hf__turn_give_back(&turns[i]);
}
