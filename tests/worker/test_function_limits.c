/* Durable functions whose history or mailbox is longer than what a claim brings: they fail, and say why. C2.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/client.h"
#include "worker/world.h"

#define WORKFLOW "shop.order.v1"
#define MOST HF__LOAD_MOST

static atomic_int done_again;

static struct hf__op op_of(enum hf__op_kind kind)
{
    return (struct hf__op){
        .kind = kind, .tenant = world.client->tenant_id, .actor = "tester", .shard = 1
    };
}

static void apply(struct hf__op *ops, size_t count)
{
    hf__engine_apply(world.client->engine, ops, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(ops[i].code, HF_OK);
}

/* No worker runs yet. */
static hf_id begin(hf_handler handler)
{
    atomic_store(&done_again, 0);
    world_handle(WORKFLOW, handler, NULL);
    world_define(WORKFLOW, 3, HF_MILLISECONDS(1), 0);
    return world_trigger(WORKFLOW, "{}");
}

static void expect_failure(hf_id id, const char *code, const char *message)
{
    world_start();
    hf_run *run = world_wait(id);
    assert_int_equal(run->status, HF_FAILED);
    assert_string_equal(run->error_code, code);
    assert_non_null(strstr(run->last_error, message));
    hf_run_free(run);
}

/* ---- History ---- */

static void name_step(char name[16], int number)
{
    snprintf(name, 16, "s%d", number);
}

static hf_code takes_many_steps(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    char name[16];
    (void)input;
    (void)arg;
    for (int i = 0; i <= MOST; i++) {
        hf_step step;
        name_step(name, i);
        if (hf_step_begin(ctx, name, &step)) {
            atomic_fetch_add(&done_again, 1);
            hf_try(hf_step_done(&step, NULL));
        }
        hf_try(hf_step_result(&step, err));
    }
    return hf_return(ctx, "1");
}

/* Claims the run, records steps of these numbers at once and ends the turn. */
static void record_steps(int from, int to, hf_turn turn)
{
    hf_claims *claims = NULL;
    hf_claim_spec spec = HF_CLAIM_INIT;
    size_t count = (size_t)(to - from);
    hf_new_event *events = calloc(count, sizeof *events);
    char(*names)[16] = calloc(count, sizeof *names);
    spec.worker = "tester";
    spec.patterns = (const char *const[]){ WORKFLOW };
    spec.pattern_count = 1;
    spec.limit = 1;
    assert_ok(hf_claim(world.client, &claims, &spec, &world.error));
    assert_int_equal(claims->count, 1);
    for (size_t i = 0; i < count; i++) {
        name_step(names[i], from + (int)i);
        events[i] = (hf_new_event){ .kind = "step",
                                    .name = "succeeded",
                                    .step = names[i],
                                    .data = "{\"op\":\"step\",\"attempt\":1}" };
    }
    hf_transition t = { .version = HF_TRANSITION_VERSION,
                        .run = claims->items[0].run.id,
                        .run_version = claims->items[0].run.version,
                        .worker = "tester",
                        .turn = turn,
                        .events = events,
                        .event_count = count };
    struct hf__op op = op_of(HF__OP_COMMIT);
    op.commit.transition = &t;
    apply(&op, 1);
    hf_claims_free(claims);
    free(events);
    free(names);
}

/* The first lines are a retry and all but one of the steps that a claim brings. */
static void a_history_that_is_cut_is_not_taken_for_the_whole(void **state)
{
    (void)state;
    hf_id id = begin(takes_many_steps);
    record_steps(0, 1, HF_TURN_RETRY);
    record_steps(1, MOST + 1, HF_TURN_GIVE_BACK);
    expect_failure(id, "permanent", "can remember 100000 calls at most");
    assert_int_equal(atomic_load(&done_again), 0);
}

/* ---- Mailbox ---- */

/* So many signals of one name, then one of another. */
static void bury(hf_id id, size_t count)
{
    enum { AT_ONCE = 2000 };
    struct hf__op *ops = calloc(AT_ONCE, sizeof *ops);
    hf_signal_spec *specs = calloc(AT_ONCE, sizeof *specs);
    char(*names)[16] = calloc(AT_ONCE, sizeof *names);
    for (size_t sent = 0; sent <= count; sent += AT_ONCE) {
        size_t part = count + 1 - sent < AT_ONCE ? count + 1 - sent : AT_ONCE;
        for (size_t i = 0; i < part; i++) {
            snprintf(names[i], sizeof names[i], "m%zu", sent + i);
            specs[i] = (hf_signal_spec){ .version = HF_SIGNAL_VERSION,
                                         .id = names[i],
                                         .type = "external",
                                         .name = sent + i < count ? "a" : "b" };
            ops[i] = op_of(HF__OP_SIGNAL);
            ops[i].signal.run = id;
            ops[i].signal.spec = &specs[i];
        }
        apply(ops, part);
    }
    free(ops);
    free(specs);
    free(names);
}

static atomic_bool takes_one_before;

static hf_code waits_for_b(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)input;
    (void)err;
    (void)arg;
    if (atomic_load(&takes_one_before))
        hf_try(hf_wait_signal(ctx, "a", 0, NULL));
    hf_try(hf_wait_signal(ctx, "b", 0, NULL));
    return hf_return(ctx, "1");
}

static void a_signal_that_cannot_be_seen_is_not_waited_for_until_there_is_room(void **state)
{
    hf_change change = HF_CHANGE_INIT;
    (void)state;
    atomic_store(&takes_one_before, false);
    hf_id id = begin(waits_for_b);
    bury(id, MOST);
    expect_failure(id, "mailbox_full",
                   "the mailbox holds more than a function sees at once, 100000");
    atomic_store(&takes_one_before, true);
    assert_ok(hf_change_run(world.client, id, HF_RETRY_RUN, &change, &world.error));
    world_expect_result(id, "1");
}

static hf_code waits_for_too_many(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    size_t count = MOST + 1;
    hf_id *ids = calloc(count, sizeof *ids);
    hf_child_end *ends = calloc(count, sizeof *ends);
    (void)input;
    (void)err;
    (void)arg;
    for (size_t i = 0; i < count; i++) {
        size_t number = i + 1;
        memcpy(&ids[i], &number, sizeof number);
    }
    hf_code code = hf_children_wait(ctx, "all", ids, count, HF_WAIT_ALL, 0, ends);
    free(ids);
    free(ends);
    return code;
}

static void more_children_than_can_be_seen_are_not_waited_for(void **state)
{
    (void)state;
    hf_id id = begin(waits_for_too_many);
    expect_failure(id, "permanent", "\"all\" waits for more than 100000 ends at once");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(a_history_that_is_cut_is_not_taken_for_the_whole),
        TEST(a_signal_that_cannot_be_seen_is_not_waited_for_until_there_is_room),
        TEST(more_children_than_can_be_seen_are_not_waited_for),
    };
    return world_run_tests(argc, argv, "function limits", tests, sizeof tests / sizeof *tests);
}
