/* Operators' changes: cancel, pause, resume, delete and restore, at every status; and of whom not. A7, A8, F6.
 * SPDX-License-Identifier: Apache-2.0 */
#include "contract/fixture.h"

#include "client/client.h"
#include "kernel/chores.h"

static hf_code try_reasoned(hf_id id, hf_action action, const char *reason, int64_t revision)
{
    hf_change how = HF_CHANGE_INIT;
    how.reason = reason;
    how.expected_revision = revision;
    return hf_change_run(fx.client, id, action, &how, &fx.error);
}

/* ---- Cancel ---- */

static void every_unfinished_run_can_be_cancelled(void **state)
{
    (void)state;
    for (hf_status status = HF_PENDING; status <= HF_PAUSED; status++) {
        hf_id id = run_that_is(status, 0);
        const hf_run *before = get(id);
        assert_ok(try_reasoned(id, HF_CANCEL, "not needed", 0));
        const hf_run *run = get(id);
        assert_int_equal(run->status, HF_CANCELLED);
        assert_int_equal(run->finished_at, now());
        assert_string_equal(run->error_code, "cancelled");
        assert_string_equal(run->last_error, "not needed");
        assert_int_equal(run->version, before->version + 1);
        assert_int_equal(run->revision, before->revision + 1);
        const hf_events *events = events_of(id);
        const hf_event *last = &events->items[events->count - 1];
        assert_string_equal(last->name, "cancelled");
        assert_string_equal(last->actor, "tester");
        assert_string_equal(last->data, "{\"reason\":\"not needed\"}");
        expect_nothing_due();
    }
}

static void a_finished_run_cannot_be_cancelled(void **state)
{
    (void)state;
    for (hf_status status = HF_SUCCEEDED; status <= HF_CANCELLED; status++) {
        hf_id id = run_that_is(status, 0);
        const char *before = dump();
        assert_code(try_change(id, HF_CANCEL), HF_NOT_ALLOWED);
        assert_string_equal(before, dump());
    }
}

/* ---- Pause and resume ---- */

static void a_paused_pending_run_becomes_pending_again(void **state)
{
    hf_id id = run_that_is(HF_PENDING, 0);
    (void)state;
    change(id, HF_PAUSE);
    assert_int_equal(get(id)->paused_at, now());
    advance(HF_HOURS(1));
    expect_nothing_due();
    change(id, HF_RESUME);
    expect_status(id, HF_PENDING);
    assert_int_equal(get(id)->paused_at, 0);
    claim();
    expect_journal(id, "created paused resumed started");
}

static void a_delayed_run_keeps_its_time_over_a_pause(void **state)
{
    hf_trigger_spec spec = spec_of(WORK);
    (void)state;
    spec.delay = HF_HOURS(2);
    hf_id id = trigger_spec(&spec);
    int64_t due = now() + HF_HOURS(2);
    change(id, HF_PAUSE);
    advance(HF_HOURS(1));
    change(id, HF_RESUME);
    assert_int_equal(get(id)->run_at, due);
    expect_nothing_due();
}

static void a_paused_waiting_run_waits_again(void **state)
{
    hf_id id = run_that_is(HF_WAITING, 0);
    (void)state;
    change(id, HF_PAUSE);
    change(id, HF_RESUME);
    expect_status(id, HF_WAITING);
    assert_int_equal(get(id)->run_at, 0);
    expect_nothing_due();
    send_signal(id, "go");
    claim();
}

static void mail_that_arrives_during_a_pause_is_there_after_it(void **state)
{
    hf_id id = run_that_is(HF_WAITING, 0);
    (void)state;
    change(id, HF_PAUSE);
    send_signal(id, "go");
    advance(HF_HOURS(1));
    expect_nothing_due();
    change(id, HF_RESUME);
    const hf_claimed *held = claim();
    assert_int_equal(held->mail_count, 1);
    assert_string_equal(held->mail[0].name, "go");
}

static void a_timer_that_comes_due_during_a_pause_wakes_the_run_after_it(void **state)
{
    const hf_claimed *held = claim_new();
    hf_new_timer timer = { .key = "t", .delay = HF_MINUTES(1) };
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    (void)state;
    t.timers = &timer;
    t.timer_count = 1;
    commit(&t);
    change(held->run.id, HF_PAUSE);
    advance(HF_MINUTES(2));
    expect_nothing_due();
    change(held->run.id, HF_RESUME);
    assert_int_equal(claim()->mail_count, 1);
}

