/* When a worker wakes, what it serves, and how it stops. B2, B4, B5, B6.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "worker/world.h"

#include "util/clock.h"

/* With the poll at an hour, whatever happens in these tests happens because the worker was
 * woken. */
#define QUICK HF_MINUTES(1)

static hf_code note(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)ctx;
    (void)input;
    (void)err;
    atomic_fetch_add((atomic_int *)arg, 1);
    return HF_OK;
}

/* ---- Waking ---- */

static void a_sleeping_worker_is_woken_by_a_trigger(void **state)
{
    atomic_int calls = 0;
    (void)state;
    world_handle("shop.note.v1", note, &calls);
    world_define("shop.note.v1", 0, 0, 0);
    world_start();
    for (int i = 0; i < 5; i++) {
        world_sleep(HF_MILLISECONDS(150));
        int64_t began = hf__monotonic_us();
        world_expect(world_trigger("shop.note.v1", NULL), HF_SUCCEEDED);
        assert_true(hf__monotonic_us() - began < QUICK);
    }
    assert_int_equal(atomic_load(&calls), 5);
}

static void a_sleeping_worker_is_woken_from_another_connection(void **state)
{
    atomic_int calls = 0;
    hf_client *other = NULL, *tenant = NULL;
    hf_tenants *tenants = NULL;
    (void)state;
    if (world_is_in_memory())
        skip();
    world_handle("shop.note.v1", note, &calls);
    world_define("shop.note.v1", 0, 0, 0);
    world_start();
    world_sleep(HF_MILLISECONDS(300));
    assert_ok(hf_tenant_list(world.client, &tenants, NULL));
    assert_ok(hf_open(&other, world.url, NULL, NULL));
    hf_run *run = world_get(world_trigger("shop.note.v1", NULL)); /* tells the tenant's name */
    assert_ok(hf_open_as(&tenant, other, run->tenant, NULL, NULL));
    hf_run_free(run);
    world_await(&calls, 1);
    for (int i = 0; i < 5; i++) {
        hf_trigger_spec spec = HF_TRIGGER_INIT;
        hf_triggered out;
        world_sleep(HF_MILLISECONDS(100));
        spec.workflow = "shop.note.v1";
        int64_t began = hf__monotonic_us();
        assert_ok(hf_trigger(tenant, &out, &spec, NULL));
        world_await(&calls, i + 2);
        assert_true(hf__monotonic_us() - began < QUICK);
    }
    hf_tenants_free(tenants);
    hf_close(tenant);
    hf_close(other);
}

static void a_delayed_run_begins_on_time(void **state)
{
    atomic_int calls = 0;
    (void)state;
    world_handle("shop.note.v1", note, &calls);
    world_define("shop.note.v1", 0, 0, 0);
    world_start();
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    spec.workflow = "shop.note.v1";
    spec.delay = HF_MILLISECONDS(300);
    hf_run *run = world_wait(world_trigger_spec(&spec));
    assert_int_equal(run->status, HF_SUCCEEDED);
    assert_true(run->started_at - run->created_at >= HF_MILLISECONDS(300));
    assert_true(run->started_at - run->created_at < QUICK);
    hf_run_free(run);
}

static void a_new_workflow_under_a_served_prefix_is_picked_up(void **state)
{
    atomic_int calls = 0;
    (void)state;
    world_handle("shop.*", note, &calls);
    world_start();
    world_sleep(HF_MILLISECONDS(200));
    world_define("shop.later.v1", 0, 0, 0);
    world_expect(world_trigger("shop.later.v1", NULL), HF_SUCCEEDED);
    world_define("other.v1", 0, 0, 0);
    hf_id foreign = world_trigger("other.v1", NULL);
    world_define("shop.later.v2", 0, 0, 0);
    world_expect(world_trigger("shop.later.v2", NULL), HF_SUCCEEDED);
    hf_run *run = world_get(foreign);
    assert_int_equal(run->status, HF_PENDING);
    hf_run_free(run);
}

