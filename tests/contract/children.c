/* Children: started with their parent's commit, their ends come back as mail, and the parent wakes when it should. A7,
 * C3.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "client/client.h"
#include "contract/fixture.h"

#define CHILD "child"

/* A held parent of its own workflow, so that children are claimed apart from it. */
static const hf_claimed *hold_parent(void)
{
    define(CHILD);
    return claim_new();
}

static const hf_claims *claim_children(int limit)
{
    return claim_of(CHILD, limit);
}

static const hf_claimed *claim_parent(void)
{
    const hf_claims *claims = claim_of(WORK, 10);
    return claims->count == 1 ? &claims->items[0] : NULL;
}

/* Starts `count` children and waits for `wanted` ends. */
static hf_id *start(const hf_claimed *held, size_t count, int wanted, bool wake_on_failure)
{
    hf_trigger_spec *specs = keep(calloc(count, sizeof *specs), free);
    hf_id *ids = keep(calloc(count, sizeof *ids), free);
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    for (size_t i = 0; i < count; i++)
        specs[i] = spec_of(CHILD);
    t.children = specs;
    t.child_count = count;
    t.wait_children = wanted;
    t.wake_on_child_failure = wake_on_failure;
    assert_ok(hf_commit(fx.client, &t, ids, &fx.error));
    return ids;
}

static void a_child_knows_its_parent_and_its_root(void **state)
{
    const hf_claimed *parent = hold_parent();
    hf_id *child = start(parent, 1, 1, false);
    const hf_run *run = get(child[0]);
    (void)state;
    assert_string_equal(run->workflow, CHILD);
    assert_true(hf_id_equal(run->parent, parent->run.id));
    assert_true(hf_id_equal(run->root, parent->run.id));
    assert_string_equal(run->actor, WORKER);
    const hf_claims *claims = claim_children(1);
    hf_id *grandchild = start(&claims->items[0], 1, 1, false);
    assert_true(hf_id_equal(get(grandchild[0])->parent, child[0]));
    assert_true(hf_id_equal(get(grandchild[0])->root, parent->run.id));
}

static void a_child_has_what_its_trigger_says(void **state)
{
    static const char *const tags[] = { "red" };
    const hf_claimed *parent = hold_parent();
    hf_trigger_spec spec = spec_of(CHILD);
    hf_transition t = turn_of(parent, HF_TURN_WAIT);
    hf_id id;
    (void)state;
    spec.key = "c-1";
    spec.input = "{\"n\":1}";
    spec.priority = 3;
    spec.tags = tags;
    spec.tag_count = 1;
    t.children = &spec;
    t.child_count = 1;
    assert_ok(hf_commit(fx.client, &t, &id, &fx.error));
    const hf_run *run = get(id);
    assert_string_equal(run->key, "c-1");
    assert_string_equal(run->input, "{\"n\":1}");
    assert_int_equal(run->priority, 3);
    assert_string_equal(run->tags, "[\"red\"]");
}

#define TRACE "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
#define OTHER_TRACE "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-00"

static const hf_claimed *hold_traced_parent(void)
{
    hf_trigger_spec spec = spec_of(WORK);
    spec.trace = TRACE;
    define(CHILD);
    trigger_spec(&spec);
    return claim_parent();
}

static void runs_that_a_run_starts_have_its_trace(void **state)
{
    const hf_claimed *parent = hold_traced_parent();
    hf_trigger_spec child = spec_of(CHILD);
    hf_trigger_spec plain = spec_of(CHILD);
    hf_transition t = turn_of(parent, HF_TURN_WAIT);
    hf_id id;
    (void)state;
    plain.key = "plain";
    t.children = &child;
    t.starts = &plain;
    t.child_count = t.start_count = 1;
    assert_ok(hf_commit(fx.client, &t, &id, &fx.error));
    assert_string_equal(get(id)->trace, TRACE);
    hf_run *started = NULL;
    assert_ok(hf_get_by_key(fx.client, &started, CHILD, "plain", &fx.error));
    assert_string_equal(started->trace, TRACE);
    hf_run_free(started);
}

