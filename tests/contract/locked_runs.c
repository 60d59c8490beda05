/* Runs that somebody else keeps locked, which only PostgreSQL knows: they hold up nobody, and whoever waits for one is told.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "client/client.h"
#include "contract/submitting.h"
#include "util/clock.h"

static void note_done(struct hf__op *op, void *arg)
{
    (void)op;
    atomic_store((atomic_bool *)arg, true);
}

/* Locks the run as a caller's own transaction would, submits the operation, and sends signals to others meanwhile: to so
 * many that they share all flushers with it. */
static void expect_others_go_on(hf_id run, struct hf__op *op)
{
    enum { OTHERS = 8 };
    atomic_bool done = false;
    hf_id others[OTHERS];
    for (int i = 0; i < OTHERS; i++)
        others[i] = run_that_is(HF_WAITING, 0);
    op->done = note_done;
    op->done_arg = &done;
    sql("BEGIN");
    sql("SELECT 1 FROM run WHERE id = %s FOR UPDATE", sql_id(run));
    hf__engine_submit(fx.client->engine, op);
    sleep_for(HF_MILLISECONDS(30));
    for (int i = 0; i < OTHERS; i++)
        send_signal(others[i], "s");
    assert_false(atomic_load(&done));
    sql("COMMIT");
    while (!atomic_load(&done))
        sleep_for(HF_MILLISECONDS(1));
    assert_int_equal(op->code, HF_OK);
    const hf_claims *claims = claim_as("bert", 100);
    for (size_t i = 0; i < claims->count; i++)
        change(claims->items[i].run.id, HF_CANCEL);
    assert_true(claims->count >= OTHERS);
}

static void a_signal_to_a_run_locked_by_somebody_else_stops_nobody(void **state)
{
    hf_signal_spec signal = {
        .version = HF_SIGNAL_VERSION, .id = "s", .type = "external", .name = "s"
    };
    struct hf__op op = op_of(HF__OP_SIGNAL);
    (void)state;
    op.signal.run = run_that_is(HF_WAITING, 0);
    op.signal.spec = &signal;
    expect_others_go_on(op.signal.run, &op);
}

static void a_cancel_of_a_run_locked_by_somebody_else_stops_nobody(void **state)
{
    struct hf__op op = op_of(HF__OP_CHANGE);
    (void)state;
    op.change.run = run_that_is(HF_WAITING, 0);
    op.change.action = HF_CANCEL;
    expect_others_go_on(op.change.run, &op);
}

static void a_commit_on_a_run_locked_by_somebody_else_stops_nobody(void **state)
{
    struct hf__op op = op_of(HF__OP_COMMIT);
    (void)state;
    hf_transition t = turn_of(claim_new(), HF_TURN_WAIT);
    op.commit.transition = &t;
    expect_others_go_on(t.run, &op);
}

static void the_end_of_a_child_whose_parent_is_locked_stops_nobody(void **state)
{
    hf_trigger_spec child = spec_of("child");
    struct hf__op op = op_of(HF__OP_COMMIT);
    (void)state;
    define("child");
    const hf_claimed *parent = claim_new();
    hf_transition t = turn_of(parent, HF_TURN_WAIT);
    t.children = &child;
    t.child_count = 1;
    t.wait_children = 1;
    commit(&t);
    t = turn_of(claim(), HF_TURN_SUCCEED);
    op.commit.transition = &t;
    expect_others_go_on(parent->run.id, &op);
}

static void a_step_of_a_run_locked_by_somebody_else_stops_nobody(void **state)
{
    struct hf__op op = op_of(HF__OP_STEP);
    (void)state;
    const hf_claimed *held = claim_new();
    hf_step_record step = { held->run.id, held->run.version, WORKER, "s", "succeeded", "1" };
    op.step.record = &step;
    expect_others_go_on(held->run.id, &op);
}

static void a_short_end_of_a_run_locked_by_somebody_else_stops_nobody(void **state)
{
    struct hf__op op = op_of(HF__OP_COMMIT);
    (void)state;
    hf_transition t = turn_of(claim_new(), HF_TURN_SUCCEED);
    op.commit.transition = &t;
    op.commit.parentless = true;
    expect_others_go_on(t.run, &op);
}

/* ---- Locks that stay ---- */

static void lock(hf_id run)
{
    sql("BEGIN");
    sql("SELECT 1 FROM run WHERE id = %s FOR UPDATE", sql_id(run));
}

