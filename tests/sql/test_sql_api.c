/* The SQL functions and views: whom they wake, who may call them, what they show. F15.
 * SPDX-License-Identifier: Apache-2.0 */
#include <holdfast/function.h>
#include <holdfast/worker.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sql/shop.h"
#include "util/clock.h"

/* ---- Waking ---- */

static atomic_int handled;

static hf_code handle(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)ctx;
    (void)input;
    (void)arg;
    (void)err;
    atomic_fetch_add(&handled, 1);
    return HF_OK;
}

static void *work(void *arg)
{
    hf_error failure = { 0 };
    if (hf_worker_run(arg, &failure) != HF_OK)
        fprintf(stderr, "%s\n", failure.message);
    return NULL;
}

static void await_handled(int count)
{
    int64_t started = hf__monotonic_us();
    while (atomic_load(&handled) < count && hf__monotonic_us() - started < HF_MINUTES(2))
        usleep(1000);
    assert_int_equal(atomic_load(&handled), count);
}

static void wait_until_idle(void)
{
    for (int i = 0; i < 24000; i++) {
        if (pg_number(scratch.pg, "SELECT count(*) FROM holdfast.worker WHERE idle") == 1)
            return;
        usleep(5000);
    }
    fail_msg("the worker never sleeps");
}

/* A worker that looks by itself only once an hour. */
static void a_sleeping_worker_is_woken_by_the_commit(void **state)
{
    (void)state;
    hf_worker *worker = NULL;
    pthread_t thread;
    hf_worker_options options = HF_WORKER_OPTIONS_INIT;
    options.poll = HF_HOURS(1);
    assert_ok(hf_worker_new(&worker, client, &options, err));
    assert_ok(hf_worker_handle(worker, "soon", handle, NULL, err));
    assert_int_equal(pthread_create(&thread, NULL, work, worker), 0);
    wait_until_idle();

    pg_do(scratch.pg, "BEGIN");
    pg_do(scratch.pg, "SELECT holdfast.trigger('soon')");
    usleep(300000);
    assert_int_equal(atomic_load(&handled), 0);
    pg_do(scratch.pg, "COMMIT");
    await_handled(1);

    wait_until_idle();
    int64_t asked = hf__monotonic_us();
    pg_do(scratch.pg, "SELECT holdfast.trigger('soon', delay => '400 ms')");
    await_handled(2);
    assert_true(hf__monotonic_us() - asked >= HF_MILLISECONDS(390));

    hf_worker_stop(worker);
    pthread_join(thread, NULL);
    hf_worker_free(worker);
}

static hf_code wait_for_go(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)input;
    (void)arg;
    (void)err;
    hf_try(hf_wait_signal(ctx, "go", 0, NULL));
    atomic_fetch_add(&handled, 1);
    return HF_OK;
}

/* The run waits for nothing but the signal, and its worker for nothing but a wake-up. */
static void a_signal_wakes_a_sleeping_worker(void **state)
{
    (void)state;
    hf_worker *worker = NULL;
    pthread_t thread;
    char run[40];
    hf_worker_options options = HF_WORKER_OPTIONS_INIT;
    const hf_workflow patient = { .name = "patient" };
    options.poll = HF_HOURS(1);
    options.heartbeat = HF_HOURS(1);
    atomic_store(&handled, 0);
    assert_ok(hf_workflow_put(client, &patient, 0, err));
    assert_ok(hf_worker_new(&worker, client, &options, err));
    assert_ok(hf_worker_handle(worker, patient.name, wait_for_go, NULL, err));
    snprintf(run, sizeof run, "%s",
             pg_text(scratch.pg, "SELECT holdfast.trigger('%s')", patient.name));
    assert_int_equal(pthread_create(&thread, NULL, work, worker), 0);
    while (pg_number(scratch.pg, "SELECT status FROM holdfast.run WHERE id = '%s'", run) !=
           HF_WAITING)
        usleep(5000);
    wait_until_idle();
    pg_do(scratch.pg, "SELECT holdfast.signal('%s', 'go')", run);
    await_handled(1);
    hf_worker_stop(worker);
    pthread_join(thread, NULL);
    hf_worker_free(worker);
}

static atomic_int told; /* what handlers heard when they asked */