static void a_child_may_have_a_trace_of_its_own(void **state)
{
    const hf_claimed *parent = hold_traced_parent();
    hf_trigger_spec child = spec_of(CHILD);
    hf_transition t = turn_of(parent, HF_TURN_WAIT);
    hf_id id;
    (void)state;
    child.trace = OTHER_TRACE;
    t.children = &child;
    t.child_count = 1;
    assert_ok(hf_commit(fx.client, &t, &id, &fx.error));
    assert_string_equal(get(id)->trace, OTHER_TRACE);
}

static void a_childs_end_comes_back_as_mail_with_its_result(void **state)
{
    const hf_claimed *parent = hold_parent();
    hf_trigger_spec spec = spec_of(CHILD);
    hf_transition t = turn_of(parent, HF_TURN_WAIT);
    hf_id id;
    char text[HF_ID_TEXT];
    (void)state;
    spec.key = "part \"1\"";
    t.children = &spec;
    t.child_count = 1;
    t.wait_children = 1;
    assert_ok(hf_commit(fx.client, &t, &id, &fx.error));
    assert_string_equal(get(parent->run.id)->waiting_kind, "children");
    assert_int_equal(get(parent->run.id)->wait_count, 1);
    t = turn_of(&claim_children(1)->items[0], HF_TURN_SUCCEED);
    t.result = "{\"sum\":42}";
    commit(&t);
    const hf_claimed *held = claim_parent();
    assert_non_null(held);
    assert_int_equal(held->mail_count, 1);
    hf_id_format(id, text);
    assert_string_equal(held->mail[0].type, "child");
    assert_string_equal(held->mail[0].name, "part \"1\"");
    assert_string_equal(held->mail[0].sender, text);
    assert_string_equal(
        held->mail[0].payload,
        text_of("{\"run\":\"%s\",\"workflow\":\"child\",\"status\":\"succeeded\","
                "\"key\":\"part \\\"1\\\"\",\"result\":{\"sum\":42},\"error\":null}",
                text));
}

/* Whoever takes the short way to end a run by mistake is led round by the long one. */
static void a_childs_end_by_the_short_way_reaches_its_parent_too(void **state)
{
    const hf_claimed *parent = hold_parent();
    (void)state;
    start(parent, 1, 1, false);
    hf_transition t = turn_of(&claim_children(1)->items[0], HF_TURN_SUCCEED);
    assert_ok(try_commit_short(&t));
    assert_int_equal(claim_parent()->mail_count, 1);
}

static void a_parent_that_waits_for_all_wakes_with_the_last(void **state)
{
    const hf_claimed *parent = hold_parent();
    (void)state;
    start(parent, 3, 3, false);
    const hf_claims *children = claim_children(3);
    for (int i = 0; i < 3; i++) {
        assert_null(claim_parent());
        assert_int_equal(get(parent->run.id)->wait_count, 3 - i);
        succeed(&children->items[i]);
    }
    assert_int_equal(claim_parent()->mail_count, 3);
}

static void a_parent_that_waits_for_any_wakes_with_the_first(void **state)
{
    const hf_claimed *parent = hold_parent();
    (void)state;
    start(parent, 3, 1, false);
    succeed(&claim_children(3)->items[1]);
    assert_int_equal(claim_parent()->mail_count, 1);
}

static void a_failed_child_wakes_its_parent_if_that_was_asked_for(void **state)
{
    const hf_claimed *parent = hold_parent();
    (void)state;
    start(parent, 3, 3, true);
    fail_for_good(&claim_children(3)->items[0]);
    const hf_claimed *held = claim_parent();
    assert_non_null(held);
    assert_non_null(strstr(held->mail[0].payload, "\"status\":\"failed\""));
}