static void an_exact_name_serves_no_longer_one(void **state)
{
    atomic_int calls = 0;
    (void)state;
    world_handle("shop.note", note, &calls);
    world_define("shop.note.v1", 0, 0, 0);
    world_define("shop.notes", 0, 0, 0);
    world_start();
    hf_id ids[] = { world_trigger("shop.note.v1", NULL), world_trigger("shop.notes", NULL) };
    world_expect(world_trigger("shop.note", NULL), HF_SUCCEEDED);
    for (int i = 0; i < 2; i++) {
        hf_run *run = world_get(ids[i]);
        assert_int_equal(run->status, HF_PENDING);
        hf_run_free(run);
    }
}

static void a_resumed_workflow_is_worked_on_again(void **state)
{
    atomic_int calls = 0;
    (void)state;
    world_handle("shop.note.v1", note, &calls);
    hf_workflow workflow = { .name = "shop.note.v1", .paused = true };
    assert_ok(hf_workflow_put(world.client, &workflow, HF_SET_PAUSED, NULL));
    world_start();
    hf_id id = world_trigger("shop.note.v1", NULL);
    world_sleep(HF_MILLISECONDS(300));
    assert_int_equal(atomic_load(&calls), 0);
    workflow.paused = false;
    assert_ok(hf_workflow_put(world.client, &workflow, HF_SET_PAUSED, NULL));
    world_expect(id, HF_SUCCEEDED);
}

static void await_claim(hf_client *client, hf_id id)
{
    hf_run *run = NULL;
    int64_t until = hf__monotonic_us() + SOON;
    for (bool claimed = false; !claimed; hf_run_free(run)) {
        assert_ok(hf_get(client, &run, id, NULL));
        claimed = run->started_at != 0;
        assert_true(hf__monotonic_us() < until);
        world_sleep(HF_MILLISECONDS(1));
    }
}

/* With a lease that does not end before the test, and a workflow of which other tests' tenants have no runs. */
static void what_was_claimed_of_a_tenant_that_cannot_be_learned_of_is_not_forgotten(void **state)
{
    static const char *const all[] = { "*" };
    atomic_int calls = 0;
    char name[64];
    hf_client *client = NULL;
    hf_worker_options options = world_options();
    (void)state;
    options.tenants = all;
    options.tenant_count = 1;
    world_hire(&options);
    world_handle("shop.news.v1", note, &calls);
    world_start();
    world_forbid_tenants(true);
    snprintf(name, sizeof name, "new-%lld", (long long)hf__clock_now(&hf__system_clock));
    assert_ok(hf_tenant_create(world.root, name, NULL));
    assert_ok(hf_open_as(&client, world.root, name, "tester", NULL));
    hf_workflow workflow = { .name = "shop.news.v1", .lease = HF_DAYS(1) };
    assert_ok(hf_workflow_put(client, &workflow, HF_SET_LEASE, NULL));
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    hf_triggered out;
    spec.workflow = "shop.news.v1";
    assert_ok(hf_trigger(client, &out, &spec, NULL));
    await_claim(client, out.id);
    assert_int_equal(atomic_load(&calls), 0);
    world_forbid_tenants(false);
    world_await(&calls, 1);
    world_stop();
    hf_close(client);
}

static hf_code take_note_of_order(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    char *order = arg;
    (void)ctx;
    (void)err;
    strncat(order, input, 1);
    return HF_OK;
}

