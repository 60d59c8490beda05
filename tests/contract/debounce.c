/* Debounced triggers: many of them become one run with the newest input, as long as it has not begun. A9.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "client/client.h"
#include "contract/fixture.h"

#define QUIET HF_SECONDS(5)

static hf_trigger_spec debounced(const char *key, const char *input)
{
    hf_trigger_spec spec = spec_of(WORK);
    spec.debounce_key = key;
    spec.debounce_for = QUIET;
    spec.input = input;
    return spec;
}

static hf_triggered send(const hf_trigger_spec *spec)
{
    hf_triggered out;
    assert_ok(try_trigger(spec, &out));
    return out;
}

static hf_triggered send_input(const char *key, const char *input)
{
    hf_trigger_spec spec = debounced(key, input);
    return send(&spec);
}

static int64_t runs_of_test(void)
{
    return sql_number("SELECT count(*) FROM run WHERE tenant_id = %d", fx.client->tenant_id);
}

static int64_t lines_named(const char *name)
{
    return sql_number("SELECT count(*) FROM event WHERE tenant_id = %d AND name = '%s'",
                      fx.client->tenant_id, name);
}

static void expect_input(hf_id run, const char *input)
{
    assert_string_equal(get(run)->input, input);
}

/* ---- The rule ---- */

static void a_further_trigger_gives_its_input_to_the_run_that_has_not_begun(void **state)
{
    (void)state;
    hf_triggered first = send_input("k", "1");
    assert_false(first.debounced);
    advance(HF_SECONDS(1));
    hf_triggered second = send_input("k", "2");
    assert_true(second.debounced);
    assert_false(second.existed);
    assert_true(hf_id_equal(first.id, second.id));
    expect_input(first.id, "2");
    assert_string_equal(get(first.id)->debounce_key, "k");
    expect_journal(first.id, "created debounced");
    assert_int_equal(get(first.id)->run_at, now() + QUIET);
    assert_int_equal(get(first.id)->revision, 2);
    assert_int_equal(runs_of_test(), 1);
}

static void the_run_starts_when_it_has_been_quiet_for_so_long(void **state)
{
    (void)state;
    hf_triggered first = send_input("k", "1");
    for (int i = 0; i < 5; i++) {
        advance(QUIET - 1);
        expect_nothing_due();
        send_input("k", "2");
    }
    advance(QUIET - 1);
    expect_nothing_due();
    advance(1);
    const hf_claimed *held = claim();
    assert_true(hf_id_equal(held->run.id, first.id));
    assert_string_equal(held->run.input, "2");
}

static void the_newest_delay_counts(void **state)
{
    (void)state;
    hf_trigger_spec spec = debounced("k", "1");
    hf_id id = send(&spec).id;
    spec.debounce_for = 1;
    send(&spec);
    assert_int_equal(get(id)->run_at, now() + 1);
}

static void the_start_is_put_off_no_longer_than_was_said(void **state)
{
    (void)state;
    hf_trigger_spec spec = debounced("k", "1");
    int64_t begun = now();
    spec.debounce_at_most = HF_SECONDS(7);
    hf_id id = send(&spec).id;
    assert_int_equal(get(id)->run_at, begun + QUIET);
    advance(HF_SECONDS(4));
    send_input("k", "2"); /* has no limit of its own, and does not take the other's away */
    assert_int_equal(get(id)->run_at, begun + HF_SECONDS(7));
    spec.debounce_at_most = HF_SECONDS(6);
    send(&spec);
    assert_int_equal(get(id)->run_at, begun + HF_SECONDS(6));
    spec.debounce_at_most = HF_HOURS(1);
    send(&spec);
    assert_int_equal(get(id)->run_at, begun + HF_SECONDS(6));
    advance(HF_SECONDS(2));
    assert_true(hf_id_equal(claim()->run.id, id));
}

