/* Timers: mail that becomes visible later, replaced by its key. A11.
 * SPDX-License-Identifier: Apache-2.0 */
#include "contract/fixture.h"

/* Waits with timers; `cancelled` may be NULL. */
static void wait_with(const hf_claimed *held, const hf_new_timer *timers, size_t count,
                      const char *cancelled)
{
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    t.timers = timers;
    t.timer_count = count;
    t.cancelled_timers = &cancelled;
    t.cancelled_timer_count = cancelled != NULL;
    consume_all(held, &t);
}

static hf_new_timer timer_of(const char *key, int64_t delay)
{
    return (hf_new_timer){ .key = key, .delay = delay };
}

static void a_timer_wakes_the_run_exactly_at_its_time(void **state)
{
    const hf_claimed *held = claim_new();
    hf_new_timer timer = timer_of("wake", HF_MINUTES(1));
    (void)state;
    timer.payload = "{\"n\":1}";
    timer.token = "tok";
    wait_with(held, &timer, 1, NULL);
    assert_int_equal(get(held->run.id)->run_at, now() + HF_MINUTES(1));
    advance(HF_MINUTES(1) - 1);
    expect_nothing_due();
    advance(1);
    held = claim();
    assert_int_equal(held->mail_count, 1);
    assert_string_equal(held->mail[0].type, "timer");
    assert_string_equal(held->mail[0].name, "wake");
    assert_string_equal(held->mail[0].payload, "{\"n\":1}");
    assert_string_equal(held->mail[0].token, "tok");
}

static void a_timer_can_name_its_time(void **state)
{
    const hf_claimed *held = claim_new();
    hf_new_timer timer = { .key = "at", .at = now() + HF_HOURS(3), .delay = HF_SECONDS(1) };
    (void)state;
    wait_with(held, &timer, 1, NULL);
    assert_int_equal(get(held->run.id)->run_at, now() + HF_HOURS(3));
}

static void of_several_timers_each_is_seen_at_its_own_time(void **state)
{
    const hf_claimed *held = claim_new();
    hf_new_timer timers[] = { timer_of("b", HF_SECONDS(20)), timer_of("a", HF_SECONDS(10)),
                              timer_of("c", HF_SECONDS(30)) };
    static const char *const order[] = { "a", "b", "c" };
    (void)state;
    wait_with(held, timers, 3, NULL);
    for (int i = 0; i < 3; i++) {
        advance(HF_SECONDS(10) - 1);
        expect_nothing_due();
        advance(1);
        held = claim();
        assert_int_equal(held->mail_count, 1);
        assert_string_equal(held->mail[0].name, order[i]);
        wait_with(held, NULL, 0, NULL);
    }
    assert_int_equal(get(held->run.id)->run_at, 0);
}

static void timers_due_together_come_in_the_order_of_their_times(void **state)
{
    const hf_claimed *held = claim_new();
    hf_new_timer timers[] = { timer_of("later", HF_SECONDS(20)),
                              timer_of("sooner", HF_SECONDS(10)) };
    (void)state;
    wait_with(held, timers, 2, NULL);
    advance(HF_MINUTES(1));
    held = claim();
    assert_int_equal(held->mail_count, 2);
    assert_string_equal(held->mail[0].name, "sooner");
    assert_string_equal(held->mail[1].name, "later");
}

static void a_timer_is_replaced_by_its_key(void **state)
{
    const hf_claimed *held = claim_new();
    hf_new_timer timer = timer_of("t", HF_SECONDS(10));
    (void)state;
    timer.payload = "1";
    wait_with(held, &timer, 1, NULL);
    send_signal(held->run.id, "postpone");
    held = claim();
    timer = timer_of("t", HF_SECONDS(60));
    timer.payload = "2";
    wait_with(held, &timer, 1, NULL);
    assert_int_equal(get(held->run.id)->run_at, now() + HF_SECONDS(60));
    advance(HF_SECONDS(59));
    expect_nothing_due();
    advance(HF_SECONDS(1));
    held = claim();
    assert_int_equal(held->mail_count, 1);
    assert_string_equal(held->mail[0].payload, "2");
}

