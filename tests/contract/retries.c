/* Retries: when a failed turn is tried again, and how an operator sets a run going again. A6, A13, A14.
 * SPDX-License-Identifier: Apache-2.0 */
#include "contract/fixture.h"
#include "kernel/retry.h"

static void a_retry_waits_for_its_delay(void **state)
{
    const hf_claimed *held = claim_new();
    (void)state;
    retry_after(held, HF_SECONDS(5));
    expect_status(held->run.id, HF_PENDING);
    assert_int_equal(get(held->run.id)->run_at, now() + HF_SECONDS(5));
    advance(HF_SECONDS(5) - 1);
    expect_nothing_due();
    advance(1);
    assert_int_equal(claim()->run.attempt, 2);
    expect_journal(held->run.id, "created started retried started");
}

static void a_retry_keeps_the_error_for_people_to_see(void **state)
{
    const hf_claimed *held = claim_new();
    hf_transition t = turn_of(held, HF_TURN_RETRY);
    (void)state;
    t.error = "{\"code\":503}";
    t.error_code = "unavailable";
    t.last_error = "the bank is closed";
    commit(&t);
    const hf_run *run = get(held->run.id);
    assert_string_equal(run->error, "{\"code\":503}");
    assert_string_equal(run->error_code, "unavailable");
    assert_string_equal(run->last_error, "the bank is closed");
    assert_null(run->leased_by);
    const hf_event *line = &events_of(held->run.id)->items[2];
    assert_non_null(strstr(line->data, "the bank is closed"));
}

static void the_delay_doubles_with_every_attempt_up_to_the_cap(void **state)
{
    const struct hf__retry_policy policy = { .max_attempts = 100,
                                             .base = HF_SECONDS(1),
                                             .cap = HF_SECONDS(10) };
    const struct hf__failure failure = { 0 };
    const int64_t expected[] = { HF_SECONDS(1), HF_SECONDS(2),  HF_SECONDS(4),
                                 HF_SECONDS(8), HF_SECONDS(10), HF_SECONDS(10) };
    (void)state;
    for (int attempt = 1; attempt <= 6; attempt++) {
        struct hf__verdict none = hf__retry_decide(&policy, &failure, attempt, 0.0);
        struct hf__verdict most = hf__retry_decide(&policy, &failure, attempt, 0.999);
        assert_int_equal(none.delay, expected[attempt - 1]);
        assert_true(most.delay > none.delay && most.delay <= none.delay * 3 / 2);
    }
}

static void the_workflows_policy_comes_with_the_claim(void **state)
{
    (void)state;
    define_with((hf_workflow){ .name = WORK,
                               .max_attempts = 7,
                               .retry_base = HF_SECONDS(2),
                               .retry_cap = HF_MINUTES(1),
                               .lease = HF_SECONDS(90),
                               .dead_letter = "funeral" },
                HF_SET_MAX_ATTEMPTS | HF_SET_RETRY_BASE | HF_SET_RETRY_CAP | HF_SET_LEASE |
                    HF_SET_DEAD_LETTER);
    const hf_claimed *held = claim_new();
    assert_int_equal(held->run.max_attempts, 7);
    assert_int_equal(held->retry_base, HF_SECONDS(2));
    assert_int_equal(held->retry_cap, HF_MINUTES(1));
    assert_int_equal(held->lease, HF_SECONDS(90));
    assert_int_equal(held->run.lease_until, now() + HF_SECONDS(90));
    assert_string_equal(held->dead_letter, "funeral");
}

/* ---- By an operator ---- */

static void an_operator_retries_a_failed_run_with_all_its_attempts(void **state)
{
    hf_id id = run_that_is(HF_FAILED, 0);
    const hf_run *before = get(id);
    (void)state;
    advance(HF_HOURS(1));
    change(id, HF_RETRY_RUN);
    const hf_run *run = get(id);
    assert_int_equal(run->status, HF_PENDING);
    assert_int_equal(run->attempt, 0);
    assert_int_equal(run->run_at, now());
    assert_int_equal(run->finished_at, 0);
    assert_int_equal(run->version, before->version + 1);
    assert_int_equal(run->revision, before->revision + 1);
    assert_int_equal(claim()->run.attempt, 1);
    expect_journal(id, "created started failed retried started");
}

static void an_operator_retries_a_cancelled_run(void **state)
{
    hf_id id = run_that_is(HF_CANCELLED, 0);
    (void)state;
    change(id, HF_RETRY_RUN);
    succeed(claim());
    expect_status(id, HF_SUCCEEDED);
    assert_null(get(id)->error_code);
}

static void a_run_that_did_not_fail_cannot_be_retried(void **state)
{
    static const hf_status others[] = { HF_PENDING, HF_WAITING, HF_PAUSED, HF_SUCCEEDED };
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        hf_id id = run_that_is(others[i], 0);
        const char *before = dump();
        assert_code(try_change(id, HF_RETRY_RUN), HF_NOT_ALLOWED);
        assert_string_equal(before, dump());
        if (others[i] == HF_PENDING)
            change(id, HF_CANCEL);
    }
}

static void a_deleted_run_must_be_restored_before_it_is_retried(void **state)
{
    hf_id id = run_that_is(HF_FAILED, 0);
    (void)state;
    change(id, HF_DELETE);
    assert_code(try_change(id, HF_RETRY_RUN), HF_NOT_ALLOWED);
    change(id, HF_RESTORE);
    change(id, HF_RETRY_RUN);
}

static void a_retry_keeps_the_recorded_steps(void **state)
{
    const hf_claimed *held = claim_new();
    hf_step_record step = { held->run.id, held->run.version, WORKER, "s", "succeeded", "1" };
    (void)state;
    assert_ok(hf_step_save(fx.client, &step, &fx.error));
    fail_for_good(held);
    change(held->run.id, HF_RETRY_RUN);
    assert_int_equal(claim()->step_count, 1);
}

static void a_retry_after_the_deadline_has_no_deadline(void **state)
{
    hf_trigger_spec spec = spec_of(WORK);
    (void)state;
    spec.timeout = HF_SECONDS(10);
    hf_id id = trigger_spec(&spec);
    advance(HF_SECONDS(10));
    fail_for_good(claim());
    change(id, HF_RETRY_RUN);
    assert_int_equal(get(id)->timeout_at, 0);
    assert_false(claim()->overdue);
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(a_retry_waits_for_its_delay),
    CONTRACT_TEST(a_retry_keeps_the_error_for_people_to_see),
    CONTRACT_TEST(the_delay_doubles_with_every_attempt_up_to_the_cap),
    CONTRACT_TEST(the_workflows_policy_comes_with_the_claim),
    CONTRACT_TEST(an_operator_retries_a_failed_run_with_all_its_attempts),
    CONTRACT_TEST(an_operator_retries_a_cancelled_run),
    CONTRACT_TEST(a_run_that_did_not_fail_cannot_be_retried),
    CONTRACT_TEST(a_deleted_run_must_be_restored_before_it_is_retried),
    CONTRACT_TEST(a_retry_keeps_the_recorded_steps),
    CONTRACT_TEST(a_retry_after_the_deadline_has_no_deadline),
};
CONTRACT("retries", tests)
