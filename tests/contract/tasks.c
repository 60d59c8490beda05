/* Tasks: who sees them, who has them, how an answer reaches the run that asked, and what ends them. E7.
 * SPDX-License-Identifier: Apache-2.0 */
#include "contract/fixture.h"

#include "client/client.h"

static hf_client *kim, *lee;

/* Two people; what they open is closed with the test. */
static void meet_people(void)
{
    assert_ok(hf_open_as(&kim, fx.client, NULL, "kim", &fx.error));
    assert_ok(hf_open_as(&lee, fx.client, NULL, "lee", &fx.error));
    keep(kim, (void (*)(void *))hf_close);
    keep(lee, (void (*)(void *))hf_close);
}

static hf_id make_id(int n)
{
    hf_id id = { { 0 } };
    hf_id run = trigger(WORK);
    memcpy(&id, &run, sizeof id);
    id.bytes[15] = (uint8_t)n;
    change(run, HF_CANCEL);
    return id;
}

/* A held run asks and waits. */
static void ask_with(const hf_claimed *held, const hf_new_task *tasks, size_t count)
{
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    t.waiting_kind = "task";
    t.waiting_token = tasks[0].token;
    t.tasks = tasks;
    t.task_count = count;
    commit(&t);
}

static hf_id ask_for(hf_new_task task, hf_id *run)
{
    const hf_claimed *held = claim_new();
    if (hf_id_is_zero(task.id))
        task.id = make_id(1);
    if (!task.name)
        task.name = "approve";
    ask_with(held, &task, 1);
    if (run)
        *run = held->run.id;
    return task.id;
}

static hf_id ask(hf_id *run)
{
    return ask_for((hf_new_task){ .token = "t-1" }, run);
}

static const hf_task *task_of(hf_id id)
{
    hf_task *task = NULL;
    assert_ok(hf_task_get(fx.client, &task, id, &fx.error));
    return keep(task, (void (*)(void *))hf_task_free);
}

static const hf_task_page *tasks(const hf_task_filter *filter)
{
    hf_task_page *page = NULL;
    assert_ok(hf_task_list(fx.client, &page, filter, &fx.error));
    return keep(page, (void (*)(void *))hf_task_page_free);
}

static void expect_task(hf_id id, const char *status, const char *assignee)
{
    const hf_task *task = task_of(id);
    assert_string_equal(task->status, status);
    if (assignee)
        assert_string_equal(task->assignee, assignee);
    else
        assert_null(task->assignee);
}

static hf_code complete(hf_client *who, hf_id id, const char *outcome)
{
    return hf_task_complete(who, id, outcome, NULL, 0, &fx.error);
}

/* ---- Lists ---- */

static void a_task_is_listed_and_shown(void **state)
{
    hf_id run;
    (void)state;
    hf_id id = ask_for((hf_new_task){ .name = "approve",
                                      .assignee = "kim",
                                      .roles = "[\"boss\", \"clerk\"]",
                                      .payload = "{\"amount\":7}",
                                      .form = "{\"fields\":[]}",
                                      .due_at = now() + HF_HOURS(1) },
                       &run);
    const hf_task_page *page = tasks(NULL);
    assert_int_equal(page->count, 1);
    assert_null(page->next);
    const hf_task *task = &page->items[0];
    assert_true(hf_id_equal(task->id, id));
    assert_true(hf_id_equal(task->run, run));
    assert_string_equal(task->workflow, WORK);
    assert_string_equal(task->name, "approve");
    assert_string_equal(task->status, "open");
    assert_int_equal(task->version, 1);
    assert_string_equal(task->assignee, "kim");
    assert_string_equal(task->roles, "[\"boss\", \"clerk\"]");
    assert_string_equal(task->payload, "{\"amount\":7}");
    assert_string_equal(task->form, "{\"fields\":[]}");
    assert_int_equal(task->due_at, now() + HF_HOURS(1));
    assert_int_equal(task->created_at, now());
    assert_int_equal(task->completed_at, 0);
    assert_string_equal(task_of(id)->name, "approve");
}

