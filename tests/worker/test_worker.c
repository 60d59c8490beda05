/* What handlers decide and what becomes of their runs. A6, A7, B2.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include <holdfast/transition.h>

#include "worker/world.h"

#include "sql/scratch.h"
#include "util/clock.h"
#include "util/error.h"
#include "worker/worker.h"

static hf_code echo(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)err;
    if (arg)
        atomic_fetch_add((atomic_int *)arg, 1);
    return hf_return(ctx, input);
}

/* ---- Ends ---- */

static void a_run_succeeds_with_its_result(void **state)
{
    (void)state;
    world_handle("shop.echo.v1", echo, NULL);
    world_define("shop.echo.v1", 0, 0, 0);
    world_start();
    hf_run *run = world_wait(world_trigger("shop.echo.v1", "{\"n\":42}"));
    assert_int_equal(run->status, HF_SUCCEEDED);
    assert_string_equal(run->result, "{\"n\":42}");
    assert_int_equal(run->attempt, 1);
    hf_run_free(run);
}

/* The lease is an hour: only its name tells that the one before is gone. */
static void a_worker_goes_on_at_once_with_what_held_who_had_its_name(void **state)
{
    hf_worker_options options = world_options();
    const char *pattern = "shop.echo.v1";
    hf_claim_spec spec = HF_CLAIM_INIT;
    hf_claims *claims = NULL;
    (void)state;
    options.name = spec.worker = "box-1";
    world_hire(&options);
    world_handle(pattern, echo, NULL);
    world_define(pattern, 0, 0, HF_HOURS(1));
    hf_id id = world_trigger(pattern, "1");
    spec.patterns = &pattern;
    spec.pattern_count = 1;
    assert_ok(hf_claim(world.client, &claims, &spec, NULL));
    assert_int_equal(claims->count, 1);
    hf_claims_free(claims);
    world_start();
    hf_run *run = world_wait(id);
    assert_int_equal(run->attempt, 2);
    hf_run_free(run);
}

#define TRACE "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

static hf_code inspect(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    hf_id *seen = arg;
    *seen = hf_ctx_run(ctx);
    bool good = strcmp(input, "null") == 0 && strcmp(hf_ctx_workflow(ctx), "shop.look.v1") == 0 &&
                strcmp(hf_ctx_key(ctx), "order-1") == 0 && hf_ctx_attempt(ctx) == 1 &&
                strcmp(hf_ctx_trace(ctx), TRACE) == 0 && hf_check(ctx) == HF_OK;
    hf_run *self = NULL;
    good =
        good && hf_get(hf_ctx_client(ctx), &self, *seen, err) == HF_OK && self->status == HF_LEASED;
    hf_run_free(self);
    return good ? HF_OK : HF_PERMANENT;
}

static void a_handler_knows_its_run(void **state)
{
    hf_id seen = { { 0 } };
    (void)state;
    world_handle("shop.look.v1", inspect, &seen);
    world_define("shop.look.v1", 0, 0, 0);
    world_start();
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    spec.workflow = "shop.look.v1";
    spec.key = "order-1";
    spec.trace = TRACE;
    hf_id id = world_trigger_spec(&spec);
    world_expect(id, HF_SUCCEEDED);
    assert_true(hf_id_equal(id, seen));
}

static hf_code refuse_result(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)err;
    (void)arg;
    hf_code code = hf_return(ctx, "{not json");
    if (strcmp(input, "1") == 0)
        return code;
    if (strcmp(input, "2") == 0)
        return HF_OK;
    return hf_return(ctx, "\"another\"");
}

static void expect_refused_result(const char *input)
{
    hf_run *run = world_wait(world_trigger("shop.bad.v1", input));
    assert_int_equal(run->status, HF_FAILED);
    assert_string_equal(run->error_code, "result_refused");
    assert_int_equal(run->attempt, 1);
    assert_non_null(
        strstr(run->last_error, "not valid JSON at byte 1: expected a string in double quotes"));
    assert_non_null(strstr(run->last_error, "found \"not json\""));
    hf_run_free(run);
}

static void a_result_that_is_not_json_fails_its_run_for_good(void **state)
{
    (void)state;
    world_handle("shop.bad.v1", refuse_result, NULL);
    world_define("shop.bad.v1", 3, 0, 0);
    world_start();
    expect_refused_result("1");
    expect_refused_result("2");
    world_expect_result(world_trigger("shop.bad.v1", "3"), "\"another\"");
}