static hf_code work_until_told(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)input;
    (void)arg;
    (void)err;
    hf_code code;
    atomic_fetch_add(&handled, 1);
    while ((code = hf_check(ctx)) == HF_OK)
        usleep(1000);
    atomic_store(&told, (int)code);
    return code;
}

static void await_told(hf_code code)
{
    for (int i = 0; i < 120000 && atomic_load(&told) != (int)code; i++)
        usleep(1000);
    assert_int_equal(atomic_load(&told), code);
}

/* Neither a heartbeat nor a look of the worker's own is near: the holder and the next run hear of it by the cancel. */
static void a_cancel_reaches_the_holder_and_frees_its_slot(void **state)
{
    (void)state;
    hf_worker *worker = NULL;
    pthread_t thread;
    char runs[2][40];
    hf_worker_options options = HF_WORKER_OPTIONS_INIT;
    hf_workflow one = { .name = "one.at.a.time", .max_running = 1, .lease = HF_HOURS(2) };
    options.poll = HF_HOURS(1);
    options.heartbeat = HF_HOURS(1);
    options.stop_limit = HF_MILLISECONDS(1);
    atomic_store(&handled, 0);
    assert_ok(hf_workflow_put(client, &one, HF_SET_MAX_RUNNING | HF_SET_LEASE, err));
    assert_ok(hf_worker_new(&worker, client, &options, err));
    assert_ok(hf_worker_handle(worker, one.name, work_until_told, NULL, err));
    for (int i = 0; i < 2; i++)
        snprintf(runs[i], sizeof runs[i], "%s",
                 pg_text(scratch.pg, "SELECT holdfast.trigger('%s')", one.name));
    assert_int_equal(pthread_create(&thread, NULL, work, worker), 0);
    await_handled(1);
    wait_until_idle();
    pg_do(scratch.pg, "SELECT holdfast.cancel('%s')", runs[0]);
    await_told(HF_RUN_CANCELLED);
    await_handled(2);
    pg_do(scratch.pg, "SELECT holdfast.cancel('%s')", runs[1]);
    hf_worker_stop(worker);
    pthread_join(thread, NULL);
    hf_worker_free(worker);
}

static void a_signal_may_not_have_the_id_of_a_childs_end_or_of_a_timer(void **state)
{
    char run[40];
    (void)state;
    snprintf(run, sizeof run, "%s", pg_text(scratch.pg, "SELECT holdfast.trigger('soon')"));
    assert_string_equal(
        pg_refusal(scratch.pg, "SELECT holdfast.signal('%s', 'go', id => 'child:%s')", run, run),
        "HF001");
    assert_string_equal(
        pg_refusal(scratch.pg, "SELECT holdfast.signal('%s', 'go', id => 'timer:x')", run),
        "HF001");
    pg_do(scratch.pg, "SELECT holdfast.signal('%s', 'go', id => 'children:x')", run);
    pg_do(scratch.pg, "SELECT holdfast.cancel('%s')", run);
}

static void a_signal_makes_a_waiting_run_due(void **state)
{
    (void)state;
    hf_id run = waiting_run();
    assert_string_equal(
        pg_text(scratch.pg, "SELECT holdfast.signal('%s', 'go', '{\"a\":1}'::jsonb)", text_of(run)),
        "t");
    hf_claims *claims = claim_from(waiting_workflow);
    assert_true(hf_id_equal(claims->items[0].run.id, run));
    assert_int_equal(claims->items[0].mail_count, 1);
    assert_string_equal(claims->items[0].mail[0].payload, "{\"a\": 1}");
    hf_claims_free(claims);
    pg_do(scratch.pg, "SELECT holdfast.cancel('%s')", text_of(run));
}

static void a_run_that_is_cancelled_asks_nobody_any_more(void **state)
{
    (void)state;
    hf_task_page *page = NULL;
    hf_task_filter filter = HF_TASK_FILTER_INIT;
    hf_id run = waiting_run();
    pg_do(scratch.pg, "SELECT holdfast.signal('%s', 'go')", text_of(run));
    hf_claims *claims = claim_from(waiting_workflow);
    hf_new_task task = { .name = "approve" };
    hf_transition ask = { .version = HF_TRANSITION_VERSION,
                          .run = run,
                          .run_version = claims->items[0].run.version,
                          .turn = HF_TURN_WAIT,
                          .tasks = &task,
                          .task_count = 1 };
    assert_ok(hf_commit(client, &ask, NULL, err));
    hf_claims_free(claims);
    pg_do(scratch.pg, "SELECT holdfast.cancel('%s')", text_of(run));
    filter.run = run;
    filter.status = "cancelled";
    assert_ok(hf_task_list(client, &page, &filter, err));
    assert_int_equal(page->count, 1);
    hf_task_page_free(page);
}

