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
    hf__haul_release((struct hf__haul *)errand);
}

/* From the thread that flushes: the commit of an open claim was answered. */
static void settle(struct hf__errand *errand)
{
    struct hf__haul *haul = (struct hf__haul *)errand;
    hf_worker *worker = errand->worker;
    enum hf__standing standing = errand->op.code == HF_OK ? HF__CLAIM_KEPT : HF__CLAIM_LOST;
    pthread_mutex_lock(&worker->lock);
    haul->standing = standing;
    for (size_t i = 0; standing == HF__CLAIM_LOST && i < haul->turn_count; i++)
        hf__turn_lose(&haul->turns[i], HF_STALE);
    hf_ctx *unsent = haul->unsent;
    haul->unsent = NULL;
    pthread_cond_broadcast(&worker->settled);
    pthread_mutex_unlock(&worker->lock);
    while (unsent) {
        hf_ctx *turn = unsent;
        unsent = turn->behind;
        hf__turn_send(turn, standing);
    }
}

/* Claims that were never told early are kept: most turns take no lock for it. */
bool hf__haul_await(const hf_ctx *turn)
{
    hf_worker *worker = turn->worker;
    if (!turn->haul->errand.told)
        return true;
    pthread_mutex_lock(&worker->lock);
    while (turn->haul->standing == HF__CLAIM_OPEN)
        pthread_cond_wait(&worker->settled, &worker->lock);
    bool kept = turn->haul->standing == HF__CLAIM_KEPT;
    pthread_mutex_unlock(&worker->lock);
    return kept;
}

enum hf__standing hf__haul_hold_back(hf_ctx *turn)
{
    struct hf__haul *haul = turn->haul;
    if (!haul->errand.told)
        return HF__CLAIM_KEPT;
    pthread_mutex_lock(&turn->worker->lock);
    enum hf__standing standing = haul->standing;
    if (standing == HF__CLAIM_OPEN) {
        turn->behind = haul->unsent;
        haul->unsent = turn;
    }
    pthread_mutex_unlock(&turn->worker->lock);
    return standing;
}

/* One that holds more than its hands can carry has enough to do until a claim is committed: to be told of it early would only
 * cost. */
static bool is_calm(hf_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    bool calm = worker->held_count < worker->threads;
    pthread_mutex_unlock(&worker->lock);
    return calm;
}

void hf__haul_release(struct hf__haul *haul)
{
    hf_worker *worker = haul->errand.worker;
    pthread_mutex_lock(&worker->lock);
    bool last = --haul->left == 0;
    pthread_mutex_unlock(&worker->lock);
    if (last)
        hf__haul_free(haul);
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
    turn->granted_at = haul->errand.op.flushed_at;
    turn->users = 1;
    turn->wake_fd = -1;
    turn->alone = claimed->suspect && claimed->run.attempt >= HF__ALONE_ATTEMPT &&
                  !claimed->exhausted && !claimed->overdue;
    atomic_init(&turn->lost, HF_OK);
    hf__arena_init(&turn->arena, 256);
}

/* Whom a haul wakes once worker->lock is free: woken under it, they would only wait for it. */
struct wakes {
    int hands;
    bool beat;
};

static void wake(hf_worker *worker, struct wakes wakes)
{
    for (int i = 0; i < wakes.hands; i++)
        pthread_cond_signal(&worker->work);
    if (wakes.beat)
        pthread_cond_signal(&worker->beat);
}

/* True: the next beat is due earlier for it. worker->lock is held. */
static bool hold(hf_worker *worker, hf_ctx *turn)
{
    turn->older = worker->held;
    if (worker->held)
        worker->held->newer = turn;
    worker->held = turn;
    turn->alone &= worker->held_count == 0; /* beside others, it keeps nobody away */
    worker->held_count++;
    worker->alone += turn->alone;
    int64_t lease = turn->claimed->lease;
    int64_t period = hf__beat_period(worker);
    if (!worker->shortest_lease || lease < worker->shortest_lease)
        worker->shortest_lease = lease;
    return hf__beat_period(worker) < period;
}

