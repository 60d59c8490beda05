/* Claims that are handed out before their commit is answered: a handler may begin, but nothing of it is sent until the
 * claim holds, and nothing ever if it does not. A2.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "client/client.h"
#include "contract/fixture.h"

#include "worker/worker.h"

#define NAPS_MOST 120000 /* of 1 ms, until a test gives up */

static hf_worker *worker;
static pthread_t thread;
static hf_code ended;
static hf_error reason;
static atomic_bool started;
static atomic_bool seen; /* what a test's `meanwhile` waited for */
static atomic_int calls;
static atomic_int lost; /* hf_code that the first call got from its step, or heard from hf_check */
static atomic_int past_step;

static void nap(void)
{
    struct timespec time = { .tv_nsec = 1000000 };
    nanosleep(&time, NULL);
}

/* ---- Handlers; each gives the number of its call as result ---- */

static hf_code done_by(hf_ctx *ctx, int call)
{
    char result[16];
    snprintf(result, sizeof result, "%d", call);
    return hf_return(ctx, result);
}

static hf_code return_at_once(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)input;
    (void)err;
    (void)arg;
    return done_by(ctx, atomic_fetch_add(&calls, 1) + 1);
}

static hf_code record_a_step(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    int64_t now_is;
    (void)input;
    (void)err;
    (void)arg;
    int call = atomic_fetch_add(&calls, 1) + 1;
    hf_code code = hf_now(ctx, &now_is);
    if (call == 1)
        atomic_store(&lost, (int)code);
    atomic_store(&past_step, call);
    return done_by(ctx, call);
}

static hf_code run_until_lost(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)input;
    (void)err;
    (void)arg;
    int call = atomic_fetch_add(&calls, 1) + 1;
    for (int i = 0; call == 1 && i < NAPS_MOST && hf_check(ctx) == HF_OK; i++)
        nap();
    if (call == 1)
        atomic_store(&lost, (int)hf_check(ctx));
    return done_by(ctx, call);
}

/* Does not listen: the first call ends when there was a second. */
static hf_code run_until_called_again(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)input;
    (void)err;
    (void)arg;
    int call = atomic_fetch_add(&calls, 1) + 1;
    for (int i = 0; call == 1 && i < NAPS_MOST && atomic_load(&calls) == 1; i++)
        nap();
    return done_by(ctx, call);
}

/* ---- The worker ---- */

static void observe(const hf_worker_event *event, void *arg)
{
    (void)arg;
    if (event->kind == HF_WORKER_STARTED || event->kind == HF_WORKER_STOPPED)
        atomic_store(&started, true);
}

static void *run_worker(void *arg)
{
    (void)arg;
    ended = hf_worker_run(worker, &reason);
    return NULL;
}

static bool has_idle_hands(void)
{
    pthread_mutex_lock(&worker->lock);
    bool idle = worker->idle_hands == worker->threads;
    pthread_mutex_unlock(&worker->lock);
    return idle;
}

static bool is_stopping(void)
{
    pthread_mutex_lock(&worker->lock);
    bool stopping = worker->stopping;
    pthread_mutex_unlock(&worker->lock);
    return stopping;
}

static void start_worker(hf_handler handler)
{
    hf_worker_options options = HF_WORKER_OPTIONS_INIT;
    options.threads = 2;
    options.poll = HF_HOURS(1);
    options.heartbeat = HF_MILLISECONDS(10);
    options.observer = observe;
    assert_ok(hf_worker_new(&worker, fx.client, &options, &fx.error));
    assert_ok(hf_worker_handle(worker, WORK, handler, NULL, &fx.error));
    atomic_store(&started, false);
    atomic_store(&seen, false);
    atomic_store(&calls, 0);
    atomic_store(&past_step, 0);
    atomic_store(&lost, HF_OK);
    assert_int_equal(pthread_create(&thread, NULL, run_worker, NULL), 0);
    while (!atomic_load(&started) || !has_idle_hands())
        nap();
}

static void end_worker(void)
{
    hf_worker_stop(worker);
    pthread_join(thread, NULL);
    hf_worker_free(worker);
    assert_int_equal(ended, HF_OK);
}

/* One that brings no claim along, since it says when it is due. */
static hf_id trigger_alone(void)
{
    hf_trigger_spec spec = spec_of(WORK);
    spec.run_at = now();
    return trigger_spec(&spec);
}