/* Pausing is a flag on a held run: it raises neither counter. */
static void a_held_run_is_paused_by_its_next_commit(void **state)
{
    const hf_claimed *held = claim_new();
    const hf_run *before = get(held->run.id);
    (void)state;
    change(held->run.id, HF_PAUSE);
    const hf_run *run = get(held->run.id);
    assert_int_equal(run->status, HF_LEASED);
    assert_true(run->pause_requested);
    assert_int_equal(run->version, before->version);
    assert_int_equal(run->revision, before->revision);
    wait_for_signal(held);
    run = get(held->run.id);
    assert_int_equal(run->status, HF_PAUSED);
    assert_false(run->pause_requested);
    assert_int_equal(run->paused_at, now());
    expect_journal(held->run.id, "created started pause_requested waiting paused");
    change(held->run.id, HF_RESUME);
    expect_status(held->run.id, HF_WAITING);
}

static void a_held_run_that_is_retried_while_a_pause_was_asked_for_is_paused(void **state)
{
    const hf_claimed *held = claim_new();
    (void)state;
    change(held->run.id, HF_PAUSE);
    retry_after(held, HF_SECONDS(1));
    expect_status(held->run.id, HF_PAUSED);
    advance(HF_HOURS(1));
    expect_nothing_due();
    change(held->run.id, HF_RESUME);
    assert_int_equal(claim()->run.attempt, 2);
}

static void a_held_run_that_ends_is_not_paused(void **state)
{
    const hf_claimed *held = claim_new();
    (void)state;
    change(held->run.id, HF_PAUSE);
    succeed(held);
    expect_status(held->run.id, HF_SUCCEEDED);
    assert_false(get(held->run.id)->pause_requested);
}

static void a_pause_that_was_asked_for_can_be_taken_back(void **state)
{
    const hf_claimed *held = claim_new();
    (void)state;
    change(held->run.id, HF_PAUSE);
    assert_code(try_change(held->run.id, HF_PAUSE), HF_NOT_ALLOWED);
    change(held->run.id, HF_RESUME);
    assert_false(get(held->run.id)->pause_requested);
    wait_for_signal(held);
    expect_status(held->run.id, HF_WAITING);
}

static void a_pause_that_was_asked_for_outlives_the_holder(void **state)
{
    const hf_claimed *held = claim_new();
    (void)state;
    change(held->run.id, HF_PAUSE);
    advance(LEASE);
    held = claim();
    assert_true(get(held->run.id)->pause_requested);
    wait_for_signal(held);
    expect_status(held->run.id, HF_PAUSED);
}

static void a_cancel_forgets_the_pause_that_was_asked_for(void **state)
{
    const hf_claimed *held = claim_new();
    (void)state;
    change(held->run.id, HF_PAUSE);
    change(held->run.id, HF_CANCEL);
    assert_false(get(held->run.id)->pause_requested);
    change(held->run.id, HF_RETRY_RUN);
    wait_for_signal(claim());
    expect_status(held->run.id, HF_WAITING);
}

static void a_retry_forgets_the_end_and_keeps_the_last_error(void **state)
{
    const hf_claimed *held = claim_new();
    hf_transition t = turn_of(held, HF_TURN_FAIL);
    (void)state;
    t.error = "{\"why\":1}";
    t.error_code = "broken";
    t.last_error = "it broke";
    commit(&t);
    change(held->run.id, HF_RETRY_RUN);
    const hf_run *run = get(held->run.id);
    assert_null(run->error);
    assert_null(run->error_code);
    assert_string_equal(run->last_error, "it broke");
    change(held->run.id, HF_CANCEL);
    assert_non_null(get(held->run.id)->error_code);
    change(held->run.id, HF_RETRY_RUN);
    assert_null(get(held->run.id)->error_code);
}

static void mail_unseen_by_a_holder_wakes_the_run_that_was_paused_under_it(void **state)
{
    const hf_claimed *held = claim_new();
    (void)state;
    change(held->run.id, HF_PAUSE);
    send_signal(held->run.id, "go");
    wait_for_signal(held);
    expect_status(held->run.id, HF_PAUSED);
    change(held->run.id, HF_RESUME);
    assert_int_equal(claim()->mail_count, 1);
}

static void only_a_paused_run_can_be_resumed(void **state)
{
    (void)state;
    for (hf_status status = HF_PENDING; status <= HF_CANCELLED; status++) {
        if (status == HF_PAUSED)
            continue;
        hf_id id = run_that_is(status, 0);
        const char *before = dump();
        assert_code(try_change(id, HF_RESUME), HF_NOT_ALLOWED);
        assert_string_equal(before, dump());
        if (status < HF_WAITING)
            change(id, HF_CANCEL);
    }
}

static void a_finished_or_paused_run_cannot_be_paused(void **state)
{
    (void)state;
    for (hf_status status = HF_PAUSED; status <= HF_CANCELLED; status++)
        assert_code(try_change(run_that_is(status, 0), HF_PAUSE), HF_NOT_ALLOWED);
}

/* ---- Delete and restore ---- */

