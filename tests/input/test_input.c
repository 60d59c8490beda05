/* The library's own defence: what a program may hand it by mistake, on every backend. Nothing here may crash, and nothing
 * that is refused may leave anything behind.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <holdfast/holdfast.h>

#include <cmocka.h>

#define MEBIBYTE (1024 * 1024)

static hf_client *client;
static hf_error error;

/* Too long counts as bad. */
#define assert_bad(call) assert_is_bad((call), #call, __LINE__)
#define assert_refused(call, expected) assert_code((call), (expected), #call, __LINE__)

static void assert_code(hf_code code, hf_code expected, const char *call, int line)
{
    if (code != expected)
        fail_msg("line %d: %s: %s, not %s (%s)", line, call, hf_code_name(code),
                 hf_code_name(expected), error.message);
    if (code != HF_OK && strlen(error.message) < 10)
        fail_msg("line %d: %s: the message says nothing: \"%s\"", line, call, error.message);
    error = (hf_error){ 0 };
}

static void assert_is_bad(hf_code code, const char *call, int line)
{
    assert_code(code, code == HF_TOO_LARGE ? HF_TOO_LARGE : HF_INVALID, call, line);
}

/* Lives until the fourth one after it is made. */
static char *text_of(size_t length, char filling)
{
    static char *texts[4];
    static size_t next;
    char **text = &texts[next++ % 4];
    free(*text);
    *text = calloc(1, length + 1);
    assert_non_null(*text);
    memset(*text, filling, length);
    return *text;
}

static const char *quoted(size_t length)
{
    char *text = text_of(length, 'x');
    text[0] = text[length - 1] = '"';
    return text;
}

static hf_trigger_spec good(void)
{
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    spec.workflow = "work";
    return spec;
}

static int64_t count_runs(void)
{
    hf_filter filter = HF_FILTER_INIT;
    hf_runs *runs = NULL;
    filter.limit = 1000;
    assert_int_equal(hf_list(client, &runs, &filter, &error), HF_OK);
    int64_t count = (int64_t)runs->count;
    hf_runs_free(runs);
    return count;
}

static hf_id new_run(void)
{
    hf_trigger_spec spec = good();
    hf_triggered out;
    assert_int_equal(hf_trigger(client, &out, &spec, &error), HF_OK);
    return out.id;
}

/* ---- Opening ---- */

static void options_out_of_reason_are_refused(void **state)
{
    hf_client *none = NULL;
    hf_options options = HF_OPTIONS_INIT;
    (void)state;
    assert_bad(hf_open(&none, NULL, NULL, &error));
    assert_bad(hf_open(&none, "", NULL, &error));
    options.version = 0;
    assert_bad(hf_open(&none, "sqlite::memory:", &options, &error));
    options.version = 999;
    assert_bad(hf_open(&none, "sqlite::memory:", &options, &error));
    options = (hf_options)HF_OPTIONS_INIT;
    options.max_open = -1;
    assert_bad(hf_open(&none, "sqlite::memory:", &options, &error));
    options = (hf_options)HF_OPTIONS_INIT;
    options.max_lifetime = HF_MILLISECONDS(999);
    assert_bad(hf_open(&none, "sqlite::memory:", &options, &error));
    options = (hf_options)HF_OPTIONS_INIT;
    options.connect_limit = -1;
    assert_bad(hf_open(&none, "sqlite::memory:", &options, &error));
    options = (hf_options)HF_OPTIONS_INIT;
    options.tenant = "no.such.tenant";
    assert_refused(hf_open(&none, "sqlite::memory:", &options, &error), HF_NOT_FOUND);
    options.tenant = "'; DROP TABLE tenant; --";
    assert_bad(hf_open(&none, "sqlite::memory:", &options, &error));
    assert_null(none);
}