/* Told while the lock is held; done once it is not. */
static void expect_told_of_the_lock(hf_id run, struct hf__op op)
{
    for (int locked = 1; locked >= 0; locked--) {
        struct hf__op sent = op;
        hf_error error;
        sent.error = &error;
        sent.patience = locked ? HF_MILLISECONDS(50) : 0;
        if (locked)
            lock(run);
        apply(&sent, 1);
        assert_int_equal(sent.code, locked ? HF_LOCKED : HF_OK);
        if (locked)
            assert_non_null(strstr(error.message, "keeps the run locked"));
        sql("%s", locked ? "COMMIT" : "SELECT 1");
    }
}

static void whoever_wants_a_run_that_stays_locked_is_told(void **state)
{
    hf_signal_spec signal = {
        .version = HF_SIGNAL_VERSION, .id = "s", .type = "external", .name = "s"
    };
    struct hf__op op = op_of(HF__OP_SIGNAL);
    (void)state;
    hf_id run = run_that_is(HF_LEASED, 0);
    op.signal.run = run_that_is(HF_WAITING, 0);
    op.signal.spec = &signal;
    expect_told_of_the_lock(op.signal.run, op);

    hf_id waiting = op.signal.run;
    op = op_of(HF__OP_CHANGE);
    op.change.run = waiting;
    op.change.action = HF_CANCEL;
    expect_told_of_the_lock(waiting, op);

    hf_step_record step = { run, get(run)->version, WORKER, "s", "succeeded", "1" };
    op = op_of(HF__OP_STEP);
    op.step.record = &step;
    expect_told_of_the_lock(run, op);

    hf_transition t = { .version = HF_TRANSITION_VERSION,
                        .run = run,
                        .run_version = get(run)->version,
                        .worker = WORKER,
                        .turn = HF_TURN_WAIT };
    op = op_of(HF__OP_COMMIT);
    op.commit.transition = &t;
    expect_told_of_the_lock(run, op);
}

/* So much that a flush takes nothing else. */
static const char *big_result(void)
{
    enum { SIZE = 1024 * 1024 };
    char *text = keep(malloc(SIZE), free);
    memset(text, '1', SIZE);
    text[SIZE - 1] = '\0';
    return text;
}

static void big_ends_of_a_locked_parents_children_let_all_others_pass(void **state)
{
    enum { CHILDREN = 9 };
    hf_trigger_spec specs[CHILDREN];
    hf_transition ends[CHILDREN];
    struct hf__op ops[CHILDREN];
    struct answers answers = { 0 };
    (void)state;
    define("child");
    for (int i = 0; i < CHILDREN; i++)
        specs[i] = spec_of("child");
    hf_transition t = turn_of(claim_new(), HF_TURN_WAIT);
    t.children = specs;
    t.child_count = CHILDREN;
    t.wait_children = CHILDREN;
    commit(&t);
    const hf_claims *children = claim_of("child", CHILDREN);
    const hf_claimed *other = claim_new();
    hf_step_record step = { other->run.id, other->run.version, WORKER, "s", "succeeded", "1" };
    struct hf__op stepping = op_of(HF__OP_STEP);
    stepping.step.record = &step;
    stepping.shard = 1;

    lock(t.run);
    for (int i = 0; i < CHILDREN; i++) {
        ends[i] = turn_of(&children->items[i], HF_TURN_SUCCEED);
        ends[i].result = big_result();
        ops[i] = op_of(HF__OP_COMMIT);
        ops[i].commit.transition = &ends[i];
        ops[i].commit.child = &children->items[i].run;
        ops[i].patience = -1;
        ops[i].shard = 1;
        submit_to(fx.client, &ops[i], &answers);
    }
    apply(&stepping, 1);
    assert_int_equal(stepping.code, HF_OK);
    assert_int_equal(atomic_load(&answers.count), 0);
    sql("COMMIT");
    await(&answers, CHILDREN);
    for (int i = 0; i < CHILDREN; i++)
        assert_int_equal(ops[i].code, HF_OK);
    assert_int_equal(claim()->mail_count, CHILDREN);
}

static void who_bears_locks_outwaits_those_who_do_not(void **state)
{
    struct answers answers = { 0 };
    (void)state;
    const hf_claimed *held = claim_new();
    hf_step_record step = { held->run.id, held->run.version, WORKER, "s", "succeeded", "1" };
    struct hf__op bearing = op_of(HF__OP_STEP);
    bearing.step.record = &step;
    bearing.patience = HF_MILLISECONDS(10);
    bearing.bears_locks = true;
    struct hf__op other = op_of(HF__OP_CHANGE);
    other.change.run = held->run.id;
    other.change.action = HF_CANCEL;
    other.patience = HF_MILLISECONDS(50);
    lock(held->run.id);
    submit_to(fx.client, &bearing, &answers);
    apply(&other, 1);
    assert_int_equal(other.code, HF_LOCKED);
    assert_int_equal(atomic_load(&answers.count), 0);
    sql("COMMIT");
    await(&answers, 1);
    assert_int_equal(bearing.code, HF_OK);
}