static void a_failed_child_is_an_end_like_any_other_if_not(void **state)
{
    const hf_claimed *parent = hold_parent();
    (void)state;
    start(parent, 2, 2, false);
    const hf_claims *children = claim_children(2);
    fail_for_good(&children->items[0]);
    assert_null(claim_parent());
    succeed(&children->items[1]);
    assert_int_equal(claim_parent()->mail_count, 2);
}

static void a_cancelled_child_tells_its_parent_too(void **state)
{
    const hf_claimed *parent = hold_parent();
    hf_id *child = start(parent, 1, 1, false);
    (void)state;
    change(child[0], HF_CANCEL);
    assert_non_null(strstr(claim_parent()->mail[0].payload, "\"status\":\"cancelled\""));
}

/* The ends are counted in the mailbox, under the parent's lock. */
static void children_that_ended_before_the_parent_waits_are_counted(void **state)
{
    const hf_claimed *parent = hold_parent();
    hf_trigger_spec specs[] = { spec_of(CHILD), spec_of(CHILD) };
    hf_transition t = turn_of(parent, HF_TURN_RETRY);
    (void)state;
    t.children = specs;
    t.child_count = 2;
    commit(&t);
    parent = claim_parent();
    const hf_claims *children = claim_children(2);
    succeed(&children->items[0]);
    succeed(&children->items[1]);
    t = turn_of(parent, HF_TURN_WAIT);
    t.wait_children = 2;
    commit(&t);
    assert_int_equal(get(parent->run.id)->wait_count, 0);
    assert_int_equal(claim_parent()->mail_count, 2);
}

static void a_child_that_ended_before_the_parent_waits_lowers_what_is_left(void **state)
{
    const hf_claimed *parent = hold_parent();
    hf_trigger_spec specs[] = { spec_of(CHILD), spec_of(CHILD) };
    hf_transition t = turn_of(parent, HF_TURN_RETRY);
    (void)state;
    t.children = specs;
    t.child_count = 2;
    commit(&t);
    parent = claim_parent();
    const hf_claims *children = claim_children(2);
    succeed(&children->items[0]);
    t = turn_of(parent, HF_TURN_WAIT);
    t.wait_children = 2;
    commit(&t);
    assert_int_equal(get(parent->run.id)->wait_count, 1);
    assert_null(claim_parent());
    succeed(&children->items[1]);
    assert_int_equal(claim_parent()->mail_count, 2);
}

static void ends_that_were_consumed_do_not_count_for_the_next_wait(void **state)
{
    const hf_claimed *parent = hold_parent();
    (void)state;
    start(parent, 2, 1, true);
    const hf_claims *children = claim_children(2);
    fail_for_good(&children->items[0]);
    parent = claim_parent();
    hf_transition t = turn_of(parent, HF_TURN_WAIT);
    t.wait_children = 1;
    t.wake_on_child_failure = true;
    consume_all(parent, &t);
    assert_int_equal(get(parent->run.id)->wait_count, 1);
    assert_null(claim_parent());
    succeed(&children->items[1]);
    assert_int_equal(claim_parent()->mail_count, 1);
}

static void a_failure_that_was_seen_wakes_nobody_but_the_next_one_does(void **state)
{
    const hf_claimed *parent = hold_parent();
    (void)state;
    start(parent, 3, 3, true);
    const hf_claims *children = claim_children(3);
    fail_for_good(&children->items[0]);
    parent = claim_parent();
    hf_transition t = turn_of(parent, HF_TURN_WAIT);
    t.wait_children = 3;
    t.wake_on_child_failure = true;
    commit(&t);
    assert_null(claim_parent());
    fail_for_good(&children->items[1]);
    parent = claim_parent();
    assert_int_equal(parent->mail_count, 2);
    fail_for_good(&children->items[2]);
    t = turn_of(parent, HF_TURN_WAIT);
    t.wait_children = 4;
    t.wake_on_child_failure = true;
    commit(&t); /* it came after the claim */
    assert_int_equal(claim_parent()->mail_count, 3);
}