static void handlers_that_the_environment_leaves_out_claim_nothing(void **state)
{
    (void)state;
    setenv("WORKER_TYPE_PREFIXES", "shop., mail.send*,shop.", 1);
    world_handle("shop.look.v1", echo, NULL);
    world_handle("bank.look.v1", echo, NULL);
    world_handle("mail.*", echo, NULL);
    world_define("shop.look.v1", 1, 0, 0);
    world_define("mail.send.v1", 1, 0, 0);
    world_define("mail.read.v1", 1, 0, 0);
    world_start();
    unsetenv("WORKER_TYPE_PREFIXES");
    assert_string_equal(world.worker->serves_json, "[\"shop.look.v1\",\"mail.send*\"]");
    hf_id left = world_trigger("mail.read.v1", "1");
    world_expect(world_trigger("shop.look.v1", "1"), HF_SUCCEEDED);
    world_expect(world_trigger("mail.send.v1", "1"), HF_SUCCEEDED);
    hf_run *run = world_get(left);
    assert_int_equal(run->status, HF_PENDING);
    hf_run_free(run);
}

static void a_worker_none_of_whose_handlers_fits_is_refused(void **state)
{
    hf_error err;
    (void)state;
    world_hire(NULL);
    world_handle("shop.look.v1", echo, NULL);
    setenv("WORKER_TYPE_PREFIXES", "bank.", 1);
    assert_int_equal(hf_worker_run(world.worker, &err), HF_INVALID);
    unsetenv("WORKER_TYPE_PREFIXES");
    assert_non_null(strstr(err.message, "\"bank.\""));
    assert_non_null(strstr(err.message, "shop.look.v1"));
}

static hf_code return_a_number(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)ctx;
    (void)input;
    (void)err;
    (void)arg;
    return (hf_code)4711;
}

static void a_code_that_nobody_knows_is_a_failure(void **state)
{
    (void)state;
    world_handle("shop.odd.v1", return_a_number, NULL);
    world_define("shop.odd.v1", 1, 0, 0);
    world_start();
    hf_run *run = world_wait(world_trigger("shop.odd.v1", NULL));
    assert_int_equal(run->status, HF_FAILED);
    assert_non_null(strstr(run->last_error, "the handler returned 4711"));
    hf_run_free(run);
}

/* ---- Retries ---- */

static hf_code fail_twice(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)input;
    (void)arg;
    if (hf_ctx_attempt(ctx) < 3)
        return hf__fail(err, HF_HANDLER_FAILED, "attempt %d went wrong", hf_ctx_attempt(ctx));
    return hf_return(ctx, "\"third time\"");
}

static void a_failure_is_tried_again_with_growing_delays(void **state)
{
    (void)state;
    world_handle("shop.flaky.v1", fail_twice, NULL);
    world_define("shop.flaky.v1", 3, HF_MILLISECONDS(100), 0);
    world_start();
    int64_t began = hf__monotonic_us();
    hf_run *run = world_wait(world_trigger("shop.flaky.v1", NULL));
    assert_int_equal(run->status, HF_SUCCEEDED);
    assert_int_equal(run->attempt, 3);
    assert_string_equal(run->result, "\"third time\"");
    assert_true(hf__monotonic_us() - began >= HF_MILLISECONDS(300));
    hf_run_free(run);
}

static void a_run_fails_when_its_attempts_are_used_up(void **state)
{
    (void)state;
    world_handle("shop.flaky.v1", fail_twice, NULL);
    world_define("shop.flaky.v1", 2, HF_MILLISECONDS(10), 0);
    world_start();
    hf_run *run = world_wait(world_trigger("shop.flaky.v1", NULL));
    assert_int_equal(run->status, HF_FAILED);
    assert_int_equal(run->attempt, 2);
    assert_string_equal(run->last_error, "attempt 2 went wrong");
    assert_string_equal(run->error_code, "failed");
    assert_non_null(strstr(run->error, "attempt 2 went wrong"));
    hf_run_free(run);
}

