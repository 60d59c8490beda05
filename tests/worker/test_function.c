/* Durable functions: what is remembered, what is tried again, what does not match. C1, C5. A11.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/gate.h"
#include "worker/world.h"

#define WORKFLOW "shop.order.v1"

/* What the handlers of a test share. */
struct scene {
    atomic_int calls;
    atomic_int works[4];
    atomic_int crashes; /* so many calls fail after the first step */
    atomic_int code;    /* which version of the code it is */
    char seen[8][600];
};

static struct scene scene;

static void clear(void)
{
    memset(&scene, 0, sizeof scene);
}

static void note(int slot, const char *text)
{
    snprintf(scene.seen[slot], sizeof scene.seen[slot], "%s", text ? text : "(null)");
}

static hf_id begin(hf_handler handler)
{
    world_handle(WORKFLOW, handler, NULL);
    world_define(WORKFLOW, 5, HF_MILLISECONDS(1), 0);
    world_start();
    return world_trigger(WORKFLOW, "{\"n\":1}");
}

static void expect_failure(hf_id id, const char *code, const char *words)
{
    hf_run *run = world_wait(id);
    assert_int_equal(run->status, HF_FAILED);
    assert_string_equal(run->error_code, code);
    if (!strstr(run->last_error, words))
        fail_msg("\"%s\" does not say \"%s\"", run->last_error, words);
    hf_run_free(run);
}

/* ---- Steps ---- */

static hf_code two_steps(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    hf_step a, b;
    (void)input;
    (void)err;
    (void)arg;
    atomic_fetch_add(&scene.calls, 1);
    if (hf_step_begin(ctx, "charge", &a)) {
        atomic_fetch_add(&scene.works[0], 1);
        note(0, hf_step_key(&a));
        hf_step_done(&a, "{\"receipt\": 12345678901234567890123, \"x\":1.0}");
    }
    if (atomic_fetch_sub(&scene.crashes, 1) > 0)
        return HF_RETRY;
    if (hf_step_begin(ctx, "ship", &b)) {
        atomic_fetch_add(&scene.works[1], 1);
        hf_step_done(&b, NULL);
    }
    return hf_return(ctx, hf_step_output(&a));
}

static void a_finished_step_returns_what_it_returned(void **state)
{
    (void)state;
    clear();
    atomic_store(&scene.crashes, 2);
    hf_id id = begin(two_steps);
    world_expect_result(id, "{\"receipt\": 12345678901234567890123, \"x\":1.0}");
    assert_int_equal(atomic_load(&scene.calls), 3);
    assert_int_equal(atomic_load(&scene.works[0]), 1);
    assert_int_equal(atomic_load(&scene.works[1]), 1);
    assert_int_equal(world_count_events(id, "step", "succeeded"), 2);
}

static void a_steps_key_names_its_run_and_itself(void **state)
{
    char id_text[HF_ID_TEXT];
    char wanted[100];
    (void)state;
    clear();
    hf_id id = begin(two_steps);
    world_expect(id, HF_SUCCEEDED);
    hf_id_format(id, id_text);
    snprintf(wanted, sizeof wanted, "%s/charge", id_text);
    assert_string_equal(scene.seen[0], wanted);
}

static hf_code loop(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    char result[64] = "";
    (void)input;
    (void)err;
    (void)arg;
    for (int i = 0; i < 3; i++) {
        hf_step step;
        char output[16];
        snprintf(output, sizeof output, "%d", atomic_load(&scene.works[0]));
        if (hf_step_begin(ctx, "page", &step)) {
            atomic_fetch_add(&scene.works[0], 1);
            hf_step_done(&step, output);
        }
        strcat(result, hf_step_output(&step));
    }
    if (atomic_fetch_sub(&scene.crashes, 1) > 0)
        return HF_RETRY;
    return hf_return(ctx, result);
}

static void one_name_may_be_used_again(void **state)
{
    (void)state;
    clear();
    atomic_store(&scene.crashes, 1);
    hf_id id = begin(loop);
    hf_run *run = world_wait(id);
    assert_int_equal(run->status, HF_FAILED); /* 012 is no JSON */
    hf_run_free(run);
    assert_int_equal(atomic_load(&scene.works[0]), 3);
    hf_events *events = NULL;
    assert_ok(hf_events_list(world.client, &events, id, 0, 100, NULL));
    int seen = 0;
    for (size_t i = 0; i < events->count; i++)
        seen += events->items[i].step && strcmp(events->items[i].step, "page#3") == 0;
    hf_events_free(events);
    assert_int_equal(seen, 1);
}

static hf_code misnamed(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    char longest[600];
    const char *const names[] = { NULL, "", "a\nb", "page#2", longest };
    hf_step step;
    (void)err;
    (void)arg;
    memset(longest, 'x', sizeof longest);
    longest[501] = '\0';
    if (hf_step_begin(ctx, names[atoi(input)], &step))
        atomic_fetch_add(&scene.works[0], 1);
    return HF_PERMANENT;
}

