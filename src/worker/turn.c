/* One turn: what the handler said becomes a transition.
 * SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

#include "client/fit.h"
#include "client/ids.h"
#include "function/function.h"
#include "util/buffer.h"
#include "util/clock.h"
#include "util/error.h"
#include "worker/gate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

bool hf__turn_overdue(const hf_ctx *turn)
{
    return turn->deadline != INT64_MAX && hf__monotonic_us() >= turn->deadline;
}

void hf__turn_lose(hf_ctx *turn, hf_code code)
{
    int held = HF_OK;
    uint64_t one = 1;
    if (!atomic_compare_exchange_strong(&turn->lost, &held, (int)code))
        return;
    turn->lost_at = hf__monotonic_us();
    if (atomic_load(&turn->leavable))
        hf__stuck_expect(turn->worker, turn->lost_at + turn->worker->lost_grace);
    if (turn->wake_fd >= 0 && write(turn->wake_fd, &one, sizeof one) < 0)
        return; /* the counter is full: it is awake already */
}

/* ---- Failing ---- */

static void fail_for_good(hf_ctx *turn, const char *code, const char *message)
{
    hf__fail_for_good(&turn->transition, turn->claimed, &turn->letter, &turn->arena, code, message);
}

/* A handler may return any number. */
static const char *meaning_of(hf_code code, char number[80])
{
    if (strcmp(hf_code_name(code), "unknown") != 0)
        return hf_code_meaning(code);
    snprintf(number, 80, "the handler returned %d, which is no code of Holdfast's", (int)code);
    return number;
}

/* A handler may write anything into its error: it comes out as bounded text. */
static const char *clean_message(hf_ctx *turn, hf_code code, hf_error *err)
{
    hf_error clean;
    char number[80];
    err->message[sizeof err->message - 1] = '\0';
    hf__fail(&clean, code, "%s", err->message[0] ? err->message : meaning_of(code, number));
    const char *copy = hf__arena_strdup(&turn->arena, clean.message);
    return copy ? copy : hf_code_meaning(code);
}

/* A run that gives up on a failed step, or on a wait, has that one's error, unless the handler has said otherwise. */
static void blame_call(hf_ctx *turn, hf_code code, const char *message)
{
    const struct hf__entry *step = hf__function_failure(turn, code);
    if (!turn->error_code && hf__function_gave_up_waiting(turn, code))
        turn->error_code = "wait_timeout";
    if (!step)
        return;
    if (!turn->error_code)
        turn->error_code = hf__entry_code(step);
    if (!turn->error)
        turn->error = hf__error_json(&turn->arena, turn->claimed->run.attempt, turn->error_code,
                                     message, step->name, step->details);
}

static void decide_failure(hf_ctx *turn, hf_code code, hf_error *err, struct hf__random *random)
{
    struct hf__failure failure = {
        .permanent = code == HF_PERMANENT || hf__function_is_hopeless(turn, code),
        .retry_after = turn->retry_after,
    };
    const char *message = clean_message(turn, code, err);
    blame_call(turn, code, message);
    turn->transition.error = turn->error;
    hf__fail_or_retry(&turn->transition, turn->claimed, &turn->letter, &turn->arena, &failure,
                      turn->error_code ? turn->error_code : hf_code_name(code), message,
                      hf__random_unit(random));
}

/* While the store cannot tell how long it has waited, it goes on waiting. */
static void leave_to_others(hf_ctx *turn, hf_error *err)
{
    bool over = false;
    const char *message = clean_message(turn, HF_PERMANENT, err);
    if (hf__fit_is_over(turn->worker->engine, turn->master->id, turn->claimed->run.id, &over,
                        NULL) != HF_OK)
        over = false;
    hf__leave_to_others(&turn->transition, turn->claimed, &turn->letter, &turn->arena, message,
                        over);
}

/* ---- Playing ---- */

static void report_start(const hf_ctx *turn)
{
    const hf_worker *worker = turn->worker;
    if (!worker->observer)
        return;
    const hf_run *run = &turn->claimed->run;
    hf_worker_event event = {
        .kind = HF_WORKER_RUN_STARTED,
        .run = run->id,
        .workflow = run->workflow,
        .tenant = run->tenant,
        .trace = run->trace,
        .attempt = run->attempt,
        .status = HF_LEASED,
    };
    hf__worker_observe(worker, &event);
}