static void every_run_can_be_deleted_and_restored_whatever_its_status(void **state)
{
    (void)state;
    for (hf_status status = HF_PENDING; status <= HF_CANCELLED; status++) {
        hf_id id = run_that_is(status, 0);
        int64_t version = get(id)->version;
        assert_ok(try_reasoned(id, HF_DELETE, "a mistake", 0));
        const hf_run *run = get(id);
        assert_int_equal(run->status, status);
        assert_int_equal(run->deleted_at, now());
        assert_string_equal(run->delete_reason, "a mistake");
        assert_int_equal(run->version, version);
        assert_code(try_change(id, HF_DELETE), HF_NOT_ALLOWED);
        change(id, HF_RESTORE);
        run = get(id);
        assert_int_equal(run->deleted_at, 0);
        assert_null(run->delete_reason);
        assert_int_equal(run->status, status);
        assert_code(try_change(id, HF_RESTORE), HF_NOT_ALLOWED);
        if (status < HF_WAITING)
            change(id, HF_CANCEL);
    }
}

static void a_deleted_run_may_still_be_finished_by_its_holder(void **state)
{
    const hf_claimed *held = claim_new();
    (void)state;
    change(held->run.id, HF_DELETE);
    hf_transition t = turn_of(held, HF_TURN_SUCCEED);
    t.result = "1";
    commit(&t);
    const hf_run *run = get(held->run.id);
    assert_int_equal(run->status, HF_SUCCEEDED);
    assert_int_not_equal(run->deleted_at, 0);
    expect_journal(held->run.id, "created started deleted succeeded");
}

static void a_deleted_run_that_is_retried_by_its_holder_stays_unclaimed(void **state)
{
    const hf_claimed *held = claim_new();
    (void)state;
    change(held->run.id, HF_DELETE);
    retry_after(held, 0);
    advance(HF_DAYS(1));
    expect_nothing_due();
    change(held->run.id, HF_RESTORE);
    assert_int_equal(claim()->run.attempt, 2);
}

/* ---- Revisions ---- */

static void a_change_with_an_old_revision_is_refused(void **state)
{
    hf_id id = run_that_is(HF_WAITING, 0);
    int64_t revision = get(id)->revision;
    (void)state;
    assert_code(try_reasoned(id, HF_PAUSE, NULL, revision + 1), HF_REVISION);
    assert_code(try_reasoned(id, HF_PAUSE, NULL, revision - 1), HF_REVISION);
    assert_ok(try_reasoned(id, HF_PAUSE, NULL, revision));
    assert_code(try_reasoned(id, HF_CANCEL, NULL, revision), HF_REVISION);
    expect_status(id, HF_PAUSED);
}

static void a_change_of_an_unknown_run_finds_nothing(void **state)
{
    hf_id nobody = { { 1, 2, 3 } };
    (void)state;
    for (int action = HF_CANCEL; action <= HF_RESTORE; action++)
        assert_code(try_change(nobody, (hf_action)action), HF_NOT_FOUND);
    assert_code(try_change(trigger(WORK), (hf_action)99), HF_INVALID);
}

/* ---- Runs of the engine's own ---- */

static hf_id schedule_run(void)
{
    hf_schedule_spec spec = HF_SCHEDULE_INIT;
    hf_schedule *schedule;
    spec.name = "nightly";
    spec.workflow = WORK;
    spec.cron = "@daily";
    assert_ok(hf_schedule_set(fx.client, &spec, &fx.error));
    assert_ok(hf_schedule_get(fx.client, &schedule, "nightly", &fx.error));
    keep(schedule, (void (*)(void *))hf_schedule_free);
    return schedule->run;
}

static hf_id subscription_run(void)
{
    hf_subscription_spec spec = HF_SUBSCRIPTION_INIT;
    hf_subscription *subscription;
    spec.name = "shop";
    spec.url = "http://127.0.0.1:9/";
    assert_ok(hf_subscription_put(fx.client, &spec, NULL, &fx.error));
    assert_ok(hf_subscription_get(fx.client, &subscription, "shop", &fx.error));
    keep(subscription, (void (*)(void *))hf_subscription_free);
    return subscription->run;
}

