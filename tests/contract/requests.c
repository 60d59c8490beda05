/* Requests with an id: what a holder says twice is done once, and answered as it was the first time. A1, A4.
 * SPDX-License-Identifier: Apache-2.0 */
#include "contract/fixture.h"

static hf_code try_step(const hf_claimed *held, const char *name, const char *request)
{
    hf_step_record step = { held->run.id, held->run.version, WORKER, name, "succeeded", "1" };
    return hf_step_save_once(fx.client, &step, request, &fx.error);
}

static hf_code try_go_on(const hf_claimed *held, hf_transition t, const char *request, hf_id *ids)
{
    t.run_version = held->run.version;
    t.request = request;
    return hf_commit(fx.client, &t, ids, &fx.error);
}

static void a_step_repeated_under_its_request_writes_nothing(void **state)
{
    const hf_claimed *held = claim_new();
    (void)state;
    assert_ok(try_step(held, "pay", "r-1"));
    const char *before = dump();
    advance(HF_SECONDS(1));
    for (int i = 0; i < 3; i++)
        assert_ok(try_step(held, "pay", "r-1"));
    assert_string_equal(before, dump());
    expect_journal(held->run.id, "created started succeeded");
    succeed(held);
}

static void another_request_writes_and_so_does_none(void **state)
{
    const hf_claimed *held = claim_new();
    (void)state;
    assert_ok(try_step(held, "pay", "r-1"));
    assert_ok(try_step(held, "pay", "r-2"));
    assert_ok(try_step(held, "pay", NULL));
    assert_ok(try_step(held, "pay", NULL));
    expect_journal(held->run.id, "created started succeeded succeeded succeeded succeeded");
    succeed(held);
}

/* A held run with a signal and a timer in its mailbox. */
static const hf_claimed *hold_one_with_mail(void)
{
    const hf_claimed *held = claim_new();
    static const hf_signal_spec signal = {
        HF_SIGNAL_VERSION, "sig-1", NULL, "s", NULL, NULL, 0, 0
    };
    hf_new_timer timer = { .key = "old", .delay = HF_DAYS(300) };
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    t.timers = &timer;
    t.timer_count = 1;
    commit(&t);
    assert_ok(try_signal(held->run.id, &signal));
    return claim();
}

/* All that a turn which goes on can bring. */
static hf_transition full_turn(const hf_claimed *held)
{
    static const char *const consumed[] = { "sig-1" };
    static const char *const timers_off[] = { "old" };
    static hf_new_timer timer = { .key = "new", .delay = HF_DAYS(200) };
    static hf_new_event events[] = { { "step", "succeeded", "fan out", "{\"n\":2}" },
                                     { "domain", "noted", NULL, NULL } };
    static hf_new_outbox outbox = { .type = "order.paid", .payload = "1" };
    static hf_new_task task = { .name = "check", .token = "t" };
    static hf_trigger_spec runs[3];
    hf_transition t = turn_of(held, HF_TURN_GO_ON);
    for (int i = 0; i < 3; i++)
        runs[i] = spec_of("other");
    runs[1].key = "keyed";
    t.state = "{\"at\":1}";
    t.current_step = "fan out";
    t.consumed = consumed;
    t.consumed_count = t.cancelled_timer_count = t.timer_count = t.outbox_count = t.task_count = 1;
    t.cancelled_timers = timers_off;
    t.timers = &timer;
    t.events = events;
    t.event_count = t.child_count = 2;
    t.outbox = &outbox;
    t.tasks = &task;
    t.children = runs;
    t.starts = runs + 2;
    t.start_count = 1;
    return t;
}

static void a_turn_repeated_under_its_request_changes_nothing_and_names_the_same_children(
    void **state)
{
    hf_id first[2], again[2];
    (void)state;
    define("other");
    const hf_claimed *held = hold_one_with_mail();
    hf_transition t = full_turn(held);
    assert_ok(try_go_on(held, t, "r-1", first));
    const char *before = dump();
    advance(HF_SECONDS(1));
    for (int i = 0; i < 2; i++) {
        memset(again, 0, sizeof again);
        assert_ok(try_go_on(held, t, "r-1", again));
        assert_memory_equal(first, again, sizeof first);
        assert_string_equal(before, dump());
    }
    assert_ok(try_go_on(held, t, "r-1", NULL));
    assert_string_equal(before, dump());
    succeed(held);
    assert_int_equal(claim_of("other", 10)->count, 3);
}

