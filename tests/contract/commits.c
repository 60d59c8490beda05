/* Commits: what a turn decided is written whole, in one transaction, and visible at once. A1.
 * SPDX-License-Identifier: Apache-2.0 */
#include "contract/fixture.h"

static hf_transition unleased(hf_id id, hf_turn turn)
{
    return (hf_transition){
        .version = HF_TRANSITION_VERSION,
        .run = id,
        .run_version = get(id)->version,
        .unleased = true,
        .turn = turn,
    };
}

static void success_keeps_the_result_and_ends_the_run(void **state)
{
    const hf_claimed *held = claim_new();
    hf_transition t = turn_of(held, HF_TURN_SUCCEED);
    (void)state;
    t.result = "{\"receipt\":7}";
    t.state = "{\"phase\":\"done\"}";
    t.current_step = "last";
    commit(&t);
    const hf_run *run = get(held->run.id);
    assert_int_equal(run->status, HF_SUCCEEDED);
    assert_string_equal(run->result, "{\"receipt\":7}");
    assert_string_equal(run->state, "{\"phase\":\"done\"}");
    assert_string_equal(run->current_step, "last");
    assert_null(run->error);
    assert_int_equal(run->finished_at, now());
    assert_null(run->leased_by);
    assert_string_equal(run->last_worker, WORKER);
    assert_int_equal(run->run_at, 0);
    expect_journal(held->run.id, "created started succeeded");
}

static void failure_keeps_the_error_and_ends_the_run(void **state)
{
    const hf_claimed *held = claim_new();
    hf_transition t = turn_of(held, HF_TURN_FAIL);
    (void)state;
    t.error = "{\"why\":\"card expired\"}";
    t.error_code = "card_expired";
    t.last_error = "the card expired";
    commit(&t);
    const hf_run *run = get(held->run.id);
    assert_int_equal(run->status, HF_FAILED);
    assert_string_equal(run->error, "{\"why\":\"card expired\"}");
    assert_string_equal(run->error_code, "card_expired");
    assert_string_equal(run->last_error, "the card expired");
    assert_null(run->result);
    assert_int_equal(run->finished_at, now());
    expect_journal(held->run.id, "created started failed");
}

static void a_commit_raises_version_and_revision(void **state)
{
    const hf_claimed *held = claim_new();
    const hf_run *before = get(held->run.id);
    (void)state;
    wait_for_signal(held);
    assert_int_equal(get(held->run.id)->version, before->version + 1);
    assert_int_equal(get(held->run.id)->revision, before->revision + 1);
}

static void a_success_after_a_failed_attempt_forgets_the_error(void **state)
{
    const hf_claimed *held = claim_new();
    hf_transition t = turn_of(held, HF_TURN_RETRY);
    (void)state;
    t.last_error = "not yet";
    commit(&t);
    assert_string_equal(get(held->run.id)->last_error, "not yet");
    held = claim();
    assert_string_equal(held->run.last_error, "not yet");
    succeed(held);
    assert_null(get(held->run.id)->last_error);
}

static void a_turn_that_names_no_state_leaves_it_as_it_is(void **state)
{
    const hf_claimed *held = claim_new();
    hf_transition t = turn_of(held, HF_TURN_RETRY);
    (void)state;
    t.state = "{\"n\":1}";
    t.current_step = "one";
    commit(&t);
    held = claim();
    assert_string_equal(held->run.state, "{\"n\":1}");
    wait_for_signal(held);
    assert_string_equal(get(held->run.id)->state, "{\"n\":1}");
    assert_string_equal(get(held->run.id)->current_step, "one");
}

static void events_outbox_tasks_and_timers_come_with_the_commit(void **state)
{
    const hf_claimed *held = claim_new();
    hf_id task_id = { { 7, 7, 7 } };
    hf_new_event events[] = { { "domain", "Paid", NULL, "{\"sum\":5}" },
                              { "step", "succeeded", "charge", "{\"out\":1}" },
                              { "task", "assigned", NULL, NULL } };
    hf_new_outbox outbox[] = { { "order.paid", "{\"n\":1}" }, { "order.mailed", NULL } };
    hf_new_task task = { .id = task_id,
                         .name = "check",
                         .assignee = "carl",
                         .roles = "[\"clerk\"]",
                         .payload = "{}",
                         .token = "t",
                         .due_at = now() + HF_HOURS(1) };
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    (void)state;
    t.events = events;
    t.event_count = 3;
    t.outbox = outbox;
    t.outbox_count = 2;
    t.tasks = &task;
    t.task_count = 1;
    commit(&t);
    expect_journal(held->run.id, "created started Paid succeeded assigned waiting");
    const hf_events *lines = events_of(held->run.id);
    assert_string_equal(lines->items[2].kind, "domain");
    assert_string_equal(lines->items[2].data, "{\"sum\":5}");
    assert_string_equal(lines->items[2].actor, WORKER);
    assert_string_equal(lines->items[3].kind, "step");
    assert_string_equal(lines->items[3].step, "charge");
    const char *id = sql_id(held->run.id);
    assert_int_equal(sql_number("SELECT count(*) FROM outbox WHERE run_id = %s", id), 2);
    assert_string_equal(sql_text("SELECT type FROM outbox WHERE run_id = %s ORDER BY position", id),
                        "order.paid");
    assert_int_equal(sql_number("SELECT seq FROM outbox WHERE run_id = %s ORDER BY position", id),
                     6);
    assert_string_equal(sql_text("SELECT assignee FROM task WHERE id = %s", sql_id(task_id)),
                        "carl");
}

