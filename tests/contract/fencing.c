/* The fence: whoever no longer holds a run changes nothing at all, and is told so. A4.
 * SPDX-License-Identifier: Apache-2.0 */
#include "contract/fixture.h"

/* ---- What a holder can try ---- */

/* A turn that brings all that a turn can bring. */
static hf_transition full_turn(const hf_claimed *held, hf_turn turn)
{
    static const char *const consumed[] = { "sig-1" };
    static const char *const timers_off[] = { "old" };
    static hf_new_timer timer = { .key = "new", .delay = HF_SECONDS(1) };
    static hf_new_event event = { .kind = "domain", .name = "Ghost" };
    static hf_new_outbox outbox = { .type = "ghost" };
    static hf_new_task task = { .name = "ghost" };
    static hf_trigger_spec child;
    hf_transition t = turn_of(held, turn);
    child = spec_of(WORK);
    t.state = "\"ghost\"";
    t.result = turn == HF_TURN_SUCCEED ? "\"ghost\"" : NULL;
    t.current_step = "ghost";
    t.consumed = consumed;
    t.consumed_count = 1;
    t.cancelled_timers = timers_off;
    t.cancelled_timer_count = 1;
    t.timers = &timer;
    t.timer_count = 1;
    t.events = &event;
    t.event_count = 1;
    t.outbox = &outbox;
    t.outbox_count = 1;
    t.tasks = &task;
    t.task_count = 1;
    t.children = &child;
    t.child_count = 1;
    t.starts = &child;
    t.start_count = 1;
    return t;
}

static hf_code do_turn(const hf_claimed *held, hf_turn turn)
{
    hf_transition t = full_turn(held, turn);
    return try_commit(&t);
}

#define TURN(name, turn)                                                                           \
    static hf_code name(const hf_claimed *held)                                                    \
    {                                                                                              \
        return do_turn(held, turn);                                                                \
    }
TURN(do_succeed, HF_TURN_SUCCEED)
TURN(do_fail, HF_TURN_FAIL)
TURN(do_retry, HF_TURN_RETRY)
TURN(do_wait, HF_TURN_WAIT)
TURN(do_give_back, HF_TURN_GIVE_BACK)

static hf_code do_blame(const hf_claimed *held)
{
    static const char *const blamed[] = { "sig-1" };
    hf_transition t = turn_of(held, HF_TURN_RETRY);
    t.blamed = blamed;
    t.blamed_count = 1;
    return try_commit(&t);
}

static hf_code do_short_success(const hf_claimed *held)
{
    hf_transition t = turn_of(held, HF_TURN_SUCCEED);
    return try_commit_short(&t);
}

static hf_code do_short_failure(const hf_claimed *held)
{
    hf_transition t = turn_of(held, HF_TURN_FAIL);
    return try_commit_short(&t);
}

static hf_code do_heartbeat(const hf_claimed *held)
{
    hf_held holding = { .run = held->run.id, .run_version = held->run.version, .lease = LEASE };
    assert_ok(hf_heartbeat(fx.client, &holding, 1, &fx.error));
    return holding.code;
}

static hf_code do_step(const hf_claimed *held)
{
    hf_step_record step = { held->run.id, held->run.version, WORKER, "s", "succeeded", "1" };
    return hf_step_save(fx.client, &step, &fx.error);
}

static hf_code (*const tries[])(const hf_claimed *held) = {
    do_succeed, do_fail,          do_retry,         do_wait,      do_give_back,
    do_blame,   do_short_success, do_short_failure, do_heartbeat, do_step,
};
enum { TRIES = sizeof tries / sizeof *tries };

/* Each is refused with the code, and the tables are what they were. */
static void expect_refused(const hf_claimed *held, hf_code code)
{
    const char *before = dump();
    for (int i = 0; i < TRIES; i++) {
        assert_code(tries[i](held), code);
        assert_string_equal(before, dump());
    }
}

/* A held run with a signal and a timer in its mailbox. */
static const hf_claimed *hold_one(void)
{
    static const hf_signal_spec signal = {
        HF_SIGNAL_VERSION, "sig-1", NULL, "s", NULL, NULL, 0, 0
    };
    const hf_claimed *held = claim_new();
    hf_new_timer timer = { .key = "old", .delay = HF_DAYS(300) };
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    t.timers = &timer;
    t.timer_count = 1;
    commit(&t);
    assert_ok(try_signal(held->run.id, &signal));
    return claim();
}

