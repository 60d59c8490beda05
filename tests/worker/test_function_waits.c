/* Durable functions that wait: sleep, signals, pause. C2.
 * SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/world.h"

#include "support/sanitized.h"
#include "util/clock.h"
#include "worker/worker.h"

#if SANITIZED /* slow */
enum { SLEEPERS = 500 };
#else
enum { SLEEPERS = 3000 };
#endif

#define WORKFLOW "shop.order.v1"

static struct {
    atomic_int calls;
    atomic_int works;
    atomic_int hold;
} scene;

static hf_id begin(hf_handler handler)
{
    memset(&scene, 0, sizeof scene);
    world_handle(WORKFLOW, handler, NULL);
    world_define(WORKFLOW, 3, HF_MILLISECONDS(1), 0);
    world_start();
    return world_trigger(WORKFLOW, "{}");
}

/* ---- Sleep ---- */

#define NAP HF_SECONDS(2) /* a busy machine looks late */

static hf_code sleeper(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    int64_t before, after;
    char result[32];
    (void)input;
    (void)err;
    (void)arg;
    atomic_fetch_add(&scene.calls, 1);
    hf_try(hf_now(ctx, &before));
    hf_try(hf_sleep(ctx, "nap", NAP));
    hf_try(hf_now(ctx, &after));
    snprintf(result, sizeof result, "%s", after - before >= NAP ? "\"rested\"" : "\"too soon\"");
    return hf_return(ctx, result);
}

static void a_sleeping_run_holds_no_thread(void **state)
{
    (void)state;
    hf_id id = begin(sleeper);
    hf_run *run = world_await_status(id, HF_WAITING);
    assert_string_equal(run->waiting_kind, "sleep");
    assert_string_equal(run->current_step, "nap");
    assert_null(run->leased_by);
    hf_run_free(run);
    world_expect_result(id, "\"rested\"");
    assert_int_equal(atomic_load(&scene.calls), 2);
}

static void a_run_sleeps_across_a_restart_of_its_worker(void **state)
{
    hf_worker_options options = world_options();
    (void)state;
    hf_id id = begin(sleeper);
    hf_run_free(world_await_status(id, HF_WAITING));
    world_stop();
    world_hire(&options);
    world_handle(WORKFLOW, sleeper, NULL);
    world_start();
    world_expect_result(id, "\"rested\"");
}

static hf_code naps(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    char name[16];
    (void)input;
    (void)err;
    (void)arg;
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "nap-%d", i);
        hf_try(hf_sleep(ctx, name, HF_MILLISECONDS(1)));
    }
    return hf_return(ctx, "20");
}

static void sleeping_often_costs_no_attempts(void **state)
{
    (void)state;
    hf_id id = begin(naps);
    world_expect_result(id, "20");
    hf_run *run = world_get(id);
    assert_true(run->attempt <= 1);
    hf_run_free(run);
}

static hf_code sleeps_long(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)err;
    (void)arg;
    atomic_fetch_add(&scene.calls, 1);
    if (strcmp(input, "\"stay awake\"") != 0)
        hf_try(hf_sleep(ctx, "long", HF_DAYS(1)));
    return hf_return(ctx, "\"awake\"");
}

