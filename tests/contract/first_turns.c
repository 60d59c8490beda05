/* First transitions that start other runs: with the trigger or not at all.
 * SPDX-License-Identifier: Apache-2.0 */
#include "client/client.h"
#include "contract/fixture.h"

#define CHILD "child"

static hf_trigger_spec family[2];

/* Waits for all of its children, of which there are `count`. */
static hf_transition first_with(size_t count)
{
    define(CHILD);
    family[0] = family[1] = spec_of(CHILD);
    return (hf_transition){
        .version = HF_TRANSITION_VERSION,
        .turn = HF_TURN_WAIT,
        .children = family,
        .child_count = count,
        .wait_children = (int)count,
    };
}

static hf_code try_first(const hf_trigger_spec *spec, const hf_transition *first, hf_triggered *out)
{
    return hf_trigger_with(fx.client, out, spec, first, &fx.error);
}

static hf_id begin(const hf_transition *first)
{
    hf_trigger_spec spec = spec_of(WORK);
    hf_triggered out;
    assert_ok(try_first(&spec, first, &out));
    return out.id;
}

static int64_t children_of(hf_id run)
{
    return sql_number("SELECT count(*) FROM run WHERE parent = %s", sql_id(run));
}

static int64_t runs(void)
{
    return sql_number("SELECT count(*) FROM run");
}

static void its_children_know_their_parent_and_their_ends_wake_it(void **state)
{
    hf_transition first = first_with(2);
    hf_id id = begin(&first);
    (void)state;
    expect_journal(id, "created waiting");
    assert_string_equal(get(id)->waiting_kind, "children");
    assert_int_equal(get(id)->wait_count, 2);
    const hf_claims *children = claim_as(WORKER, 10);
    assert_int_equal(children->count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(children->items[i].run.workflow, CHILD);
        assert_true(hf_id_equal(children->items[i].run.parent, id));
        assert_true(hf_id_equal(children->items[i].run.root, id));
        expect_nothing_due();
        succeed(&children->items[i]);
    }
    const hf_claimed *held = claim();
    assert_true(hf_id_equal(held->run.id, id));
    assert_int_equal(held->mail_count, 2);
}

static void a_child_that_fails_wakes_it_if_that_was_asked_for(void **state)
{
    hf_transition first = first_with(2);
    (void)state;
    first.wake_on_child_failure = true;
    begin(&first);
    fail_for_good(&claim_as(WORKER, 10)->items[0]);
    assert_int_equal(claim()->mail_count, 1);
}

static void it_may_be_pending_beside_its_children(void **state)
{
    hf_transition first = first_with(1);
    (void)state;
    first.turn = HF_TURN_RETRY;
    first.wait_children = 0;
    hf_id id = begin(&first);
    assert_int_equal(children_of(id), 1);
    assert_int_equal(claim_as(WORKER, 10)->count, 2);
}

static void what_it_starts_without_a_tie_has_no_parent(void **state)
{
    hf_transition first = first_with(0);
    (void)state;
    first.starts = family;
    first.start_count = 2;
    hf_id id = begin(&first);
    const hf_claims *started = claim_as(WORKER, 10);
    assert_int_equal(started->count, 2);
    assert_int_equal(children_of(id), 0);
    succeed(&started->items[0]);
    expect_nothing_due();
}

static void sent_again_after_a_lost_answer_all_is_there_once(void **state)
{
    hf_transition first = first_with(2);
    (void)state;
    first.starts = family;
    first.start_count = 1;
    for (int i = 0; i < 2; i++) {
        int64_t before = runs();
        int lost = answers_lost();
        if (i)
            lose_commits(1);
        else
            lose_answers(1);
        hf_id id = begin(&first);
        assert_int_equal(answers_lost(), lost + 1);
        assert_int_equal(children_of(id), 2);
        assert_int_equal(runs(), before + 4);
        expect_journal(id, "created waiting");
    }
}

/* The run that has the key keeps what it began with. */
static void a_key_that_is_there_starts_nothing_twice(void **state)
{
    hf_transition first = first_with(2);
    hf_trigger_spec spec = spec_of(WORK);
    hf_triggered out[2];
    (void)state;
    spec.key = "k";
    spec.input = "1";
    first.starts = family;
    first.start_count = 1;
    assert_ok(try_first(&spec, &first, &out[0]));
    const char *before = dump();
    assert_ok(try_first(&spec, &first, &out[1]));
    assert_true(out[1].existed);
    assert_true(hf_id_equal(out[0].id, out[1].id));
    spec.input = "2";
    assert_code(try_first(&spec, &first, &out[1]), HF_CONFLICT);
    assert_string_equal(before, dump());
}

static void children_that_cannot_be_started_refuse_the_trigger(void **state)
{
    hf_transition first = first_with(2);
    hf_trigger_spec spec = spec_of(WORK);
    hf_triggered out;
    (void)state;
    hf_trigger_spec taken = spec_of(CHILD);
    taken.key = "taken";
    trigger_spec(&taken);
    const char *before = dump();
    family[1].workflow = "nobody";
    assert_code(try_first(&spec, &first, &out), HF_UNKNOWN_WORKFLOW);
    family[1] = taken;
    assert_code(try_first(&spec, &first, &out), HF_CONFLICT);
    family[0].key = family[1].key = "same";
    assert_code(try_first(&spec, &first, &out), HF_CONFLICT);
    assert_string_equal(before, dump());
}

/* Plain triggers go ahead of them and keep the flusher busy, so that the others share a flush. */
static void of_many_first_turns_that_start_one_keyed_child_together_one_wins(void **state)
{
    enum { PLAIN = 20, ALL = 40 };
    hf_transition first = first_with(1);
    hf_trigger_spec spec = spec_of(WORK);
    struct hf__op ops[ALL];
    hf_id ids[ALL];
    int64_t before = runs();
    int won = 0;
    (void)state;
    family[0].key = "same";
    for (uint8_t i = 0; i < ALL; i++) {
        ids[i] = (hf_id){ { 1, i } };
        ops[i] = (struct hf__op){ .kind = HF__OP_TRIGGER,
                                  .tenant = fx.client->tenant_id,
                                  .actor = "tester",
                                  .trigger = { .id = { { 2, i } },
                                               .spec = &spec,
                                               .initial = i < PLAIN ? NULL : &first,
                                               .child_ids = &ids[i] } };
    }
    hf__engine_apply(fx.client->engine, ops, ALL);
    for (int i = PLAIN; i < ALL; i++) {
        won += ops[i].code == HF_OK;
        assert_true(ops[i].code == HF_OK || ops[i].code == HF_CONFLICT);
    }
    assert_int_equal(won, 1);
    assert_int_equal(runs(), before + PLAIN + 2);
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(its_children_know_their_parent_and_their_ends_wake_it),
    CONTRACT_TEST(a_child_that_fails_wakes_it_if_that_was_asked_for),
    CONTRACT_TEST(it_may_be_pending_beside_its_children),
    CONTRACT_TEST(what_it_starts_without_a_tie_has_no_parent),
    CONTRACT_TEST(sent_again_after_a_lost_answer_all_is_there_once),
    CONTRACT_TEST(a_key_that_is_there_starts_nothing_twice),
    CONTRACT_TEST(children_that_cannot_be_started_refuse_the_trigger),
    CONTRACT_TEST(of_many_first_turns_that_start_one_keyed_child_together_one_wins),
};
CONTRACT("first_turns", tests)
