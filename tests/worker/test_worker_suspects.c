/* What cannot be claimed, and what should be claimed alone, keeps nobody waiting for ever. B6.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "worker/world.h"

#include "util/clock.h"
#include "worker/worker.h"

/* ---- A run that does not end, and work beside it ---- */

static atomic_int held_up; /* long runs that have begun */
static atomic_int let_go;  /* they may end */
static atomic_int done;    /* short runs that have ended */
static atomic_int fed_up;  /* no more successors */

static hf_code take_long(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)ctx;
    (void)input;
    (void)err;
    (void)arg;
    atomic_fetch_add(&held_up, 1);
    while (!atomic_load(&let_go))
        world_sleep(HF_MILLISECONDS(1));
    return HF_OK;
}

/* Work that never ends: each run starts the next. */
static hf_code work_on(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    hf_trigger_spec next = HF_TRIGGER_INIT;
    hf_triggered out;
    (void)ctx;
    (void)input;
    (void)arg;
    next.workflow = "shop.busy.v1";
    atomic_fetch_add(&done, 1);
    return atomic_load(&fed_up) ? HF_OK : hf_trigger(world.client, &out, &next, err);
}

static hf_code do_nothing(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)ctx;
    (void)input;
    (void)err;
    (void)arg;
    return HF_OK;
}

/* A worker of two hands, of which one is held up until let_go: there is no moment in which it holds nothing. */
static hf_id start_with_a_long_run(int64_t make_way_after)
{
    world_define("shop.long.v1", 0, 0, 0);
    world_handle("shop.long.v1", take_long, NULL);
    world.worker->make_way_after = make_way_after;
    hf_trigger_spec first = HF_TRIGGER_INIT;
    first.workflow = "shop.long.v1";
    first.priority = 9;
    hf_id id = world_trigger_spec(&first);
    world_start();
    world_await(&held_up, 1);
    return id;
}

static void start_busy_work(void)
{
    world_define("shop.busy.v1", 0, 0, 0);
    world_handle("shop.busy.v1", work_on, NULL);
}

/* So many as take many times as long as the worker passes by what it cannot have. */
static void expect_it_goes_on(void)
{
    int64_t until = hf__monotonic_us() + HF_SECONDS(1);
    while (hf__monotonic_us() < until)
        world_await(&done, atomic_load(&done) + 10);
}

static void let_go_of(hf_id id)
{
    atomic_store(&fed_up, 1);
    atomic_store(&let_go, 1);
    world_expect(id, HF_SUCCEEDED);
}

#define SOON_TIRED HF_MILLISECONDS(100) /* of passing by what it cannot have */

static int set_up(void **state)
{
    atomic_store(&held_up, 0);
    atomic_store(&let_go, 0);
    atomic_store(&done, 0);
    atomic_store(&fed_up, 0);
    return world_set_up(state);
}

/* A test that failed leaves nobody at the latch. */
static int tear_down(void **state)
{
    atomic_store(&fed_up, 1);
    atomic_store(&let_go, 1);
    return world_tear_down(state);
}

/* ---- Places in the order ---- */

#define YOUNGER 40

static atomic_int before_it; /* runs that ended before the one whose worker had died */

static hf_code note_order(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)ctx;
    (void)err;
    (void)arg;
    if (input[0] == '1')
        atomic_store(&before_it, atomic_load(&done));
    atomic_fetch_add(&done, 1);
    return HF_OK;
}

static hf_id trigger_due(const char *input, int64_t ago)
{
    int64_t now;
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    assert_ok(hf_store_now(world.client, &now, NULL));
    spec.workflow = "shop.turn.v1";
    spec.input = input;
    spec.run_at = now - ago;
    return world_trigger_spec(&spec);
}

static void a_run_whose_worker_died_is_done_before_younger_ones(void **state)
{
    hf_worker_options options = world_options();
    (void)state;
    options.threads = 1;
    world_hire(&options);
    world_define("shop.turn.v1", 0, 0, 0);
    world_handle("shop.turn.v1", note_order, NULL);
    atomic_store(&before_it, -1);
    hf_id old = trigger_due("1", HF_MINUTES(2));
    world_claim_and_die("shop.turn.v1");
    for (int i = 0; i < YOUNGER; i++)
        trigger_due("0", HF_MINUTES(1));
    world_start();
    world_await(&done, YOUNGER + 1);
    world_expect(old, HF_SUCCEEDED);
    assert_int_equal(atomic_load(&before_it), 0);
}

/* ---- Paused workflows ---- */

static void set_paused(const char *name, bool paused)
{
    hf_workflow workflow = { .name = name, .paused = paused };
    assert_ok(hf_workflow_put(world.client, &workflow, HF_SET_PAUSED, NULL));
}

static bool is_passed_over_at_the_next_look(void)
{
    assert_ok(hf__lanes_learn(world.worker, true, NULL));
    assert_ok(hf__heads_look(world.worker, NULL));
    return world.worker->heads.passed_over;
}

static void what_is_due_in_a_paused_workflow_is_not_passed_over(void **state)
{
    (void)state;
    world_handle("shop.note.v1", do_nothing, NULL);
    set_paused("shop.note.v1", true);
    world_trigger("shop.note.v1", NULL);
    assert_ok(hf__masters_resolve(world.worker, NULL));
    assert_false(is_passed_over_at_the_next_look());
    assert_false(is_passed_over_at_the_next_look());
    set_paused("shop.note.v1", false);
    assert_false(is_passed_over_at_the_next_look());
    assert_true(is_passed_over_at_the_next_look());
    hf__masters_leave(world.worker);
}

