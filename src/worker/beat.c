/* The heartbeat: one for all runs that are held, and one for the worker itself.
 * SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"

#include <stdlib.h>

#define PERIOD_MOST HF_SECONDS(10)
#define PERIOD_LEAST HF_MILLISECONDS(10)
#define ALARMED_AFTER HF_SECONDS(1) /* many lost leases make one beat, and short runs none */
#define GRACE HF_SECONDS(10)        /* a worker is dead when three beats and this have passed */
#define STUCK_AFTER                                                                                \
    HF_SECONDS(10)            /* a handler that hears that its run is gone should be back by then */
#define SCHEMA_CHECK_BEATS 10 /* beats between looks at the schema's version */

int64_t hf__beat_period(const hf_worker *worker)
{
    int64_t period = worker->heartbeat ? worker->heartbeat : PERIOD_MOST;
    if (!worker->heartbeat && worker->shortest_lease && worker->shortest_lease / 3 < period)
        period = worker->shortest_lease / 3;
    return period < PERIOD_LEAST ? PERIOD_LEAST : period;
}

/* ---- The worker's row ---- */

/* Threads that were written off, and handlers whose runs are gone and that have not come back all the same. worker->lock is
 * held. */
static int count_stuck(const hf_worker *worker)
{
    int count = worker->abandoned;
    int64_t before = hf__monotonic_us() - STUCK_AFTER;
    for (const hf_ctx *turn = worker->held; turn; turn = turn->older)
        count += turn->state == HF__TURN_RUNNING && turn->lost_at && turn->lost_at < before;
    return count;
}

static int64_t time_to_live(hf_worker *worker, int *held, int *stuck)
{
    pthread_mutex_lock(&worker->lock);
    int64_t ttl = 3 * (worker->heartbeat ? worker->heartbeat : PERIOD_MOST) + GRACE;
    *held = worker->held_count;
    *stuck = count_stuck(worker);
    pthread_mutex_unlock(&worker->lock);
    return ttl;
}

/* worker->beat_lock is held. */
static hf_code say(hf_worker *worker, bool *known, hf_error *err)
{
    struct hf__arena arena = { 0 };
    struct hf__table params, found;
    int held;
    int stuck;
    int64_t ttl = time_to_live(worker, &held, &stuck);
    hf__table_init(&params, &arena, 6);
    hf__table_init(&found, &arena, 1);
    struct hf__cell *row = hf__table_add(&params);
    row[0] = hf__text(worker->name);
    row[1] = hf__number(held);
    row[2] = hf__number(atomic_load(&worker->idle));
    row[3] = hf__number(atomic_load(&worker->draining));
    row[4] = hf__number(ttl);
    row[5] = hf__number(stuck);
    hf_code code = params.failed ? hf__nomem(err) : HF_OK;
    if (code == HF_OK)
        code = hf__worker_query(worker, HF__STMT_BEAT_WORKER, &params, &found, err);
    *known = found.nrows > 0;
    hf__arena_free(&arena);
    return code;
}

hf_code hf__beat_say(hf_worker *worker, hf_error *err)
{
    bool known = true;
    pthread_mutex_lock(&worker->beat_lock);
    hf_code code = say(worker, &known, err);
    if (code == HF_OK && !known) {
        code = hf__identity_register(worker, err);
        if (code == HF_OK)
            code = say(worker, &known, err);
    }
    pthread_mutex_unlock(&worker->beat_lock);
    return code;
}

/* ---- The runs ---- */

/* One heartbeat under way. */
struct pulse {
    struct hf__errand errand; /* first: disposed of through it */
    hf_held *held;
    int *tenants;
    size_t count;
    int64_t at; /* monotonic us */
};

static void free_pulse(struct hf__errand *errand)
{
    struct pulse *pulse = (struct pulse *)errand;
    free(pulse->held);
    free(pulse->tenants);
    free(pulse);
}

static struct pulse *new_pulse(hf_worker *worker, size_t capacity)
{
    struct pulse *pulse = hf__calloc(1, sizeof *pulse);
    if (!pulse)
        return NULL;
    hf__errand_init(&pulse->errand, worker, &worker->beat, free_pulse);
    pulse->held = hf__calloc(capacity, sizeof *pulse->held);
    pulse->tenants = hf__calloc(capacity, sizeof *pulse->tenants);
    pulse->at = hf__monotonic_us();
    if (pulse->held && pulse->tenants)
        return pulse;
    free_pulse(&pulse->errand);
    return NULL;
}

bool hf__beat_lapsed(hf_ctx *turn)
{
    hf_worker *worker = turn->worker;
    pthread_mutex_lock(&worker->lock);
    bool lapsed = hf__monotonic_us() - turn->granted_at >= turn->claimed->lease;
    pthread_mutex_unlock(&worker->lock);
    return lapsed;
}

/* A suspect that has lived until its first heartbeat need not be alone any longer. worker->lock is held. */
static void give_company(hf_ctx *turn)
{
    if (!turn->alone)
        return;
    turn->alone = false;
    turn->worker->alone--;
    hf__claimer_prompt(turn->worker);
}

/* Leases younger than half a period can wait for the next beat, so that short runs cost no
 * heartbeats; after an alarm, a second. Returns NULL if there is nothing to prolong. worker->lock is held. */