/* worker->lock is held. */
static void note_payload(hf_worker *worker, const hf_run *run)
{
    size_t bytes = (run->input ? strlen(run->input) : 0) + (run->state ? strlen(run->state) : 0);
    worker->payload *= PAYLOAD_DECAY;
    if ((double)bytes > worker->payload)
        worker->payload = (double)bytes;
}

bool hf__queue_append(hf_worker *worker, hf_ctx *turn)
{
    if (worker->last)
        worker->last->behind = turn;
    else
        worker->first = turn;
    worker->last = turn;
    worker->queued++;
    return worker->queued <= worker->idle_hands;
}

/* Turns of what the claim brought, for the tenants that are known; `ask`: the store is asked about others. Returns how many. */
static size_t init_turns(struct hf__haul *haul, bool ask)
{
    hf_worker *worker = haul->errand.worker;
    const hf_claims *claims = haul->errand.op.claim.claims;
    size_t count = 0;
    haul->turns = hf__arena_alloc(&haul->arena, claims->count * sizeof *haul->turns);
    for (size_t i = 0; haul->turns && i < claims->count; i++) {
        const hf_claimed *claimed = &claims->items[i];
        const struct hf__master *master =
            haul->master ? haul->master : hf__master_known(worker, claimed->tenant_id);
        if (!master && ask)
            master = hf__master_add(worker, claimed->run.tenant);
        if (master)
            init_turn(&haul->turns[count++], haul, claimed, master);
    }
    return count;
}

/* worker->lock is held. */
static struct wakes admit(struct hf__haul *haul, size_t count, bool stopping)
{
    hf_worker *worker = haul->errand.worker;
    hf_ctx *turns = haul->turns;
    struct wakes wakes = { 0 };
    haul->admitted = true;
    haul->turn_count = count;
    haul->left += count;
    for (size_t i = 0; i < count; i++) {
        wakes.beat |= hold(worker, &turns[i]);
        note_payload(worker, &turns[i].claimed->run);
        if (stopping)
            turns[i].state = HF__TURN_COMMITTING;
        else
            wakes.hands += hf__queue_append(worker, &turns[i]);
    }
    return wakes;
}

void hf__haul_admit(struct hf__haul *haul)
{
    hf_worker *worker = haul->errand.worker;
    if (haul->admitted)
        return;
    size_t count = init_turns(haul, true);
    pthread_mutex_lock(&worker->lock);
    bool stopping = worker->stopping;
    if (haul->standing == HF__CLAIM_LOST)
        count = 0;
    struct wakes wakes = admit(haul, count, stopping);
    pthread_mutex_unlock(&worker->lock);
    wake(worker, wakes);
    for (size_t i = 0; stopping && i < count; i++)
        hf__turn_give_back(&haul->turns[i]);
}

/* From the thread that flushes: what the claim brought is known, its commit is on its way. Hands are woken from here: the claimer,
 * which waits, would only pass it on. Where there is more to do than that, it is the claimer's. */
static void open_haul(struct hf__op *op, void *arg)
{
    struct hf__haul *haul = arg;
    hf_worker *worker = haul->errand.worker;
    size_t brought = op->claim.claims->count;
    struct wakes wakes = { 0 };
    pthread_mutex_lock(&worker->lock);
    haul->standing = HF__CLAIM_OPEN;
    haul->errand.told = true;
    if (!haul->errand.left && !worker->stopping && init_turns(haul, false) == brought)
        wakes = admit(haul, brought, false);
    else
        pthread_cond_signal(haul->errand.answer);
    pthread_mutex_unlock(&worker->lock);
    wake(worker, wakes);
}

struct hf__haul *hf__haul_new(hf_worker *worker)
{
    struct hf__haul *haul = hf__calloc(1, sizeof *haul);
    if (!haul)
        return NULL;
    hf__errand_init(&haul->errand, hf__worker_ref(worker), &worker->claimer, dispose);
    hf__arena_init(&haul->arena, 0);
    haul->errand.settle = settle;
    haul->errand.op.claim.early = is_calm(worker) ? open_haul : NULL;
    haul->sent_at = hf__monotonic_us();
    haul->left = 1;
    return haul;
}
