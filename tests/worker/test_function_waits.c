/* Durable functions that wait: sleep, signals, pause, children. C2, C3.
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
enum { MANY = 3000, SLEEPERS = 500 };
#else
enum { MANY = 10000, SLEEPERS = 3000 };
#endif

#define WORKFLOW "shop.order.v1"
#define CHILD "shop.part.v1"

static struct {
    atomic_int calls;
    atomic_int works;
    atomic_int parts;
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

static hf_run *await_status(hf_id id, hf_status status)
{
    for (;;) {
        hf_run *run = world_get(id);
        if (run->status == status)
            return run;
        if (hf_status_finished(run->status))
            fail_msg("%s: %s", hf_status_name(run->status), run->last_error);
        hf_run_free(run);
        world_sleep(HF_MILLISECONDS(5));
    }
}

static void send(hf_id id, const char *name, const char *payload, const char *signal_id)
{
    hf_signal_spec spec = HF_SIGNAL_INIT;
    spec.name = name;
    spec.payload = payload;
    spec.id = signal_id;
    bool duplicate;
    assert_ok(hf_signal(world.client, id, &spec, &duplicate, &world.error));
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
    hf_run *run = await_status(id, HF_WAITING);
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
    hf_run_free(await_status(id, HF_WAITING));
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
    hf_run_free(await_status(begin(sleeps_long), HF_WAITING));
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
        hf_run_free(await_status(out[i].id, HF_WAITING));
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
    hf_run *run = await_status(id, HF_WAITING);
    assert_string_equal(run->waiting_kind, "signal");
    hf_run_free(run);
    send(id, "gossip", "0", NULL);
    send(id, "approval", "{\"by\":\"ann\"}", "a");
    send(id, "approval", "{\"by\":\"eve\"}", "a"); /* a duplicate */
    send(id, "approval", "\"bob\"", "b");
    world_expect_result(id, "[{\"by\":\"ann\"},\"bob\"]");
}