static int count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;
    assert_non_null(tasks);
    for (const struct dirent *entry; (entry = readdir(tasks)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

static bool has_empty_hands(void)
{
    hf_worker *worker = world.worker;
    pthread_mutex_lock(&worker->lock);
    bool empty = worker->held_count == 0 && worker->idle_hands == worker->threads;
    pthread_mutex_unlock(&worker->lock);
    return empty;
}

static void await_empty_hands(void)
{
    int64_t until = hf__monotonic_us() + SOON;
    while (!has_empty_hands()) {
        if (hf__monotonic_us() > until)
            fail_msg("something is held");
        world_sleep(HF_MILLISECONDS(1));
    }
}

static void thousands_of_sleeping_runs_hold_neither_threads_nor_turns(void **state)
{
    static hf_trigger_spec specs[SLEEPERS];
    static hf_triggered out[SLEEPERS];
    (void)state;
    hf_run_free(world_await_status(begin(sleeps_long), HF_WAITING));
    int threads = count_threads();
    for (int i = 0; i < SLEEPERS; i++) {
        specs[i] = (hf_trigger_spec)HF_TRIGGER_INIT;
        specs[i].workflow = WORKFLOW;
        specs[i].input = "{}";
    }
    assert_ok(hf_trigger_many(world.client, out, specs, SLEEPERS, NULL));
    world_await(&scene.calls, SLEEPERS + 1);
    await_empty_hands();
    assert_int_equal(count_threads(), threads);
    world_expect_result(world_trigger(WORKFLOW, "\"stay awake\""), "\"awake\"");
    for (int i = 0; i < SLEEPERS; i += SLEEPERS / 10)
        hf_run_free(world_await_status(out[i].id, HF_WAITING));
    assert_int_equal(atomic_load(&scene.calls), SLEEPERS + 2);
}

/* ---- Signals ---- */

static hf_code two_signals(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    const char *first, *second;
    char result[200];
    (void)input;
    (void)err;
    (void)arg;
    atomic_fetch_add(&scene.calls, 1);
    while (atomic_load(&scene.hold))
        world_sleep(HF_MILLISECONDS(2));
    hf_try(hf_wait_signal(ctx, "approval", 0, &first));
    hf_try(hf_wait_signal(ctx, "approval", 0, &second));
    snprintf(result, sizeof result, "[%s,%s]", first, second);
    return hf_return(ctx, result);
}

static void signals_come_in_their_order_and_once_each(void **state)
{
    (void)state;
    hf_id id = begin(two_signals);
    hf_run *run = world_await_status(id, HF_WAITING);
    assert_string_equal(run->waiting_kind, "signal");
    hf_run_free(run);
    world_signal(id, "gossip", "0", NULL);
    world_signal(id, "approval", "{\"by\":\"ann\"}", "a");
    world_signal(id, "approval", "{\"by\":\"eve\"}", "a"); /* a duplicate */
    world_signal(id, "approval", "\"bob\"", "b");
    world_expect_result(id, "[{\"by\":\"ann\"},\"bob\"]");
}

static void a_signal_sent_before_the_wait_is_not_lost(void **state)
{
    (void)state;
    memset(&scene, 0, sizeof scene);
    world_define(WORKFLOW, 3, 0, 0);
    hf_id id = world_trigger(WORKFLOW, "{}");
    world_signal(id, "approval", "1", NULL);
    world_signal(id, "approval", "2", NULL);
    world_handle(WORKFLOW, two_signals, NULL);
    world_start();
    world_expect_result(id, "[1,2]");
    assert_int_equal(atomic_load(&scene.calls), 1);
}

static void a_signal_that_comes_while_it_runs_wakes_it_again(void **state)
{
    (void)state;
    memset(&scene, 0, sizeof scene);
    atomic_store(&scene.hold, 1);
    world_handle(WORKFLOW, two_signals, NULL);
    world_define(WORKFLOW, 3, 0, 0);
    world_start();
    hf_id id = world_trigger(WORKFLOW, "{}");
    world_await(&scene.calls, 1);
    world_signal(id, "approval", "1", NULL);
    world_signal(id, "approval", "2", NULL);
    atomic_store(&scene.hold, 0);
    world_expect_result(id, "[1,2]");
}

static hf_code impatient(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    const char *payload;
    (void)input;
    (void)err;
    (void)arg;
    atomic_fetch_add(&scene.calls, 1);
    hf_code code = hf_wait_signal(ctx, "approval", HF_MILLISECONDS(50), &payload);
    if (code != HF_TIMEOUT)
        return code == HF_OK ? hf_return(ctx, payload) : code;
    hf_try(hf_wait_signal(ctx, "go", 0, &payload));
    code = hf_wait_signal(ctx, "approval", HF_MILLISECONDS(50), &payload);
    hf_try(code);
    return hf_return(ctx, payload);
}

static void a_wait_that_timed_out_stays_so(void **state)
{
    (void)state;
    hf_id id = begin(impatient);
    world_await(&scene.calls, 2);
    world_signal(id, "approval", "\"late\"", NULL); /* for the second wait, not the first */
    world_signal(id, "go", "null", NULL);
    world_expect_result(id, "\"late\"");
}

static hf_code out_of_time(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)input;
    (void)err;
    (void)arg;
    hf_try(hf_sleep(ctx, "back", -HF_HOURS(1)));
    hf_code code = hf_wait_signal(ctx, "approval", -1, NULL);
    if (code != HF_TIMEOUT)
        return HF_PERMANENT;
    hf_try(hf_wait_signal(ctx, "go", INT64_MAX, NULL));
    hf_try(hf_sleep(ctx, "for ever", INT64_MAX));
    return HF_OK;
}

static void times_may_be_past_or_never(void **state)
{
    (void)state;
    hf_id id = begin(out_of_time);
    hf_run *run = world_await_status(id, HF_WAITING);
    assert_string_equal(run->current_step, "go");
    hf_run_free(run);
    world_signal(id, "go", "1", NULL);
    for (bool asleep = false; !asleep; world_sleep(HF_MILLISECONDS(5))) {
        run = world_await_status(id, HF_WAITING);
        asleep = strcmp(run->current_step, "for ever") == 0;
        hf_run_free(run);
    }
}

/* ---- Pause ---- */

static hf_code asks_a_person(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)err;
    (void)arg;
    atomic_fetch_add(&scene.calls, 1);
    hf_try(hf_pause_here(ctx, "look", strstr(input, "short") ? HF_MILLISECONDS(100) : 0));
    return hf_return(ctx, "\"looked\"");
}

