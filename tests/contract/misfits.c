/* Runs whose history a worker's code did not fit: they wait for another worker, and fail only after a time. C5.
 * SPDX-License-Identifier: Apache-2.0 */
#include "client/client.h"
#include "client/fit.h"
#include "contract/fixture.h"
#include "kernel/retry.h"

#define FIRST_PAUSE HF_MILLISECONDS(250)
#define WHY "\"b\" (step) was called where \"a\" (step) is remembered"

/* The holder's code does not fit. */
static void misfit(const hf_claimed *held)
{
    hf_transition t = turn_of(held, HF_TURN_UNFIT);
    t.error_code = "history_mismatch";
    t.last_error = WHY;
    commit(&t);
}

static bool is_over(hf_id run)
{
    bool over = false;
    assert_ok(hf__fit_is_over(fx.client->engine, fx.client->tenant_id, run, &over, &fx.error));
    return over;
}

static void join(const char *serves)
{
    char tenants[80];
    snprintf(tenants, sizeof tenants, "[\"%s\"]", fx.tenant);
    assert_ok(hf__fit_try_again(fx.client->engine, tenants, serves, &fx.error));
}

static void a_run_that_fits_no_code_waits_for_another_worker(void **state)
{
    const hf_claimed *held = claim_new();
    (void)state;
    misfit(held);
    const hf_run *run = get(held->run.id);
    assert_int_equal(run->status, HF_WAITING);
    assert_string_equal(run->waiting_kind, "worker");
    assert_string_equal(run->last_error, WHY);
    assert_string_equal(run->error_code, "history_mismatch");
    assert_int_equal(run->waiting_until, now() + HF_DAYS(1));
    assert_null(run->leased_by);
    expect_nothing_due();
    advance(FIRST_PAUSE - 1);
    expect_nothing_due();
    advance(1);
    succeed(claim());
    expect_journal(held->run.id, "created started waiting started succeeded");
    const hf_event *line = &events_of(held->run.id)->items[2];
    assert_non_null(strstr(line->data, "\"for\":\"worker\""));
    assert_non_null(strstr(line->data, "where \\\"a\\\""));
    assert_null(get(held->run.id)->last_error);
}

static void a_misfit_costs_no_attempt(void **state)
{
    (void)state;
    retry_after(claim_new(), 0);
    for (int i = 0; i < 10; i++) {
        const hf_claimed *held = claim();
        assert_int_equal(held->run.attempt, 2);
        misfit(held);
        advance(HF_MINUTES(10));
    }
    assert_int_equal(claim()->run.attempt, 2);
}

static void pauses_grow_while_nobody_fits(void **state)
{
    (void)state;
    int64_t pause = hf__unfit_pause(0);
    assert_int_equal(pause, FIRST_PAUSE);
    for (int i = 0; i < 100; i++) {
        int64_t next = hf__unfit_pause(pause);
        assert_true(next > pause || next == HF_MINUTES(10));
        assert_true(next <= pause * 5 / 4);
        pause = next;
    }
    assert_int_equal(pause, HF_MINUTES(10));
    const hf_claimed *held = claim_new();
    misfit(held);
    advance(FIRST_PAUSE);
    misfit(claim());
    assert_int_equal(get(held->run.id)->run_at, now() + hf__unfit_pause(FIRST_PAUSE));
}

static void a_worker_that_joins_brings_the_next_try_forward(void **state)
{
    const hf_claimed *held = claim_new();
    (void)state;
    misfit(held);
    advance(HF_SECONDS(1));
    misfit(claim());
    join("[\"other\",\"other.*\"]");
    expect_nothing_due();
    join("[\"other\",\"wo*\"]");
    misfit(claim());
    assert_int_equal(get(held->run.id)->run_at, now() + FIRST_PAUSE); /* they begin anew */
    join("[\"" WORK "\"]");
    succeed(claim());
}

static void it_is_over_when_nobody_has_fitted_for_the_workflows_time(void **state)
{
    const hf_claimed *held = claim_new();
    (void)state;
    assert_false(is_over(held->run.id));
    misfit(held);
    advance(HF_DAYS(1) - 1);
    held = claim();
    assert_false(is_over(held->run.id));
    misfit(held);
    assert_int_equal(get(held->run.id)->run_at, now() + 1); /* it does not wait for longer */
    advance(1);
    assert_true(is_over(claim()->run.id));
}