static void consuming_one_end_twice_does_not_make_the_parent_wait_for_ever(void **state)
{
    const hf_claimed *parent = hold_parent();
    (void)state;
    start(parent, 2, 1, false);
    const hf_claims *children = claim_children(2);
    succeed(&children->items[0]);
    parent = claim_parent();
    succeed(&children->items[1]);
    const char *const twice[] = { parent->mail[0].id, parent->mail[0].id };
    hf_transition t = turn_of(parent, HF_TURN_WAIT);
    t.consumed = twice;
    t.consumed_count = 2;
    t.wait_children = 1;
    commit(&t);
    assert_int_equal(claim_parent()->mail_count, 1);
}

static void a_signal_wakes_a_parent_that_waits_for_children(void **state)
{
    const hf_claimed *parent = hold_parent();
    (void)state;
    start(parent, 1, 1, false);
    send_signal(parent->run.id, "news");
    const hf_claimed *held = claim_parent();
    assert_int_equal(held->mail_count, 1);
    assert_string_equal(held->mail[0].name, "news");
}

static void a_child_that_ends_while_its_parent_is_paused_wakes_it_after_the_pause(void **state)
{
    const hf_claimed *parent = hold_parent();
    (void)state;
    start(parent, 1, 1, false);
    change(parent->run.id, HF_PAUSE);
    succeed(&claim_children(1)->items[0]);
    assert_null(claim_parent());
    change(parent->run.id, HF_RESUME);
    assert_int_equal(claim_parent()->mail_count, 1);
}

static void a_child_that_ends_while_its_parent_is_deleted_wakes_it_when_that_is_restored(
    void **state)
{
    const hf_claimed *parent = hold_parent();
    (void)state;
    start(parent, 1, 1, false);
    change(parent->run.id, HF_DELETE);
    succeed(&claim_children(1)->items[0]);
    assert_null(claim_parent());
    change(parent->run.id, HF_RESTORE);
    assert_int_equal(claim_parent()->mail_count, 1);
}

/* Ten thousand ends are not ten thousand turns. */
static void a_thousand_children_wake_their_parent_once(void **state)
{
    const hf_claimed *parent = hold_parent();
    enum { MANY = 1000 };
    (void)state;
    start(parent, MANY, MANY, false);
    const hf_claims *children = claim_children(MANY);
    assert_int_equal(children->count, MANY);
    struct hf__op *ops = keep(calloc(MANY, sizeof *ops), free);
    hf_transition *ends = keep(calloc(MANY, sizeof *ends), free);
    for (size_t i = 0; i < MANY; i++) {
        ends[i] = turn_of(&children->items[i], HF_TURN_SUCCEED);
        ops[i] = (struct hf__op){ .kind = HF__OP_COMMIT,
                                  .tenant = fx.client->tenant_id,
                                  .actor = WORKER,
                                  .commit = { .transition = &ends[i] },
                                  .shard = i };
    }
    hf__engine_apply(fx.client->engine, ops, MANY - 1);
    for (size_t i = 0; i < MANY - 1; i++)
        assert_int_equal(ops[i].code, HF_OK);
    assert_int_equal(get(parent->run.id)->wait_count, 1);
    assert_null(claim_parent());
    hf__engine_apply(fx.client->engine, ops + MANY - 1, 1);
    const hf_claimed *held = claim_parent();
    assert_int_equal(held->mail_count, MANY);
    succeed(held);
    expect_journal(parent->run.id, "created started waiting started succeeded");
}

/* ---- What cannot be started ---- */

static void an_unknown_child_workflow_fails_the_commit_and_changes_nothing(void **state)
{
    const hf_claimed *parent = hold_parent();
    hf_trigger_spec specs[] = { spec_of(CHILD), spec_of("nobody") };
    hf_transition t = turn_of(parent, HF_TURN_WAIT);
    const char *before = dump();
    (void)state;
    t.children = specs;
    t.child_count = 2;
    assert_code(try_commit(&t), HF_UNKNOWN_WORKFLOW);
    assert_string_equal(before, dump());
    succeed(parent);
}

