/* Lost answers: the commit happened, or did not, and the connection died before anybody could say so. The same
 * operations are sent again; what they did is there exactly once, and the caller hears that it is. A4.
 * SPDX-License-Identifier: Apache-2.0 */
#include "client/client.h"
#include "contract/fixture.h"

static int lost_before;

/* The next flush happens, but its answer is lost. */
static void lose_next(void)
{
    lost_before = answers_lost();
    lose_answers(1);
}

/* The next flush does not happen, and nobody can tell. */
static void prevent_next(void)
{
    lost_before = answers_lost();
    lose_commits(1);
}

static void (*const faults[])(void) = { lose_next, prevent_next };
enum { FAULTS = 2 };

static void expect_lost(void)
{
    assert_int_equal(answers_lost(), lost_before + 1);
}

static int64_t count(const char *table, hf_id run)
{
    return sql_number("SELECT count(*) FROM %s WHERE run_id = %s", table, sql_id(run));
}

static void a_trigger_sent_again_is_one_run(void **state)
{
    hf_trigger_spec spec = spec_of(WORK);
    hf_triggered out;
    (void)state;
    for (int i = 0; i < FAULTS; i++) {
        faults[i]();
        assert_ok(try_trigger(&spec, &out));
        expect_lost();
        assert_false(out.existed);
        expect_journal(out.id, "created");
        assert_true(hf_id_equal(claim()->run.id, out.id));
    }
}

/* It may have been let seen before it was on disk: where it is found, it must be on disk before that is said. */
static void a_trigger_sent_again_waits_for_the_disk(void **state)
{
    hf_trigger_spec spec = spec_of(WORK);
    hf_triggered out;
    int before = times_sent(HF__STMT_MAKE_DURABLE);
    (void)state;
    if (fx.backend != BACKEND_POSTGRES)
        skip();
    assert_ok(try_trigger(&spec, &out));
    assert_int_equal(times_sent(HF__STMT_MAKE_DURABLE), before);
    lose_next();
    assert_ok(try_trigger(&spec, &out));
    expect_lost();
    assert_int_equal(times_sent(HF__STMT_MAKE_DURABLE), before + 1);
}

static void a_keyed_trigger_sent_again_is_not_taken_for_another(void **state)
{
    hf_trigger_spec spec = spec_of(WORK);
    hf_triggered out;
    (void)state;
    spec.key = "k";
    spec.input = "1";
    lose_next();
    assert_ok(try_trigger(&spec, &out));
    expect_lost();
    assert_false(out.existed);
    expect_journal(out.id, "created");
}

static void a_first_transition_sent_again_is_written_once(void **state)
{
    hf_new_timer timer = { .key = "t", .delay = HF_SECONDS(1) };
    hf_new_event event = { .kind = "domain", .name = "Created" };
    hf_new_outbox outbox = { .type = "created" };
    hf_new_task task = { .name = "check" };
    hf_transition first = { .version = HF_TRANSITION_VERSION,
                            .turn = HF_TURN_WAIT,
                            .timers = &timer,
                            .timer_count = 1,
                            .events = &event,
                            .event_count = 1,
                            .outbox = &outbox,
                            .outbox_count = 1,
                            .tasks = &task,
                            .task_count = 1 };
    hf_trigger_spec spec = spec_of(WORK);
    hf_triggered out;
    (void)state;
    for (int i = 0; i < FAULTS; i++) {
        faults[i]();
        assert_ok(hf_trigger_with(fx.client, &out, &spec, &first, &fx.error));
        expect_lost();
        expect_journal(out.id, "created Created waiting");
        assert_int_equal(count("outbox", out.id), 1);
        assert_int_equal(count("task", out.id), 1);
        assert_int_equal(count("signal", out.id), 1);
    }
}