static size_t count_with(hf_task_filter filter)
{
    filter.version = HF_TASK_FILTER_VERSION;
    return tasks(&filter)->count;
}

static void lists_show_what_the_filter_asks_for(void **state)
{
    hf_id run;
    (void)state;
    meet_people();
    ask_for((hf_new_task){ .roles = "[\"boss\"]" }, &run);
    hf_id mine = ask_for(
        (hf_new_task){ .id = make_id(2), .name = "check", .assignee = "kim", .due_at = now() + 1 },
        NULL);
    hf_id done = ask_for((hf_new_task){ .id = make_id(3), .roles = "[\"bo\",\"sales\"]" }, NULL);
    assert_int_equal(count_with((hf_task_filter){ 0 }), 3);
    assert_ok(complete(kim, done, "ok"));
    assert_ok(hf_task_claim(kim, mine, 0, &fx.error));
    assert_int_equal(count_with((hf_task_filter){ 0 }), 2);
    assert_int_equal(count_with((hf_task_filter){ .status = "open" }), 1);
    assert_int_equal(count_with((hf_task_filter){ .status = "claimed,completed" }), 2);
    assert_int_equal(count_with((hf_task_filter){ .status = "all" }), 3);
    for (int by_due = 0; by_due < 2; by_due++) {
        assert_int_equal(count_with((hf_task_filter){ .by_due = by_due, .assignee = "kim" }), 1);
        assert_int_equal(count_with((hf_task_filter){ .by_due = by_due, .assignee = "lee" }), 0);
        assert_int_equal(count_with((hf_task_filter){ .by_due = by_due, .role = "boss" }), 1);
        assert_int_equal(count_with((hf_task_filter){ .by_due = by_due, .role = "bo" }), 0);
        assert_int_equal(count_with((hf_task_filter){ .by_due = by_due, .run = run }), 1);
        assert_int_equal(count_with((hf_task_filter){ .by_due = by_due, .name = "check" }), 1);
        assert_int_equal(count_with((hf_task_filter){ .by_due = by_due, .overdue = true }), 0);
    }
    assert_int_equal(count_with((hf_task_filter){ .status = "all", .assignee = "kim" }), 2);
    assert_int_equal(count_with((hf_task_filter){ .status = "completed", .role = "bo" }), 1);
    assert_int_equal(count_with((hf_task_filter){ .status = "all", .run = run }), 1);
    assert_int_equal(count_with((hf_task_filter){ .status = "completed", .run = run }), 0);
    advance(2);
    assert_int_equal(count_with((hf_task_filter){ .overdue = true }), 1);
    assert_int_equal(count_with((hf_task_filter){ .overdue = true, .by_due = true }), 1);
}

static void a_filter_that_makes_no_sense_is_refused(void **state)
{
    static const hf_task_filter bad[] = {
        { .version = 0 },
        { .version = 1, .status = "done" },
        { .version = 1, .status = "open," },
        { .version = 1, .limit = 1001 },
        { .version = 1, .cursor = "x" },
        { .version = 1, .cursor = "7", .by_due = true },
        { .version = 1, .by_due = true, .status = "all" },
        { .version = 1, .role = "a\",\"b" },
    };
    hf_task_page *page = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_code(hf_task_list(fx.client, &page, &bad[i], &fx.error), HF_INVALID);
}

/* Five tasks of one run: due in 1, 2, 2, 3 hours and at no time, ids in the order of `n`. */
static void ask_five(const char *assignee)
{
    static const int hours[] = { 2, 0, 1, 2, 3 };
    hf_new_task five[5];
    hf_id first = make_id(0);
    const hf_claimed *held = claim_new();
    for (int i = 0; i < 5; i++) {
        five[i] = (hf_new_task){ .id = first,
                                 .name = text_of("n%d", i),
                                 .assignee = assignee,
                                 .due_at = hours[i] ? now() + HF_HOURS(hours[i]) : 0 };
        five[i].id.bytes[15] = (uint8_t)i;
    }
    ask_with(held, five, 5);
}