static void report_loss(const hf_ctx *turn, hf_code lost, int64_t duration)
{
    const hf_worker *worker = turn->worker;
    const hf_run *run = &turn->claimed->run;
    if (lost == HF_STALE)
        hf__metrics_lost(hf__engine_metrics(worker->engine), turn->master->id, run->workflow);
    if (!worker->observer)
        return;
    hf_worker_event event = {
        .kind = HF_WORKER_RUN_LOST,
        .run = run->id,
        .workflow = run->workflow,
        .tenant = run->tenant,
        .trace = run->trace,
        .attempt = run->attempt,
        .status = lost == HF_RUN_CANCELLED ? HF_CANCELLED : HF_LEASED,
        .message = hf_code_meaning(lost),
        .duration = duration,
    };
    hf__worker_observe(worker, &event);
}

/* To try again would do the work again, and give the same. */
static void refuse_result(hf_ctx *turn)
{
    const char *message = hf__arena_printf(
        &turn->arena, "the result given to hf_return was refused: %s", turn->refused);
    fail_for_good(turn, "result_refused", message ? message : turn->refused);
}

static void decide(hf_ctx *turn, hf_code code, hf_error *err, struct hf__random *random)
{
    hf_transition *t = &turn->transition;
    if (code == HF_SUSPENDED && turn->suspended)
        return;
    turn->start_ids = turn->child_ids = NULL;
    *t = (hf_transition){ .events = turn->events, .event_count = turn->event_count };
    if (hf__turn_overdue(turn)) {
        fail_for_good(turn, "deadline_exceeded",
                      "the run's deadline passed while it was worked on");
    } else if (turn->refused && (code == HF_OK || code == HF_INVALID)) {
        refuse_result(turn);
    } else if (code == HF_OK) {
        t->turn = HF_TURN_SUCCEED;
        t->result = turn->result ? turn->result : "null";
    } else if (turn->unfit) {
        leave_to_others(turn, err);
    } else {
        decide_failure(turn, code, err, random);
    }
}

/* True: the hand may decide. False: the drain has given the run back meanwhile. */
static bool begin_commit(hf_ctx *turn)
{
    hf_worker *worker = turn->worker;
    pthread_mutex_lock(&worker->lock);
    bool mine = turn->state == HF__TURN_RUNNING;
    if (mine)
        turn->state = HF__TURN_COMMITTING;
    else
        worker->abandoned--;
    pthread_mutex_unlock(&worker->lock);
    return mine;
}

/* Its handler was left behind, and is back. What became of the run was told then; the engine may be gone by now. */
static void come_back(hf_ctx *turn, int64_t duration)
{
    const hf_run *run = &turn->claimed->run;
    hf_worker_event event = {
        .kind = HF_WORKER_THREAD_BACK,
        .run = run->id,
        .workflow = run->workflow,
        .tenant = run->tenant,
        .trace = run->trace,
        .attempt = run->attempt,
        .status = HF_LEASED,
        .duration = duration,
    };
    hf__worker_observe(turn->worker, &event);
    hf__turn_release(turn);
}

static void finish(hf_ctx *turn, hf_code code, hf_error *err, int64_t duration,
                   struct hf__random *random)
{
    bool mine = begin_commit(turn);
    hf_code lost = (hf_code)atomic_load(&turn->lost);
    if (!mine && turn->hand && turn->hand->written_off) {
        come_back(turn, duration);
        return;
    }
    if (!mine || lost == HF_STALE || lost == HF_RUN_CANCELLED) {
        report_loss(turn, lost, duration);
        hf__turn_release(turn);
        return;
    }
    turn->duration = duration > 0 ? duration : 1; /* 0: no handler was called */
    if (lost == HF_CLOSED && code != HF_OK)
        turn->transition.turn = HF_TURN_GIVE_BACK;
    else
        decide(turn, code, err, random);
    hf__turn_commit(turn);
}

/* Runs that must not reach a handler, and why. */
static const char *refusal(const hf_claimed *claimed, const char **code)
{
    if (claimed->overdue) {
        *code = "deadline_exceeded";
        return "the run's deadline has passed";
    }
    *code = "attempts_exhausted";
    return "no attempts are left; its last holder did not come back";
}

/* Handlers of the program's own may never come back. Programs are killed, and the engine's chores end. */
static void allow_leaving(hf_ctx *turn)
{
    hf_worker *worker = turn->worker;
    atomic_store(&turn->leavable, true);
    if (turn->deadline != INT64_MAX)
        hf__stuck_expect(worker, turn->deadline + worker->lost_grace);
    if (atomic_load(&turn->lost) != HF_OK)
        hf__stuck_expect(worker, hf__monotonic_us());
}

/* The handler is back, and the worker may no longer leave it behind. A thread of it that is still inside a call comes out first:
 * it uses what ends with the turn, and the rule that it breaks must be seen. False: the worker has left it. */
