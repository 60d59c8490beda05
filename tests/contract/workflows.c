/* Workflows: registered once, changed field by field, counted. A7, B1.
 * SPDX-License-Identifier: Apache-2.0 */
#include "client/answer.h"
#include "client/client.h"
#include "client/live.h"
#include "contract/fixture.h"

static void free_workflow(void *memory)
{
    hf_workflow_free(memory);
}

static const hf_workflow *workflow(const char *name)
{
    hf_workflow *found = NULL;
    assert_ok(hf_workflow_get(fx.client, &found, name, &fx.error));
    return keep(found, free_workflow);
}

static void a_new_workflow_has_the_defaults(void **state)
{
    const hf_workflow *found;
    (void)state;
    define("billing.charge.v1");
    found = workflow("billing.charge.v1");
    assert_string_equal(found->name, "billing.charge.v1");
    assert_false(found->paused);
    assert_int_equal(found->max_attempts, 3);
    assert_int_equal(found->retry_base, HF_SECONDS(1));
    assert_int_equal(found->retry_cap, HF_MINUTES(5));
    assert_int_equal(found->lease, HF_SECONDS(30));
    assert_int_equal(found->timeout, 0);
    assert_int_equal(found->retention, 0);
    assert_null(found->dead_letter);
    assert_null(found->definition);
    assert_int_equal(found->created_at, now());
}

static void registering_again_changes_only_the_named_fields(void **state)
{
    (void)state;
    define_with((hf_workflow){ .name = WORK, .max_attempts = 5, .lease = HF_SECONDS(60) },
                HF_SET_MAX_ATTEMPTS | HF_SET_LEASE);
    define_with((hf_workflow){ .name = WORK, .max_attempts = 9, .retry_cap = HF_SECONDS(7) },
                HF_SET_RETRY_CAP);
    define(WORK);
    const hf_workflow *found = workflow(WORK);
    assert_int_equal(found->max_attempts, 5);
    assert_int_equal(found->lease, HF_SECONDS(60));
    assert_int_equal(found->retry_cap, HF_SECONDS(7));
    assert_int_equal(found->retry_base, HF_SECONDS(1));
}

static void every_field_can_be_set_and_cleared(void **state)
{
    unsigned all = HF_SET_MAX_ATTEMPTS | HF_SET_RETRY_BASE | HF_SET_RETRY_CAP | HF_SET_LEASE |
                   HF_SET_TIMEOUT | HF_SET_RETENTION | HF_SET_DEAD_LETTER | HF_SET_DEFINITION |
                   HF_SET_PAUSED;
    (void)state;
    define_with((hf_workflow){ .name = WORK,
                               .paused = true,
                               .max_attempts = 1,
                               .retry_base = 2,
                               .retry_cap = 3,
                               .lease = HF_SECONDS(4),
                               .timeout = 5,
                               .retention = 6,
                               .dead_letter = "funeral",
                               .definition = "{\"do\":[]}" },
                all);
    const hf_workflow *found = workflow(WORK);
    assert_true(found->paused);
    assert_int_equal(found->max_attempts, 1);
    assert_int_equal(found->retry_base, 2);
    assert_int_equal(found->retry_cap, 3);
    assert_int_equal(found->lease, HF_SECONDS(4));
    assert_int_equal(found->timeout, 5);
    assert_int_equal(found->retention, 6);
    assert_string_equal(found->dead_letter, "funeral");
    assert_string_equal(found->definition, "{\"do\":[]}");
    define_with((hf_workflow){ .name = WORK }, HF_SET_TIMEOUT | HF_SET_RETENTION |
                                                   HF_SET_DEAD_LETTER | HF_SET_DEFINITION |
                                                   HF_SET_PAUSED);
    found = workflow(WORK);
    assert_false(found->paused);
    assert_int_equal(found->timeout, 0);
    assert_int_equal(found->retention, 0);
    assert_null(found->dead_letter);
    assert_null(found->definition);
}

static void setting_an_unknown_workflow_creates_none(void **state)
{
    hf_workflow unknown = { .name = "unknown", .max_attempts = 2 };
    hf_workflow *found = NULL;
    (void)state;
    assert_code(hf_workflow_set(fx.client, &unknown, HF_SET_MAX_ATTEMPTS, &fx.error),
                HF_UNKNOWN_WORKFLOW);
    assert_code(hf_workflow_get(fx.client, &found, "unknown", &fx.error), HF_UNKNOWN_WORKFLOW);
}

