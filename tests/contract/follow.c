/* What follows from the end of a run: what is started and told when it is cancelled, and what becomes of children that are still at
 * work. A14, F3.
 * SPDX-License-Identifier: Apache-2.0 */
#include "contract/fixture.h"

#include "client/client.h"
#include "kernel/chores.h"
#include "store/statements.h"

#define UNDO "undo"

static void define_undo(void)
{
    define(UNDO);
    define_with((hf_workflow){ .name = WORK, .on_cancel = UNDO }, HF_SET_ON_CANCEL);
}

static const hf_runs *runs_of(const char *workflow)
{
    hf_filter filter = HF_FILTER_INIT;
    filter.workflow = workflow;
    return list(&filter);
}

static void cancel_for(hf_id run, const char *reason)
{
    hf_change change = HF_CHANGE_INIT;
    change.reason = reason;
    assert_ok(hf_change_run(fx.client, run, HF_CANCEL, &change, &fx.error));
}

static void save_step(const hf_claimed *held, const char *name, const char *data)
{
    hf_step_record record = { .run = held->run.id,
                              .run_version = held->run.version,
                              .worker = WORKER,
                              .name = name,
                              .status = "succeeded",
                              .data = data };
    assert_ok(hf_step_save(fx.client, &record, &fx.error));
}

/* A run that has charged a card, and slept. */
static const hf_claimed *claim_order(void)
{
    hf_trigger_spec spec = spec_of(WORK);
    spec.key = "o-\"1\"";
    spec.subject = "kim";
    spec.input = "{\"amount\":5}";
    trigger_spec(&spec);
    const hf_claimed *held = claim();
    save_step(held, "charge", "{\"op\":\"step\",\"attempt\":1,\"output\":{\"receipt\":17}}");
    save_step(held, "nap", "{\"op\":\"sleep\",\"until\":5}");
    save_step(held, "mail \xc3\xa9", "{\"op\":\"step\",\"output\":\"a\\u0000b\"}");
    return held;
}

/* What is told of it, behind the members that say how it ended. On PostgreSQL what its text cannot hold is replaced. */
static const char *order_told(void)
{
    return text_of(
        "\"workflow\":\"work\",\"key\":\"o-\\\"1\\\"\",\"subject\":\"kim\",\"input\":{\"amount\":5}"
        ","
        "\"steps\":[{\"name\":\"charge\",\"status\":\"succeeded\",\"output\":{\"receipt\":17}},"
        "{\"name\":\"mail \xc3\xa9\",\"status\":\"succeeded\",\"output\":\"a%sb\"}]}",
        fx.backend == BACKEND_POSTGRES ? "\\ufffd" : "\\u0000");
}

static const char *id_text(hf_id id)
{
    char text[HF_ID_TEXT];
    hf_id_format(id, text);
    return text_of("%s", text);
}

/* ---- on_cancel ---- */

static void a_cancel_starts_the_workflow_that_wants_to_know(void **state)
{
    (void)state;
    define_undo();
    const hf_claimed *held = claim_order();
    cancel_for(held->run.id, "the customer \"left\"");
    const hf_runs *undone = runs_of(UNDO);
    assert_int_equal(undone->count, 1);
    const hf_run *undo = get(undone->items[0].id);
    assert_string_equal(undo->input, text_of("{\"run\":\"%s\",\"status\":\"leased\","
                                             "\"reason\":\"the customer \\\"left\\\"\",%s",
                                             id_text(held->run.id), order_told()));
    assert_string_equal(claim()->run.workflow, UNDO);
}

static void a_run_that_never_began_is_told_of_without_steps(void **state)
{
    (void)state;
    define_undo();
    hf_id run = trigger(WORK);
    change(run, HF_CANCEL);
    const hf_run *undo = get(runs_of(UNDO)->items[0].id);
    assert_non_null(strstr(undo->input, "\"status\":\"pending\",\"reason\":null,"));
    assert_non_null(strstr(undo->input, "\"key\":null,\"subject\":null,"));
    assert_non_null(strstr(undo->input, "\"steps\":[]}"));
}

static void a_run_that_is_cancelled_again_after_a_retry_is_told_of_again(void **state)
{
    (void)state;
    define_undo();
    hf_id run = run_that_is(HF_WAITING, 0);
    change(run, HF_CANCEL);
    change(run, HF_RETRY_RUN);
    change(run, HF_CANCEL);
    assert_int_equal(runs_of(UNDO)->count, 2);
}

static void a_cancel_whose_answer_was_lost_starts_one(void **state)
{
    (void)state;
    define_undo();
    hf_id run = run_that_is(HF_WAITING, 0);
    int lost = answers_lost();
    lose_answers(1);
    change(run, HF_CANCEL);
    assert_int_equal(answers_lost(), lost + 1);
    assert_int_equal(runs_of(UNDO)->count, 1);
}