static hf_code give_up(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)input;
    atomic_fetch_add((atomic_int *)arg, 1);
    if (hf_fail_with(ctx, "card_expired", "{\"card\":\"1234\"}") != HF_OK)
        return HF_HANDLER_FAILED;
    return hf__fail(err, HF_PERMANENT, "the card has expired");
}

static void a_permanent_error_is_not_tried_again(void **state)
{
    atomic_int calls = 0;
    (void)state;
    world_handle("shop.charge.v1", give_up, &calls);
    world_define("shop.charge.v1", 5, HF_MILLISECONDS(1), 0);
    world_start();
    hf_run *run = world_wait(world_trigger("shop.charge.v1", NULL));
    assert_int_equal(run->status, HF_FAILED);
    assert_string_equal(run->error_code, "card_expired");
    assert_string_equal(run->error, "{\"card\":\"1234\"}");
    assert_string_equal(run->last_error, "the card has expired");
    assert_int_equal(atomic_load(&calls), 1);
    hf_run_free(run);
}

static hf_code ask_for_later(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)input;
    (void)err;
    (void)arg;
    hf_retry_after(ctx, HF_MILLISECONDS(30));
    return hf_ctx_attempt(ctx) == 1 ? HF_RETRY : HF_OK;
}

static void a_handlers_own_delay_replaces_the_policy(void **state)
{
    (void)state;
    world_handle("shop.later.v1", ask_for_later, NULL);
    world_define("shop.later.v1", 3, HF_MINUTES(4), 0);
    world_start();
    hf_run *run = world_wait(world_trigger("shop.later.v1", NULL));
    assert_int_equal(run->status, HF_SUCCEEDED);
    assert_int_equal(run->attempt, 2);
    hf_run_free(run);
}

static hf_code ask_for_much_later(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)input;
    (void)err;
    hf_retry_after(ctx, INT64_MAX);
    atomic_fetch_add((atomic_int *)arg, 1);
    return HF_RETRY;
}

static void a_delay_without_measure_is_a_hundred_years(void **state)
{
    atomic_int calls = 0;
    (void)state;
    world_handle("shop.later.v1", ask_for_much_later, &calls);
    world_define("shop.later.v1", 3, HF_MINUTES(4), 0);
    world_start();
    hf_id id = world_trigger("shop.later.v1", NULL);
    world_await(&calls, 1);
    hf_run *run = world_get(id);
    /* It may begin before its claim is seen. */
    while (run->attempt == 0 || run->status == HF_LEASED) {
        world_sleep(HF_MILLISECONDS(2));
        hf_run_free(run);
        run = world_get(id);
    }
    assert_int_equal(run->status, HF_PENDING);
    assert_true(run->run_at - run->created_at >= HF_DAYS(36525));
    hf_run_free(run);
}

/* ---- Failing without a handler ---- */

static void a_workflow_without_handler_fails_at_once(void **state)
{
    const char *prefixes[] = { "shop." };
    hf_worker_options options = world_options();
    (void)state;
    options.prefixes = prefixes;
    options.prefix_count = 1;
    world_hire(&options);
    world_handle("shop.echo.v1", echo, NULL);
    world_define("shop.unknown.v1", 3, 0, 0);
    world_start();
    hf_run *run = world_wait(world_trigger("shop.unknown.v1", NULL));
    assert_int_equal(run->status, HF_FAILED);
    assert_string_equal(run->last_error, "no_handler_registered");
    assert_string_equal(run->error_code, "no_handler_registered");
    hf_run_free(run);
}

static void a_worker_for_chores_alone_leaves_all_else_to_others(void **state)
{
    const char *prefixes[] = { "shop." };
    hf_worker_options options = world_options();
    hf_worker_list *list = NULL;
    (void)state;
    options.prefixes = prefixes;
    options.prefix_count = 1;
    options.chores_only = true;
    world_hire(&options);
    world_start();
    assert_int_equal(hf_workers(world.client, &list, NULL), HF_OK);
    assert_int_equal(list->count, 1);
    assert_string_equal(list->items[0].serves, "[]");
    hf_worker_list_free(list);
}

static void a_run_that_used_up_its_attempts_by_killing_fails_without_handler(void **state)
{
    atomic_int calls = 0;
    (void)state;
    world_define("shop.killer.v1", 1, 0, 0);
    hf_id id = world_trigger("shop.killer.v1", NULL);
    world_claim_and_die("shop.killer.v1");
    world_handle("shop.killer.v1", echo, &calls);
    world_start();
    hf_run *run = world_wait(id);
    assert_int_equal(run->status, HF_FAILED);
    assert_string_equal(run->error_code, "attempts_exhausted");
    assert_int_equal(atomic_load(&calls), 0);
    hf_run_free(run);
}