/* The names of all pages, two tasks each. */
static const char *paged(hf_task_filter filter)
{
    const char *names = "";
    const hf_task_page *page;
    filter.version = HF_TASK_FILTER_VERSION;
    filter.limit = 2;
    do {
        page = tasks(&filter);
        for (size_t i = 0; i < page->count; i++)
            names = text_of("%s%s", names, page->items[i].name);
        names = text_of("%s ", names);
        filter.cursor = page->next;
    } while (page->next);
    return names;
}

static void pages_go_on_where_the_last_ended(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *who = i ? "kim" : NULL;
        ask_five(who);
        assert_string_equal(paged((hf_task_filter){ .assignee = who }), "n4n3 n2n1 n0 ");
        assert_string_equal(paged((hf_task_filter){ .assignee = who, .status = "all" }),
                            "n4n3 n2n1 n0 ");
        assert_string_equal(paged((hf_task_filter){ .assignee = who, .by_due = true }),
                            "n2n0 n3n4 n1 ");
        if (!who)
            assert_string_equal(
                paged((hf_task_filter){ .run = tasks(NULL)->items[0].run, .status = "all" }),
                "n4n3 n2n1 n0 ");
        change(tasks(NULL)->items[0].run, HF_DELETE);
    }
}

static void another_tenant_neither_sees_nor_answers_it(void **state)
{
    hf_task_page *page = NULL;
    hf_task *task = NULL;
    (void)state;
    hf_id id = ask(NULL);
    assert_ok(hf_task_list(fx.other, &page, NULL, &fx.error));
    assert_int_equal(page->count, 0);
    hf_task_page_free(page);
    assert_code(hf_task_get(fx.other, &task, id, &fx.error), HF_NOT_FOUND);
    assert_code(hf_task_claim(fx.other, id, 0, &fx.error), HF_NOT_FOUND);
    assert_code(complete(fx.other, id, "ok"), HF_NOT_FOUND);
    expect_task(id, "open", NULL);
}

/* ---- Who has it ---- */

static void who_claims_it_has_it_alone(void **state)
{
    hf_id run;
    (void)state;
    meet_people();
    hf_id id = ask(&run);
    assert_ok(hf_task_claim(kim, id, 0, &fx.error));
    expect_task(id, "claimed", "kim");
    assert_int_equal(task_of(id)->version, 2);
    assert_ok(hf_task_claim(kim, id, 0, &fx.error));
    assert_int_equal(task_of(id)->version, 2);
    assert_code(hf_task_claim(lee, id, 0, &fx.error), HF_CONFLICT);
    assert_code(hf_task_release(lee, id, 0, &fx.error), HF_CONFLICT);
    assert_code(complete(lee, id, "ok"), HF_CONFLICT);
    expect_task(id, "claimed", "kim");
    assert_ok(hf_task_release(kim, id, 0, &fx.error));
    expect_task(id, "open", NULL);
    assert_ok(hf_task_claim(lee, id, 0, &fx.error));
    expect_task(id, "claimed", "lee");
    expect_journal(run, "created started waiting claimed released claimed");
}

static void an_assigned_task_is_the_assignees_until_it_is_reassigned(void **state)
{
    (void)state;
    meet_people();
    hf_id id = ask_for((hf_new_task){ .assignee = "kim" }, NULL);
    assert_code(hf_task_claim(lee, id, 0, &fx.error), HF_CONFLICT);
    assert_ok(hf_task_claim(kim, id, 0, &fx.error));
    assert_ok(hf_task_reassign(fx.client, id, "lee", 0, &fx.error));
    expect_task(id, "open", "lee");
    assert_code(complete(kim, id, "ok"), HF_CONFLICT);
    assert_ok(hf_task_reassign(fx.client, id, NULL, 0, &fx.error));
    expect_task(id, "open", NULL);
    assert_ok(complete(kim, id, "ok"));
    expect_task(id, "completed", "kim");
}

