/* The journal: every change writes a line, in the run's own sequence, and the database itself keeps it from being
 * changed. A1, B9, F1.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "contract/fixture.h"
#include "util/clock.h"

static void lines_are_numbered_without_gaps_and_carry_the_version(void **state)
{
    const hf_claimed *held = claim_new();
    (void)state;
    send_signal(held->run.id, "a");
    hf_step_record step = { held->run.id, held->run.version, WORKER, "s", "succeeded", "1" };
    assert_ok(hf_step_save(fx.client, &step, &fx.error));
    wait_for_signal(held);
    held = claim();
    succeed(held);
    static const struct {
        const char *name;
        const char *kind;
        int64_t version;
    } expected[] = {
        { "created", "lifecycle", 1 },
        { "started", "lifecycle", 2 },
        { "a", "signal", 2 },
        { "succeeded", "step", 2 },
        { "waiting", "lifecycle", 3 },
        { "started", "lifecycle", 4 },
        { "succeeded", "lifecycle", 5 },
    };
    const hf_events *events = events_of(held->run.id);
    assert_int_equal(events->count, 7);
    for (size_t i = 0; i < events->count; i++) {
        assert_int_equal(events->items[i].seq, i + 1);
        assert_string_equal(events->items[i].name, expected[i].name);
        assert_string_equal(events->items[i].kind, expected[i].kind);
        assert_int_equal(events->items[i].version, expected[i].version);
        assert_int_equal(events->items[i].at, now());
    }
}

static void lines_name_who_acted(void **state)
{
    const hf_claimed *held = claim_new();
    (void)state;
    wait_for_signal(held);
    hf_client *carl = NULL;
    assert_ok(hf_open_as(&carl, fx.client, NULL, "carl", &fx.error));
    assert_ok(hf_change_run(carl, held->run.id, HF_CANCEL, NULL, &fx.error));
    hf_close(carl);
    const hf_events *events = events_of(held->run.id);
    assert_string_equal(events->items[0].actor, "tester");
    assert_string_equal(events->items[1].actor, WORKER);
    assert_string_equal(events->items[2].actor, WORKER);
    assert_string_equal(events->items[3].actor, "carl");
}

static void a_page_of_the_journal_starts_after_a_number(void **state)
{
    hf_id id = run_that_is(HF_SUCCEEDED, 0);
    hf_events *events = NULL;
    (void)state;
    assert_ok(hf_events_list(fx.client, &events, id, 1, 1, &fx.error));
    assert_int_equal(events->count, 1);
    assert_int_equal(events->items[0].seq, 2);
    hf_events_free(events);
    assert_ok(hf_events_list(fx.client, &events, id, 3, 10, &fx.error));
    assert_int_equal(events->count, 0);
    hf_events_free(events);
}

static void no_two_lines_have_the_same_position(void **state)
{
    (void)state;
    run_that_is(HF_SUCCEEDED, 0);
    run_that_is(HF_CANCELLED, 0);
    assert_int_equal(sql_number("SELECT count(*) - count(DISTINCT position) FROM event"), 0);
}

/* ---- Kept by the database ---- */

static void a_line_cannot_be_updated(void **state)
{
    hf_id id = run_that_is(HF_SUCCEEDED, 0);
    const char *before = dump();
    (void)state;
    assert_false(sql_works("UPDATE event SET name = 'x' WHERE run_id = %s", sql_id(id)));
    assert_false(sql_works("UPDATE event SET data = NULL WHERE run_id = %s", sql_id(id)));
    assert_string_equal(before, dump());
}

static void a_line_cannot_be_deleted_while_its_run_is_there(void **state)
{
    hf_id id = run_that_is(HF_SUCCEEDED, 0);
    const char *before = dump();
    (void)state;
    assert_false(sql_works("DELETE FROM event WHERE run_id = %s AND seq = 2", sql_id(id)));
    assert_false(sql_works("DELETE FROM event"));
    assert_string_equal(before, dump());
}

static void a_line_cannot_be_replaced(void **state)
{
    static const char *const inserts[] = {
        "INSERT OR REPLACE INTO event (run_id, seq, version, tenant_id, at, kind, name) "
        "SELECT run_id, seq, version, tenant_id, at, kind, 'x' FROM event WHERE run_id = %s",
        "REPLACE INTO event (run_id, seq, version, tenant_id, at, kind, name) "
        "SELECT run_id, seq, version, tenant_id, at, kind, 'x' FROM event WHERE run_id = %s",
        "REPLACE INTO event (run_id, seq, version, tenant_id, position, at, kind, name) "
        "SELECT run_id, seq + 100, version, tenant_id, position, at, kind, 'x' FROM event "
        "WHERE run_id = %s",
    };
    hf_id id = run_that_is(HF_SUCCEEDED, 0);
    const char *before = dump();
    (void)state;
    if (fx.backend == BACKEND_POSTGRES) {
        assert_false(
            sql_works("INSERT INTO event (run_id, seq, version, tenant_id, at, kind, name) "
                      "SELECT run_id, seq, version, tenant_id, at, kind, 'x' FROM event "
                      "WHERE run_id = %s ON CONFLICT (run_id, seq) DO UPDATE SET name = 'x'",
                      sql_id(id)));
    } else {
        for (size_t i = 0; i < sizeof inserts / sizeof *inserts; i++) {
            char text[400];
            snprintf(text, sizeof text, inserts[i], sql_id(id));
            assert_false(sql_works("%s", text));
        }
    }
    assert_string_equal(before, dump());
}

