/* Durable functions that start children and wait for them. C3.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/world.h"

#include "client/measure.h"
#include "support/sanitized.h"
#include "worker/worker.h"

#if SANITIZED /* slow */
enum { MANY = 3000 };
#else
enum { MANY = 10000 };
#endif

#define WORKFLOW "shop.order.v1"
#define CHILD "shop.part.v1"

static struct {
    atomic_int calls;
    atomic_int works;
    atomic_int parts;
    atomic_int hold;
} scene;

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
    world_signal(id, "note", "5", "note-1");
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
    if (hf_children_wait(ctx, "all", NULL, 0, HF_WAIT_ALL, 0, NULL) != HF_INVALID ||
        hf_children_wait(ctx, "any", NULL, 0, HF_WAIT_ANY, 0, NULL) != HF_INVALID)
        return HF_PERMANENT;
    hf_try(hf_sleep(ctx, "nap", HF_MILLISECONDS(1)));
    return hf_children_start(ctx, "some", NULL, 3, NULL) == HF_INVALID ? hf_return(ctx, "0")
                                                                       : HF_PERMANENT;
}

static void a_wait_for_nobody_is_refused(void **state)
{
    (void)state;
    world_expect_result(begin_family(has_no_children), "0");
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
    world_signal(id, "go", "1", NULL);
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
    hf_run_free(world_await_status(id, HF_WAITING));
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
    world_expect_result(begin_family(unknown_child), "\"unknown\"");
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

enum { CROWD = 300 };

/* Whose ends have come together by then: one of them by itself, then all that are left, in one turn. */
static hf_code takes_one_then_all(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    hf_trigger_spec specs[CROWD];
    hf_id ids[CROWD];
    hf_child_end ends[CROWD];
    (void)input, (void)err, (void)arg;
    for (size_t i = 0; i < CROWD; i++) {
        specs[i] = (hf_trigger_spec)HF_TRIGGER_INIT;
        specs[i].workflow = CHILD;
        specs[i].input = "5";
    }
    hf_try(hf_children_start(ctx, "crowd", specs, CROWD, ids));
    hf_try(hf_wait_signal(ctx, "go", 0, NULL));
    hf_try(hf_children_wait(ctx, "one", ids + CROWD / 2, 1, HF_WAIT_ALL, 0, ends));
    hf_try(hf_children_wait(ctx, "all", ids, CROWD, HF_WAIT_ALL, 0, ends));
    for (size_t i = 0; i < CROWD; i++)
        if (strcmp(ends[i].result, "{\"got\":5}") != 0)
            return HF_PERMANENT;
    return hf_return(ctx, "\"all\"");
}

static int64_t mail_left(void)
{
    struct hf__measure *measure;
    int64_t mail = 0;
    assert_int_equal(hf__measure(world.client->engine, world.client->tenant_id, &measure, NULL),
                     HF_OK);
    assert_int_equal(hf__measure_mail(world.client->engine, measure, NULL), HF_OK);
    for (size_t i = 0; i < measure->count; i++)
        mail += measure->items[i].mail;
    hf__measure_free(measure);
    return mail;
}

static void ends_that_came_together_are_taken_one_by_one_and_then_together(void **state)
{
    (void)state;
    hf_id id = begin_family(takes_one_then_all);
    world_await(&scene.parts, CROWD);
    world_sleep(HF_MILLISECONDS(100)); /* for the last ends to be written; nothing depends on it */
    assert_true(mail_left() > 0);
    world_signal(id, "go", NULL, NULL);
    world_expect_result(id, "\"all\"");
    assert_int_equal(mail_left(), 0);
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

/* So that they are soon at work. */
static void the_first_portion_of_a_large_family_is_half_as_large_as_the_others(void **state)
{
    hf_events *events = NULL;
    char told[16] = "";
    (void)state;
    hf_id id = begin_family(starts_a_large_family);
    world_expect(id, HF_SUCCEEDED);
    assert_ok(hf_events_list(world.client, &events, id, 0, 100, NULL));
    for (size_t i = 0; i < events->count; i++) {
        const char *started =
            strstr(events->items[i].data ? events->items[i].data : "", "\"started\":");
        const hf_event *line = &events->items[i];
        if (line->step && strcmp(line->step, "fan") == 0 && started && !*told)
            snprintf(told, sizeof told, "%.4s", started + strlen("\"started\":"));
    }
    assert_string_equal(told, "2000");
    hf_events_free(events);
}

/* A run whose worker died when it had started four thousand of so many. */
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
    hf_run *run = world_await_status(begin_within_a_family(FAMILY + 1), HF_WAITING);
    assert_string_equal(run->waiting_kind, "worker");
    assert_non_null(strstr(run->last_error, "starts 4003 children where 4004 are remembered"));
    assert_int_equal(atomic_load(&scene.parts), 0);
    hf_run_free(run);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(all_children_come_back_with_their_results),
        TEST(one_child_is_enough_for_any),
        TEST(a_child_that_has_ended_is_ended_for_later_waits),
        TEST(a_signal_between_the_ends_of_children_stays_in_the_mailbox),
        TEST(one_child_cannot_be_waited_for_twice_at_once),
        TEST(a_run_that_is_no_child_is_not_waited_for),
        TEST(a_wait_for_nobody_is_refused),
        TEST(a_failure_ends_the_wait_if_asked),
        TEST(a_failure_ends_the_wait_where_that_of_another_lies_in_the_mailbox),
        TEST(waiting_for_children_has_a_limit),
        TEST(cancelling_the_parent_cancels_its_children),
        TEST(a_child_of_an_unknown_workflow_is_the_callers_to_handle),
        TEST(thousands_of_children_are_one_wait),
        TEST(ends_that_came_together_are_taken_one_by_one_and_then_together),
        TEST(the_first_portion_of_a_large_family_is_half_as_large_as_the_others),
        TEST(a_family_that_was_started_in_part_is_completed),
        TEST(a_large_family_of_another_size_is_not_what_is_remembered),
    };
    return world_run_tests(argc, argv, "function_children", tests, sizeof tests / sizeof *tests);
}