static void the_urgent_go_first(void **state)
{
    char order[16] = "";
    hf_id ids[6];
    (void)state;
    world_define("shop.a.v1", 0, 0, 0);
    world_define("shop.b.v1", 0, 0, 0);
    for (int i = 0; i < 6; i++) {
        char digit[2] = { (char)('0' + i), '\0' };
        hf_trigger_spec spec = HF_TRIGGER_INIT;
        spec.workflow = i % 2 ? "shop.a.v1" : "shop.b.v1";
        spec.input = digit;
        spec.priority = i * 10;
        ids[i] = world_trigger_spec(&spec);
    }
    hf_worker_options options = world_options();
    options.threads = 1;
    world_hire(&options);
    world_handle("shop.*", take_note_of_order, order);
    world_start();
    for (int i = 0; i < 6; i++)
        world_expect(ids[i], HF_SUCCEEDED);
    assert_string_equal(order, "543210");
}

static void many_short_runs_are_all_done_once(void **state)
{
    enum { MANY = 3000 };
    static hf_trigger_spec specs[MANY];
    static hf_triggered out[MANY];
    atomic_int calls = 0;
    (void)state;
    world_define("shop.note.v1", 0, 0, 0);
    for (int i = 0; i < MANY; i++) {
        specs[i] = (hf_trigger_spec)HF_TRIGGER_INIT;
        specs[i].workflow = "shop.note.v1";
    }
    assert_ok(hf_trigger_many(world.client, out, specs, MANY, NULL));
    world_handle("shop.note.v1", note, &calls);
    world_start();
    world_await(&calls, MANY);
    for (int i = 0; i < MANY; i++)
        world_expect(out[i].id, HF_SUCCEEDED);
    assert_int_equal(atomic_load(&calls), MANY);
}

/* ---- The worker's row ---- */

static void a_worker_is_listed_while_it_works(void **state)
{
    atomic_int calls = 0;
    hf_worker_list *list = NULL;
    hf_worker_options options = world_options();
    (void)state;
    options.name = "listed";
    world_hire(&options);
    world_handle("shop.note.v1", note, &calls);
    world_handle("shop.b.*", note, &calls);
    world_start();
    world_expect(world_trigger("shop.note.v1", NULL), HF_SUCCEEDED);
    int found = 0;
    assert_ok(hf_workers(world.client, &list, NULL));
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, "listed") == 0) {
            found++;
            assert_true(list->items[i].live);
            assert_string_equal(list->items[i].serves, "[\"shop.note.v1\",\"shop.b.*\"]");
            assert_int_equal(list->items[i].threads, 2);
        }
    assert_int_equal(found, 1);
    hf_worker_list_free(list);
    world_stop();
    assert_ok(hf_workers(world.client, &list, NULL));
    for (size_t i = 0; i < list->count; i++)
        assert_string_not_equal(list->items[i].name, "listed");
    hf_worker_list_free(list);
}

/* ---- Stopping ---- */

struct gate {
    atomic_int entered;
    atomic_int open;
    atomic_int told; /* 100 + what hf_check said last */
};

static hf_code wait_at_gate(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    struct gate *gate = arg;
    (void)input;
    (void)err;
    atomic_fetch_add(&gate->entered, 1);
    while (!atomic_load(&gate->open))
        world_sleep(HF_MILLISECONDS(1));
    atomic_store(&gate->told, 100 + (int)hf_check(ctx));
    return HF_OK;
}

static hf_code leave_when_told(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    struct gate *gate = arg;
    (void)input;
    (void)err;
    atomic_fetch_add(&gate->entered, 1);
    hf_code code;
    while ((code = hf_check(ctx)) == HF_OK)
        world_sleep(HF_MILLISECONDS(1));
    atomic_store(&gate->told, 100 + (int)code);
    return code;
}

static void expect_given_back(hf_id id)
{
    hf_run *run = world_get(id);
    assert_int_equal(run->status, HF_PENDING);
    assert_int_equal(run->attempt, 0);
    hf_run_free(run);
}