static void the_start_is_not_put_off_beyond_the_deadline(void **state)
{
    (void)state;
    hf_trigger_spec spec = debounced("k", "1");
    spec.timeout = HF_SECONDS(6);
    hf_id id = send(&spec).id;
    int64_t deadline = now() + HF_SECONDS(6);
    advance(HF_SECONDS(4));
    send_input("k", "2");
    assert_int_equal(get(id)->run_at, deadline);
}

static void a_run_that_has_begun_is_left_alone(void **state)
{
    (void)state;
    hf_id first = send_input("k", "1").id;
    advance(QUIET);
    const hf_claimed *held = claim();
    hf_triggered second = send_input("k", "2");
    assert_false(second.debounced);
    assert_false(hf_id_equal(first, second.id));
    expect_input(first, "1");
    succeed(held);
    assert_true(hf_id_equal(send_input("k", "3").id, second.id));
    expect_input(first, "1");
    expect_input(second.id, "3");
}

static void a_run_that_is_pending_again_does_not_collide(void **state)
{
    (void)state;
    hf_id first = send_input("k", "1").id;
    advance(QUIET);
    const hf_claimed *held = claim();
    hf_id second = send_input("k", "2").id;
    retry_after(held, HF_HOURS(1));
    expect_status(first, HF_PENDING);
    assert_true(hf_id_equal(send_input("k", "3").id, second));

    change(second, HF_CANCEL);
    hf_id third = send_input("k", "4").id;
    assert_false(hf_id_equal(third, second));
    change(second, HF_RETRY_RUN); /* never claimed, and pending again */
    assert_true(hf_id_equal(send_input("k", "5").id, third));
    expect_input(second, "3");

    change(third, HF_PAUSE);
    hf_id fourth = send_input("k", "6").id;
    change(third, HF_RESUME);
    assert_true(hf_id_equal(send_input("k", "7").id, fourth));
    expect_input(third, "5");
}

static void a_deleted_run_is_left_alone_and_comes_back_when_there_is_room(void **state)
{
    (void)state;
    hf_id first = send_input("k", "1").id;
    change(first, HF_DELETE);
    hf_id second = send_input("k", "2").id;
    assert_false(hf_id_equal(first, second));
    assert_code(try_change(first, HF_RESTORE), HF_CONFLICT);
    change(second, HF_CANCEL);
    change(first, HF_RESTORE);
    assert_true(hf_id_equal(send_input("k", "3").id, first));
}

static void a_debounce_key_belongs_to_one_workflow_and_tenant(void **state)
{
    (void)state;
    hf_trigger_spec spec = debounced("k", "1");
    hf_triggered other;
    hf_workflow work = { .name = WORK };
    define("a.other");
    hf_id first = send(&spec).id;
    spec.workflow = "a.other";
    assert_false(hf_id_equal(send(&spec).id, first));
    spec.workflow = WORK;
    assert_ok(hf_workflow_put(fx.other, &work, 0, &fx.error));
    assert_ok(hf_trigger(fx.other, &other, &spec, &fx.error));
    assert_false(other.debounced);
    assert_false(send_input("K", "1").debounced);
    assert_true(send_input("k", "1").debounced);
}

static void what_is_not_debounced_is_not_touched(void **state)
{
    (void)state;
    hf_id plain = trigger(WORK);
    hf_id first = send_input("k", "1").id;
    assert_false(hf_id_equal(plain, first));
    assert_false(hf_id_equal(trigger(WORK), first));
    expect_journal(first, "created");
}

static void only_the_input_and_the_start_change(void **state)
{
    static const char *const tags[] = { "red" };
    (void)state;
    hf_trigger_spec spec = debounced("k", "1");
    spec.subject = "first";
    spec.flow_key = "acme";
    hf_id id = send(&spec).id;
    spec = debounced("k", NULL);
    spec.subject = "second";
    spec.priority = 7;
    spec.tags = tags;
    spec.tag_count = 1;
    assert_true(send(&spec).debounced);
    const hf_run *run = get(id);
    assert_null(run->input);
    assert_string_equal(run->subject, "first");
    assert_int_equal(run->priority, 0);
    assert_null(run->tags);
    assert_int_equal(sql_number("SELECT count(*) FROM run_tag WHERE run_id = %s", sql_id(id)), 0);
}