struct waiter {
    hf_id run;
    hf_code code;
    hf_status status;
};

static void *wait_for_end(void *arg)
{
    struct waiter *waiter = arg;
    hf_run *run = NULL;
    waiter->code = hf_wait(client, &run, waiter->run, HF_MINUTES(2), NULL);
    waiter->status = run ? run->status : HF_PENDING;
    hf_run_free(run);
    return NULL;
}

/* Gives how long it took to hear of it, us. */
static int64_t cancel_under_a_waiter(void)
{
    pthread_t thread;
    struct waiter waiter = { .run = waiting_run() };
    assert_int_equal(pthread_create(&thread, NULL, wait_for_end, &waiter), 0);
    while (!pg_number(scratch.pg, "SELECT watched FROM holdfast.run WHERE id = '%s'",
                      text_of(waiter.run)))
        usleep(5000);
    usleep(100000);
    int64_t started = hf__monotonic_us();
    pg_do(scratch.pg, "SELECT holdfast.cancel('%s', 'enough')", text_of(waiter.run));
    pthread_join(thread, NULL);
    assert_int_equal(waiter.code, HF_OK);
    assert_int_equal(waiter.status, HF_CANCELLED);
    return hf__monotonic_us() - started;
}

/* Whoever is not told looks by itself after 5 s. A busy machine may take as long, but not always. */
static void whoever_waits_for_a_run_hears_that_it_was_cancelled(void **state)
{
    (void)state;
    int tries = 0;
    while (cancel_under_a_waiter() >= HF_SECONDS(3))
        assert_true(++tries < 10);
}

/* ---- Rights ---- */

/* Roles belong to the whole server, where the same test may run for another build. */
static void name_role(char out[40], const char *name)
{
    snprintf(out, 40, "hf_sql_%s_%ld", name, (long)getpid());
}

static PGconn *connect_as(const char *role)
{
    char parameter[80], url[SCRATCH_URL];
    snprintf(parameter, sizeof parameter, "user=%s", role);
    scratch_url_with(url, scratch.url, parameter);
    return pg_connect(url);
}

static void a_role_may_do_what_it_was_granted_and_no_more(void **state)
{
    char app_role[40], reader_role[40];
    (void)state;
    name_role(app_role, "app");
    name_role(reader_role, "reader");
    pg_do(scratch.pg,
          "CREATE ROLE %1$s LOGIN; CREATE ROLE %2$s LOGIN;"
          "GRANT USAGE ON SCHEMA holdfast TO %1$s, %2$s;"
          "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA holdfast TO %1$s;"
          "GRANT SELECT ON holdfast.runs, holdfast.run, holdfast.workflow, holdfast.tenant "
          "TO %2$s; SELECT holdfast.tenant_grant('*', '%2$s', true)",
          app_role, reader_role);
    PGconn *app = connect_as(app_role);
    PGconn *reader = connect_as(reader_role);
    const char *id = pg_text(app, "SELECT holdfast.trigger('work')");
    assert_string_equal(
        pg_text(scratch.pg, "SELECT actor FROM holdfast.events WHERE run = '%s'", id), app_role);
    pg_do(app, "SELECT holdfast.signal('%s', 'go')", id);
    pg_do(app, "SELECT holdfast.cancel('%s')", id);
    assert_string_equal(pg_refusal(app, "SELECT 1 FROM holdfast.runs"), "42501");
    assert_string_equal(pg_refusal(app, "UPDATE holdfast.run SET status = 0"), "42501");
    assert_string_equal(
        pg_refusal(app, "SELECT holdfast.journal(1, '%s', 9, 1, 0, 'x', 'y', NULL)", id), "42501");
    assert_string_equal(pg_text(reader, "SELECT status FROM holdfast.runs WHERE id = '%s'", id),
                        "cancelled");
    assert_string_equal(pg_refusal(reader, "SELECT holdfast.trigger('work')"), "42501");
    assert_string_equal(pg_refusal(reader, "SELECT holdfast.cancel('%s')", id), "42501");
    PQfinish(app);
    PQfinish(reader);
    pg_do(scratch.pg, "DROP OWNED BY %1$s, %2$s; DROP ROLE %1$s, %2$s", app_role, reader_role);
}

