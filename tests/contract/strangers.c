/* Strangers: operations of two tenants that name the same run and are applied by one flush. Nobody may profit from what
 * the other one had locked, read or written. A4.
 * SPDX-License-Identifier: Apache-2.0 */
#include "contract/fixture.h"

#include "client/client.h"

static struct hf__op ours(enum hf__op_kind kind)
{
    return (struct hf__op){ .kind = kind, .tenant = fx.client->tenant_id, .actor = "we" };
}

static struct hf__op theirs(enum hf__op_kind kind)
{
    return (struct hf__op){ .kind = kind, .tenant = fx.other->tenant_id, .actor = "they" };
}

/* Both in one flush; ours first, or theirs. */
static void apply_both(struct hf__op *our_op, struct hf__op *their_op, bool theirs_first)
{
    struct hf__op ops[2] = { theirs_first ? *their_op : *our_op,
                             theirs_first ? *our_op : *their_op };
    hf__engine_apply(fx.client->engine, ops, 2);
    *our_op = ops[theirs_first ? 1 : 0];
    *their_op = ops[theirs_first ? 0 : 1];
}

static const hf_signal_spec our_signal = {
    HF_SIGNAL_VERSION, "mine", "external", "mine", "1", NULL, 0, 0
};
static const hf_signal_spec their_signal = {
    HF_SIGNAL_VERSION, "evil", "external", "evil", "1", NULL, 0, 0
};

static struct hf__op signal_to(struct hf__op op, hf_id run, const hf_signal_spec *spec)
{
    op.signal.run = run;
    op.signal.spec = spec;
    return op;
}

static int64_t mail_of(hf_id run)
{
    return sql_number("SELECT count(*) FROM signal WHERE run_id = %s", sql_id(run));
}

static void a_strangers_signal_does_not_reach_the_run(void **state)
{
    (void)state;
    for (int theirs_first = 0; theirs_first <= 1; theirs_first++) {
        hf_id run = trigger(WORK);
        struct hf__op a = signal_to(ours(HF__OP_SIGNAL), run, &our_signal);
        struct hf__op b = signal_to(theirs(HF__OP_SIGNAL), run, &their_signal);
        apply_both(&a, &b, theirs_first);
        assert_int_equal(a.code, HF_OK);
        assert_int_equal(b.code, HF_NOT_FOUND);
        assert_int_equal(mail_of(run), 1);
        expect_journal(run, "created mine");
    }
}

/* That a signal came before is nothing for strangers to know. */
static void a_stranger_is_not_told_which_signals_came(void **state)
{
    (void)state;
    hf_id run = trigger(WORK);
    for (int theirs_first = 0; theirs_first <= 1; theirs_first++) {
        struct hf__op a = signal_to(ours(HF__OP_SIGNAL), run, &our_signal);
        struct hf__op b = signal_to(theirs(HF__OP_SIGNAL), run, &our_signal);
        apply_both(&a, &b, theirs_first);
        assert_int_equal(a.code, HF_OK);
        assert_int_equal(b.code, HF_NOT_FOUND);
        assert_false(b.signal.duplicate);
    }
}

static void a_stranger_cannot_change_a_run_that_is_locked_for_its_owner(void **state)
{
    (void)state;
    for (int theirs_first = 0; theirs_first <= 1; theirs_first++)
        for (int action = HF_CANCEL; action <= HF_RESTORE; action++) {
            hf_id run = trigger(WORK);
            struct hf__op a = signal_to(ours(HF__OP_SIGNAL), run, &our_signal);
            struct hf__op b = theirs(HF__OP_CHANGE);
            b.change.run = run;
            b.change.action = (hf_action)action;
            apply_both(&a, &b, theirs_first);
            assert_int_equal(a.code, HF_OK);
            assert_int_equal(b.code, HF_NOT_FOUND);
            expect_journal(run, "created mine");
        }
}

static void a_stranger_with_the_right_version_cannot_commit_for_the_holder(void **state)
{
    (void)state;
    for (int theirs_first = 0; theirs_first <= 1; theirs_first++)
        for (hf_turn turn = HF_TURN_SUCCEED; turn <= HF_TURN_GO_ON; turn++) {
            const hf_claimed *held = claim_new();
            hf_transition t = turn_of(held, turn);
            struct hf__op a = signal_to(ours(HF__OP_SIGNAL), held->run.id, &our_signal);
            struct hf__op b = theirs(HF__OP_COMMIT);
            b.commit.transition = &t;
            apply_both(&a, &b, theirs_first);
            assert_int_equal(a.code, HF_OK);
            assert_int_equal(b.code, HF_STALE);
            expect_journal(held->run.id, "created started mine");
            succeed(held);
        }
}