static void a_signal_to_a_run_that_waits_is_not_lost(void **state)
{
    (void)state;
    hf_id id = send_input("k", "1").id;
    send_signal(id, "hello");
    assert_true(send_input("k", "2").debounced);
    expect_nothing_due();
    advance(QUIET);
    const hf_claimed *held = claim();
    assert_int_equal(held->mail_count, 1);
    assert_string_equal(held->run.input, "2");
}

static void the_journal_tells_who_sent_what(void **state)
{
    hf_client *bob;
    hf_trigger_spec spec = debounced("k", "{\"b\": 2}");
    hf_triggered out;
    (void)state;
    hf_id id = send_input("k", "{\"a\":1}").id;
    assert_ok(hf_open_as(&bob, fx.client, NULL, "bob", &fx.error));
    assert_ok(hf_trigger(bob, &out, &spec, &fx.error));
    assert_ok(hf_trigger(bob, &out, &spec, &fx.error));
    hf_close(bob);
    const hf_events *events = events_of(id);
    assert_int_equal(events->count, 3);
    assert_string_equal(events->items[1].actor, "bob");
    assert_string_equal(events->items[1].kind, "lifecycle");
    assert_non_null(strstr(events->items[1].data, ",\"input\":{\"b\": 2},\"replaced\":{\"a\":1}}"));
    assert_non_null(strstr(events->items[2].data, ",\"input\":{\"b\": 2}}"));
}

static void a_key_is_judged_before_the_debounce(void **state)
{
    (void)state;
    hf_trigger_spec spec = debounced("k", "1");
    hf_triggered out;
    spec.key = "one";
    hf_id id = send(&spec).id;
    out = send(&spec);
    assert_true(out.existed);
    assert_false(out.debounced);
    expect_journal(id, "created");
    spec.input = "2";
    assert_code(try_trigger(&spec, &out), HF_CONFLICT);
    spec.key = "two"; /* goes into the run, which keeps its own key */
    assert_true(send(&spec).debounced);
    assert_string_equal(get(id)->key, "one");
    expect_input(id, "2");
}

static void unusable_debounces_are_refused(void **state)
{
    const hf_trigger_spec base = debounced("k", NULL);
    hf_trigger_spec specs[] = { base, base, base, base, base, base, base, base };
    hf_transition initial = { .version = HF_TRANSITION_VERSION, .turn = HF_TURN_WAIT };
    hf_triggered out;
    (void)state;
    specs[0].debounce_key = "";
    specs[1].debounce_for = 0;
    specs[2].debounce_for = -1;
    specs[3].debounce_at_most = QUIET - 1;
    specs[4].delay = 1;
    specs[5].run_at = 1;
    specs[6].debounce_key = NULL;
    specs[7].debounce_for = HF_DAYS(366);
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        assert_code(try_trigger(&specs[i], &out), HF_INVALID);
    assert_code(hf_trigger_with(fx.client, &out, &base, &initial, &fx.error), HF_INVALID);
    const hf_claimed *held = claim_new();
    hf_transition turn = turn_of(held, HF_TURN_SUCCEED);
    turn.children = &base;
    turn.child_count = 1;
    assert_code(try_commit(&turn), HF_INVALID);
    hf_trigger_spec unknown = base;
    unknown.workflow = "a.nowhere";
    assert_code(try_trigger(&unknown, &out), HF_UNKNOWN_WORKFLOW);
}

static void a_disabled_tenant_debounces_nothing(void **state)
{
    hf_triggered out;
    hf_trigger_spec spec = debounced("k", "2");
    (void)state;
    hf_id id = send_input("k", "1").id;
    assert_ok(hf_tenant_disable(fx.root, fx.tenant, true, &fx.error));
    assert_code(try_trigger(&spec, &out), HF_DISABLED);
    assert_ok(hf_tenant_disable(fx.root, fx.tenant, false, &fx.error));
    expect_input(id, "1");
}