/* ---- The rules ---- */

static void a_holder_whose_run_was_claimed_by_another_changes_nothing(void **state)
{
    const hf_claimed *stale = hold_one();
    (void)state;
    advance(LEASE);
    assert_int_equal(claim_as("bert", 1)->count, 1);
    expect_refused(stale, HF_STALE);
}

/* Its old number meets the new holder's by chance if it counts on by itself. */
static void a_stale_holder_with_the_version_of_the_commit_after_changes_nothing(void **state)
{
    const hf_claimed *stale = hold_one();
    hf_claimed guess = *stale;
    (void)state;
    succeed(stale);
    guess.run.version = get(stale->run.id)->version;
    expect_refused(&guess, HF_STALE);
}

static void the_same_worker_that_lost_and_reclaimed_a_run_is_stale_with_its_old_claim(void **state)
{
    const hf_claimed *stale = hold_one();
    (void)state;
    advance(LEASE);
    const hf_claimed *fresh = claim();
    assert_true(hf_id_equal(fresh->run.id, stale->run.id));
    expect_refused(stale, HF_STALE);
    succeed(fresh);
}

static void a_holder_whose_run_was_finished_by_another_changes_nothing(void **state)
{
    const hf_claimed *stale = hold_one();
    (void)state;
    advance(LEASE);
    const hf_claims *claims = claim_as("bert", 1);
    hf_transition t = turn_of(&claims->items[0], HF_TURN_SUCCEED);
    t.worker = "bert";
    commit(&t);
    expect_refused(stale, HF_STALE);
}

static void a_holder_that_has_committed_cannot_commit_again(void **state)
{
    const hf_claimed *held = hold_one();
    (void)state;
    retry_after(held, HF_HOURS(1));
    expect_refused(held, HF_STALE);
}

static void a_holder_of_a_cancelled_run_is_told_that_it_was_cancelled(void **state)
{
    const hf_claimed *held = hold_one();
    (void)state;
    change(held->run.id, HF_CANCEL);
    expect_refused(held, HF_RUN_CANCELLED);
}

static void a_holder_of_a_run_that_was_cancelled_and_retried_is_stale(void **state)
{
    const hf_claimed *held = hold_one();
    (void)state;
    change(held->run.id, HF_CANCEL);
    change(held->run.id, HF_RETRY_RUN);
    expect_refused(held, HF_STALE);
}

static void a_holder_keeps_its_run_while_others_pause_delete_and_signal_it(void **state)
{
    const hf_claimed *held = hold_one();
    (void)state;
    change(held->run.id, HF_PAUSE);
    change(held->run.id, HF_RESUME);
    send_signal(held->run.id, "more");
    change(held->run.id, HF_DELETE);
    assert_code(do_heartbeat(held), HF_OK);
    assert_code(do_step(held), HF_OK);
    succeed(held);
    expect_status(held->run.id, HF_SUCCEEDED);
    assert_int_not_equal(get(held->run.id)->deleted_at, 0);
}

static void a_version_from_the_future_is_as_stale_as_one_from_the_past(void **state)
{
    const hf_claimed *held = hold_one();
    hf_claimed guess = *held;
    (void)state;
    guess.run.version++;
    expect_refused(&guess, HF_STALE);
    guess.run.version = 0;
    expect_refused(&guess, HF_STALE);
    succeed(held);
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(a_holder_whose_run_was_claimed_by_another_changes_nothing),
    CONTRACT_TEST(a_stale_holder_with_the_version_of_the_commit_after_changes_nothing),
    CONTRACT_TEST(the_same_worker_that_lost_and_reclaimed_a_run_is_stale_with_its_old_claim),
    CONTRACT_TEST(a_holder_whose_run_was_finished_by_another_changes_nothing),
    CONTRACT_TEST(a_holder_that_has_committed_cannot_commit_again),
    CONTRACT_TEST(a_holder_of_a_cancelled_run_is_told_that_it_was_cancelled),
    CONTRACT_TEST(a_holder_of_a_run_that_was_cancelled_and_retried_is_stale),
    CONTRACT_TEST(a_holder_keeps_its_run_while_others_pause_delete_and_signal_it),
    CONTRACT_TEST(a_version_from_the_future_is_as_stale_as_one_from_the_past),
};
CONTRACT("fencing", tests)
