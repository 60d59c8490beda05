/* Claims that a sleeping worker lends: to a trigger of its own process, with which they share a commit, and to the thread
 * that hears of others. A2, B6.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/client.h"
#include "contract/fixture.h"

#include "worker/worker.h"

#define NAPS_MOST 120000 /* of 1 ms, until a test gives up */
#define TRIES_MOST 50    /* to find the worker asleep */

static hf_worker *worker;
static pthread_t thread;
static hf_code ended;
static hf_error reason;
static atomic_int calls;
static int calls_before;      /* the run at hand */
static atomic_bool seen_lent; /* while a claim was told of early, and not committed */

static void nap(void)
{
    struct timespec time = { .tv_nsec = 1000000 };
    nanosleep(&time, NULL);
}

/* Gives the number of its call as result. */
static hf_code count_calls(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    char result[16];
    (void)input;
    (void)err;
    (void)arg;
    snprintf(result, sizeof result, "%d", atomic_fetch_add(&calls, 1) + 1);
    return hf_return(ctx, result);
}

static char claimed_as[2000]; /* what the handler was given */
static atomic_bool holding, let_go;

static void describe(const hf_claimed *c)
{
    const hf_run *r = &c->run;
    snprintf(
        claimed_as, sizeof claimed_as,
        "%s %s %d %s %d %d/%d v%" PRId64 " r%" PRId64 " lease %" PRId64 " to %" PRId64
        " due %" PRId64 " made %" PRId64 " begun %" PRId64 " until %" PRId64 " retry %" PRId64
        "-%" PRId64 " %s %d%d%d%d seen %" PRId64 " input %s trace %s actor %s %d %s%s%s%s%s%s%s",
        r->tenant, r->workflow, c->lane, r->key ? r->key : "-", r->priority, r->attempt,
        r->max_attempts, r->version, r->revision, c->lease, r->lease_until, c->due_at,
        r->created_at, r->started_at, r->timeout_at, c->retry_base, c->retry_cap,
        c->dead_letter ? c->dead_letter : "-", c->limited, c->suspect, c->exhausted, c->overdue,
        c->seen_at, r->input, r->trace ? r->trace : "-", r->actor ? r->actor : "-", r->wait_count,
        r->state ? "state" : "", r->error ? "error" : "", r->current_step ? "step" : "",
        r->waiting_kind ? "waiting" : "", r->subject ? "subject" : "", r->tags ? "tags" : "",
        hf_id_is_zero(r->parent) ? "" : "parent");
}

static hf_code tell_what_it_got(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)input;
    (void)err;
    (void)arg;
    describe(ctx->claimed);
    atomic_store(&holding, true);
    while (!atomic_load(&let_go))
        nap();
    return HF_OK;
}

/* ---- The worker ---- */

static void *run_worker(void *arg)
{
    (void)arg;
    ended = hf_worker_run(worker, &reason);
    return NULL;
}

static bool reads(const bool *flag)
{
    pthread_mutex_lock(&worker->lock);
    bool value = *flag;
    pthread_mutex_unlock(&worker->lock);
    return value;
}

static void await(const bool *flag)
{
    for (int i = 0; i < NAPS_MOST && !reads(flag); i++)
        nap();
    assert_true(reads(flag));
}

static void finish(hf_id id)
{
    hf_run *run = NULL;
    assert_ok(hf_wait(fx.client, &run, id, HF_SECONDS(60), &fx.error));
    hf_run_free(run);
}

/* One that has done a run, so that all sides know the lane, and sleeps. The test's clock stands still: no lease ends. */
static void start_worker(int threads)
{
    hf_worker_options options = HF_WORKER_OPTIONS_INIT;
    options.threads = threads;
    options.poll = HF_HOURS(1);
    assert_ok(hf_worker_new(&worker, fx.client, &options, &fx.error));
    assert_ok(hf_worker_handle(worker, WORK, count_calls, NULL, &fx.error));
    assert_ok(hf_worker_handle(worker, "twin", tell_what_it_got, NULL, &fx.error));
    atomic_store(&calls, 0);
    atomic_store(&seen_lent, false);
    assert_int_equal(pthread_create(&thread, NULL, run_worker, NULL), 0);
    finish(trigger(WORK));
    await(&worker->standing_by);
}

