/* Dead letters: they can be looked at, sent again and removed, by their own tenant alone, and the journal says who did
 * it. A14, F4.
 * SPDX-License-Identifier: Apache-2.0 */
#include "contract/fixture.h"

#include <holdfast/dead_letter.h>

#define PAYLOAD "{\"evil\":true}"

/* ---- Doing ---- */

static void blame_to_death(const char *id)
{
    for (int i = 0; i < 5; i++) {
        hf_transition t = turn_of(claim(), HF_TURN_RETRY);
        t.blamed = &id;
        t.blamed_count = 1;
        commit(&t);
    }
}

/* A run that is pending, and has one dead letter. */
static hf_id run_with_letter(void)
{
    hf_id run = run_that_is(HF_WAITING, 0);
    hf_signal_spec spec = HF_SIGNAL_INIT;
    spec.id = "bad-1";
    spec.name = "bad";
    spec.payload = PAYLOAD;
    assert_ok(try_signal(run, &spec));
    blame_to_death("bad-1");
    return run;
}

static const hf_dead_letters *list_with(hf_client *client, const hf_dead_letter_filter *filter)
{
    hf_dead_letters *letters = NULL;
    assert_ok(hf_dead_letter_list(client, &letters, filter, &fx.error));
    return keep(letters, (void (*)(void *))hf_dead_letters_free);
}

static const hf_dead_letters *letters_of(hf_id run)
{
    hf_dead_letter_filter filter = HF_DEAD_LETTER_FILTER_INIT;
    filter.run = run;
    return list_with(fx.client, &filter);
}

static hf_id letter_of(hf_id run)
{
    const hf_dead_letters *letters = letters_of(run);
    assert_int_equal(letters->count, 1);
    return letters->items[0].id;
}

static void expect_last_line(hf_id run, const char *name)
{
    const hf_events *events = events_of(run);
    const hf_event *last = &events->items[events->count - 1];
    assert_string_equal(last->name, name);
    assert_string_equal(last->kind, "signal");
    assert_non_null(last->actor);
    assert_non_null(strstr(last->data, "dead_letter"));
}

/* ---- Looking ---- */

static void a_letter_tells_what_it_was(void **state)
{
    hf_id run = run_with_letter();
    hf_dead_letter *letter = NULL;
    (void)state;
    assert_ok(hf_dead_letter_get(fx.client, &letter, letter_of(run), &fx.error));
    keep(letter, (void (*)(void *))hf_dead_letter_free);
    assert_true(hf_id_equal(letter->run, run));
    assert_non_null(strstr(letter->reason, "poison"));
    assert_non_null(strstr(letter->envelope, "bad-1"));
    assert_non_null(strstr(letter->envelope, "evil"));
    assert_string_equal(letter->node, WORKER);
    assert_int_equal(letter->created_at, now());
}

static void letters_are_listed_newest_first_page_by_page(void **state)
{
    enum { COUNT = 5 };
    hf_id runs[COUNT];
    hf_dead_letter_filter filter = HF_DEAD_LETTER_FILTER_INIT;
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        runs[i] = run_with_letter();
        change(runs[i], HF_CANCEL);
        advance(HF_SECONDS(1));
    }
    filter.limit = 2;
    for (int i = COUNT - 1; i >= 0;) {
        const hf_dead_letters *page = list_with(fx.client, &filter);
        for (size_t k = 0; k < page->count; k++)
            assert_true(hf_id_equal(page->items[k].run, runs[i--]));
        assert_int_equal(page->next != NULL, i >= 0);
        filter.cursor = page->next;
    }
}

static void letters_are_found_by_the_beginning_of_their_reason(void **state)
{
    hf_dead_letter_filter filter = HF_DEAD_LETTER_FILTER_INIT;
    (void)state;
    run_with_letter();
    filter.reason = "poison";
    assert_int_equal(list_with(fx.client, &filter)->count, 1);
    filter.reason = "oison";
    assert_int_equal(list_with(fx.client, &filter)->count, 0);
}

static void a_bad_filter_is_refused(void **state)
{
    hf_dead_letters *letters = NULL;
    hf_dead_letter_filter filter = HF_DEAD_LETTER_FILTER_INIT;
    (void)state;
    filter.cursor = "nonsense";
    assert_code(hf_dead_letter_list(fx.client, &letters, &filter, &fx.error), HF_INVALID);
    filter.cursor = NULL;
    filter.limit = 1001;
    assert_code(hf_dead_letter_list(fx.client, &letters, &filter, &fx.error), HF_INVALID);
}

