/* Limits, rates and flow keys as workers live with them: never above the limit, never asleep below it. B7.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/world.h"

/* With the poll at an hour, whatever happens in these tests happens because a worker was woken, or slept until the right
 * time. */

#define FLOW "shop.flow.v1"

/* What handlers count: the input is the number of the key. */
struct crowd {
    atomic_int running[4];
    atomic_int all;
    atomic_int most; /* of all at once */
    atomic_int most_of_key;
    atomic_int done;
    int64_t takes; /* us */
    int until;     /* so many are there at once, who may go then; 0: nobody waits */
};

static void raise_to(atomic_int *most, int value)
{
    for (int seen = atomic_load(most); value > seen;)
        if (atomic_compare_exchange_weak(most, &seen, value))
            break;
}

static hf_code stand(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    struct crowd *crowd = arg;
    int key = atoi(input) % 4;
    (void)ctx;
    (void)err;
    raise_to(&crowd->most, atomic_fetch_add(&crowd->all, 1) + 1);
    raise_to(&crowd->most_of_key, atomic_fetch_add(&crowd->running[key], 1) + 1);
    world_await(&crowd->most, crowd->until);
    world_sleep(crowd->takes);
    atomic_fetch_sub(&crowd->running[key], 1);
    atomic_fetch_sub(&crowd->all, 1);
    atomic_fetch_add(&crowd->done, 1);
    return HF_OK;
}

static void trigger_keys(int count, int keys)
{
    for (int i = 0; i < count; i++) {
        char key[16], input[16];
        hf_trigger_spec spec = HF_TRIGGER_INIT;
        snprintf(key, sizeof key, "key-%d", i % keys);
        snprintf(input, sizeof input, "%d", i % keys);
        spec.workflow = FLOW;
        spec.input = input;
        spec.flow_key = key;
        world_trigger_spec(&spec);
    }
}

static void limit(hf_workflow limits, unsigned mask)
{
    limits.name = FLOW;
    assert_ok(hf_workflow_set(world.client, &limits, mask, NULL));
}

static void start(struct crowd *crowd, int threads)
{
    hf_worker_options options = world_options();
    options.threads = threads;
    world_hire(&options);
    world_handle(FLOW, stand, crowd);
    world_define(FLOW, 0, 0, 0);
}

/* Another worker, in an engine of its own where there can be one. */
struct colleague {
    hf_client *root;
    hf_client *client;
    hf_worker *worker;
    pthread_t thread;
};

static void *run(void *worker)
{
    return (void *)(intptr_t)hf_worker_run(worker, NULL);
}

static void join_in(struct colleague *colleague, struct crowd *crowd)
{
    hf_worker_options options = world_options();
    options.threads = 4;
    options.name = "colleague";
    hf_run *any = world_get(world_trigger(FLOW, "3")); /* no key, so none of those counted */
    *colleague = (struct colleague){ .client = world.client };
    if (!world_is_in_memory()) {
        assert_ok(hf_open(&colleague->root, world.url, NULL, NULL));
        assert_ok(hf_open_as(&colleague->client, colleague->root, any->tenant, NULL, NULL));
    }
    hf_run_free(any);
    assert_ok(hf_worker_new(&colleague->worker, colleague->client, &options, NULL));
    assert_ok(hf_worker_handle(colleague->worker, FLOW, stand, crowd, NULL));
    assert_int_equal(pthread_create(&colleague->thread, NULL, run, colleague->worker), 0);
}

static void leave(struct colleague *colleague)
{
    void *code;
    hf_worker_stop(colleague->worker);
    pthread_join(colleague->thread, &code);
    assert_int_equal((intptr_t)code, HF_OK);
    hf_worker_free(colleague->worker);
    if (colleague->root) {
        hf_close(colleague->client);
        hf_close(colleague->root);
    }
}

static void two_workers_keep_to_the_limit_and_use_it(void **state)
{
    struct crowd crowd = { .takes = HF_MILLISECONDS(5), .until = 3 };
    struct colleague colleague;
    (void)state;
    start(&crowd, 4);
    limit((hf_workflow){ .max_running = 3, .key_max_running = 2 },
          HF_SET_MAX_RUNNING | HF_SET_KEY_MAX_RUNNING);
    world_start();
    join_in(&colleague, &crowd);
    trigger_keys(60, 3);
    world_await(&crowd.done, 61);
    assert_int_equal(atomic_load(&crowd.most), 3);
    assert_in_range(atomic_load(&crowd.most_of_key), 1, 2);
    world_stop();
    leave(&colleague);
}

static void a_worker_sleeps_until_the_next_start(void **state)
{
    struct crowd crowd = { 0 };
    (void)state;
    start(&crowd, 4);
    limit((hf_workflow){ .rate = { 50, HF_SECONDS(1), 1 } }, HF_SET_RATE);
    world_start();
    trigger_keys(8, 2);
    world_await(&crowd.done, 8);
}

static void a_limit_that_is_lifted_is_noticed_at_once(void **state)
{
    struct crowd crowd = { 0 };
    (void)state;
    start(&crowd, 4);
    limit((hf_workflow){ .rate = { 1, HF_DAYS(1), 1 } }, HF_SET_RATE);
    world_start();
    trigger_keys(5, 1);
    world_await(&crowd.done, 1);
    world_sleep(HF_MILLISECONDS(100));
    assert_int_equal(atomic_load(&crowd.done), 1);
    limit((hf_workflow){ 0 }, HF_SET_RATE);
    world_await(&crowd.done, 5);
}

static void a_cancelled_run_frees_its_slot(void **state)
{
    struct crowd crowd = { .takes = HF_SECONDS(2) };
    (void)state;
    start(&crowd, 4);
    limit((hf_workflow){ .max_running = 1 }, HF_SET_MAX_RUNNING);
    world_start();
    hf_id first = world_trigger(FLOW, "1");
    world_await(&crowd.all, 1);
    hf_id second = world_trigger(FLOW, "2");
    assert_ok(hf_change_run(world.client, first, HF_CANCEL, NULL, NULL));
    world_await(&crowd.running[2], 1);
    world_expect(second, HF_SUCCEEDED);
    world_await(&crowd.done, 2); /* the first one's handler may be the last to look at it */
}

/* More lanes than are looked at each time, all of them new to the worker. */
static void many_new_keys_are_found(void **state)
{
    struct crowd crowd = { 0 };
    (void)state;
    start(&crowd, 4);
    world_start();
    trigger_keys(10, 10);
    world_await(&crowd.done, 10);
    trigger_keys(600, 600);
    world_await(&crowd.done, 610);
    trigger_keys(600, 300);
    world_await(&crowd.done, 1210);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)
        TEST(two_workers_keep_to_the_limit_and_use_it),
        TEST(a_worker_sleeps_until_the_next_start),
        TEST(a_limit_that_is_lifted_is_noticed_at_once),
        TEST(a_cancelled_run_frees_its_slot),
        TEST(many_new_keys_are_found),
    };
    return world_run_tests(argc, argv, "worker flow", tests, sizeof tests / sizeof *tests);
}