static void a_repeated_turn_finds_its_children_when_they_have_ended(void **state)
{
    hf_id first[2], again[2];
    hf_trigger_spec runs[2];
    const hf_claimed *held = claim_new();
    hf_transition t = turn_of(held, HF_TURN_GO_ON);
    (void)state;
    define("other");
    runs[0] = runs[1] = spec_of("other");
    t.children = runs;
    t.child_count = 2;
    assert_ok(try_go_on(held, t, "r-1", first));
    const hf_claims *children = claim_of("other", 2);
    succeed(&children->items[0]);
    succeed(&children->items[1]);
    assert_ok(try_go_on(held, t, "r-1", again));
    assert_memory_equal(first, again, sizeof first);
    assert_int_equal(claim_of("other", 2)->count, 0);
}

static void a_repeated_request_with_other_children_is_refused(void **state)
{
    hf_id ids[2];
    hf_trigger_spec runs[2];
    const hf_claimed *held = claim_new();
    hf_transition t = turn_of(held, HF_TURN_GO_ON);
    (void)state;
    define("other");
    runs[0] = runs[1] = spec_of("other");
    t.children = runs;
    t.child_count = 1;
    assert_ok(try_go_on(held, t, "r-1", ids));
    t.child_count = 2;
    const char *before = dump();
    assert_code(try_go_on(held, t, "r-1", ids), HF_CONFLICT);
    assert_string_equal(before, dump());
}

/* A turn that brings no line of its own gets one, or it could not be known again. */
static void a_request_that_brings_nothing_but_state_is_carried_out_once(void **state)
{
    const hf_claimed *held = claim_new();
    hf_transition t = turn_of(held, HF_TURN_GO_ON);
    (void)state;
    t.state = "1";
    assert_ok(try_go_on(held, t, "r-1", NULL));
    t.state = "2";
    assert_ok(try_go_on(held, t, "r-2", NULL));
    t.state = "1";
    assert_ok(try_go_on(held, t, "r-1", NULL));
    assert_string_equal(get(held->run.id)->state, "2");
    expect_journal(held->run.id, "created started gone_on gone_on");
}

static void a_step_and_a_turn_share_their_requests(void **state)
{
    const hf_claimed *held = claim_new();
    hf_transition t = turn_of(held, HF_TURN_GO_ON);
    (void)state;
    t.state = "1";
    assert_ok(try_step(held, "pay", "r-1"));
    const char *before = dump();
    assert_ok(try_go_on(held, t, "r-1", NULL));
    assert_string_equal(before, dump());
}

/* The answer tells the holder that the run is lost, whatever it had written. */
static void a_repeated_request_is_refused_when_the_run_has_moved_on(void **state)
{
    const hf_claimed *held = claim_new();
    hf_transition t = turn_of(held, HF_TURN_GO_ON);
    (void)state;
    t.state = "1";
    assert_ok(try_step(held, "pay", "r-1"));
    assert_ok(try_go_on(held, t, "r-2", NULL));
    advance(LEASE);
    const hf_claimed *newer = claim();
    const char *before = dump();
    assert_code(try_step(held, "pay", "r-1"), HF_STALE);
    assert_code(try_go_on(held, t, "r-2", NULL), HF_STALE);
    assert_code(try_step(held, "pay", "r-3"), HF_STALE);
    assert_string_equal(before, dump());
    change(newer->run.id, HF_CANCEL);
    assert_code(try_step(newer, "pay", "r-1"), HF_RUN_CANCELLED);
    assert_code(try_go_on(newer, t, "r-2", NULL), HF_RUN_CANCELLED);
}

static void each_claim_has_requests_of_its_own(void **state)
{
    const hf_claimed *held = claim_new();
    (void)state;
    assert_ok(try_step(held, "pay", "r-1"));
    advance(LEASE);
    held = claim();
    assert_ok(try_step(held, "pay", "r-1"));
    expect_journal(held->run.id, "created started succeeded started succeeded");
}