static void a_signal_sent_before_the_wait_is_not_lost(void **state)
{
    (void)state;
    memset(&scene, 0, sizeof scene);
    world_define(WORKFLOW, 3, 0, 0);
    hf_id id = world_trigger(WORKFLOW, "{}");
    send(id, "approval", "1", NULL);
    send(id, "approval", "2", NULL);
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
    send(id, "approval", "1", NULL);
    send(id, "approval", "2", NULL);
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
    send(id, "approval", "\"late\"", NULL); /* for the second wait, not the first */
    send(id, "go", "null", NULL);
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
    hf_run *run = await_status(id, HF_WAITING);
    assert_string_equal(run->current_step, "go");
    hf_run_free(run);
    send(id, "go", "1", NULL);
    for (bool asleep = false; !asleep; world_sleep(HF_MILLISECONDS(5))) {
        run = await_status(id, HF_WAITING);
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
    hf_run *run = await_status(id, HF_PAUSED);
    assert_string_equal(run->waiting_kind, "pause");
    hf_run_free(run);
    send(id, "gossip", "0", NULL); /* does not resume it */
    world_sleep(HF_MILLISECONDS(100));
    world_expect(world_trigger(WORKFLOW, "\"short\""), HF_SUCCEEDED);
    hf_run_free(await_status(id, HF_PAUSED));
    assert_ok(hf_change_run(world.client, id, HF_RESUME, &change, NULL));
    world_expect_result(id, "\"looked\"");
}

static void a_pause_ends_by_itself_at_its_time(void **state)
{
    (void)state;
    begin(asks_a_person);
    world_expect_result(world_trigger(WORKFLOW, "\"short\""), "\"looked\"");
}

/* ---- Children ---- */

static hf_code part(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    char result[64];
    (void)err;
    (void)arg;
    atomic_fetch_add(&scene.parts, 1);
    if (strcmp(input, "13") == 0)
        return HF_PERMANENT;
    if (strcmp(input, "99") == 0)
        hf_try(hf_sleep(ctx, "long", HF_HOURS(1)));
    bool held = strcmp(input, "97") == 0 || strcmp(input, "96") == 0;
    while (held && !atomic_load(&scene.works))
        world_sleep(HF_MILLISECONDS(2));
    if (strcmp(input, "96") == 0)
        return HF_PERMANENT;
    snprintf(result, sizeof result, "{\"got\":%s}", input);
    return hf_return(ctx, result);
}

static hf_code start_parts(hf_ctx *ctx, const int *inputs, size_t count, hf_id *ids)
{
    hf_trigger_spec specs[8];
    char texts[8][16];
    for (size_t i = 0; i < count; i++) {
        snprintf(texts[i], sizeof texts[i], "%d", inputs[i]);
        specs[i] = (hf_trigger_spec)HF_TRIGGER_INIT;
        specs[i].workflow = CHILD;
        specs[i].input = texts[i];
    }
    return hf_children_start(ctx, "parts", specs, count, ids);
}

static void set_up_family(hf_handler parent)
{
    memset(&scene, 0, sizeof scene);
    world_handle(CHILD, part, NULL);
    world_define(CHILD, 1, 0, 0);
    world_handle(WORKFLOW, parent, NULL);
    world_define(WORKFLOW, 3, HF_MILLISECONDS(1), 0);
    world_start();
}

static hf_id begin_family(hf_handler parent)
{
    set_up_family(parent);
    return world_trigger(WORKFLOW, "{}");
}

static hf_code waits_for_all(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    hf_id ids[3];
    hf_child_end ends[3];
    char result[400];
    (void)input;
    (void)err;
    (void)arg;
    atomic_fetch_add(&scene.calls, 1);
    hf_try(start_parts(ctx, (int[]){ 1, 13, 3 }, 3, ids));
    hf_try(hf_children_wait(ctx, "all", ids, 3, HF_WAIT_ALL, 0, ends));
    hf_step step;
    if (hf_step_begin(ctx, "sum", &step)) {
        atomic_fetch_add(&scene.works, 1);
        hf_step_done(&step, NULL);
    }
    if (atomic_load(&scene.hold) == 0) { /* once more, from memory */
        atomic_store(&scene.hold, 1);
        return HF_RETRY;
    }
    assert_non_null(ends[1].error);
    snprintf(result, sizeof result, "[%s,\"%s\",%s]", ends[0].result,
             hf_status_name(ends[1].status), ends[2].result);
    return hf_return(ctx, result);
}

static void all_children_come_back_with_their_results(void **state)
{
    (void)state;
    hf_id id = begin_family(waits_for_all);
    world_expect_result(id, "[{\"got\":1},\"failed\",{\"got\":3}]");
    assert_int_equal(atomic_load(&scene.parts), 3);
    assert_int_equal(atomic_load(&scene.works), 1);
}

static hf_code waits_for_any(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    hf_id ids[2];
    hf_child_end ends[2];
    (void)input;
    (void)err;
    (void)arg;
    hf_try(start_parts(ctx, (int[]){ 99, 7 }, 2, ids));
    hf_try(hf_children_wait(ctx, "any", ids, 2, HF_WAIT_ANY, 0, ends));
    assert_false(ends[0].ended);
    return hf_return(ctx, ends[1].result);
}

static void one_child_is_enough_for_any(void **state)
{
    (void)state;
    world_expect_result(begin_family(waits_for_any), "{\"got\":7}");
}

static hf_code waits_for_any_then_all(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    hf_id ids[3];
    hf_child_end ends[3];
    char result[200];
    (void)input;
    (void)err;
    (void)arg;
    hf_try(start_parts(ctx, (int[]){ 7, 8, 9 }, 3, ids));
    hf_try(hf_children_wait(ctx, "any", ids, 3, HF_WAIT_ANY, 0, ends));
    hf_try(hf_children_wait(ctx, "all", ids, 3, HF_WAIT_ALL, 0, ends));
    hf_try(hf_sleep(ctx, "nap", HF_MILLISECONDS(1)));
    snprintf(result, sizeof result, "[%s,%s,%s]", ends[0].result, ends[1].result, ends[2].result);
    return hf_return(ctx, result);
}

static void a_child_that_has_ended_is_ended_for_later_waits(void **state)
{
    (void)state;
    world_expect_result(begin_family(waits_for_any_then_all),
                        "[{\"got\":7},{\"got\":8},{\"got\":9}]");
}

static hf_code waits_for_all_then_a_note(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    hf_id ids[2];
    hf_child_end ends[2];
    const char *note;
    (void)input;
    (void)err;
    (void)arg;
    hf_try(start_parts(ctx, (int[]){ 7, 97 }, 2, ids));
    hf_try(hf_children_wait(ctx, "all", ids, 2, HF_WAIT_ALL, 0, ends));
    hf_try(hf_sleep(ctx, "nap", HF_MILLISECONDS(1)));
    hf_try(hf_wait_signal(ctx, "note", 0, &note));
    return hf_return(ctx, note);
}

static void a_signal_between_the_ends_of_children_stays_in_the_mailbox(void **state)
{
    (void)state;
    hf_id id = begin_family(waits_for_all_then_a_note);
    for (int missing = 2; missing != 1; world_sleep(HF_MILLISECONDS(2))) {
        hf_run *run = world_get(id);
        missing = run->status == HF_WAITING ? run->wait_count : 2;
        hf_run_free(run);
    }
    send(id, "note", "5", "note-1");
    atomic_store(&scene.works, 1);
    world_expect_result(id, "5");
}

static hf_code wait_for_one_and(hf_ctx *ctx, const hf_id *other)
{
    hf_id ids[2];
    hf_child_end ends[2];
    hf_try(start_parts(ctx, (int[]){ 7 }, 1, ids));
    ids[1] = other ? *other : ids[0];
    hf_try(hf_children_wait(ctx, "both", ids, 2, HF_WAIT_ALL, 0, ends));
    return HF_OK;
}

static hf_code waits_for_one_twice(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)input;
    (void)err;
    (void)arg;
    return wait_for_one_and(ctx, NULL);
}

