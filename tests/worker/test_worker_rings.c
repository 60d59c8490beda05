/* Wake-ups that name lanes, which lanes are looked at, and suspects that need a quiet moment. B6, B9.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "worker/world.h"

#include "util/clock.h"
#include "worker/worker.h"

static hf_code count_it(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)ctx;
    (void)input;
    (void)err;
    atomic_fetch_add((atomic_int *)arg, 1);
    return HF_OK;
}

/* Long enough for the worker to have looked once more and to sleep. */
static void let_it_sleep(void)
{
    world_sleep(HF_MILLISECONDS(100));
}

static hf_trigger_spec spec_of(const char *workflow, int priority)
{
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    spec.workflow = workflow;
    spec.priority = priority;
    return spec;
}

static void a_priority_never_seen_before_is_served(void **state)
{
    static const int priorities[] = { 0, 5, -5, 0, 7 };
    atomic_int calls = 0;
    (void)state;
    world_define("shop.note.v1", 0, 0, 0);
    world_handle("shop.note.v1", count_it, &calls);
    world_start();
    for (size_t i = 0; i < sizeof priorities / sizeof *priorities; i++) {
        let_it_sleep();
        hf_trigger_spec spec = spec_of("shop.note.v1", priorities[i]);
        world_expect(world_trigger_spec(&spec), HF_SUCCEEDED);
    }
}

static void several_lanes_at_once_are_served(void **state)
{
    static const char *const names[] = { "shop.a.v1", "shop.b.v1", "shop.c.v1" };
    hf_trigger_spec specs[3];
    hf_triggered out[3];
    atomic_int calls = 0;
    (void)state;
    for (int i = 0; i < 3; i++) {
        world_define(names[i], 0, 0, 0);
        world_handle(names[i], count_it, &calls);
        specs[i] = spec_of(names[i], i);
    }
    world_start();
    /* Of the third nothing is remembered the first time, of the second another priority. */
    for (size_t known = 1; known <= 3; known++) {
        let_it_sleep();
        specs[1].priority = (int)known;
        assert_ok(hf_trigger_many(world.client, out, specs, known, NULL));
        for (size_t i = 0; i < known; i++)
            world_expect(out[i].id, HF_SUCCEEDED);
    }
    let_it_sleep();
    assert_ok(hf_trigger_many(world.client, out, specs, 3, NULL));
    for (size_t i = 0; i < 3; i++)
        world_expect(out[i].id, HF_SUCCEEDED);
}

struct gate {
    atomic_int entered;
    atomic_int open;
};

static hf_code wait_at_gate(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    struct gate *gate = arg;
    (void)ctx;
    (void)input;
    (void)err;
    atomic_fetch_add(&gate->entered, 1);
    while (!atomic_load(&gate->open))
        world_sleep(HF_MILLISECONDS(1));
    return HF_OK;
}

static void a_ring_while_all_hands_are_busy_is_served_later(void **state)
{
    struct gate gate = { 0 };
    atomic_int calls = 0;
    hf_trigger_spec urgent = spec_of("shop.note.v1", 9);
    hf_id ids[4];
    (void)state;
    world_define("shop.gate.v1", 0, 0, 0);
    world_define("shop.note.v1", 0, 0, 0);
    world_handle("shop.gate.v1", wait_at_gate, &gate);
    world_handle("shop.note.v1", count_it, &calls);
    world_start();
    world_expect(world_trigger("shop.note.v1", NULL), HF_SUCCEEDED);
    ids[0] = world_trigger("shop.gate.v1", NULL);
    ids[1] = world_trigger("shop.gate.v1", NULL);
    world_await(&gate.entered, 2);
    let_it_sleep();
    ids[2] = world_trigger("shop.note.v1", NULL);
    ids[3] = world_trigger_spec(&urgent);
    let_it_sleep();
    assert_int_equal(atomic_load(&calls), 1);
    atomic_store(&gate.open, 1);
    world_await(&calls, 3); /* whoever waits for a run by hf_wait has it ring once more */
    for (int i = 0; i < 4; i++)
        world_expect(ids[i], HF_SUCCEEDED);
}

/* What is due and cannot be had is looked for again after pauses that grow from 5 to 100 ms and beyond: 16 times in the
 * first second, with three statements. A worker whose pauses do not grow looks hundreds of times, one that spins thousands. */
enum { MOST_LOOKS = 100 };