static void a_request_of_another_run_hides_nothing(void **state)
{
    const hf_claimed *one = claim_new();
    const hf_claimed *two = claim_new();
    (void)state;
    assert_ok(try_step(one, "pay", "r-1"));
    assert_ok(try_step(two, "pay", "r-1"));
    expect_journal(two->run.id, "created started succeeded");
}

static void another_tenant_cannot_repeat_a_request(void **state)
{
    const hf_claimed *held = claim_new();
    hf_step_record step = { held->run.id, held->run.version, WORKER, "pay", "succeeded", "1" };
    (void)state;
    assert_ok(try_step(held, "pay", "r-1"));
    assert_code(hf_step_save_once(fx.other, &step, "r-1", &fx.error), HF_STALE);
}

/* The store loses the answer, and the kernel itself sends the operation again. */
static void a_request_whose_answer_is_lost_is_carried_out_once(void **state)
{
    static void (*const faults[])(int count) = { lose_answers, lose_commits };
    (void)state;
    define("other");
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        const hf_claimed *held = claim_new();
        hf_trigger_spec child = spec_of("other");
        hf_transition t = turn_of(held, HF_TURN_GO_ON);
        hf_id first, again;
        t.children = &child;
        t.child_count = 1;
        assert_ok(
            try_step(held, "pay", "r-0")); /* of the same name: only its request tells it apart */
        faults[i](1);
        assert_ok(try_step(held, "pay", "r-1"));
        faults[i](1);
        assert_ok(try_go_on(held, t, "r-2", &first));
        assert_ok(try_go_on(held, t, "r-2", &again));
        assert_true(hf_id_equal(first, again));
        expect_journal(held->run.id, "created started succeeded succeeded gone_on");
        assert_int_equal(claim_of("other", 9)->count, 1);
        succeed(held);
    }
    assert_int_equal(answers_lost(), 4);
}

static void only_a_turn_that_goes_on_takes_a_request(void **state)
{
    const hf_claimed *held = claim_new();
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    char long_one[66];
    (void)state;
    assert_code(try_go_on(held, t, "r-1", NULL), HF_INVALID);
    t = turn_of(held, HF_TURN_GO_ON);
    assert_code(try_go_on(held, t, "", NULL), HF_INVALID);
    assert_code(try_step(held, "pay", "\n"), HF_INVALID);
    memset(long_one, 'x', sizeof long_one - 1);
    long_one[65] = '\0';
    assert_code(try_step(held, "pay", long_one), HF_TOO_LARGE);
    long_one[64] = '\0';
    assert_ok(try_step(held, "pay", long_one));
}

/* A program that was built before hands in a smaller struct. */
static void an_older_transition_has_no_request(void **state)
{
    const hf_claimed *held = claim_new();
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    (void)state;
    t.version = 1;
    t.request = (const char *)1;
    commit(&t);
    expect_status(held->run.id, HF_WAITING);
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(a_step_repeated_under_its_request_writes_nothing),
    CONTRACT_TEST(another_request_writes_and_so_does_none),
    CONTRACT_TEST(a_turn_repeated_under_its_request_changes_nothing_and_names_the_same_children),
    CONTRACT_TEST(a_repeated_turn_finds_its_children_when_they_have_ended),
    CONTRACT_TEST(a_repeated_request_with_other_children_is_refused),
    CONTRACT_TEST(a_request_that_brings_nothing_but_state_is_carried_out_once),
    CONTRACT_TEST(a_step_and_a_turn_share_their_requests),
    CONTRACT_TEST(a_repeated_request_is_refused_when_the_run_has_moved_on),
    CONTRACT_TEST(each_claim_has_requests_of_its_own),
    CONTRACT_TEST(a_request_of_another_run_hides_nothing),
    CONTRACT_TEST(another_tenant_cannot_repeat_a_request),
    CONTRACT_TEST(a_request_whose_answer_is_lost_is_carried_out_once),
    CONTRACT_TEST(only_a_turn_that_goes_on_takes_a_request),
    CONTRACT_TEST(an_older_transition_has_no_request),
};

CONTRACT("requests", tests)