/* Functions, operators and tables of the caller's that would be found first, were the caller's path in force. */
static void a_hostile_search_path_changes_nothing(void **state)
{
    char eve_role[40];
    (void)state;
    name_role(eve_role, "eve");
    pg_do(scratch.pg,
          "CREATE ROLE %1$s LOGIN; GRANT CREATE ON DATABASE %2$s TO %1$s;"
          "GRANT USAGE ON SCHEMA holdfast TO %1$s;"
          "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA holdfast TO %1$s",
          eve_role, scratch.database);
    PGconn *eve = connect_as(eve_role);
    pg_do(eve,
          "CREATE SCHEMA evil; CREATE TABLE evil.seen (who text, what text);"
          "GRANT USAGE ON SCHEMA evil TO PUBLIC; GRANT INSERT ON evil.seen TO PUBLIC;"
          "CREATE FUNCTION evil.note(what text) RETURNS void LANGUAGE sql AS "
          "$$INSERT INTO evil.seen VALUES (current_user, what)$$;"
          "CREATE FUNCTION evil.format(text, VARIADIC text[]) RETURNS text LANGUAGE plpgsql AS "
          "$$BEGIN PERFORM evil.note('format'); RETURN 'x'; END$$;"
          "CREATE FUNCTION evil.pg_notify(text, text) RETURNS void LANGUAGE sql AS "
          "$$SELECT evil.note('pg_notify')$$;"
          "CREATE FUNCTION evil.to_json(text) RETURNS json LANGUAGE plpgsql AS "
          "$$BEGIN PERFORM evil.note('to_json'); RETURN '1'::json; END$$;"
          "CREATE FUNCTION evil.equal(text, text) RETURNS boolean LANGUAGE plpgsql AS "
          "$$BEGIN PERFORM evil.note('='); RETURN true; END$$;"
          "CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.equal);"
          "CREATE FUNCTION evil.less(bigint, interval) RETURNS boolean LANGUAGE plpgsql AS "
          "$$BEGIN PERFORM evil.note('<'); RETURN true; END$$;"
          "CREATE FUNCTION evil.times(numeric, int) RETURNS numeric LANGUAGE plpgsql AS "
          "$$BEGIN PERFORM evil.note('*'); RETURN 1; END$$;"
          "CREATE OPERATOR evil.* (LEFTARG = numeric, RIGHTARG = int, FUNCTION = evil.times);"
          "CREATE FUNCTION evil.glue(int, text) RETURNS text LANGUAGE plpgsql AS "
          "$$BEGIN PERFORM evil.note('||'); RETURN 'x'; END$$;"
          "CREATE OPERATOR evil.|| (LEFTARG = int, RIGHTARG = text, FUNCTION = evil.glue);"
          "CREATE TEMP TABLE run (id uuid); CREATE TEMP TABLE tenant (id int, name text);"
          "SET search_path = evil, pg_temp, pg_catalog");
    const char *id = pg_text(eve, "SELECT holdfast.trigger('work', '{\"a\":1}'::pg_catalog.jsonb, "
                                  "key => 'eve', tags => '{t}', delay => '1 hour')");
    pg_do(eve, "SELECT holdfast.trigger('work', '{ \"a\":1}', key => 'eve')");
    pg_do(eve, "SELECT holdfast.signal('%s', 'go')", id);
    pg_do(eve, "SELECT holdfast.cancel('%s', 'why')", id);
    assert_int_equal(pg_number(scratch.pg, "SELECT count(*) FROM evil.seen"), 0);
    assert_string_equal(pg_text(scratch.pg, "SELECT status FROM holdfast.runs WHERE key = 'eve'"),
                        "cancelled");
    /* and a reader with more rights, who has fallen for the same path */
    pg_do(scratch.pg, "SET search_path = evil, pg_catalog");
    pg_do(scratch.pg, "SELECT * FROM holdfast.runs");
    pg_do(scratch.pg, "SELECT * FROM holdfast.workflows");
    pg_do(scratch.pg, "SELECT * FROM holdfast.workers");
    pg_do(scratch.pg, "SELECT * FROM holdfast.events");
    pg_do(scratch.pg, "RESET search_path");
    assert_int_equal(pg_number(scratch.pg, "SELECT count(*) FROM evil.seen"), 0);
    PQfinish(eve);
    pg_do(scratch.pg, "DROP OWNED BY %1$s; DROP ROLE %1$s", eve_role);
}

