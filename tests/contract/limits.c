/* What comes from outside is checked before it reaches the store: sizes, names, encodings, numbers, versions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "contract/fixture.h"

enum { MEBIBYTE = 1024 * 1024 };

/* A JSON string of exactly `size` bytes, quotes included. */
static const char *json_of(size_t size)
{
    char *text = keep(malloc(size + 1), free);
    memset(text, 'x', size);
    text[0] = text[size - 1] = '"';
    text[size] = '\0';
    return text;
}

static const char *long_text(size_t size)
{
    char *text = keep(malloc(size + 1), free);
    memset(text, 'n', size);
    text[size] = '\0';
    return text;
}

static hf_code trigger_code(const hf_trigger_spec *spec)
{
    hf_triggered out;
    return try_trigger(spec, &out);
}

static void an_input_of_one_mebibyte_fits(void **state)
{
    hf_trigger_spec spec = spec_of(WORK);
    (void)state;
    spec.input = json_of(MEBIBYTE);
    hf_id id = trigger_spec(&spec);
    assert_string_equal(get(id)->input, spec.input);
    assert_string_equal(claim()->run.input, spec.input);
}

static void one_byte_more_than_a_mebibyte_is_too_large(void **state)
{
    const char *big = json_of(MEBIBYTE + 1);
    hf_trigger_spec spec = spec_of(WORK);
    hf_signal_spec signal = HF_SIGNAL_INIT;
    (void)state;
    spec.input = big;
    assert_code(trigger_code(&spec), HF_TOO_LARGE);
    const hf_claimed *held = claim_new();
    signal.name = "s";
    signal.payload = big;
    assert_code(try_signal(held->run.id, &signal), HF_TOO_LARGE);
    signal.payload = NULL;
    signal.id = "child:01a1e13c-42d9-78ed-9659-5c36e20a16db";
    assert_code(try_signal(held->run.id, &signal), HF_INVALID);
    hf_transition t = turn_of(held, HF_TURN_SUCCEED);
    t.result = big;
    assert_code(try_commit(&t), HF_TOO_LARGE);
    t.result = NULL;
    t.state = big;
    assert_code(try_commit(&t), HF_TOO_LARGE);
    hf_step_record step = {
        held->run.id, held->run.version, WORKER, "step", "succeeded", big,
    };
    assert_code(hf_step_save(fx.client, &step, &fx.error), HF_TOO_LARGE);
    expect_journal(held->run.id, "created started");
}

static void what_is_not_json_is_refused(void **state)
{
    static const char *const bad[] = { "", "{", "{\"a\":1,}", "nul", "\"\xff\"", "[1] 2" };
    hf_trigger_spec spec = spec_of(WORK);
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        spec.input = bad[i];
        assert_code(trigger_code(&spec), HF_INVALID);
    }
}

/* The database's own JSON types refuse some valid JSON: it is stored as it came. */
static void unusual_json_is_kept_as_it_came(void **state)
{
    static const char *const odd[] = { "\"a\\u0000b\"", "1e400", "123456789012345678901234567890",
                                       "{\"a\":1,\"a\":2}", "[1.000]" };
    hf_trigger_spec spec = spec_of(WORK);
    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        hf_triggered out;
        spec.input = odd[i];
        hf_code code = try_trigger(&spec, &out);
        if (code == HF_OK)
            assert_string_equal(get(out.id)->input, odd[i]);
        else
            assert_code(code, HF_INVALID);
    }
    spec.input = odd[0];
    trigger_spec(&spec);
    spec.input = odd[4];
    trigger_spec(&spec);
}

static void a_name_has_only_plain_characters(void **state)
{
    static const char *const bad[] = { "", "a b", "a/b", "\xc3\xa9", "a..b", "a.", ".a", "a'b" };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hf_workflow workflow = { .name = bad[i] };
        assert_code(hf_workflow_put(fx.client, &workflow, 0, &fx.error), HF_INVALID);
        assert_code(hf_tenant_create(fx.root, bad[i], &fx.error), HF_INVALID);
    }
    define(long_text(200));
    hf_workflow workflow = { .name = long_text(201) };
    assert_code(hf_workflow_put(fx.client, &workflow, 0, &fx.error), HF_TOO_LARGE);
    workflow.name = NULL;
    assert_code(hf_workflow_put(fx.client, &workflow, 0, &fx.error), HF_INVALID);
}