static void a_holder_and_a_stranger_end_the_same_run(void **state)
{
    (void)state;
    for (int theirs_first = 0; theirs_first <= 1; theirs_first++)
        for (int parentless = 0; parentless <= 1; parentless++) {
            const hf_claimed *held = claim_new();
            hf_transition good = turn_of(held, HF_TURN_SUCCEED);
            hf_transition evil = turn_of(held, HF_TURN_FAIL);
            struct hf__op a = ours(HF__OP_COMMIT);
            struct hf__op b = theirs(HF__OP_COMMIT);
            a.commit.transition = &good;
            a.commit.parentless = b.commit.parentless = parentless;
            b.commit.transition = &evil;
            apply_both(&a, &b, theirs_first);
            assert_int_equal(a.code, HF_OK);
            assert_int_equal(b.code, HF_STALE);
            expect_status(held->run.id, HF_SUCCEEDED);
        }
}

static void a_strangers_step_is_not_taken_for_the_holders(void **state)
{
    (void)state;
    for (int theirs_first = 0; theirs_first <= 1; theirs_first++) {
        const hf_claimed *held = claim_new();
        hf_step_record step = { held->run.id, held->run.version, WORKER, "s", "succeeded", "1" };
        struct hf__op a = ours(HF__OP_STEP);
        struct hf__op b = theirs(HF__OP_STEP);
        a.step.record = b.step.record = &step;
        apply_both(&a, &b, theirs_first);
        assert_int_equal(a.code, HF_OK);
        assert_int_equal(b.code, HF_STALE);
        expect_journal(held->run.id, "created started succeeded");
        succeed(held);
    }
}

static void a_strangers_heartbeat_is_not_answered_with_the_holders(void **state)
{
    (void)state;
    for (int theirs_first = 0; theirs_first <= 1; theirs_first++)
        for (int cancelled = 0; cancelled <= 1; cancelled++) {
            const hf_claimed *held = claim_new();
            hf_held mine = { .run = held->run.id,
                             .run_version = held->run.version,
                             .lease = LEASE };
            hf_held evil = mine;
            struct hf__op a = ours(HF__OP_HEARTBEAT);
            struct hf__op b = theirs(HF__OP_HEARTBEAT);
            a.heartbeat.held = &mine;
            b.heartbeat.held = &evil;
            a.heartbeat.count = b.heartbeat.count = 1;
            if (cancelled)
                change(held->run.id, HF_CANCEL);
            apply_both(&a, &b, theirs_first);
            assert_int_equal(mine.code, cancelled ? HF_RUN_CANCELLED : HF_OK);
            assert_int_equal(evil.code, HF_STALE);
            if (!cancelled)
                succeed(held);
        }
}

/* The parent is locked because its child ends. */
static void a_stranger_cannot_reach_a_parent_that_is_locked_for_its_child(void **state)
{
    (void)state;
    for (int theirs_first = 0; theirs_first <= 1; theirs_first++) {
        hf_trigger_spec child = spec_of(WORK);
        hf_id parent = trigger(WORK);
        hf_transition t = turn_of(claim(), HF_TURN_WAIT);
        t.children = &child;
        t.child_count = 1;
        commit(&t);
        hf_transition end = turn_of(claim(), HF_TURN_SUCCEED);
        struct hf__op a = ours(HF__OP_COMMIT);
        struct hf__op b = signal_to(theirs(HF__OP_SIGNAL), parent, &their_signal);
        a.commit.transition = &end;
        apply_both(&a, &b, theirs_first);
        assert_int_equal(a.code, HF_OK);
        assert_int_equal(b.code, HF_NOT_FOUND);
        assert_int_equal(mail_of(parent), 1);
        change(parent, HF_CANCEL);
    }
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(a_strangers_signal_does_not_reach_the_run),
    CONTRACT_TEST(a_stranger_is_not_told_which_signals_came),
    CONTRACT_TEST(a_stranger_cannot_change_a_run_that_is_locked_for_its_owner),
    CONTRACT_TEST(a_stranger_with_the_right_version_cannot_commit_for_the_holder),
    CONTRACT_TEST(a_holder_and_a_stranger_end_the_same_run),
    CONTRACT_TEST(a_strangers_step_is_not_taken_for_the_holders),
    CONTRACT_TEST(a_strangers_heartbeat_is_not_answered_with_the_holders),
    CONTRACT_TEST(a_stranger_cannot_reach_a_parent_that_is_locked_for_its_child),
};
CONTRACT("strangers", tests)
