/* Group commit: operations share a transaction, but never each other's fate.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "client/client.h"
#include "client/ids.h"
#include "contract/fixture.h"
#include "util/clock.h"

static struct hf__op op_of(enum hf__op_kind kind)
{
    return (struct hf__op){ .kind = kind, .tenant = fx.client->tenant_id, .actor = "tester" };
}

static void apply(struct hf__op *ops, size_t count)
{
    hf__engine_apply(fx.client->engine, ops, count);
}

/* ---- Operations that are not waited for ---- */

static void sleep_for(int64_t us)
{
    struct timespec time = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };
    nanosleep(&time, NULL);
}

struct answers {
    atomic_int count;
};

static void count_answer(struct hf__op *op, void *arg)
{
    struct answers *answers = arg;
    (void)op;
    atomic_fetch_add(&answers->count, 1);
}

static void submit_to(hf_client *client, struct hf__op *op, struct answers *answers)
{
    op->done = count_answer;
    op->done_arg = answers;
    hf__engine_submit(client->engine, op);
}

static void await(struct answers *answers, int count)
{
    while (atomic_load(&answers->count) < count)
        sleep_for(HF_MILLISECONDS(1));
}

/* ---- Each for itself ---- */

/* A run that cannot be restored: another one has its key. The database itself refuses it. */
static hf_id run_that_cannot_be_restored(void)
{
    hf_trigger_spec spec = spec_of(WORK);
    spec.key = "taken";
    spec.delay = HF_DAYS(100);
    hf_id id = trigger_spec(&spec);
    change(id, HF_DELETE);
    trigger_spec(&spec);
    return id;
}

static void one_bad_operation_among_a_hundred_fails_alone(void **state)
{
    enum { MANY = 100, BAD = 37 };
    hf_id bad = run_that_cannot_be_restored();
    hf_trigger_spec spec = spec_of(WORK);
    hf_signal_spec signals[MANY];
    char names[MANY][8];
    struct hf__op ops[MANY];
    hf_id target = run_that_is(HF_WAITING, 0);
    int64_t runs = sql_number("SELECT count(*) FROM run");
    (void)state;
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "s%d", i);
        signals[i] = (hf_signal_spec){
            .version = HF_SIGNAL_VERSION, .id = names[i], .type = "external", .name = names[i]
        };
        ops[i] = op_of(i == BAD ? HF__OP_CHANGE : i % 2 ? HF__OP_SIGNAL : HF__OP_TRIGGER);
        if (i == BAD) {
            ops[i].change.run = bad;
            ops[i].change.action = HF_RESTORE;
        } else if (i % 2) {
            ops[i].signal.run = target;
            ops[i].signal.spec = &signals[i];
        } else {
            ops[i].trigger.id = (hf_id){ { 2, (uint8_t)i, 3 } };
            ops[i].trigger.spec = &spec;
        }
    }
    apply(ops, MANY);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(ops[i].code, i == BAD ? HF_CONFLICT : HF_OK);
    assert_int_equal(sql_number("SELECT count(*) FROM run"), runs + 50);
    assert_int_equal(claim_as(WORKER, 200)->count, 51);
    assert_int_equal(sql_number("SELECT count(*) FROM signal WHERE run_id = %s", sql_id(target)),
                     49);
}

/* A trigger that users have made themselves, on the table of runs. */
static void refuse_runs_of_subject(const char *subject)
{
    sql("CREATE FUNCTION public.refuse_one() RETURNS trigger LANGUAGE plpgsql AS "
        "$$BEGIN RAISE EXCEPTION 'not this one'; END$$");
    sql("CREATE TRIGGER refuse_one BEFORE UPDATE ON holdfast.run FOR EACH ROW "
        "WHEN (NEW.subject = '%s') EXECUTE FUNCTION public.refuse_one()",
        subject);
}

static void what_a_trigger_of_the_users_own_refuses_fails_alone(void **state)
{
    enum { MANY = 20, BAD = 7 };
    hf_trigger_spec spec = spec_of(WORK);
    hf_transition ends[MANY];
    struct hf__op ops[MANY];
    (void)state;
    if (fx.backend != BACKEND_POSTGRES) /* the others have no triggers but the engine's */
        skip();
    for (int i = 0; i < MANY; i++) {
        spec.subject = i == BAD ? "refused" : NULL;
        trigger_spec(&spec);
    }
    const hf_claims *claims = claim_as(WORKER, MANY);
    assert_int_equal(claims->count, MANY);
    refuse_runs_of_subject("refused");
    for (int i = 0; i < MANY; i++) {
        ends[i] = turn_of(&claims->items[i], HF_TURN_SUCCEED);
        ops[i] = op_of(HF__OP_COMMIT);
        ops[i].commit.transition = &ends[i];
    }
    apply(ops, MANY);
    sql("DROP FUNCTION public.refuse_one CASCADE");
    for (int i = 0; i < MANY; i++)
        assert_int_equal(ops[i].code, claims->items[i].run.subject ? HF_STORE : HF_OK);
}