/* One run of the workflow, whose input has this in it. */
static void expect_letter(const char *workflow, const char *words)
{
    hf_filter filter = HF_FILTER_INIT;
    hf_runs *runs = NULL;
    filter.workflow = workflow;
    assert_ok(hf_list(world.client, &runs, &filter, NULL));
    assert_int_equal(runs->count, 1);
    assert_non_null(strstr(runs->items[0].input, words));
    hf_runs_free(runs);
}

static void a_run_past_its_deadline_fails_without_handler(void **state)
{
    atomic_int calls = 0;
    (void)state;
    world_define("shop.echo.v1", 0, 0, 0);
    world_define("ops.late.v1", 0, 0, 0);
    hf_workflow late = { .name = "shop.echo.v1", .dead_letter = "ops.late.v1" };
    assert_ok(hf_workflow_put(world.client, &late, HF_SET_DEAD_LETTER, NULL));
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    spec.workflow = "shop.echo.v1";
    spec.timeout = HF_MILLISECONDS(20);
    hf_id id = world_trigger_spec(&spec);
    world_sleep(HF_MILLISECONDS(40));
    world_handle("shop.echo.v1", echo, &calls);
    world_start();
    hf_run *run = world_wait(id);
    assert_int_equal(run->status, HF_FAILED);
    assert_string_equal(run->error_code, "deadline_exceeded");
    assert_int_equal(atomic_load(&calls), 0);
    hf_run_free(run);
    expect_letter("ops.late.v1", "\"error_code\":\"deadline_exceeded\"");
}

/* ---- Losing a run ---- */

/* Works until it is told to stop; remembers why. */
static hf_code work_until_told(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)input;
    (void)err;
    atomic_store((atomic_int *)arg, 1);
    hf_code code = HF_OK;
    for (int i = 0; i < 60000 && code == HF_OK; i++) {
        world_sleep(HF_MILLISECONDS(1));
        code = hf_check(ctx);
    }
    atomic_store((atomic_int *)arg, 100 + (int)code);
    return code;
}

static void a_deadline_that_passes_stops_the_handler_and_fails_the_run(void **state)
{
    atomic_int told = 0;
    (void)state;
    world_handle("shop.slow.v1", work_until_told, &told);
    world_define("shop.slow.v1", 3, 0, 0);
    world_start();
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    spec.workflow = "shop.slow.v1";
    /* On a busy machine it may pass before the handler begins. */
    for (spec.timeout = HF_MILLISECONDS(150); !atomic_load(&told); spec.timeout *= 4) {
        hf_run *run = world_wait(world_trigger_spec(&spec));
        assert_int_equal(run->status, HF_FAILED);
        assert_string_equal(run->error_code, "deadline_exceeded");
        hf_run_free(run);
    }
    world_await(&told, 100);
    /* Whoever is first, the handler's clock or the heartbeat of a run that somebody else has
     * failed meanwhile. */
    assert_true(atomic_load(&told) == 100 + HF_TIMEOUT || atomic_load(&told) == 100 + HF_STALE);
}

/* Somebody else ends the run, as whoever had claimed it meanwhile would. */
static void a_lost_run_is_told_to_its_handler_by_the_heartbeat(void **state)
{
    atomic_int told = 0;
    (void)state;
    world_handle("shop.slow.v1", work_until_told, &told);
    world_define("shop.slow.v1", 3, 0, 0);
    world_start();
    hf_id id = world_trigger("shop.slow.v1", NULL);
    world_await(&told, 1);
    hf_run *run = world_get(id);
    while (run->status != HF_LEASED) { /* the handler may begin before others see its claim */
        hf_run_free(run);
        world_sleep(HF_MILLISECONDS(1));
        run = world_get(id);
    }
    const hf_transition end = { .version = HF_TRANSITION_VERSION,
                                .run = id,
                                .run_version = run->version,
                                .turn = HF_TURN_SUCCEED,
                                .result = "\"by another\"" };
    assert_ok(hf_commit(world.client, &end, NULL, NULL));
    hf_run_free(run);
    world_await(&told, 100);
    assert_int_equal(atomic_load(&told), 100 + HF_STALE);
    world_stop();
    world_expect_result(id, "\"by another\"");
}