/* ---- Views ---- */

static void the_views_can_be_read_whatever_is_in_the_store(void **state)
{
    (void)state;
    static const char *const inputs[] = { "\"\\u0000\"", "1e999999", "{\"a\":1}" };
    for (size_t i = 0; i < 3; i++) {
        hf_triggered made;
        hf_trigger_spec spec = HF_TRIGGER_INIT;
        spec.workflow = "work";
        spec.input = inputs[i];
        spec.subject = i == 2 ? "shown" : "not shown";
        assert_ok(hf_trigger(client, &made, &spec, err));
    }
    static const char *const views[] = { "runs",    "events",    "steps",
                                         "signals", "workflows", "workers" };
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        pg_do(scratch.pg, "SELECT * FROM holdfast.%s", views[i]);
    assert_string_equal(
        pg_text(scratch.pg, "SELECT input->'a' FROM holdfast.runs WHERE subject = 'shown'"), "1");
    assert_int_equal(pg_number(scratch.pg, "SELECT count(*) FROM holdfast.runs "
                                           "WHERE subject = 'not shown' AND input IS NULL"),
                     2);
    assert_int_equal(
        pg_number(scratch.pg, "SELECT count(*) FROM holdfast.runs v JOIN holdfast.run r USING (id) "
                              "WHERE v.created_at <> 'epoch'::timestamptz "
                              "+ r.created_at * interval '1 microsecond'"),
        0);
}

/* ---- Ids ---- */

static void ids_are_uuids_of_version_seven_in_order(void **state)
{
    (void)state;
    assert_int_equal(pg_number(scratch.pg,
                               "WITH i AS MATERIALIZED (SELECT n, holdfast.new_id() AS id "
                               "FROM generate_series(1, 1000) n) "
                               "SELECT count(*) FILTER (WHERE substr(id::text, 15, 1) <> '7' "
                               "OR substr(id::text, 20, 1) !~ '[89ab]') FROM i"),
                     0);
    assert_string_equal(pg_text(scratch.pg, "SELECT a < b FROM (SELECT holdfast.new_id() AS a, "
                                            "pg_sleep(0.002), holdfast.new_id() AS b) x"),
                        "t");
    int64_t now =
        pg_number(scratch.pg, "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint");
    int64_t made =
        pg_number(scratch.pg, "SELECT ('x' || replace(left(holdfast.new_id()::text, 13), "
                              "'-', ''))::bit(48)::bigint");
    assert_in_range(made, now, now + 2000);
}

static void a_disabled_tenant_triggers_nothing(void **state)
{
    (void)state;
    pg_do(scratch.pg, "UPDATE holdfast.tenant SET disabled = true");
    assert_string_equal(pg_refusal(scratch.pg, "SELECT holdfast.trigger('work')"), "HF012");
    pg_do(scratch.pg, "UPDATE holdfast.tenant SET disabled = false");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sleeping_worker_is_woken_by_the_commit),
        cmocka_unit_test(a_signal_wakes_a_sleeping_worker),
        cmocka_unit_test(a_cancel_reaches_the_holder_and_frees_its_slot),
        cmocka_unit_test(a_signal_makes_a_waiting_run_due),
        cmocka_unit_test(a_signal_may_not_have_the_id_of_a_childs_end_or_of_a_timer),
        cmocka_unit_test(a_run_that_is_cancelled_asks_nobody_any_more),
        cmocka_unit_test(whoever_waits_for_a_run_hears_that_it_was_cancelled),
        cmocka_unit_test(a_role_may_do_what_it_was_granted_and_no_more),
        cmocka_unit_test(a_hostile_search_path_changes_nothing),
        cmocka_unit_test(the_views_can_be_read_whatever_is_in_the_store),
        cmocka_unit_test(ids_are_uuids_of_version_seven_in_order),
        cmocka_unit_test(a_disabled_tenant_triggers_nothing),
    };
    if (!scratch_server())
        return 77;
    return cmocka_run_group_tests(tests, shop_set_up, shop_tear_down);
}