static void labels_are_utf8_without_control_characters(void **state)
{
    static const char *const bad[] = { "", "\xff", "a\nb", "\xc0\xaf", "\xed\xa0\x80", "\x7f" };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hf_trigger_spec spec = spec_of(WORK);
        const char **const fields[] = { &spec.key, &spec.subject, &spec.reference, &spec.partition,
                                        &spec.trace };
        for (size_t n = 0; n < sizeof fields / sizeof *fields; n++) {
            spec = spec_of(WORK);
            *fields[n] = bad[i];
            assert_code(trigger_code(&spec), HF_INVALID);
        }
        spec = spec_of(WORK);
        spec.tags = &bad[i];
        spec.tag_count = 1;
        assert_code(trigger_code(&spec), HF_INVALID);
    }
}

static void a_trace_is_a_traceparent(void **state)
{
    static const char *const bad[] = {
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-012",
        "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
        "00-abc-01",
    };
    hf_trigger_spec spec = spec_of(WORK);
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        spec.trace = bad[i];
        assert_code(trigger_code(&spec), HF_INVALID);
    }
    spec.trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
    assert_code(trigger_code(&spec), HF_OK);
}

static void a_span_out_of_range_is_answered_with_durations(void **state)
{
    hf_workflow workflow = { .name = WORK, .lease = HF_DAYS(2) };
    (void)state;
    assert_code(hf_workflow_put(fx.client, &workflow, HF_SET_LEASE, &fx.error), HF_INVALID);
    assert_string_equal(fx.error.message, "lease is 2d; it must be between 100ms and 1d");
}

static void every_language_is_welcome_in_labels(void **state)
{
    hf_trigger_spec spec = spec_of(WORK);
    (void)state;
    spec.key = "\xe6\xb3\xa8\xe6\x96\x87-\xf0\x9f\x90\x99-\xd9\x85";
    hf_id id = trigger_spec(&spec);
    hf_run *run = NULL;
    assert_ok(hf_get_by_key(fx.client, &run, WORK, spec.key, &fx.error));
    assert_true(hf_id_equal(run->id, id));
    hf_run_free(run);
}

static void numbers_out_of_range_are_refused(void **state)
{
    hf_trigger_spec good = spec_of(WORK);
    hf_trigger_spec bad[] = { good, good, good, good, good, good, good, good };
    (void)state;
    bad[0].priority = 1001;
    bad[1].priority = -1001;
    bad[2].run_at = -1;
    bad[3].delay = -1;
    bad[4].timeout = -1;
    bad[5].timeout_at = INT64_MAX;
    bad[6].max_attempts = -1;
    bad[7].delay = INT64_MAX;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_code(trigger_code(&bad[i]), HF_INVALID);
}

static void a_turn_with_bad_numbers_is_refused(void **state)
{
    const hf_claimed *held = claim_new();
    hf_transition good = turn_of(held, HF_TURN_WAIT);
    hf_transition bad[] = { good, good, good, good };
    hf_new_timer timer = { .key = "t", .delay = -1 };
    (void)state;
    bad[0].retry_delay = -1;
    bad[1].waiting_until = -1;
    bad[2].wait_children = -1;
    bad[3].timers = &timer;
    bad[3].timer_count = 1;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_code(try_commit(&bad[i]), HF_INVALID);
    good.turn = (hf_turn)99;
    assert_code(try_commit(&good), HF_INVALID);
}