static void runs_of_the_engine_are_changed_by_their_own_calls_alone(void **state)
{
    const hf_id runs[] = { schedule_run(), subscription_run() };
    (void)state;
    const char *before = dump();
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        hf_triggered forked;
        for (int action = HF_CANCEL; action <= HF_RESTORE; action++)
            assert_code(try_change(runs[i], (hf_action)action), HF_NOT_ALLOWED);
        assert_code(hf_fork(fx.client, &forked, runs[i], NULL, NULL, &fx.error), HF_INVALID);
    }
    for (int action = HF_CANCEL; action <= HF_RESTORE; action++) {
        hf_filter all = HF_FILTER_INIT;
        hf_bulk_result result;
        assert_ok(hf_bulk(fx.client, &result, &all, (hf_action)action, NULL, false, NULL, NULL,
                          &fx.error));
        assert_int_equal(result.changed, 0);
        assert_int_equal(result.refused, result.matched);
    }
    assert_string_equal(before, dump());
    assert_ok(hf_schedule_pause(fx.client, "nightly", &fx.error));
    assert_ok(hf_schedule_resume(fx.client, "nightly", &fx.error));
    assert_ok(hf_subscription_park(fx.client, "shop", &fx.error));
    assert_ok(hf_subscription_resume(fx.client, "shop", &fx.error));
    assert_ok(hf_schedule_delete(fx.client, "nightly", &fx.error));
    assert_ok(hf_subscription_delete(fx.client, "shop", &fx.error));
}

/* They serve the whole store, also those who have no rights in it. */
static void other_runs_of_the_engine_are_stopped_by_who_can_open_the_store(void **state)
{
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    hf_triggered made;
    (void)state;
    spec.workflow = HF__CHORE_RETENTION;
    assert_ok(hf__chore_start(fx.client, &made, &spec, NULL, &fx.error));
    hf_client *remote;
    assert_ok(hf_open_as(&remote, fx.client, NULL, "remote", &fx.error));
    remote->from_afar = true;
    for (int action = HF_CANCEL; action <= HF_RESTORE; action++) {
        bool brings_back = action == HF_RESUME || action == HF_RETRY_RUN || action == HF_RESTORE;
        if (!brings_back)
            assert_code(hf_change_run(remote, made.id, (hf_action)action, NULL, &fx.error),
                        HF_NOT_ALLOWED);
    }
    hf_bulk_result result;
    hf_filter filter = HF_FILTER_INIT;
    filter.workflow = HF__CHORE_RETENTION;
    assert_ok(hf_bulk(remote, &result, &filter, HF_PAUSE, NULL, false, NULL, NULL, &fx.error));
    assert_int_equal(result.changed, 0);
    expect_status(made.id, HF_PENDING);
    change(made.id, HF_PAUSE);
    assert_ok(hf_change_run(remote, made.id, HF_RESUME, NULL, &fx.error));
    expect_status(made.id, HF_PENDING);
    change(made.id, HF_DELETE);
    assert_ok(hf_change_run(remote, made.id, HF_RESTORE, NULL, &fx.error));
    assert_true(get(made.id)->deleted_at == 0);
    hf_close(remote);
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(runs_of_the_engine_are_changed_by_their_own_calls_alone),
    CONTRACT_TEST(other_runs_of_the_engine_are_stopped_by_who_can_open_the_store),
    CONTRACT_TEST(every_unfinished_run_can_be_cancelled),
    CONTRACT_TEST(a_finished_run_cannot_be_cancelled),
    CONTRACT_TEST(a_paused_pending_run_becomes_pending_again),
    CONTRACT_TEST(a_delayed_run_keeps_its_time_over_a_pause),
    CONTRACT_TEST(a_paused_waiting_run_waits_again),
    CONTRACT_TEST(mail_that_arrives_during_a_pause_is_there_after_it),
    CONTRACT_TEST(a_timer_that_comes_due_during_a_pause_wakes_the_run_after_it),
    CONTRACT_TEST(a_held_run_is_paused_by_its_next_commit),
    CONTRACT_TEST(a_held_run_that_is_retried_while_a_pause_was_asked_for_is_paused),
    CONTRACT_TEST(a_held_run_that_ends_is_not_paused),
    CONTRACT_TEST(a_pause_that_was_asked_for_can_be_taken_back),
    CONTRACT_TEST(a_pause_that_was_asked_for_outlives_the_holder),
    CONTRACT_TEST(a_cancel_forgets_the_pause_that_was_asked_for),
    CONTRACT_TEST(a_retry_forgets_the_end_and_keeps_the_last_error),
    CONTRACT_TEST(mail_unseen_by_a_holder_wakes_the_run_that_was_paused_under_it),
    CONTRACT_TEST(only_a_paused_run_can_be_resumed),
    CONTRACT_TEST(a_finished_or_paused_run_cannot_be_paused),
    CONTRACT_TEST(every_run_can_be_deleted_and_restored_whatever_its_status),
    CONTRACT_TEST(a_deleted_run_may_still_be_finished_by_its_holder),
    CONTRACT_TEST(a_deleted_run_that_is_retried_by_its_holder_stays_unclaimed),
    CONTRACT_TEST(a_change_with_an_old_revision_is_refused),
    CONTRACT_TEST(a_change_of_an_unknown_run_finds_nothing),
};
CONTRACT("changes", tests)