/* A run whose claim is handed out early and has this fate; when it is over, so is the worker. The test's clock stands
 * still, so no lease ends: what comes back does so by an adoption, or because it was never taken. */
static hf_id run_with(hf_handler handler, enum fate fate, void (*meanwhile)(void))
{
    hf_run *run = NULL;
    start_worker(handler);
    foretell_next(fate, meanwhile);
    hf_id id = trigger_alone();
    hf_code code = hf_wait(fx.client, &run, id, HF_MINUTES(2), &fx.error);
    hf_run_free(run);
    end_worker();
    assert_code(code, HF_OK);
    return id;
}

/* ---- Meanwhile ---- */

static bool has_unsent(void)
{
    pthread_mutex_lock(&worker->lock);
    bool has = worker->held && worker->held->haul->unsent == worker->held;
    pthread_mutex_unlock(&worker->lock);
    return has;
}

static void until_it_wants_to_commit(void)
{
    for (int i = 0; i < NAPS_MOST && !has_unsent(); i++)
        nap();
    atomic_store(&seen, has_unsent());
}

static void until_it_is_called(void)
{
    for (int i = 0; i < NAPS_MOST && !atomic_load(&calls); i++)
        nap();
    atomic_store(&seen, atomic_load(&calls) == 1);
}

/* Long enough for a step or a heartbeat that does not wait. */
static void until_it_would_have_written(void)
{
    until_it_is_called();
    for (int i = 0; i < 60; i++)
        nap();
    pthread_mutex_lock(&worker->lock);
    bool silent = worker->held && worker->held->extended_at == worker->held->haul->sent_at;
    pthread_mutex_unlock(&worker->lock);
    atomic_store(&seen, silent && !atomic_load(&past_step));
}

static void until_it_wants_to_commit_and_must_stop(void)
{
    until_it_wants_to_commit();
    hf_worker_stop(worker);
    while (!is_stopping())
        nap();
}

/* ---- Workers ---- */

static const char *journal_after(enum fate fate)
{
    return fate == ANSWER_IS_LOST ? "created started given_back started succeeded"
                                  : "created started succeeded";
}

static void a_handler_begins_before_its_claim_is_committed_and_its_end_waits_for_it(void **state)
{
    (void)state;
    hf_id id = run_with(return_at_once, COMMIT_WORKS, until_it_wants_to_commit);
    assert_true(atomic_load(&seen));
    assert_int_equal(atomic_load(&calls), 1);
    expect_journal(id, "created started succeeded");
}

static void a_step_and_heartbeats_wait_for_the_claim(void **state)
{
    (void)state;
    hf_id id = run_with(record_a_step, COMMIT_WORKS, until_it_would_have_written);
    assert_true(atomic_load(&seen));
    assert_int_equal(atomic_load(&lost), HF_OK);
    assert_int_equal(atomic_load(&calls), 1);
    expect_journal(id, "created started succeeded succeeded");
}

static void the_end_of_a_run_whose_claim_failed_is_never_written(void **state)
{
    (void)state;
    for (enum fate fate = COMMIT_IS_REFUSED; fate <= ANSWER_IS_LOST; fate++) {
        hf_id id = run_with(return_at_once, fate, until_it_wants_to_commit);
        assert_true(atomic_load(&seen));
        assert_int_equal(atomic_load(&calls), 2);
        assert_string_equal(get(id)->result, "2");
        assert_int_equal(get(id)->attempt, 1);
        expect_journal(id, journal_after(fate));
    }
}

static void a_handler_is_told_that_its_claim_failed(void **state)
{
    (void)state;
    for (enum fate fate = COMMIT_IS_REFUSED; fate <= ANSWER_IS_LOST; fate++) {
        hf_id id = run_with(run_until_lost, fate, until_it_is_called);
        assert_true(atomic_load(&seen));
        assert_int_equal(atomic_load(&lost), HF_STALE);
        assert_string_equal(get(id)->result, "2");
        expect_journal(id, journal_after(fate));
    }
}

static void a_handler_that_does_not_listen_keeps_its_run_from_nobody(void **state)
{
    (void)state;
    for (enum fate fate = COMMIT_IS_REFUSED; fate <= ANSWER_IS_LOST; fate++) {
        hf_id id = run_with(run_until_called_again, fate, until_it_is_called);
        assert_int_equal(atomic_load(&calls), 2);
        assert_string_equal(get(id)->result, "2");
        expect_journal(id, journal_after(fate));
    }
}

