/* Durable functions that ask people. C2.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/world.h"

#define WORKFLOW "shop.refund.v1"

static struct {
    atomic_int calls;
    int64_t timeout;
} scene;

static hf_id begin(hf_handler handler, int64_t timeout)
{
    memset(&scene, 0, sizeof scene);
    scene.timeout = timeout;
    world_handle(WORKFLOW, handler, NULL);
    world_define(WORKFLOW, 3, HF_MILLISECONDS(1), 0);
    world_start();
    return world_trigger(WORKFLOW, "{}");
}

/* The one task of the run in this status, as soon as it is there. */
static hf_task *await_task(hf_id run, const char *status)
{
    hf_task_filter filter = HF_TASK_FILTER_INIT;
    filter.run = run;
    filter.status = status;
    for (;;) {
        hf_task_page *page = NULL;
        hf_task *task = NULL;
        assert_ok(hf_task_list(world.client, &page, &filter, &world.error));
        if (page->count > 0) {
            assert_int_equal(page->count, 1);
            assert_ok(hf_task_get(world.client, &task, page->items[0].id, &world.error));
        }
        hf_task_page_free(page);
        if (task)
            return task;
        world_sleep(HF_MILLISECONDS(5));
    }
}

static void answer(hf_id run, const char *outcome, const char *result)
{
    hf_client *tester = NULL;
    hf_task *task = await_task(run, "open");
    assert_ok(hf_open_as(&tester, world.client, NULL, "tester", &world.error));
    assert_ok(hf_task_complete(tester, task->id, outcome, result, 0, &world.error));
    hf_close(tester);
    hf_task_free(task);
}

/* What follows the id of the task, which is another every time. */
static const char *after_id(const char *json)
{
    return strchr(json, ',');
}

static hf_code asks_twice(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    const char *first, *second;
    char payload[40];
    char result[400];
    (void)input;
    (void)err;
    (void)arg;
    atomic_fetch_add(&scene.calls, 1);
    snprintf(payload, sizeof payload, "{\"amount\":%d}", 7);
    hf_new_task task = { .name = "Refund?",
                         .assignee = "tester",
                         .roles = "[\"boss\"]",
                         .payload = payload,
                         .form = "{}",
                         .due_at = HF_DAYS(30000) };
    hf_try(hf_ask_person(ctx, "approval", &task, 0, &first));
    memset(payload, 'x', sizeof payload);
    hf_try(hf_sleep(ctx, "nap", HF_MILLISECONDS(1)));
    hf_try(hf_ask_person(ctx, "approval", NULL, 0, &second));
    snprintf(result, sizeof result, "[{\"n\":1%s,{\"n\":2%s]", after_id(first), after_id(second));
    return hf_return(ctx, result);
}

static void each_question_is_asked_once_and_gets_its_own_answer(void **state)
{
    hf_signal_spec noise = HF_SIGNAL_INIT;
    (void)state;
    hf_id id = begin(asks_twice, 0);
    hf_task *task = await_task(id, "open");
    assert_string_equal(task->name, "Refund?");
    assert_string_equal(task->assignee, "tester");
    assert_string_equal(task->roles, "[\"boss\"]");
    assert_string_equal(task->payload, "{\"amount\":7}");
    assert_string_equal(task->form, "{}");
    assert_int_equal(task->due_at, HF_DAYS(30000));
    hf_task_free(task);
    hf_run *run = world_get(id);
    assert_string_equal(run->waiting_kind, "task");
    hf_run_free(run);

    noise.name = "gossip"; /* wakes it, and is no answer */
    assert_ok(hf_signal(world.client, id, &noise, NULL, &world.error));
    world_await(&scene.calls, 2);
    answer(id, "yes", "1");
    task = await_task(id, "open");
    assert_string_equal(task->name, "approval");
    hf_task_free(task);
    answer(id, "no", NULL);
    run = world_wait(id);
    assert_string_equal(run->result,
                        "[{\"n\":1,\"outcome\":\"yes\",\"result\":1,\"by\":\"tester\"},"
                        "{\"n\":2,\"outcome\":\"no\",\"result\":null,\"by\":\"tester\"}]");
    hf_run_free(run);
}

static hf_code asks_for_a_while(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    const char *given;
    (void)input;
    (void)err;
    (void)arg;
    hf_code code = hf_ask_person(ctx, "approval", NULL, scene.timeout, &given);
    if (code != HF_TIMEOUT)
        return code == HF_OK ? hf_return(ctx, "\"answered\"") : code;
    hf_try(hf_sleep(ctx, "nap", HF_MILLISECONDS(1)));
    return hf_return(ctx, "\"nobody\"");
}

static void a_question_that_nobody_answers_is_withdrawn(void **state)
{
    (void)state;
    hf_id id = begin(asks_for_a_while, HF_MILLISECONDS(100));
    world_expect_result(id, "\"nobody\"");
    hf_task *task = await_task(id, "cancelled");
    assert_string_equal(task->outcome, "withdrawn");
    hf_task_free(task);
}

static void a_time_that_has_passed_asks_nobody(void **state)
{
    hf_task_page *page = NULL;
    hf_task_filter filter = HF_TASK_FILTER_INIT;
    (void)state;
    filter.run = begin(asks_for_a_while, -1);
    filter.status = "all";
    world_expect_result(filter.run, "\"nobody\"");
    assert_ok(hf_task_list(world.client, &page, &filter, &world.error));
    assert_int_equal(page->count, 0);
    hf_task_page_free(page);
}

static void a_run_that_was_cancelled_and_retried_can_still_be_answered(void **state)
{
    hf_change change = HF_CHANGE_INIT;
    (void)state;
    hf_id id = begin(asks_for_a_while, 0);
    hf_task_free(await_task(id, "open"));
    assert_ok(hf_change_run(world.client, id, HF_CANCEL, &change, &world.error));
    hf_task_free(await_task(id, "cancelled"));
    assert_ok(hf_change_run(world.client, id, HF_RETRY_RUN, &change, &world.error));
    answer(id, "yes", NULL);
    world_expect_result(id, "\"answered\"");
}

static hf_code asks_badly(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)input;
    (void)err;
    (void)arg;
    hf_code code = hf_ask_person(ctx, "approval", &(hf_new_task){ .roles = "boss" }, 0, NULL);
    return code == HF_INVALID ? hf_return(ctx, "\"refused\"") : HF_PERMANENT;
}

static void what_cannot_be_asked_is_told_to_the_caller(void **state)
{
    (void)state;
    world_expect_result(begin(asks_badly, 0), "\"refused\"");
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(each_question_is_asked_once_and_gets_its_own_answer),
        TEST(a_question_that_nobody_answers_is_withdrawn),
        TEST(a_time_that_has_passed_asks_nobody),
        TEST(a_run_that_was_cancelled_and_retried_can_still_be_answered),
        TEST(what_cannot_be_asked_is_told_to_the_caller),
    };
    return world_run_tests(argc, argv, "function_ask", tests, sizeof tests / sizeof *tests);
}
