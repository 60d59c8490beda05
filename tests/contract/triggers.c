/* Triggers: what is accepted, what it becomes, and how its key makes it the only one. A9, B3.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "contract/fixture.h"

static hf_trigger_spec keyed(const char *key, const char *input)
{
    hf_trigger_spec spec = spec_of(WORK);
    spec.key = key;
    spec.input = input;
    return spec;
}

static void a_trigger_makes_a_pending_run_that_is_due_at_once(void **state)
{
    hf_id id = trigger(WORK);
    const hf_run *run = get(id);
    (void)state;
    assert_int_equal(run->status, HF_PENDING);
    assert_int_equal(run->run_at, now());
    assert_int_equal(run->created_at, now());
    assert_int_equal(run->attempt, 0);
    assert_int_equal(run->version, 1);
    assert_int_equal(run->revision, 1);
    expect_journal(id, "created");
    assert_string_equal(events_of(id)->items[0].actor, "tester");
}

static void expect_text(const char *kept, const char *told)
{
    assert_string_equal(kept ? kept : "none", told ? told : "none");
}

/* Of a run that was triggered so a moment ago. */
static void expect_kept(const hf_trigger_spec *spec, const char *tags)
{
    const hf_run *run = get(trigger_spec(spec));
    int64_t timeout_at = spec->timeout ? now() + spec->timeout : spec->timeout_at;
    assert_string_equal(run->tenant, fx.tenant);
    assert_string_equal(run->workflow, WORK);
    assert_string_equal(run->input, spec->input);
    assert_string_equal(run->actor, "tester");
    assert_int_equal(run->priority, spec->priority);
    assert_int_equal(run->run_at, spec->run_at ? spec->run_at : now() + spec->delay);
    assert_int_equal(run->timeout_at, timeout_at);
    assert_int_equal(run->max_attempts, spec->max_attempts ? spec->max_attempts : 3);
    expect_text(run->key, spec->key);
    expect_text(run->subject, spec->subject);
    expect_text(run->reference, spec->reference);
    expect_text(run->tags, tags);
    expect_text(run->partition, spec->partition);
    expect_text(run->trace, spec->trace);
    expect_text(run->flow_key, spec->flow_key);
}