static void every_turn_sent_again_is_committed_once(void **state)
{
    static const char *const names[] = { "succeeded", "failed", "retried", "waiting",
                                         "given_back" };
    hf_trigger_spec child = spec_of(WORK);
    hf_new_outbox outbox = { .type = "o" };
    hf_new_task task = { .name = "check" };
    hf_new_event event = { .kind = "domain", .name = "Done" };
    hf_new_timer timer = { .key = "t", .delay = HF_HOURS(9) };
    (void)state;
    child.delay = HF_DAYS(300);
    for (hf_turn turn = HF_TURN_SUCCEED; turn <= HF_TURN_GIVE_BACK; turn++)
        for (int i = 0; i < FAULTS; i++) {
            const hf_claimed *held = claim_new();
            hf_transition t = turn_of(held, turn);
            t.children = &child;
            t.child_count = 1;
            t.outbox = &outbox;
            t.outbox_count = 1;
            t.tasks = &task;
            t.task_count = 1;
            t.events = &event;
            t.event_count = 1;
            t.timers = turn == HF_TURN_WAIT ? &timer : NULL;
            t.timer_count = turn == HF_TURN_WAIT;
            t.retry_delay = HF_DAYS(1);
            faults[i]();
            commit(&t);
            expect_lost();
            expect_journal(held->run.id, text_of("created started Done %s", names[turn]));
            assert_int_equal(get(held->run.id)->version, held->run.version + 1);
            assert_int_equal(count("outbox", held->run.id), 1);
            assert_int_equal(count("task", held->run.id), 1);
            assert_int_equal(count("signal", held->run.id), turn == HF_TURN_WAIT);
            assert_int_equal(
                sql_number("SELECT count(*) FROM run WHERE parent = %s", sql_id(held->run.id)), 1);
            if (turn == HF_TURN_GIVE_BACK)
                succeed(claim());
        }
}

static void an_end_by_the_short_way_sent_again_is_written_once(void **state)
{
    (void)state;
    for (int i = 0; i < FAULTS; i++) {
        const hf_claimed *held = claim_new();
        hf_transition t = turn_of(held, HF_TURN_SUCCEED);
        t.result = "1";
        faults[i]();
        assert_ok(try_commit_short(&t));
        expect_lost();
        expect_journal(held->run.id, "created started succeeded");
        assert_string_equal(get(held->run.id)->result, "1");
    }
}

static void an_unleased_commit_sent_again_is_committed_once(void **state)
{
    hf_new_event event = { .kind = "domain", .name = "Renamed" };
    (void)state;
    for (int i = 0; i < FAULTS; i++) {
        hf_id id = run_that_is(HF_WAITING, 0);
        hf_transition t = { .version = HF_TRANSITION_VERSION,
                            .run = id,
                            .run_version = get(id)->version,
                            .unleased = true,
                            .turn = HF_TURN_WAIT,
                            .events = &event,
                            .event_count = 1 };
        faults[i]();
        commit(&t);
        expect_lost();
        expect_journal(id, "created started waiting Renamed waiting");
    }
}

static hf_client *beside;
static hf_transition rival;
static hf_code rival_code;

static void commit_as_rival(void)
{
    hf_error err;
    rival_code = hf_commit(beside, &rival, NULL, &err);
}

/* Two callers of one name, at one version: the journal's line of the one is no proof for the other. */
static void an_unleased_commit_is_not_taken_for_that_of_a_rival(void **state)
{
    hf_new_event mine = { .kind = "domain", .name = "Mine" };
    hf_new_event theirs = { .kind = "domain", .name = "Theirs" };
    hf_id id = run_that_is(HF_WAITING, 0);
    hf_transition t = { .version = HF_TRANSITION_VERSION,
                        .run = id,
                        .run_version = get(id)->version,
                        .unleased = true,
                        .turn = HF_TURN_WAIT,
                        .events = &mine,
                        .event_count = 1 };
    (void)state;
    beside = open_beside();
    if (!beside)
        skip();
    rival = t;
    rival.events = &theirs;
    when_lost(commit_as_rival);
    prevent_next();
    assert_code(try_commit(&t), HF_STALE);
    expect_lost();
    hf_close(beside);
    assert_int_equal(rival_code, HF_OK);
    expect_journal(id, "created started waiting Theirs waiting");
}

