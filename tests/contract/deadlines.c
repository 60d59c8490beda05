/* Deadlines: a run past its time is claimed wherever it is, so that it can be failed. A11.
 * SPDX-License-Identifier: Apache-2.0 */
#include "contract/fixture.h"

#define DEADLINE HF_MINUTES(10)

static void expect_overdue_at_the_deadline(hf_id id)
{
    int64_t left = get(id)->timeout_at - now();
    advance(left - 1);
    const hf_claims *claims = claim_as(WORKER, 10);
    for (size_t i = 0; i < claims->count; i++)
        assert_false(claims->items[i].overdue);
    advance(1);
    const hf_claimed *held = claim();
    assert_true(hf_id_equal(held->run.id, id));
    assert_true(held->overdue);
    fail_for_good(held);
}

static void a_waiting_run_is_claimed_at_its_deadline(void **state)
{
    (void)state;
    expect_overdue_at_the_deadline(run_that_is(HF_WAITING, DEADLINE));
}

static void a_paused_run_is_claimed_at_its_deadline(void **state)
{
    (void)state;
    expect_overdue_at_the_deadline(run_that_is(HF_PAUSED, DEADLINE));
}

static void a_paused_waiting_run_is_claimed_at_its_deadline(void **state)
{
    hf_id id = run_that_is(HF_WAITING, DEADLINE);
    (void)state;
    change(id, HF_PAUSE);
    expect_overdue_at_the_deadline(id);
}

static void a_delayed_run_is_claimed_at_its_deadline(void **state)
{
    hf_trigger_spec spec = spec_of(WORK);
    (void)state;
    spec.delay = HF_HOURS(2);
    spec.timeout = DEADLINE;
    expect_overdue_at_the_deadline(trigger_spec(&spec));
}

static void a_run_in_backoff_is_claimed_at_its_deadline(void **state)
{
    hf_id id = run_that_is(HF_LEASED, DEADLINE);
    (void)state;
    advance(DEADLINE - HF_SECONDS(1));
    retry_after(claim(), HF_HOURS(1));
    expect_overdue_at_the_deadline(id);
}

static void a_pending_run_past_its_deadline_is_marked_as_overdue(void **state)
{
    run_that_is(HF_PENDING, DEADLINE);
    (void)state;
    advance(DEADLINE);
    assert_true(claim()->overdue);
}

static void a_run_that_waits_for_a_timer_is_claimed_at_its_deadline(void **state)
{
    hf_new_timer timer = { .key = "late", .delay = HF_HOURS(5) };
    hf_id id = run_that_is(HF_LEASED, DEADLINE);
    (void)state;
    advance(LEASE);
    const hf_claimed *held = claim();
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    t.timers = &timer;
    t.timer_count = 1;
    commit(&t);
    expect_overdue_at_the_deadline(id);
}

static void a_run_that_was_born_waiting_is_claimed_at_its_deadline(void **state)
{
    hf_new_timer timer = { .key = "late", .delay = HF_HOURS(5) };
    hf_transition first = {
        .version = HF_TRANSITION_VERSION, .turn = HF_TURN_WAIT, .timers = &timer, .timer_count = 1
    };
    hf_trigger_spec spec = spec_of(WORK);
    hf_triggered out;
    (void)state;
    spec.timeout = DEADLINE;
    assert_ok(hf_trigger_with(fx.client, &out, &spec, &first, &fx.error));
    expect_overdue_at_the_deadline(out.id);
}

static void a_lease_ends_with_the_deadline(void **state)
{
    hf_trigger_spec spec = spec_of(WORK);
    (void)state;
    spec.timeout = HF_SECONDS(10);
    hf_id id = trigger_spec(&spec);
    const hf_claimed *held = claim();
    assert_int_equal(held->run.lease_until, get(id)->timeout_at);
    assert_false(held->overdue);
    advance(HF_SECONDS(10));
    assert_true(claim()->overdue);
}

static void a_heartbeat_never_prolongs_past_the_deadline(void **state)
{
    hf_trigger_spec spec = spec_of(WORK);
    (void)state;
    spec.timeout = HF_SECONDS(40);
    hf_id id = trigger_spec(&spec);
    const hf_claimed *held = claim();
    hf_held holding = { .run = id, .run_version = held->run.version, .lease = LEASE };
    advance(HF_SECONDS(20));
    assert_ok(hf_heartbeat(fx.client, &holding, 1, &fx.error));
    assert_int_equal(holding.code, HF_OK);
    assert_int_equal(get(id)->lease_until, get(id)->timeout_at);
}

static void an_overdue_run_is_leased_for_long_enough_to_be_failed(void **state)
{
    hf_id id = run_that_is(HF_WAITING, DEADLINE);
    (void)state;
    advance(DEADLINE + HF_HOURS(1));
    claim();
    assert_int_equal(get(id)->lease_until, now() + LEASE);
    expect_nothing_due();
}

static void the_workflows_timeout_is_the_deadline_of_its_runs(void **state)
{
    (void)state;
    define_with((hf_workflow){ .name = WORK, .timeout = HF_HOURS(1) }, HF_SET_TIMEOUT);
    hf_id id = trigger(WORK);
    assert_int_equal(get(id)->timeout_at, now() + HF_HOURS(1));
    hf_trigger_spec spec = spec_of(WORK);
    spec.timeout = HF_SECONDS(5);
    assert_int_equal(get(trigger_spec(&spec))->timeout_at, now() + HF_SECONDS(5));
    spec.timeout_at = now() + HF_SECONDS(7);
    assert_int_equal(get(trigger_spec(&spec))->timeout_at, now() + HF_SECONDS(7));
}

static void a_deleted_run_past_its_deadline_is_left_alone(void **state)
{
    hf_id id = run_that_is(HF_WAITING, DEADLINE);
    (void)state;
    change(id, HF_DELETE);
    advance(DEADLINE);
    expect_nothing_due();
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(a_waiting_run_is_claimed_at_its_deadline),
    CONTRACT_TEST(a_paused_run_is_claimed_at_its_deadline),
    CONTRACT_TEST(a_paused_waiting_run_is_claimed_at_its_deadline),
    CONTRACT_TEST(a_delayed_run_is_claimed_at_its_deadline),
    CONTRACT_TEST(a_run_in_backoff_is_claimed_at_its_deadline),
    CONTRACT_TEST(a_pending_run_past_its_deadline_is_marked_as_overdue),
    CONTRACT_TEST(a_run_that_waits_for_a_timer_is_claimed_at_its_deadline),
    CONTRACT_TEST(a_run_that_was_born_waiting_is_claimed_at_its_deadline),
    CONTRACT_TEST(a_lease_ends_with_the_deadline),
    CONTRACT_TEST(a_heartbeat_never_prolongs_past_the_deadline),
    CONTRACT_TEST(an_overdue_run_is_leased_for_long_enough_to_be_failed),
    CONTRACT_TEST(the_workflows_timeout_is_the_deadline_of_its_runs),
    CONTRACT_TEST(a_deleted_run_past_its_deadline_is_left_alone),
};
CONTRACT("deadlines", tests)