static void the_journal_and_the_runs_cannot_be_truncated(void **state)
{
    run_that_is(HF_SUCCEEDED, 0);
    const char *before = dump();
    (void)state;
    if (fx.backend == BACKEND_POSTGRES) {
        assert_false(sql_works("TRUNCATE event"));
        assert_false(sql_works("TRUNCATE run"));
        assert_false(sql_works("TRUNCATE run CASCADE"));
    } else {
        assert_false(sql_works("DELETE FROM event WHERE 1"));
    }
    assert_string_equal(before, dump());
}

static void a_run_that_is_not_finished_cannot_be_removed(void **state)
{
    (void)state;
    for (hf_status status = HF_PENDING; status <= HF_PAUSED; status++) {
        hf_id id = run_that_is(status, 0);
        assert_false(sql_works("DELETE FROM run WHERE id = %s", sql_id(id)));
        expect_status(id, status);
        change(id, HF_CANCEL);
    }
}

static void a_run_cannot_be_replaced_to_hide_what_it_was(void **state)
{
    hf_id id = run_that_is(HF_WAITING, 0);
    const char *before = dump();
    (void)state;
    if (fx.backend == BACKEND_POSTGRES)
        return;
    sql_works("INSERT OR REPLACE INTO run (tenant_id, id, workflow_id, lane, created_at, "
              "updated_at) SELECT tenant_id, id, workflow_id, lane, 1, 1 FROM run WHERE id = %s",
              sql_id(id));
    assert_string_equal(before, dump());
}

/* ---- Following ---- */

static void *send_soon(void *arg)
{
    hf_signal_spec spec = HF_SIGNAL_INIT;
    struct timespec time = { .tv_nsec = 50 * 1000 * 1000 };
    hf_error err;
    nanosleep(&time, NULL);
    spec.name = "news";
    return hf_signal(fx.client, *(hf_id *)arg, &spec, NULL, &err) == HF_OK ? arg : NULL;
}

/* Whoever is not woken looks by itself after 5 s. A busy machine may take as long, but not every time: `once` gives how
 * long it took, us. */
static void expect_to_be_woken(int64_t (*once)(void))
{
    int tries = 0;
    while (once() >= HF_SECONDS(4))
        assert_true(++tries < 10);
}

static int64_t follow_once(void)
{
    hf_id id = run_that_is(HF_WAITING, 0);
    hf_events *events = NULL;
    pthread_t thread;
    void *sent = NULL;
    assert_int_equal(pthread_create(&thread, NULL, send_soon, &id), 0);
    int64_t start = hf__monotonic_us();
    assert_ok(hf_events_follow(fx.client, &events, id, 3, 10, HF_MINUTES(2), &fx.error));
    int64_t took = hf__monotonic_us() - start;
    assert_int_equal(events->count, 1);
    assert_string_equal(events->items[0].name, "news");
    hf_events_free(events);
    pthread_join(thread, &sent);
    assert_non_null(sent);
    change(id, HF_CANCEL);
    return took;
}

static void a_follower_is_woken_by_the_next_line(void **state)
{
    (void)state;
    expect_to_be_woken(follow_once);
}

static void *claim_soon(void *arg)
{
    static const char *const pattern[] = { WORK };
    hf_claim_spec spec = HF_CLAIM_INIT;
    struct timespec time = { .tv_nsec = 50 * 1000 * 1000 };
    hf_claims *claims = NULL;
    hf_error err;
    nanosleep(&time, NULL);
    spec.worker = WORKER;
    spec.patterns = pattern;
    spec.pattern_count = 1;
    spec.limit = 1;
    bool claimed = hf_claim(fx.client, &claims, &spec, &err) == HF_OK && claims->count == 1;
    hf_claims_free(claims);
    return claimed ? arg : NULL;
}

static int64_t follow_a_start_once(void)
{
    hf_id id = trigger(WORK);
    hf_events *events = NULL;
    pthread_t thread;
    void *claimed = NULL;
    assert_int_equal(pthread_create(&thread, NULL, claim_soon, &id), 0);
    int64_t start = hf__monotonic_us();
    assert_ok(hf_events_follow(fx.client, &events, id, 1, 10, HF_MINUTES(2), &fx.error));
    int64_t took = hf__monotonic_us() - start;
    assert_string_equal(events->items[0].name, "started");
    hf_events_free(events);
    pthread_join(thread, &claimed);
    assert_non_null(claimed);
    change(id, HF_CANCEL);
    return took;
}