static void closing_does_not_wait_for_a_lock(void **state)
{
    struct answers answers = { 0 };
    struct hf__op op = op_of(HF__OP_COMMIT);
    (void)state;
    hf_client *beside = open_beside();
    const hf_claimed *held = claim_new();
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    op.commit.transition = &t;
    op.patience = -1;
    lock(t.run);
    submit_to(beside, &op, &answers);
    hf_close(beside);
    assert_int_equal(atomic_load(&answers.count), 1);
    assert_int_equal(op.code, HF_LOCKED);
    sql("COMMIT");
    succeed(held);
}

static atomic_bool committed;

static void note_commit(void)
{
    atomic_store(&committed, true);
}

/* Until so many flushes more have happened. Where nobody does anything else they are of what is locked out; after three each
 * it is set aside. */
static void await_flushes(int count)
{
    for (int i = 0; i < count; i++) {
        atomic_store(&committed, false);
        when_committed(note_commit);
        while (!atomic_load(&committed))
            sleep_for(HF_MILLISECONDS(1));
    }
}

static void await_losses(int count)
{
    while (answers_lost() < count)
        sleep_for(HF_MILLISECONDS(1));
}

static hf_id lost_run;

static void lock_lost_run(void)
{
    lock(lost_run);
}

static void one_that_may_have_happened_is_not_told_that_it_was_locked_out(void **state)
{
    hf_signal_spec signal = {
        .version = HF_SIGNAL_VERSION, .id = "s", .type = "external", .name = "s"
    };
    (void)state;
    for (int happened = 0; happened < 2; happened++) {
        struct answers answers = { 0 };
        struct hf__op op = op_of(HF__OP_SIGNAL);
        hf_error error;
        hf_client *beside = open_beside_with_faults();
        lost_run = run_that_is(HF_WAITING, 0);
        op.signal.run = lost_run;
        op.signal.spec = &signal;
        op.patience = -1;
        op.error = &error;
        int before = answers_lost();
        when_lost(lock_lost_run);
        (happened ? lose_answers : lose_commits)(1);
        submit_to(beside, &op, &answers);
        await_losses(before + 1);
        await_flushes(5);
        hf_close(beside);
        sql("COMMIT");
        assert_int_equal(op.code, HF_UNAVAILABLE);
        assert_int_equal(error.code, HF_UNAVAILABLE);
        assert_non_null(strstr(error.message, "may have happened"));
        assert_non_null(strstr(error.message, "keeps the run locked"));
        assert_int_equal(
            sql_number("SELECT count(*) FROM signal WHERE run_id = %s", sql_id(lost_run)),
            happened);
    }
}

/* Whether an operation that was set aside is done, once the lock is gone, sooner than in the time that the store was away. */
static bool is_done_soon_after_an_outage(void)
{
    enum { LOST = 5 };
    hf_signal_spec signal = {
        .version = HF_SIGNAL_VERSION, .id = "s", .type = "external", .name = "s"
    };
    struct answers answers = { 0 };
    struct hf__op op = op_of(HF__OP_SIGNAL);
    op.signal.run = run_that_is(HF_WAITING, 0);
    op.signal.spec = &signal;
    op.patience = -1;
    lock(op.signal.run);
    submit_to(fx.client, &op, &answers);
    await_flushes(8);
    int before = answers_lost();
    lose_commits(LOST);
    await_losses(before + 1);
    int64_t outage = -hf__monotonic_us();
    await_losses(before + LOST);
    outage += hf__monotonic_us();
    await_flushes(1);
    int64_t waited = -hf__monotonic_us();
    sql("COMMIT");
    await(&answers, 1);
    waited += hf__monotonic_us();
    assert_int_equal(op.code, HF_OK);
    change(op.signal.run, HF_CANCEL);
    return waited < outage;
}

/* Tried several times: the machine may be slow, but not each time. */
static void what_is_set_aside_does_not_wait_as_long_again_as_an_outage_took(void **state)
{
    enum { TRIES = 10 };
    bool soon = false;
    (void)state;
    for (int i = 0; i < TRIES && !soon; i++)
        soon = is_done_soon_after_an_outage();
    assert_true(soon);
}