static void a_step_of_a_run_whose_claim_failed_is_refused(void **state)
{
    (void)state;
    for (enum fate fate = COMMIT_IS_REFUSED; fate <= ANSWER_IS_LOST; fate++) {
        hf_id id = run_with(record_a_step, fate, until_it_would_have_written);
        assert_true(atomic_load(&seen));
        assert_int_equal(atomic_load(&lost), HF_STALE);
        assert_string_equal(get(id)->result, "2");
        assert_int_equal(
            sql_number("SELECT count(*) FROM event WHERE run_id = %s AND kind = 2", sql_id(id)), 1);
    }
}

static void a_worker_may_stop_while_a_claim_that_will_fail_is_open(void **state)
{
    (void)state;
    start_worker(return_at_once);
    foretell_next(COMMIT_IS_PREVENTED, until_it_wants_to_commit_and_must_stop);
    hf_id id = trigger_alone();
    for (int i = 0; i < NAPS_MOST && !atomic_load(&seen); i++)
        nap();
    end_worker();
    assert_true(atomic_load(&seen));
    expect_journal(id, "created");
    assert_int_equal(claim()->run.attempt, 1);
}

/* ---- What is handed out early ---- */

static int told_with;  /* runs; -1: nothing was told */
static size_t claimed; /* runs, told or not */

static void note_told(struct hf__op *op, void *arg)
{
    (void)arg;
    told_with = (int)op->claim.claims->count;
}

/* How many runs were told of early, or -1. */
static int apply_early(hf_id run, struct hf__op *op)
{
    struct hf__arena arena = { 0 };
    struct hf__claim_head head = {
        .lane = (int32_t)sql_number("SELECT lane FROM run WHERE id = %s", sql_id(run)),
        .priority = (int)sql_number("SELECT priority FROM run WHERE id = %s", sql_id(run)),
    };
    op->kind = HF__OP_CLAIM;
    op->claim.heads = &head;
    op->claim.head_count = 1;
    op->claim.most = 10;
    op->claim.worker = WORKER;
    op->claim.early = note_told;
    op->claim.arena = &arena;
    told_with = -1;
    foretell_next(COMMIT_WORKS, NULL);
    hf__engine_apply(fx.client->engine, op, 1);
    assert_int_equal(op->code, HF_OK);
    claimed = op->claim.claims->count;
    hf__arena_free(&arena);
    return told_with;
}

/* Claims all that is due as a worker with so many idle hands would. */
static int claim_early(hf_id run, int hands, int suspect_attempts)
{
    struct hf__op op = { .claim = { .hands = hands, .suspect_attempts = suspect_attempts } };
    int told = apply_early(run, &op);
    assert_true(claimed > 0);
    return told;
}

static hf_id taken_by_another;

/* Claims a run that it has heard of, and up to where it was written. */
static int claim_heard(hf_id run, int64_t place)
{
    struct hf__op op = { .tenant = fx.client->tenant_id,
                         .claim = { .hands = 2, .run = run, .place = place } };
    int told = apply_early(run, &op);
    assert_int_equal(claimed, hf_id_equal(run, taken_by_another) ? 0 : 1);
    return told;
}

static void as_many_runs_as_hands_are_idle_are_handed_out_early(void **state)
{
    (void)state;
    trigger(WORK);
    assert_int_equal(claim_early(trigger(WORK), 2, 0), 2);
    trigger(WORK);
    assert_int_equal(claim_early(trigger(WORK), 1, 0), -1);
    assert_int_equal(claim_early(trigger(WORK), 0, 0), -1);
}

static void a_run_that_may_have_killed_its_worker_is_not_handed_out_early(void **state)
{
    hf_id id = trigger(WORK);
    (void)state;
    assert_int_equal(claim_early(id, 2, 1), 1);
    advance(LEASE);
    assert_int_equal(claim_early(id, 2, 1), -1);
}

static void a_run_with_mail_or_steps_is_not_handed_out_early(void **state)
{
    hf_id mailed = run_that_is(HF_WAITING, 0);
    (void)state;
    send_signal(mailed, "s");
    assert_int_equal(claim_early(mailed, 2, 0), -1);
    const hf_claimed *held = claim_new();
    hf_step_record step = { held->run.id, held->run.version, WORKER, "s", "succeeded", "1" };
    assert_ok(hf_step_save(fx.client, &step, &fx.error));
    retry_after(held, 1);
    advance(1);
    assert_int_equal(claim_early(held->run.id, 2, 0), -1);
}