static void a_turn_cannot_write_lines_of_the_lifecycle(void **state)
{
    static const char *const kinds[] = { "lifecycle", "", "unknown", NULL };
    const hf_claimed *held = claim_new();
    hf_new_event event = { .name = "succeeded" };
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    (void)state;
    t.events = &event;
    t.event_count = 1;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        event.kind = kinds[i];
        assert_code(try_commit(&t), HF_INVALID);
    }
    expect_journal(held->run.id, "created started");
}

static void a_recorded_step_comes_back_with_the_next_claim(void **state)
{
    const hf_claimed *held = claim_new();
    hf_step_record step = { held->run.id, held->run.version, WORKER,
                            "charge",     "succeeded",       "{\"receipt\":9}" };
    (void)state;
    assert_int_equal(held->step_count, 0);
    assert_ok(hf_step_save(fx.client, &step, &fx.error));
    assert_string_equal(get(held->run.id)->current_step, "charge");
    advance(LEASE);
    held = claim();
    assert_int_equal(held->step_count, 1);
    assert_string_equal(held->steps[0].step, "charge");
    assert_string_equal(held->steps[0].name, "succeeded");
    assert_string_equal(held->steps[0].data, "{\"receipt\":9}");
    step.run_version = held->run.version;
    step.name = "mail";
    assert_ok(hf_step_save(fx.client, &step, &fx.error));
    retry_after(held, 0);
    held = claim();
    assert_int_equal(held->step_count, 2);
    assert_string_equal(held->steps[1].step, "mail");
}

static void a_step_raises_neither_version_nor_revision(void **state)
{
    const hf_claimed *held = claim_new();
    const hf_run *before = get(held->run.id);
    hf_step_record step = { held->run.id, held->run.version, WORKER, "s", "succeeded", "1" };
    (void)state;
    assert_ok(hf_step_save(fx.client, &step, &fx.error));
    assert_int_equal(get(held->run.id)->version, before->version);
    assert_int_equal(get(held->run.id)->revision, before->revision);
    succeed(held);
    expect_journal(held->run.id, "created started succeeded succeeded");
}

/* The short way and the long way of an end write the same. */
static void both_ways_to_end_a_run_leave_the_same_row_and_journal(void **state)
{
    static const char query[] =
        "SELECT status || ' ' || version || ' ' || revision || ' ' || event_seq || ' ' || "
        "coalesce(result, '-') || coalesce(error, '-') || coalesce(error_code, '-') || "
        "coalesce(last_error, '-') || coalesce(last_worker, '-') || coalesce(leased_by, '-') || "
        "coalesce(run_at, 0) || coalesce(finished_at, 0) FROM run WHERE id = %s";
    static const char line[] =
        "SELECT name || version || actor || replace(coalesce(data, '-'), ' ', '') FROM event "
        "WHERE run_id = %s ORDER BY seq DESC LIMIT 1";
    (void)state;
    for (hf_turn turn = HF_TURN_SUCCEED; turn <= HF_TURN_FAIL; turn++) {
        const hf_claimed *held[2] = { claim_new(), claim_new() };
        for (int i = 0; i < 2; i++) {
            hf_transition t = turn_of(held[i], turn);
            t.result = turn == HF_TURN_SUCCEED ? "1" : NULL;
            t.error = turn == HF_TURN_FAIL ? "2" : NULL;
            t.error_code = turn == HF_TURN_FAIL ? "code" : NULL;
            t.last_error = turn == HF_TURN_FAIL ? "it \"broke\"" : NULL;
            assert_ok(i ? try_commit(&t) : try_commit_short(&t));
        }
        assert_string_equal(sql_text(query, sql_id(held[0]->run.id)),
                            sql_text(query, sql_id(held[1]->run.id)));
        assert_string_equal(sql_text(line, sql_id(held[0]->run.id)),
                            sql_text(line, sql_id(held[1]->run.id)));
    }
}

/* ---- On a run that nobody holds ---- */

