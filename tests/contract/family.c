/* SPDX-License-Identifier: Apache-2.0 */
#include "contract/family.h"

#include "client/client.h"
#include "contract/submitting.h"

hf_id waiting_parent(size_t count, bool wake_on_failure, hf_id *children)
{
    hf_trigger_spec *specs = keep(calloc(count, sizeof *specs), free);
    define(CHILD);
    hf_transition t = turn_of(claim_new(), HF_TURN_WAIT);
    for (size_t i = 0; i < count; i++)
        specs[i] = spec_of(CHILD);
    t.children = specs;
    t.child_count = count;
    t.wait_children = (int)count;
    t.wake_on_child_failure = wake_on_failure;
    assert_ok(hf_commit(fx.client, &t, children, &fx.error));
    return t.run;
}

const hf_claimed *claim_parent(void)
{
    const hf_claims *claims = claim_of(WORK, 10);
    return claims->count == 1 ? &claims->items[0] : NULL;
}

static struct {
    struct hf__op *ops;
    size_t count;
    struct answers answers;
} waiting;

static void submit_all(void)
{
    for (size_t i = 0; i < waiting.count; i++)
        submit_to(fx.client, &waiting.ops[i], &waiting.answers);
}

/* They come while another flush is under way, whose signal finds no run, so that the next one takes them all. */
static void apply_in_one_flush(struct hf__op *ops, size_t count)
{
    hf_signal_spec spec = HF_SIGNAL_INIT;
    waiting.ops = ops;
    waiting.count = count;
    atomic_store(&waiting.answers.count, 0);
    spec.name = "nobody";
    when_committed(submit_all);
    assert_code(try_signal((hf_id){ .bytes = { 1 } }, &spec), HF_NOT_FOUND);
    await(&waiting.answers, (int)count);
}

void end_mixed(const hf_claims *children, hf_turn first, hf_turn rest, const char *result)
{
    struct hf__op *ops = keep(calloc(children->count, sizeof *ops), free);
    hf_transition *ends = keep(calloc(children->count, sizeof *ends), free);
    for (size_t i = 0; i < children->count; i++) {
        ends[i] = turn_of(&children->items[i], i == 0 ? first : rest);
        ends[i].result = ends[i].turn == HF_TURN_SUCCEED ? result : NULL;
        ops[i] = (struct hf__op){ .kind = HF__OP_COMMIT,
                                  .tenant = fx.client->tenant_id,
                                  .actor = WORKER,
                                  .commit = { .transition = &ends[i],
                                              .child = &children->items[i].run } };
    }
    apply_in_one_flush(ops, children->count);
    for (size_t i = 0; i < children->count; i++)
        assert_int_equal(ops[i].code, HF_OK);
}

void end_together(const hf_claims *children, hf_turn turn)
{
    end_mixed(children, turn, turn, "{\"n\":7}");
}

void take_ends(const hf_claimed *held)
{
    hf_transition t = turn_of(held, HF_TURN_GO_ON);
    struct hf__op op = { .kind = HF__OP_COMMIT,
                         .tenant = fx.client->tenant_id,
                         .actor = WORKER,
                         .commit = { .transition = &t,
                                     .ends_from = held->mail[0].position,
                                     .ends_to = held->mail[held->mail_count - 1].position } };
    hf__engine_apply(fx.client->engine, &op, 1);
    assert_int_equal(op.code, HF_OK);
}

int64_t mail_of(hf_id run)
{
    return sql_number("SELECT coalesce(sum(coalesce(ends, 1)), 0) FROM signal WHERE run_id = %s",
                      sql_id(run));
}

int64_t rows_of(hf_id run)
{
    return sql_number("SELECT count(*) FROM signal WHERE run_id = %s", sql_id(run));
}