static void where_there_is_no_such_workflow_the_run_is_cancelled_all_the_same(void **state)
{
    (void)state;
    define_with((hf_workflow){ .name = WORK, .on_cancel = UNDO }, HF_SET_ON_CANCEL);
    hf_id run = run_that_is(HF_WAITING, 0);
    change(run, HF_CANCEL);
    expect_status(run, HF_CANCELLED);
    expect_nothing_due();
}

static void a_workflow_is_not_started_for_cancels_of_its_own_runs(void **state)
{
    (void)state;
    define_with((hf_workflow){ .name = WORK, .on_cancel = WORK }, HF_SET_ON_CANCEL);
    change(trigger(WORK), HF_CANCEL);
    assert_int_equal(runs_of(WORK)->count, 1);
}

static void steps_that_do_not_fit_are_cut(void **state)
{
    enum { SIZE = 200 * 1024 };
    char *data = keep(malloc(SIZE + 32), free);
    (void)state;
    define_undo();
    const hf_claimed *held = claim_new();
    memcpy(data, "{\"op\":\"step\",\"output\":\"", 23);
    memset(data + 23, 'x', SIZE);
    memcpy(data + 23 + SIZE, "\"}", 3);
    for (int i = 0; i < 7; i++)
        save_step(held, text_of("step-%d", i), data);
    change(held->run.id, HF_CANCEL);
    const char *input = get(runs_of(UNDO)->items[0].id)->input;
    assert_true(strlen(input) < 1 << 20);
    assert_non_null(strstr(input, "\"step-4\""));
    assert_null(strstr(input, "\"step-5\""));
    assert_non_null(strstr(input, "],\"steps_cut\":true}"));
}

/* ---- Events ---- */

static void subscribe(const char *event)
{
    hf_subscription_spec spec = HF_SUBSCRIPTION_INIT;
    spec.name = "alerts";
    spec.url = "http://127.0.0.1:1/hook";
    spec.events = &event;
    spec.event_count = 1;
    assert_ok(hf_subscription_put(fx.client, &spec, NULL, &fx.error));
}

static const hf_outbox_page *told(const char *type)
{
    hf_outbox_filter filter = HF_OUTBOX_FILTER_INIT;
    hf_outbox_page *page = NULL;
    filter.type = type;
    assert_ok(hf_outbox_list(fx.client, &page, &filter, &fx.error));
    return keep(page, (void (*)(void *))hf_outbox_page_free);
}

static void a_cancelled_run_is_told_of(void **state)
{
    (void)state;
    subscribe("holdfast.*");
    const hf_claimed *held = claim_order();
    cancel_for(held->run.id, "too late");
    const hf_outbox_page *events = told("holdfast.*");
    assert_int_equal(events->count, 1);
    assert_string_equal(events->items[0].type, "holdfast.run.cancelled");
    assert_string_equal(events->items[0].payload,
                        text_of("{\"run\":\"%s\",\"status\":\"leased\",\"reason\":\"too late\",%s",
                                id_text(held->run.id), order_told()));
    assert_string_equal(claim()->run.workflow, HF__CHORE_DISPATCH);
}

static void nobody_is_told_who_does_not_want_it(void **state)
{
    (void)state;
    subscribe("order.*");
    change(trigger(WORK), HF_CANCEL);
    assert_int_equal(told(NULL)->count, 0);
}

static void what_is_told_of_a_failure_says_what_the_run_was_and_did(void **state)
{
    (void)state;
    subscribe("holdfast.run.failed");
    const hf_claimed *held = claim_order();
    hf_transition t = turn_of(held, HF_TURN_FAIL);
    t.error_code = "broken";
    assert_ok(try_commit_short(&t));
    assert_string_equal(told("holdfast.run.failed")->items[0].payload,
                        text_of("{\"run\":\"%s\",\"error_code\":\"broken\",\"error\":null,%s",
                                id_text(held->run.id), order_told()));
}