static hf_code waits_for_a_stranger(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)input;
    (void)err;
    (void)arg;
    return wait_for_one_and(ctx, &(hf_id){ .bytes = { 0xff } });
}

static void expect_refused(hf_handler handler, const char *why)
{
    hf_run *run = world_wait(begin_family(handler));
    assert_int_equal(run->status, HF_FAILED);
    assert_non_null(strstr(run->last_error, why));
    hf_run_free(run);
}

static void one_child_cannot_be_waited_for_twice_at_once(void **state)
{
    (void)state;
    expect_refused(waits_for_one_twice, "\"both\" waits for one child twice");
}

static void a_run_that_is_no_child_is_not_waited_for(void **state)
{
    (void)state;
    expect_refused(waits_for_a_stranger, "\"both\" waits for ff000000-0000-0000-0000-000000000000, "
                                         "which this run has not started");
}

static hf_code has_no_children(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)input;
    (void)err;
    (void)arg;
    hf_try(hf_children_start(ctx, "none", NULL, 0, NULL));
    hf_try(hf_children_wait(ctx, "all", NULL, 0, HF_WAIT_ALL, 0, NULL));
    hf_try(hf_children_wait(ctx, "any", NULL, 0, HF_WAIT_ANY, 0, NULL));
    hf_try(hf_sleep(ctx, "nap", HF_MILLISECONDS(1)));
    return hf_children_start(ctx, "some", NULL, 3, NULL) == HF_INVALID ? hf_return(ctx, "0")
                                                                       : HF_PERMANENT;
}

static void no_children_are_no_wait(void **state)
{
    (void)state;
    world_expect_result(begin(has_no_children), "0");
}

static hf_code fails_fast(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    hf_id ids[2];
    hf_child_end ends[2];
    (void)input;
    (void)err;
    (void)arg;
    hf_try(start_parts(ctx, (int[]){ 99, 13 }, 2, ids));
    hf_try(hf_children_wait(ctx, "fast", ids, 2, HF_WAIT_ALL_OR_FAILURE, 0, ends));
    assert_false(ends[0].ended);
    return hf_return(ctx, ends[1].status == HF_FAILED ? "\"failed\"" : "\"fine\"");
}

static void a_failure_ends_the_wait_if_asked(void **state)
{
    (void)state;
    world_expect_result(begin_family(fails_fast), "\"failed\"");
}

static hf_code fails_fast_again(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    hf_id ids[3];
    hf_child_end ends[2];
    const char *payload;
    (void)input;
    (void)err;
    (void)arg;
    hf_try(start_parts(ctx, (int[]){ 13, 96, 99 }, 3, ids));
    hf_try(hf_wait_signal(ctx, "go", 0, &payload));
    hf_try(hf_children_wait(ctx, "rest", ids + 1, 2, HF_WAIT_ALL_OR_FAILURE, 0, ends));
    return hf_return(ctx, ends[0].status == HF_FAILED && !ends[1].ended ? "\"failed\"" : "0");
}

