/* Signals: one durable input each, taken in order, seen once, never lost. C2.
 * SPDX-License-Identifier: Apache-2.0 */
#include "client/client.h"
#include "contract/fixture.h"

static hf_signal_spec signal_of(const char *name)
{
    hf_signal_spec spec = HF_SIGNAL_INIT;
    spec.name = name;
    return spec;
}

static void a_signal_wakes_a_waiting_run_and_is_delivered(void **state)
{
    hf_id id = run_that_is(HF_WAITING, 0);
    hf_signal_spec spec = signal_of("approved");
    (void)state;
    expect_nothing_due();
    spec.payload = "{\"by\":\"carl\"}";
    spec.token = NULL;
    assert_ok(try_signal(id, &spec));
    const hf_claimed *held = claim();
    assert_int_equal(held->mail_count, 1);
    assert_string_equal(held->mail[0].name, "approved");
    assert_string_equal(held->mail[0].type, "external");
    assert_string_equal(held->mail[0].payload, "{\"by\":\"carl\"}");
    assert_string_equal(held->mail[0].sender, "tester");
    assert_int_equal(held->mail[0].visible_at, now());
    expect_journal(id, "created started waiting approved started");
}

static void a_signal_raises_neither_version_nor_revision(void **state)
{
    hf_id id = run_that_is(HF_WAITING, 0);
    const hf_run *before = get(id);
    (void)state;
    send_signal(id, "s");
    assert_int_equal(get(id)->version, before->version);
    assert_int_equal(get(id)->revision, before->revision);
}

static void a_signal_before_the_wait_is_there_at_the_first_claim(void **state)
{
    hf_id id = trigger(WORK);
    (void)state;
    send_signal(id, "early");
    const hf_claimed *held = claim();
    assert_int_equal(held->mail_count, 1);
    assert_string_equal(held->mail[0].name, "early");
}

static void a_signal_brings_a_delayed_run_forward(void **state)
{
    hf_trigger_spec spec = spec_of(WORK);
    (void)state;
    spec.delay = HF_HOURS(1);
    hf_id id = trigger_spec(&spec);
    send_signal(id, "now");
    assert_int_equal(claim()->mail_count, 1);
}

/* The rule that was once broken: the mailbox must be read after the run's lock was taken. */
static void a_signal_that_the_holder_has_not_seen_makes_its_wait_end_at_once(void **state)
{
    const hf_claimed *held = claim_new();
    (void)state;
    send_signal(held->run.id, "unseen");
    expect_status(held->run.id, HF_LEASED);
    assert_int_equal(get(held->run.id)->lease_until, now() + LEASE);
    wait_for_signal(held);
    assert_int_equal(get(held->run.id)->run_at, now());
    assert_int_equal(claim()->mail_count, 1);
}

static void mail_that_the_holder_has_seen_and_left_does_not_wake_it_again(void **state)
{
    hf_id id = run_that_is(HF_WAITING, 0);
    (void)state;
    send_signal(id, "not for now");
    const hf_claimed *held = claim();
    assert_int_equal(held->mail_count, 1);
    wait_for_signal(held);
    expect_nothing_due();
    send_signal(id, "this one");
    held = claim();
    assert_int_equal(held->mail_count, 2);
    assert_string_equal(held->mail[0].name, "not for now");
    assert_string_equal(held->mail[1].name, "this one");
}

static void signals_are_delivered_in_the_order_of_their_arrival(void **state)
{
    static const char *const names[] = { "c", "a", "d", "b" };
    hf_id id = run_that_is(HF_WAITING, 0);
    (void)state;
    for (int i = 0; i < 4; i++)
        send_signal(id, names[i]);
    const hf_claimed *held = claim();
    assert_int_equal(held->mail_count, 4);
    for (int i = 0; i < 4; i++)
        assert_string_equal(held->mail[i].name, names[i]);
}

static void consumed_mail_is_not_seen_again(void **state)
{
    hf_id id = run_that_is(HF_WAITING, 0);
    (void)state;
    send_signal(id, "first");
    send_signal(id, "second");
    const hf_claimed *held = claim();
    const char *const done[] = { held->mail[0].id };
    hf_transition t = turn_of(held, HF_TURN_RETRY);
    t.consumed = done;
    t.consumed_count = 1;
    commit(&t);
    held = claim();
    assert_int_equal(held->mail_count, 1);
    assert_string_equal(held->mail[0].name, "second");
}