static void end_worker(void)
{
    hf_worker_stop(worker);
    pthread_join(thread, NULL);
    hf_worker_free(worker);
    assert_int_equal(ended, HF_OK);
}

/* ---- To a trigger ----
 *
 * The claimer may be up for a moment, by the echo of something earlier: then the claim is its own, and the test tries again. */

static bool is_started(hf_id id)
{
    return sql_number("SELECT count(*) FROM event WHERE run_id = %s AND name = 'started'",
                      sql_id(id)) == 1;
}

static void a_run_is_claimed_by_the_commit_that_makes_it(void **state)
{
    bool started = false;
    (void)state;
    start_worker(2);
    for (int i = 0; i < TRIES_MOST && !started; i++) {
        await(&worker->standing_by);
        hf_id id = trigger(WORK);
        started = is_started(id);
        finish(id);
        expect_journal(id, "created started succeeded");
        assert_int_equal(atomic_load(&calls), i + 2);
    }
    end_worker();
    assert_true(started);
}

/* ---- A run that is born as its worker's ---- */

/* What the store has of a run of "twin" by this client while it is held, and what its handler was given. */
static const char *twin_by(hf_client *client)
{
    hf_trigger_spec spec = spec_of("twin");
    hf_triggered out;
    spec.input = "{\"a\":1}";
    spec.priority = 3;
    spec.trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    atomic_store(&holding, false);
    atomic_store(&let_go, false);
    await(&worker->standing_by);
    assert_ok(hf_trigger(client, &out, &spec, &fx.error));
    for (int i = 0; i < NAPS_MOST && !atomic_load(&holding); i++)
        nap();
    const char *row =
        sql_text("SELECT CAST(to_jsonb(r) - 'id' - 'deferred' AS text) FROM run r WHERE id = %s",
                 sql_id(out.id));
    const char *lines = sql_text(
        "SELECT string_agg(concat_ws(' ', seq, version, kind, name, actor, at, step, data), ';' "
        "ORDER BY position) FROM event WHERE run_id = %s",
        sql_id(out.id));
    atomic_store(&let_go, true);
    finish(out.id);
    return text_of("%s\n%s\n%s", row, lines, claimed_as);
}

static void a_run_that_is_born_as_its_workers_is_as_if_it_had_been_claimed(void **state)
{
    hf_client *beside = fx.backend == BACKEND_POSTGRES ? open_beside() : NULL;
    (void)state;
    if (!beside)
        skip();
    define_with((hf_workflow){ .name = "twin",
                               .lease = HF_SECONDS(7),
                               .timeout = HF_SECONDS(5),
                               .max_attempts = 4,
                               .retry_base = 11,
                               .retry_cap = 12,
                               .dead_letter = WORK },
                HF_SET_LEASE | HF_SET_TIMEOUT | HF_SET_MAX_ATTEMPTS | HF_SET_RETRY_BASE |
                    HF_SET_RETRY_CAP | HF_SET_DEAD_LETTER);
    foretell_nothing(true); /* what is told early is not there yet */
    start_worker(2);
    const char *claimed = twin_by(beside);
    int before = times_sent(HF__STMT_INSERT_TAKEN_RUN);
    twin_by(fx.client); /* learns the lane */
    for (int i = 0; i < TRIES_MOST && times_sent(HF__STMT_INSERT_TAKEN_RUN) == before; i++)
        assert_string_equal(twin_by(fx.client), claimed);
    assert_int_not_equal(times_sent(HF__STMT_INSERT_TAKEN_RUN), before);
    end_worker();
    foretell_nothing(false);
    hf_close(beside);
}

static void a_lost_answer_to_both_neither_loses_nor_doubles_the_run(void **state)
{
    bool shared = false;
    (void)state;
    start_worker(2);
    for (int i = 0; i < TRIES_MOST && !shared; i++) {
        await(&worker->standing_by);
        lose_answers(1);
        hf_id id = trigger(WORK);
        finish(id);
        assert_int_equal(atomic_load(&calls), i + 2);
        shared = strcmp(journal(id), "created started succeeded") != 0;
        if (shared)
            expect_journal(id, "created started given_back started succeeded");
    }
    end_worker();
    assert_true(shared);
}

