/* Children that are alike are written by a way of their own, and are as others are.
 * SPDX-License-Identifier: Apache-2.0 */
#include "client/client.h"
#include "client/ids.h"
#include "contract/fixture.h"

#define CHILD "child"
#define FAMILIES 40
#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static hf_trigger_spec child_spec(void)
{
    hf_trigger_spec spec = spec_of(CHILD);
    spec.priority = 7;
    spec.input = "{\"n\":1}";
    spec.trace = TRACE;
    return spec;
}

/* Starts two, the second of them with what only the general way has a place for, if so asked; the first one's id. */
static hf_id start_two(const hf_claimed *parent, bool alike)
{
    static const char *const tags[] = { "odd" };
    hf_trigger_spec specs[2] = { child_spec(), child_spec() };
    hf_transition t = turn_of(parent, HF_TURN_GO_ON);
    hf_id ids[2];
    if (!alike) {
        specs[1].tags = tags;
        specs[1].tag_count = 1;
    }
    t.children = specs;
    t.child_count = 2;
    assert_ok(hf_commit(fx.client, &t, ids, &fx.error));
    return ids[0];
}

/* How many different lines the two runs have in these columns. */
static int64_t kinds(const char *columns, const char *table, const char *id, hf_id a, hf_id b)
{
    return sql_number("SELECT count(*) FROM (SELECT DISTINCT %s FROM %s WHERE %s IN (%s, %s)) AS d",
                      columns, table, id, sql_id(a), sql_id(b));
}

static void children_that_are_alike_are_written_as_others_are(void **state)
{
    hf_workflow child = { .name = CHILD, .timeout = HF_HOURS(1), .max_attempts = 5 };
    define_with(child, HF_SET_TIMEOUT | HF_SET_MAX_ATTEMPTS);
    const hf_claimed *parent = claim_new();
    hf_id by_itself = start_two(parent, true);
    hf_id beside = start_two(parent, false);
    (void)state;
    assert_int_equal(
        kinds("tenant_id, workflow_id, lane, status, claimed_from, watched, pause_requested, "
              "wake_on_failure, has_mail, has_steps, priority, attempt, version, revision, "
              "event_seq, wait_count, max_attempts, run_at, created_at, updated_at, started_at, "
              "finished_at, due_at, timeout_at, waiting_until, deleted_at, parent, root, "
              "active_task, key, leased_by, last_worker, input, state, result, error, error_code, "
              "last_error, waiting_kind, waiting_token, subject, reference, tags, partition, "
              "trace, actor, definition_hash, slot, debounce_key",
              "run", "id", by_itself, beside),
        1);
    assert_int_equal(kinds("seq, version, tenant_id, at, kind, format, name, actor, step, data",
                           "event", "run_id", by_itself, beside),
                     1);
    assert_int_equal(get(by_itself)->timeout_at, now() + HF_HOURS(1));
    assert_string_equal(get(by_itself)->trace, TRACE);
}

static void children_that_are_alike_have_inputs_of_their_own(void **state)
{
    static const char *const inputs[] = { "1", NULL, "{\"a\":[]}" };
    hf_trigger_spec specs[3];
    hf_id ids[3];
    define(CHILD);
    hf_transition t = turn_of(claim_new(), HF_TURN_WAIT);
    (void)state;
    for (int i = 0; i < 3; i++) {
        specs[i] = spec_of(CHILD);
        specs[i].input = inputs[i];
        specs[i].priority = i;
    }
    t.children = specs;
    t.child_count = 3;
    t.wait_children = 3;
    assert_ok(hf_commit(fx.client, &t, ids, &fx.error));
    const hf_claims *claims = claim_of(CHILD, 3);
    assert_int_equal(claims->count, 3);
    for (int i = 0; i < 3; i++) {
        const hf_run *run = get(ids[i]);
        assert_int_equal(run->priority, i);
        assert_string_equal(run->input ? run->input : "", inputs[i] ? inputs[i] : "");
    }
    assert_true(hf_id_equal(claims->items[0].run.id, ids[2]));
}