static void a_run_that_paused_itself_goes_on_when_resumed(void **state)
{
    hf_change change = HF_CHANGE_INIT;
    (void)state;
    hf_id id = begin(asks_a_person);
    hf_run *run = world_await_status(id, HF_PAUSED);
    assert_string_equal(run->waiting_kind, "pause");
    hf_run_free(run);
    world_signal(id, "gossip", "0", NULL); /* does not resume it */
    world_sleep(HF_MILLISECONDS(100));
    world_expect(world_trigger(WORKFLOW, "\"short\""), HF_SUCCEEDED);
    hf_run_free(world_await_status(id, HF_PAUSED));
    assert_ok(hf_change_run(world.client, id, HF_RESUME, &change, NULL));
    world_expect_result(id, "\"looked\"");
}

static void a_pause_ends_by_itself_at_its_time(void **state)
{
    (void)state;
    begin(asks_a_person);
    world_expect_result(world_trigger(WORKFLOW, "\"short\""), "\"looked\"");
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_sleeping_run_holds_no_thread),
        TEST(a_run_sleeps_across_a_restart_of_its_worker),
        TEST(sleeping_often_costs_no_attempts),
        TEST(thousands_of_sleeping_runs_hold_neither_threads_nor_turns),
        TEST(signals_come_in_their_order_and_once_each),
        TEST(a_signal_sent_before_the_wait_is_not_lost),
        TEST(a_signal_that_comes_while_it_runs_wakes_it_again),
        TEST(a_wait_that_timed_out_stays_so),
        TEST(times_may_be_past_or_never),
        TEST(a_run_that_paused_itself_goes_on_when_resumed),
        TEST(a_pause_ends_by_itself_at_its_time),
    };
    return world_run_tests(argc, argv, "function_waits", tests, sizeof tests / sizeof *tests);
}