static hf_code heed_nothing(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    atomic_int *calls = arg;
    (void)ctx, (void)input, (void)err;
    atomic_store(calls, 1);
    world_await(calls, 2);
    return HF_OK;
}

/* As if the run were gone for so long. */
static bool grow_older(int64_t by)
{
    pthread_mutex_lock(&world.worker->lock);
    hf_ctx *turn = world.worker->held;
    bool lost = turn && turn->lost_at;
    if (lost)
        turn->lost_at -= by;
    pthread_mutex_unlock(&world.worker->lock);
    return lost;
}

static int count_stuck(void)
{
    hf_worker_list *workers = NULL;
    assert_ok(hf__beat_say(world.worker, NULL));
    assert_ok(hf_workers(world.client, &workers, NULL));
    assert_int_equal(workers->count, 1);
    int stuck = workers->items[0].stuck;
    hf_worker_list_free(workers);
    return stuck;
}

static void a_handler_that_does_not_return_when_its_run_is_gone_is_stuck(void **state)
{
    atomic_int calls = 0;
    (void)state;
    world_handle("shop.deaf.v1", heed_nothing, &calls);
    world_define("shop.deaf.v1", 0, 0, 0);
    world_start();
    hf_id id = world_trigger("shop.deaf.v1", NULL);
    world_await(&calls, 1);
    assert_int_equal(count_stuck(), 0);
    assert_ok(hf_change_run(world.client, id, HF_CANCEL, NULL, NULL));
    while (!grow_older(0))
        world_sleep(HF_MILLISECONDS(1));
    assert_int_equal(count_stuck(), 0);
    assert_true(grow_older(HF_SECONDS(11)));
    assert_int_equal(count_stuck(), 1);
    atomic_store(&calls, 2);
    while (count_stuck() != 0)
        world_sleep(HF_MILLISECONDS(1));
}

static void a_cancelled_run_is_told_to_its_handler(void **state)
{
    atomic_int told = 0;
    (void)state;
    world_handle("shop.slow.v1", work_until_told, &told);
    world_define("shop.slow.v1", 3, 0, 0);
    world_start();
    hf_id id = world_trigger("shop.slow.v1", NULL);
    world_await(&told, 1);
    assert_ok(hf_change_run(world.client, id, HF_CANCEL, NULL, NULL));
    world_await(&told, 100 + HF_RUN_CANCELLED);
    world_expect(id, HF_CANCELLED);
}

static void a_long_run_keeps_its_lease(void **state)
{
    atomic_int told = 0;
    (void)state;
    world_handle("shop.slow.v1", work_until_told, &told);
    world_define("shop.slow.v1", 3, 0, HF_SECONDS(3)); /* longer than a busy machine sleeps */
    world_start();
    hf_id id = world_trigger("shop.slow.v1", NULL);
    world_await(&told, 1);
    world_sleep(HF_MILLISECONDS(3500));
    hf_run *run = world_get(id);
    assert_int_equal(run->status, HF_LEASED);
    assert_int_equal(run->attempt, 1);
    hf_run_free(run);
    assert_ok(hf_change_run(world.client, id, HF_CANCEL, NULL, NULL));
    world_await(&told, 100 + HF_RUN_CANCELLED);
}

/* ---- Suspects ---- */

static void a_run_whose_holder_died_runs_again(void **state)
{
    (void)state;
    world_define("shop.echo.v1", 3, 0, 0);
    hf_id id = world_trigger("shop.echo.v1", NULL);
    world_claim_and_die("shop.echo.v1");
    world_handle("shop.echo.v1", echo, NULL);
    world_start();
    hf_run *run = world_wait(id);
    assert_int_equal(run->status, HF_SUCCEEDED);
    assert_int_equal(run->attempt, 2);
    hf_run_free(run);
}

struct company {
    atomic_int begun;  /* the suspect was */
    atomic_int alone;  /* it is at work */
    atomic_int beside; /* runs that began meanwhile */
};

