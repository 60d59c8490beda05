/* Ends of children that come together share a row of mail, and nobody sees that: each is read, taken, counted and blamed by
 * itself. C3.
 * SPDX-License-Identifier: Apache-2.0 */
#include "client/measure.h"
#include "contract/family.h"
#include "util/json.h"

/* As many children as are claimed, ended together. */
static void end_some(int count)
{
    const hf_claims *children = claim_of(CHILD, count);
    assert_int_equal(children->count, count);
    end_together(children, HF_TURN_SUCCEED);
}

static const char *end_id(hf_id child)
{
    char text[HF_ID_TEXT];
    hf_id_format(child, text);
    return text_of("child:%s", text);
}

static const hf_mail *find_end(const hf_claimed *held, hf_id child)
{
    for (size_t i = 0; i < held->mail_count; i++)
        if (strcmp(held->mail[i].id, end_id(child)) == 0)
            return &held->mail[i];
    return NULL;
}

/* Takes the ends of these out, and waits for so many. */
static void take_and_wait(const hf_claimed *held, const hf_id *children, size_t count, int waits)
{
    const char **ids = keep(calloc(count, sizeof *ids), free);
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    for (size_t i = 0; i < count; i++)
        ids[i] = end_id(children[i]);
    t.consumed = ids;
    t.consumed_count = count;
    t.wait_children = waits;
    commit(&t);
}

/* ---- What shares a row ---- */

static void ends_that_come_together_share_a_row_and_are_read_one_by_one(void **state)
{
    hf_id children[3];
    hf_id parent = waiting_parent(3, false, children);
    (void)state;
    end_some(3);
    assert_int_equal(rows_of(parent), 1);
    assert_int_equal(mail_of(parent), 3);
    const hf_claimed *held = claim_parent();
    assert_int_equal(held->mail_count, 3);
    for (size_t i = 0; i < 3; i++) {
        const hf_mail *mail = find_end(held, children[i]);
        assert_non_null(mail);
        assert_string_equal(mail->type, "child");
        assert_string_equal(mail->name, CHILD);
        assert_string_equal(mail->sender, mail->id + strlen("child:"));
        assert_string_equal(mail->payload,
                            text_of("{\"run\":\"%s\",\"workflow\":\"child\",\"status\":"
                                    "\"succeeded\",\"key\":null,\"result\":{\"n\":7},"
                                    "\"error\":null}",
                                    mail->sender));
        assert_null(mail->token);
        assert_int_equal(mail->attempts, 0);
        assert_true(mail->visible_at <= now() && mail->visible_at == mail->occurred_at);
    }
}

static void a_failed_end_has_a_row_of_its_own(void **state)
{
    hf_id children[4];
    hf_id parent = waiting_parent(4, false, children);
    (void)state;
    end_mixed(claim_of(CHILD, 4), HF_TURN_FAIL, HF_TURN_SUCCEED, "1");
    assert_int_equal(rows_of(parent), 2);
    assert_int_equal(claim_parent()->mail_count, 4);
}

static void a_long_result_has_a_row_of_its_own(void **state)
{
    hf_id children[3];
    hf_id parent = waiting_parent(3, false, children);
    char result[1200];
    (void)state;
    memset(result, 'x', sizeof result);
    result[0] = result[sizeof result - 2] = '"';
    result[sizeof result - 1] = '\0';
    end_mixed(claim_of(CHILD, 3), HF_TURN_SUCCEED, HF_TURN_SUCCEED, result);
    assert_int_equal(rows_of(parent), 3);
    assert_int_equal(claim_parent()->mail_count, 3);
}

static void a_child_with_a_key_is_told_by_its_key(void **state)
{
    hf_trigger_spec specs[3] = { spec_of(CHILD), spec_of(CHILD), spec_of(CHILD) };
    hf_id children[3];
    (void)state;
    define(CHILD);
    specs[1].key = "the second";
    hf_transition t = turn_of(claim_new(), HF_TURN_WAIT);
    t.children = specs;
    t.child_count = 3;
    t.wait_children = 3;
    assert_ok(hf_commit(fx.client, &t, children, &fx.error));
    end_some(3);
    const hf_claimed *held = claim_parent();
    assert_int_equal(held->mail_count, 3);
    assert_string_equal(find_end(held, children[1])->name, "the second");
    assert_string_equal(find_end(held, children[0])->name, CHILD);
    assert_string_equal(find_end(held, children[2])->name, CHILD);
}

static void every_parent_gets_its_own(void **state)
{
    hf_trigger_spec specs[2] = { spec_of(CHILD), spec_of(CHILD) };
    hf_id first[2];
    hf_id second[2];
    hf_transition t = turn_of(claim_new(), HF_TURN_WAIT);
    hf_id other = waiting_parent(2, false, second);
    (void)state;
    t.children = specs;
    t.child_count = 2;
    t.wait_children = 2;
    assert_ok(hf_commit(fx.client, &t, first, &fx.error));
    end_some(4);
    const hf_claims *held = claim_of(WORK, 2);
    assert_int_equal(held->count, 2);
    for (size_t i = 0; i < 2; i++) {
        const hf_id *children = hf_id_equal(held->items[i].run.id, other) ? second : first;
        assert_int_equal(held->items[i].mail_count, 2);
        assert_non_null(find_end(&held->items[i], children[0]));
        assert_non_null(find_end(&held->items[i], children[1]));
    }
    assert_int_equal(mail_of(t.run), 2);
    assert_int_equal(mail_of(other), 2);
}