enum { CALLERS = 100 };

struct caller {
    int number;
    hf_code code;
};

static void *trigger_as_caller(void *arg)
{
    struct caller *caller = arg;
    hf_trigger_spec spec = spec_of(caller->number == 41 ? "unknown" : WORK);
    hf_triggered out;
    hf_error err;
    caller->code = hf_trigger(fx.client, &out, &spec, &err);
    return NULL;
}

static void a_hundred_callers_at_once_are_each_answered_for_themselves(void **state)
{
    pthread_t threads[CALLERS];
    struct caller callers[CALLERS];
    (void)state;
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (struct caller){ .number = i };
        assert_int_equal(pthread_create(&threads[i], NULL, trigger_as_caller, &callers[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(callers[i].code, callers[i].number == 41 ? HF_UNKNOWN_WORKFLOW : HF_OK);
    }
    assert_int_equal(claim_as(WORKER, 200)->count, CALLERS - 1);
}

/* ---- One commit for many ---- */

enum { CROWD = 50, EACH = 20 };

static void *trigger_often(void *arg)
{
    hf_trigger_spec spec = spec_of(WORK);
    (void)arg;
    for (int i = 0; i < EACH; i++) {
        hf_triggered out;
        if (hf_trigger(fx.client, &out, &spec, NULL) != HF_OK)
            return "refused";
    }
    return NULL;
}

static void many_callers_at_once_need_far_fewer_commits_than_calls(void **state)
{
    pthread_t threads[CROWD];
    int before = commits_sent();
    (void)state;
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, trigger_often, NULL), 0);
    for (int i = 0; i < CROWD; i++) {
        void *failure;
        pthread_join(threads[i], &failure);
        assert_null(failure);
    }
    assert_in_range(commits_sent() - before, 1, CROWD * EACH / 2 - 1);
    assert_int_equal(
        sql_number("SELECT count(*) FROM run WHERE tenant_id = %d", fx.client->tenant_id),
        CROWD * EACH);
}

static atomic_bool all_are_queued;

static void until_all_are_queued(void)
{
    while (!atomic_load(&all_are_queued))
        sleep_for(HF_MILLISECONDS(1));
}

/* The first flush may have taken any number of them. */
static void what_gathers_while_a_commit_is_under_way_is_one_commit(void **state)
{
    enum { MANY = 500 };
    static struct hf__op ops[MANY];
    hf_trigger_spec spec = spec_of(WORK);
    struct answers answers = { 0 };
    int before = commits_sent();
    (void)state;
    atomic_store(&all_are_queued, false);
    when_committed(until_all_are_queued);
    for (int i = 0; i < MANY; i++) {
        ops[i] = op_of(HF__OP_TRIGGER);
        ops[i].trigger.id = hf__new_id();
        ops[i].trigger.spec = &spec;
        submit_to(fx.client, &ops[i], &answers);
    }
    atomic_store(&all_are_queued, true);
    await(&answers, MANY);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(ops[i].code, HF_OK);
    assert_in_range(commits_sent() - before, 1, 2);
}

/* ---- On one run ---- */

static pthread_t committer;

static void note_thread(void)
{
    committer = pthread_self();
}

/* A thread that would have to be woken takes longer than the caller itself. */
static void a_lone_caller_flushes_by_itself(void **state)
{
    (void)state;
    trigger(WORK); /* until it is answered, the store's own thread may still be awake */
    for (int tries = 0; tries < 1000 && !pthread_equal(committer, pthread_self()); tries++) {
        when_committed(note_thread);
        trigger(WORK);
    }
    assert_true(pthread_equal(committer, pthread_self()));
}

static pthread_t late_threads[2];
static struct caller late[2];

static void bring_callers(void)
{
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&late_threads[i], NULL, trigger_as_caller, &late[i]), 0);
    nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
}

static void who_comes_while_a_lone_caller_flushes_is_answered(void **state)
{
    int64_t runs = sql_number("SELECT count(*) FROM run");
    (void)state;
    for (int i = 0; i < 2; i++)
        late[i] = (struct caller){ .number = i, .code = HF_INTERNAL };
    when_committed(bring_callers);
    trigger(WORK);
    for (int i = 0; i < 2; i++) {
        pthread_join(late_threads[i], NULL);
        assert_int_equal(late[i].code, HF_OK);
    }
    assert_int_equal(sql_number("SELECT count(*) FROM run"), runs + 3);
}

static void a_lone_callers_lost_answer_is_asked_for_again(void **state)
{
    (void)state;
    lose_answers(1);
    hf_id id = trigger(WORK);
    assert_int_equal(answers_lost(), 1);
    assert_true(hf_id_equal(claim()->run.id, id));
}