static struct pulse *gather(hf_worker *worker, bool alarmed)
{
    struct pulse *pulse = worker->held ? new_pulse(worker, (size_t)worker->held_count) : NULL;
    if (!pulse)
        return NULL;
    int64_t age = hf__beat_period(worker) / 2;
    int64_t young = pulse->at - (alarmed && age > ALARMED_AFTER ? ALARMED_AFTER : age);
    for (hf_ctx *turn = worker->held; turn; turn = turn->older) {
        if (turn->extended_at > young || turn->haul->standing != HF__CLAIM_KEPT)
            continue;
        turn->extended_at = pulse->at;
        give_company(turn);
        pulse->tenants[pulse->count] = turn->master->id;
        pulse->held[pulse->count++] = (hf_held){
            .run = turn->claimed->run.id,
            .run_version = turn->claimed->run.version,
            .lease = turn->claimed->lease,
        };
    }
    if (pulse->count)
        return pulse;
    free_pulse(&pulse->errand);
    return NULL;
}

static void lose(hf_worker *worker, const hf_held *held)
{
    for (hf_ctx *turn = worker->held; turn; turn = turn->older)
        if (turn->haul->standing == HF__CLAIM_KEPT &&
            turn->claimed->run.version == held->run_version &&
            hf_id_equal(turn->claimed->run.id, held->run)) {
            if (turn->state == HF__TURN_RUNNING || turn->state == HF__TURN_QUEUED)
                hf__turn_lose(turn, held->code);
            return;
        }
}

/* A run that is being committed looks lost once the commit has happened; only its commit knows. */
static void heed_answer(hf_worker *worker, const struct pulse *pulse)
{
    pthread_mutex_lock(&worker->lock);
    for (hf_ctx *turn = worker->held; turn; turn = turn->older)
        if (turn->extended_at == pulse->at)
            turn->granted_at = pulse->errand.op.flushed_at;
    for (size_t i = 0; i < pulse->count; i++)
        if (pulse->held[i].code == HF_STALE || pulse->held[i].code == HF_RUN_CANCELLED)
            lose(worker, &pulse->held[i]);
    pthread_mutex_unlock(&worker->lock);
}

/* False: the worker ends. */
static bool prolong(hf_worker *worker, struct pulse *pulse)
{
    struct hf__op *op = &pulse->errand.op;
    op->kind = HF__OP_HEARTBEAT;
    op->heartbeat.held = pulse->held;
    op->heartbeat.tenants = pulse->tenants;
    op->heartbeat.count = pulse->count;
    if (!hf__errand_run(&pulse->errand))
        return false;
    hf__worker_heard_from_store(worker, op->code, &pulse->errand.error);
    if (op->code == HF_OK)
        heed_answer(worker, pulse);
    free_pulse(&pulse->errand);
    return true;
}

/* ---- The thread ---- */

static void check_schema(hf_worker *worker)
{
    struct hf__arena arena = { 0 };
    struct hf__table found;
    hf__table_init(&found, &arena, 2);
    if (hf__worker_query(worker, HF__STMT_GET_SCHEMA_VERSION, NULL, &found, NULL) == HF_OK &&
        found.nrows &&
        hf__as_number(hf__table_row(&found, 0)[1]) > hf__engine_schema(worker->engine))
        hf__worker_end(worker, HF_SCHEMA_NEWER);
    hf__arena_free(&arena);
}

void hf__beat_alarm(hf_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    worker->alarmed_at = hf__monotonic_us();
    if (!worker->alarm) {
        worker->alarm = worker->alarmed_at + ALARMED_AFTER;
        pthread_cond_broadcast(&worker->beat);
    }
    pthread_mutex_unlock(&worker->lock);
}

/* worker->lock is held. */
static int64_t next_beat(const hf_worker *worker, int64_t last)
{
    int64_t due = last + hf__beat_period(worker);
    return worker->alarm && worker->alarm < due ? worker->alarm : due;
}

/* Waits for the time of the next beat, which a shorter lease or an alarm brings nearer. False: the worker ends. */
static bool await_beat(hf_worker *worker, int64_t last, bool *alarmed)
{
    pthread_mutex_lock(&worker->lock);
    while (!worker->quit && !worker->beat_now && hf__monotonic_us() < next_beat(worker, last))
        hf__worker_wait(worker, &worker->beat, next_beat(worker, last));
    worker->beat_now = false;
    *alarmed = worker->alarm && worker->alarm <= hf__monotonic_us();
    if (*alarmed) /* what is too young for this beat may have been lost since the first alarm */
        worker->alarm = worker->alarmed_at + ALARMED_AFTER > worker->alarm
                            ? worker->alarmed_at + ALARMED_AFTER
                            : 0;
    bool go_on = !worker->quit;
    pthread_mutex_unlock(&worker->lock);
    return go_on;
}

void *hf__beat_main(void *arg)
{
    hf_worker *worker = arg;
    int64_t last = hf__monotonic_us();
    int64_t said = last;
    unsigned beats = 0;
    int64_t called = 0;
    bool alarmed = false;
    bool go_on = hf__chores_call(worker, &called);
    while (go_on && await_beat(worker, last, &alarmed)) {
        last = hf__monotonic_us();
        pthread_mutex_lock(&worker->lock);
        struct pulse *pulse = gather(worker, alarmed);
        pthread_mutex_unlock(&worker->lock);
        if (pulse && !prolong(worker, pulse))
            break;
        hf__queue_let_go(worker);
        int64_t row_period = worker->heartbeat ? worker->heartbeat : PERIOD_MOST;
        if (last - said >= row_period || atomic_load(&worker->draining) ||
            atomic_load(&worker->store_lost)) {
            said = last;
            if (hf__beat_say(worker, NULL) == HF_OK && ++beats % SCHEMA_CHECK_BEATS == 0)
                check_schema(worker);
            go_on = hf__chores_call(worker, &called);
        }
    }
    return NULL;
}