static void the_limit_of_a_payload_can_be_set(void **state)
{
    hf_client *small = NULL;
    hf_options options = HF_OPTIONS_INIT;
    hf_trigger_spec spec = good();
    hf_triggered out;
    hf_workflow workflow = { .name = "work" };
    (void)state;
    options.max_payload = 100;
    assert_int_equal(hf_open(&small, "sqlite::memory:", &options, &error), HF_OK);
    assert_int_equal(hf_workflow_put(small, &workflow, 0, &error), HF_OK);
    spec.input = quoted(100);
    assert_refused(hf_trigger(small, &out, &spec, &error), HF_OK);
    spec.input = quoted(101);
    assert_refused(hf_trigger(small, &out, &spec, &error), HF_TOO_LARGE);
    hf_close(small);

    spec.input = quoted(MEBIBYTE);
    assert_refused(hf_trigger(client, &out, &spec, &error), HF_OK);
    spec.input = quoted(MEBIBYTE + 1);
    assert_refused(hf_trigger(client, &out, &spec, &error), HF_TOO_LARGE);
    spec.input = quoted(10 * MEBIBYTE);
    assert_refused(hf_trigger(client, &out, &spec, &error), HF_TOO_LARGE);
}

/* ---- Triggering ---- */

static void bad_inputs_are_refused(void **state)
{
    static const char *const bad[] = {
        "",    "{",      "nul",           "[1,]", "\"\xff\"", "\"\xed\xa0\x80\"", "\"\\ud800\"",
        "1 2", "\"\n\"", "\xef\xbb\xbf{}"
    };
    hf_trigger_spec spec = good();
    hf_triggered out;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        spec.input = bad[i];
        assert_bad(hf_trigger(client, &out, &spec, &error));
    }
    spec.input = text_of(100000, '[');
    assert_bad(hf_trigger(client, &out, &spec, &error));
    assert_int_equal(count_runs(), 0);
}

static void bad_names_are_refused(void **state)
{
    const char *const bad[] = { "",         "a\nb",  "\x1b[1m", "a\x7f", "\xff",
                                "\xc0\x80", "../..", "a'b",     "*",     "\xf0\x9f\x98\x80" };
    hf_triggered out;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hf_workflow workflow = { .name = bad[i] };
        assert_bad(hf_workflow_put(client, &workflow, 0, &error));
        assert_bad(hf_tenant_create(client, bad[i], &error));
        hf_trigger_spec spec = good();
        spec.workflow = bad[i];
        hf_code code = hf_trigger(client, &out, &spec, &error);
        assert_true(code == HF_INVALID || code == HF_UNKNOWN_WORKFLOW);
    }
    hf_workflow long_one = { .name = text_of(10240, 'x') };
    assert_bad(hf_workflow_put(client, &long_one, 0, &error));
    hf_workflow nameless = { .name = NULL };
    assert_bad(hf_workflow_put(client, &nameless, 0, &error));
    assert_bad(hf_tenant_create(client, NULL, &error));
    assert_int_equal(count_runs(), 0);
}

static void bad_labels_are_refused(void **state)
{
    const char *const bad[] = { "", "a\nb", "\x01", "\xff", "\xc0\x80", text_of(10240, 'x') };
    hf_triggered out;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const size_t fields[] = { offsetof(hf_trigger_spec, key),
                                  offsetof(hf_trigger_spec, subject),
                                  offsetof(hf_trigger_spec, reference),
                                  offsetof(hf_trigger_spec, partition) };
        for (size_t f = 0; f < sizeof fields / sizeof *fields; f++) {
            hf_trigger_spec spec = good();
            memcpy((char *)&spec + fields[f], &bad[i], sizeof bad[i]);
            assert_bad(hf_trigger(client, &out, &spec, &error));
        }
        hf_trigger_spec spec = good();
        spec.tags = &bad[i];
        spec.tag_count = 1;
        assert_bad(hf_trigger(client, &out, &spec, &error));
        spec = good();
        spec.trace = bad[i];
        assert_bad(hf_trigger(client, &out, &spec, &error));
    }
    assert_int_equal(count_runs(), 0);
}