static void a_stop_lets_handlers_finish_and_gives_back_the_rest(void **state)
{
    struct gate gate = { 0 };
    hf_id ids[2];
    hf_worker_options options = world_options();
    (void)state;
    options.threads = 1;
    world_hire(&options);
    world_handle("shop.gate.v1", wait_at_gate, &gate);
    world_define("shop.gate.v1", 0, 0, 0);
    ids[0] = world_trigger("shop.gate.v1", NULL);
    ids[1] = world_trigger("shop.gate.v1", NULL);
    world_start();
    world_await(&gate.entered, 1);
    world_ask_stop();
    world_sleep(HF_MILLISECONDS(100));
    atomic_store(&gate.open, 1);
    world_join();
    assert_int_equal(atomic_load(&gate.entered), 1);
    assert_int_equal(atomic_load(&gate.told), 100 + HF_OK);
    world_expect(ids[0], HF_SUCCEEDED);
    expect_given_back(ids[1]);
}

static void nothing_waits_behind_handlers_of_which_nobody_knows_how_long_they_take(void **state)
{
    struct gate gate = { 0 };
    hf_id ids[2];
    hf_worker_options options = world_options();
    (void)state;
    options.threads = 1;
    world_hire(&options);
    world_handle("shop.gate.v1", wait_at_gate, &gate);
    world_define("shop.gate.v1", 0, 0, 0);
    world_start();
    ids[0] = world_trigger("shop.gate.v1", NULL);
    world_await(&gate.entered, 1);
    ids[1] = world_trigger("shop.gate.v1", NULL);
    world_sleep(HF_MILLISECONDS(200));
    expect_given_back(ids[1]); /* it was never taken */
    atomic_store(&gate.open, 1);
    world_expect(ids[0], HF_SUCCEEDED);
    world_expect(ids[1], HF_SUCCEEDED);
}

static void what_was_claimed_ahead_goes_back_when_the_handlers_before_it_do_not_end(void **state)
{
    struct gate gate = { 0 };
    atomic_int calls = 0;
    hf_worker_options options = world_options();
    (void)state;
    options.threads = 1;
    world_hire(&options);
    world_handle("shop.note.v1", note, &calls);
    world_handle("shop.gate.v1", wait_at_gate, &gate);
    world_start();
    world_expect(world_trigger("shop.note.v1", NULL), HF_SUCCEEDED); /* handlers seem to be quick */
    hf_id first = world_trigger("shop.gate.v1", NULL);
    world_await(&gate.entered, 1);
    hf_id second = world_trigger("shop.gate.v1", NULL);
    world_sleep(HF_MILLISECONDS(1500));
    hf_run *run = NULL;
    for (int tries = 0; tries < 300 && (!run || run->status != HF_PENDING); tries++) {
        hf_run_free(run);
        world_sleep(HF_MILLISECONDS(100));
        run = world_get(second);
    }
    hf_run_free(run);
    expect_given_back(second);
    world_sleep(HF_MILLISECONDS(200));
    expect_given_back(second); /* and is not taken again */
    atomic_store(&gate.open, 1);
    world_expect(first, HF_SUCCEEDED);
    world_expect(second, HF_SUCCEEDED);
}

static hf_code fail_at_first(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)ctx;
    (void)input;
    (void)err;
    return atomic_fetch_add((atomic_int *)arg, 1) > 0 ? HF_OK : HF_HANDLER_FAILED;
}

static bool was_given_back(hf_id id)
{
    hf_events *events = NULL;
    bool found = false;
    assert_ok(hf_events_list(world.client, &events, id, 0, 100, NULL));
    for (size_t i = 0; i < events->count; i++)
        found = found || strcmp(events->items[i].name, "given_back") == 0;
    hf_events_free(events);
    return found;
}