static void a_follower_is_woken_when_the_run_is_started(void **state)
{
    (void)state;
    expect_to_be_woken(follow_a_start_once);
}

static void *cancel_soon(void *arg)
{
    struct timespec time = { .tv_nsec = 50 * 1000 * 1000 };
    hf_error err;
    nanosleep(&time, NULL);
    return hf_change_run(fx.client, *(hf_id *)arg, HF_CANCEL, NULL, &err) == HF_OK ? arg : NULL;
}

static int64_t wait_once(void)
{
    hf_id id = run_that_is(HF_WAITING, 0);
    hf_run *run = NULL;
    pthread_t thread;
    void *done = NULL;
    assert_code(hf_wait(fx.client, &run, id, 1000, &fx.error), HF_TIMEOUT);
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, &id), 0);
    int64_t start = hf__monotonic_us();
    assert_ok(hf_wait(fx.client, &run, id, HF_MINUTES(2), &fx.error));
    int64_t took = hf__monotonic_us() - start;
    assert_int_equal(run->status, HF_CANCELLED);
    hf_run_free(run);
    pthread_join(thread, &done);
    assert_non_null(done);
    assert_ok(hf_wait(fx.client, &run, id, 0, &fx.error));
    hf_run_free(run);
    return took;
}

static void whoever_waits_for_a_run_is_woken_by_its_end(void **state)
{
    (void)state;
    expect_to_be_woken(wait_once);
}

static void *wait_for_end(void *arg)
{
    hf_error err;
    hf_run *run = NULL;
    if (hf_wait(fx.client, &run, *(hf_id *)arg, HF_MINUTES(2), &err) != HF_OK)
        return NULL;
    hf_run_free(run);
    return arg;
}

/* A large commit holds its run for longer than the store waits for locks. */
static void whoever_waits_for_a_run_outlasts_a_lock_on_it(void **state)
{
    hf_id id = run_that_is(HF_WAITING, 0);
    hf_run *run = NULL;
    pthread_t thread;
    void *done = NULL;
    (void)state;
    if (fx.backend != BACKEND_POSTGRES)
        skip();
    sql("BEGIN");
    sql("SELECT 1 FROM run WHERE id = %s FOR UPDATE", sql_id(id));
    assert_int_equal(pthread_create(&thread, NULL, wait_for_end, &id), 0);
    assert_code(hf_wait(fx.client, &run, id, HF_MILLISECONDS(700), &fx.error), HF_TIMEOUT);
    sql("COMMIT");
    change(id, HF_CANCEL);
    pthread_join(thread, &done);
    assert_non_null(done);
}

static void the_journal_of_an_unknown_run_is_not_found(void **state)
{
    hf_events *events = NULL;
    hf_id id = trigger(WORK);
    (void)state;
    assert_code(hf_events_list(fx.client, &events, (hf_id){ { 1 } }, 0, 10, &fx.error),
                HF_NOT_FOUND);
    assert_code(hf_events_follow(fx.client, &events, (hf_id){ { 1 } }, 0, 10, -1, &fx.error),
                HF_NOT_FOUND);
    assert_code(hf_events_list(fx.other, &events, id, 0, 10, &fx.error), HF_NOT_FOUND);
    assert_ok(hf_events_list(fx.client, &events, id, 1, 10, &fx.error));
    assert_int_equal(events->count, 0);
    hf_events_free(events);
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(the_journal_of_an_unknown_run_is_not_found),
    CONTRACT_TEST(lines_are_numbered_without_gaps_and_carry_the_version),
    CONTRACT_TEST(lines_name_who_acted),
    CONTRACT_TEST(a_page_of_the_journal_starts_after_a_number),
    CONTRACT_TEST(no_two_lines_have_the_same_position),
    CONTRACT_TEST(a_line_cannot_be_updated),
    CONTRACT_TEST(a_line_cannot_be_deleted_while_its_run_is_there),
    CONTRACT_TEST(a_line_cannot_be_replaced),
    CONTRACT_TEST(the_journal_and_the_runs_cannot_be_truncated),
    CONTRACT_TEST(a_run_that_is_not_finished_cannot_be_removed),
    CONTRACT_TEST(a_run_cannot_be_replaced_to_hide_what_it_was),
    CONTRACT_TEST(a_follower_is_woken_by_the_next_line),
    CONTRACT_TEST(a_follower_is_woken_when_the_run_is_started),
    CONTRACT_TEST(whoever_waits_for_a_run_is_woken_by_its_end),
    CONTRACT_TEST(whoever_waits_for_a_run_outlasts_a_lock_on_it),
};
CONTRACT("journal", tests)
