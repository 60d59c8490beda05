/* Handlers that do not come back: a step past its limit, a run that was cancelled, lost or is past its deadline. Nobody can end a
 * thread that runs somebody's code. So its run is decided without it, the thread is written off, and another takes its place;
 * whatever the handler calls from then on is refused (gate.h). All of this is hf_worker_run's thread's.
 * SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

#include "util/clock.h"
#include "worker/gate.h"

#define AGAIN_AFTER HF_MILLISECONDS(50) /* a call was under way, or the system gave no thread */

void hf__stuck_expect(hf_worker *worker, int64_t at)
{
    if (at < atomic_load(&worker->watched_until))
        hf__worker_nudge(worker);
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* When its handler has had its time; worker->lock is held. */
static int64_t over_at(const hf_ctx *turn)
{
    const hf_worker *worker = turn->worker;
    int64_t at = INT64_MAX, step_ends = atomic_load(&turn->step_ends);
    if (turn->state != HF__TURN_RUNNING || !atomic_load(&turn->leavable) ||
        atomic_load(&turn->lost) == HF_CLOSED) /* the drain's */
        return INT64_MAX;
    if (step_ends)
        at = step_ends + worker->step_grace;
    if (turn->lost_at)
        at = sooner(at, turn->lost_at + worker->lost_grace);
    if (turn->deadline != INT64_MAX)
        at = sooner(at, turn->deadline + worker->lost_grace);
    return at;
}

/* worker->lock is held. */
static void write_off(hf_ctx *turn, bool lost)
{
    hf_worker *worker = turn->worker;
    turn->state = HF__TURN_ABANDONED;
    turn->hand->written_off = true;
    worker->abandoned++;
    worker->running--;
    worker->moved_at = hf__monotonic_us();
    if (lost) {
        turn->answered = true;
        hf__turn_let_go(turn);
    } else {
        turn->users++; /* its commit */
    }
}

/* The next handler to leave behind, whose hand is written off then; NULL: there is none. *next: when to look again. */
static hf_ctx *leave_one(hf_worker *worker, bool *lost, int64_t *next)
{
    int64_t now = hf__monotonic_us();
    *next = INT64_MAX;
    pthread_mutex_lock(&worker->lock);
    hf_ctx *turn = worker->held;
    for (; turn; turn = turn->older) {
        int64_t at = over_at(turn);
        if (at <= now && hf__gate_shut(turn))
            break;
        *next = sooner(*next, at <= now ? now + AGAIN_AFTER : at);
    }
    if (turn) {
        *lost = atomic_load(&turn->lost) != HF_OK;
        turn->users++; /* ours, while we tell of it */
        write_off(turn, *lost);
    }
    pthread_mutex_unlock(&worker->lock);
    return turn;
}

static void leave(hf_ctx *turn, bool lost)
{
    hf__turn_report_left(turn);
    if (!lost)
        hf__turn_decide_late(turn);
    hf__turn_release(turn);
}

/* False: the system gives no thread. */
static bool replace_hands(hf_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    bool stopping = worker->stopping;
    pthread_mutex_unlock(&worker->lock);
    while (!stopping && hf__hands_count(worker) < worker->threads)
        if (!hf__hand_start(worker))
            return false;
    return true;
}

int64_t hf__stuck_look(hf_worker *worker)
{
    bool lost = false;
    int64_t next;
    atomic_store(&worker->watched_until,
                 INT64_MAX); /* who begins something from here on wakes us */
    for (hf_ctx *turn; (turn = leave_one(worker, &lost, &next));)
        leave(turn, lost);
    hf__hands_reap(worker);
    if (!replace_hands(worker))
        next = sooner(next, hf__monotonic_us() + AGAIN_AFTER);
    atomic_store(&worker->watched_until, next);
    return next;
}