/* As workers' commits come: what gathers while the first is on its way makes one flush. */
static void families_of_one_flush_keep_their_parents(void **state)
{
    hf_trigger_spec spec = spec_of(CHILD);
    struct hf__op ops[FAMILIES];
    hf_transition turns[FAMILIES];
    hf_id ids[FAMILIES];
    define(CHILD);
    (void)state;
    for (int i = 0; i < FAMILIES; i++) {
        turns[i] = turn_of(claim_new(), HF_TURN_GO_ON);
        turns[i].children = &spec;
        turns[i].child_count = 1;
        ids[i] = hf__new_id();
        ops[i] = (struct hf__op){
            .kind = HF__OP_COMMIT,
            .tenant = fx.client->tenant_id,
            .actor = WORKER,
            .commit = { .transition = &turns[i], .child_ids = &ids[i], .new_ids = true },
        };
    }
    hf__engine_apply(fx.client->engine, ops, FAMILIES);
    for (int i = 0; i < FAMILIES; i++) {
        assert_int_equal(ops[i].code, HF_OK);
        assert_true(hf_id_equal(get(ids[i])->parent, turns[i].run));
    }
}

/* A remote worker chooses ids itself. */
static void a_chosen_id_that_is_there_already_is_borne_with(void **state)
{
    hf_trigger_spec specs[2] = { spec_of(CHILD), spec_of(CHILD) };
    hf_id ids[2] = { hf__new_id(), hf__new_id() };
    define(CHILD);
    hf_transition t = turn_of(claim_new(), HF_TURN_GO_ON);
    (void)state;
    t.children = specs;
    t.child_count = 1;
    assert_ok(hf__commit_with_ids(fx.client, &t, ids, &fx.error));
    t.child_count = 2;
    assert_ok(hf__commit_with_ids(fx.client, &t, ids, &fx.error));
    assert_int_equal(claim_of(CHILD, 10)->count, 2);
}

static void children_whose_commits_answer_was_lost_are_started_once(void **state)
{
    define(CHILD);
    const hf_claimed *parent = claim_new();
    (void)state;
    lose_answers(1);
    start_two(parent, true);
    assert_int_equal(claim_of(CHILD, 10)->count, 2);
}

static void a_commit_that_did_not_happen_starts_them_when_it_is_sent_again(void **state)
{
    define(CHILD);
    const hf_claimed *parent = claim_new();
    (void)state;
    lose_commits(1);
    start_two(parent, true);
    assert_int_equal(claim_of(CHILD, 10)->count, 2);
}

static void start_portion(const hf_claimed *parent, const char *data)
{
    hf_trigger_spec spec = child_spec();
    const hf_new_event line = { .kind = "step", .name = "waiting", .step = "fan", .data = data };
    hf_transition t = turn_of(parent, HF_TURN_GO_ON);
    t.children = &spec;
    t.child_count = 1;
    t.events = &line;
    t.event_count = 1;
    assert_ok(hf_commit(fx.client, &t, NULL, &fx.error));
}

/* They are written at one version, under one name. */
static void a_portion_is_not_taken_for_the_one_before_it(void **state)
{
    define(CHILD);
    const hf_claimed *parent = claim_new();
    (void)state;
    start_portion(parent, "{\"started\":1}");
    lose_commits(1);
    start_portion(parent, "{\"started\":2}");
    lose_answers(1);
    start_portion(parent, "{\"started\":3}");
    assert_int_equal(claim_of(CHILD, 10)->count, 3);
}

static void a_stale_holder_starts_no_children(void **state)
{
    hf_trigger_spec spec = spec_of(CHILD);
    define(CHILD);
    hf_transition t = turn_of(claim_new(), HF_TURN_GO_ON);
    (void)state;
    change(t.run, HF_CANCEL);
    t.children = &spec;
    t.child_count = 1;
    assert_code(hf_commit(fx.client, &t, NULL, &fx.error), HF_RUN_CANCELLED);
    assert_int_equal(sql_number("SELECT count(*) FROM run WHERE parent = %s", sql_id(t.run)), 0);
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(children_that_are_alike_are_written_as_others_are),
    CONTRACT_TEST(children_that_are_alike_have_inputs_of_their_own),
    CONTRACT_TEST(families_of_one_flush_keep_their_parents),
    CONTRACT_TEST(a_chosen_id_that_is_there_already_is_borne_with),
    CONTRACT_TEST(children_whose_commits_answer_was_lost_are_started_once),
    CONTRACT_TEST(a_commit_that_did_not_happen_starts_them_when_it_is_sent_again),
    CONTRACT_TEST(a_portion_is_not_taken_for_the_one_before_it),
    CONTRACT_TEST(a_stale_holder_starts_no_children),
};
CONTRACT("siblings", tests)