static void a_name_that_cannot_be_remembered_begins_nothing(void **state)
{
    static const char *const words[] = { "is empty", "is empty", "control character",
                                         "second use of another", "too long" };
    char input[8];
    (void)state;
    clear();
    begin(misnamed);
    for (int i = 0; i < 5; i++) {
        snprintf(input, sizeof input, "%d", i);
        hf_run *run = world_wait(world_trigger(WORKFLOW, input));
        assert_int_equal(run->status, HF_FAILED);
        if (!strstr(run->last_error, words[i]))
            fail_msg("\"%s\" does not say \"%s\"", run->last_error, words[i]);
        hf_run_free(run);
    }
    assert_int_equal(atomic_load(&scene.works[0]), 0);
}

static hf_code long_winded(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    char name[501];
    hf_step step;
    (void)input;
    (void)err;
    (void)arg;
    memset(name, 'x', sizeof name);
    name[500] = '\0';
    for (int i = 0; i < 2; i++) {
        if (!hf_step_begin(ctx, name, &step))
            return hf_step_result(&step, err);
        note(i, hf_step_key(&step));
        hf_try(hf_step_done(&step, NULL));
    }
    return HF_OK;
}

static void the_key_of_the_longest_name_is_whole(void **state)
{
    (void)state;
    clear();
    world_expect(begin(long_winded), HF_SUCCEEDED);
    assert_int_equal(strlen(scene.seen[0]), 36 + 1 + 500);
    assert_int_equal(strlen(scene.seen[1]), 36 + 1 + 502);
}

static hf_code ends_twice(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    hf_step step;
    (void)input;
    (void)err;
    (void)arg;
    if (hf_step_begin(ctx, "charge", &step)) {
        hf_try(hf_step_done(&step, "1"));
        assert_int_equal(hf_step_done(&step, "2"), HF_PERMANENT);
        assert_int_equal(hf_step_fail(&step, HF_RETRY, "no"), HF_PERMANENT);
    }
    return hf_return(ctx, hf_step_output(&step));
}

static void a_step_that_is_ended_twice_fails_its_run(void **state)
{
    (void)state;
    clear();
    hf_id id = begin(ends_twice);
    expect_failure(id, "broken_rule", "the step \"charge\" has ended already");
    assert_int_equal(world_count_events(id, "step", NULL), 1);
}

static hf_code forgets_to_end(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    hf_step step;
    (void)input;
    (void)err;
    (void)arg;
    if (hf_step_begin(ctx, "charge", &step))
        atomic_fetch_add(&scene.works[0], 1);
    return hf_return(ctx, "\"charged\"");
}

static void a_step_that_was_not_ended_fails_its_run(void **state)
{
    (void)state;
    clear();
    expect_failure(begin(forgets_to_end), "not_awaited",
                   "the handler ended before its step \"charge\" did");
    assert_int_equal(atomic_load(&scene.works[0]), 1);
}

static hf_code leaves_it_to_the_policy(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    hf_step step;
    (void)input;
    (void)err;
    (void)arg;
    if (hf_step_begin(ctx, "charge", &step) && atomic_fetch_sub(&scene.crashes, 1) > 0)
        return HF_RETRY;
    hf_try(hf_step_done(&step, "1"));
    return hf_return(ctx, "1");
}

static void a_failed_attempt_may_leave_its_step_open(void **state)
{
    (void)state;
    clear();
    atomic_store(&scene.crashes, 2);
    world_expect_result(begin(leaves_it_to_the_policy), "1");
}

/* Whatever it is told, it goes on. */
static hf_code goes_on(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    hf_step a, b;
    (void)input;
    (void)err;
    (void)arg;
    if (hf_step_begin(ctx, "outer", &a)) {
        (void)!hf_step_begin(ctx, "inner", &b);
        hf_step_done(&a, "1");
    }
    (void)!hf_fail_with(ctx, "mine", "{\"other\": 1}");
    return hf_return(ctx, "1");
}

static void a_broken_rule_fails_the_run_whatever_the_handler_does(void **state)
{
    (void)state;
    clear();
    hf_id id = begin(goes_on);
    expect_failure(id, "calls_overlap", "before the step \"outer\" ended");
    hf_run *run = world_get(id);
    assert_int_equal(run->attempt, 1); /* to try it again would be in vain */
    assert_null(strstr(run->error, "other"));
    hf_run_free(run);
}

static hf_code gives_nonsense(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    hf_step step;
    (void)input;
    (void)err;
    (void)arg;
    if (hf_step_begin(ctx, "charge", &step))
        hf_step_done(&step, "{\"paid\": yes}");
    return hf_return(ctx, "1");
}