static void values_out_of_range_are_refused(void **state)
{
    static const struct {
        hf_workflow workflow;
        unsigned mask;
    } bad[] = {
        { { .name = WORK, .max_attempts = 0 }, HF_SET_MAX_ATTEMPTS },
        { { .name = WORK, .max_attempts = -1 }, HF_SET_MAX_ATTEMPTS },
        { { .name = WORK, .retry_base = -1 }, HF_SET_RETRY_BASE },
        { { .name = WORK, .retry_cap = -1 }, HF_SET_RETRY_CAP },
        { { .name = WORK, .lease = 1 }, HF_SET_LEASE },
        { { .name = WORK, .timeout = -1 }, HF_SET_TIMEOUT },
        { { .name = WORK, .retention = -1 }, HF_SET_RETENTION },
        { { .name = WORK, .dead_letter = "no such name!" }, HF_SET_DEAD_LETTER },
        { { .name = "holdfast.mine" }, 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_code(hf_workflow_put(fx.client, &bad[i].workflow, bad[i].mask, &fx.error),
                    HF_INVALID);
}

static void workflows_are_listed_by_prefix_in_the_order_of_their_names(void **state)
{
    hf_workflows *found = NULL;
    (void)state;
    define("b.two");
    define("b.one");
    define("bb");
    assert_ok(hf_workflow_list(fx.client, &found, "b.", &fx.error));
    assert_int_equal(found->count, 2);
    assert_string_equal(found->items[0].name, "b.one");
    assert_string_equal(found->items[1].name, "b.two");
    hf_workflows_free(found);
    assert_ok(hf_workflow_list(fx.client, &found, NULL, &fx.error));
    assert_int_equal(found->count, 4);
    hf_workflows_free(found);
}

static void the_depth_of_a_workflow_is_counted(void **state)
{
    hf_trigger_spec later = spec_of(WORK);
    (void)state;
    later.delay = HF_HOURS(1);
    run_that_is(HF_FAILED, 0);
    run_that_is(HF_SUCCEEDED, 0);
    run_that_is(HF_LEASED, 0);
    trigger(WORK);
    trigger(WORK);
    trigger_spec(&later);
    change(trigger(WORK), HF_DELETE);
    const hf_workflow *found = workflow(WORK);
    assert_int_equal(found->due, 2);
    assert_int_equal(found->delayed, 1);
    assert_int_equal(found->parked, 0);
    assert_int_equal(found->leased, 1);
    assert_int_equal(found->failed, 1);
}

static const struct hf__queue *queue_of(const char *name)
{
    struct hf__queues *queues = NULL;
    assert_ok(hf__queues_read(fx.client, &queues, (int)fx.client->tenant_id, &fx.error));
    keep(queues, hf__answer_free);
    for (size_t i = 0; i < queues->count; i++)
        if (strcmp(queues->items[i].name, name) == 0)
            return &queues->items[i];
    fail();
    return NULL;
}

static void wait_for_an_hour(void)
{
    const hf_claimed *held = claim_new();
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    t.waiting_until = now() + HF_HOURS(1);
    commit(&t);
}

static void what_waits_without_a_time_is_counted_too(void **state)
{
    (void)state;
    wait_for_an_hour();
    run_that_is(HF_WAITING, 0);
    run_that_is(HF_WAITING, 0);
    run_that_is(HF_PAUSED, 0);
    change(run_that_is(HF_WAITING, 0), HF_DELETE);
    const hf_workflow *found = workflow(WORK);
    assert_int_equal(found->due, 0);
    assert_int_equal(found->delayed, 1);
    assert_int_equal(found->parked, 3);
    assert_int_equal(queue_of(WORK)->waiting, 3);
}

static void trigger_delayed(int count, int64_t delay)
{
    hf_trigger_spec *specs = keep(calloc((size_t)count, sizeof *specs), free);
    hf_triggered *answers = keep(calloc((size_t)count, sizeof *answers), free);
    for (int i = 0; i < count; i++) {
        specs[i] = spec_of(WORK);
        specs[i].delay = delay;
    }
    assert_ok(hf_trigger_many(fx.client, answers, specs, (size_t)count, &fx.error));
}

static void more_than_are_counted_of_one_kind_hide_none_of_another(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        wait_for_an_hour();
    run_that_is(HF_WAITING, 0); /* for no time */
    trigger_delayed(HF__MOST_QUEUED / 2 + 1, HF_MINUTES(1));
    trigger_delayed(HF__MOST_QUEUED / 2, HF_MINUTES(1));
    const struct hf__queue *queue = queue_of(WORK);
    assert_int_equal(queue->due, 0);
    assert_int_equal(queue->delayed, HF__MOST_QUEUED);
    assert_int_equal(queue->waiting, 4);
    assert_int_equal(queue->leased, 0);
    assert_int_equal(workflow(WORK)->delayed, HF__MOST_QUEUED);
    advance(HF_MINUTES(1));
    const hf_workflow *found = workflow(WORK);
    assert_int_equal(found->due, HF__MOST_QUEUED);
    assert_int_equal(found->delayed, 3);
    assert_int_equal(found->leased, 0);
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(a_new_workflow_has_the_defaults),
    CONTRACT_TEST(registering_again_changes_only_the_named_fields),
    CONTRACT_TEST(every_field_can_be_set_and_cleared),
    CONTRACT_TEST(setting_an_unknown_workflow_creates_none),
    CONTRACT_TEST(values_out_of_range_are_refused),
    CONTRACT_TEST(workflows_are_listed_by_prefix_in_the_order_of_their_names),
    CONTRACT_TEST(the_depth_of_a_workflow_is_counted),
    CONTRACT_TEST(what_waits_without_a_time_is_counted_too),
    CONTRACT_TEST(more_than_are_counted_of_one_kind_hide_none_of_another),
};
CONTRACT("workflows", tests)