static void a_paused_workflow_keeps_no_idle_hand_from_work(void **state)
{
    (void)state;
    world_handle("shop.note.v1", do_nothing, NULL);
    set_paused("shop.note.v1", true);
    hf_id kept = world_trigger("shop.note.v1", NULL);
    start_busy_work();
    hf_id id = start_with_a_long_run(SOON_TIRED);
    world_trigger("shop.busy.v1", NULL);
    expect_it_goes_on();
    let_go_of(id);
    set_paused("shop.note.v1", false);
    world_expect(kept, HF_SUCCEEDED);
}

/* ---- Suspects ---- */

/* A run that lost two holders: it is claimed alone. */
static hf_id trigger_suspect(hf_handler handler)
{
    world_define("shop.killer.v1", 5, 0, 0);
    hf_id id = world_trigger("shop.killer.v1", NULL);
    world_claim_and_die("shop.killer.v1");
    world_claim_and_die("shop.killer.v1");
    world_handle("shop.killer.v1", handler, NULL);
    return id;
}

static void what_must_wait_does_not_take_the_place_of_what_need_not(void **state)
{
    (void)state;
    hf_id suspect = trigger_suspect(do_nothing);
    start_busy_work();
    hf_id id = start_with_a_long_run(HF_HOURS(1));
    world_trigger("shop.busy.v1", NULL);
    expect_it_goes_on();
    let_go_of(id);
    world_expect(suspect, HF_SUCCEEDED);
}

static void a_suspect_is_done_beside_others_when_there_is_no_quiet_moment(void **state)
{
    (void)state;
    hf_id suspect = trigger_suspect(do_nothing);
    start_busy_work();
    hf_id id = start_with_a_long_run(SOON_TIRED);
    world_trigger("shop.busy.v1", NULL);
    world_expect(suspect, HF_SUCCEEDED);
    expect_it_goes_on();
    let_go_of(id);
}

static void a_suspect_is_done_though_no_hand_is_ever_idle_for_long(void **state)
{
    (void)state;
    hf_id suspect = trigger_suspect(do_nothing);
    start_busy_work();
    for (int i = 0; i < 20; i++)
        world_trigger("shop.busy.v1", NULL);
    world.worker->make_way_for = 0; /* as if all took long */
    hf_id id = start_with_a_long_run(SOON_TIRED);
    world_expect(suspect, HF_SUCCEEDED);
    let_go_of(id);
}

static void a_suspect_gives_its_slot_back_though_its_worker_is_never_idle(void **state)
{
    hf_workflow limit = { .name = "shop.killer.v1", .max_running = 1 };
    (void)state;
    assert_ok(hf_workflow_put(world.client, &limit, HF_SET_MAX_RUNNING, NULL));
    hf_id suspect = trigger_suspect(do_nothing);
    hf_id next = world_trigger("shop.killer.v1", NULL);
    hf_id id = start_with_a_long_run(SOON_TIRED);
    world_expect(suspect, HF_SUCCEEDED);
    world_expect(next, HF_SUCCEEDED);
    let_go_of(id);
}

static void a_suspect_that_takes_long_is_not_alone_for_ever(void **state)
{
    (void)state;
    hf_id suspect = trigger_suspect(take_long);
    start_busy_work();
    world.worker->heartbeat = HF_MILLISECONDS(100);
    world_start();
    world_await(&held_up, 1);
    world_trigger("shop.busy.v1", NULL);
    expect_it_goes_on();
    let_go_of(suspect);
}

static void what_needs_no_handler_is_ended_at_once(void **state)
{
    hf_workflow limit = { .name = "shop.killer.v1", .max_running = 1, .max_attempts = 2 };
    (void)state;
    hf_id exhausted = trigger_suspect(do_nothing);
    assert_ok(
        hf_workflow_put(world.client, &limit, HF_SET_MAX_RUNNING | HF_SET_MAX_ATTEMPTS, NULL));
    hf_id next = world_trigger("shop.killer.v1", NULL);
    hf_id id = start_with_a_long_run(HF_HOURS(1));
    world_expect(exhausted, HF_FAILED);
    world_expect(next, HF_SUCCEEDED);
    let_go_of(id);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(a_run_whose_worker_died_is_done_before_younger_ones),
        TEST(what_is_due_in_a_paused_workflow_is_not_passed_over),
        TEST(a_paused_workflow_keeps_no_idle_hand_from_work),
        TEST(what_must_wait_does_not_take_the_place_of_what_need_not),
        TEST(a_suspect_is_done_beside_others_when_there_is_no_quiet_moment),
        TEST(a_suspect_is_done_though_no_hand_is_ever_idle_for_long),
        TEST(a_suspect_gives_its_slot_back_though_its_worker_is_never_idle),
        TEST(a_suspect_that_takes_long_is_not_alone_for_ever),
        TEST(what_needs_no_handler_is_ended_at_once),
    };
    return world_run_tests(argc, argv, "worker suspects", tests, sizeof tests / sizeof *tests);
}
