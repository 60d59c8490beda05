/* Ends that a parent must hear of: of children that were deleted, before they are purged, together, and of very many.
 * C3.
 * SPDX-License-Identifier: Apache-2.0 */
#include "client/client.h"
#include "contract/family.h"

static int64_t purge(void)
{
    int64_t removed = -1;
    advance(1);
    assert_ok(hf_purge(fx.client, &removed, NULL, now(), &fx.error));
    return removed;
}

/* ---- Deleted ---- */

static void a_deleted_child_counts_as_ended(void **state)
{
    hf_id children[2];
    hf_id parent = waiting_parent(2, false, children);
    (void)state;
    change(children[0], HF_DELETE);
    assert_int_equal(get(parent)->wait_count, 1);
    assert_null(claim_parent());
    succeed(&claim_of(CHILD, 1)->items[0]);
    const hf_claimed *held = claim_parent();
    assert_int_equal(held->mail_count, 2);
    assert_non_null(strstr(held->mail[0].payload, "\"status\":\"deleted\""));
    assert_non_null(strstr(held->mail[1].payload, "\"status\":\"succeeded\""));
}

static void a_deleted_child_is_a_failure_for_a_parent_that_wakes_on_one(void **state)
{
    hf_id children[2];
    waiting_parent(2, true, children);
    (void)state;
    change(children[1], HF_DELETE);
    assert_int_equal(claim_parent()->mail_count, 1);
}

static void a_child_that_is_deleted_while_it_is_held_is_told_once(void **state)
{
    hf_id child;
    waiting_parent(1, false, &child);
    const hf_claims *held = claim_of(CHILD, 1);
    (void)state;
    change(child, HF_DELETE);
    succeed(&held->items[0]);
    const hf_claimed *parent = claim_parent();
    assert_int_equal(parent->mail_count, 1);
    assert_non_null(strstr(parent->mail[0].payload, "\"status\":\"deleted\""));
}

static void a_child_that_is_restored_is_not_told_again(void **state)
{
    hf_id children[2];
    hf_id parent = waiting_parent(2, false, children);
    (void)state;
    change(children[0], HF_DELETE);
    change(children[0], HF_RESTORE);
    const hf_claims *held = claim_of(CHILD, 2);
    assert_int_equal(held->count, 2);
    for (size_t i = 0; i < 2; i++)
        if (hf_id_equal(held->items[i].run.id, children[0]))
            succeed(&held->items[i]);
    assert_int_equal(get(parent)->wait_count, 1);
    assert_null(claim_parent());
    change(children[1], HF_DELETE);
    assert_int_equal(claim_parent()->mail_count, 2);
}

static void deleting_a_child_that_has_ended_tells_nothing_more(void **state)
{
    hf_id children[2];
    hf_id parent = waiting_parent(2, false, children);
    const hf_claims *held = claim_of(CHILD, 1);
    (void)state;
    succeed(&held->items[0]);
    change(held->items[0].run.id, HF_DELETE);
    assert_int_equal(get(parent)->wait_count, 1);
    assert_int_equal(sql_number("SELECT count(*) FROM signal WHERE run_id = %s", sql_id(parent)),
                     1);
}

static void a_delete_whose_answer_was_lost_tells_the_parent_once(void **state)
{
    hf_id children[2];
    hf_id parent = waiting_parent(2, false, children);
    (void)state;
    lose_answers(1);
    change(children[0], HF_DELETE);
    assert_int_equal(get(parent)->wait_count, 1);
    lose_commits(1);
    change(children[1], HF_DELETE);
    assert_int_equal(claim_parent()->mail_count, 2);
}

/* ---- Purged ---- */

static void a_purged_childs_end_stays_with_its_parent(void **state)
{
    hf_id children[2];
    waiting_parent(2, false, children);
    (void)state;
    change(children[0], HF_DELETE);
    succeed(&claim_of(CHILD, 1)->items[0]);
    assert_int_equal(purge(), 2);
    assert_int_equal(claim_parent()->mail_count, 2);
}