static int failed_children_of(hf_id id)
{
    hf_filter filter = HF_FILTER_INIT;
    hf_runs *runs = NULL;
    filter.parent = id;
    int failed = 0;
    assert_ok(hf_list(world.client, &runs, &filter, NULL));
    for (size_t i = 0; i < runs->count; i++)
        failed += runs->items[i].status == HF_FAILED;
    hf_runs_free(runs);
    return failed;
}

static bool waits_for_children(hf_id id)
{
    hf_run *run = world_get(id);
    bool waits = run->status == HF_WAITING && strcmp(run->waiting_kind, "children") == 0;
    hf_run_free(run);
    return waits;
}

static void a_failure_ends_the_wait_where_that_of_another_lies_in_the_mailbox(void **state)
{
    (void)state;
    hf_id id = begin_family(fails_fast_again);
    while (failed_children_of(id) == 0)
        world_sleep(HF_MILLISECONDS(2));
    send(id, "go", "1", NULL);
    while (!waits_for_children(id))
        world_sleep(HF_MILLISECONDS(2));
    atomic_store(&scene.works, 1);
    world_expect_result(id, "\"failed\"");
}

static hf_code waits_in_vain(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    hf_id ids[2];
    hf_child_end ends[2];
    (void)input;
    (void)err;
    (void)arg;
    hf_try(start_parts(ctx, (int[]){ 99, 5 }, 2, ids));
    hf_code code = hf_children_wait(ctx, "all", ids, 2, HF_WAIT_ALL, HF_MILLISECONDS(300), ends);
    if (code != HF_TIMEOUT)
        return code;
    return hf_return(ctx, !ends[0].ended && ends[1].ended ? "\"one\"" : "\"?\"");
}

static void waiting_for_children_has_a_limit(void **state)
{
    (void)state;
    world_expect_result(begin_family(waits_in_vain), "\"one\"");
}

static void cancelling_the_parent_cancels_its_children(void **state)
{
    hf_change change = HF_CHANGE_INIT;
    hf_filter filter = HF_FILTER_INIT;
    (void)state;
    hf_id id = begin_family(waits_in_vain);
    world_await(&scene.parts, 2);
    hf_run_free(await_status(id, HF_WAITING));
    assert_ok(hf_change_run(world.client, id, HF_CANCEL, &change, NULL));
    filter.parent = id;
    for (int unfinished = 1; unfinished;) {
        hf_runs *runs = NULL;
        assert_ok(hf_list(world.client, &runs, &filter, NULL));
        assert_int_equal(runs->count, 2);
        unfinished = 0;
        for (size_t i = 0; i < runs->count; i++)
            unfinished += !hf_status_finished(runs->items[i].status);
        hf_runs_free(runs);
        world_sleep(HF_MILLISECONDS(5));
    }
    world_expect(id, HF_CANCELLED);
}

static hf_code unknown_child(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    hf_id id;
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    (void)input;
    (void)err;
    (void)arg;
    spec.workflow = "nobody.knows.v1";
    hf_code code = hf_child_start(ctx, "child", &spec, &id);
    return code == HF_UNKNOWN_WORKFLOW ? hf_return(ctx, "\"unknown\"") : code;
}

static void a_child_of_an_unknown_workflow_is_the_callers_to_handle(void **state)
{
    (void)state;
    world_expect_result(begin(unknown_child), "\"unknown\"");
}

static hf_code fans_out(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    hf_trigger_spec *specs = calloc(MANY, sizeof *specs);
    hf_id *ids = calloc(MANY, sizeof *ids);
    hf_child_end *ends = calloc(MANY, sizeof *ends);
    char result[64];
    size_t good = 0;
    (void)input;
    (void)err;
    (void)arg;
    atomic_fetch_add(&scene.calls, 1);
    for (size_t i = 0; i < MANY; i++) {
        specs[i] = (hf_trigger_spec)HF_TRIGGER_INIT;
        specs[i].workflow = CHILD;
        specs[i].input = "5";
    }
    hf_code code = hf_children_start(ctx, "fan", specs, MANY, ids);
    if (code == HF_OK)
        code = hf_children_wait(ctx, "all", ids, MANY, HF_WAIT_ALL, 0, ends);
    for (size_t i = 0; code == HF_OK && i < MANY; i++)
        good += ends[i].status == HF_SUCCEEDED && strcmp(ends[i].result, "{\"got\":5}") == 0;
    free(specs);
    free(ids);
    free(ends);
    hf_try(code);
    snprintf(result, sizeof result, "%zu", good);
    return hf_return(ctx, result);
}