static void tags_without_end_are_refused(void **state)
{
    enum { MANY = 100000 };
    const char **tags = calloc(MANY, sizeof *tags);
    hf_trigger_spec spec = good();
    hf_triggered out;
    (void)state;
    for (size_t i = 0; i < MANY; i++)
        tags[i] = "tag";
    spec.tags = tags;
    spec.tag_count = MANY;
    assert_bad(hf_trigger(client, &out, &spec, &error));
    tags[0] = NULL;
    spec.tag_count = 1;
    assert_bad(hf_trigger(client, &out, &spec, &error));
    free(tags);
    assert_int_equal(count_runs(), 0);
}

static void bad_numbers_are_refused(void **state)
{
    const int64_t bad[] = { -1, INT64_MIN, INT64_MAX };
    hf_triggered out;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const size_t fields[] = { offsetof(hf_trigger_spec, run_at),
                                  offsetof(hf_trigger_spec, delay),
                                  offsetof(hf_trigger_spec, timeout_at),
                                  offsetof(hf_trigger_spec, timeout) };
        for (size_t f = 0; f < sizeof fields / sizeof *fields; f++) {
            hf_trigger_spec spec = good();
            memcpy((char *)&spec + fields[f], &bad[i], sizeof bad[i]);
            assert_bad(hf_trigger(client, &out, &spec, &error));
        }
        hf_workflow workflow = { .name = "work", .lease = bad[i], .retry_base = bad[i] };
        assert_bad(hf_workflow_put(client, &workflow, HF_SET_LEASE, &error));
        assert_bad(hf_workflow_put(client, &workflow, HF_SET_RETRY_BASE, &error));
    }
    const int numbers[] = { -1001, 1001, INT32_MIN, INT32_MAX };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        hf_trigger_spec spec = good();
        spec.priority = numbers[i];
        assert_bad(hf_trigger(client, &out, &spec, &error));
    }
    hf_trigger_spec spec = good();
    spec.max_attempts = -1;
    assert_bad(hf_trigger(client, &out, &spec, &error));
    spec = good();
    spec.version = 0;
    assert_bad(hf_trigger(client, &out, &spec, &error));
    assert_int_equal(count_runs(), 0);
}

static void one_bad_trigger_does_not_harm_the_others(void **state)
{
    hf_trigger_spec specs[5] = { good(), good(), good(), good(), good() };
    hf_triggered out[5];
    (void)state;
    specs[1].input = "{";
    specs[2].workflow = "unknown";
    specs[3].key = "a\nb";
    assert_true(hf_trigger_many(client, out, specs, 5, &error) != HF_OK);
    assert_int_equal(out[0].code, HF_OK);
    assert_int_equal(out[1].code, HF_INVALID);
    assert_int_equal(out[2].code, HF_UNKNOWN_WORKFLOW);
    assert_int_equal(out[3].code, HF_INVALID);
    assert_int_equal(out[4].code, HF_OK);
    assert_non_null(strstr(error.message, "run 2 of 5 (\"work\"): the input is not JSON"));
    assert_non_null(strstr(out[1].error.message, "the input is not JSON"));
    assert_non_null(strstr(out[2].error.message, "no workflow is named \"unknown\""));
    assert_non_null(strstr(out[3].error.message, "control character"));
    assert_int_equal(out[3].error.code, HF_INVALID);
    assert_int_equal(out[4].error.code, HF_OK);
    assert_int_equal(count_runs(), 2);
    assert_int_equal(hf_trigger_many(client, out, specs, 0, &error), HF_OK);
}

/* ---- Reading and changing ---- */

static void what_does_not_exist_is_not_found(void **state)
{
    hf_id none = { { 0 } };
    hf_id unknown = { { 1, 2, 3 } };
    hf_run *run = NULL;
    hf_change change = HF_CHANGE_INIT;
    hf_signal_spec signal = HF_SIGNAL_INIT;
    (void)state;
    signal.name = "go";
    assert_refused(hf_get(client, &run, none, &error), HF_NOT_FOUND);
    assert_refused(hf_get(client, &run, unknown, &error), HF_NOT_FOUND);
    assert_refused(hf_wait(client, &run, unknown, 0, &error), HF_NOT_FOUND);
    assert_refused(hf_change_run(client, unknown, HF_CANCEL, &change, &error), HF_NOT_FOUND);
    assert_refused(hf_signal(client, unknown, &signal, NULL, &error), HF_NOT_FOUND);
    assert_null(run);
}