static void an_unleased_commit_moves_a_waiting_run(void **state)
{
    hf_id id = run_that_is(HF_WAITING, 0);
    hf_new_event event = { .kind = "domain", .name = "Renamed" };
    hf_transition t = unleased(id, HF_TURN_WAIT);
    (void)state;
    t.state = "{\"name\":\"new\"}";
    t.events = &event;
    t.event_count = 1;
    commit(&t);
    const hf_run *run = get(id);
    assert_int_equal(run->status, HF_WAITING);
    assert_string_equal(run->state, "{\"name\":\"new\"}");
    assert_int_equal(run->version, t.run_version + 1);
    expect_journal(id, "created started waiting Renamed waiting");
    t = unleased(id, HF_TURN_SUCCEED);
    commit(&t);
    expect_status(id, HF_SUCCEEDED);
}

static void an_unleased_commit_at_an_old_version_is_stale(void **state)
{
    hf_id id = run_that_is(HF_WAITING, 0);
    hf_transition first = unleased(id, HF_TURN_WAIT);
    hf_transition second = first;
    (void)state;
    commit(&first);
    const char *before = dump();
    assert_code(try_commit(&second), HF_STALE);
    assert_string_equal(before, dump());
}

static void an_unleased_commit_needs_a_waiting_run(void **state)
{
    (void)state;
    for (hf_status status = HF_PENDING; status <= HF_CANCELLED; status++) {
        if (status == HF_WAITING)
            continue;
        hf_transition t = unleased(run_that_is(status, 0), HF_TURN_WAIT);
        const char *before = dump();
        assert_code(try_commit(&t), status == HF_CANCELLED ? HF_RUN_CANCELLED : HF_STALE);
        assert_string_equal(before, dump());
        if (status == HF_PENDING || status == HF_LEASED)
            change(t.run, HF_CANCEL);
    }
}

/* Otherwise it would overtake an input that arrived before it. */
static void an_unleased_commit_does_not_overtake_mail_that_is_due(void **state)
{
    hf_id id = run_that_is(HF_WAITING, 0);
    (void)state;
    send_signal(id, "first");
    hf_transition t = unleased(id, HF_TURN_WAIT);
    assert_code(try_commit(&t), HF_STALE);
    const hf_claimed *held = claim();
    hf_transition done = turn_of(held, HF_TURN_WAIT);
    consume_all(held, &done);
    t = unleased(id, HF_TURN_WAIT);
    commit(&t);
}

static void an_unleased_commit_does_not_overtake_a_timer_that_is_due(void **state)
{
    const hf_claimed *held = claim_new();
    hf_new_timer timer = { .key = "t", .delay = HF_SECONDS(10) };
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    (void)state;
    t.timers = &timer;
    t.timer_count = 1;
    commit(&t);
    t = unleased(held->run.id, HF_TURN_WAIT);
    commit(&t);
    advance(HF_SECONDS(10));
    t = unleased(held->run.id, HF_TURN_WAIT);
    assert_code(try_commit(&t), HF_STALE);
    assert_int_equal(claim()->mail_count, 1);
}

static void an_unleased_commit_on_a_deleted_run_is_refused(void **state)
{
    hf_id id = run_that_is(HF_WAITING, 0);
    (void)state;
    change(id, HF_DELETE);
    hf_transition t = unleased(id, HF_TURN_WAIT);
    assert_code(try_commit(&t), HF_STALE);
}

static void a_commit_on_an_unknown_run_is_stale(void **state)
{
    hf_transition t = {
        .version = HF_TRANSITION_VERSION, .run = { { 9, 9 } }, .run_version = 2, .worker = WORKER
    };
    const char *before = dump();
    (void)state;
    assert_code(try_commit(&t), HF_STALE);
    assert_string_equal(before, dump());
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(success_keeps_the_result_and_ends_the_run),
    CONTRACT_TEST(failure_keeps_the_error_and_ends_the_run),
    CONTRACT_TEST(a_commit_raises_version_and_revision),
    CONTRACT_TEST(a_success_after_a_failed_attempt_forgets_the_error),
    CONTRACT_TEST(a_turn_that_names_no_state_leaves_it_as_it_is),
    CONTRACT_TEST(events_outbox_tasks_and_timers_come_with_the_commit),
    CONTRACT_TEST(a_turn_cannot_write_lines_of_the_lifecycle),
    CONTRACT_TEST(a_recorded_step_comes_back_with_the_next_claim),
    CONTRACT_TEST(a_step_raises_neither_version_nor_revision),
    CONTRACT_TEST(both_ways_to_end_a_run_leave_the_same_row_and_journal),
    CONTRACT_TEST(an_unleased_commit_moves_a_waiting_run),
    CONTRACT_TEST(an_unleased_commit_at_an_old_version_is_stale),
    CONTRACT_TEST(an_unleased_commit_needs_a_waiting_run),
    CONTRACT_TEST(an_unleased_commit_does_not_overtake_mail_that_is_due),
    CONTRACT_TEST(an_unleased_commit_does_not_overtake_a_timer_that_is_due),
    CONTRACT_TEST(an_unleased_commit_on_a_deleted_run_is_refused),
    CONTRACT_TEST(a_commit_on_an_unknown_run_is_stale),
};
CONTRACT("commits", tests)