static void a_child_end_sent_again_reaches_the_parent_once(void **state)
{
    hf_trigger_spec specs[2] = { spec_of("child"), spec_of("child") };
    (void)state;
    define("child");
    const hf_claimed *parent = claim_new();
    hf_transition t = turn_of(parent, HF_TURN_WAIT);
    t.children = specs;
    t.child_count = 2;
    t.wait_children = 2;
    commit(&t);
    const hf_claims *children = claim_as(WORKER, 10);
    assert_int_equal(children->count, 2);
    lose_next();
    succeed(&children->items[0]);
    expect_lost();
    assert_int_equal(get(parent->run.id)->wait_count, 1);
    assert_int_equal(count("signal", parent->run.id), 1);
    expect_nothing_due();
    prevent_next();
    succeed(&children->items[1]);
    assert_int_equal(claim()->mail_count, 2);
}

static void a_step_sent_again_is_recorded_once(void **state)
{
    (void)state;
    for (int i = 0; i < FAULTS; i++) {
        const hf_claimed *held = claim_new();
        hf_step_record step = { held->run.id, held->run.version, WORKER, "s", "succeeded", "1" };
        faults[i]();
        assert_ok(hf_step_save(fx.client, &step, &fx.error));
        expect_lost();
        expect_journal(held->run.id, "created started succeeded");
        succeed(held);
    }
}

static void a_signal_sent_again_arrives_once_and_is_no_duplicate(void **state)
{
    (void)state;
    for (int i = 0; i < FAULTS; i++) {
        hf_id id = run_that_is(HF_WAITING, 0);
        hf_signal_spec spec = HF_SIGNAL_INIT;
        bool duplicate = true;
        spec.name = "s";
        faults[i]();
        assert_ok(hf_signal(fx.client, id, &spec, &duplicate, &fx.error));
        expect_lost();
        assert_false(duplicate);
        expect_journal(id, "created started waiting s");
        assert_int_equal(claim()->mail_count, 1);
    }
}

static void every_change_sent_again_is_made_once(void **state)
{
    static const struct {
        hf_status from;
        bool deleted;
        hf_action action;
        const char *event;
    } cases[] = {
        { HF_WAITING, false, HF_CANCEL, "cancelled" },
        { HF_WAITING, false, HF_PAUSE, "paused" },
        { HF_LEASED, false, HF_PAUSE, "pause_requested" },
        { HF_PAUSED, false, HF_RESUME, "resumed" },
        { HF_FAILED, false, HF_RETRY_RUN, "retried" },
        { HF_SUCCEEDED, false, HF_DELETE, "deleted" },
        { HF_SUCCEEDED, true, HF_RESTORE, "restored" },
    };
    (void)state;
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++)
        for (int i = 0; i < FAULTS; i++) {
            hf_id id = run_that_is(cases[n].from, 0);
            if (cases[n].deleted)
                change(id, HF_DELETE);
            const char *before = journal(id);
            hf_change how = HF_CHANGE_INIT;
            how.expected_revision = get(id)->revision;
            faults[i]();
            assert_ok(hf_change_run(fx.client, id, cases[n].action, &how, &fx.error));
            expect_lost();
            expect_journal(id, text_of("%s %s", before, cases[n].event));
            if (status_of(id) < HF_PAUSED)
                change(id, HF_CANCEL);
        }
}

static void a_heartbeat_sent_again_prolongs_the_lease(void **state)
{
    const hf_claimed *held = claim_new();
    hf_held holding = { .run = held->run.id, .run_version = held->run.version, .lease = LEASE };
    (void)state;
    advance(HF_SECONDS(10));
    lose_next();
    assert_ok(hf_heartbeat(fx.client, &holding, 1, &fx.error));
    expect_lost();
    assert_int_equal(holding.code, HF_OK);
    assert_int_equal(get(held->run.id)->lease_until, now() + LEASE);
}

