/* Handlers that do not come back although their step or their run is over: they keep neither the run nor a thread. B2, B5.
 * SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/worker.h"
#include "worker/world.h"

#define HANGS "stuck.hangs.v1"
#define WORKS "stuck.works.v1"

static struct {
    atomic_int hanging;   /* handlers that hang */
    atomic_bool released; /* they may come back */
    atomic_int came_back;
    atomic_int answer;     /* of a call that one made then */
    atomic_int lost, back; /* threads, as the observer hears */
    char code[64];
} scene;

static hf_worker_observer world_observer;

static void observe(const hf_worker_event *event, void *arg)
{
    world_observer(event, arg);
    if (event->kind == HF_WORKER_THREAD_LOST)
        atomic_fetch_add(&scene.lost, 1);
    if (event->kind == HF_WORKER_THREAD_BACK)
        atomic_fetch_add(&scene.back, 1);
}

static void hang(void)
{
    atomic_fetch_add(&scene.hanging, 1);
    while (!atomic_load(&scene.released))
        world_sleep(HF_MILLISECONDS(2));
}

/* Hangs in the first call that finds the step open. */
static hf_code hang_in_a_step(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    const int *max_attempts = arg;
    hf_step_options options = HF_STEP_OPTIONS_INIT;
    hf_step step;
    (void)input;
    options.timeout = HF_MILLISECONDS(20);
    options.retry_base = HF_MILLISECONDS(1);
    options.max_attempts = *max_attempts;
    if (hf_step_begin_with(ctx, "ask", &options, &step)) {
        if (hf_step_attempt(&step) > 1)
            return hf_step_done(&step, NULL) == HF_OK ? hf_return(ctx, "\"second\"") : HF_RETRY;
        hang();
        atomic_store(&scene.answer, hf_step_done(&step, "1"));
        atomic_fetch_add(&scene.came_back, 1);
        return hf_return(ctx, "\"first\"");
    }
    hf_code code = hf_step_result(&step, err);
    if (code == HF_HANDLER_FAILED) {
        snprintf(scene.code, sizeof scene.code, "%s", hf_step_error_code(&step));
        return hf_return(ctx, "\"late\"");
    }
    return code;
}

static hf_code hang_between_steps(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)input;
    (void)err;
    (void)arg;
    hang();
    atomic_store(&scene.answer, hf_progress(ctx, 50, NULL));
    atomic_fetch_add(&scene.came_back, 1);
    return hf_return(ctx, "\"hung\"");
}

static hf_code work(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)err;
    (void)arg;
    return hf_return(ctx, input);
}

/* One thread, which is lost to the first run. */
static void start(hf_handler handler, void *arg)
{
    hf_worker_options options = world_options();
    memset(&scene, 0, sizeof scene);
    options.threads = 1;
    world_observer = options.observer;
    options.observer = observe;
    options.stop_limit = HF_HOURS(1);
    world_hire(&options);
    world.worker->step_grace = HF_MILLISECONDS(5);
    world.worker->lost_grace = HF_MILLISECONDS(20);
    world_handle(HANGS, handler, arg);
    world_handle(WORKS, work, NULL);
    world_define(HANGS, 3, HF_MILLISECONDS(1), 0);
    world_define(WORKS, 1, 0, 0);
    world_start();
}

static int stuck(void)
{
    pthread_mutex_lock(&world.worker->lock);
    int count = world.worker->abandoned;
    pthread_mutex_unlock(&world.worker->lock);
    return count;
}

static int threads(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    while (readdir(tasks))
        count++;
    closedir(tasks);
    return count;
}

/* Whoever hangs comes back, and changes nothing. */
static void release(void)
{
    int hanging = atomic_load(&scene.hanging);
    atomic_store(&scene.released, true);
    world_await(&scene.came_back, hanging);
    world_await(&scene.back, hanging);
    for (int64_t waited = 0; stuck() > 0 && waited < SOON; waited += HF_MILLISECONDS(2))
        world_sleep(HF_MILLISECONDS(2));
    assert_int_equal(stuck(), 0);
    assert_int_not_equal(atomic_load(&scene.answer), HF_OK);
}

static void a_step_past_its_limit_fails_although_its_handler_hangs(void **state)
{
    int attempts = 2;
    (void)state;
    start(hang_in_a_step, &attempts);
    hf_id id = world_trigger(HANGS, NULL);
    world_expect_result(id, "\"second\""); /* by the thread that took the place of the first */
    assert_int_equal(world_count_events(id, "step", "waiting"), 1);
    assert_int_equal(stuck(), 1);
    assert_int_equal(atomic_load(&scene.lost), 1);
    release();
    hf_run *run = world_get(id);
    assert_string_equal(run->result, "\"second\"");
    hf_run_free(run);
    assert_int_equal(world_count_events(id, "step", NULL), 2);
    world_expect_result(world_trigger(WORKS, "7"), "7");
}

static void a_step_out_of_attempts_is_told_to_the_next_replay(void **state)
{
    int attempts = 1;
    (void)state;
    start(hang_in_a_step, &attempts);
    hf_id id = world_trigger(HANGS, NULL);
    world_expect_result(id, "\"late\"");
    assert_string_equal(scene.code, "timeout");
    assert_int_equal(world_count_events(id, "step", "failed"), 1);
    release();
}

static void a_cancelled_run_gives_its_thread_back_although_its_handler_hangs(void **state)
{
    (void)state;
    start(hang_between_steps, NULL);
    hf_id id = world_trigger(HANGS, NULL);
    world_await(&scene.hanging, 1);
    assert_ok(hf_change_run(world.client, id, HF_CANCEL, NULL, NULL));
    world_expect_result(world_trigger(WORKS, "7"), "7");
    world_expect(id, HF_CANCELLED);
    release();
    world_expect_result(world_trigger(WORKS, "8"), "8");
}

static void a_run_past_its_deadline_fails_although_its_handler_hangs(void **state)
{
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    (void)state;
    start(hang_between_steps, NULL);
    spec.workflow = HANGS;
    spec.timeout = HF_MILLISECONDS(300);
    hf_run *run = world_wait(world_trigger_spec(&spec));
    assert_int_equal(run->status, HF_FAILED);
    assert_string_equal(run->error_code, "deadline_exceeded");
    hf_run_free(run);
    assert_int_equal(atomic_load(&scene.hanging), 1);
    world_expect_result(world_trigger(WORKS, "7"), "7");
    release();
}

static void a_worker_stops_although_a_thread_of_it_hangs(void **state)
{
    int attempts = 1;
    (void)state;
    start(hang_in_a_step, &attempts);
    world_expect_result(world_trigger(HANGS, NULL), "\"late\"");
    world_stop(); /* well before its limit of an hour */
    int hung = threads();
    atomic_store(&scene.released, true);
    world_await(&scene.came_back, 1);
    assert_int_not_equal(atomic_load(&scene.answer), HF_OK);
    for (int64_t waited = 0; threads() == hung && waited < SOON; waited += HF_MILLISECONDS(2))
        world_sleep(HF_MILLISECONDS(2));
    assert_true(threads() < hung);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)
        TEST(a_step_past_its_limit_fails_although_its_handler_hangs),
        TEST(a_step_out_of_attempts_is_told_to_the_next_replay),
        TEST(a_cancelled_run_gives_its_thread_back_although_its_handler_hangs),
        TEST(a_run_past_its_deadline_fails_although_its_handler_hangs),
        TEST(a_worker_stops_although_a_thread_of_it_hangs),
    };
    return world_run_tests(argc, argv, "worker stuck", tests, sizeof tests / sizeof *tests);
}