static void an_end_whose_answer_was_lost_is_told_once(void **state)
{
    hf_id children[4];
    hf_id parent = waiting_parent(4, false, children);
    const hf_claims *some = claim_of(CHILD, 2);
    const hf_claims *rest = claim_of(CHILD, 2);
    (void)state;
    lose_answers(2); /* also that of what goes before them */
    end_together(some, HF_TURN_SUCCEED);
    lose_commits(2);
    end_together(rest, HF_TURN_SUCCEED);
    assert_int_equal(answers_lost(), 4);
    assert_int_equal(mail_of(parent), 4);
    assert_int_equal(claim_parent()->mail_count, 4);
}

static void each_is_measured(void **state)
{
    hf_id children[3];
    struct hf__measure *measure;
    (void)state;
    waiting_parent(3, false, children);
    end_some(3);
    assert_ok(hf__measure(fx.client->engine, fx.client->tenant_id, &measure, &fx.error));
    keep(measure, (void (*)(void *))hf__measure_free);
    assert_ok(hf__measure_mail(fx.client->engine, measure, &fx.error));
    for (size_t i = 0; i < measure->count; i++)
        assert_int_equal(measure->items[i].mail,
                         strcmp(measure->items[i].workflow, WORK) == 0 ? 3 : 0);
}

/* ---- One by one ---- */

static void one_is_taken_out_and_the_others_stay(void **state)
{
    hf_id children[4];
    waiting_parent(4, false, children);
    (void)state;
    end_some(4);
    for (size_t i = 0; i < 4; i++) {
        const hf_claimed *held = claim_parent();
        assert_int_equal(held->mail_count, 4 - i);
        assert_non_null(find_end(held, children[i]));
        take_and_wait(held, &children[i], 1, 1);
    }
    assert_null(claim_parent());
}

/* Also the one by which the row is known. */
static void what_is_left_in_a_row_is_counted_by_a_wait(void **state)
{
    hf_id children[5];
    hf_id parent = waiting_parent(5, false, children);
    (void)state;
    end_some(4);
    sql("UPDATE run SET run_at = 0, wait_count = 0 WHERE id = %s", sql_id(parent));
    const hf_claimed *held = claim_parent();
    assert_int_equal(held->mail_count, 4);
    hf_id taken[2];
    assert_true(hf_id_parse(held->mail[0].sender, &taken[0]));
    assert_true(hf_id_parse(held->mail[2].sender, &taken[1]));
    take_and_wait(held, taken, 2, 3);
    assert_int_equal(get(parent)->wait_count, 1);
    assert_null(claim_parent());
    end_some(1);
    held = claim_parent();
    assert_int_equal(held->mail_count, 3);
    assert_null(find_end(held, taken[0]));
    assert_null(find_end(held, taken[1]));
}

static void a_wait_that_takes_nothing_counts_all(void **state)
{
    hf_id children[5];
    hf_id parent = waiting_parent(5, false, children);
    (void)state;
    end_some(4);
    sql("UPDATE run SET run_at = 0, wait_count = 0 WHERE id = %s", sql_id(parent));
    take_and_wait(claim_parent(), NULL, 0, 5);
    assert_int_equal(get(parent)->wait_count, 1);
    end_some(1);
    assert_int_equal(claim_parent()->mail_count, 5);
}

/* An id that is in no mailbox takes nothing out, and is not counted as if it did. */
static void a_strange_id_takes_nothing_out(void **state)
{
    hf_id children[3];
    hf_id parent = waiting_parent(3, false, children);
    (void)state;
    end_some(3);
    take_and_wait(claim_parent(), &parent, 1, 4);
    assert_int_equal(get(parent)->wait_count, 1);
    assert_int_equal(mail_of(parent), 3);
}

static void all_are_taken_out_as_a_span(void **state)
{
    hf_id children[3];
    hf_id parent = waiting_parent(3, false, children);
    (void)state;
    end_some(3);
    take_ends(claim_parent());
    assert_int_equal(rows_of(parent), 0);
}

static void odd_results_are_the_same_alone(void **state)
{
    static const char odd[] =
        "{ \"a\" : [1e400, -0.10, \"\\u0000 \\ud83d\\ude00 \\\\\\\" ]},{\" , {}, [], null] ,"
        "\"run\":\"x\", \"\xc3\xa9\" : 12345678901234567890123 }";
    hf_id children[3];
    hf_id parent = waiting_parent(3, false, children);
    (void)state;
    end_mixed(claim_of(CHILD, 3), HF_TURN_SUCCEED, HF_TURN_SUCCEED, odd);
    assert_int_equal(rows_of(parent), 1);
    const hf_claimed *held = claim_parent();
    assert_int_equal(held->mail_count, 3);
    const char *together = find_end(held, children[1])->payload;
    assert_non_null(strstr(together, odd));
    take_and_wait(held, &children[0], 1, 2);
    held = claim_parent();
    assert_int_equal(held->mail_count, 2);
    const char *alone = find_end(held, children[1])->payload;
    assert_true(hf__json_equal(alone, together));
    assert_non_null(strstr(alone, "12345678901234567890123"));
    assert_non_null(strstr(alone, "-0.10"));
}