static void another_tenant_sees_and_changes_nothing(void **state)
{
    hf_id run = run_with_letter();
    hf_id id = letter_of(run);
    hf_dead_letter *letter = NULL;
    (void)state;
    assert_int_equal(list_with(fx.other, NULL)->count, 0);
    assert_code(hf_dead_letter_get(fx.other, &letter, id, &fx.error), HF_NOT_FOUND);
    assert_code(hf_dead_letter_requeue(fx.other, id, &fx.error), HF_NOT_FOUND);
    assert_code(hf_dead_letter_discard(fx.other, id, &fx.error), HF_NOT_FOUND);
    assert_true(hf_id_equal(letter_of(run), id));
}

/* ---- Discarding ---- */

static void a_discarded_letter_is_gone_and_journalled(void **state)
{
    hf_id run = run_with_letter();
    hf_id id = letter_of(run);
    (void)state;
    assert_ok(hf_dead_letter_discard(fx.client, id, &fx.error));
    assert_int_equal(letters_of(run)->count, 0);
    expect_last_line(run, "dead_letter_discarded");
    assert_code(hf_dead_letter_discard(fx.client, id, &fx.error), HF_NOT_FOUND);
    assert_int_equal(claim()->mail_count, 0);
}

static void a_letter_of_a_finished_run_can_be_discarded(void **state)
{
    hf_id run = run_with_letter();
    hf_id id = letter_of(run);
    (void)state;
    succeed(claim());
    assert_ok(hf_dead_letter_discard(fx.client, id, &fx.error));
    expect_last_line(run, "dead_letter_discarded");
}

static void a_letter_whose_run_is_gone_can_be_discarded(void **state)
{
    hf_id run = run_with_letter();
    hf_id id = letter_of(run);
    (void)state;
    sql("UPDATE dead_letter SET run_id = NULL WHERE run_id = %s", sql_id(run));
    assert_code(hf_dead_letter_requeue(fx.client, id, &fx.error), HF_NOT_ALLOWED);
    assert_ok(hf_dead_letter_discard(fx.client, id, &fx.error));
    assert_int_equal(list_with(fx.client, NULL)->count, 0);
}

/* A commit of the holder still fits: the journal's sequence is taken under the run's lock. */
static void a_letter_can_be_discarded_while_its_run_is_held(void **state)
{
    hf_id run = run_with_letter();
    (void)state;
    const hf_claimed *held = claim();
    assert_ok(hf_dead_letter_discard(fx.client, letter_of(run), &fx.error));
    succeed(held);
    expect_status(run, HF_SUCCEEDED);
}

/* ---- Requeueing ---- */

static void a_requeued_letter_is_mail_again(void **state)
{
    hf_id run = run_with_letter();
    (void)state;
    wait_for_signal(claim());
    assert_ok(hf_dead_letter_requeue(fx.client, letter_of(run), &fx.error));
    assert_int_equal(letters_of(run)->count, 0);
    expect_last_line(run, "dead_letter_requeued");
    const hf_claimed *held = claim();
    assert_int_equal(held->mail_count, 1);
    assert_string_equal(held->mail[0].name, "bad");
    assert_string_equal(held->mail[0].type, "external");
    assert_string_equal(held->mail[0].payload, PAYLOAD);
    assert_int_equal(held->mail[0].attempts, 0);
}

static void requeueing_again_after_a_lost_answer_sends_it_once(void **state)
{
    hf_id run = run_with_letter();
    hf_id id = letter_of(run);
    (void)state;
    wait_for_signal(claim());
    sql("CREATE TABLE saved AS SELECT * FROM dead_letter WHERE run_id = %s", sql_id(run));
    assert_ok(hf_dead_letter_requeue(fx.client, id, &fx.error));
    sql("INSERT INTO dead_letter SELECT * FROM saved"); /* as if its removal had not happened */
    sql("DROP TABLE saved");
    assert_ok(hf_dead_letter_requeue(fx.client, id, &fx.error));
    assert_int_equal(claim()->mail_count, 1);
    assert_int_equal(letters_of(run)->count, 0);
}

static void a_letter_of_a_finished_run_is_not_requeued_and_stays(void **state)
{
    hf_id run = run_with_letter();
    (void)state;
    succeed(claim());
    assert_code(hf_dead_letter_requeue(fx.client, letter_of(run), &fx.error), HF_NOT_ALLOWED);
    assert_non_null(strstr(fx.error.message, "finished"));
    assert_int_equal(letters_of(run)->count, 1);
}