static void a_timer_can_be_brought_forward(void **state)
{
    const hf_claimed *held = claim_new();
    hf_new_timer timer = timer_of("t", HF_HOURS(1));
    (void)state;
    wait_with(held, &timer, 1, NULL);
    send_signal(held->run.id, "hurry");
    timer = timer_of("t", HF_SECONDS(1));
    wait_with(claim(), &timer, 1, NULL);
    advance(HF_SECONDS(1));
    assert_int_equal(claim()->mail_count, 1);
}

static void a_cancelled_timer_neither_wakes_nor_arrives(void **state)
{
    const hf_claimed *held = claim_new();
    hf_new_timer timers[] = { timer_of("a", HF_SECONDS(10)), timer_of("b", HF_SECONDS(20)) };
    (void)state;
    wait_with(held, timers, 2, NULL);
    send_signal(held->run.id, "stop");
    wait_with(claim(), NULL, 0, "a");
    assert_int_equal(get(held->run.id)->run_at, now() + HF_SECONDS(20));
    advance(HF_SECONDS(20));
    held = claim();
    assert_int_equal(held->mail_count, 1);
    assert_string_equal(held->mail[0].name, "b");
}

/* Waiting for nothing but a signal costs no look at all. */
static void a_wait_whose_last_timer_was_cancelled_sleeps_until_a_signal(void **state)
{
    const hf_claimed *held = claim_new();
    hf_new_timer timer = timer_of("a", HF_SECONDS(10));
    (void)state;
    wait_with(held, &timer, 1, NULL);
    send_signal(held->run.id, "stop");
    wait_with(claim(), NULL, 0, "a");
    assert_int_equal(get(held->run.id)->run_at, 0);
}

static void one_turn_can_cancel_a_timer_and_set_it_anew(void **state)
{
    const hf_claimed *held = claim_new();
    hf_new_timer timer = timer_of("a", HF_SECONDS(10));
    (void)state;
    wait_with(held, &timer, 1, NULL);
    send_signal(held->run.id, "again");
    timer = timer_of("a", HF_SECONDS(30));
    wait_with(claim(), &timer, 1, "a");
    assert_int_equal(get(held->run.id)->run_at, now() + HF_SECONDS(30));
    advance(HF_SECONDS(30));
    assert_int_equal(claim()->mail_count, 1);
}

static void of_one_key_twice_in_a_turn_the_last_one_counts(void **state)
{
    const hf_claimed *held = claim_new();
    hf_new_timer timers[] = { timer_of("a", HF_SECONDS(10)), timer_of("a", HF_SECONDS(30)) };
    (void)state;
    wait_with(held, timers, 2, NULL);
    assert_int_equal(get(held->run.id)->run_at, now() + HF_SECONDS(30));
    advance(HF_SECONDS(30));
    assert_int_equal(claim()->mail_count, 1);
}

static void a_timer_whose_time_has_passed_is_due_at_once(void **state)
{
    const hf_claimed *held = claim_new();
    hf_new_timer timer = { .key = "past", .at = now() - HF_HOURS(1) };
    (void)state;
    wait_with(held, &timer, 1, NULL);
    assert_int_equal(claim()->mail_count, 1);
}

static void a_consumed_timers_key_can_be_used_again(void **state)
{
    const hf_claimed *held = claim_new();
    hf_new_timer timer = timer_of("a", HF_SECONDS(10));
    (void)state;
    for (int i = 0; i < 3; i++) {
        wait_with(held, &timer, 1, NULL);
        advance(HF_SECONDS(10));
        held = claim();
        assert_int_equal(held->mail_count, 1);
    }
}