static void bad_filters_are_refused(void **state)
{
    hf_runs *runs = NULL;
    const char *const cursors[] = { "", "x", "' OR 1=1 --", "\xff", text_of(10240, 'f') };
    (void)state;
    for (size_t i = 0; i < sizeof cursors / sizeof *cursors; i++) {
        hf_filter filter = HF_FILTER_INIT;
        filter.cursor = cursors[i];
        assert_bad(hf_list(client, &runs, &filter, &error));
    }
    const int limits[] = { -1, 1001, INT32_MAX, INT32_MIN };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        hf_filter filter = HF_FILTER_INIT;
        filter.limit = limits[i];
        assert_bad(hf_list(client, &runs, &filter, &error));
    }
    hf_filter filter = HF_FILTER_INIT;
    filter.version = 77;
    assert_bad(hf_list(client, &runs, &filter, &error));
    filter = (hf_filter)HF_FILTER_INIT;
    filter.created_after = INT64_MIN;
    assert_bad(hf_list(client, &runs, &filter, &error));
    hf_events *events = NULL;
    hf_id run = new_run();
    assert_bad(hf_events_list(client, &events, run, 0, 0, &error));
    assert_bad(hf_events_list(client, &events, run, 0, 1001, &error));
    assert_null(runs);
}

static void bad_changes_and_signals_are_refused(void **state)
{
    hf_id run = new_run();
    hf_change change = HF_CHANGE_INIT;
    hf_signal_spec signal = HF_SIGNAL_INIT;
    (void)state;
    assert_bad(hf_change_run(client, run, (hf_action)77, &change, &error));
    change.version = 0;
    assert_bad(hf_change_run(client, run, HF_CANCEL, &change, &error));
    assert_bad(hf_signal(client, run, &signal, NULL, &error));
    const char *const bad[] = { "", "a\nb", "\xff", text_of(10240, 'x') };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        signal = (hf_signal_spec)HF_SIGNAL_INIT;
        signal.name = bad[i];
        assert_bad(hf_signal(client, run, &signal, NULL, &error));
        signal.name = "go";
        signal.id = bad[i];
        assert_bad(hf_signal(client, run, &signal, NULL, &error));
    }
    signal = (hf_signal_spec)HF_SIGNAL_INIT;
    signal.name = "go";
    signal.payload = "{";
    assert_bad(hf_signal(client, run, &signal, NULL, &error));
    signal.payload = quoted(2 * MEBIBYTE);
    assert_refused(hf_signal(client, run, &signal, NULL, &error), HF_TOO_LARGE);
    signal.payload = NULL;
    signal.delay = INT64_MAX;
    assert_bad(hf_signal(client, run, &signal, NULL, &error));
}

static void bad_locks_are_refused(void **state)
{
    hf_lock lock;
    (void)state;
    assert_bad(hf_lock_acquire(client, &lock, "", "me", HF_SECONDS(1), 0, &error));
    assert_bad(hf_lock_acquire(client, &lock, NULL, "me", HF_SECONDS(1), 0, &error));
    assert_bad(hf_lock_acquire(client, &lock, text_of(10240, 'x'), "me", HF_SECONDS(1), 0, &error));
    assert_bad(hf_lock_acquire(client, &lock, "name", "me", 0, 0, &error));
    assert_bad(hf_lock_acquire(client, &lock, "name", "me", -1, 0, &error));
    assert_bad(hf_lock_acquire(client, &lock, "name", "me", INT64_MAX, 0, &error));
}

/* ---- Claiming and committing ---- */