/* To give a run back forgets its attempts. If the machine stood still for a second it was not claimed, and nothing is shown. */
static void what_had_failed_before_stays_behind_the_handlers_that_do_not_end(void **state)
{
    struct gate gate = { 0 };
    atomic_int calls = 0, failures = 0;
    hf_run *run = NULL;
    hf_worker_options options = world_options();
    (void)state;
    options.threads = 1;
    world_hire(&options);
    world_handle("shop.note.v1", note, &calls);
    world_handle("shop.flaky.v1", fail_at_first, &failures);
    world_handle("shop.gate.v1", wait_at_gate, &gate);
    world_define("shop.flaky.v1", 3, HF_MILLISECONDS(200), 0);
    world_start();
    world_expect(world_trigger("shop.note.v1", NULL), HF_SUCCEEDED); /* handlers seem to be quick */
    hf_id flaky = world_trigger("shop.flaky.v1", NULL);
    world_await(&failures, 1);
    hf_id first = world_trigger("shop.gate.v1", NULL);
    world_await(&gate.entered, 1);
    hf_id last = world_trigger("shop.note.v1", NULL);
    world_sleep(HF_MILLISECONDS(1500));
    for (int tries = 0; tries < 300 && (!run || run->status != HF_PENDING); tries++) {
        hf_run_free(run);
        world_sleep(HF_MILLISECONDS(100));
        run = world_get(last);
    }
    hf_run_free(run);
    expect_given_back(last);
    atomic_store(&gate.open, 1);
    world_expect(first, HF_SUCCEEDED);
    world_expect(flaky, HF_SUCCEEDED);
    world_expect(last, HF_SUCCEEDED);
    assert_false(was_given_back(flaky));
}

static void expect_told_of_cancel(hf_client *canceller)
{
    struct gate gate = { 0 };
    hf_change change = HF_CHANGE_INIT;
    hf_worker_options options = world_options();
    options.heartbeat = HF_MINUTES(20);
    world_hire(&options);
    world_handle("shop.gate.v1", leave_when_told, &gate);
    world_define("shop.gate.v1", 0, 0, HF_MINUTES(60));
    world_start();
    hf_id id = world_trigger("shop.gate.v1", NULL);
    world_await(&gate.entered, 1);
    assert_ok(hf_change_run(canceller, id, HF_CANCEL, &change, NULL));
    world_await(&gate.told, 100 + HF_RUN_CANCELLED);
    world_expect(id, HF_CANCELLED);
}

static void a_cancel_reaches_the_handler_before_the_next_heartbeat(void **state)
{
    (void)state;
    expect_told_of_cancel(world.client);
}

static void a_cancel_by_another_process_reaches_the_handler_before_the_next_heartbeat(void **state)
{
    hf_client *other = NULL, *tenant = NULL;
    hf_triggered out;
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    (void)state;
    if (world_is_in_memory())
        skip();
    world_define("shop.name.v1", 0, 0, 0);
    hf_run *run = world_get(world_trigger("shop.name.v1", NULL)); /* tells the tenant's name */
    assert_ok(hf_open(&other, world.url, NULL, NULL));
    assert_ok(hf_open_as(&tenant, other, run->tenant, NULL, NULL));
    hf_run_free(run);
    spec.workflow = "shop.name.v1";
    assert_ok(hf_trigger(tenant, &out, &spec, NULL)); /* it works */
    expect_told_of_cancel(tenant);
    hf_close(tenant);
    hf_close(other);
}

static void a_handler_is_told_when_the_stop_limit_passes(void **state)
{
    struct gate gate = { 0 };
    hf_worker_options options = world_options();
    (void)state;
    options.stop_limit = HF_MILLISECONDS(50);
    world_hire(&options);
    world_handle("shop.gate.v1", leave_when_told, &gate);
    world_define("shop.gate.v1", 0, 0, 0);
    world_start();
    hf_id id = world_trigger("shop.gate.v1", NULL);
    world_await(&gate.entered, 1);
    world_stop();
    assert_int_equal(atomic_load(&gate.told), 100 + HF_CLOSED);
    expect_given_back(id);
}

