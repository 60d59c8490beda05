/* Purge: finished and deleted runs go with all that belongs to them; active work is left alone. A8, F5.
 * SPDX-License-Identifier: Apache-2.0 */
#include "contract/fixture.h"

/* What was counted before is what goes. */
static int64_t purge(const char *workflow, int64_t before)
{
    int64_t counted = -1, removed = -1;
    assert_ok(hf_purge_count(fx.client, &counted, workflow, before, &fx.error));
    assert_ok(hf_purge(fx.client, &removed, workflow, before, &fx.error));
    assert_int_equal(counted, removed);
    return removed;
}

static void a_finished_run_goes_with_all_that_belongs_to_it(void **state)
{
    static const char *const tags[] = { "t" };
    hf_trigger_spec spec = spec_of(WORK);
    hf_new_task task = { .name = "check" };
    (void)state;
    spec.tags = tags;
    spec.tag_count = 1;
    hf_id id = trigger_spec(&spec);
    send_signal(id, "s");
    hf_transition t = turn_of(claim(), HF_TURN_SUCCEED);
    t.tasks = &task;
    t.task_count = 1;
    commit(&t);
    advance(1);
    assert_int_equal(purge(NULL, now()), 1);
    expect_gone(id);
}

static void every_way_of_having_finished_counts(void **state)
{
    hf_id ids[] = { run_that_is(HF_SUCCEEDED, 0), run_that_is(HF_FAILED, 0),
                    run_that_is(HF_CANCELLED, 0) };
    (void)state;
    advance(1);
    assert_int_equal(purge(NULL, now()), 3);
    for (int i = 0; i < 3; i++)
        expect_gone(ids[i]);
}

static void active_runs_are_left_alone_however_old(void **state)
{
    (void)state;
    for (hf_status status = HF_PENDING; status <= HF_PAUSED; status++) {
        hf_id id = run_that_is(status, 0);
        advance(HF_DAYS(1));
        assert_int_equal(purge(NULL, now()), 0);
        expect_status(id, status);
        change(id, HF_CANCEL);
        advance(1);
        assert_int_equal(purge(NULL, now()), 1);
    }
}

static void what_finished_later_is_kept(void **state)
{
    hf_id old = run_that_is(HF_SUCCEEDED, 0);
    (void)state;
    advance(HF_HOURS(1));
    int64_t limit = now();
    hf_id young = run_that_is(HF_SUCCEEDED, 0);
    assert_int_equal(purge(NULL, limit), 1);
    expect_gone(old);
    expect_status(young, HF_SUCCEEDED);
}

static void a_purge_of_one_workflow_leaves_the_others(void **state)
{
    (void)state;
    define("other");
    hf_id mine = run_that_is(HF_SUCCEEDED, 0);
    hf_id other = trigger("other");
    succeed(claim());
    advance(1);
    assert_int_equal(purge("other", now()), 1);
    expect_gone(other);
    expect_status(mine, HF_SUCCEEDED);
}

static void a_deleted_run_goes_whatever_its_status(void **state)
{
    hf_id id = run_that_is(HF_WAITING, 0);
    (void)state;
    change(id, HF_DELETE);
    advance(1);
    assert_int_equal(purge(NULL, now()), 1);
    expect_gone(id);
}

static void a_deleted_run_that_somebody_holds_is_left_to_its_holder(void **state)
{
    const hf_claimed *held = claim_new();
    (void)state;
    change(held->run.id, HF_DELETE);
    advance(1);
    assert_int_equal(purge(NULL, now()), 0);
    succeed(held);
    advance(1);
    assert_int_equal(purge(NULL, now()), 1);
    expect_gone(held->run.id);
}

static void a_retried_run_is_not_purged(void **state)
{
    hf_id id = run_that_is(HF_FAILED, 0);
    (void)state;
    change(id, HF_RETRY_RUN);
    advance(HF_DAYS(1));
    assert_int_equal(purge(NULL, now()), 0);
    claim();
}

static void what_has_not_left_the_outbox_yet_is_kept(void **state)
{
    const hf_claimed *held = claim_new();
    hf_new_outbox entry = { .type = "order.paid", .payload = "{}" };
    hf_subscription_spec wish = HF_SUBSCRIPTION_INIT;
    hf_transition t = turn_of(held, HF_TURN_SUCCEED);
    (void)state;
    wish.name = "orders";
    wish.url = "http://localhost";
    assert_ok(hf_subscription_put(fx.client, &wish, NULL, &fx.error));
    t.outbox = &entry;
    t.outbox_count = 1;
    commit(&t);
    advance(1);
    assert_int_equal(purge(NULL, now()), 1);
    assert_int_equal(
        sql_number("SELECT count(*) FROM outbox WHERE run_id = %s", sql_id(held->run.id)), 1);
}

static void a_purge_removes_more_than_one_page(void **state)
{
    enum { MANY = 1100 };
    hf_filter filter = HF_FILTER_INIT;
    hf_bulk_result result;
    hf_trigger_spec *specs = keep(calloc(MANY, sizeof *specs), free);
    hf_triggered *out = keep(calloc(MANY, sizeof *out), free);
    (void)state;
    for (int i = 0; i < MANY; i++)
        specs[i] = spec_of(WORK);
    assert_ok(hf_trigger_many(fx.client, out, specs, MANY, &fx.error));
    assert_ok(hf_bulk(fx.client, &result, &filter, HF_CANCEL, NULL, false, NULL, NULL, &fx.error));
    hf_id kept = trigger(WORK);
    advance(1);
    assert_int_equal(purge(NULL, now()), MANY);
    expect_status(kept, HF_PENDING);
}

static void a_purged_key_is_free_again(void **state)
{
    hf_trigger_spec spec = spec_of(WORK);
    (void)state;
    spec.key = "k";
    spec.input = "1";
    trigger_spec(&spec);
    succeed(claim());
    advance(1);
    purge(NULL, now());
    spec.input = "2";
    trigger_spec(&spec);
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(a_finished_run_goes_with_all_that_belongs_to_it),
    CONTRACT_TEST(every_way_of_having_finished_counts),
    CONTRACT_TEST(active_runs_are_left_alone_however_old),
    CONTRACT_TEST(what_finished_later_is_kept),
    CONTRACT_TEST(a_purge_of_one_workflow_leaves_the_others),
    CONTRACT_TEST(a_deleted_run_goes_whatever_its_status),
    CONTRACT_TEST(a_deleted_run_that_somebody_holds_is_left_to_its_holder),
    CONTRACT_TEST(a_retried_run_is_not_purged),
    CONTRACT_TEST(what_has_not_left_the_outbox_yet_is_kept),
    CONTRACT_TEST(a_purge_removes_more_than_one_page),
    CONTRACT_TEST(a_purged_key_is_free_again),
};
CONTRACT("purge", tests)
