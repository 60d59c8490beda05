/* Durable functions whose history is longer than what a claim brings: they fail, and say why. C2.
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_history_that_is_cut_is_not_taken_for_the_whole),
    };
    return world_run_tests("function limits", tests, sizeof tests / sizeof *tests);
}