static const char *const tags[] = { "red", "gr\xc3\xbcn" };
static const char trace[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

static void expect_all_kept(const char *key)
{
    hf_trigger_spec spec = keyed(key, "{\"a\":1}");
    spec.priority = 7;
    spec.delay = HF_SECONDS(5);
    spec.timeout = HF_MINUTES(5);
    spec.max_attempts = 9;
    spec.subject = "customer 4711";
    spec.reference = "order/12";
    spec.tags = tags;
    spec.tag_count = 2;
    spec.partition = "eu";
    spec.trace = trace;
    spec.flow_key = "customer-4711";
    expect_kept(&spec, "[\"red\",\"gr\xc3\xbcn\"]");
}

static void what_a_trigger_says_is_kept(void **state)
{
    (void)state;
    expect_all_kept("k-1");
}

static void what_a_trigger_without_a_key_says_is_kept(void **state)
{
    (void)state;
    expect_all_kept(NULL);
}

/* Which way a lone trigger takes depends on what it says: each thing must lead it to one that keeps it. */
static void each_thing_that_a_trigger_says_by_itself_is_kept(void **state)
{
    const hf_trigger_spec specs[] = {
        { .input = "1" },
        { .input = "null", .priority = -3 },
        { .input = "2", .run_at = now() + HF_HOURS(1) },
        { .input = "3", .delay = HF_SECONDS(5) },
        { .input = "4", .timeout_at = now() + HF_HOURS(2) },
        { .input = "5", .timeout = HF_MINUTES(5) },
        { .input = "6", .max_attempts = 9 },
        { .input = "7", .subject = "customer 4711" },
        { .input = "8", .reference = "order/12" },
        { .input = "9", .tags = tags, .tag_count = 1 },
        { .input = "10", .partition = "eu" },
        { .input = "11", .trace = trace },
        { .input = "12", .flow_key = "customer-4711" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        hf_trigger_spec spec = specs[i];
        spec.version = HF_TRIGGER_VERSION;
        spec.workflow = WORK;
        expect_kept(&spec, spec.tag_count ? "[\"red\"]" : NULL);
    }
}

static void an_unknown_workflow_is_refused(void **state)
{
    hf_triggered out;
    hf_trigger_spec spec = spec_of("nobody.knows.this");
    const char *before = dump();
    (void)state;
    assert_code(try_trigger(&spec, &out), HF_UNKNOWN_WORKFLOW);
    assert_string_equal(before, dump());
}

static void the_engines_own_workflows_cannot_be_triggered_from_outside(void **state)
{
    hf_triggered out;
    hf_trigger_spec spec = spec_of("holdfast.cancel_children");
    (void)state;
    assert_code(try_trigger(&spec, &out), HF_INVALID);
}

static void a_disabled_tenant_triggers_nothing(void **state)
{
    hf_triggered out;
    hf_trigger_spec spec = spec_of(WORK);
    (void)state;
    assert_ok(hf_tenant_disable(fx.root, fx.tenant, true, &fx.error));
    const char *before = dump();
    assert_code(try_trigger(&spec, &out), HF_DISABLED);
    assert_string_equal(before, dump());
    assert_ok(hf_tenant_disable(fx.root, fx.tenant, false, &fx.error));
    trigger(WORK);
}

/* ---- Keys ---- */

static void the_same_key_and_input_answer_the_first_run(void **state)
{
    hf_trigger_spec spec = keyed("k", "{\"a\":[1,2],\"b\":null}");
    hf_triggered out;
    hf_id first = trigger_spec(&spec);
    const char *before = dump();
    (void)state;
    assert_ok(try_trigger(&spec, &out));
    assert_true(out.existed);
    assert_true(hf_id_equal(out.id, first));
    assert_string_equal(before, dump());
}

static void json_that_is_only_written_differently_is_the_same_input(void **state)
{
    hf_trigger_spec spec = keyed("k", "{\"a\":[1,2],\"b\":\"\xc3\xa9\"}");
    hf_triggered out;
    hf_id first = trigger_spec(&spec);
    (void)state;
    spec.input = " { \"b\" : \"\\u00e9\" ,\n \"a\" : [ 1, 2 ] } ";
    assert_ok(try_trigger(&spec, &out));
    assert_true(out.existed);
    assert_true(hf_id_equal(out.id, first));
}

static void no_input_and_null_are_the_same_input(void **state)
{
    hf_trigger_spec spec = keyed("k", NULL);
    hf_triggered out;
    trigger_spec(&spec);
    (void)state;
    spec.input = "null";
    assert_ok(try_trigger(&spec, &out));
    assert_true(out.existed);
}

static void the_same_key_with_another_input_is_a_conflict(void **state)
{
    hf_trigger_spec spec = keyed("k", "1");
    hf_triggered out;
    hf_id first = trigger_spec(&spec);
    const char *before = dump();
    (void)state;
    spec.input = "2";
    assert_code(try_trigger(&spec, &out), HF_CONFLICT);
    assert_int_equal(out.code, HF_CONFLICT);
    assert_false(out.existed);
    assert_true(hf_id_equal(out.id, first));
    assert_string_equal(before, dump());
}

static void a_key_holds_after_its_run_has_finished(void **state)
{
    hf_trigger_spec spec = keyed("k", "1");
    hf_triggered out;
    trigger_spec(&spec);
    (void)state;
    succeed(claim());
    assert_ok(try_trigger(&spec, &out));
    assert_true(out.existed);
}

static void a_key_belongs_to_one_workflow(void **state)
{
    hf_trigger_spec spec = keyed("k", "1");
    (void)state;
    define("other.work");
    trigger_spec(&spec);
    spec.workflow = "other.work";
    spec.input = "2";
    trigger_spec(&spec);
}

static void a_soft_deleted_run_sets_its_key_free(void **state)
{
    hf_trigger_spec spec = keyed("k", "1");
    hf_id first = trigger_spec(&spec);
    (void)state;
    change(first, HF_DELETE);
    spec.input = "2";
    hf_id second = trigger_spec(&spec);
    assert_false(hf_id_equal(first, second));
    hf_run *found = NULL;
    assert_ok(hf_get_by_key(fx.client, &found, WORK, "k", &fx.error));
    assert_true(hf_id_equal(found->id, second));
    hf_run_free(found);
    hf_triggered out;
    assert_ok(try_trigger(&spec, &out));
    assert_true(out.existed);
    assert_true(hf_id_equal(out.id, second));
    spec.input = "1";
    assert_code(try_trigger(&spec, &out), HF_CONFLICT);
    assert_true(hf_id_equal(out.id, second));
}

static void restoring_a_run_whose_key_was_taken_is_a_conflict(void **state)
{
    hf_trigger_spec spec = keyed("k", "1");
    hf_id first = trigger_spec(&spec);
    (void)state;
    change(first, HF_DELETE);
    hf_id second = trigger_spec(&spec);
    const char *before = dump();
    assert_code(try_change(first, HF_RESTORE), HF_CONFLICT);
    assert_string_equal(before, dump());
    change(second, HF_DELETE);
    change(first, HF_RESTORE);
}

enum { THREADS = 50 };

static void *trigger_with_one_key(void *arg)
{
    hf_triggered *out = arg;
    hf_trigger_spec spec = keyed("only-one", "{\"n\":1}");
    hf_error err;
    out->code = hf_trigger(fx.client, out, &spec, &err);
    return NULL;
}

static void fifty_threads_with_one_key_make_exactly_one_run(void **state)
{
    pthread_t threads[THREADS];
    hf_triggered out[THREADS];
    int made = 0;
    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, trigger_with_one_key, &out[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(out[i].code, HF_OK);
        assert_true(hf_id_equal(out[i].id, out[0].id));
        made += !out[i].existed;
    }
    assert_int_equal(made, 1);
    assert_int_equal(sql_number("SELECT count(*) FROM run WHERE key = 'only-one'"), 1);
}

/* ---- Many at once ---- */

static void each_of_many_triggers_is_accepted_or_refused_by_itself(void **state)
{
    hf_trigger_spec specs[] = { spec_of(WORK), spec_of("unknown"), spec_of(WORK), spec_of(WORK) };
    hf_triggered out[4];
    (void)state;
    specs[2].input = "{not json";
    assert_code(hf_trigger_many(fx.client, out, specs, 4, &fx.error), HF_UNKNOWN_WORKFLOW);
    assert_non_null(strstr(fx.error.message, "run 2 of 4 (\"unknown\"): no workflow is named"));
    assert_int_equal(out[0].code, HF_OK);
    assert_int_equal(out[1].code, HF_UNKNOWN_WORKFLOW);
    assert_non_null(strstr(out[1].error.message, "no workflow is named \"unknown\""));
    assert_int_equal(out[2].code, HF_INVALID);
    assert_non_null(strstr(out[2].error.message, "the input is not JSON"));
    assert_int_equal(out[3].code, HF_OK);
    assert_string_equal(out[3].error.message, "");
    assert_int_equal(claim_as(WORKER, 10)->count, 2);
}

static void one_key_twice_in_one_batch_is_one_run(void **state)
{
    hf_trigger_spec specs[] = { keyed("k", "1"), keyed("k", "1"), keyed("k", "2") };
    hf_triggered out[3];
    (void)state;
    assert_code(hf_trigger_many(fx.client, out, specs, 3, &fx.error), HF_CONFLICT);
    assert_false(out[0].existed);
    assert_true(out[1].existed);
    assert_true(hf_id_equal(out[0].id, out[1].id));
    assert_int_equal(out[2].code, HF_CONFLICT);
}

/* ---- Workers that could run it ---- */

static void a_required_worker_must_be_alive_and_serve_the_workflow(void **state)
{
    hf_trigger_spec spec = spec_of("billing.charge");
    hf_triggered out;
    (void)state;
    define("billing.charge");
    spec.require_worker = true;
    assert_code(try_trigger(&spec, &out), HF_NO_WORKER);
    assert_int_equal(sql_number("SELECT count(*) FROM run r JOIN workflow w ON w.id = "
                                "r.workflow_id WHERE w.name = 'billing.charge'"),
                     0);
    spec.require_worker = false;
    assert_ok(try_trigger(&spec, &out));
    assert_true(out.no_worker);
}

/* ---- A first transition ---- */

static void a_first_transition_is_applied_with_the_trigger(void **state)
{
    hf_new_timer timer = { .key = "payment", .delay = HF_HOURS(1), .payload = "{\"t\":1}" };
    hf_new_event event = { .kind = "domain", .name = "Created", .data = "{\"by\":\"me\"}" };
    hf_new_outbox outbox = { .type = "order.created", .payload = "{}" };
    hf_new_task task = { .name = "approve", .assignee = "carl" };
    hf_transition first = {
        .version = HF_TRANSITION_VERSION,
        .turn = HF_TURN_WAIT,
        .state = "{\"status\":\"open\"}",
        .waiting_kind = "input",
        .waiting_token = "t-1",
        .timers = &timer,
        .timer_count = 1,
        .events = &event,
        .event_count = 1,
        .outbox = &outbox,
        .outbox_count = 1,
        .tasks = &task,
        .task_count = 1,
    };
    hf_trigger_spec spec = spec_of(WORK);
    hf_triggered out;
    (void)state;
    assert_ok(hf_trigger_with(fx.client, &out, &spec, &first, &fx.error));
    const hf_run *run = get(out.id);
    assert_int_equal(run->status, HF_WAITING);
    assert_string_equal(run->state, "{\"status\":\"open\"}");
    assert_string_equal(run->waiting_kind, "input");
    assert_string_equal(run->waiting_token, "t-1");
    assert_int_equal(run->run_at, now() + HF_HOURS(1));
    expect_journal(out.id, "created Created waiting");
    assert_int_equal(sql_number("SELECT count(*) FROM outbox WHERE run_id = %s", sql_id(out.id)),
                     1);
    assert_int_equal(sql_number("SELECT count(*) FROM task WHERE run_id = %s", sql_id(out.id)), 1);
    expect_nothing_due();
    advance(HF_HOURS(1));
    const hf_claimed *held = claim();
    assert_int_equal(held->mail_count, 1);
    assert_string_equal(held->mail[0].name, "payment");
}

static void a_first_transition_of_a_refused_trigger_leaves_nothing(void **state)
{
    hf_new_timer timer = { .key = "payment", .delay = HF_HOURS(1) };
    hf_new_event event = { .kind = "domain", .name = "Created" };
    hf_transition first = {
        .version = HF_TRANSITION_VERSION,
        .turn = HF_TURN_WAIT,
        .timers = &timer,
        .timer_count = 1,
        .events = &event,
        .event_count = 1,
    };
    hf_trigger_spec spec = keyed("k", "1");
    hf_triggered out;
    trigger_spec(&spec);
    const char *before = dump();
    (void)state;
    assert_ok(hf_trigger_with(fx.client, &out, &spec, &first, &fx.error));
    assert_true(out.existed);
    assert_string_equal(before, dump());
}

static void a_run_that_was_born_waiting_waits_again_after_a_pause(void **state)
{
    hf_transition first = { .version = HF_TRANSITION_VERSION, .turn = HF_TURN_WAIT };
    hf_trigger_spec spec = spec_of(WORK);
    hf_triggered out;
    (void)state;
    assert_ok(hf_trigger_with(fx.client, &out, &spec, &first, &fx.error));
    change(out.id, HF_PAUSE);
    change(out.id, HF_RESUME);
    expect_status(out.id, HF_WAITING);
    expect_nothing_due();
}

static void a_first_transition_can_leave_the_run_pending(void **state)
{
    hf_transition first = { .version = HF_TRANSITION_VERSION,
                            .turn = HF_TURN_RETRY,
                            .state = "{\"n\":0}" };
    hf_trigger_spec spec = spec_of(WORK);
    hf_triggered out;
    (void)state;
    assert_ok(hf_trigger_with(fx.client, &out, &spec, &first, &fx.error));
    expect_status(out.id, HF_PENDING);
    assert_string_equal(claim()->run.state, "{\"n\":0}");
}

static void a_first_transition_cannot_end_the_run(void **state)
{
    hf_transition first = { .version = HF_TRANSITION_VERSION, .turn = HF_TURN_SUCCEED };
    hf_trigger_spec spec = spec_of(WORK);
    hf_triggered out;
    (void)state;
    assert_code(hf_trigger_with(fx.client, &out, &spec, &first, &fx.error), HF_INVALID);
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(a_trigger_makes_a_pending_run_that_is_due_at_once),
    CONTRACT_TEST(what_a_trigger_says_is_kept),
    CONTRACT_TEST(what_a_trigger_without_a_key_says_is_kept),
    CONTRACT_TEST(each_thing_that_a_trigger_says_by_itself_is_kept),
    CONTRACT_TEST(an_unknown_workflow_is_refused),
    CONTRACT_TEST(the_engines_own_workflows_cannot_be_triggered_from_outside),
    CONTRACT_TEST(a_disabled_tenant_triggers_nothing),
    CONTRACT_TEST(the_same_key_and_input_answer_the_first_run),
    CONTRACT_TEST(json_that_is_only_written_differently_is_the_same_input),
    CONTRACT_TEST(no_input_and_null_are_the_same_input),
    CONTRACT_TEST(the_same_key_with_another_input_is_a_conflict),
    CONTRACT_TEST(a_key_holds_after_its_run_has_finished),
    CONTRACT_TEST(a_key_belongs_to_one_workflow),
    CONTRACT_TEST(a_soft_deleted_run_sets_its_key_free),
    CONTRACT_TEST(restoring_a_run_whose_key_was_taken_is_a_conflict),
    CONTRACT_TEST(fifty_threads_with_one_key_make_exactly_one_run),
    CONTRACT_TEST(each_of_many_triggers_is_accepted_or_refused_by_itself),
    CONTRACT_TEST(one_key_twice_in_one_batch_is_one_run),
    CONTRACT_TEST(a_required_worker_must_be_alive_and_serve_the_workflow),
    CONTRACT_TEST(a_first_transition_is_applied_with_the_trigger),
    CONTRACT_TEST(a_first_transition_of_a_refused_trigger_leaves_nothing),
    CONTRACT_TEST(a_run_that_was_born_waiting_waits_again_after_a_pause),
    CONTRACT_TEST(a_first_transition_can_leave_the_run_pending),
    CONTRACT_TEST(a_first_transition_cannot_end_the_run),
};
CONTRACT("triggers", tests)
