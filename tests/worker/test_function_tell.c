/* Durable functions: what they tell while they run, and what a replay does not tell again. C4.
 * SPDX-License-Identifier: Apache-2.0 */
#include "worker/world.h"

#define WORKFLOW "shop.order.v1"

static atomic_int calls;
static atomic_int turn; /* whose it is, the handler's or the test's */

static hf_id begin(hf_handler handler)
{
    atomic_store(&calls, 0);
    atomic_store(&turn, 0);
    world_handle(WORKFLOW, handler, NULL);
    world_define(WORKFLOW, 5, HF_MILLISECONDS(1), 0);
    world_start();
    return world_trigger(WORKFLOW, "{\"n\":1}");
}

static hf_code telling(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)input;
    (void)err;
    (void)arg;
    hf_try(hf_progress(ctx, 40, "resizing \"it\""));
    hf_try(hf_publish(ctx, "{\"pages\":3}"));
    hf_try(hf_emit(ctx, "order.paid", "{\"id\":7}"));
    int told = atomic_fetch_add(&turn, 1) + 1; /* 1, then 3 */
    while (atomic_load(&turn) == told)
        world_sleep(HF_MILLISECONDS(2));
    return told == 1 ? HF_RETRY : HF_OK;
}

static void progress_and_state_are_seen_while_it_runs(void **state)
{
    (void)state;
    hf_id id = begin(telling);
    world_await(&turn, 1);
    hf_run *run = world_get(id);
    assert_int_equal(run->status, HF_LEASED);
    assert_string_equal(run->state, "{\"pages\":3}");
    hf_run_free(run);
    assert_int_equal(world_count_events(id, "domain", "progress"), 1);
    assert_int_equal(world_count_events(id, "step", "succeeded"), 1);
    atomic_store(&turn, 2);
    world_await(&turn, 3);
    atomic_store(&turn, 4);
    world_expect(id, HF_SUCCEEDED);
    assert_int_equal(world_count_events(id, "step", "succeeded"), 1); /* emitted once */
}

static hf_code telling_between_waits(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    hf_step a;
    (void)input;
    (void)err;
    (void)arg;
    atomic_fetch_add(&calls, 1);
    hf_try(hf_progress(ctx, 10, NULL));
    hf_try(hf_publish(ctx, "1"));
    if (hf_step_begin(ctx, "a", &a))
        hf_try(hf_step_done(&a, "1"));
    hf_try(hf_publish(ctx, "2"));
    hf_try(hf_sleep(ctx, "nap", HF_MILLISECONDS(1)));
    hf_try(hf_progress(ctx, 50, NULL));
    hf_try(hf_sleep(ctx, "another", HF_MILLISECONDS(1)));
    return hf_progress(ctx, 90, NULL);
}

static void what_an_earlier_pass_told_is_not_told_again(void **state)
{
    (void)state;
    hf_id id = begin(telling_between_waits);
    world_expect(id, HF_SUCCEEDED);
    assert_int_equal(atomic_load(&calls), 3);
    assert_int_equal(world_count_events(id, "domain", "progress"), 3);
    assert_int_equal(world_count_events(id, "domain", "published"), 2);
    hf_run *run = world_get(id);
    assert_string_equal(run->state, "2");
    hf_run_free(run);
}

/* Answers that differ would lead a replay elsewhere. */
static hf_code complaining(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    hf_step a;
    (void)input;
    (void)err;
    (void)arg;
    atomic_fetch_add(&calls, 1);
    hf_try(hf_publish(ctx, "1"));
    bool refused = hf_publish(ctx, "{no JSON") == HF_INVALID;
    if (refused && hf_step_begin(ctx, "complain", &a))
        hf_try(hf_step_done(&a, "1"));
    return hf_sleep(ctx, "nap", HF_MILLISECONDS(1));
}

static void what_cannot_be_published_is_refused_by_every_pass(void **state)
{
    (void)state;
    hf_id id = begin(complaining);
    world_expect(id, HF_SUCCEEDED);
    assert_int_equal(atomic_load(&calls), 2);
    assert_int_equal(world_count_events(id, "domain", "published"), 1);
}

/* A fork has the steps that it keeps from the start, but has never come by there. */
static void a_fork_tells_what_belongs_to_the_steps_that_it_keeps(void **state)
{
    hf_error err;
    hf_triggered fork;
    (void)state;
    hf_id id = begin(telling_between_waits);
    world_expect(id, HF_SUCCEEDED);
    assert_ok(hf_fork(world.client, &fork, id, "another", NULL, &err));
    world_expect(fork.id, HF_SUCCEEDED);
    assert_int_equal(world_count_events(fork.id, "domain", "progress"), 3);
    assert_int_equal(world_count_events(fork.id, "domain", "published"), 2);
    hf_run *run = world_get(fork.id);
    assert_string_equal(run->state, "2");
    hf_run_free(run);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(progress_and_state_are_seen_while_it_runs),
        TEST(what_an_earlier_pass_told_is_not_told_again),
        TEST(what_cannot_be_published_is_refused_by_every_pass),
        TEST(a_fork_tells_what_belongs_to_the_steps_that_it_keeps),
    };
    return world_run_tests(argc, argv, "function_tell", tests, sizeof tests / sizeof *tests);
}