static void a_child_whose_key_is_taken_fails_the_commit_and_changes_nothing(void **state)
{
    const hf_claimed *parent = hold_parent();
    hf_trigger_spec spec = spec_of(CHILD);
    hf_transition t = turn_of(parent, HF_TURN_WAIT);
    (void)state;
    spec.key = "taken";
    hf_id other = trigger_spec(&spec);
    char id[HF_ID_TEXT];
    hf_id_format(other, id);
    const char *before = dump();
    t.children = &spec;
    t.child_count = 1;
    assert_code(try_commit(&t), HF_CONFLICT);
    assert_non_null(strstr(fx.error.message, id));
    assert_non_null(strstr(fx.error.message, "\"taken\""));
    assert_string_equal(before, dump());
    succeed(parent);
}

static void two_children_with_one_key_fail_the_commit_and_change_nothing(void **state)
{
    const hf_claimed *parent = hold_parent();
    hf_trigger_spec specs[] = { spec_of(CHILD), spec_of(CHILD) };
    hf_transition t = turn_of(parent, HF_TURN_WAIT);
    const char *before = dump();
    (void)state;
    specs[0].key = specs[1].key = "same";
    t.children = specs;
    t.child_count = 2;
    assert_code(try_commit(&t), HF_CONFLICT);
    assert_string_equal(before, dump());
}

static void of_two_commits_that_start_one_keyed_child_together_one_wins(void **state)
{
    const hf_claimed *parents[2] = { hold_parent(), claim_new() };
    hf_trigger_spec spec = spec_of(CHILD);
    hf_transition turns[2];
    struct hf__op ops[2];
    hf_id ids[2] = { { { 1, 1 } }, { { 2, 2 } } };
    (void)state;
    spec.key = "same";
    for (int i = 0; i < 2; i++) {
        turns[i] = turn_of(parents[i], HF_TURN_WAIT);
        turns[i].children = &spec;
        turns[i].child_count = 1;
        ops[i] = (struct hf__op){ .kind = HF__OP_COMMIT,
                                  .tenant = fx.client->tenant_id,
                                  .actor = WORKER,
                                  .commit = { .transition = &turns[i], .child_ids = &ids[i] } };
    }
    hf__engine_apply(fx.client->engine, ops, 2);
    assert_true((ops[0].code == HF_OK) != (ops[1].code == HF_OK));
    assert_true(ops[0].code == HF_CONFLICT || ops[1].code == HF_CONFLICT);
}

static void runs_started_without_a_tie_send_no_mail(void **state)
{
    const hf_claimed *held = hold_parent();
    hf_trigger_spec spec = spec_of(CHILD);
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    (void)state;
    t.starts = &spec;
    t.start_count = 1;
    commit(&t);
    const hf_claims *claims = claim_children(1);
    assert_int_equal(claims->count, 1);
    assert_true(hf_id_is_zero(claims->items[0].run.parent));
    succeed(&claims->items[0]);
    assert_null(claim_parent());
}

/* ---- Going down ---- */

static void the_engines_own_workflows_are_started_by_nobody_else(void **state)
{
    const hf_claimed *held = claim_new();
    hf_trigger_spec own = spec_of("holdfast.cancel_children");
    (void)state;
    hf_transition t = turn_of(held, HF_TURN_SUCCEED);
    t.starts = &own;
    t.start_count = 1;
    assert_code(try_commit(&t), HF_INVALID);
    t.start_count = 0;
    t.children = &own;
    t.child_count = 1;
    assert_code(try_commit(&t), HF_INVALID);
}

static void cancelling_a_parent_starts_a_run_that_cancels_its_children(void **state)
{
    static const char *const pattern[] = { "holdfast.*" };
    const hf_claimed *parent = hold_parent();
    hf_claim_spec spec = HF_CLAIM_INIT;
    char id[HF_ID_TEXT];
    (void)state;
    start(parent, 2, 2, false);
    change(parent->run.id, HF_CANCEL);
    spec.worker = WORKER;
    spec.patterns = pattern;
    spec.pattern_count = 1;
    spec.limit = 10;
    const hf_claims *claims = claim_with(&spec);
    assert_int_equal(claims->count, 1);
    hf_id_format(parent->run.id, id);
    assert_string_equal(claims->items[0].run.workflow, "holdfast.cancel_children");
    assert_string_equal(claims->items[0].run.input, text_of("{\"run\":\"%s\"}", id));
}