/* Its own function starts what it wants started; subscriptions are told by the chore that follows. */
static void a_cancel_by_sql_starts_and_tells_the_same(void **state)
{
    (void)state;
    if (fx.backend != BACKEND_POSTGRES)
        skip();
    define_undo();
    subscribe("holdfast.run.cancelled");
    hf_id run = claim_order()->run.id;
    sql("SELECT holdfast.cancel(%s, 'too late', tenant => '%s')", sql_id(run), fx.tenant);
    const char *ends = text_of("{\"run\":\"%s\",\"status\":\"leased\",\"reason\":\"too late\",%s",
                               id_text(run), order_told());
    const hf_runs *undone = runs_of(UNDO);
    assert_int_equal(undone->count, 1);
    assert_string_equal(get(undone->items[0].id)->input, ends);
    assert_string_equal(get(runs_of(HF__CHORE_CANCEL_CHILDREN)->items[0].id)->input,
                        text_of("{\"run\":\"%s\",\"tell\":\"leased\"}", id_text(run)));
    for (int i = 0; i < 2; i++)
        assert_ok(hf__tell_cancelled(fx.client, run, HF_LEASED, &fx.error));
    const hf_outbox_page *events = told("holdfast.run.cancelled");
    assert_int_equal(events->count, 1);
    assert_string_equal(events->items[0].payload, ends);
    change(run, HF_RETRY_RUN);
    assert_ok(hf__tell_cancelled(fx.client, run, HF_LEASED, &fx.error));
    assert_int_equal(told("holdfast.run.cancelled")->count, 1);
}

static void take_key_of_undo(hf_id run)
{
    hf_trigger_spec spec = spec_of(UNDO);
    spec.key = text_of("on-cancel:%s:%d", id_text(run), (int)get(run)->version + 1);
    trigger_spec(&spec);
}

static void a_run_can_be_cancelled_although_somebody_took_the_key_of_what_follows(void **state)
{
    (void)state;
    define_undo();
    hf_id run = trigger(WORK);
    take_key_of_undo(run);
    change(run, HF_CANCEL);
    expect_status(run, HF_CANCELLED);
    if (fx.backend == BACKEND_POSTGRES) {
        run = trigger(WORK);
        take_key_of_undo(run);
        sql("SELECT holdfast.cancel(%s, tenant => '%s')", sql_id(run), fx.tenant);
        expect_status(run, HF_CANCELLED);
    }
    assert_int_equal(runs_of(UNDO)->count, fx.backend == BACKEND_POSTGRES ? 2 : 1);
}

/* ---- Children ---- */

/* A run that has started a child, and is claimed again. */
static const hf_claimed *claim_parent(void)
{
    define("child");
    trigger(WORK);
    const hf_claimed *held = claim_of(WORK, 1)->items;
    hf_trigger_spec child = spec_of("child");
    hf_transition t = turn_of(held, HF_TURN_RETRY);
    t.children = &child;
    t.child_count = 1;
    commit(&t);
    return claim_of(WORK, 1)->items;
}

static const char *last_data(hf_id run)
{
    const hf_events *events = events_of(run);
    const char *data = events->items[events->count - 1].data;
    return data ? data : "";
}

static hf_id only_child(void)
{
    return runs_of("child")->items[0].id;
}

static void children_that_nobody_waited_for_are_noted_in_the_journal(void **state)
{
    (void)state;
    const hf_claimed *held = claim_parent();
    hf_transition t = turn_of(held, HF_TURN_SUCCEED);
    assert_ok(try_commit_short(&t));
    expect_status(held->run.id, HF_SUCCEEDED);
    assert_string_equal(last_data(held->run.id), "{\"children_left\":1}");
    expect_status(only_child(), HF_PENDING);
    assert_int_equal(runs_of(HF__CHORE_CANCEL_CHILDREN)->count, 0);
}

static void children_that_ended_are_not_noted(void **state)
{
    (void)state;
    const hf_claimed *held = claim_parent();
    succeed(claim_of("child", 1)->items);
    succeed(held);
    assert_string_equal(last_data(held->run.id), "");
}

static void who_has_no_children_is_not_asked_for_them(void **state)
{
    (void)state;
    define_with((hf_workflow){ .name = WORK, .children = "fail" }, HF_SET_CHILDREN);
    const hf_claimed *held = claim_new();
    hf_transition t = turn_of(held, HF_TURN_SUCCEED);
    int asked = times_sent(HF__STMT_WHAT_FOLLOWS);
    assert_ok(try_commit_short(&t));
    assert_int_equal(times_sent(HF__STMT_WHAT_FOLLOWS), asked);
}

static void a_workflow_may_have_them_cancelled(void **state)
{
    static const hf_turn turns[] = { HF_TURN_SUCCEED, HF_TURN_FAIL };
    (void)state;
    define_with((hf_workflow){ .name = WORK, .children = "cancel" }, HF_SET_CHILDREN);
    for (size_t i = 0; i < 2; i++) {
        const hf_claimed *held = claim_parent();
        hf_transition t = turn_of(held, turns[i]);
        advance(HF_SECONDS(1)); /* the newest is the first of a list */
        assert_ok(try_commit_short(&t));
        const hf_runs *chores = runs_of(HF__CHORE_CANCEL_CHILDREN);
        assert_int_equal(chores->count, i + 1);
        assert_string_equal(get(chores->items[0].id)->input,
                            text_of("{\"run\":\"%s\",\"reason\":\"parent %s\"}",
                                    id_text(held->run.id), i ? "failed" : "succeeded"));
        expect_status(held->run.id, i ? HF_FAILED : HF_SUCCEEDED);
    }
}