static void an_output_that_is_refused_and_forgotten_fails_the_run(void **state)
{
    (void)state;
    clear();
    expect_failure(begin(gives_nonsense), "result_refused",
                   "after its work was done: not valid JSON at byte 9: expected a value, found "
                   "\"yes}\"");
}

static hf_code waits_for_nothing(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    int64_t now;
    (void)input;
    (void)err;
    (void)arg;
    hf_try(hf_now(ctx, &now));
    return HF_SUSPENDED;
}

static void a_handler_that_waits_for_nothing_fails_its_run(void **state)
{
    (void)state;
    clear();
    expect_failure(begin(waits_for_nothing), "broken_rule", "none of its calls waits");
}

static hf_code called_by_two(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)input;
    (void)err;
    (void)arg;
    hf_try(hf_progress(ctx, 1, NULL));
    atomic_store(&ctx->gate, HF__GATE_INSIDE); /* as another thread's call does */
    hf_code code = hf_progress(ctx, 50, NULL);
    atomic_store(&ctx->gate, HF__GATE_FREE);
    assert_int_equal(code, HF_PERMANENT);
    return hf_return(ctx, "1");
}

static void calls_of_two_threads_at_once_fail_the_run(void **state)
{
    (void)state;
    clear();
    expect_failure(begin(called_by_two), "calls_overlap", "two threads");
}

/* A thread of the handler's inside a call, until somebody else has come to the gate. */
static void *comes_out_late(void *arg)
{
    hf_ctx *ctx = arg;
    while (!atomic_load(&ctx->overlapped))
        sched_yield();
    atomic_store(&ctx->gate, HF__GATE_FREE);
    return NULL;
}

static pthread_t other_thread;

static hf_code returns_during_a_call(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)input;
    (void)err;
    (void)arg;
    hf_try(hf_progress(ctx, 1, NULL));
    atomic_store(&ctx->gate, HF__GATE_INSIDE);
    assert_int_equal(pthread_create(&other_thread, NULL, comes_out_late, ctx), 0);
    return HF_OK;
}

static void a_handler_that_returns_during_a_call_of_another_thread_fails_the_run(void **state)
{
    (void)state;
    clear();
    expect_failure(begin(returns_during_a_call), "calls_overlap", "two threads");
    pthread_join(other_thread, NULL);
}

static hf_code returns_from_two(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)input;
    (void)err;
    (void)arg;
    atomic_store(&ctx->gate, HF__GATE_INSIDE); /* as another thread's call does */
    hf_code code = hf_return(ctx, "1");
    atomic_store(&ctx->gate, HF__GATE_FREE);
    assert_int_equal(code, HF_PERMANENT);
    return HF_OK;
}

static void a_result_that_was_refused_to_one_of_two_threads_fails_the_run(void **state)
{
    (void)state;
    clear();
    expect_failure(begin(returns_from_two), "calls_overlap", "two threads");
}

static hf_code leaves_one_open(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    hf_step a, b;
    (void)input;
    (void)err;
    (void)arg;
    if (hf_step_begin(ctx, "outer", &a) && hf_step_begin(ctx, "inner", &b))
        atomic_fetch_add(&scene.works[0], 1);
    return HF_OK;
}

static void a_call_inside_a_step_is_refused(void **state)
{
    (void)state;
    clear();
    expect_failure(begin(leaves_one_open), "calls_overlap",
                   "\"inner\" (step) was called before the step \"outer\" ended");
    assert_int_equal(atomic_load(&scene.works[0]), 0);
}

static hf_code tells_nonsense(hf_step *step, hf_error *err, void *arg)
{
    (void)err;
    (void)arg;
    atomic_fetch_add(&scene.works[0], 1);
    return hf_step_done(step, "{nonsense");
}

static hf_code nonsense(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    const char *output;
    (void)input;
    (void)arg;
    hf_try(hf_step_run(ctx, "call", NULL, tells_nonsense, NULL, &output, err));
    return HF_OK;
}

static void an_output_that_is_refused_is_why_the_step_failed(void **state)
{
    (void)state;
    clear();
    expect_failure(begin(nonsense), "result_refused",
                   "its output was refused, after its work was done: not valid JSON at byte 1");
    assert_int_equal(atomic_load(&scene.works[0]),
                     1); /* what was done is not done again for that */
}

/* ---- Policies ---- */

static hf_code flaky(hf_step *step, hf_error *err, void *arg)
{
    (void)arg;
    int call = atomic_fetch_add(&scene.works[0], 1) + 1;
    assert_int_equal(hf_step_attempt(step), call);
    if (call <= atomic_load(&scene.crashes)) {
        snprintf(err->message, sizeof err->message, "no answer %d", call);
        return HF_HANDLER_FAILED;
    }
    return hf_step_done(step, "\"done\"");
}