static void mail_survives_a_holder_that_dies(void **state)
{
    hf_id id = run_that_is(HF_WAITING, 0);
    (void)state;
    send_signal(id, "s");
    claim();
    advance(LEASE);
    assert_int_equal(claim()->mail_count, 1);
}

/* ---- Identity ---- */

static void a_signal_with_the_same_id_is_dropped(void **state)
{
    hf_id id = run_that_is(HF_WAITING, 0);
    hf_signal_spec spec = signal_of("pay");
    bool duplicate = true;
    (void)state;
    spec.id = "cmd-1";
    assert_ok(hf_signal(fx.client, id, &spec, &duplicate, &fx.error));
    assert_false(duplicate);
    const char *before = dump();
    spec.payload = "2";
    assert_ok(hf_signal(fx.client, id, &spec, &duplicate, &fx.error));
    assert_true(duplicate);
    assert_string_equal(before, dump());
    assert_int_equal(claim()->mail_count, 1);
}

static void a_consumed_signal_is_remembered_as_a_duplicate(void **state)
{
    hf_id id = run_that_is(HF_WAITING, 0);
    hf_signal_spec spec = signal_of("pay");
    bool duplicate = false;
    (void)state;
    spec.id = "cmd-1";
    assert_ok(try_signal(id, &spec));
    const hf_claimed *held = claim();
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    consume_all(held, &t);
    assert_ok(hf_signal(fx.client, id, &spec, &duplicate, &fx.error));
    assert_true(duplicate);
    expect_nothing_due();
}

static void the_same_signal_id_may_be_sent_to_two_runs(void **state)
{
    hf_id one = run_that_is(HF_WAITING, 0);
    hf_id two = run_that_is(HF_WAITING, 0);
    hf_signal_spec spec = signal_of("pay");
    bool duplicate = false;
    (void)state;
    spec.id = "cmd-1";
    assert_ok(try_signal(one, &spec));
    assert_ok(hf_signal(fx.client, two, &spec, &duplicate, &fx.error));
    assert_false(duplicate);
    assert_int_equal(claim_as(WORKER, 10)->count, 2);
}

/* ---- Tokens and revisions ---- */

static hf_id wait_with_token(const char *token)
{
    const hf_claimed *held = claim_new();
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    t.waiting_kind = "approval";
    t.waiting_token = token;
    commit(&t);
    return held->run.id;
}

static void a_signal_with_the_waits_token_is_delivered(void **state)
{
    hf_id id = wait_with_token("t-2");
    hf_signal_spec spec = signal_of("s");
    (void)state;
    spec.token = "t-2";
    assert_ok(try_signal(id, &spec));
    assert_string_equal(claim()->mail[0].token, "t-2");
}

static void a_signal_with_a_stale_token_is_journalled_and_ignored(void **state)
{
    hf_id id = wait_with_token("t-2");
    hf_signal_spec spec = signal_of("s");
    (void)state;
    spec.token = "t-1";
    assert_ok(try_signal(id, &spec));
    expect_nothing_due();
    const hf_events *events = events_of(id);
    assert_string_equal(events->items[events->count - 1].name, "s");
    assert_non_null(strstr(events->items[events->count - 1].data, "stale"));
    send_signal(id, "any");
    assert_int_equal(claim()->mail_count, 1);
}

static void a_stale_signal_that_is_sent_again_is_journalled_once(void **state)
{
    hf_id id = wait_with_token("t-2");
    hf_signal_spec spec = signal_of("s");
    bool duplicate = false;
    (void)state;
    spec.id = "late";
    spec.token = "t-1";
    lose_answers(1);
    assert_ok(hf_signal(fx.client, id, &spec, &duplicate, &fx.error));
    assert_int_equal(answers_lost(), 1);
    assert_false(duplicate);
    size_t lines = events_of(id)->count;
    assert_ok(hf_signal(fx.client, id, &spec, &duplicate, &fx.error));
    assert_true(duplicate);
    assert_int_equal(events_of(id)->count, lines);
    assert_string_equal(journal(id), "created started waiting s");
    spec.token = "t-2"; /* the same id, now for the wait that there is */
    assert_ok(hf_signal(fx.client, id, &spec, &duplicate, &fx.error));
    assert_false(duplicate);
    assert_string_equal(claim()->mail[0].id, "late");
}