static void thousands_of_children_are_one_wait(void **state)
{
    char all[16];
    (void)state;
    snprintf(all, sizeof all, "%d", MANY);
    world_expect_result(begin_family(fans_out), all);
    assert_true(atomic_load(&scene.calls) <= 4); /* not one turn for each */
}

enum { FAMILY = 4003, STARTED = 4000 };

/* Waits for the last three, whose ids it gives. */
static hf_code starts_a_large_family(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    static hf_trigger_spec specs[FAMILY];
    static hf_id ids[FAMILY];
    hf_child_end ends[FAMILY - STARTED];
    char id[HF_ID_TEXT], result[HF_ID_TEXT + 2];
    (void)input, (void)err, (void)arg;
    for (size_t i = 0; i < FAMILY; i++) {
        specs[i] = (hf_trigger_spec)HF_TRIGGER_INIT;
        specs[i].workflow = CHILD;
    }
    hf_try(hf_children_start(ctx, "fan", specs, FAMILY, ids));
    hf_try(hf_children_wait(ctx, "rest", ids + STARTED, FAMILY - STARTED, HF_WAIT_ALL, 0, ends));
    hf_id_format(ends[0].run, id);
    snprintf(result, sizeof result, "\"%s\"", id);
    return hf_return(ctx, result);
}

/* A run whose worker died when it had started the first four thousand of so many. */
static hf_id begin_within_a_family(int count)
{
    char data[200];
    hf_triggered out;
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    hf_new_event line = { .kind = "step", .name = "waiting", .step = "fan", .data = data };
    hf_transition first = { .version = HF_TRANSITION_VERSION, .turn = HF_TURN_RETRY };
    snprintf(data, sizeof data,
             "{\"op\":\"children\",\"output\":{\"first\":\"01890000-0000-7000-8000-000000000000\","
             "\"count\":%d,\"started\":%d}}",
             count, STARTED);
    first.events = &line;
    first.event_count = 1;
    spec.workflow = WORKFLOW;
    set_up_family(starts_a_large_family);
    assert_ok(hf_trigger_with(world.client, &out, &spec, &first, NULL));
    return out.id;
}

static void a_family_that_was_started_in_part_is_completed(void **state)
{
    (void)state;
    world_expect_result(begin_within_a_family(FAMILY), "\"01890000-0000-7000-8000-000000000fa0\"");
    assert_int_equal(atomic_load(&scene.parts), FAMILY - STARTED);
}

static void a_large_family_of_another_size_is_not_what_is_remembered(void **state)
{
    (void)state;
    hf_run *run = world_wait(begin_within_a_family(FAMILY + 1));
    assert_int_equal(run->status, HF_FAILED);
    assert_non_null(strstr(run->last_error, "starts 4003 children where 4004 are remembered"));
    assert_int_equal(atomic_load(&scene.parts), 0);
    hf_run_free(run);
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
        TEST(all_children_come_back_with_their_results),
        TEST(one_child_is_enough_for_any),
        TEST(a_child_that_has_ended_is_ended_for_later_waits),
        TEST(a_signal_between_the_ends_of_children_stays_in_the_mailbox),
        TEST(one_child_cannot_be_waited_for_twice_at_once),
        TEST(a_run_that_is_no_child_is_not_waited_for),
        TEST(no_children_are_no_wait),
        TEST(a_failure_ends_the_wait_if_asked),
        TEST(a_failure_ends_the_wait_where_that_of_another_lies_in_the_mailbox),
        TEST(waiting_for_children_has_a_limit),
        TEST(cancelling_the_parent_cancels_its_children),
        TEST(a_child_of_an_unknown_workflow_is_the_callers_to_handle),
        TEST(thousands_of_children_are_one_wait),
        TEST(a_family_that_was_started_in_part_is_completed),
        TEST(a_large_family_of_another_size_is_not_what_is_remembered),
    };
    return world_run_tests(argc, argv, "function_waits", tests, sizeof tests / sizeof *tests);
}