/* Claims the one chore that is due, as a worker that dies at once. */
static const hf_claimed *claim_chore(void)
{
    hf_claim_spec spec = HF_CLAIM_INIT;
    spec.worker = WORKER;
    spec.patterns = (const char *const[]){ "holdfast.*" };
    spec.pattern_count = 1;
    spec.limit = 1;
    const hf_claims *claims = claim_with(&spec);
    assert_int_equal(claims->count, 1);
    advance(LEASE + 1);
    return &claims->items[0];
}

static void cancelling_children_is_not_given_up(void **state)
{
    const hf_claimed *parent = hold_parent();
    (void)state;
    start(parent, 2, 2, false);
    if (fx.backend == BACKEND_POSTGRES) /* which has another way */
        sql("SELECT holdfast.cancel(%s, tenant => '%s')", sql_id(parent->run.id), fx.tenant);
    else
        change(parent->run.id, HF_CANCEL);
    for (int i = 1; i <= 5; i++) {
        const hf_claimed *chore = claim_chore();
        assert_int_equal(chore->run.attempt, i);
        assert_false(chore->exhausted);
        assert_int_equal(chore->run.max_attempts, 1000000);
    }
}

static void many_parents_are_cancelled_at_once(void **state)
{
    enum { FAMILIES = 5 };
    const hf_claimed *parents[FAMILIES];
    hf_filter filter = HF_FILTER_INIT;
    hf_bulk_result result;
    (void)state;
    for (int i = 0; i < FAMILIES; i++)
        parents[i] = hold_parent();
    for (int i = 0; i < FAMILIES; i++)
        start(parents[i], 2, 2, false);
    filter.workflow = WORK;
    assert_ok(hf_bulk(fx.client, &result, &filter, HF_CANCEL, NULL, false, NULL, NULL, &fx.error));
    assert_int_equal(result.changed, FAMILIES);
    assert_int_equal(claim_of("holdfast.cancel_children", 10)->count, FAMILIES);
}

static void cancelling_a_parent_whose_children_have_ended_starts_nothing(void **state)
{
    const hf_claimed *parent = hold_parent();
    (void)state;
    start(parent, 1, 1, false);
    succeed(&claim_children(1)->items[0]);
    change(parent->run.id, HF_CANCEL);
    assert_int_equal(claim_as(WORKER, 10)->count, 0);
}

static void the_end_of_a_child_whose_parent_has_succeeded_goes_nowhere(void **state)
{
    const hf_claimed *parent = hold_parent();
    hf_trigger_spec spec = spec_of(CHILD);
    hf_transition t = turn_of(parent, HF_TURN_SUCCEED);
    (void)state;
    t.children = &spec;
    t.child_count = 1;
    commit(&t);
    succeed(&claim_children(1)->items[0]);
    assert_int_equal(
        sql_number("SELECT count(*) FROM signal WHERE run_id = %s", sql_id(parent->run.id)), 0);
}

static void a_child_that_ends_after_its_parent_failed_is_there_when_that_is_retried(void **state)
{
    const hf_claimed *parent = hold_parent();
    hf_trigger_spec spec = spec_of(CHILD);
    hf_transition t = turn_of(parent, HF_TURN_FAIL);
    (void)state;
    t.children = &spec;
    t.child_count = 1;
    commit(&t);
    succeed(&claim_children(1)->items[0]);
    expect_status(parent->run.id, HF_FAILED);
    change(parent->run.id, HF_RETRY_RUN);
    parent = claim_parent();
    assert_int_equal(parent->mail_count, 1);
    t = turn_of(parent, HF_TURN_WAIT);
    t.wait_children = 1;
    commit(&t);
    assert_non_null(claim_parent());
}

