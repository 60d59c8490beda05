/* Stopping: no new claims, what was not begun is given back, what runs gets the stop limit.
 * SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

#include "util/clock.h"
#include "worker/gate.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#define STUCK_AFTER HF_SECONDS(1) /* since the last handler began or ended */
#define KILL_TIME HF_SECONDS(3)   /* for programs to die and handlers to notice, after the limit */
#define ANSWER_TIME HF_SECONDS(3) /* for the last commits to be answered, after that */

/* Sleeps until nudged or until a monotonic time. */
static void watch(hf_worker *worker, int64_t until)
{
    struct pollfd fd = { .fd = worker->stop_fd, .events = POLLIN };
    int64_t left = until == INT64_MAX ? -1 : until - hf__monotonic_us();
    if (until != INT64_MAX && left < 0)
        left = 0;
    int64_t ms = left < 0 ? -1 : left / 1000 + 1;
    int got = poll(&fd, 1, ms > 3600000 ? 3600000 : (int)ms);
    uint64_t count;
    if (got > 0 && read(worker->stop_fd, &count, sizeof count) < 0 && errno != EAGAIN)
        return;
}

static void await_stop(hf_worker *worker)
{
    while (!atomic_load(&worker->stop_calls))
        watch(worker, hf__stuck_look(worker));
}

/* Those that wait, in their order; `untried`: but for those that failed before, since to give a run back forgets its
 * attempts. worker->lock is held. */
static hf_ctx *take_queue(hf_worker *worker, bool untried)
{
    hf_ctx *taken = NULL;
    hf_ctx **end = &taken;
    hf_ctx *queue = worker->first;
    worker->first = worker->last = NULL;
    worker->queued = 0;
    while (queue) {
        hf_ctx *turn = queue;
        queue = turn->behind;
        turn->behind = NULL;
        if (untried && turn->claimed->run.attempt > 1) {
            (void)hf__queue_append(worker, turn); /* its hand was woken before */
            continue;
        }
        turn->state = HF__TURN_COMMITTING;
        *end = turn;
        end = &turn->behind;
    }
    return taken;
}

/* Closes the queue and takes what is in it. */
static hf_ctx *close_queue(hf_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    worker->stopping = true;
    worker->beat_now = true;
    hf_ctx *queue = take_queue(worker, false);
    pthread_cond_broadcast(&worker->work);
    pthread_cond_broadcast(&worker->claimer);
    pthread_cond_broadcast(&worker->beat);
    pthread_mutex_unlock(&worker->lock);
    return queue;
}

static void give_back_queue(hf_ctx *queue)
{
    while (queue) {
        hf_ctx *turn = queue;
        queue = turn->behind;
        hf__turn_give_back(turn);
    }
}

bool hf__hands_are_stuck(const hf_worker *worker)
{
    return worker->running > 0 && worker->idle_hands == 0 &&
           hf__monotonic_us() - worker->moved_at >= STUCK_AFTER;
}

void hf__queue_let_go(hf_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    hf_ctx *queue = hf__hands_are_stuck(worker) ? take_queue(worker, true) : NULL;
    pthread_mutex_unlock(&worker->lock);
    give_back_queue(queue);
}

static bool drained(hf_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    bool done = worker->held_count == 0 && worker->claimer_ended &&
                worker->hands_alive == worker->abandoned;
    pthread_mutex_unlock(&worker->lock);
    return done;
}

/* True: drained. Ends early when a second stop comes, if that is wanted. */
static bool await_drained(hf_worker *worker, int64_t limit, bool hurry_on_second_stop)
{
    int64_t until = hf__monotonic_us() + limit;
    while (!drained(worker)) {
        if (hf__monotonic_us() >= until ||
            (hurry_on_second_stop && atomic_load(&worker->stop_calls) > 1))
            return false;
        int64_t next = hf__stuck_look(worker);
        watch(worker, next < until ? next : until);
    }
    return true;
}

static void close_handlers(hf_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    for (hf_ctx *turn = worker->held; turn; turn = turn->older)
        if (turn->state == HF__TURN_RUNNING)
            hf__turn_lose(turn, HF_CLOSED);
    pthread_mutex_unlock(&worker->lock);
}

/* The next turn whose handler does not return. */
static hf_ctx *abandon_one(hf_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    hf_ctx *turn = worker->held;
    while (turn && turn->state != HF__TURN_RUNNING)
        turn = turn->older;
    if (turn) {
        (void)hf__gate_shut(turn); /* a call that is under way is refused by the store */
        turn->state = HF__TURN_ABANDONED;
        turn->users++;
        worker->abandoned++;
    }
    pthread_mutex_unlock(&worker->lock);
    return turn;
}

/* A handler cannot be killed, only left alone: its run goes back, and whatever it still wants to
 * write is refused. */
static void abandon_handlers(hf_worker *worker)
{
    for (hf_ctx *turn = abandon_one(worker); turn; turn = abandon_one(worker))
        hf__turn_give_back(turn);
}

void hf__drain(hf_worker *worker)
{
    await_stop(worker);
    atomic_store(&worker->draining, true);
    hf__worker_say(worker, HF_WORKER_DRAINING, NULL);
    give_back_queue(close_queue(worker));
    if (!await_drained(worker, worker->stop_limit, true)) {
        close_handlers(worker);
        if (!await_drained(worker, KILL_TIME, false)) {
            abandon_handlers(worker);
            await_drained(worker, ANSWER_TIME, false);
        }
    }
    pthread_mutex_lock(&worker->lock);
    worker->quit = true;
    pthread_cond_broadcast(&worker->claimer);
    pthread_cond_broadcast(&worker->beat);
    pthread_mutex_unlock(&worker->lock);
}