static hf_id stopped_at;
static atomic_bool stopped, let_go;

/* Stops a flusher in the flush that brings this run a signal. */
static void stop_flusher(void)
{
    if (sql_number("SELECT count(*) FROM signal WHERE run_id = %s", sql_id(stopped_at)) == 0) {
        when_committed(stop_flusher);
        return;
    }
    atomic_store(&stopped, true);
    while (!atomic_load(&let_go))
        sleep_for(HF_MILLISECONDS(1));
}

static void *close_it(void *client)
{
    hf_close(client);
    return NULL;
}

static void what_is_set_aside_is_looked_at_once_more_when_closing(void **state)
{
    hf_signal_spec signal = {
        .version = HF_SIGNAL_VERSION, .id = "s", .type = "external", .name = "s"
    };
    hf_action actions[] = { HF_PAUSE, HF_RESUME };
    struct hf__op ops[3];
    struct answers answers = { 0 };
    pthread_t closer;
    (void)state;
    hf_client *beside = open_beside_with_faults();
    hf_id run = run_that_is(HF_WAITING, 0);
    stopped_at = run_that_is(HF_WAITING, 0);
    lock(run);
    for (int i = 0; i < 2; i++) { /* two on one run: not in one flush */
        ops[i] = op_of(HF__OP_CHANGE);
        ops[i].change.run = run;
        ops[i].change.action = actions[i];
        ops[i].patience = -1;
        submit_to(beside, &ops[i], &answers);
    }
    await_flushes(12);
    when_committed(stop_flusher);
    ops[2] = op_of(HF__OP_SIGNAL);
    ops[2].signal.run = stopped_at;
    ops[2].signal.spec = &signal;
    submit_to(beside, &ops[2], &answers);
    while (!atomic_load(&stopped))
        sleep_for(HF_MILLISECONDS(1));
    sql("COMMIT");
    assert_int_equal(pthread_create(&closer, NULL, close_it, beside), 0);
    sleep_for(HF_MILLISECONDS(50)); /* it has begun to close, by all likelihood */
    atomic_store(&let_go, true);
    pthread_join(closer, NULL);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ops[i].code, HF_OK);
}

static void a_bulk_change_goes_on_past_a_run_that_stays_locked(void **state)
{
    enum { RUNS = 250 }; /* more than a page */
    hf_filter filter = HF_FILTER_INIT;
    hf_bulk_result result = { 0 };
    hf_id newest = { { 0 } };
    (void)state;
    for (int i = 0; i < RUNS; i++)
        newest = trigger(WORK);
    filter.workflow = WORK;
    lock(newest);
    assert_int_equal(
        hf_bulk(fx.client, &result, &filter, HF_CANCEL, NULL, false, NULL, NULL, &fx.error),
        HF_LOCKED);
    sql("COMMIT");
    assert_int_equal(result.changed, RUNS - 1);
    assert_int_equal(get(newest)->status, HF_PENDING);
    assert_ok(hf_bulk(fx.client, &result, &filter, HF_CANCEL, NULL, false, NULL, NULL, &fx.error));
    assert_int_equal(result.changed, 1);
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(a_signal_to_a_run_locked_by_somebody_else_stops_nobody),
    CONTRACT_TEST(a_cancel_of_a_run_locked_by_somebody_else_stops_nobody),
    CONTRACT_TEST(a_commit_on_a_run_locked_by_somebody_else_stops_nobody),
    CONTRACT_TEST(the_end_of_a_child_whose_parent_is_locked_stops_nobody),
    CONTRACT_TEST(a_step_of_a_run_locked_by_somebody_else_stops_nobody),
    CONTRACT_TEST(a_short_end_of_a_run_locked_by_somebody_else_stops_nobody),
    CONTRACT_TEST(whoever_wants_a_run_that_stays_locked_is_told),
    CONTRACT_TEST(big_ends_of_a_locked_parents_children_let_all_others_pass),
    CONTRACT_TEST(who_bears_locks_outwaits_those_who_do_not),
    CONTRACT_TEST(closing_does_not_wait_for_a_lock),
    CONTRACT_TEST(one_that_may_have_happened_is_not_told_that_it_was_locked_out),
    CONTRACT_TEST(what_is_set_aside_does_not_wait_as_long_again_as_an_outage_took),
    CONTRACT_TEST(what_is_set_aside_is_looked_at_once_more_when_closing),
    CONTRACT_TEST(a_bulk_change_goes_on_past_a_run_that_stays_locked),
};
CONTRACT("locked_runs", tests)
