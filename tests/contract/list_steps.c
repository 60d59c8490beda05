/* Lists by step find a run by the last step that it has made and by no other, whatever has become of it since. A12.
 * SPDX-License-Identifier: Apache-2.0 */
#include "client/client.h"
#include "contract/fixture.h"

#define CHILD "child"

static void save_step(const hf_claimed *held, const char *name)
{
    const hf_step_record step = { .run = held->run.id,
                                  .run_version = held->run.version,
                                  .worker = WORKER,
                                  .name = name,
                                  .status = "succeeded",
                                  .data = "1" };
    assert_ok(hf_step_save(fx.client, &step, &fx.error));
}

static size_t count_at(const char *step)
{
    hf_filter filter = HF_FILTER_INIT;
    filter.current_step = step;
    return list(&filter)->count;
}

/* At this one of the steps that the tests know, NULL: at none, and nothing else is. */
static void expect_at(hf_id run, const char *step)
{
    static const char *const steps[] = { "pack", "send", "bill" };
    hf_filter filter = HF_FILTER_INIT;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        filter.current_step = steps[i];
        bool here = step && strcmp(steps[i], step) == 0;
        assert_int_equal(count_at(steps[i]), here);
        if (here)
            assert_true(hf_id_equal(list(&filter)->items[0].id, run));
    }
}

/* A run that has made a step, and waits. */
static hf_id waiting_at(const char *step)
{
    const hf_claimed *held = claim_new();
    save_step(held, step);
    wait_for_signal(held);
    return held->run.id;
}

static const hf_claimed *wake(hf_id run)
{
    send_signal(run, "go");
    return claim();
}

/* ---- Held ---- */

static void a_held_run_is_found_by_the_step_it_moved_on_to(void **state)
{
    hf_id run = waiting_at("pack");
    (void)state;
    expect_at(run, "pack");
    const hf_claimed *held = wake(run);
    expect_at(run, "pack");
    save_step(held, "send");
    expect_at(run, "send");
    save_step(held, "bill");
    expect_at(run, "bill");
    wait_for_signal(held);
    expect_at(run, "bill");
}

static void a_run_that_goes_on_is_found_by_the_step_it_names(void **state)
{
    hf_id run = waiting_at("pack");
    const hf_claimed *held = wake(run);
    hf_transition t = turn_of(held, HF_TURN_GO_ON);
    (void)state;
    t.current_step = "send";
    commit(&t);
    expect_status(run, HF_LEASED);
    expect_at(run, "send");
}

static void a_signal_to_a_held_run_leaves_it_at_its_step(void **state)
{
    hf_id run = waiting_at("pack");
    const hf_claimed *held = wake(run);
    (void)state;
    save_step(held, "send");
    send_signal(run, "more");
    change(run, HF_PAUSE);
    expect_at(run, "send");
}

static void a_run_whose_holder_died_is_found_by_its_last_step(void **state)
{
    hf_id run = waiting_at("pack");
    (void)state;
    save_step(wake(run), "send");
    advance(LEASE + 1);
    expect_at(run, "send");
    const hf_claimed *held = claim();
    expect_at(run, "send");
    commit(&(hf_transition){ .version = HF_TRANSITION_VERSION,
                             .run = run,
                             .run_version = held->run.version,
                             .worker = WORKER,
                             .turn = HF_TURN_GIVE_BACK });
    expect_status(run, HF_PENDING);
    expect_at(run, "send");
}

/* ---- Let go ---- */

static void a_wait_is_found_by_the_step_it_names(void **state)
{
    hf_id run = waiting_at("pack");
    const hf_claimed *held = wake(run);
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    (void)state;
    save_step(held, "send");
    t.current_step = "bill";
    t.waiting_kind = "signal";
    commit(&t);
    expect_at(run, "bill");
    change(run, HF_PAUSE);
    expect_at(run, "bill");
    change(run, HF_RESUME);
    expect_at(run, "bill");
}