static hf_code work_alone(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    struct company *company = arg;
    (void)input;
    (void)err;
    atomic_store(&company->alone, 1);
    atomic_store(&company->begun, 1);
    world_sleep(HF_MILLISECONDS(200));
    atomic_store(&company->alone, 0);
    return hf_ctx_attempt(ctx) == 3 ? HF_OK : HF_PERMANENT;
}

static hf_code work_beside(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    struct company *company = arg;
    (void)ctx;
    (void)input;
    (void)err;
    atomic_fetch_add(&company->beside, atomic_load(&company->alone));
    return HF_OK;
}

static void a_run_that_lost_two_holders_runs_alone(void **state)
{
    struct company company = { 0 };
    hf_id others[6];
    (void)state;
    world_define("shop.killer.v1", 5, 0, 0);
    hf_id id = world_trigger("shop.killer.v1", NULL);
    world_claim_and_die("shop.killer.v1");
    world_claim_and_die("shop.killer.v1");
    world_define("shop.good.v1", 0, 0, 0);
    world_handle("shop.killer.v1", work_alone, &company);
    world_handle("shop.good.v1", work_beside, &company);
    world.worker->heartbeat = HF_HOURS(1); /* after the first one it is not alone any longer */
    world_start();
    world_await(&company.begun, 1);
    for (int i = 0; i < 6; i++)
        others[i] = world_trigger("shop.good.v1", NULL);
    for (int i = 0; i < 6; i++)
        world_expect(others[i], HF_SUCCEEDED);
    world_expect(id, HF_SUCCEEDED);
    assert_int_equal(atomic_load(&company.beside), 0);
}

/* ---- What follows a failure, and the journal ---- */

static void a_failed_run_starts_its_dead_letter_workflow(void **state)
{
    atomic_int calls = 0, letters = 0;
    (void)state;
    world_handle("shop.charge.v1", give_up, &calls);
    world_handle("ops.letter.v1", echo, &letters);
    world_define("ops.letter.v1", 0, 0, 0);
    hf_workflow workflow = { .name = "shop.charge.v1", .dead_letter = "ops.letter.v1" };
    assert_ok(hf_workflow_put(world.client, &workflow, HF_SET_DEAD_LETTER, NULL));
    world_start();
    hf_id id = world_trigger("shop.charge.v1", "{\"amount\":7}");
    world_expect(id, HF_FAILED);
    world_await(&letters, 1);

    hf_filter filter = HF_FILTER_INIT;
    hf_runs *runs = NULL;
    filter.workflow = "ops.letter.v1";
    assert_ok(hf_list(world.client, &runs, &filter, NULL));
    assert_int_equal(runs->count, 1);
    char text[HF_ID_TEXT];
    hf_id_format(id, text);
    assert_non_null(strstr(runs->items[0].input, text));
    assert_non_null(strstr(runs->items[0].input, "\"error_code\":\"card_expired\""));
    assert_non_null(strstr(runs->items[0].input, "\"input\":{\"amount\":7},\"steps\":[]}"));
    assert_int_equal(strncmp(runs->items[0].key, "dead-letter:", 12), 0);
    hf_runs_free(runs);
}

static hf_code record(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)input;
    (void)err;
    (void)arg;
    hf_code code = hf_record(ctx, "OrderPacked", "{\"boxes\":2}");
    return code == HF_OK ? hf_record(ctx, "OrderSent", NULL) : code;
}

static void recorded_events_are_in_the_journal(void **state)
{
    int found = 0;
    hf_events *events = NULL;
    (void)state;
    world_handle("shop.pack.v1", record, NULL);
    world_define("shop.pack.v1", 0, 0, 0);
    world_start();
    hf_id id = world_trigger("shop.pack.v1", NULL);
    world_expect(id, HF_SUCCEEDED);
    assert_ok(hf_events_list(world.client, &events, id, 0, 100, NULL));
    for (size_t i = 0; i < events->count; i++)
        found += strcmp(events->items[i].kind, "domain") == 0;
    assert_int_equal(found, 2);
    hf_events_free(events);
}