/* ---- At once ---- */

static void many_in_one_call_are_one_run_with_the_last_input(void **state)
{
    enum { MANY = 300 };
    hf_trigger_spec specs[MANY];
    hf_triggered out[MANY];
    char inputs[MANY][8];
    (void)state;
    for (int i = 0; i < MANY; i++) {
        snprintf(inputs[i], sizeof inputs[i], "%d", i);
        specs[i] = debounced("k", inputs[i]);
    }
    assert_ok(hf_trigger_many(fx.client, out, specs, MANY, &fx.error));
    assert_int_equal(runs_of_test(), 1);
    for (int i = 0; i < MANY; i++) {
        assert_true(hf_id_equal(out[i].id, out[0].id));
        assert_int_equal(out[i].debounced, i > 0);
    }
    expect_input(out[0].id, "299");
    assert_int_equal(lines_named("debounced"), MANY - 1);
}

/* Changes, a debounce and a claim of one run in one transaction: each sees what came before it. */
static void a_change_in_the_same_flush_is_seen(void **state)
{
    hf_trigger_spec spec = debounced("k", "2");
    (void)state;
    hf_id first = send_input("k", "1").id;
    struct hf__op ops[2] = {
        { .kind = HF__OP_CHANGE,
          .tenant = fx.client->tenant_id,
          .actor = "tester",
          .change = { .run = first, .action = HF_CANCEL } },
        { .kind = HF__OP_TRIGGER,
          .tenant = fx.client->tenant_id,
          .actor = "tester",
          .trigger = { .id = { { 9, 9, 9 } }, .spec = &spec } },
    };
    hf__engine_apply(fx.client->engine, ops, 2);
    assert_int_equal(ops[0].code, HF_OK);
    assert_int_equal(ops[1].code, HF_OK);
    assert_false(ops[1].trigger.debounced);
    expect_input(first, "1");
    assert_int_equal(runs_of_test(), 2);
}

enum { CALLERS = 50, CALLS = 4 };

struct caller {
    hf_client *client;
    int number;
    int failures;
};

static void *debounce_as_caller(void *arg)
{
    struct caller *caller = arg;
    for (int i = 0; i < CALLS; i++) {
        char input[16];
        hf_triggered out;
        hf_error err;
        snprintf(input, sizeof input, "%d", caller->number * CALLS + i);
        hf_trigger_spec spec = debounced("k", input);
        caller->failures += hf_trigger(caller->client, &out, &spec, &err) != HF_OK;
    }
    return NULL;
}

static atomic_bool callers_done;

/* Claims what the clock, which goes on, has made due. */
static void *claim_meanwhile(void *arg)
{
    const char *pattern = WORK;
    hf_claim_spec spec = HF_CLAIM_INIT;
    int *claimed = arg;
    spec.worker = WORKER;
    spec.patterns = &pattern;
    spec.pattern_count = 1;
    spec.limit = 10;
    while (!atomic_load(&callers_done)) {
        hf_claims *claims = NULL;
        hf_error err;
        advance(QUIET);
        if (hf_claim(fx.client, &claims, &spec, &err) == HF_OK)
            *claimed += (int)claims->count;
        hf_claims_free(claims);
        usleep(1000);
    }
    return NULL;
}

/* Every trigger left its line, and each run has the input of its last one. */
static void expect_all_accounted_for(void)
{
    hf_filter filter = HF_FILTER_INIT;
    filter.limit = 1000;
    const hf_runs *runs = list(&filter);
    assert_int_equal(lines_named("created") + lines_named("debounced"), CALLERS * CALLS);
    assert_int_equal(lines_named("created"), (int)runs->count);
    for (size_t i = 0; i < runs->count; i++) {
        const hf_run *run = &runs->items[i];
        const hf_events *events = events_of(run->id);
        const char *data = NULL;
        for (size_t n = 0; n < events->count; n++)
            if (strcmp(events->items[n].name, "debounced") == 0)
                data = events->items[n].data;
        const char *wanted =
            text_of("\"input\":%s%s", run->input, data && strstr(data, "replaced") ? "," : "}");
        if (data)
            assert_non_null(strstr(data, wanted));
    }
}