static void a_run_that_ended_is_found_by_its_last_step(void **state)
{
    hf_id run = waiting_at("pack");
    const hf_claimed *held = wake(run);
    hf_transition t = turn_of(held, HF_TURN_SUCCEED);
    (void)state;
    save_step(held, "send");
    assert_ok(try_commit_short(&t));
    expect_status(run, HF_SUCCEEDED);
    expect_at(run, "send");
    change(run, HF_DELETE);
    expect_at(run, NULL);
    change(run, HF_RESTORE);
    expect_at(run, "send");
}

static void a_run_that_was_cancelled_while_held_is_found_by_its_last_step(void **state)
{
    hf_id run = waiting_at("pack");
    (void)state;
    save_step(wake(run), "send");
    change(run, HF_CANCEL);
    expect_status(run, HF_CANCELLED);
    expect_at(run, "send");
}

/* As a worker does it, which knows that it is a child. */
static void end_child(const hf_claimed *held)
{
    const hf_transition end = turn_of(held, HF_TURN_SUCCEED);
    struct hf__op op = { .kind = HF__OP_COMMIT,
                         .tenant = fx.client->tenant_id,
                         .actor = WORKER,
                         .commit = { .transition = &end, .child = &held->run } };
    hf__engine_apply(fx.client->engine, &op, 1);
    assert_int_equal(op.code, HF_OK);
}

static void a_child_that_ended_is_found_by_its_last_step(void **state)
{
    hf_trigger_spec spec = spec_of(CHILD);
    hf_id child;
    (void)state;
    define(CHILD);
    hf_transition t = turn_of(claim_new(), HF_TURN_WAIT);
    t.children = &spec;
    t.child_count = 1;
    t.wait_children = 1;
    assert_ok(hf_commit(fx.client, &t, &child, &fx.error));
    const hf_claimed *held = &claim_of(CHILD, 1)->items[0];
    save_step(held, "pack");
    expect_at(child, "pack");
    end_child(held);
    expect_status(child, HF_SUCCEEDED);
    expect_at(child, "pack");
}

/* ---- Again ---- */

static void a_retried_run_is_found_by_the_step_of_each_try(void **state)
{
    const hf_claimed *held = claim_new();
    hf_id run = held->run.id;
    (void)state;
    save_step(held, "pack");
    retry_after(held, 0);
    expect_at(run, "pack");
    held = claim();
    save_step(held, "send");
    fail_for_good(held);
    expect_at(run, "send");
    change(run, HF_RETRY_RUN);
    expect_status(run, HF_PENDING);
    expect_at(run, "send");
    held = claim();
    save_step(held, "bill");
    expect_at(run, "bill");
    succeed(held);
    expect_at(run, "bill");
}

/* What a fork remembers are steps of another run's turn. */
static void a_fork_is_found_by_steps_of_its_own(void **state)
{
    const hf_claimed *held = claim_new();
    hf_triggered forked;
    (void)state;
    save_step(held, "pack");
    save_step(held, "send");
    fail_for_good(held);
    assert_ok(hf_fork(fx.client, &forked, held->run.id, "send", NULL, &fx.error));
    expect_at(held->run.id, "send");
    held = claim();
    assert_true(hf_id_equal(held->run.id, forked.id));
    save_step(held, "bill");
    assert_int_equal(count_at("bill"), 1);
    succeed(held);
    assert_int_equal(count_at("bill"), 1);
    assert_int_equal(count_at("pack"), 0);
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(a_held_run_is_found_by_the_step_it_moved_on_to),
    CONTRACT_TEST(a_run_that_goes_on_is_found_by_the_step_it_names),
    CONTRACT_TEST(a_signal_to_a_held_run_leaves_it_at_its_step),
    CONTRACT_TEST(a_run_whose_holder_died_is_found_by_its_last_step),
    CONTRACT_TEST(a_wait_is_found_by_the_step_it_names),
    CONTRACT_TEST(a_run_that_ended_is_found_by_its_last_step),
    CONTRACT_TEST(a_run_that_was_cancelled_while_held_is_found_by_its_last_step),
    CONTRACT_TEST(a_child_that_ended_is_found_by_its_last_step),
    CONTRACT_TEST(a_retried_run_is_found_by_the_step_of_each_try),
    CONTRACT_TEST(a_fork_is_found_by_steps_of_its_own),
};

CONTRACT("list_steps", tests)