static void the_time_is_a_setting(void **state)
{
    hf_workflow *found;
    (void)state;
    assert_ok(hf_workflow_get(fx.client, &found, WORK, &fx.error));
    assert_int_equal(found->fit_within, 86400);
    hf_workflow_free(found);
    define_with((hf_workflow){ .name = WORK, .fit_within = 0 }, HF_SET_FIT_WITHIN);
    const hf_claimed *held = claim_new();
    assert_true(is_over(held->run.id));
    define_with((hf_workflow){ .name = WORK, .fit_within = 60 }, HF_SET_FIT_WITHIN);
    assert_false(is_over(held->run.id));
    misfit(held);
    assert_int_equal(get(held->run.id)->waiting_until, now() + HF_MINUTES(1));
    hf_workflow wrong = { .name = WORK, .fit_within = -1 };
    assert_code(hf_workflow_set(fx.client, &wrong, HF_SET_FIT_WITHIN, &fx.error), HF_INVALID);
}

static void progress_begins_the_time_anew(void **state)
{
    const hf_claimed *held = claim_new();
    (void)state;
    misfit(held);
    advance(HF_HOURS(23));
    held = claim();
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    t.waiting_until = now() + 1;
    commit(&t);
    const hf_run *run = get(held->run.id);
    assert_string_equal(run->waiting_kind, "signal");
    assert_null(run->last_error);
    assert_null(run->error_code);
    advance(HF_HOURS(23));
    held = claim();
    misfit(held);
    assert_int_equal(get(held->run.id)->waiting_until, now() + HF_DAYS(1));
}

static void a_step_is_progress_even_if_its_worker_dies(void **state)
{
    const hf_claimed *held = claim_new();
    (void)state;
    misfit(held);
    advance(HF_HOURS(23));
    held = claim();
    hf_step_record step = { .run = held->run.id,
                            .run_version = held->run.version,
                            .worker = WORKER,
                            .name = "a",
                            .status = "succeeded",
                            .data = "{}" };
    assert_ok(hf_step_save(fx.client, &step, &fx.error));
    advance(HF_HOURS(23));
    assert_false(is_over(claim()->run.id));
}

static void a_worker_that_stops_does_not_begin_it_anew(void **state)
{
    const hf_claimed *held = claim_new();
    (void)state;
    misfit(held);
    advance(HF_HOURS(23));
    hf_transition t = turn_of(claim(), HF_TURN_GIVE_BACK);
    commit(&t);
    advance(HF_HOURS(1));
    assert_true(is_over(claim()->run.id));
}

static void an_operators_retry_begins_it_anew(void **state)
{
    const hf_claimed *held = claim_new();
    (void)state;
    misfit(held);
    advance(HF_DAYS(1));
    held = claim();
    hf_transition t = turn_of(held, HF_TURN_FAIL);
    assert_ok(try_commit_short(&t));
    change(held->run.id, HF_RETRY_RUN);
    assert_false(is_over(claim()->run.id));
}

/* ---- What comes meanwhile ---- */

static void mail_that_comes_meanwhile_is_there_for_whoever_fits(void **state)
{
    const hf_claimed *held = claim_new();
    (void)state;
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    t.waiting_token = "t1";
    commit(&t);
    send_signal(held->run.id, "plain");
    misfit(claim());
    hf_signal_spec answer = HF_SIGNAL_INIT;
    answer.name = "answer";
    answer.token = "t1"; /* what it waits for is known to the code that fits */
    assert_ok(try_signal(held->run.id, &answer));
    send_signal(held->run.id, "more");
    expect_nothing_due();
    advance(HF_SECONDS(1));
    held = claim();
    assert_int_equal(held->mail_count, 2 + 1);
    t = turn_of(held, HF_TURN_SUCCEED);
    consume_all(held, &t);
}

/* Whose mail would lie there and wake nobody. */
static void no_holder_can_wait_as_if_its_code_did_not_fit(void **state)
{
    const hf_claimed *held = claim_new();
    (void)state;
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    t.waiting_kind = "worker";
    assert_code(try_commit(&t), HF_INVALID);
    t.waiting_kind = "workers";
    commit(&t);
    send_signal(held->run.id, "go");
    succeed(claim());
}

