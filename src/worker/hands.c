/* The threads that run handlers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

#include "util/alloc.h"
#include "util/clock.h"
#include "util/random.h"

#include <stdlib.h>

/* The average is of about so many measurements: a first one that took long is soon outweighed. */
#define MEASURED_MOST 20

/* worker->lock is held. `duration` is what the last turn took; negative: nothing to learn from
 * it. */
static void put_down(hf_worker *worker, int64_t duration)
{
    worker->running--;
    worker->moved_at = hf__monotonic_us();
    if (duration < 0)
        return;
    if (worker->measured < MEASURED_MOST)
        worker->measured++;
    worker->average += ((double)duration - worker->average) / worker->measured;
}

/* worker->lock is held. */
static hf_ctx *pop(hf_worker *worker, struct hf__hand *hand)
{
    hf_ctx *turn = worker->first;
    worker->first = turn->behind;
    if (!worker->first)
        worker->last = NULL;
    worker->queued--;
    worker->running++;
    worker->moved_at = hf__monotonic_us();
    turn->state = HF__TURN_RUNNING;
    turn->hand = hand;
    turn->began_at = worker->moved_at;
    return turn;
}

/* The next run, or NULL when the worker is stopping, or another hand has taken the place of this one. */
static hf_ctx *take(struct hf__hand *hand, bool had_one, int64_t duration)
{
    hf_worker *worker = hand->worker;
    hf_ctx *turn = NULL;
    pthread_mutex_lock(&worker->lock);
    if (hand->written_off) {
        pthread_mutex_unlock(&worker->lock);
        return NULL;
    }
    if (had_one)
        put_down(worker, duration);
    worker->idle_hands++;
    while (!worker->first && !worker->stopping) {
        hf__claimer_prompt(worker);
        pthread_cond_wait(&worker->work, &worker->lock);
    }
    worker->idle_hands--;
    if (worker->first) {
        turn = pop(worker, hand);
        hf__claimer_prompt(worker);
    }
    pthread_mutex_unlock(&worker->lock);
    return turn;
}

void *hf__hand_main(void *arg)
{
    struct hf__hand *hand = arg;
    hf_worker *worker = hand->worker;
    struct hf__random random;
    if (!hf__random_seed_os(&random))
        hf__random_seed(&random, (uint64_t)hf__monotonic_us() ^ (uint64_t)(uintptr_t)hand);

    int64_t duration = -1;
    for (hf_ctx *turn = take(hand, false, -1); turn; turn = take(hand, true, duration))
        duration = hf__turn_play(turn, &random);

    hf__masters_leave(worker);
    pthread_mutex_lock(&worker->lock);
    hand->ended = true;
    worker->hands_alive--;
    hf__worker_nudge(worker);
    pthread_mutex_unlock(&worker->lock);
    hf__worker_unref(worker);
    return NULL;
}

/* ---- Their number ---- */

/* A hand keeps the caller's signal mask: handlers may start programs, which inherit it. */
bool hf__hand_start(hf_worker *worker)
{
    struct hf__hand *hand = hf__calloc(1, sizeof *hand);
    if (!hand)
        return false;
    hand->worker = hf__worker_ref(worker);
    atomic_fetch_add(&worker->master_users, 1);
    pthread_mutex_lock(&worker->lock);
    worker->hands_alive++;
    pthread_mutex_unlock(&worker->lock);
    if (pthread_create(&hand->thread, NULL, hf__hand_main, hand) == 0) {
        hand->next = worker->hands;
        worker->hands = hand;
        return true;
    }
    pthread_mutex_lock(&worker->lock);
    worker->hands_alive--;
    pthread_mutex_unlock(&worker->lock);
    atomic_fetch_sub(&worker->master_users, 1);
    hf__worker_unref(worker);
    free(hand);
    return false;
}

int hf__hands_count(hf_worker *worker)
{
    int count = 0;
    pthread_mutex_lock(&worker->lock);
    for (const struct hf__hand *hand = worker->hands; hand; hand = hand->next)
        count += !hand->written_off;
    pthread_mutex_unlock(&worker->lock);
    return count;
}

static bool has_ended(hf_worker *worker, const struct hf__hand *hand)
{
    pthread_mutex_lock(&worker->lock);
    bool ended = hand->ended;
    pthread_mutex_unlock(&worker->lock);
    return ended;
}

/* Its memory is its own until it has ended. */
void hf__hands_reap(hf_worker *worker)
{
    struct hf__hand **place = &worker->hands;
    while (*place) {
        struct hf__hand *hand = *place;
        if (!has_ended(worker, hand)) {
            place = &hand->next;
            continue;
        }
        pthread_join(hand->thread, NULL);
        *place = hand->next;
        free(hand);
    }
}

void hf__hands_part(hf_worker *worker)
{
    hf__hands_reap(worker);
    for (struct hf__hand *hand = worker->hands; hand; hand = hand->next)
        pthread_detach(hand->thread);
}