static bool keep_gate(hf_ctx *turn)
{
    while (!hf__gate_enter(turn)) {
        if (atomic_load(&turn->gate) == HF__GATE_LEFT)
            return false;
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
    return true;
}

static int64_t play_handler(hf_ctx *turn, hf_handler handler, void *arg, bool leavable,
                            struct hf__random *random)
{
    hf_error err;
    err.code = HF_OK;
    err.sqlstate[0] = err.message[0] = '\0';
    const char *input = turn->claimed->run.input;
    report_start(turn);
    if (leavable)
        allow_leaving(turn);
    int64_t began = hf__monotonic_us();
    hf_code code = handler(turn, input ? input : "null", &err, arg);
    int64_t duration = hf__monotonic_us() - began;
    if (keep_gate(turn))
        code = hf__function_outcome(turn, code, &err);
    finish(turn, code, &err, duration, random);
    return duration;
}

/* What waited in the queue past its lease, because the process was stopped or the store was away, may be somebody
 * else's by now, even finished: it is not begun. The store knows whose it is, so it is given back. True: it was. */
static bool leave_alone(hf_ctx *turn)
{
    hf_code lost = (hf_code)atomic_load(&turn->lost);
    bool gone = lost == HF_STALE || lost == HF_RUN_CANCELLED;
    if (!gone && !hf__beat_lapsed(turn))
        return false;
    if (begin_commit(turn) && !gone) {
        hf__turn_give_back(turn);
    } else {
        if (hf__haul_await(turn))
            report_loss(turn, lost, 0); /* else it never was held */
        hf__turn_release(turn);
    }
    return true;
}

int64_t hf__turn_play(hf_ctx *turn, struct hf__random *random)
{
    const hf_claimed *claimed = turn->claimed;
    const char *code = "no_handler_registered";
    const char *message = code;
    if (leave_alone(turn))
        return -1;
    if (claimed->overdue || claimed->exhausted) {
        message = refusal(claimed, &code);
    } else {
        hf_handler chore = hf__chore_find(claimed->run.workflow);
        const struct hf__served *route =
            chore ? NULL : hf__registry_find(&turn->worker->registry, claimed->run.workflow);
        if (chore) { /* which says nothing of how long handlers take */
            play_handler(turn, chore, NULL, false, random);
            return -1;
        }
        if (route)
            return play_handler(turn, route->handler, route->arg,
                                route->handler != hf__program_handle, random);
    }
    if (begin_commit(turn)) {
        fail_for_good(turn, code, message);
        hf__turn_commit(turn);
    } else {
        hf__turn_release(turn);
    }
    return -1;
}

void hf__turn_report_left(const hf_ctx *turn)
{
    const hf_run *run = &turn->claimed->run;
    hf_code lost = (hf_code)atomic_load(&turn->lost);
    const char *why = "its step took longer than its limit";
    if (lost != HF_OK)
        why = hf_code_meaning(lost);
    else if (hf__turn_overdue(turn))
        why = "the run's deadline passed";
    hf_worker_event event = {
        .kind = HF_WORKER_THREAD_LOST,
        .run = run->id,
        .workflow = run->workflow,
        .tenant = run->tenant,
        .trace = run->trace,
        .attempt = run->attempt,
        .status = lost == HF_RUN_CANCELLED ? HF_CANCELLED : HF_LEASED,
        .message = why,
        .duration = hf__monotonic_us() - turn->began_at,
    };
    if (lost == HF_STALE)
        hf__metrics_lost(hf__engine_metrics(turn->worker->engine), turn->master->id, run->workflow);
    hf__worker_observe(turn->worker, &event);
}

void hf__turn_decide_late(hf_ctx *turn)
{
    hf_error err = { 0 };
    struct hf__random random;
    hf_code code = HF_TIMEOUT; /* of the run: it fails for good */
    if (!hf__random_seed_os(&random))
        hf__random_seed(&random, (uint64_t)hf__monotonic_us());
    if (!hf__turn_overdue(turn))
        code = hf__function_outcome(turn, hf__function_end_late(turn), &err);
    turn->duration = hf__monotonic_us() - turn->began_at;
    decide(turn, code, &err, &random);
    pthread_mutex_lock(&turn->worker->lock);
    hf__turn_lose(turn, HF_TIMEOUT); /* as hf_check and hf_step_check tell the handler */
    pthread_mutex_unlock(&turn->worker->lock);
    hf__turn_commit(turn);
}

void hf__turn_give_back(hf_ctx *turn)
{
    turn->transition.turn = HF_TURN_GIVE_BACK;
    hf__turn_commit(turn);
}