static void a_commit_of_both_that_did_not_happen_is_made_up_for(void **state)
{
    (void)state;
    start_worker(2);
    lose_commits(1);
    hf_id id = trigger(WORK);
    finish(id);
    end_worker();
    assert_int_equal(atomic_load(&calls), 2);
    expect_journal(id, "created started succeeded");
}

static void stop_and_wait(void)
{
    hf_worker_stop(worker);
    while (!reads(&worker->stopping))
        nap();
}

/* False: it was never started. A claim of the claimer's own may have been on its way when the worker stopped. */
static bool is_given_back_as_often_as_started(hf_id id)
{
    const char *rest = journal(id), *const pair = " started given_back";
    assert_int_equal(strncmp(rest, "created", strlen("created")), 0);
    rest += strlen("created");
    bool started = *rest != '\0';
    while (strncmp(rest, pair, strlen(pair)) == 0)
        rest += strlen(pair);
    assert_string_equal(rest, "");
    return started;
}

static void a_worker_that_stops_meanwhile_gives_the_run_back(void **state)
{
    bool lent = false;
    (void)state;
    for (int i = 0; i < TRIES_MOST && !lent; i++) {
        start_worker(2);
        when_committed(stop_and_wait);
        hf_id id = trigger(WORK);
        end_worker();
        assert_int_equal(atomic_load(&calls), 1);
        lent = is_given_back_as_often_as_started(id);
        const hf_claimed *held = claim();
        assert_int_equal(held->run.attempt, 1);
        succeed(held);
    }
    assert_true(lent);
}

/* A run that has become due in the same lane, and nobody has heard of it. */
static hf_id run_that_nobody_heard_of(void)
{
    hf_trigger_spec spec = spec_of(WORK);
    spec.delay = HF_DAYS(1);
    hf_id id = trigger_spec(&spec);
    await(&worker->standing_by);
    sql("UPDATE run SET run_at = run_at - %lld WHERE id = %s", (long long)HF_DAYS(2), sql_id(id));
    return id;
}

/* The claimer's own claim would begin behind what it has found there before. */
static bool was_lent(int taken_before)
{
    return fx.backend != BACKEND_POSTGRES || times_sent(HF__STMT_INSERT_TAKEN_RUN) > taken_before;
}

static void a_run_of_the_lane_that_is_due_before_comes_first(void **state)
{
    bool lent = false;
    (void)state;
    start_worker(1);
    for (int i = 0; i < TRIES_MOST && !lent; i++) {
        hf_id older = run_that_nobody_heard_of();
        int taken = times_sent(HF__STMT_INSERT_TAKEN_RUN);
        hf_id id = trigger(WORK);
        lent = was_lent(taken);
        finish(id);
        finish(older);
        if (lent)
            assert_true(atoi(get(older)->result) < atoi(get(id)->result));
    }
    end_worker();
    assert_true(lent);
}

static void a_paused_workflow_keeps_its_run(void **state)
{
    const hf_workflow paused = { .name = WORK, .paused = true };
    (void)state;
    start_worker(2);
    assert_ok(hf_workflow_set(fx.client, &paused, HF_SET_PAUSED, &fx.error));
    await(&worker->standing_by);
    hf_id id = trigger(WORK);
    end_worker();
    assert_int_equal(atomic_load(&calls), 1);
    expect_journal(id, "created");
}

/* The worker that lends its claim has not heard of it yet. */
static void a_workflow_that_has_just_been_paused_keeps_its_run(void **state)
{
    bool lent = false;
    (void)state;
    start_worker(2);
    sql("UPDATE workflow SET paused = true WHERE name = '%s' AND tenant_id = %d", WORK,
        fx.client->tenant_id);
    for (int i = 0; i < TRIES_MOST && !lent; i++) {
        await(&worker->standing_by);
        int taken = times_sent(HF__STMT_INSERT_TAKEN_RUN);
        expect_journal(trigger(WORK), "created");
        lent = was_lent(taken);
    }
    end_worker();
    assert_true(lent);
    assert_int_equal(atomic_load(&calls), 1);
}

