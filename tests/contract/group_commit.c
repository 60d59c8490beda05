/* Group commit: operations share a transaction, but never each other's fate.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>

#include "client/client.h"
#include "client/ids.h"
#include "contract/submitting.h"

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
};
CONTRACT("group_commit", tests)