static hf_code flaky_once(hf_step *step, hf_error *err, void *arg)
{
    (void)arg;
    if (atomic_fetch_add(&scene.works[0], 1) + 1 <= atomic_load(&scene.crashes)) {
        snprintf(err->message, sizeof err->message, "no answer");
        return HF_HANDLER_FAILED;
    }
    return hf_step_done(step, "\"done\"");
}

static hf_code patient(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    hf_step_options options = HF_STEP_OPTIONS_INIT;
    const char *output;
    (void)input;
    (void)arg;
    atomic_fetch_add(&scene.calls, 1);
    options.max_attempts = 3;
    options.retry_base = HF_MILLISECONDS(5);
    hf_code code = hf_step_run(ctx, "call", &options, flaky, NULL, &output, err);
    if (code == HF_HANDLER_FAILED) {
        note(0, err->message);
        return hf_return(ctx, "\"gave up\"");
    }
    hf_try(code);
    return hf_return(ctx, output);
}

static void a_step_is_tried_again_by_its_policy(void **state)
{
    (void)state;
    clear();
    atomic_store(&scene.crashes, 2);
    hf_id id = begin(patient);
    world_expect_result(id, "\"done\"");
    assert_int_equal(atomic_load(&scene.works[0]), 3);
    assert_int_equal(atomic_load(&scene.calls), 3); /* it was suspended between */
    assert_int_equal(world_count_events(id, "step", "waiting"), 2);
}

static void a_step_that_failed_for_good_can_be_handled(void **state)
{
    (void)state;
    clear();
    atomic_store(&scene.crashes, 9);
    hf_id id = begin(patient);
    world_expect_result(id, "\"gave up\"");
    assert_int_equal(atomic_load(&scene.works[0]), 3);
    assert_string_equal(scene.seen[0], "no answer 3");
    assert_int_equal(world_count_events(id, "step", "failed"), 1);
}

/* Lets through what its step came to. */
static hf_code trusting(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    hf_step_options options = HF_STEP_OPTIONS_INIT;
    const char *output;
    (void)input;
    (void)arg;
    atomic_fetch_add(&scene.calls, 1);
    options.retry_base = HF_MILLISECONDS(5);
    hf_try(hf_step_run(ctx, "call", &options, flaky, NULL, &output, err));
    return hf_return(ctx, output);
}

static void a_step_without_a_policy_is_tried_as_often_as_its_run(void **state)
{
    (void)state;
    clear();
    atomic_store(&scene.crashes, 4); /* of the five attempts that the world's workflows give */
    world_expect_result(begin(trusting), "\"done\"");
    assert_int_equal(atomic_load(&scene.works[0]), 5);
}

static void a_failure_that_is_remembered_and_not_handled_fails_the_run_at_once(void **state)
{
    (void)state;
    clear();
    atomic_store(&scene.crashes, 9);
    hf_id id = begin(trusting);
    expect_failure(id, "failed", "no answer 5");
    assert_int_equal(atomic_load(&scene.works[0]), 5);
    assert_int_equal(atomic_load(&scene.calls), 5); /* no pass that only meets the failure again */
    assert_int_equal(world_count_events(id, "lifecycle", "retried"), 0);
}

static hf_code nothing(hf_step *step, hf_error *err, void *arg)
{
    (void)err;
    (void)arg;
    return hf_step_done(step, NULL);
}

static hf_code careless(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    hf_step_options options = HF_STEP_OPTIONS_INIT;
    const char *output;
    (void)input;
    (void)arg;
    options.max_attempts = 1;
    hf_code code = hf_step_run(ctx, "call", &options, flaky_once, NULL, &output, err);
    if (code == HF_SUSPENDED)
        return code;
    hf_try(hf_step_run(ctx, "next", &options, nothing, NULL, &output, err));
    if (atomic_fetch_add(&scene.calls, 1) == 0)
        return HF_HANDLER_FAILED;
    return hf_return(ctx, "\"went on\"");
}

static void a_run_that_handled_a_failure_and_fails_later_is_tried_again(void **state)
{
    (void)state;
    clear();
    atomic_store(&scene.crashes, 9);
    world_expect_result(begin(careless), "\"went on\"");
    assert_int_equal(atomic_load(&scene.calls), 2);
}

/* ---- Errors ---- */

static hf_code declined(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    hf_step_failure failure = HF_STEP_FAILURE_INIT;
    hf_step step;
    (void)input;
    (void)arg;
    int call = atomic_fetch_add(&scene.calls, 1);
    failure.code = HF_PERMANENT;
    failure.error_code = "card_declined";
    failure.message = "the card is declined";
    failure.details = "{\"limit\": 1.50}";
    if (hf_step_begin(ctx, "charge", &step))
        hf_step_fail_with(&step, &failure);
    hf_code code = hf_step_result(&step, err);
    char *seen = scene.seen[call];
    snprintf(seen, sizeof scene.seen[0], "%s %s %s", hf_step_error_code(&step), err->message,
             hf_step_error_details(&step));
    return call < 2 ? HF_RETRY : code;
}