static void of_two_commits_on_one_run_in_one_batch_the_first_wins(void **state)
{
    const hf_claimed *held = claim_new();
    hf_transition turns[2] = { turn_of(held, HF_TURN_SUCCEED), turn_of(held, HF_TURN_FAIL) };
    struct hf__op ops[2] = { op_of(HF__OP_COMMIT), op_of(HF__OP_COMMIT) };
    (void)state;
    ops[0].commit.transition = &turns[0];
    ops[1].commit.transition = &turns[1];
    apply(ops, 2);
    assert_int_equal(ops[0].code, HF_OK);
    assert_int_equal(ops[1].code, HF_STALE);
    expect_journal(held->run.id, "created started succeeded");
}

static void a_commit_sees_the_signals_of_its_own_batch(void **state)
{
    const hf_claimed *held = claim_new();
    hf_transition wait = turn_of(held, HF_TURN_WAIT);
    hf_signal_spec signal = {
        .version = HF_SIGNAL_VERSION, .id = "s", .type = "external", .name = "s"
    };
    (void)state;
    for (int order = 0; order < 2; order++) {
        struct hf__op ops[2] = { op_of(HF__OP_COMMIT), op_of(HF__OP_COMMIT) };
        signal.id = order ? "s-1" : "s-0";
        wait.run_version = held->run.version;
        wait.seen_position = held->seen_position;
        ops[order].commit.transition = &wait;
        ops[!order] = op_of(HF__OP_SIGNAL);
        ops[!order].signal.run = held->run.id;
        ops[!order].signal.spec = &signal;
        apply(ops, 2);
        assert_int_equal(ops[0].code, HF_OK);
        assert_int_equal(ops[1].code, HF_OK);
        held = claim();
        assert_int_equal(held->mail_count, order + 1);
    }
}

static void many_steps_of_one_run_in_one_batch_keep_their_order(void **state)
{
    enum { STEPS = 20 };
    const hf_claimed *held = claim_new();
    hf_step_record steps[STEPS];
    struct hf__op ops[STEPS];
    char names[STEPS][8];
    (void)state;
    for (int i = 0; i < STEPS; i++) {
        snprintf(names[i], sizeof names[i], "step%d", i);
        steps[i] =
            (hf_step_record){ held->run.id, held->run.version, WORKER, names[i], "succeeded", "1" };
        ops[i] = op_of(HF__OP_STEP);
        ops[i].step.record = &steps[i];
    }
    apply(ops, STEPS);
    for (int i = 0; i < STEPS; i++)
        assert_int_equal(ops[i].code, HF_OK);
    advance(LEASE);
    held = claim();
    assert_int_equal(held->step_count, STEPS);
    for (int i = 0; i < STEPS; i++)
        assert_string_equal(held->steps[i].step, names[i]);
}

static void a_step_and_a_signal_to_one_run_in_one_batch_share_its_journal(void **state)
{
    const hf_claimed *held = claim_new();
    hf_step_record step = { held->run.id, held->run.version, WORKER, "s", "succeeded", "1" };
    hf_signal_spec signal = {
        .version = HF_SIGNAL_VERSION, .id = "sig", .type = "external", .name = "sig"
    };
    struct hf__op ops[3] = { op_of(HF__OP_SIGNAL), op_of(HF__OP_STEP), op_of(HF__OP_SIGNAL) };
    hf_signal_spec second = signal;
    (void)state;
    second.id = "sig-2";
    ops[0].signal.run = ops[2].signal.run = held->run.id;
    ops[0].signal.spec = &signal;
    ops[2].signal.spec = &second;
    ops[1].step.record = &step;
    apply(ops, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ops[i].code, HF_OK);
    assert_int_equal(events_of(held->run.id)->count, 5);
}

static void a_short_end_and_a_signal_in_one_batch_do_not_mix_up_the_journal(void **state)
{
    const hf_claimed *held = claim_new();
    hf_transition end = turn_of(held, HF_TURN_SUCCEED);
    hf_signal_spec signal = {
        .version = HF_SIGNAL_VERSION, .id = "sig", .type = "external", .name = "sig"
    };
    struct hf__op ops[2] = { op_of(HF__OP_COMMIT), op_of(HF__OP_SIGNAL) };
    (void)state;
    ops[0].commit.transition = &end;
    ops[0].commit.parentless = true;
    ops[1].signal.run = held->run.id;
    ops[1].signal.spec = &signal;
    apply(ops, 2);
    assert_int_equal(ops[0].code, HF_OK);
    expect_status(held->run.id, HF_SUCCEEDED);
}