/* Marked by hand, since deleting tells the parent. */
static void a_deleted_child_that_its_parent_waits_for_untold_is_not_purged(void **state)
{
    hf_id child;
    hf_id parent = waiting_parent(1, false, &child);
    (void)state;
    sql("UPDATE run SET deleted_at = %lld WHERE id = %s", (long long)now(), sql_id(child));
    assert_int_equal(purge(), 0);
    expect_status(child, HF_PENDING);
    change(parent, HF_CANCEL);
    assert_int_equal(purge(), 1);
    expect_status(child, HF_PENDING);
    sql("UPDATE run SET deleted_at = NULL WHERE id = %s", sql_id(child));
}

/* ---- By the short way ---- */

static void ends_that_come_together_are_counted_together(void **state)
{
    hf_id children[5];
    hf_id parent = waiting_parent(5, false, children);
    (void)state;
    end_together(claim_of(CHILD, 3), HF_TURN_SUCCEED);
    assert_int_equal(get(parent)->wait_count, 2);
    assert_null(claim_parent());
    end_together(claim_of(CHILD, 3), HF_TURN_FAIL);
    const hf_claimed *held = claim_parent();
    assert_int_equal(held->mail_count, 5);
    assert_non_null(strstr(held->mail[2].payload, "\"status\":\"succeeded\""));
    assert_non_null(strstr(held->mail[3].payload, "\"status\":\"failed\""));
}

static void a_parent_that_has_succeeded_gets_no_mail_and_others_theirs(void **state)
{
    hf_id children[2];
    hf_trigger_spec specs[2] = { spec_of(CHILD), spec_of(CHILD) };
    hf_transition t = turn_of(claim_new(), HF_TURN_SUCCEED);
    hf_id waiting = waiting_parent(2, false, children);
    (void)state;
    t.children = specs;
    t.child_count = 2;
    commit(&t);
    end_together(claim_of(CHILD, 4), HF_TURN_SUCCEED);
    assert_int_equal(mail_of(t.run), 0);
    assert_int_equal(mail_of(waiting), 2);
    assert_int_equal(claim_parent()->mail_count, 2);
    assert_int_equal(claim_of(CHILD, 1)->count, 0);
}

/* Somebody may have sent a signal with the id of a child's end. */
static void an_end_whose_mail_is_there_already_is_an_end(void **state)
{
    hf_id children[2];
    hf_id parent = waiting_parent(2, false, children);
    char text[HF_ID_TEXT];
    (void)state;
    hf_id_format(children[0], text);
    sql("INSERT INTO signal (tenant_id, run_id, id, type, name, occurred_at, visible_at) SELECT "
        "tenant_id, id, 'child:%s', 'external', 'forged', created_at, created_at FROM run WHERE "
        "id = %s",
        text, sql_id(parent));
    end_together(claim_of(CHILD, 2), HF_TURN_SUCCEED);
    assert_int_equal(mail_of(parent), 2);
    expect_status(children[0], HF_SUCCEEDED);
    expect_status(children[1], HF_SUCCEEDED);
}

/* All that the end of a child has written, without what is its own. */
static const char *written_of(hf_id child)
{
    char id[HF_ID_TEXT];
    hf_id_format(child, id);
    return sql_text(
        "SELECT r.status || ' ' || r.version || ' ' || r.revision || ' ' || r.event_seq || ' ' || "
        "r.last_worker || ' ' || r.result || ' ' || coalesce(r.leased_by, 'nobody') || ' ' || "
        "coalesce(r.run_at, 0) || ' ' || (r.finished_at - r.updated_at) || ' ' || e.name || ' ' || "
        "e.version || ' ' || e.actor || ' ' || e.kind || ' ' || "
        "coalesce(e.data, 'no data') || ' ' || (e.at - r.updated_at) || ' ' || s.type || ' ' || "
        "s.name || ' ' || "
        "replace(s.id, s.sender, '#') || ' ' || replace(s.payload, s.sender, '#') || ' ' || "
        "(s.visible_at - r.updated_at) || ' ' || (s.occurred_at - r.updated_at) || ' ' || "
        "CASE WHEN s.failed_child THEN 'failed' ELSE 'fine' END "
        "FROM run r JOIN event e ON e.run_id = r.id AND e.seq = 3 "
        "JOIN signal s ON s.run_id = r.parent AND s.sender = '%s' WHERE r.id = %s",
        id, sql_id(child));
}