static void ends_of_children_are_there_for_whoever_fits(void **state)
{
    define("child");
    const hf_claimed *held = claim_new();
    hf_trigger_spec spec = spec_of("child");
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    (void)state;
    t.children = &spec;
    t.child_count = 1;
    t.wait_children = 1;
    t.waiting_until = now() + 1;
    commit(&t);
    advance(1);
    misfit(&claim_of(WORK, 1)->items[0]);
    succeed(&claim_of("child", 1)->items[0]);
    assert_int_equal(claim_of(WORK, 1)->count, 0);
    advance(HF_SECONDS(1));
    held = claim();
    assert_int_equal(held->mail_count, 1);
    t = turn_of(held, HF_TURN_WAIT); /* as it did before */
    t.wait_children = 1;
    t.seen_position = held->seen_position;
    t.seen_at = held->seen_at;
    commit(&t);
    assert_int_equal(claim()->mail_count, 1);
}

static void it_can_be_cancelled_paused_and_deleted(void **state)
{
    const hf_claimed *held = claim_new();
    (void)state;
    misfit(held);
    change(held->run.id, HF_PAUSE);
    advance(HF_SECONDS(1));
    send_signal(held->run.id, "go");
    expect_nothing_due();
    change(held->run.id, HF_RESUME);
    expect_status(held->run.id, HF_WAITING);
    misfit(claim());
    change(held->run.id, HF_CANCEL);
    expect_status(held->run.id, HF_CANCELLED);
    held = claim_new();
    misfit(held);
    change(held->run.id, HF_DELETE);
    advance(HF_HOURS(1));
    expect_nothing_due();
}

static void a_pause_that_was_asked_for_takes_effect(void **state)
{
    const hf_claimed *held = claim_new();
    (void)state;
    change(held->run.id, HF_PAUSE);
    misfit(held);
    expect_status(held->run.id, HF_PAUSED);
    change(held->run.id, HF_RESUME);
    advance(HF_SECONDS(1));
    succeed(claim());
}

static void its_deadline_holds(void **state)
{
    hf_trigger_spec spec = spec_of(WORK);
    (void)state;
    spec.timeout = HF_MILLISECONDS(100);
    hf_id id = trigger_spec(&spec);
    misfit(claim());
    advance(HF_MILLISECONDS(100));
    const hf_claimed *held = claim();
    assert_true(hf_id_equal(held->run.id, id));
    assert_true(held->overdue);
}

static void a_stale_holder_has_no_say(void **state)
{
    const hf_claimed *held = claim_new();
    hf_transition t = turn_of(held, HF_TURN_UNFIT);
    (void)state;
    advance(LEASE);
    succeed(claim());
    assert_code(try_commit(&t), HF_STALE);
}

static void an_answer_that_was_lost_is_found_again(void **state)
{
    const hf_claimed *held = claim_new();
    (void)state;
    lose_answers(1);
    misfit(held);
    expect_journal(held->run.id, "created started waiting");
    assert_int_equal(get(held->run.id)->version, held->run.version + 1);
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(a_run_that_fits_no_code_waits_for_another_worker),
    CONTRACT_TEST(a_misfit_costs_no_attempt),
    CONTRACT_TEST(pauses_grow_while_nobody_fits),
    CONTRACT_TEST(a_worker_that_joins_brings_the_next_try_forward),
    CONTRACT_TEST(it_is_over_when_nobody_has_fitted_for_the_workflows_time),
    CONTRACT_TEST(the_time_is_a_setting),
    CONTRACT_TEST(progress_begins_the_time_anew),
    CONTRACT_TEST(a_step_is_progress_even_if_its_worker_dies),
    CONTRACT_TEST(a_worker_that_stops_does_not_begin_it_anew),
    CONTRACT_TEST(an_operators_retry_begins_it_anew),
    CONTRACT_TEST(mail_that_comes_meanwhile_is_there_for_whoever_fits),
    CONTRACT_TEST(no_holder_can_wait_as_if_its_code_did_not_fit),
    CONTRACT_TEST(ends_of_children_are_there_for_whoever_fits),
    CONTRACT_TEST(it_can_be_cancelled_paused_and_deleted),
    CONTRACT_TEST(a_pause_that_was_asked_for_takes_effect),
    CONTRACT_TEST(its_deadline_holds),
    CONTRACT_TEST(a_stale_holder_has_no_say),
    CONTRACT_TEST(an_answer_that_was_lost_is_found_again),
};

CONTRACT("misfits", tests)