static void call_at_once(hf_client *beside, bool claiming, int *claimed)
{
    pthread_t threads[CALLERS], claimer;
    struct caller callers[CALLERS];
    atomic_store(&callers_done, false);
    if (claiming)
        assert_int_equal(pthread_create(&claimer, NULL, claim_meanwhile, claimed), 0);
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (struct caller){ .client = beside && i % 2 ? beside : fx.client, .number = i };
        assert_int_equal(pthread_create(&threads[i], NULL, debounce_as_caller, &callers[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++)
        pthread_join(threads[i], NULL);
    atomic_store(&callers_done, true);
    if (claiming)
        pthread_join(claimer, NULL);
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(callers[i].failures, 0);
}

static void fifty_at_once_are_one_run(void **state)
{
    (void)state;
    call_at_once(NULL, false, NULL);
    assert_int_equal(runs_of_test(), 1);
    expect_all_accounted_for();
}

static void processes_debounce_into_one_run(void **state)
{
    (void)state;
    hf_client *beside = open_beside();
    if (!beside)
        skip();
    call_at_once(beside, false, NULL);
    hf_close(beside);
    assert_int_equal(runs_of_test(), 1);
    expect_all_accounted_for();
}

static void nothing_is_lost_between_triggers_and_claims(void **state)
{
    int claimed = 0;
    (void)state;
    hf_client *beside = open_beside();
    call_at_once(beside, true, &claimed);
    hf_close(beside);
    expect_all_accounted_for();
    assert_true(claimed >= runs_of_test() - 1);
}

static atomic_bool answered;

static void *debounce_once(void *arg)
{
    hf_trigger_spec spec = debounced("k", "2");
    hf_error err;
    hf_triggered *out = arg;
    out->code = hf_trigger(fx.client, out, &spec, &err);
    atomic_store(&answered, true);
    return NULL;
}

static void a_run_that_somebody_keeps_locked_is_waited_for(void **state)
{
    pthread_t thread;
    hf_triggered out = { 0 };
    (void)state;
    if (fx.backend != BACKEND_POSTGRES)
        skip();
    hf_id id = send_input("k", "1").id;
    atomic_store(&answered, false);
    sql("BEGIN");
    sql("SELECT 1 FROM run WHERE id = %s FOR UPDATE", sql_id(id));
    assert_int_equal(pthread_create(&thread, NULL, debounce_once, &out), 0);
    for (int i = 0; i < 20; i++) {
        usleep(5000);
        assert_false(atomic_load(&answered));
    }
    assert_false(hf_id_is_zero(trigger(WORK))); /* others pass by */
    sql("COMMIT");
    pthread_join(thread, NULL);
    assert_int_equal(out.code, HF_OK);
    assert_true(out.debounced);
    expect_input(id, "2");
}

static void a_run_that_stays_locked_is_not_waited_for_for_ever(void **state)
{
    hf_trigger_spec spec = debounced("k", "2");
    struct hf__op op = { .kind = HF__OP_TRIGGER,
                         .tenant = fx.client->tenant_id,
                         .actor = "tester",
                         .patience = HF_MILLISECONDS(50),
                         .trigger = { .id = { { 9, 9, 8 } }, .spec = &spec } };
    (void)state;
    if (fx.backend != BACKEND_POSTGRES)
        skip();
    hf_id id = send_input("k", "1").id;
    sql("BEGIN");
    sql("SELECT 1 FROM run WHERE id = %s FOR UPDATE", sql_id(id));
    hf__engine_apply(fx.client->engine, &op, 1);
    sql("COMMIT");
    assert_int_equal(op.code, HF_LOCKED);
    expect_input(id, "1");
}

/* ---- Lost answers ---- */

static void a_debounce_sent_again_is_written_once(void **state)
{
    static void (*const faults[])(int) = { lose_answers, lose_commits };
    (void)state;
    hf_id id = send_input("k", "1").id;
    for (int i = 0; i < 2; i++) {
        int before = answers_lost();
        faults[i](1);
        hf_triggered out = send_input("k", i ? "3" : "2");
        assert_int_equal(answers_lost(), before + 1);
        assert_true(out.debounced);
        assert_true(hf_id_equal(out.id, id));
    }
    expect_journal(id, "created debounced debounced");
    expect_input(id, "3");
}

static void a_first_one_sent_again_is_one_run(void **state)
{
    (void)state;
    lose_answers(1);
    hf_triggered out = send_input("k", "1");
    assert_false(out.debounced);
    expect_journal(out.id, "created");
    assert_int_equal(runs_of_test(), 1);
}

static hf_id begun_meanwhile;

static void begin_it(void)
{
    sql("UPDATE run SET status = 1, version = 2, leased_by = 'eve', claimed_from = 0 WHERE id = %s",
        sql_id(begun_meanwhile));
}

static void a_debounce_sent_again_to_a_run_that_has_begun_starts_no_other(void **state)
{
    (void)state;
    begun_meanwhile = send_input("k", "1").id;
    when_lost(begin_it);
    lose_answers(1);
    hf_triggered out = send_input("k", "2");
    assert_true(out.debounced);
    assert_true(hf_id_equal(out.id, begun_meanwhile));
    assert_int_equal(runs_of_test(), 1);
    sql("UPDATE run SET status = 0, leased_by = NULL WHERE id = %s",
        sql_id(begun_meanwhile)); /* as its journal says */
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(a_further_trigger_gives_its_input_to_the_run_that_has_not_begun),
    CONTRACT_TEST(the_run_starts_when_it_has_been_quiet_for_so_long),
    CONTRACT_TEST(the_newest_delay_counts),
    CONTRACT_TEST(the_start_is_put_off_no_longer_than_was_said),
    CONTRACT_TEST(the_start_is_not_put_off_beyond_the_deadline),
    CONTRACT_TEST(a_run_that_has_begun_is_left_alone),
    CONTRACT_TEST(a_run_that_is_pending_again_does_not_collide),
    CONTRACT_TEST(a_deleted_run_is_left_alone_and_comes_back_when_there_is_room),
    CONTRACT_TEST(a_debounce_key_belongs_to_one_workflow_and_tenant),
    CONTRACT_TEST(what_is_not_debounced_is_not_touched),
    CONTRACT_TEST(only_the_input_and_the_start_change),
    CONTRACT_TEST(a_signal_to_a_run_that_waits_is_not_lost),
    CONTRACT_TEST(the_journal_tells_who_sent_what),
    CONTRACT_TEST(a_key_is_judged_before_the_debounce),
    CONTRACT_TEST(unusable_debounces_are_refused),
    CONTRACT_TEST(a_disabled_tenant_debounces_nothing),
    CONTRACT_TEST(many_in_one_call_are_one_run_with_the_last_input),
    CONTRACT_TEST(a_change_in_the_same_flush_is_seen),
    CONTRACT_TEST(fifty_at_once_are_one_run),
    CONTRACT_TEST(processes_debounce_into_one_run),
    CONTRACT_TEST(nothing_is_lost_between_triggers_and_claims),
    CONTRACT_TEST(a_run_that_somebody_keeps_locked_is_waited_for),
    CONTRACT_TEST(a_run_that_stays_locked_is_not_waited_for_for_ever),
    CONTRACT_TEST(a_debounce_sent_again_is_written_once),
    CONTRACT_TEST(a_first_one_sent_again_is_one_run),
    CONTRACT_TEST(a_debounce_sent_again_to_a_run_that_has_begun_starts_no_other),
};

CONTRACT("debounce", tests)