/* Then every other has a row of its own. */
static void take_failed_end(const hf_claimed *held)
{
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    const char *failed = NULL;
    for (size_t i = 0; i < held->mail_count; i++)
        if (strstr(held->mail[i].payload, "\"failed\""))
            failed = held->mail[i].id;
    assert_non_null(failed);
    t.consumed = &failed;
    t.consumed_count = 1;
    commit(&t);
}

/* With siblings alone, beside one that fails, and by itself, which goes the long way. */
static void an_end_is_written_alike_whatever_ends_beside_it(void **state)
{
    hf_id children[5];
    waiting_parent(5, false, children);
    (void)state;
    const hf_claims *alike = claim_of(CHILD, 2);
    end_together(alike, HF_TURN_SUCCEED);
    const hf_claims *mixed = claim_of(CHILD, 2);
    end_mixed(mixed, HF_TURN_FAIL, HF_TURN_SUCCEED, "{\"n\":7}");
    const hf_claims *alone = claim_of(CHILD, 1);
    hf_transition t = turn_of(&alone->items[0], HF_TURN_SUCCEED);
    t.result = "{\"n\":7}";
    assert_ok(hf_commit(fx.client, &t, NULL, &fx.error));
    take_failed_end(claim_parent());
    const char *expected = keep(strdup(written_of(alone->items[0].run.id)), free);
    assert_non_null(strstr(expected, "\"result\":{\"n\":7},\"error\":null} 0 0 fine"));
    assert_string_equal(written_of(alike->items[0].run.id), expected);
    assert_string_equal(written_of(alike->items[1].run.id), expected);
    assert_string_equal(written_of(mixed->items[1].run.id), expected);
}

static void a_restored_child_is_not_told_again_by_the_short_way_either(void **state)
{
    hf_id children[2];
    hf_id parent = waiting_parent(2, false, children);
    (void)state;
    change(children[0], HF_DELETE);
    change(children[0], HF_RESTORE);
    const hf_claims *held = claim_of(CHILD, 2);
    assert_int_equal(held->count, 2);
    hf_claims restored = *held;
    restored.items += hf_id_equal(held->items[0].run.id, children[0]) ? 0 : 1;
    restored.count = 1;
    end_together(&restored, HF_TURN_SUCCEED);
    assert_int_equal(mail_of(parent), 1);
    assert_int_equal(get(parent)->wait_count, 1);
    assert_null(claim_parent());
}

static void failures_that_come_together_wake_a_parent_that_asked_for_it(void **state)
{
    hf_id children[5];
    hf_id parent = waiting_parent(5, true, children);
    (void)state;
    end_together(claim_of(CHILD, 2), HF_TURN_SUCCEED);
    assert_null(claim_parent());
    end_together(claim_of(CHILD, 2), HF_TURN_FAIL);
    assert_int_equal(get(parent)->wait_count, 1);
    assert_int_equal(claim_parent()->mail_count, 4);
}

static void a_retried_child_that_ends_again_is_told_once(void **state)
{
    hf_id children[2];
    hf_id parent = waiting_parent(2, false, children);
    const hf_claims *held = claim_of(CHILD, 1);
    hf_id child = held->items[0].run.id;
    (void)state;
    end_together(held, HF_TURN_FAIL);
    change(child, HF_RETRY_RUN);
    held = claim_of(CHILD, 2);
    assert_int_equal(held->count, 2);
    end_together(held, HF_TURN_SUCCEED);
    expect_status(child, HF_SUCCEEDED);
    assert_int_equal(claim_parent()->mail_count, 2);
    assert_int_equal(mail_of(parent), 2);
}