static void a_steps_error_is_remembered_whole(void **state)
{
    (void)state;
    clear();
    hf_id id = begin(declined);
    expect_failure(id, "card_declined", "the card is declined");
    for (int i = 0; i < 3; i++)
        assert_string_equal(scene.seen[i], "card_declined the card is declined {\"limit\": 1.50}");
    hf_run *run = world_get(id);
    assert_string_equal(run->error,
                        "{\"attempt\":3,\"code\":\"card_declined\",\"message\":\"the card "
                        "is declined\",\"step\":\"charge\",\"details\":{\"limit\": 1.50}}");
    hf_run_free(run);
}

static hf_code old_failure(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    hf_step step;
    (void)input;
    (void)arg;
    const hf_step_record old = { .run = hf_ctx_run(ctx),
                                 .run_version = ctx->claimed->run.version,
                                 .worker = ctx->worker->name,
                                 .name = "charge",
                                 .status = "failed",
                                 .data = "{\"op\":\"step\",\"error\":\"no\"}" };
    if (atomic_fetch_add(&scene.calls, 1) == 0)
        return hf_step_save(hf_ctx_client(ctx), &old, err) == HF_OK ? HF_RETRY : HF_PERMANENT;
    (void)!hf_step_begin(ctx, "charge", &step);
    return hf_step_result(&step, err);
}

static void a_failure_of_a_history_without_codes_has_one(void **state)
{
    (void)state;
    clear();
    expect_failure(begin(old_failure), "step_failed", "no");
}

/* Is put off as often as there are crashes, by 10 ms; gives up after one attempt that counts. */
static hf_code busy(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    hf_step_options options = HF_STEP_OPTIONS_INIT;
    hf_step_failure failure = HF_STEP_FAILURE_INIT;
    hf_step step;
    (void)input;
    options.max_attempts = 1;
    if (arg)
        options.retry_after_limit = HF_MILLISECONDS(1);
    failure.code = HF_RETRY;
    failure.error_code = "too_many_requests";
    failure.retry_after = HF_MILLISECONDS(10);
    if (hf_step_begin_with(ctx, "ask", &options, &step)) {
        assert_int_equal(hf_step_attempt(&step), 1);
        atomic_fetch_add(&scene.works[0], 1);
        if (atomic_fetch_sub(&scene.crashes, 1) > 0)
            hf_step_fail_with(&step, &failure);
        else
            hf_step_done(&step, "1");
    }
    hf_try(hf_step_result(&step, err));
    return hf_return(ctx, hf_step_output(&step));
}

static void a_failure_that_names_its_time_uses_up_no_attempt(void **state)
{
    (void)state;
    clear();
    atomic_store(&scene.crashes, 4);
    hf_id id = begin(busy);
    world_expect_result(id, "1");
    assert_int_equal(atomic_load(&scene.works[0]), 5);
    assert_int_equal(world_count_events(id, "step", "waiting"), 4);
}

static void failures_that_name_their_time_count_after_the_limit(void **state)
{
    (void)state;
    clear();
    atomic_store(&scene.crashes, 4);
    world_handle(WORKFLOW, busy, &scene);
    world_define(WORKFLOW, 5, HF_MILLISECONDS(1), 0);
    world_start();
    expect_failure(world_trigger(WORKFLOW, NULL), "too_many_requests", "tried again later");
    assert_int_equal(atomic_load(&scene.works[0]), 1);
}

static hf_code slow(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    hf_step_options options = HF_STEP_OPTIONS_INIT;
    hf_step step;
    (void)input;
    (void)arg;
    options.max_attempts = 1;
    options.timeout = HF_MILLISECONDS(10);
    if (hf_step_begin_with(ctx, "call", &options, &step)) {
        while (hf_step_check(&step) == HF_OK)
            world_sleep(HF_MILLISECONDS(5));
        hf_step_done(&step, "1");
    }
    hf_code code = hf_step_result(&step, err);
    note(0, err->message);
    return code == HF_HANDLER_FAILED ? hf_return(ctx, "\"late\"") : code;
}

static void a_step_past_its_limit_has_failed(void **state)
{
    (void)state;
    clear();
    world_expect_result(begin(slow), "\"late\"");
    assert_non_null(strstr(scene.seen[0], "longer than its limit of 0.01s"));
}

static hf_code gives_up(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    hf_step_options options = HF_STEP_OPTIONS_INIT;
    const char *output;
    (void)input;
    (void)arg;
    options.max_attempts = 1;
    hf_code code = hf_step_run(ctx, "call", &options, flaky_once, NULL, &output, err);
    return code == HF_OK ? hf_return(ctx, output) : code;
}