static void two_children_that_end_in_one_batch_lower_the_count_by_two(void **state)
{
    hf_trigger_spec specs[2] = { spec_of("child"), spec_of("child") };
    hf_transition ends[2];
    struct hf__op ops[2] = { op_of(HF__OP_COMMIT), op_of(HF__OP_COMMIT) };
    (void)state;
    define("child");
    const hf_claimed *parent = claim_new();
    hf_transition t = turn_of(parent, HF_TURN_WAIT);
    t.children = specs;
    t.child_count = 2;
    t.wait_children = 2;
    commit(&t);
    const hf_claims *children = claim_as(WORKER, 10);
    for (int i = 0; i < 2; i++) {
        ends[i] = turn_of(&children->items[i], HF_TURN_SUCCEED);
        ops[i].commit.transition = &ends[i];
    }
    apply(ops, 2);
    assert_int_equal(claim()->mail_count, 2);
}

/* ---- Locks of others (PostgreSQL) ---- */

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
    if (fx.backend != BACKEND_POSTGRES)
        skip();
    op.signal.run = run_that_is(HF_WAITING, 0);
    op.signal.spec = &signal;
    expect_others_go_on(op.signal.run, &op);
}

static void a_cancel_of_a_run_locked_by_somebody_else_stops_nobody(void **state)
{
    struct hf__op op = op_of(HF__OP_CHANGE);
    (void)state;
    if (fx.backend != BACKEND_POSTGRES)
        skip();
    op.change.run = run_that_is(HF_WAITING, 0);
    op.change.action = HF_CANCEL;
    expect_others_go_on(op.change.run, &op);
}

static void a_commit_on_a_run_locked_by_somebody_else_stops_nobody(void **state)
{
    struct hf__op op = op_of(HF__OP_COMMIT);
    (void)state;
    if (fx.backend != BACKEND_POSTGRES)
        skip();
    hf_transition t = turn_of(claim_new(), HF_TURN_WAIT);
    op.commit.transition = &t;
    expect_others_go_on(t.run, &op);
}

static void the_end_of_a_child_whose_parent_is_locked_stops_nobody(void **state)
{
    hf_trigger_spec child = spec_of("child");
    struct hf__op op = op_of(HF__OP_COMMIT);
    (void)state;
    if (fx.backend != BACKEND_POSTGRES)
        skip();
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
    if (fx.backend != BACKEND_POSTGRES)
        skip();
    const hf_claimed *held = claim_new();
    hf_step_record step = { held->run.id, held->run.version, WORKER, "s", "succeeded", "1" };
    op.step.record = &step;
    expect_others_go_on(held->run.id, &op);
}

static void a_short_end_of_a_run_locked_by_somebody_else_stops_nobody(void **state)
{
    struct hf__op op = op_of(HF__OP_COMMIT);
    (void)state;
    if (fx.backend != BACKEND_POSTGRES)
        skip();
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
    if (fx.backend != BACKEND_POSTGRES)
        skip();
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
    if (fx.backend != BACKEND_POSTGRES)
        skip();
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
    if (fx.backend != BACKEND_POSTGRES)
        skip();
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
    if (fx.backend != BACKEND_POSTGRES)
        skip();
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
    if (fx.backend != BACKEND_POSTGRES)
        skip();
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
    if (fx.backend != BACKEND_POSTGRES)
        skip();
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
    if (fx.backend != BACKEND_POSTGRES)
        skip();
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
    if (fx.backend != BACKEND_POSTGRES)
        skip();
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
    CONTRACT_TEST(one_bad_operation_among_a_hundred_fails_alone),
    CONTRACT_TEST(what_a_trigger_of_the_users_own_refuses_fails_alone),
    CONTRACT_TEST(a_hundred_callers_at_once_are_each_answered_for_themselves),
    CONTRACT_TEST(a_lone_caller_flushes_by_itself),
    CONTRACT_TEST(who_comes_while_a_lone_caller_flushes_is_answered),
    CONTRACT_TEST(a_lone_callers_lost_answer_is_asked_for_again),
    CONTRACT_TEST(many_callers_at_once_need_far_fewer_commits_than_calls),
    CONTRACT_TEST(what_gathers_while_a_commit_is_under_way_is_one_commit),
    CONTRACT_TEST(of_two_commits_on_one_run_in_one_batch_the_first_wins),
    CONTRACT_TEST(a_commit_sees_the_signals_of_its_own_batch),
    CONTRACT_TEST(many_steps_of_one_run_in_one_batch_keep_their_order),
    CONTRACT_TEST(a_step_and_a_signal_to_one_run_in_one_batch_share_its_journal),
    CONTRACT_TEST(a_short_end_and_a_signal_in_one_batch_do_not_mix_up_the_journal),
    CONTRACT_TEST(two_children_that_end_in_one_batch_lower_the_count_by_two),
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
CONTRACT("group_commit", tests)