static void claims_heartbeats_and_pages_have_limits(void **state)
{
    static const char *const all[] = { "*" };
    hf_claim_spec spec = HF_CLAIM_INIT;
    hf_claims *claims = NULL;
    hf_filter filter = HF_FILTER_INIT;
    hf_runs *runs = NULL;
    hf_events *events = NULL;
    const hf_claimed *held = claim_new();
    hf_held lease = { .run = held->run.id, .run_version = held->run.version, .lease = -1 };
    (void)state;
    spec.patterns = all;
    spec.pattern_count = 1;
    assert_code(hf_claim(fx.client, &claims, &spec, &fx.error), HF_INVALID); /* no worker */
    spec.worker = WORKER;
    spec.limit = 0;
    assert_code(hf_claim(fx.client, &claims, &spec, &fx.error), HF_INVALID);
    spec.limit = 1001;
    assert_code(hf_claim(fx.client, &claims, &spec, &fx.error), HF_INVALID);
    spec.limit = 1;
    spec.lease = -1;
    assert_code(hf_claim(fx.client, &claims, &spec, &fx.error), HF_INVALID);
    assert_code(hf_heartbeat(fx.client, &lease, 1, &fx.error), HF_INVALID);
    filter.limit = 1001;
    assert_code(hf_list(fx.client, &runs, &filter, &fx.error), HF_INVALID);
    filter.limit = -1;
    assert_code(hf_list(fx.client, &runs, &filter, &fx.error), HF_INVALID);
    assert_code(hf_events_list(fx.client, &events, held->run.id, -1, 10, &fx.error), HF_INVALID);
    assert_code(hf_events_list(fx.client, &events, held->run.id, 0, 0, &fx.error), HF_INVALID);
}

static void structs_of_an_unknown_version_are_refused(void **state)
{
    hf_client *client = NULL;
    hf_options options = HF_OPTIONS_INIT;
    hf_trigger_spec spec = spec_of(WORK);
    hf_claim_spec claiming = HF_CLAIM_INIT;
    hf_claims *claims = NULL;
    hf_filter filter = HF_FILTER_INIT;
    hf_runs *runs = NULL;
    hf_change reason = HF_CHANGE_INIT;
    hf_signal_spec signal = HF_SIGNAL_INIT;
    const hf_claimed *held = claim_new();
    hf_transition t = turn_of(held, HF_TURN_SUCCEED);
    (void)state;
    for (int version = 0; version <= 100; version += 100) {
        options.version = spec.version = claiming.version = filter.version = version;
        reason.version = signal.version = t.version = version;
        claiming.worker = WORKER;
        signal.name = "s";
        assert_code(hf_open(&client, "sqlite::memory:", &options, &fx.error), HF_INVALID);
        assert_code(trigger_code(&spec), HF_INVALID);
        assert_code(hf_claim(fx.client, &claims, &claiming, &fx.error), HF_INVALID);
        assert_code(hf_list(fx.client, &runs, &filter, &fx.error), HF_INVALID);
        assert_code(hf_change_run(fx.client, held->run.id, HF_PAUSE, &reason, &fx.error),
                    HF_INVALID);
        assert_code(try_signal(held->run.id, &signal), HF_INVALID);
        assert_code(try_commit(&t), HF_INVALID);
    }
    expect_journal(held->run.id, "created started");
}

static void a_prefix_of_strange_characters_finds_nothing_and_harms_nothing(void **state)
{
    static const char *const odd[] = { "\xc3\xbf", "\xf4\x8f\xbf\xbf", "~", "%" };
    (void)state;
    trigger(WORK);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        hf_filter filter = HF_FILTER_INIT;
        hf_workflows *workflows = NULL;
        filter.prefix = odd[i];
        assert_int_equal(list(&filter)->count, 0);
        assert_ok(hf_workflow_list(fx.client, &workflows, odd[i], &fx.error));
        assert_int_equal(workflows->count, 0);
        hf_workflows_free(workflows);
    }
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(an_input_of_one_mebibyte_fits),
    CONTRACT_TEST(one_byte_more_than_a_mebibyte_is_too_large),
    CONTRACT_TEST(what_is_not_json_is_refused),
    CONTRACT_TEST(unusual_json_is_kept_as_it_came),
    CONTRACT_TEST(a_name_has_only_plain_characters),
    CONTRACT_TEST(labels_are_utf8_without_control_characters),
    CONTRACT_TEST(a_trace_is_a_traceparent),
    CONTRACT_TEST(a_span_out_of_range_is_answered_with_durations),
    CONTRACT_TEST(every_language_is_welcome_in_labels),
    CONTRACT_TEST(numbers_out_of_range_are_refused),
    CONTRACT_TEST(a_turn_with_bad_numbers_is_refused),
    CONTRACT_TEST(claims_heartbeats_and_pages_have_limits),
    CONTRACT_TEST(structs_of_an_unknown_version_are_refused),
    CONTRACT_TEST(a_prefix_of_strange_characters_finds_nothing_and_harms_nothing),
};
CONTRACT("limits", tests)