static void an_operators_retry_forgets_the_failure(void **state)
{
    hf_change change = HF_CHANGE_INIT;
    (void)state;
    clear();
    atomic_store(&scene.crashes, 1);
    hf_id id = begin(gives_up);
    hf_run *run = world_wait(id);
    assert_int_equal(run->status, HF_FAILED);
    assert_int_equal(run->attempt, 1);
    hf_run_free(run);
    assert_int_equal(atomic_load(&scene.works[0]), 1);
    assert_ok(hf_change_run(world.client, id, HF_RETRY_RUN, &change, NULL));
    world_expect_result(id, "\"done\"");
    assert_int_equal(atomic_load(&scene.works[0]), 2);
}

/* ---- Changed code ---- */

static void step(hf_ctx *ctx, const char *name)
{
    hf_step it;
    if (hf_step_begin(ctx, name, &it))
        hf_step_done(&it, NULL);
}

static hf_code changing(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)input;
    (void)err;
    (void)arg;
    int code = atomic_load(&scene.code);
    step(ctx, "first");
    if (code != 3)
        step(ctx, code == 2 ? "renamed" : "second");
    if (atomic_fetch_sub(&scene.crashes, 1) > 0) {
        atomic_store(&scene.code, atomic_load(&scene.works[3]));
        return HF_RETRY;
    }
    return HF_OK;
}

/* Code that does not fit fails the run at once. */
static void be_strict(void)
{
    hf_workflow strict = { .name = WORKFLOW, .fit_within = 0 };
    assert_ok(hf_workflow_put(world.client, &strict, HF_SET_FIT_WITHIN, NULL));
}

static void another_name_is_an_error_that_names_both(void **state)
{
    (void)state;
    clear();
    be_strict();
    atomic_store(&scene.crashes, 1);
    atomic_store(&scene.works[3], 2);
    hf_id id = begin(changing);
    expect_failure(id, "history_mismatch",
                   "\"renamed\" (step) was called where \"second\" (step) is remembered");
    assert_int_equal(world_count_events(id, "step", NULL), 2);
}

static void a_handler_that_ends_too_early_is_noticed(void **state)
{
    (void)state;
    clear();
    be_strict();
    atomic_store(&scene.crashes, 1);
    atomic_store(&scene.works[3], 3);
    expect_failure(begin(changing), "history_mismatch", "ended where \"second\" (step)");
}

static void code_that_does_not_fit_leaves_the_run_to_code_that_does(void **state)
{
    (void)state;
    clear();
    atomic_store(&scene.crashes, 1);
    atomic_store(&scene.works[3], 2);
    hf_id id = begin(changing);
    hf_run *run = world_await_status(id, HF_WAITING);
    assert_string_equal(run->waiting_kind, "worker");
    assert_non_null(strstr(run->last_error, "where \"second\" (step) is remembered"));
    hf_run_free(run);
    atomic_store(&scene.code, 0); /* the right code is back */
    world_expect(id, HF_SUCCEEDED);
    assert_int_equal(world_count_events(id, "step", NULL), 2);
}

static hf_code versioned(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    int version = 0;
    (void)input;
    (void)err;
    (void)arg;
    step(ctx, "first");
    if (atomic_load(&scene.code)) {
        hf_try(hf_version(ctx, "ship-by-rail", 2, &version));
        atomic_store(&scene.works[0], version);
    }
    step(ctx, version >= 2 ? "rail" : "road");
    if (atomic_fetch_sub(&scene.crashes, 1) > 0) {
        atomic_store(&scene.code, 1);
        return HF_RETRY;
    }
    return HF_OK;
}

static void old_runs_keep_the_old_way_and_new_ones_take_the_new(void **state)
{
    (void)state;
    clear();
    atomic_store(&scene.crashes, 1);
    world_expect(begin(versioned), HF_SUCCEEDED);
    assert_int_equal(atomic_load(&scene.works[0]), 0);
    atomic_store(&scene.crashes, 1); /* the version itself is remembered */
    world_expect(world_trigger(WORKFLOW, "{}"), HF_SUCCEEDED);
    assert_int_equal(atomic_load(&scene.works[0]), 2);
}

/* ---- Two versions alive ---- */

#define RUNS 40

struct version {
    int code; /* 0: before there was a choice */
    atomic_int ended;
};

static hf_code deployed(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    struct version *mine = arg;
    int version = 0;
    (void)input;
    (void)err;
    step(ctx, "first");
    if (mine->code)
        hf_try(hf_version(ctx, "ship-by-rail", mine->code, &version));
    step(ctx, version >= 1 ? "rail" : "road");
    if (version >= 2)
        step(ctx, "label");
    hf_try(hf_wait_signal(ctx, "arrived", 0, NULL));
    step(ctx, "last");
    atomic_fetch_add(&mine->ended, 1);
    return HF_OK;
}