/* One that nobody works on, in a transaction that is left open. The claimer may have come upon it: then it is done, and
 * there is another. */
static hf_id locked_run(void)
{
    for (int i = 0; i < TRIES_MOST; i++) {
        hf_id id = run_that_nobody_heard_of();
        sql("BEGIN");
        if (sql_number("SELECT count(*) FROM (SELECT 1 FROM run WHERE id = %s AND status = 0 "
                       "FOR UPDATE) r",
                       sql_id(id)) == 1)
            return id;
        sql("COMMIT");
        finish(id);
    }
    fail_msg("the claimer is up at every try");
    return (hf_id){ 0 };
}

static void a_run_of_the_lane_that_somebody_has_locked_holds_up_neither_trigger_nor_claim(
    void **state)
{
    (void)state;
    if (fx.backend != BACKEND_POSTGRES)
        return;
    start_worker(1);
    hf_id older = locked_run();
    hf_id id = trigger(WORK);
    finish(id);
    expect_status(older, HF_PENDING);
    sql("COMMIT");
    finish(older);
    end_worker();
}

/* ---- To the thread that hears ---- */

static void until_it_is_called(void)
{
    atomic_store(&seen_lent, reads(&worker->lent));
    for (int i = 0; i < NAPS_MOST && atomic_load(&calls) == calls_before; i++)
        nap();
}

static const char *journal_after(enum fate fate)
{
    return fate == ANSWER_IS_LOST ? "created started given_back started succeeded"
                                  : "created started succeeded";
}

/* A run that another process triggers, and what becomes of its claim's commit, unless that is waited for, since the run may not
 * be on disk yet. */
static void serve_one(hf_client *beside, enum fate fate)
{
    hf_trigger_spec spec = spec_of(WORK);
    hf_triggered out;
    await(&worker->standing_by);
    calls_before = atomic_load(&calls);
    foretell_next(fate, until_it_is_called);
    assert_ok(hf_trigger(beside, &out, &spec, &fx.error));
    finish(out.id);
    if (!fate_was_met())
        fate = COMMIT_WORKS;
    assert_int_equal(atomic_load(&calls), calls_before + (fate == COMMIT_WORKS ? 1 : 2));
    assert_string_equal(get(out.id)->result, text_of("%d", atomic_load(&calls)));
    expect_journal(out.id, journal_after(fate));
}

static void serve_another(enum fate fate)
{
    hf_client *beside = open_beside();
    if (!beside)
        return;
    start_worker(2);
    int tries = fx.backend == BACKEND_POSTGRES ? TRIES_MOST : 1;
    for (int i = 0; i < tries && !atomic_load(&seen_lent); i++)
        serve_one(beside, fate);
    end_worker();
    hf_close(beside);
    assert_int_equal(atomic_load(&seen_lent), fx.backend == BACKEND_POSTGRES);
}

static void a_run_of_another_process_is_claimed_where_it_is_heard_of(void **state)
{
    (void)state;
    serve_another(COMMIT_WORKS);
}

static void a_run_that_is_heard_of_waits_for_one_that_is_due_before(void **state)
{
    hf_trigger_spec spec = spec_of(WORK);
    hf_triggered out;
    hf_client *beside = open_beside();
    (void)state;
    if (!beside)
        return;
    start_worker(1);
    hf_id older = run_that_nobody_heard_of();
    assert_ok(hf_trigger(beside, &out, &spec, &fx.error));
    finish(out.id);
    end_worker();
    hf_close(beside);
    assert_string_equal(get(older)->result, "2");
    assert_string_equal(get(out.id)->result, "3");
}

static void put_hex(hf_id id, char out[HF_ID_TEXT])
{
    char text[HF_ID_TEXT];
    hf_id_format(id, text);
    for (const char *c = text; *c; c++)
        if (*c != '-')
            *out++ = *c;
    *out = '\0';
}