static void a_stale_token_is_ignored_while_the_wait_is_paused_too(void **state)
{
    hf_id id = wait_with_token("t-2");
    hf_signal_spec spec = signal_of("s");
    (void)state;
    change(id, HF_PAUSE);
    spec.token = "t-1";
    assert_ok(try_signal(id, &spec));
    change(id, HF_RESUME);
    expect_nothing_due();
}

static void a_signal_with_an_old_revision_is_refused(void **state)
{
    hf_id id = run_that_is(HF_WAITING, 0);
    hf_signal_spec spec = signal_of("s");
    int64_t revision = get(id)->revision;
    (void)state;
    spec.expected_revision = revision - 1;
    const char *before = dump();
    assert_code(try_signal(id, &spec), HF_REVISION);
    assert_string_equal(before, dump());
    spec.expected_revision = revision;
    assert_ok(try_signal(id, &spec));
}

/* ---- Where it does not go ---- */

static void a_finished_run_takes_no_signals(void **state)
{
    hf_signal_spec spec = signal_of("s");
    (void)state;
    for (hf_status status = HF_SUCCEEDED; status <= HF_CANCELLED; status++) {
        hf_id id = run_that_is(status, 0);
        const char *before = dump();
        assert_code(try_signal(id, &spec), HF_NOT_ALLOWED);
        assert_string_equal(before, dump());
    }
}

static void deleted_and_unknown_runs_take_no_signals(void **state)
{
    hf_id id = run_that_is(HF_WAITING, 0);
    hf_id nobody = { { 5 } };
    hf_signal_spec spec = signal_of("s");
    (void)state;
    change(id, HF_DELETE);
    assert_code(try_signal(id, &spec), HF_NOT_FOUND);
    assert_code(try_signal(nobody, &spec), HF_NOT_FOUND);
    spec.name = NULL;
    assert_code(try_signal(id, &spec), HF_INVALID);
}

/* ---- Later ---- */

static void a_delayed_signal_is_seen_at_its_time(void **state)
{
    hf_id id = run_that_is(HF_WAITING, 0);
    hf_signal_spec spec = signal_of("later");
    (void)state;
    spec.delay = HF_MINUTES(1);
    assert_ok(try_signal(id, &spec));
    assert_int_equal(get(id)->run_at, now() + HF_MINUTES(1));
    advance(HF_MINUTES(1) - 1);
    expect_nothing_due();
    advance(1);
    assert_int_equal(claim()->mail_count, 1);
}

static void a_delayed_signal_sent_to_a_held_run_wakes_its_wait_in_time(void **state)
{
    const hf_claimed *held = claim_new();
    hf_signal_spec spec = signal_of("later");
    (void)state;
    spec.delay = HF_MINUTES(1);
    assert_ok(try_signal(held->run.id, &spec));
    wait_for_signal(held);
    assert_int_equal(get(held->run.id)->run_at, now() + HF_MINUTES(1));
    expect_nothing_due();
    advance(HF_MINUTES(1));
    assert_int_equal(claim()->mail_count, 1);
}

/* It was in the mailbox when the holder looked, but not yet visible. */
static void a_delayed_signal_that_comes_due_under_the_holder_ends_its_wait_at_once(void **state)
{
    hf_id id = run_that_is(HF_WAITING, 0);
    hf_signal_spec spec = signal_of("later");
    (void)state;
    spec.delay = HF_SECONDS(10);
    assert_ok(try_signal(id, &spec));
    send_signal(id, "now");
    const hf_claimed *held = claim();
    assert_int_equal(held->mail_count, 1);
    advance(HF_SECONDS(10));
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    consume_all(held, &t);
    assert_int_equal(get(id)->run_at, now());
    assert_string_equal(claim()->mail[0].name, "later");
}