struct beside {
    hf_worker *worker;
    pthread_t thread;
};

static void *work_beside(void *arg)
{
    struct beside *beside = arg;
    assert_int_equal(hf_worker_run(beside->worker, NULL), HF_OK);
    return NULL;
}

/* Another worker on the same store, with other code under the same name. */
static void hire_beside(struct beside *beside, struct version *version)
{
    hf_worker_options options = world_options();
    assert_ok(hf_worker_new(&beside->worker, world.client, &options, NULL));
    assert_ok(hf_worker_handle(beside->worker, WORKFLOW, deployed, version, NULL));
    assert_int_equal(pthread_create(&beside->thread, NULL, work_beside, beside), 0);
}

static void dismiss(struct beside *beside)
{
    hf_worker_stop(beside->worker);
    assert_int_equal(pthread_join(beside->thread, NULL), 0);
    hf_worker_free(beside->worker);
}

/* Triggers some, and returns once they wait for their signal. */
static void begin_some(hf_id *ids, int from, int to)
{
    for (int i = from; i < to; i++)
        ids[i] = world_trigger(WORKFLOW, "{}");
    for (int i = from; i < to; i++)
        hf_run_free(world_await_status(ids[i], HF_WAITING));
}

static void signal_some(const hf_id *ids, int from, int to)
{
    for (int i = from; i < to; i++)
        world_signal(ids[i], "arrived", "{}", NULL);
}

static void await_misfit(hf_id id)
{
    for (bool waits = false; !waits;) {
        hf_run *run = world_await_status(id, HF_WAITING);
        waits = strcmp(run->waiting_kind, "worker") == 0;
        hf_run_free(run);
        world_sleep(HF_MILLISECONDS(2));
    }
}

/* The change is made as the page about versions teaches. The first worker with the new code stops when it has begun some runs, the
 * old one goes on, then both are alive, and the old one stops. No run has an attempt to lose. */
static void expect_a_deploy_without_losses(int before, int after)
{
    static struct version old, new;
    hf_id ids[RUNS];
    struct beside beside;
    old = (struct version){ .code = before };
    new = (struct version){ .code = after };
    world_define(WORKFLOW, 1, HF_MILLISECONDS(1), 0);
    hire_beside(&beside, &new);
    begin_some(ids, 0, RUNS / 2);
    dismiss(&beside);
    world_handle(WORKFLOW, deployed, &old);
    world_start();
    begin_some(ids, RUNS / 2, RUNS);
    signal_some(ids, 0, RUNS / 2);
    for (int i = 0; i < RUNS / 2; i++)
        await_misfit(ids[i]);
    assert_int_equal(atomic_load(&old.ended), 0);
    hire_beside(&beside, &new);
    signal_some(ids, RUNS / 2, RUNS);
    world_await(&new.ended, 1); /* both are alive, and take what they get */
    world_stop();
    for (int i = 0; i < RUNS; i++)
        world_expect(ids[i], HF_SUCCEEDED);
    assert_int_equal(atomic_load(&old.ended) + atomic_load(&new.ended), RUNS);
    assert_true(atomic_load(&new.ended) >= RUNS / 2);
    dismiss(&beside);
}

static void a_deploy_with_two_versions_alive_loses_no_run(void **state)
{
    (void)state;
    clear();
    expect_a_deploy_without_losses(0, 1);
}

static void a_run_of_a_newer_version_is_left_to_newer_code(void **state)
{
    (void)state;
    clear();
    expect_a_deploy_without_losses(1, 2);
}

static hf_code versioned_often(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    int version, all = 0;
    (void)input;
    (void)err;
    (void)arg;
    step(ctx, "rail");
    for (int i = 0; i < 3; i++) {
        if (atomic_load(&scene.code)) {
            hf_try(hf_version(ctx, "rail", 2, &version));
            all = all * 10 + version;
        }
        if (i < 2)
            step(ctx, "page");
    }
    atomic_store(&scene.works[0], all);
    if (atomic_fetch_sub(&scene.crashes, 1) > 0) {
        atomic_store(&scene.code, 1);
        return HF_RETRY;
    }
    return HF_OK;
}

static void a_run_gets_one_answer_for_each_change(void **state)
{
    (void)state;
    clear();
    atomic_store(&scene.crashes, 1);
    world_expect(begin(versioned_often), HF_SUCCEEDED);
    assert_int_equal(atomic_load(&scene.works[0]), 0);
    atomic_store(&scene.crashes, 1);
    world_expect(world_trigger(WORKFLOW, "{}"), HF_SUCCEEDED);
    assert_int_equal(atomic_load(&scene.works[0]), 222);
}