static void a_version_that_was_not_seen_is_refused(void **state)
{
    (void)state;
    meet_people();
    hf_id id = ask(NULL);
    assert_code(hf_task_claim(kim, id, 2, &fx.error), HF_REVISION);
    assert_ok(hf_task_claim(kim, id, 1, &fx.error));
    assert_code(hf_task_complete(kim, id, "ok", NULL, 1, &fx.error), HF_REVISION);
    assert_code(hf_task_reassign(kim, id, "lee", 1, &fx.error), HF_REVISION);
    assert_code(hf_task_release(kim, id, 1, &fx.error), HF_REVISION);
    assert_ok(hf_task_complete(kim, id, "ok", NULL, 2, &fx.error));
    assert_int_equal(task_of(id)->version, 3);
}

static void of_two_who_claim_at_once_one_has_it(void **state)
{
    hf_id run;
    struct hf__op ops[2];
    (void)state;
    hf_id id = ask(&run);
    for (int i = 0; i < 2; i++)
        ops[i] = (struct hf__op){ .kind = HF__OP_TASK,
                                  .tenant = fx.client->tenant_id,
                                  .actor = i ? "kim" : "lee",
                                  .task = { .run = run, .id = id, .action = HF__TASK_CLAIM } };
    hf__engine_apply(fx.client->engine, ops, 2);
    assert_int_equal((ops[0].code == HF_OK) + (ops[1].code == HF_OK), 1);
    assert_int_equal((ops[0].code == HF_CONFLICT) + (ops[1].code == HF_CONFLICT), 1);
    expect_task(id, "claimed", ops[1].code == HF_OK ? "kim" : "lee");
}

/* ---- Answers ---- */

static void an_answer_wakes_the_run_with_mail(void **state)
{
    hf_id run;
    char text[HF_ID_TEXT];
    (void)state;
    meet_people();
    hf_id id = ask(&run);
    expect_nothing_due();
    advance(HF_SECONDS(1));
    assert_ok(hf_task_complete(kim, id, "approved", "{\"note\":\"\\\"fine\\\"\"}", 0, &fx.error));
    const hf_task *task = task_of(id);
    assert_string_equal(task->status, "completed");
    assert_string_equal(task->outcome, "approved");
    assert_string_equal(task->result, "{\"note\":\"\\\"fine\\\"\"}");
    assert_int_equal(task->completed_at, now());
    const hf_claimed *held = claim();
    hf_id_format(id, text);
    assert_true(hf_id_equal(held->run.id, run));
    assert_int_equal(held->mail_count, 1);
    assert_string_equal(held->mail[0].type, "task");
    assert_string_equal(held->mail[0].name, "approve");
    assert_string_equal(held->mail[0].token, "t-1");
    assert_string_equal(held->mail[0].sender, "kim");
    assert_string_equal(
        held->mail[0].payload,
        text_of("{\"task\":\"%s\",\"outcome\":\"approved\",\"result\":{\"note\":\"\\\"fine\\\"\"},"
                "\"by\":\"kim\"}",
                text));
    const hf_event *line = &events_of(run)->items[3];
    assert_string_equal(line->kind, "task");
    assert_string_equal(line->name, "completed");
    assert_string_equal(line->actor, "kim");
    assert_string_equal(
        line->data,
        text_of("{\"task\":\"%s\",\"name\":\"approve\",\"outcome\":\"approved\"}", text));
}

static void a_task_is_answered_once(void **state)
{
    hf_id run;
    (void)state;
    meet_people();
    hf_id id = ask(&run);
    assert_ok(hf_task_complete(kim, id, "yes", "{\"a\":1}", 0, &fx.error));
    assert_ok(hf_task_complete(kim, id, "yes", "{ \"a\": 1 }", 1, &fx.error));
    assert_code(complete(kim, id, "no"), HF_NOT_ALLOWED);
    assert_code(complete(kim, id, "yes"), HF_NOT_ALLOWED);
    assert_code(hf_task_complete(lee, id, "yes", "{\"a\":1}", 0, &fx.error), HF_NOT_ALLOWED);
    assert_code(hf_task_claim(kim, id, 0, &fx.error), HF_NOT_ALLOWED);
    assert_code(hf_task_reassign(kim, id, "lee", 0, &fx.error), HF_NOT_ALLOWED);
    assert_int_equal(task_of(id)->version, 2);
    assert_int_equal(claim()->mail_count, 1);
    expect_journal(run, "created started waiting completed started");
}