static void a_ring_for_a_paused_workflow_does_not_make_it_spin(void **state)
{
    atomic_int calls = 0;
    hf_workflow paused = { .name = "shop.note.v1", .paused = true };
    (void)state;
    world_define("shop.note.v1", 0, 0, 0);
    world_handle("shop.note.v1", count_it, &calls);
    world_start();
    world_expect(world_trigger("shop.note.v1", NULL), HF_SUCCEEDED);
    assert_ok(hf_workflow_put(world.client, &paused, HF_SET_PAUSED, NULL));
    let_it_sleep();
    int before = world_looks();
    hf_id id = world_trigger("shop.note.v1", NULL);
    world_sleep(HF_SECONDS(1));
    assert_in_range(world_looks() - before, 0, MOST_LOOKS);
    assert_int_equal(atomic_load(&calls), 1);
    hf_run *run = world_get(id);
    assert_int_equal(run->status, HF_PENDING);
    hf_run_free(run);
}

/* ---- Many lanes ---- */

/* True: the claimer sleeps, with nothing due as far as it knows. */
static bool stands_by(void)
{
    pthread_mutex_lock(&world.worker->lock);
    bool standing_by = world.worker->standing_by;
    pthread_mutex_unlock(&world.worker->lock);
    return standing_by && atomic_load(&world.worker->idle);
}

static void await_stand_by(void)
{
    int64_t until = hf__monotonic_us() + SOON;
    while (!stands_by()) {
        if (hf__monotonic_us() > until)
            fail_msg("the worker does not go to sleep");
        world_sleep(HF_MILLISECONDS(1));
    }
}

/* Two at once do not take the worker's claim along, so they ring. */
static void ring_once(atomic_int *calls)
{
    hf_trigger_spec specs[2] = { spec_of("shop.many0.v1", 0), spec_of("shop.many0.v1", 0) };
    hf_triggered out[2];
    int before = atomic_load(calls);
    await_stand_by();
    assert_ok(hf_trigger_many(world.client, out, specs, 2, NULL));
    world_await(calls, before + 2);
}

/* SQLite's wake-ups name no lanes: there each one is a reason to look at all. */
static void however_often_it_is_rung_a_worker_looks_at_all_lanes_once_a_second(void **state)
{
    enum { LANES = 300, RINGS = 50 };
    char name[32];
    atomic_int calls = 0;
    (void)state;
    if (!world_is_on_postgres())
        skip();
    for (int i = 0; i < LANES; i++) {
        snprintf(name, sizeof name, "shop.many%d.v1", i);
        world_define(name, 0, 0, 0);
    }
    world_handle("shop.*", count_it, &calls);
    world_start();
    ring_once(&calls);
    await_stand_by();
    int before = world_wide_looks();
    int64_t began = hf__monotonic_us();
    for (int i = 0; i < RINGS || hf__monotonic_us() < began + HF_SECONDS(2); i++)
        ring_once(&calls);
    await_stand_by();
    int looks = world_wide_looks() - before;
    int64_t seconds = (hf__monotonic_us() - began) / HF_SECONDS(1);
    assert_in_range(looks, 1, seconds + 2);
}

/* ---- A quiet moment ---- */

static atomic_int fed_up; /* no more successors */
static atomic_int at_work;
static atomic_int company; /* runs that were at work beside the suspect */

/* Work that never ends: each run starts the next. */
static hf_code work_on(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    hf_trigger_spec next = spec_of("shop.busy.v1", 0);
    hf_triggered out;
    (void)ctx;
    (void)input;
    (void)arg;
    atomic_fetch_add(&at_work, 1);
    world_sleep(HF_MILLISECONDS(2));
    hf_code code = atomic_load(&fed_up) ? HF_OK : hf_trigger(world.client, &out, &next, err);
    atomic_fetch_sub(&at_work, 1);
    return code;
}

static hf_code look_round(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)ctx;
    (void)input;
    (void)err;
    (void)arg;
    for (int i = 0; i < 50; i++) {
        atomic_fetch_add(&company, atomic_load(&at_work));
        world_sleep(HF_MILLISECONDS(1));
    }
    return HF_OK;
}

static void a_busy_worker_makes_a_quiet_moment_for_a_suspect(void **state)
{
    (void)state;
    atomic_store(&fed_up, 0);
    atomic_store(&company, 0);
    world_define("shop.killer.v1", 5, 0, 0);
    world_define("shop.busy.v1", 0, 0, 0);
    hf_id id = world_trigger("shop.killer.v1", NULL);
    world_claim_and_die("shop.killer.v1");
    world_claim_and_die("shop.killer.v1");
    world_handle("shop.killer.v1", look_round, NULL);
    world_handle("shop.busy.v1", work_on, NULL);
    world.worker->make_way_after = HF_MILLISECONDS(100);
    world.worker->make_way_for = SOON;     /* however slow the machine is */
    world.worker->heartbeat = HF_HOURS(1); /* after the first one it is not alone any longer */
    for (int i = 0; i < 20; i++)
        world_trigger("shop.busy.v1", NULL);
    world_start();
    hf_run *run = NULL;
    hf_code code = hf_wait(world.client, &run, id, SOON, NULL);
    atomic_store(&fed_up, 1);
    assert_int_equal(code, HF_OK);
    assert_int_equal(run->status, HF_SUCCEEDED);
    assert_int_equal(run->attempt, 3);
    assert_int_equal(atomic_load(&company), 0);
    hf_run_free(run);
}

