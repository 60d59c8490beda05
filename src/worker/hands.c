/* The threads that run handlers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

#include "util/clock.h"
#include "util/random.h"

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
static hf_ctx *pop(hf_worker *worker)
{
    hf_ctx *turn = worker->first;
    worker->first = turn->behind;
    if (!worker->first)
        worker->last = NULL;
    worker->queued--;
    worker->running++;
    worker->moved_at = hf__monotonic_us();
    turn->state = HF__TURN_RUNNING;
    return turn;
}

/* The next run, or NULL when the worker is stopping. */
static hf_ctx *take(hf_worker *worker, bool had_one, int64_t duration)
{
    hf_ctx *turn = NULL;
    pthread_mutex_lock(&worker->lock);
    if (had_one)
        put_down(worker, duration);
    worker->idle_hands++;
    while (!worker->first && !worker->stopping) {
        hf__claimer_prompt(worker);
        pthread_cond_wait(&worker->work, &worker->lock);
    }
    worker->idle_hands--;
    if (worker->first) {
        turn = pop(worker);
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
    for (hf_ctx *turn = take(worker, false, -1); turn; turn = take(worker, true, duration))
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