static void an_answer_to_a_held_run_is_there_when_it_waits(void **state)
{
    hf_id run;
    (void)state;
    meet_people();
    hf_id id = ask(&run);
    send_signal(run, "other");
    const hf_claimed *held = claim();
    assert_ok(complete(kim, id, "ok"));
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    consume_all(held, &t);
    const hf_claimed *again = claim();
    assert_int_equal(again->mail_count, 1);
    assert_string_equal(again->mail[0].type, "task");
}

static void an_answer_to_a_paused_run_is_there_when_it_resumes(void **state)
{
    hf_id run;
    (void)state;
    meet_people();
    hf_id id = ask(&run);
    change(run, HF_PAUSE);
    assert_ok(complete(kim, id, "ok"));
    expect_nothing_due();
    change(run, HF_RESUME);
    assert_int_equal(claim()->mail_count, 1);
}

static void an_answer_must_be_well_formed(void **state)
{
    (void)state;
    hf_id id = ask(NULL);
    assert_code(complete(fx.client, id, NULL), HF_INVALID);
    assert_code(complete(fx.client, id, ""), HF_INVALID);
    assert_code(hf_task_complete(fx.client, id, "ok", "{", 0, &fx.error), HF_INVALID);
    assert_code(hf_task_reassign(fx.client, id, "", 0, &fx.error), HF_INVALID);
    expect_task(id, "open", NULL);
}

static void roles_are_a_list_of_names(void **state)
{
    static const char *const bad[] = { "{}",     "\"boss\"",     "[1]",       "[\"a,b\"]",
                                       "[\"\"]", "[\"a\\\"b\"]", "[[\"a\"]]", "null" };
    static const char *const good[] = { "[]", " [ ] ", "[\"boss\"]", "[\"a\" , \"b.c:d-e_1\"]" };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hf_new_task task = { .name = "x", .roles = bad[i] };
        hf_transition t = turn_of(claim_new(), HF_TURN_WAIT);
        t.tasks = &task;
        t.task_count = 1;
        assert_code(try_commit(&t), HF_INVALID);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        ask_for((hf_new_task){ .id = make_id((int)i), .roles = good[i] }, NULL);
}

/* ---- Ends ---- */

static void expect_no_answer(hf_id id)
{
    assert_code(complete(fx.client, id, "ok"), HF_NOT_ALLOWED);
    assert_code(hf_task_claim(fx.client, id, 0, &fx.error), HF_NOT_ALLOWED);
    assert_code(hf_task_release(fx.client, id, 0, &fx.error), HF_NOT_ALLOWED);
    assert_code(hf_task_reassign(fx.client, id, "kim", 0, &fx.error), HF_NOT_ALLOWED);
}

static void expect_cancelled(hf_id id)
{
    assert_string_equal(task_of(id)->status, "cancelled");
    assert_null(task_of(id)->outcome);
    assert_int_equal(task_of(id)->completed_at, now());
    assert_int_equal(tasks(NULL)->count, 0);
    expect_no_answer(id);
}

/* The one run that waits for an answer, held. */
static const hf_claimed *hold_again(hf_id run)
{
    send_signal(run, "wake");
    return claim();
}

static void tasks_end_with_their_run(void **state)
{
    hf_id run;
    (void)state;
    for (int way = 0; way < 4; way++) {
        hf_id id = ask(&run);
        if (way == 0) {
            change(run, HF_CANCEL);
        } else if (way == 1) {
            succeed(hold_again(run));
        } else if (way == 2) {
            fail_for_good(hold_again(run));
        } else {
            hf_transition t = turn_of(hold_again(run), HF_TURN_SUCCEED);
            assert_ok(try_commit_short(&t));
        }
        assert_true(hf_status_finished(status_of(run)));
        expect_cancelled(id);
    }
}