/* ---- Runs that can be seen before they are on disk (PostgreSQL) ---- */

#define NEVER (INT64_C(1) << 62) /* a place that no log comes to */

static int looks;

static void count_look(void)
{
    looks++;
}

static void bring_log_to_disk(void)
{
    count_look();
    if (looks == 3)
        sql("SELECT pg_logical_emit_message(true, 'test', 'on disk')");
}

/* As a trigger leaves it that wakes an idle worker meanwhile. */
static hf_id deferred_run(void)
{
    hf_id run = trigger(WORK);
    sql("UPDATE run SET deferred = true WHERE id = %s", sql_id(run));
    return run;
}

static void a_run_that_is_heard_of_is_handed_out_once_it_is_on_disk(void **state)
{
    (void)state;
    if (fx.backend != BACKEND_POSTGRES)
        skip();
    looks = 0;
    when_disk_is_asked(count_look);
    assert_int_equal(claim_heard(deferred_run(), 1), 1);
    assert_int_equal(looks, 1);
    assert_int_equal(claim_heard(deferred_run(), NEVER), -1);
    assert_true(looks > 3);
    when_disk_is_asked(bring_log_to_disk);
    looks = 0;
    hf_id run = deferred_run();
    sql("SELECT pg_logical_emit_message(false, 'test', 'not on disk')");
    int64_t place = sql_number("SELECT pg_current_wal_insert_lsn() - '0/0'");
    assert_int_equal(claim_heard(run, place), 1);
    assert_in_range(looks, 1, 4); /* others may have brought it there before */
    when_disk_is_asked(NULL);
}

/* Of several that were woken for one run, only the one that gets it has something to wait for. */
static void who_does_not_get_the_run_does_not_wait_for_the_disk(void **state)
{
    (void)state;
    if (fx.backend != BACKEND_POSTGRES)
        skip();
    taken_by_another = deferred_run();
    claim();
    looks = 0;
    when_disk_is_asked(count_look);
    assert_int_equal(claim_heard(taken_by_another, NEVER), -1);
    assert_int_equal(looks, 1);
    when_disk_is_asked(NULL);
}

static void a_run_that_may_not_be_on_disk_is_not_handed_out_early(void **state)
{
    hf_trigger_spec keyed = spec_of(WORK);
    (void)state;
    if (fx.backend != BACKEND_POSTGRES)
        skip();
    assert_int_equal(claim_early(trigger(WORK), 2, 0), 1);
    assert_int_equal(claim_early(deferred_run(), 2, 0), -1);
    trigger(WORK);
    assert_int_equal(claim_early(deferred_run(), 2, 0), -1);
    deferred_run(); /* once it was claimed, it is certain */
    const hf_claimed *held = claim();
    retry_after(held, 1);
    advance(1);
    assert_int_equal(claim_early(held->run.id, 2, 0), 1);
    keyed.key = "k";
    assert_int_equal(claim_early(trigger_spec(&keyed), 2, 0), 1);
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(a_handler_begins_before_its_claim_is_committed_and_its_end_waits_for_it),
    CONTRACT_TEST(a_step_and_heartbeats_wait_for_the_claim),
    CONTRACT_TEST(the_end_of_a_run_whose_claim_failed_is_never_written),
    CONTRACT_TEST(a_handler_is_told_that_its_claim_failed),
    CONTRACT_TEST(a_handler_that_does_not_listen_keeps_its_run_from_nobody),
    CONTRACT_TEST(a_step_of_a_run_whose_claim_failed_is_refused),
    CONTRACT_TEST(a_worker_may_stop_while_a_claim_that_will_fail_is_open),
    CONTRACT_TEST(as_many_runs_as_hands_are_idle_are_handed_out_early),
    CONTRACT_TEST(a_run_that_may_have_killed_its_worker_is_not_handed_out_early),
    CONTRACT_TEST(a_run_with_mail_or_steps_is_not_handed_out_early),
    CONTRACT_TEST(a_run_that_is_heard_of_is_handed_out_once_it_is_on_disk),
    CONTRACT_TEST(who_does_not_get_the_run_does_not_wait_for_the_disk),
    CONTRACT_TEST(a_run_that_may_not_be_on_disk_is_not_handed_out_early),
};
CONTRACT("early_claims", tests)