static void bad_claims_are_refused(void **state)
{
    hf_claims *claims = NULL;
    const char *star = "*";
    const char *const bad_patterns[] = { "", "\xff", "a\nb", text_of(10240, 'x') };
    (void)state;
    for (size_t i = 0; i < sizeof bad_patterns / sizeof *bad_patterns; i++) {
        hf_claim_spec spec = HF_CLAIM_INIT;
        spec.worker = "anna";
        spec.patterns = &bad_patterns[i];
        spec.pattern_count = 1;
        assert_bad(hf_claim(client, &claims, &spec, &error));
    }
    const int limits[] = { -1, 0, 1001, INT32_MAX };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        hf_claim_spec spec = HF_CLAIM_INIT;
        spec.worker = "anna";
        spec.patterns = &star;
        spec.pattern_count = 1;
        spec.limit = limits[i];
        assert_bad(hf_claim(client, &claims, &spec, &error));
    }
    hf_claim_spec spec = HF_CLAIM_INIT;
    spec.patterns = &star;
    spec.pattern_count = 1;
    assert_bad(hf_claim(client, &claims, &spec, &error));
    assert_null(claims);
}

/* A refused commit changes nothing: the run is still held, and a good commit still succeeds. */
static void bad_commits_are_refused_and_change_nothing(void **state)
{
    hf_claims *claims = NULL;
    hf_claim_spec spec = HF_CLAIM_INIT;
    const char *star = "*";
    (void)state;
    new_run();
    spec.worker = "anna";
    spec.patterns = &star;
    spec.pattern_count = 1;
    assert_int_equal(hf_claim(client, &claims, &spec, &error), HF_OK);
    assert_int_equal(claims->count, 1);
    const hf_transition base = {
        .version = HF_TRANSITION_VERSION,
        .run = claims->items[0].run.id,
        .run_version = claims->items[0].run.version,
        .worker = "anna",
        .turn = HF_TURN_SUCCEED,
    };
    hf_transition t = base;
    t.version = 0;
    assert_bad(hf_commit(client, &t, NULL, &error));
    t = base;
    t.turn = (hf_turn)99;
    assert_bad(hf_commit(client, &t, NULL, &error));
    t = base;
    t.result = "{";
    assert_bad(hf_commit(client, &t, NULL, &error));
    t.result = quoted(2 * MEBIBYTE);
    assert_refused(hf_commit(client, &t, NULL, &error), HF_TOO_LARGE);
    t = base;
    t.state = "\"\xff\"";
    assert_bad(hf_commit(client, &t, NULL, &error));
    t = base;
    t.turn = HF_TURN_RETRY;
    t.retry_delay = -1;
    assert_bad(hf_commit(client, &t, NULL, &error));
    hf_trigger_spec child = good();
    hf_id child_id;
    child.input = "{";
    t = base;
    t.turn = HF_TURN_WAIT;
    t.children = &child;
    t.child_count = 1;
    assert_bad(hf_commit(client, &t, &child_id, &error));
    hf_new_event event = { .kind = "lifecycle", .name = "succeeded" };
    t = base;
    t.events = &event;
    t.event_count = 1;
    assert_bad(hf_commit(client, &t, NULL, &error));

    hf_run *run = NULL;
    assert_int_equal(hf_get(client, &run, base.run, &error), HF_OK);
    assert_int_equal(run->status, HF_LEASED);
    assert_int_equal(run->version, base.run_version);
    hf_run_free(run);
    assert_int_equal(count_runs(), 1);
    assert_refused(hf_commit(client, &base, NULL, &error), HF_OK);
    hf_claims_free(claims);
}

static void bad_steps_and_heartbeats_are_refused(void **state)
{
    hf_step_record step = { .run = new_run(),
                            .run_version = 1,
                            .worker = "anna",
                            .name = "one",
                            .status = "succeeded",
                            .data = "{" };
    hf_held held = { .run = step.run, .run_version = 1, .lease = -1 };
    (void)state;
    assert_bad(hf_step_save(client, &step, &error));
    step.data = "1";
    step.status = "perhaps";
    assert_bad(hf_step_save(client, &step, &error));
    step.status = "succeeded";
    step.name = NULL;
    assert_bad(hf_step_save(client, &step, &error));
    assert_bad(hf_heartbeat(client, &held, 1, &error));
    assert_refused(hf_heartbeat(client, &held, 0, &error), HF_OK);
}