static void learn_lanes(void)
{
    assert_ok(hf__masters_resolve(world.worker, NULL));
    assert_ok(hf__lanes_learn(world.worker, true, NULL));
}

static bool is_passed_over_at_the_next_look(void)
{
    assert_ok(hf__heads_look(world.worker, NULL));
    return world.worker->heads.passed_over;
}

static void note_taken(int count, int64_t later)
{
    const char *patterns[] = { "shop.note.v1" };
    hf_claim_spec spec = HF_CLAIM_INIT;
    hf_claims *claims = NULL;
    spec.worker = "other";
    spec.patterns = patterns;
    spec.pattern_count = 1;
    spec.limit = count;
    assert_ok(hf_claim(world.client, &claims, &spec, NULL));
    assert_int_equal(claims->count, count);
    for (size_t i = 0; i < claims->count; i++)
        hf__heads_taken(&world.worker->heads, claims->items[i].lane, 0,
                        claims->items[i].due_at + later);
    hf_claims_free(claims);
}

static void of_many_that_became_due_at_once_none_counts_as_passed_over(void **state)
{
    hf_trigger_spec specs[20];
    hf_triggered out[20];
    int64_t due = hf__clock_now(&hf__system_clock) - HF_SECONDS(1);
    (void)state;
    for (int i = 0; i < 20; i++) {
        specs[i] = spec_of("shop.note.v1", 0);
        specs[i].run_at = due; /* in whichever flush it comes */
    }
    world_define("shop.note.v1", 0, 0, 0);
    world_handle("shop.note.v1", count_it, NULL);
    assert_ok(hf_trigger_many(world.client, out, specs, 20, NULL));
    learn_lanes();
    assert_false(is_passed_over_at_the_next_look());
    assert_true(is_passed_over_at_the_next_look());
    note_taken(5, 0);
    assert_false(is_passed_over_at_the_next_look());
    note_taken(5, 1); /* what was taken was due later than what is still there */
    assert_true(is_passed_over_at_the_next_look());
    hf__masters_leave(world.worker);
}

/* ---- Floors ---- */

/* What the claimer would get of the heads that it knows. */
static size_t claim_above_floors(void)
{
    struct hf__arena arena;
    const struct hf__pick pick = { .most = 10, .breadth = 10, .with_floors = true };
    struct hf__op op = { .kind = HF__OP_CLAIM,
                         .claim = { .most = pick.most, .worker = "other", .arena = &arena } };
    hf__arena_init(&arena, 4096);
    op.claim.heads = hf__heads_pick(&world.worker->heads, &world.worker->lanes, &arena, &pick,
                                    &op.claim.head_count);
    assert_int_equal(op.claim.head_count, 1);
    hf__engine_apply(world.worker->engine, &op, 1);
    assert_ok(op.code);
    size_t count = op.claim.claims->count;
    hf__arena_free(&arena);
    return count;
}

/* A run may become due below a floor: committed late, or resumed. */
static void what_is_due_below_a_floor_is_claimed_after_the_next_look_at_all(void **state)
{
    (void)state;
    world_define("shop.note.v1", 0, 0, 0);
    world_handle("shop.note.v1", count_it, NULL);
    world_trigger("shop.note.v1", NULL);
    world_trigger("shop.note.v1", NULL);
    learn_lanes();
    assert_ok(hf__heads_look(world.worker, NULL));
    note_taken(1, HF_HOURS(1)); /* as if what was taken had been due after the other one */
    assert_int_equal(claim_above_floors(), 0);
    assert_ok(hf__heads_look_at(world.worker, NULL, 0, true, NULL));
    assert_int_equal(claim_above_floors(), 0); /* a look at some lanes keeps the floors */
    assert_ok(hf__heads_look(world.worker, NULL));
    assert_int_equal(claim_above_floors(), 1);
    hf__masters_leave(world.worker);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)
        TEST(a_priority_never_seen_before_is_served),
        TEST(several_lanes_at_once_are_served),
        TEST(a_ring_while_all_hands_are_busy_is_served_later),
        TEST(a_ring_for_a_paused_workflow_does_not_make_it_spin),
        TEST(however_often_it_is_rung_a_worker_looks_at_all_lanes_once_a_second),
        TEST(a_busy_worker_makes_a_quiet_moment_for_a_suspect),
        TEST(of_many_that_became_due_at_once_none_counts_as_passed_over),
        TEST(what_is_due_below_a_floor_is_claimed_after_the_next_look_at_all),
    };
    return world_run_tests(argc, argv, "worker rings", tests, sizeof tests / sizeof *tests);
}