/* ---- Blame ---- */

static void blame_is_for_one_alone(void **state)
{
    hf_id children[3];
    hf_id parent = waiting_parent(3, false, children);
    const char *blamed = end_id(children[1]);
    (void)state;
    end_some(3);
    for (int i = 0; i < 5; i++) {
        const hf_claimed *held = claim_parent();
        assert_int_equal(held->mail_count, 3);
        assert_int_equal(find_end(held, children[1])->attempts, i);
        assert_int_equal(find_end(held, children[0])->attempts, 0);
        hf_transition t = turn_of(held, HF_TURN_RETRY);
        t.blamed = &blamed;
        t.blamed_count = 1;
        commit(&t);
    }
    assert_int_equal(claim_parent()->mail_count, 2);
    const char *letter =
        sql_text("SELECT envelope FROM dead_letter WHERE run_id = %s", sql_id(parent));
    assert_non_null(strstr(letter, blamed));
    assert_null(strstr(letter, end_id(children[0]) + strlen("child:")));
}

/* ---- Very many ---- */

enum { IN_A_ROW = 1024, ROWS = 128, MOST = 100000 };

/* One end by hand, then its row is made longer, and copied. */
static void put_ends(hf_id parent)
{
    sql("INSERT INTO signal (tenant_id, run_id, id, type, name, payload, ends, occurred_at, "
        "visible_at) SELECT tenant_id, id, 'child:', 'child', 'child', "
        "'[{\"run\":\"01890000-0000-7000-8000-000000000001\"}]', 1, created_at, created_at "
        "FROM run WHERE id = %s",
        sql_id(parent));
    for (int i = 1; i < IN_A_ROW; i *= 2)
        sql("UPDATE signal SET ends = ends * 2, payload = '[' || substr(payload, 2, "
            "length(payload) - 2) || ',' || substr(payload, 2) WHERE run_id = %s",
            sql_id(parent));
    for (int i = 1; i < ROWS; i *= 2)
        sql("INSERT INTO signal (tenant_id, run_id, id, type, name, payload, ends, occurred_at, "
            "visible_at) SELECT tenant_id, run_id, id || '%d.', type, name, payload, ends, "
            "occurred_at, visible_at FROM signal WHERE run_id = %s",
            i, sql_id(parent));
}

/* A row is read as a whole. */
static void no_more_are_read_at_once_than_of_other_mail(void **state)
{
    hf_id parent = run_that_is(HF_WAITING, 0);
    (void)state;
    put_ends(parent);
    assert_int_equal(mail_of(parent), ROWS * IN_A_ROW);
    sql("UPDATE run SET run_at = 0, has_mail = '1' WHERE id = %s", sql_id(parent));
    const hf_claimed *held = claim_parent();
    assert_int_equal(held->mail_count, (MOST / IN_A_ROW + 1) * IN_A_ROW);
    assert_string_equal(held->mail[MOST].id, "child:01890000-0000-7000-8000-000000000001");
}

/* A number that somebody has changed is not believed. */
static void a_wrong_number_of_ends_is_borne(void **state)
{
    hf_id children[3];
    hf_id parent = waiting_parent(3, false, children);
    (void)state;
    end_some(3);
    sql("UPDATE signal SET ends = 2000000000 WHERE run_id = %s", sql_id(parent));
    assert_true(claim_parent()->mail_count >= 1);
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(ends_that_come_together_share_a_row_and_are_read_one_by_one),
    CONTRACT_TEST(a_failed_end_has_a_row_of_its_own),
    CONTRACT_TEST(a_long_result_has_a_row_of_its_own),
    CONTRACT_TEST(a_child_with_a_key_is_told_by_its_key),
    CONTRACT_TEST(every_parent_gets_its_own),
    CONTRACT_TEST(an_end_whose_answer_was_lost_is_told_once),
    CONTRACT_TEST(each_is_measured),
    CONTRACT_TEST(one_is_taken_out_and_the_others_stay),
    CONTRACT_TEST(what_is_left_in_a_row_is_counted_by_a_wait),
    CONTRACT_TEST(a_wait_that_takes_nothing_counts_all),
    CONTRACT_TEST(a_strange_id_takes_nothing_out),
    CONTRACT_TEST(all_are_taken_out_as_a_span),
    CONTRACT_TEST(odd_results_are_the_same_alone),
    CONTRACT_TEST(blame_is_for_one_alone),
    CONTRACT_TEST(no_more_are_read_at_once_than_of_other_mail),
    CONTRACT_TEST(a_wrong_number_of_ends_is_borne),
};
CONTRACT("shared_ends", tests)