static void of_ends_that_were_taken_those_stay_whose_child_may_end_again(void **state)
{
    hf_id children[3];
    hf_id parent = waiting_parent(3, false, children);
    (void)state;
    change(children[0], HF_DELETE);
    const hf_claims *failed = claim_of(CHILD, 1);
    end_together(failed, HF_TURN_FAIL);
    end_together(claim_of(CHILD, 1), HF_TURN_SUCCEED);
    const hf_claimed *held = claim_parent();
    assert_int_equal(held->mail_count, 3);
    take_ends(held);
    assert_int_equal(mail_of(parent), 2);
    change(children[0], HF_RESTORE);
    change(failed->items[0].run.id, HF_RETRY_RUN);
    end_together(claim_of(CHILD, 2), HF_TURN_SUCCEED);
    assert_int_equal(mail_of(parent), 2);
    assert_int_equal(sql_number("SELECT count(*) FROM signal WHERE run_id = %s AND consumed_at IS "
                                "NULL",
                                sql_id(parent)),
                     0);
}

/* ---- Many ---- */

enum { MANY = 12000, AT_ONCE = 1000 };

static void end_some(void)
{
    const hf_claims *children = claim_of(CHILD, AT_ONCE);
    struct hf__op *ops = keep(calloc(AT_ONCE, sizeof *ops), free);
    hf_transition *ends = keep(calloc(AT_ONCE, sizeof *ends), free);
    assert_int_equal(children->count, AT_ONCE);
    for (size_t i = 0; i < AT_ONCE; i++) {
        ends[i] = turn_of(&children->items[i], HF_TURN_SUCCEED);
        ops[i] = (struct hf__op){ .kind = HF__OP_COMMIT,
                                  .tenant = fx.client->tenant_id,
                                  .actor = WORKER,
                                  .commit = { .transition = &ends[i] } };
    }
    hf__engine_apply(fx.client->engine, ops, AT_ONCE);
    for (size_t i = 0; i < AT_ONCE; i++)
        assert_int_equal(ops[i].code, HF_OK);
}

static void a_parent_sees_the_ends_of_twelve_thousand_children_at_once(void **state)
{
    hf_id *children = keep(calloc(MANY, sizeof *children), free);
    hf_id parent = waiting_parent(MANY, false, children);
    (void)state;
    for (int i = 0; i < MANY / AT_ONCE; i++)
        end_some();
    const hf_claimed *held = claim_parent();
    assert_int_equal(held->mail_count, MANY);
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    consume_all(held, &t);
    assert_null(claim_parent());
    expect_status(parent, HF_WAITING);
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(a_deleted_child_counts_as_ended),
    CONTRACT_TEST(a_deleted_child_is_a_failure_for_a_parent_that_wakes_on_one),
    CONTRACT_TEST(a_child_that_is_deleted_while_it_is_held_is_told_once),
    CONTRACT_TEST(a_child_that_is_restored_is_not_told_again),
    CONTRACT_TEST(deleting_a_child_that_has_ended_tells_nothing_more),
    CONTRACT_TEST(a_delete_whose_answer_was_lost_tells_the_parent_once),
    CONTRACT_TEST(a_purged_childs_end_stays_with_its_parent),
    CONTRACT_TEST(a_deleted_child_that_its_parent_waits_for_untold_is_not_purged),
    CONTRACT_TEST(ends_that_come_together_are_counted_together),
    CONTRACT_TEST(a_parent_that_has_succeeded_gets_no_mail_and_others_theirs),
    CONTRACT_TEST(an_end_whose_mail_is_there_already_is_an_end),
    CONTRACT_TEST(an_end_is_written_alike_whatever_ends_beside_it),
    CONTRACT_TEST(a_restored_child_is_not_told_again_by_the_short_way_either),
    CONTRACT_TEST(failures_that_come_together_wake_a_parent_that_asked_for_it),
    CONTRACT_TEST(a_retried_child_that_ends_again_is_told_once),
    CONTRACT_TEST(of_ends_that_were_taken_those_stay_whose_child_may_end_again),
    CONTRACT_TEST(a_parent_sees_the_ends_of_twelve_thousand_children_at_once),
};
CONTRACT("child_ends", tests)