static void tasks_of_a_child_end_with_it_and_its_parent_hears(void **state)
{
    hf_trigger_spec spec = spec_of(WORK);
    hf_id child;
    (void)state;
    const hf_claimed *parent = claim_new();
    hf_transition t = turn_of(parent, HF_TURN_WAIT);
    t.children = &spec;
    t.child_count = 1;
    t.wait_children = 1;
    assert_ok(hf_commit(fx.client, &t, &child, &fx.error));
    hf_new_task task = { .id = make_id(1), .name = "approve" };
    ask_with(claim(), &task, 1);
    const hf_claimed *held = hold_again(child);
    t = turn_of(held, HF_TURN_SUCCEED);
    struct hf__op op = { .kind = HF__OP_COMMIT,
                         .tenant = fx.client->tenant_id,
                         .actor = WORKER,
                         .error = &fx.error,
                         .commit = { .transition = &t, .child = &held->run } };
    hf__engine_apply(fx.client->engine, &op, 1);
    assert_ok(op.code);
    expect_cancelled(task.id);
    assert_true(hf_id_equal(claim()->run.id, parent->run.id));
}

static void tasks_that_come_with_the_end_of_a_run_are_cancelled(void **state)
{
    (void)state;
    hf_new_task task = { .id = make_id(1), .name = "late" };
    hf_transition t = turn_of(claim_new(), HF_TURN_SUCCEED);
    t.tasks = &task;
    t.task_count = 1;
    commit(&t);
    expect_cancelled(task.id);
}

static void tasks_of_a_first_transition_end_with_the_run(void **state)
{
    hf_triggered out;
    (void)state;
    hf_new_task task = { .id = make_id(1), .name = "first" };
    hf_transition initial = {
        .version = HF_TRANSITION_VERSION, .turn = HF_TURN_WAIT, .tasks = &task, .task_count = 1
    };
    hf_trigger_spec spec = spec_of(WORK);
    assert_ok(hf_trigger_with(fx.client, &out, &spec, &initial, &fx.error));
    expect_task(task.id, "open", NULL);
    hf_transition t = turn_of(hold_again(out.id), HF_TURN_SUCCEED);
    assert_ok(try_commit_short(&t));
    expect_cancelled(task.id);
}

static void what_is_answered_stays_answered(void **state)
{
    hf_id run;
    (void)state;
    hf_id id = ask(&run);
    assert_ok(complete(fx.client, id, "ok"));
    change(run, HF_CANCEL);
    expect_task(id, "completed", "tester");
}

static void a_retried_run_asks_again(void **state)
{
    hf_id run;
    (void)state;
    meet_people();
    hf_id id = ask(&run);
    assert_ok(hf_task_claim(kim, id, 0, &fx.error));
    change(run, HF_CANCEL);
    expect_no_answer(id);
    change(run, HF_RETRY_RUN);
    expect_task(id, "open", "kim");
    assert_int_equal(task_of(id)->completed_at, 0);
    assert_ok(complete(kim, id, "ok"));
    assert_int_equal(claim()->mail_count, 1);
}

static void a_withdrawn_task_is_not_asked_again(void **state)
{
    hf_id run;
    const char *token = "t-1";
    (void)state;
    hf_id id = ask(&run);
    hf_id other = make_id(9);
    hf_new_task task = { .id = other, .name = "other", .token = "t-2" };
    hf_transition t = turn_of(hold_again(run), HF_TURN_WAIT);
    t.withdrawn_tasks = &token;
    t.withdrawn_task_count = 1;
    t.tasks = &task;
    t.task_count = 1;
    commit(&t);
    assert_string_equal(task_of(id)->status, "cancelled");
    assert_string_equal(task_of(id)->outcome, "withdrawn");
    expect_no_answer(id);
    expect_task(other, "open", NULL);
    change(run, HF_CANCEL);
    change(run, HF_RETRY_RUN);
    assert_string_equal(task_of(id)->status, "cancelled");
    expect_task(other, "open", NULL);
}