/* Other signals go ahead of them and keep the flusher busy, so that the others share a flush. */
static void one_signal_sent_many_times_at_once_arrives_once(void **state)
{
    enum { OTHERS = 20, ALL = 40 };
    struct hf__op ops[ALL];
    hf_signal_spec specs[ALL];
    char names[ALL][16];
    hf_id other = run_that_is(HF_WAITING, 0);
    hf_id id = run_that_is(HF_WAITING, 0);
    int new = 0;
    (void)state;
    for (int i = 0; i < ALL; i++) {
        snprintf(names[i], sizeof names[i], "s-%d", i < OTHERS ? i : OTHERS);
        specs[i] = (hf_signal_spec){
            .version = HF_SIGNAL_VERSION, .id = names[i], .type = "external", .name = "news"
        };
        ops[i] = (struct hf__op){ .kind = HF__OP_SIGNAL,
                                  .tenant = fx.client->tenant_id,
                                  .actor = "tester",
                                  .signal = { .run = i < OTHERS ? other : id, .spec = &specs[i] } };
    }
    hf__engine_apply(fx.client->engine, ops, ALL);
    for (int i = OTHERS; i < ALL; i++) {
        assert_int_equal(ops[i].code, HF_OK);
        new += !ops[i].signal.duplicate;
    }
    assert_int_equal(new, 1);
    expect_journal(id, "created started waiting news");
}

/* Who could send such mail could answer for a person, or tell of the end of a child that is still at work. */
static void mail_of_the_engine_cannot_be_sent_from_outside(void **state)
{
    static const char *const types[] = { "child", "continue", "retry", "task", "timer" };
    static const char *const ids[] = { "child:1", "requeue:1", "timer:1" };
    hf_id id = run_that_is(HF_WAITING, 0);
    hf_signal_spec spec = signal_of("approval");
    (void)state;
    spec.payload = "{\"outcome\":\"approved\",\"by\":\"ceo\"}";
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        spec.type = types[i];
        assert_code(try_signal(id, &spec), HF_INVALID);
    }
    spec.type = NULL;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        spec.id = ids[i];
        assert_code(try_signal(id, &spec), HF_INVALID);
    }
    expect_nothing_due();
    expect_journal(id, "created started waiting");
    spec.id = NULL;
    spec.type = "shop.order"; /* others are free */
    assert_ok(try_signal(id, &spec));
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(a_signal_wakes_a_waiting_run_and_is_delivered),
    CONTRACT_TEST(a_signal_raises_neither_version_nor_revision),
    CONTRACT_TEST(a_signal_before_the_wait_is_there_at_the_first_claim),
    CONTRACT_TEST(a_signal_brings_a_delayed_run_forward),
    CONTRACT_TEST(a_signal_that_the_holder_has_not_seen_makes_its_wait_end_at_once),
    CONTRACT_TEST(mail_that_the_holder_has_seen_and_left_does_not_wake_it_again),
    CONTRACT_TEST(signals_are_delivered_in_the_order_of_their_arrival),
    CONTRACT_TEST(consumed_mail_is_not_seen_again),
    CONTRACT_TEST(mail_survives_a_holder_that_dies),
    CONTRACT_TEST(a_signal_with_the_same_id_is_dropped),
    CONTRACT_TEST(a_consumed_signal_is_remembered_as_a_duplicate),
    CONTRACT_TEST(the_same_signal_id_may_be_sent_to_two_runs),
    CONTRACT_TEST(a_signal_with_the_waits_token_is_delivered),
    CONTRACT_TEST(a_signal_with_a_stale_token_is_journalled_and_ignored),
    CONTRACT_TEST(a_stale_signal_that_is_sent_again_is_journalled_once),
    CONTRACT_TEST(a_stale_token_is_ignored_while_the_wait_is_paused_too),
    CONTRACT_TEST(a_signal_with_an_old_revision_is_refused),
    CONTRACT_TEST(a_finished_run_takes_no_signals),
    CONTRACT_TEST(deleted_and_unknown_runs_take_no_signals),
    CONTRACT_TEST(a_delayed_signal_is_seen_at_its_time),
    CONTRACT_TEST(a_delayed_signal_sent_to_a_held_run_wakes_its_wait_in_time),
    CONTRACT_TEST(a_delayed_signal_that_comes_due_under_the_holder_ends_its_wait_at_once),
    CONTRACT_TEST(mail_of_the_engine_cannot_be_sent_from_outside),
    CONTRACT_TEST(one_signal_sent_many_times_at_once_arrives_once),
};
CONTRACT("signals", tests)