static void a_workflow_may_fail_for_them(void **state)
{
    (void)state;
    define("funeral");
    define_with((hf_workflow){ .name = WORK, .children = "fail", .dead_letter = "funeral" },
                HF_SET_CHILDREN | HF_SET_DEAD_LETTER);
    subscribe("holdfast.*");
    const hf_claimed *held = claim_parent();
    save_step(held, "charge", "{\"op\":\"step\",\"output\":17}");
    hf_transition t = turn_of(held, HF_TURN_SUCCEED);
    t.result = "\"done\"";
    int lost = answers_lost();
    lose_answers(1);
    commit(&t);
    assert_int_equal(answers_lost(), lost + 1);
    const hf_run *run = get(held->run.id);
    assert_int_equal(run->status, HF_FAILED);
    assert_string_equal(run->error_code, "children_left");
    assert_non_null(strstr(run->last_error, "1 child is still at work"));
    assert_null(run->result);
    assert_int_equal(told("holdfast.run.failed")->count, 1);
    const hf_runs *letters = runs_of("funeral");
    assert_int_equal(letters->count, 1);
    const char *letter = get(letters->items[0].id)->input;
    assert_non_null(strstr(letter, "\"error_code\":\"children_left\""));
    assert_non_null(strstr(letter, "{\"name\":\"charge\",\"status\":\"succeeded\",\"output\":17}"));
    expect_status(only_child(), HF_PENDING);
}

static void a_workflow_that_fails_for_them_succeeds_without(void **state)
{
    (void)state;
    define_with((hf_workflow){ .name = WORK, .children = "fail" }, HF_SET_CHILDREN);
    const hf_claimed *held = claim_parent();
    change(only_child(), HF_CANCEL);
    succeed(held);
    expect_status(held->run.id, HF_SUCCEEDED);
}

static void a_child_of_the_last_turn_is_left_as_well(void **state)
{
    (void)state;
    define("child");
    const hf_claimed *held = claim_new();
    hf_trigger_spec child = spec_of("child");
    hf_transition t = turn_of(held, HF_TURN_SUCCEED);
    t.children = &child;
    t.child_count = 1;
    commit(&t);
    assert_string_equal(last_data(held->run.id), "{\"children_left\":1}");
}

static void what_is_to_become_of_children_is_one_of_three_words(void **state)
{
    hf_workflow workflow = { .name = WORK, .children = "drop" };
    (void)state;
    assert_code(hf_workflow_set(fx.client, &workflow, HF_SET_CHILDREN, &fx.error), HF_INVALID);
    assert_non_null(strstr(fx.error.message, "leave, cancel or fail"));
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(a_cancel_starts_the_workflow_that_wants_to_know),
    CONTRACT_TEST(a_run_that_never_began_is_told_of_without_steps),
    CONTRACT_TEST(a_run_that_is_cancelled_again_after_a_retry_is_told_of_again),
    CONTRACT_TEST(a_cancel_whose_answer_was_lost_starts_one),
    CONTRACT_TEST(where_there_is_no_such_workflow_the_run_is_cancelled_all_the_same),
    CONTRACT_TEST(a_workflow_is_not_started_for_cancels_of_its_own_runs),
    CONTRACT_TEST(steps_that_do_not_fit_are_cut),
    CONTRACT_TEST(a_cancelled_run_is_told_of),
    CONTRACT_TEST(nobody_is_told_who_does_not_want_it),
    CONTRACT_TEST(what_is_told_of_a_failure_says_what_the_run_was_and_did),
    CONTRACT_TEST(a_cancel_by_sql_starts_and_tells_the_same),
    CONTRACT_TEST(a_run_can_be_cancelled_although_somebody_took_the_key_of_what_follows),
    CONTRACT_TEST(children_that_nobody_waited_for_are_noted_in_the_journal),
    CONTRACT_TEST(children_that_ended_are_not_noted),
    CONTRACT_TEST(who_has_no_children_is_not_asked_for_them),
    CONTRACT_TEST(a_workflow_may_have_them_cancelled),
    CONTRACT_TEST(a_workflow_may_fail_for_them),
    CONTRACT_TEST(a_workflow_that_fails_for_them_succeeds_without),
    CONTRACT_TEST(a_child_of_the_last_turn_is_left_as_well),
    CONTRACT_TEST(what_is_to_become_of_children_is_one_of_three_words),
};

CONTRACT("follow", tests)