static void a_second_stop_does_not_wait(void **state)
{
    struct gate gate = { 0 };
    (void)state;
    world_handle("shop.gate.v1", leave_when_told, &gate);
    world_define("shop.gate.v1", 0, 0, 0);
    world_start();
    hf_id id = world_trigger("shop.gate.v1", NULL);
    world_await(&gate.entered, 1);
    world_ask_stop();
    world_sleep(HF_MILLISECONDS(50));
    assert_int_equal(atomic_load(&gate.told), 0);
    world_stop();
    assert_int_equal(atomic_load(&gate.told), 100 + HF_CLOSED);
    expect_given_back(id);
}

static void a_handler_that_never_ends_is_left_alone_and_cannot_write(void **state)
{
    static struct gate gate; /* outlives the test */
    hf_worker_options options = world_options();
    (void)state;
    atomic_store(&gate.entered, 0);
    atomic_store(&gate.open, 0);
    atomic_store(&gate.told, 0);
    options.stop_limit = HF_MILLISECONDS(50);
    world_hire(&options);
    world_handle("shop.gate.v1", wait_at_gate, &gate);
    world_define("shop.gate.v1", 0, 0, 0);
    world_start();
    hf_id id = world_trigger("shop.gate.v1", NULL);
    world_await(&gate.entered, 1);
    world_stop();
    expect_given_back(id);
    atomic_store(&gate.open, 1);
    world_await(&gate.told, 100);
    world_sleep(HF_MILLISECONDS(100));
    expect_given_back(id);
}

static void a_worker_stopped_before_it_runs_ends_at_once(void **state)
{
    atomic_int calls = 0;
    (void)state;
    world_handle("shop.note.v1", note, &calls);
    world_ask_stop();
    world_start();
    world_join();
}

static void a_worker_without_handlers_is_refused(void **state)
{
    hf_error err;
    (void)state;
    world_hire(NULL);
    assert_int_equal(hf_worker_run(world.worker, &err), HF_INVALID);
    assert_int_equal(hf_worker_handle(world.worker, "holdfast.mine", note, NULL, &err), HF_INVALID);
    assert_int_equal(hf_worker_handle(world.worker, "no good", note, NULL, &err), HF_INVALID);
    assert_ok(hf_worker_handle(world.worker, "a.*", note, NULL, &err));
    assert_int_equal(hf_worker_handle(world.worker, "a.*", note, NULL, &err), HF_INVALID);
    hf_worker_free(world.worker);
    world.worker = NULL;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)
        TEST(a_sleeping_worker_is_woken_by_a_trigger),
        TEST(a_sleeping_worker_is_woken_from_another_connection),
        TEST(a_delayed_run_begins_on_time),
        TEST(a_new_workflow_under_a_served_prefix_is_picked_up),
        TEST(an_exact_name_serves_no_longer_one),
        TEST(a_resumed_workflow_is_worked_on_again),
        TEST(what_was_claimed_of_a_tenant_that_cannot_be_learned_of_is_not_forgotten),
        TEST(the_urgent_go_first),
        TEST(many_short_runs_are_all_done_once),
        TEST(a_worker_is_listed_while_it_works),
        TEST(a_stop_lets_handlers_finish_and_gives_back_the_rest),
        TEST(nothing_waits_behind_handlers_of_which_nobody_knows_how_long_they_take),
        TEST(what_was_claimed_ahead_goes_back_when_the_handlers_before_it_do_not_end),
        TEST(what_had_failed_before_stays_behind_the_handlers_that_do_not_end),
        TEST(a_cancel_reaches_the_handler_before_the_next_heartbeat),
        TEST(a_cancel_by_another_process_reaches_the_handler_before_the_next_heartbeat),
        TEST(a_handler_is_told_when_the_stop_limit_passes),
        TEST(a_second_stop_does_not_wait),
        TEST(a_handler_that_never_ends_is_left_alone_and_cannot_write),
        TEST(a_worker_stopped_before_it_runs_ends_at_once),
        TEST(a_worker_without_handlers_is_refused),
    };
    return world_run_tests(argc, argv, "worker sleep", tests, sizeof tests / sizeof *tests);
}