static void a_letter_of_a_deleted_run_is_not_requeued_and_stays(void **state)
{
    hf_id run = run_with_letter();
    (void)state;
    change(run, HF_DELETE);
    assert_code(hf_dead_letter_requeue(fx.client, letter_of(run), &fx.error), HF_NOT_ALLOWED);
    assert_int_equal(letters_of(run)->count, 1);
}

static void a_letter_with_a_stale_token_is_not_requeued_and_stays(void **state)
{
    hf_id run = trigger(WORK);
    hf_transition t = turn_of(claim(), HF_TURN_WAIT);
    hf_signal_spec spec = HF_SIGNAL_INIT;
    (void)state;
    t.waiting_kind = "signal";
    t.waiting_token = "token-1";
    commit(&t);
    spec.id = "bad-1";
    spec.name = "bad";
    spec.token = "token-1";
    assert_ok(try_signal(run, &spec));
    blame_to_death("bad-1");
    t = turn_of(claim(), HF_TURN_WAIT);
    t.waiting_kind = "signal";
    t.waiting_token = "token-2";
    commit(&t);
    assert_code(hf_dead_letter_requeue(fx.client, letter_of(run), &fx.error), HF_NOT_ALLOWED);
    assert_int_equal(letters_of(run)->count, 1);
}

/* Nobody else can send mail of this type, but what lay there is put back as it was. */
static void a_requeued_answer_of_a_person_is_an_answer_again(void **state)
{
    hf_new_task task = { .name = "approval", .token = "token-1" };
    hf_task_page *tasks = NULL;
    hf_id run = trigger(WORK);
    hf_transition t = turn_of(claim(), HF_TURN_WAIT);
    (void)state;
    t.waiting_kind = "task";
    t.waiting_token = "token-1";
    t.tasks = &task;
    t.task_count = 1;
    commit(&t);
    assert_ok(hf_task_list(fx.client, &tasks, NULL, &fx.error));
    assert_ok(hf_task_complete(fx.client, tasks->items[0].id, "approved", "7", 0, &fx.error));
    hf_task_page_free(tasks);
    const hf_claimed *held = claim();
    const char *answer = text_of("%s", held->mail[0].payload);
    const char *id = text_of("%s", held->mail[0].id);
    t = turn_of(held, HF_TURN_RETRY);
    commit(&t);
    blame_to_death(id);
    t = turn_of(claim(), HF_TURN_WAIT);
    t.waiting_kind = "task";
    t.waiting_token = "token-1";
    commit(&t);
    assert_ok(hf_dead_letter_requeue(fx.client, letter_of(run), &fx.error));
    held = claim();
    assert_int_equal(held->mail_count, 1);
    assert_string_equal(held->mail[0].type, "task");
    assert_string_equal(held->mail[0].token, "token-1");
    assert_string_equal(held->mail[0].payload, answer);
}

static void a_letter_that_is_no_signal_is_not_requeued(void **state)
{
    hf_id run = run_with_letter();
    (void)state;
    sql("UPDATE dead_letter SET envelope = '[1]' WHERE run_id = %s", sql_id(run));
    assert_code(hf_dead_letter_requeue(fx.client, letter_of(run), &fx.error), HF_NOT_ALLOWED);
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(a_letter_tells_what_it_was),
    CONTRACT_TEST(letters_are_listed_newest_first_page_by_page),
    CONTRACT_TEST(letters_are_found_by_the_beginning_of_their_reason),
    CONTRACT_TEST(a_bad_filter_is_refused),
    CONTRACT_TEST(another_tenant_sees_and_changes_nothing),
    CONTRACT_TEST(a_discarded_letter_is_gone_and_journalled),
    CONTRACT_TEST(a_letter_of_a_finished_run_can_be_discarded),
    CONTRACT_TEST(a_letter_whose_run_is_gone_can_be_discarded),
    CONTRACT_TEST(a_letter_can_be_discarded_while_its_run_is_held),
    CONTRACT_TEST(a_requeued_letter_is_mail_again),
    CONTRACT_TEST(requeueing_again_after_a_lost_answer_sends_it_once),
    CONTRACT_TEST(a_letter_of_a_finished_run_is_not_requeued_and_stays),
    CONTRACT_TEST(a_letter_of_a_deleted_run_is_not_requeued_and_stays),
    CONTRACT_TEST(a_letter_with_a_stale_token_is_not_requeued_and_stays),
    CONTRACT_TEST(a_requeued_answer_of_a_person_is_an_answer_again),
    CONTRACT_TEST(a_letter_that_is_no_signal_is_not_requeued),
};
CONTRACT("dead letters", tests)