static void a_deleted_run_takes_no_answer_until_it_is_restored(void **state)
{
    hf_id run;
    (void)state;
    hf_id id = ask(&run);
    change(run, HF_DELETE);
    expect_no_answer(id);
    for (int by_due = 0; by_due < 2; by_due++)
        assert_int_equal(count_with((hf_task_filter){ .by_due = by_due }), 0);
    assert_int_equal(count_with((hf_task_filter){ .status = "all" }), 0);
    assert_int_equal(count_with((hf_task_filter){ .run = run }), 0);
    change(run, HF_RESTORE);
    assert_int_equal(tasks(NULL)->count, 1);
    assert_ok(complete(fx.client, id, "ok"));
    assert_int_equal(claim()->mail_count, 1);
}

/* ---- Lost answers ---- */

static void (*const faults[])(int) = { lose_answers, lose_commits };

static void what_was_done_is_done_once_when_the_store_does_not_answer(void **state)
{
    hf_id run;
    (void)state;
    meet_people();
    for (int i = 0; i < 2; i++) {
        int before = answers_lost();
        hf_id id = ask(&run);
        faults[i](1);
        assert_ok(hf_task_claim(kim, id, 1, &fx.error));
        faults[i](1);
        assert_ok(hf_task_release(kim, id, 2, &fx.error));
        faults[i](1);
        assert_ok(hf_task_reassign(kim, id, "lee", 3, &fx.error));
        faults[i](1);
        assert_ok(hf_task_complete(lee, id, "ok", "7", 4, &fx.error));
        assert_int_equal(answers_lost(), before + 4);
        assert_int_equal(task_of(id)->version, 5);
        expect_journal(run, "created started waiting claimed released reassigned completed");
        assert_int_equal(claim()->mail_count, 1);
    }
}

static const struct CMUnitTest contract[] = {
    CONTRACT_TEST(a_task_is_listed_and_shown),
    CONTRACT_TEST(lists_show_what_the_filter_asks_for),
    CONTRACT_TEST(a_filter_that_makes_no_sense_is_refused),
    CONTRACT_TEST(pages_go_on_where_the_last_ended),
    CONTRACT_TEST(another_tenant_neither_sees_nor_answers_it),
    CONTRACT_TEST(who_claims_it_has_it_alone),
    CONTRACT_TEST(an_assigned_task_is_the_assignees_until_it_is_reassigned),
    CONTRACT_TEST(a_version_that_was_not_seen_is_refused),
    CONTRACT_TEST(of_two_who_claim_at_once_one_has_it),
    CONTRACT_TEST(an_answer_wakes_the_run_with_mail),
    CONTRACT_TEST(a_task_is_answered_once),
    CONTRACT_TEST(an_answer_to_a_held_run_is_there_when_it_waits),
    CONTRACT_TEST(an_answer_to_a_paused_run_is_there_when_it_resumes),
    CONTRACT_TEST(an_answer_must_be_well_formed),
    CONTRACT_TEST(roles_are_a_list_of_names),
    CONTRACT_TEST(tasks_end_with_their_run),
    CONTRACT_TEST(tasks_of_a_child_end_with_it_and_its_parent_hears),
    CONTRACT_TEST(tasks_that_come_with_the_end_of_a_run_are_cancelled),
    CONTRACT_TEST(tasks_of_a_first_transition_end_with_the_run),
    CONTRACT_TEST(what_is_answered_stays_answered),
    CONTRACT_TEST(a_retried_run_asks_again),
    CONTRACT_TEST(a_withdrawn_task_is_not_asked_again),
    CONTRACT_TEST(a_deleted_run_takes_no_answer_until_it_is_restored),
    CONTRACT_TEST(what_was_done_is_done_once_when_the_store_does_not_answer),
};

CONTRACT("tasks", contract)
