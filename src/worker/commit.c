/* Sending a turn's decision, and what follows from the answer.
 * SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

#include "client/ids.h"
#include "function/function.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdio.h>

void hf__turn_let_go(hf_ctx *turn)
{
    hf_worker *worker = turn->worker;
    if (turn->gone)
        return;
    turn->gone = true;
    if (turn->newer)
        turn->newer->older = turn->older;
    else
        worker->held = turn->older;
    if (turn->older)
        turn->older->newer = turn->newer;
    worker->held_count--;
    worker->alone -= turn->alone;
    if (worker->held_count == 0)
        worker->shortest_lease = 0;
    hf__claimer_prompt(worker);
    if (worker->stopping && worker->held_count == 0)
        hf__worker_nudge(worker);
}

void hf__turn_release(hf_ctx *turn)
{
    hf_worker *worker = turn->worker;
    struct hf__haul *haul = turn->haul;
    struct hf__arena arena = { 0 };
    pthread_mutex_lock(&worker->lock);
    bool last = --turn->users == 0;
    if (last || (turn->state == HF__TURN_ABANDONED && turn->answered))
        hf__turn_let_go(turn); /* its memory stays until its handler comes back */
    if (last) {
        hf__function_free(turn);
        arena = turn->arena; /* the turn itself may be gone once the lock is */
    }
    bool empty = last && --haul->left == 0;
    pthread_mutex_unlock(&worker->lock);
    hf__arena_free(&arena);
    if (empty)
        hf__haul_free(haul);
}

static hf_status status_after(hf_turn turn)
{
    switch (turn) {
    case HF_TURN_SUCCEED: return HF_SUCCEEDED;
    case HF_TURN_FAIL: return HF_FAILED;
    case HF_TURN_UNFIT:
    case HF_TURN_WAIT: return HF_WAITING;
    case HF_TURN_GO_ON: return HF_LEASED;
    case HF_TURN_RETRY:
    case HF_TURN_GIVE_BACK: break;
    }
    return HF_PENDING;
}

/* What a line about the run's end says beside its status; NULL: nothing. */
static const char *remark(const hf_ctx *turn, char *buffer, size_t size)
{
    int64_t left = turn->op.commit.children_left;
    if (left == 0 || turn->transition.turn != HF_TURN_SUCCEED)
        return turn->transition.last_error;
    snprintf(buffer, size, "%" PRId64 " %s still at work", left,
             left == 1 ? "child is" : "children are");
    return buffer;
}

static void report(const hf_ctx *turn, hf_code code)
{
    char buffer[64];
    const hf_worker *worker = turn->worker;
    if (!worker->observer)
        return;
    const hf_run *run = &turn->claimed->run;
    hf_worker_event event = {
        .kind = code == HF_OK ? HF_WORKER_RUN_FINISHED : HF_WORKER_RUN_LOST,
        .run = run->id,
        .workflow = run->workflow,
        .tenant = run->tenant,
        .trace = run->trace,
        .attempt = run->attempt,
        .status =
            code == HF_OK
                ? status_after(turn->op.commit.children_fail ? HF_TURN_FAIL : turn->transition.turn)
                : run->status,
        .message = code == HF_OK ? remark(turn, buffer, sizeof buffer) : hf_code_meaning(code),
        .duration = turn->duration,
    };
    hf__worker_observe(worker, &event);
}

/* The store refused what the turn brought, not the turn: the run must not hang until its lease
 * ends, so it fails with that as its error. */
static void send_plain(hf_ctx *turn)
{
    hf_transition *t = &turn->transition;
    turn->plain = true;
    if (t->turn == HF_TURN_SUCCEED || t->turn == HF_TURN_WAIT) {
        t->error_code = t->turn == HF_TURN_SUCCEED ? "result_refused" : "wait_refused";
        t->turn = HF_TURN_FAIL;
    }
    if (!t->last_error || t->result)
        t->last_error = turn->op_error.message;
    t->result = NULL;
    t->error = NULL;
    t->event_count = t->start_count = t->child_count = 0;
    t->timer_count = t->outbox_count = t->task_count = t->withdrawn_task_count = 0;
    turn->op.error = NULL;
    hf__turn_commit(turn);
}

static bool may_try_again(const hf_ctx *turn)
{
    hf_worker *worker = turn->worker;
    pthread_mutex_lock(&worker->lock);
    bool quit = worker->quit;
    pthread_mutex_unlock(&worker->lock);
    hf_code lost = (hf_code)atomic_load(&turn->lost);
    return !quit && lost != HF_STALE && lost != HF_RUN_CANCELLED;
}

static void decided(struct hf__op *op, void *arg)
{
    hf_ctx *turn = arg;
    switch (op->code) {
    case HF_OK:
    case HF_STALE:
    case HF_RUN_CANCELLED:
    case HF_NOT_ALLOWED:
    case HF_CLOSED: break;
    case HF_UNAVAILABLE:
    case HF_LOCKED: /* of a store that is being closed: else a commit waits */
        if (may_try_again(turn)) {
            hf__turn_commit(turn);
            return;
        }
        break;
    default:
        if (!turn->plain && may_try_again(turn)) {
            send_plain(turn);
            return;
        }
    }
    report(turn, op->code);
    pthread_mutex_lock(&turn->worker->lock);
    turn->answered = true;
    pthread_mutex_unlock(&turn->worker->lock);
    hf__turn_release(turn);
}

/* Operations on a family of runs share a flusher. Claims go by shard 0 and ends by odd ones, so
 * that where there are two flushers a claim does not wait for ends: the two are the whole load
 * of a busy worker. */
static uint64_t shard_of(const hf_run *run)
{
    return hf__shard_of(hf_id_is_zero(run->root) ? run->id : run->root) | 1;
}

void hf__turn_commit(hf_ctx *turn)
{
    const hf_run *run = &turn->claimed->run;
    hf_error *error = turn->plain ? NULL : &turn->op_error;
    turn->transition.version = HF_TRANSITION_VERSION;
    turn->transition.run = run->id;
    turn->transition.run_version = run->version;
    turn->transition.worker = turn->worker->name;
    turn->op = (struct hf__op){
        .kind = HF__OP_COMMIT,
        .tenant = turn->master->id,
        .actor = turn->worker->name,
        .commit = {
            .transition = &turn->transition,
            .start_ids = turn->start_ids ? turn->start_ids : &turn->letter.id,
            .child_ids = turn->child_ids,
            .parentless = hf_id_is_zero(run->parent),
            .child = hf_id_is_zero(run->parent) ? NULL : run,
            .workflow = run->workflow,
            .duration = turn->duration,
            .slot_lane = turn->claimed->limited ? turn->claimed->lane : 0,
        },
        .error = error,
        .done = decided,
        .done_arg = turn,
        .patience = -1,
        .shard = shard_of(run),
    };
    enum hf__standing standing = hf__haul_hold_back(turn);
    if (standing != HF__CLAIM_OPEN)
        hf__turn_send(turn, standing);
}

void hf__turn_send(hf_ctx *turn, enum hf__standing standing)
{
    if (standing == HF__CLAIM_KEPT) {
        hf__engine_submit(turn->worker->engine, &turn->op);
    } else {
        turn->op.code = HF_STALE;
        decided(&turn->op, turn);
    }
}