/* ---- The same every time ---- */

static hf_code fixed(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    int64_t now;
    uint64_t number, other;
    hf_id id;
    char text[HF_ID_TEXT], all[200];
    (void)input;
    (void)err;
    (void)arg;
    hf_try(hf_now(ctx, &now));
    hf_try(hf_random(ctx, &number));
    hf_try(hf_random(ctx, &other));
    hf_try(hf_uuid(ctx, &id));
    hf_id_format(id, text);
    snprintf(all, sizeof all, "%lld %llu %llu %s", (long long)now, (unsigned long long)number,
             (unsigned long long)other, text);
    note(atomic_fetch_add(&scene.calls, 1), all);
    assert_true(number != other);
    return atomic_load(&scene.calls) < 2 ? HF_RETRY : HF_OK;
}

static void time_and_chance_are_the_same_every_time(void **state)
{
    (void)state;
    clear();
    world_expect(begin(fixed), HF_SUCCEEDED);
    assert_int_equal(atomic_load(&scene.calls), 2);
    assert_string_equal(scene.seen[0], scene.seen[1]);
}

/* ---- Losing ---- */

static hf_code stubborn(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)input;
    (void)err;
    (void)arg;
    hf_step a;
    atomic_store(&scene.works[0], 1);
    while (atomic_load(&scene.works[0]) == 1)
        world_sleep(HF_MILLISECONDS(2));
    if (hf_step_begin(ctx, "late", &a))
        atomic_store(&scene.code, (int)hf_step_done(&a, "1"));
    else
        atomic_store(&scene.code, (int)hf_step_result(&a, err));
    return HF_OK;
}

static void a_cancelled_run_records_nothing_more(void **state)
{
    hf_change change = HF_CHANGE_INIT;
    (void)state;
    clear();
    hf_id id = begin(stubborn);
    world_await(&scene.works[0], 1);
    assert_ok(hf_change_run(world.client, id, HF_CANCEL, &change, NULL));
    atomic_store(&scene.works[0], 2);
    world_await(&scene.code, HF_RUN_CANCELLED);
    world_expect(id, HF_CANCELLED);
    assert_int_equal(world_count_events(id, "step", NULL), 0);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_finished_step_returns_what_it_returned),
        TEST(a_steps_key_names_its_run_and_itself),
        TEST(one_name_may_be_used_again),
        TEST(a_name_that_cannot_be_remembered_begins_nothing),
        TEST(the_key_of_the_longest_name_is_whole),
        TEST(a_step_that_is_ended_twice_fails_its_run),
        TEST(a_step_that_was_not_ended_fails_its_run),
        TEST(a_failed_attempt_may_leave_its_step_open),
        TEST(a_broken_rule_fails_the_run_whatever_the_handler_does),
        TEST(an_output_that_is_refused_and_forgotten_fails_the_run),
        TEST(a_handler_that_waits_for_nothing_fails_its_run),
        TEST(calls_of_two_threads_at_once_fail_the_run),
        TEST(a_handler_that_returns_during_a_call_of_another_thread_fails_the_run),
        TEST(a_result_that_was_refused_to_one_of_two_threads_fails_the_run),
        TEST(a_steps_error_is_remembered_whole),
        TEST(a_failure_of_a_history_without_codes_has_one),
        TEST(a_failure_that_names_its_time_uses_up_no_attempt),
        TEST(failures_that_name_their_time_count_after_the_limit),
        TEST(a_call_inside_a_step_is_refused),
        TEST(an_output_that_is_refused_is_why_the_step_failed),
        TEST(a_step_is_tried_again_by_its_policy),
        TEST(a_step_that_failed_for_good_can_be_handled),
        TEST(a_step_without_a_policy_is_tried_as_often_as_its_run),
        TEST(a_failure_that_is_remembered_and_not_handled_fails_the_run_at_once),
        TEST(a_run_that_handled_a_failure_and_fails_later_is_tried_again),
        TEST(a_step_past_its_limit_has_failed),
        TEST(an_operators_retry_forgets_the_failure),
        TEST(another_name_is_an_error_that_names_both),
        TEST(a_handler_that_ends_too_early_is_noticed),
        TEST(code_that_does_not_fit_leaves_the_run_to_code_that_does),
        TEST(a_deploy_with_two_versions_alive_loses_no_run),
        TEST(a_run_of_a_newer_version_is_left_to_newer_code),
        TEST(old_runs_keep_the_old_way_and_new_ones_take_the_new),
        TEST(a_run_gets_one_answer_for_each_change),
        TEST(time_and_chance_are_the_same_every_time),
        TEST(a_cancelled_run_records_nothing_more),
    };
    return world_run_tests(argc, argv, "function", tests, sizeof tests / sizeof *tests);
}