/* What it took is adopted by its worker, or comes back when the lease ends. */
static void a_claim_whose_answer_was_lost_is_not_made_twice(void **state)
{
    static const char *const all[] = { "*" };
    hf_claim_spec spec = HF_CLAIM_INIT;
    hf_claims *claims = NULL;
    hf_id id = trigger(WORK);
    (void)state;
    spec.worker = WORKER;
    spec.patterns = all;
    spec.pattern_count = 1;
    lose_next();
    assert_code(hf_claim(fx.client, &claims, &spec, &fx.error), HF_UNAVAILABLE);
    expect_lost();
    expect_journal(id, "created started");
    expect_status(id, HF_LEASED);
    expect_nothing_due();
    advance(LEASE);
    assert_int_equal(claim()->run.attempt, 2);
}

/* ---- Many ---- */

enum { MANY = 60 };

static void a_whole_batch_sent_again_happens_once(void **state)
{
    struct hf__op ops[MANY];
    hf_trigger_spec spec = spec_of("quiet");
    hf_signal_spec signals[MANY];
    hf_id ids[MANY];
    char names[MANY][16];
    (void)state;
    define("quiet");
    spec.delay = HF_DAYS(1);
    for (int fault = 0; fault < FAULTS; fault++) {
        hf_id target = run_that_is(HF_WAITING, 0);
        int64_t before = sql_number("SELECT count(*) FROM run");
        for (int i = 0; i < MANY; i++) {
            bool is_signal = i % 2;
            snprintf(names[i], sizeof names[i], "s-%d-%d", fault, i);
            signals[i] = (hf_signal_spec){
                .version = HF_SIGNAL_VERSION, .id = names[i], .type = "external", .name = names[i]
            };
            ids[i] = (hf_id){ { 1, (uint8_t)fault, (uint8_t)i, 1 } };
            ops[i] = (struct hf__op){ .kind = is_signal ? HF__OP_SIGNAL : HF__OP_TRIGGER,
                                      .tenant = fx.client->tenant_id,
                                      .actor = "tester" };
            if (is_signal) {
                ops[i].signal.run = target;
                ops[i].signal.spec = &signals[i];
            } else {
                ops[i].trigger.id = ids[i];
                ops[i].trigger.spec = &spec;
            }
        }
        faults[fault]();
        hf__engine_apply(fx.client->engine, ops, MANY);
        expect_lost();
        for (int i = 0; i < MANY; i++)
            assert_int_equal(ops[i].code, HF_OK);
        assert_int_equal(sql_number("SELECT count(*) FROM run"), before + MANY / 2);
        assert_int_equal(count("signal", target), MANY / 2);
        assert_int_equal(count("event", target), 3 + MANY / 2);
        change(target, HF_CANCEL);
    }
}

static void an_answer_lost_again_and_again_still_comes_through(void **state)
{
    hf_trigger_spec spec = spec_of(WORK);
    hf_triggered out;
    (void)state;
    lose_answers(3);
    assert_ok(try_trigger(&spec, &out));
    expect_journal(out.id, "created");
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(a_trigger_sent_again_is_one_run),
    CONTRACT_TEST(a_trigger_sent_again_waits_for_the_disk),
    CONTRACT_TEST(a_keyed_trigger_sent_again_is_not_taken_for_another),
    CONTRACT_TEST(a_first_transition_sent_again_is_written_once),
    CONTRACT_TEST(every_turn_sent_again_is_committed_once),
    CONTRACT_TEST(an_end_by_the_short_way_sent_again_is_written_once),
    CONTRACT_TEST(an_unleased_commit_sent_again_is_committed_once),
    CONTRACT_TEST(an_unleased_commit_is_not_taken_for_that_of_a_rival),
    CONTRACT_TEST(a_child_end_sent_again_reaches_the_parent_once),
    CONTRACT_TEST(a_step_sent_again_is_recorded_once),
    CONTRACT_TEST(a_signal_sent_again_arrives_once_and_is_no_duplicate),
    CONTRACT_TEST(every_change_sent_again_is_made_once),
    CONTRACT_TEST(a_heartbeat_sent_again_prolongs_the_lease),
    CONTRACT_TEST(a_claim_whose_answer_was_lost_is_not_made_twice),
    CONTRACT_TEST(a_whole_batch_sent_again_happens_once),
    CONTRACT_TEST(an_answer_lost_again_and_again_still_comes_through),
};
CONTRACT("lost_answers", tests)