/* ---- Workers ---- */

static hf_code nothing(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)ctx, (void)input, (void)err, (void)arg;
    return HF_OK;
}

static void bad_workers_are_refused(void **state)
{
    hf_worker *worker = NULL;
    const char *const bad[] = { "", "a*b", "\xff", "a\nb", text_of(10240, 'x') };
    hf_worker_options options = HF_WORKER_OPTIONS_INIT;
    (void)state;
    options.threads = 100000;
    assert_bad(hf_worker_new(&worker, client, &options, &error));
    options = (hf_worker_options)HF_WORKER_OPTIONS_INIT;
    options.poll = -1;
    assert_bad(hf_worker_new(&worker, client, &options, &error));
    options = (hf_worker_options)HF_WORKER_OPTIONS_INIT;
    options.name = text_of(10240, 'x');
    assert_bad(hf_worker_new(&worker, client, &options, &error));
    assert_int_equal(hf_worker_new(&worker, client, NULL, &error), HF_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_bad(hf_worker_handle(worker, bad[i], nothing, NULL, &error));
    assert_bad(hf_worker_handle(worker, NULL, nothing, NULL, &error));
    assert_bad(hf_worker_handle(worker, "work", NULL, NULL, &error));
    assert_bad(hf_worker_run(worker, &error));
    hf_worker_free(worker);
}

static void texts_that_are_no_ids_are_not_parsed(void **state)
{
    const char *const bad[] = { "",
                                "x",
                                "0199a1b2-0000-7000-8000-00000000000",
                                "0199a1b2-0000-7000-8000-0000000000000",
                                "0199a1b2+0000-7000-8000-000000000000",
                                "0199a1b2-0000-7000-8000-00000000000g",
                                "\xff",
                                text_of(10240, '0') };
    hf_id id;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(hf_id_parse(bad[i], &id));
}

/* ---- The backends ---- */

static const char *url;
static hf_client *root;

static int set_up(void **state)
{
    static int counter;
    char tenant[64];
    hf_workflow workflow = { .name = "work" };
    (void)state;
    snprintf(tenant, sizeof tenant, "input-%ld-%d", (long)getpid(), counter++);
    if (hf_open(&root, url, NULL, &error) != HF_OK ||
        hf_tenant_create(root, tenant, &error) != HF_OK ||
        hf_open_as(&client, root, tenant, "tester", &error) != HF_OK ||
        hf_workflow_put(client, &workflow, 0, &error) != HF_OK)
        fail_msg("%s: %s", url, error.message);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    hf_close(client);
    hf_close(root);
    return 0;
}

#define INPUT_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        INPUT_TEST(options_out_of_reason_are_refused),
        INPUT_TEST(the_limit_of_a_payload_can_be_set),
        INPUT_TEST(bad_inputs_are_refused),
        INPUT_TEST(bad_names_are_refused),
        INPUT_TEST(bad_labels_are_refused),
        INPUT_TEST(tags_without_end_are_refused),
        INPUT_TEST(bad_numbers_are_refused),
        INPUT_TEST(one_bad_trigger_does_not_harm_the_others),
        INPUT_TEST(what_does_not_exist_is_not_found),
        INPUT_TEST(bad_filters_are_refused),
        INPUT_TEST(bad_changes_and_signals_are_refused),
        INPUT_TEST(bad_locks_are_refused),
        INPUT_TEST(bad_claims_are_refused),
        INPUT_TEST(bad_commits_are_refused_and_change_nothing),
        INPUT_TEST(bad_steps_and_heartbeats_are_refused),
        INPUT_TEST(bad_workers_are_refused),
        INPUT_TEST(texts_that_are_no_ids_are_not_parsed),
    };
    url = "sqlite::memory:";
    int failed = cmocka_run_group_tests_name("input on memory", tests, NULL, NULL);
    url = getenv("HOLDFAST_TEST_POSTGRES");
    if (url)
        failed += cmocka_run_group_tests_name("input on postgres", tests, NULL, NULL);
    return failed;
}