/* A run that waits for so many children that nobody serves. */
static hf_id begin_family(hf_id *children, size_t count)
{
    const char *patterns[] = { "shop.parent.v1" };
    hf_claim_spec claim = HF_CLAIM_INIT;
    hf_claims *claims = NULL;
    hf_trigger_spec starts[3];
    world_define("shop.parent.v1", 0, 0, 0);
    world_define("shop.child.v1", 0, 0, 0);
    hf_id parent = world_trigger("shop.parent.v1", NULL);
    claim.worker = "tester";
    claim.patterns = patterns;
    claim.pattern_count = 1;
    assert_ok(hf_claim(world.client, &claims, &claim, NULL));
    assert_int_equal(claims->count, 1);
    for (size_t i = 0; i < count; i++) {
        starts[i] = (hf_trigger_spec)HF_TRIGGER_INIT;
        starts[i].workflow = "shop.child.v1";
    }
    hf_transition transition = {
        .version = HF_TRANSITION_VERSION,
        .run = parent,
        .run_version = claims->items[0].run.version,
        .turn = HF_TURN_WAIT,
        .wait_children = (int)count,
        .children = starts,
        .child_count = count,
    };
    assert_ok(hf_commit(world.client, &transition, children, NULL));
    hf_claims_free(claims);
    return parent;
}

static void a_cancelled_parents_children_are_cancelled(void **state)
{
    hf_id child;
    (void)state;
    hf_id parent = begin_family(&child, 1);
    world_handle("shop.other.v1", echo, NULL);
    world_start();
    assert_ok(hf_change_run(world.client, parent, HF_CANCEL, NULL, NULL));
    world_expect(child, HF_CANCELLED);
}

static void a_child_that_somebody_keeps_locked_does_not_save_its_siblings(void **state)
{
    hf_id children[3];
    char locked[HF_ID_TEXT];
    (void)state;
    if (strncmp(world.url, "postgres", 8) != 0)
        skip();
    hf_id parent = begin_family(children, 3);
    world_handle("shop.other.v1", echo, NULL);
    world_start();
    PGconn *pg = pg_connect(world.url);
    hf_id_format(children[1], locked);
    pg_do(pg, "BEGIN");
    pg_do(pg, "SELECT 1 FROM holdfast.run WHERE id = '%s' FOR UPDATE", locked);
    assert_ok(hf_change_run(world.client, parent, HF_CANCEL, NULL, NULL));
    world_expect(children[0], HF_CANCELLED);
    world_expect(children[2], HF_CANCELLED);
    pg_do(pg, "COMMIT");
    PQfinish(pg);
    world_expect(children[1], HF_CANCELLED);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)
        TEST(a_run_succeeds_with_its_result),
        TEST(a_worker_goes_on_at_once_with_what_held_who_had_its_name),
        TEST(a_handler_knows_its_run),
        TEST(a_result_that_is_not_json_fails_its_run_for_good),
        TEST(handlers_that_the_environment_leaves_out_claim_nothing),
        TEST(a_worker_none_of_whose_handlers_fits_is_refused),
        TEST(a_code_that_nobody_knows_is_a_failure),
        TEST(a_failure_is_tried_again_with_growing_delays),
        TEST(a_run_fails_when_its_attempts_are_used_up),
        TEST(a_permanent_error_is_not_tried_again),
        TEST(a_handlers_own_delay_replaces_the_policy),
        TEST(a_delay_without_measure_is_a_hundred_years),
        TEST(a_workflow_without_handler_fails_at_once),
        TEST(a_worker_for_chores_alone_leaves_all_else_to_others),
        TEST(a_run_that_used_up_its_attempts_by_killing_fails_without_handler),
        TEST(a_run_past_its_deadline_fails_without_handler),
        TEST(a_deadline_that_passes_stops_the_handler_and_fails_the_run),
        TEST(a_lost_run_is_told_to_its_handler_by_the_heartbeat),
        TEST(a_handler_that_does_not_return_when_its_run_is_gone_is_stuck),
        TEST(a_cancelled_run_is_told_to_its_handler),
        TEST(a_long_run_keeps_its_lease),
        TEST(a_run_whose_holder_died_runs_again),
        TEST(a_run_that_lost_two_holders_runs_alone),
        TEST(a_failed_run_starts_its_dead_letter_workflow),
        TEST(recorded_events_are_in_the_journal),
        TEST(a_cancelled_parents_children_are_cancelled),
        TEST(a_child_that_somebody_keeps_locked_does_not_save_its_siblings),
    };
    return world_run_tests(argc, argv, "worker", tests, sizeof tests / sizeof *tests);
}