/* True: it came. */
static bool hears(PGconn *listener, const char *part)
{
    bool heard = false;
    for (int i = 0; i < NAPS_MOST && !heard; i++) {
        PGnotify *notify;
        PQconsumeInput(listener);
        while ((notify = PQnotifies(listener)) != NULL) {
            heard |= strstr(notify->extra, part) != NULL;
            PQfreemem(notify);
        }
        nap();
    }
    return heard;
}

static void the_wake_up_for_a_lone_run_names_it(void **state)
{
    hf_trigger_spec spec = spec_of(WORK);
    hf_triggered out;
    char hex[HF_ID_TEXT];
    hf_client *beside = fx.backend == BACKEND_POSTGRES ? open_beside() : NULL;
    (void)state;
    if (!beside)
        return;
    PGconn *listener = PQconnectdb(fx.url);
    PQclear(PQexec(listener, "LISTEN holdfast_wake"));
    start_worker(2);
    assert_ok(hf_trigger(beside, &out, &spec, &fx.error)); /* tells the lane's number */
    finish(out.id);
    await(&worker->standing_by);
    assert_ok(hf_trigger(beside, &out, &spec, &fx.error));
    put_hex(out.id, hex);
    assert_true(hears(listener, text_of("#%s", hex)));
    finish(out.id);
    end_worker();
    PQfinish(listener);
    hf_close(beside);
}

/* Any login may send wake-ups. */
static void a_false_wake_up_brings_no_run_that_the_worker_does_not_serve(void **state)
{
    (void)state;
    if (fx.backend != BACKEND_POSTGRES)
        return;
    start_worker(2);
    define("other");
    hf_id other = trigger("other");
    await(&worker->standing_by);
    char hex[HF_ID_TEXT];
    put_hex(other, hex);
    sql("SELECT pg_notify('holdfast_wake', w.lane || '@1#%s') FROM workflow w WHERE w.name = '%s' "
        "AND "
        "w.tenant_id = %d",
        hex, WORK, fx.client->tenant_id);
    finish(trigger(WORK));
    end_worker();
    expect_journal(other, "created");
}

static void a_claim_made_while_listening_may_be_refused(void **state)
{
    (void)state;
    serve_another(COMMIT_IS_REFUSED);
}

static void a_claim_made_while_listening_may_not_happen(void **state)
{
    (void)state;
    serve_another(COMMIT_IS_PREVENTED);
}

static void the_answer_to_a_claim_made_while_listening_may_be_lost(void **state)
{
    (void)state;
    serve_another(ANSWER_IS_LOST);
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(a_run_is_claimed_by_the_commit_that_makes_it),
    CONTRACT_TEST(a_run_that_is_born_as_its_workers_is_as_if_it_had_been_claimed),
    CONTRACT_TEST(a_lost_answer_to_both_neither_loses_nor_doubles_the_run),
    CONTRACT_TEST(a_commit_of_both_that_did_not_happen_is_made_up_for),
    CONTRACT_TEST(a_worker_that_stops_meanwhile_gives_the_run_back),
    CONTRACT_TEST(a_run_of_the_lane_that_is_due_before_comes_first),
    CONTRACT_TEST(a_paused_workflow_keeps_its_run),
    CONTRACT_TEST(a_workflow_that_has_just_been_paused_keeps_its_run),
    CONTRACT_TEST(a_run_of_the_lane_that_somebody_has_locked_holds_up_neither_trigger_nor_claim),
    CONTRACT_TEST(a_run_of_another_process_is_claimed_where_it_is_heard_of),
    CONTRACT_TEST(a_run_that_is_heard_of_waits_for_one_that_is_due_before),
    CONTRACT_TEST(the_wake_up_for_a_lone_run_names_it),
    CONTRACT_TEST(a_false_wake_up_brings_no_run_that_the_worker_does_not_serve),
    CONTRACT_TEST(a_claim_made_while_listening_may_be_refused),
    CONTRACT_TEST(a_claim_made_while_listening_may_not_happen),
    CONTRACT_TEST(the_answer_to_a_claim_made_while_listening_may_be_lost),
};
CONTRACT("lent_claims", tests)