static void a_timer_set_by_a_retry_is_delivered_too(void **state)
{
    const hf_claimed *held = claim_new();
    hf_new_timer timer = timer_of("a", HF_SECONDS(10));
    hf_transition t = turn_of(held, HF_TURN_RETRY);
    (void)state;
    t.retry_delay = HF_SECONDS(60);
    t.timers = &timer;
    t.timer_count = 1;
    commit(&t);
    advance(HF_SECONDS(60));
    assert_int_equal(claim()->mail_count, 1);
}

static void two_runs_may_have_timers_of_the_same_key(void **state)
{
    hf_new_timer timer = timer_of("same", HF_SECONDS(10));
    (void)state;
    wait_with(claim_new(), &timer, 1, NULL);
    wait_with(claim_new(), &timer, 1, NULL);
    advance(HF_SECONDS(10));
    const hf_claims *claims = claim_as(WORKER, 10);
    assert_int_equal(claims->count, 2);
    assert_int_equal(claims->items[0].mail_count, 1);
    assert_int_equal(claims->items[1].mail_count, 1);
}

/* ---- Waiting until ---- */

static void a_wait_until_a_time_ends_without_mail(void **state)
{
    const hf_claimed *held = claim_new();
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    (void)state;
    t.waiting_kind = "time";
    t.waiting_until = now() + HF_SECONDS(10);
    commit(&t);
    assert_int_equal(get(held->run.id)->waiting_until, t.waiting_until);
    advance(HF_SECONDS(10) - 1);
    expect_nothing_due();
    advance(1);
    held = claim();
    assert_int_equal(held->mail_count, 0);
    assert_string_equal(held->run.waiting_kind, "time");
}

static void a_signal_ends_a_wait_before_its_time(void **state)
{
    const hf_claimed *held = claim_new();
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    (void)state;
    t.waiting_until = now() + HF_HOURS(1);
    commit(&t);
    send_signal(held->run.id, "s");
    assert_int_equal(claim()->mail_count, 1);
}

static void the_earliest_of_timer_and_limit_wakes_the_run(void **state)
{
    const hf_claimed *held = claim_new();
    hf_new_timer timer = timer_of("t", HF_SECONDS(20));
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    (void)state;
    t.timers = &timer;
    t.timer_count = 1;
    t.waiting_until = now() + HF_SECONDS(10);
    commit(&t);
    assert_int_equal(get(held->run.id)->run_at, now() + HF_SECONDS(10));
    advance(HF_SECONDS(10));
    held = claim();
    assert_int_equal(held->mail_count, 0);
    wait_for_signal(held);
    assert_int_equal(get(held->run.id)->run_at, now() + HF_SECONDS(10));
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(a_timer_wakes_the_run_exactly_at_its_time),
    CONTRACT_TEST(a_timer_can_name_its_time),
    CONTRACT_TEST(of_several_timers_each_is_seen_at_its_own_time),
    CONTRACT_TEST(timers_due_together_come_in_the_order_of_their_times),
    CONTRACT_TEST(a_timer_is_replaced_by_its_key),
    CONTRACT_TEST(a_timer_can_be_brought_forward),
    CONTRACT_TEST(a_cancelled_timer_neither_wakes_nor_arrives),
    CONTRACT_TEST(a_wait_whose_last_timer_was_cancelled_sleeps_until_a_signal),
    CONTRACT_TEST(one_turn_can_cancel_a_timer_and_set_it_anew),
    CONTRACT_TEST(of_one_key_twice_in_a_turn_the_last_one_counts),
    CONTRACT_TEST(a_timer_whose_time_has_passed_is_due_at_once),
    CONTRACT_TEST(a_consumed_timers_key_can_be_used_again),
    CONTRACT_TEST(a_timer_set_by_a_retry_is_delivered_too),
    CONTRACT_TEST(two_runs_may_have_timers_of_the_same_key),
    CONTRACT_TEST(a_wait_until_a_time_ends_without_mail),
    CONTRACT_TEST(a_signal_ends_a_wait_before_its_time),
    CONTRACT_TEST(the_earliest_of_timer_and_limit_wakes_the_run),
};
CONTRACT("timers", tests)