/* Its parent was told once how it ended. */
static void a_child_that_is_retried_after_its_end_does_not_count_twice(void **state)
{
    const hf_claimed *parent = hold_parent();
    hf_id *ids = start(parent, 2, 2, false);
    (void)state;
    const hf_claims *children = claim_children(2);
    fail_for_good(&children->items[0]);
    change(children->items[0].run.id, HF_RETRY_RUN);
    succeed(&claim_children(1)->items[0]);
    assert_int_equal(get(parent->run.id)->wait_count, 1);
    assert_null(claim_parent());
    succeed(&children->items[1]);
    assert_int_equal(claim_parent()->mail_count, 2);
    expect_status(ids[0], HF_SUCCEEDED);
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(a_child_knows_its_parent_and_its_root),
    CONTRACT_TEST(a_child_has_what_its_trigger_says),
    CONTRACT_TEST(runs_that_a_run_starts_have_its_trace),
    CONTRACT_TEST(a_child_may_have_a_trace_of_its_own),
    CONTRACT_TEST(a_childs_end_comes_back_as_mail_with_its_result),
    CONTRACT_TEST(a_childs_end_by_the_short_way_reaches_its_parent_too),
    CONTRACT_TEST(a_parent_that_waits_for_all_wakes_with_the_last),
    CONTRACT_TEST(a_parent_that_waits_for_any_wakes_with_the_first),
    CONTRACT_TEST(a_failed_child_wakes_its_parent_if_that_was_asked_for),
    CONTRACT_TEST(a_failed_child_is_an_end_like_any_other_if_not),
    CONTRACT_TEST(a_cancelled_child_tells_its_parent_too),
    CONTRACT_TEST(children_that_ended_before_the_parent_waits_are_counted),
    CONTRACT_TEST(a_child_that_ended_before_the_parent_waits_lowers_what_is_left),
    CONTRACT_TEST(ends_that_were_consumed_do_not_count_for_the_next_wait),
    CONTRACT_TEST(a_failure_that_was_seen_wakes_nobody_but_the_next_one_does),
    CONTRACT_TEST(consuming_one_end_twice_does_not_make_the_parent_wait_for_ever),
    CONTRACT_TEST(a_signal_wakes_a_parent_that_waits_for_children),
    CONTRACT_TEST(a_child_that_ends_while_its_parent_is_paused_wakes_it_after_the_pause),
    CONTRACT_TEST(a_child_that_ends_while_its_parent_is_deleted_wakes_it_when_that_is_restored),
    CONTRACT_TEST(a_thousand_children_wake_their_parent_once),
    CONTRACT_TEST(an_unknown_child_workflow_fails_the_commit_and_changes_nothing),
    CONTRACT_TEST(a_child_whose_key_is_taken_fails_the_commit_and_changes_nothing),
    CONTRACT_TEST(two_children_with_one_key_fail_the_commit_and_change_nothing),
    CONTRACT_TEST(of_two_commits_that_start_one_keyed_child_together_one_wins),
    CONTRACT_TEST(runs_started_without_a_tie_send_no_mail),
    CONTRACT_TEST(the_engines_own_workflows_are_started_by_nobody_else),
    CONTRACT_TEST(cancelling_a_parent_starts_a_run_that_cancels_its_children),
    CONTRACT_TEST(cancelling_children_is_not_given_up),
    CONTRACT_TEST(many_parents_are_cancelled_at_once),
    CONTRACT_TEST(cancelling_a_parent_whose_children_have_ended_starts_nothing),
    CONTRACT_TEST(the_end_of_a_child_whose_parent_has_succeeded_goes_nowhere),
    CONTRACT_TEST(a_child_that_ends_after_its_parent_failed_is_there_when_that_is_retried),
    CONTRACT_TEST(a_child_that_is_retried_after_its_end_does_not_count_twice),
};
CONTRACT("children", tests)
