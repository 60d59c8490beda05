/* Trigger, signal and cancel in SQL: one with the caller's transaction, at any isolation, beside the library, against hostile
 * callers; and the views for people.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sql/scratch.h"

#include <holdfast/transition.h>
#include <holdfast/worker.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "util/clock.h"

static struct scratch scratch;
static hf_client *client;

static int64_t count_runs(void)
{
    return pg_number(scratch.pg, "SELECT count(*) FROM holdfast.run");
}

static hf_id id_of(const char *text)
{
    hf_id id;
    assert_true(hf_id_parse(text, &id));
    return id;
}

static hf_claims *claim_from(const char *workflow)
{
    hf_claim_spec spec = HF_CLAIM_INIT;
    hf_claims *claims = NULL;
    spec.worker = "anna";
    spec.patterns = &workflow;
    spec.pattern_count = 1;
    assert_ok(hf_claim(client, &claims, &spec, err));
    assert_int_equal(claims->count, 1);
    return claims;
}

static char waiting_workflow[40]; /* of the last waiting run, which is its only one */

static hf_id waiting_run(void)
{
    static int counter;
    hf_workflow workflow = { .name = waiting_workflow };
    snprintf(waiting_workflow, sizeof waiting_workflow, "waiting-%d", counter++);
    assert_ok(hf_workflow_put(client, &workflow, 0, err));
    pg_do(scratch.pg, "SELECT holdfast.trigger('%s')", waiting_workflow);
    hf_claims *claims = claim_from(waiting_workflow);
    hf_transition wait = { .version = HF_TRANSITION_VERSION,
                           .run = claims->items[0].run.id,
                           .run_version = claims->items[0].run.version,
                           .turn = HF_TURN_WAIT,
                           .waiting_kind = "signal",
                           .worker = "anna" };
    assert_ok(hf_commit(client, &wait, NULL, err));
    hf_claims_free(claims);
    return wait.run;
}

static const char *text_of(hf_id id)
{
    static char text[HF_ID_TEXT];
    hf_id_format(id, text);
    return text;
}

/* ---- The caller's transaction ---- */

static void what_is_rolled_back_leaves_nothing(void **state)
{
    (void)state;
    hf_id waiting = waiting_run();
    int64_t before = count_runs();
    int64_t events = pg_number(scratch.pg, "SELECT count(*) FROM holdfast.event");
    pg_do(scratch.pg, "BEGIN");
    pg_do(scratch.pg, "SELECT holdfast.trigger('work', key => 'gone', tags => '{a}')");
    pg_do(scratch.pg, "SELECT holdfast.signal('%s', 'go')", text_of(waiting));
    pg_do(scratch.pg, "SELECT holdfast.cancel('%s')", text_of(waiting));
    pg_do(scratch.pg, "ROLLBACK");
    assert_int_equal(count_runs(), before);
    assert_int_equal(pg_number(scratch.pg, "SELECT count(*) FROM holdfast.event"), events);
    assert_int_equal(pg_number(scratch.pg, "SELECT count(*) FROM holdfast.run_tag"), 0);
    assert_int_equal(pg_number(scratch.pg, "SELECT count(*) FROM holdfast.signal"), 0);
}

static void what_is_committed_is_there_with_the_callers_own_rows(void **state)
{
    (void)state;
    pg_do(scratch.pg, "CREATE TABLE IF NOT EXISTS invoice (id int, run uuid)");
    pg_do(scratch.pg, "BEGIN");
    pg_do(scratch.pg, "INSERT INTO invoice SELECT 1, holdfast.trigger('work', '{\"invoice\":1}')");
    pg_do(scratch.pg, "COMMIT");
    hf_run *run;
    assert_ok(hf_get(client, &run, id_of(pg_text(scratch.pg, "SELECT run FROM invoice")), err));
    assert_string_equal(run->input, "{\"invoice\":1}");
    hf_run_free(run);
}

static void a_savepoint_can_be_rolled_back_alone(void **state)
{
    (void)state;
    int64_t before = count_runs();
    pg_do(scratch.pg, "BEGIN");
    pg_do(scratch.pg, "SELECT holdfast.trigger('work')");
    pg_do(scratch.pg, "SAVEPOINT s");
    assert_string_equal(pg_refusal(scratch.pg, "SELECT holdfast.trigger('none')"), "HF005");
    pg_do(scratch.pg, "ROLLBACK TO s");
    pg_do(scratch.pg, "SELECT holdfast.trigger('work')");
    pg_do(scratch.pg, "COMMIT");
    assert_int_equal(count_runs(), before + 2);
}

static void it_works_at_every_isolation_level(void **state)
{
    (void)state;
    static const char *const levels[] = { "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE" };
    for (size_t i = 0; i < 3; i++) {
        hf_id waiting = waiting_run();
        pg_do(scratch.pg, "BEGIN ISOLATION LEVEL %s", levels[i]);
        const char *id =
            pg_text(scratch.pg, "SELECT holdfast.trigger('work', key => 'level %zu')", i);
        assert_string_equal(
            id, pg_text(scratch.pg, "SELECT holdfast.trigger('work', key => 'level %zu')", i));
        pg_do(scratch.pg, "SELECT holdfast.signal('%s', 'go')", id);
        pg_do(scratch.pg, "SELECT holdfast.signal('%s', 'go')", text_of(waiting));
        pg_do(scratch.pg, "SELECT holdfast.cancel('%s')", id);
        pg_do(scratch.pg, "COMMIT");
        assert_string_equal(
            pg_text(scratch.pg, "SELECT status FROM holdfast.runs WHERE id = '%s'", id),
            "cancelled");
    }
}

static void in_a_serializable_transaction_a_key_taken_meanwhile_fails_to_serialize(void **state)
{
    (void)state;
    PGconn *other = pg_connect(scratch.url);
    pg_do(scratch.pg, "BEGIN ISOLATION LEVEL SERIALIZABLE");
    pg_do(scratch.pg, "SELECT count(*) FROM holdfast.run");
    const char *id = pg_text(other, "SELECT holdfast.trigger('work', key => 'taken')");
    assert_string_equal(pg_refusal(scratch.pg, "SELECT holdfast.trigger('work', key => 'taken')"),
                        "40001");
    pg_do(scratch.pg, "ROLLBACK");
    assert_string_equal(pg_text(scratch.pg, "SELECT holdfast.trigger('work', key => 'taken')"), id);
    PQfinish(other);
}

struct rival {
    PGconn *pg;
    char answer[64];
};

static void *trigger_rival(void *arg)
{
    struct rival *rival = arg;
    PGresult *result = PQexec(rival->pg, "SELECT holdfast.trigger('work', '1', key => 'rivals')");
    snprintf(rival->answer, sizeof rival->answer, "%s",
             PQresultStatus(result) == PGRES_TUPLES_OK
                 ? PQgetvalue(result, 0, 0)
                 : PQresultErrorField(result, PG_DIAG_SQLSTATE));
    PQclear(result);
    return NULL;
}

static void wait_for_lock(void)
{
    for (int i = 0; i < 1000; i++) {
        if (pg_number(scratch.pg, "SELECT count(*) FROM pg_locks WHERE NOT granted") > 0)
            return;
        usleep(10000);
    }
    fail_msg("nobody waits");
}

static void a_key_that_is_being_taken_is_waited_for(void **state)
{
    (void)state;
    static const char *const ends[] = { "ROLLBACK", "COMMIT" };
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        struct rival rival = { .pg = pg_connect(scratch.url) };
        PGconn *first = pg_connect(scratch.url);
        pg_do(first, "BEGIN");
        const char *id = pg_text(first, "SELECT holdfast.trigger('work', '1', key => 'rivals')");
        assert_int_equal(pthread_create(&thread, NULL, trigger_rival, &rival), 0);
        wait_for_lock();
        pg_do(first, "%s", ends[i]);
        pthread_join(thread, NULL);
        assert_int_equal(strcmp(rival.answer, id) == 0, i == 1);
        assert_int_equal(pg_number(scratch.pg, "SELECT count(*) FROM holdfast.run "
                                               "WHERE key = 'rivals' AND deleted_at IS NULL"),
                         1);
        pg_do(scratch.pg, "UPDATE holdfast.run SET deleted_at = 1 WHERE key = 'rivals'");
        PQfinish(first);
        PQfinish(rival.pg);
    }
}

enum { KEYS = 200 };

static void *trigger_all_by_sql(void *arg)
{
    PGconn *pg = arg;
    for (int i = 0; i < KEYS; i++) {
        char sql[200];
        snprintf(sql, sizeof sql, "SELECT holdfast.trigger('work', '%d', key => 'shared %d')", i,
                 i);
        PGresult *result = PQexec(pg, sql);
        assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
        PQclear(result);
    }
    return NULL;
}

static void the_same_keys_from_sql_and_from_the_library_make_one_run_each(void **state)
{
    (void)state;
    pthread_t threads[2];
    PGconn *others[2];
    for (int i = 0; i < 2; i++) {
        others[i] = pg_connect(scratch.url);
        assert_int_equal(pthread_create(&threads[i], NULL, trigger_all_by_sql, others[i]), 0);
    }
    for (int i = KEYS - 1; i >= 0; i--) {
        char key[40], input[16];
        hf_triggered made;
        hf_trigger_spec spec = HF_TRIGGER_INIT;
        snprintf(key, sizeof key, "shared %d", i);
        snprintf(input, sizeof input, "%d", i);
        spec.workflow = "work";
        spec.key = key;
        spec.input = input;
        assert_ok(hf_trigger(client, &made, &spec, err));
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        PQfinish(others[i]);
    }
    assert_int_equal(
        pg_number(scratch.pg, "SELECT count(*) FROM holdfast.run WHERE key LIKE 'shared %%'"),
        KEYS);
    assert_int_equal(pg_number(scratch.pg,
                               "SELECT count(*) FROM holdfast.event e JOIN holdfast.run r "
                               "ON r.id = e.run_id WHERE r.key LIKE 'shared %%'"),
                     KEYS);
}

/* A caller who signalled one run and takes long to commit must not cost a worker the leases of its other runs. */
static void an_open_transaction_does_not_stop_the_heartbeats_of_other_runs(void **state)
{
    (void)state;
    pg_do(scratch.pg, "SELECT holdfast.trigger('soon'), holdfast.trigger('soon')");
    const char *pattern = "soon";
    hf_claim_spec spec = HF_CLAIM_INIT;
    hf_claims *claims = NULL;
    spec.worker = "anna";
    spec.patterns = &pattern;
    spec.pattern_count = 1;
    spec.limit = 2;
    assert_ok(hf_claim(client, &claims, &spec, err));
    assert_int_equal(claims->count, 2);
    pg_do(scratch.pg, "BEGIN");
    pg_do(scratch.pg, "SELECT holdfast.signal('%s', 'go')", text_of(claims->items[0].run.id));
    hf_held held[2];
    for (int i = 0; i < 2; i++)
        held[i] = (hf_held){ .run = claims->items[i].run.id,
                             .run_version = claims->items[i].run.version,
                             .lease = HF_HOURS(1) };
    assert_ok(hf_heartbeat(client, held, 2, err));
    assert_int_equal(held[0].code, HF_OK);
    assert_int_equal(held[1].code, HF_OK);
    hf_run *run;
    assert_ok(hf_get(client, &run, held[1].run, err));
    assert_true(run->lease_until > claims->items[1].run.lease_until + HF_MINUTES(30));
    hf_run_free(run);
    pg_do(scratch.pg, "ROLLBACK");
    pg_do(scratch.pg, "SELECT holdfast.cancel('%s')", text_of(held[0].run));
    pg_do(scratch.pg, "SELECT holdfast.cancel('%s')", text_of(held[1].run));
    assert_ok(hf_heartbeat(client, held, 2, err));
    assert_int_equal(held[0].code, HF_RUN_CANCELLED);
    hf_claims_free(claims);
}

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

static int64_t until_handled(int count)
{
    int64_t started = hf__monotonic_us();
    while (atomic_load(&handled) < count && hf__monotonic_us() - started < HF_SECONDS(20))
        usleep(1000);
    assert_int_equal(atomic_load(&handled), count);
    return hf__monotonic_us() - started;
}

static void wait_until_idle(void)
{
    for (int i = 0; i < 2000; i++) {
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
    assert_true(until_handled(1) < HF_SECONDS(3));

    wait_until_idle();
    pg_do(scratch.pg, "SELECT holdfast.trigger('soon', delay => '400 ms')");
    int64_t took = until_handled(2);
    assert_in_range(took, HF_MILLISECONDS(200), HF_SECONDS(3));

    hf_worker_stop(worker);
    pthread_join(thread, NULL);
    hf_worker_free(worker);
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

struct waiter {
    hf_id run;
    hf_code code;
    hf_status status;
};

static void *wait_for_end(void *arg)
{
    struct waiter *waiter = arg;
    hf_run *run = NULL;
    waiter->code = hf_wait(client, &run, waiter->run, HF_SECONDS(20), NULL);
    waiter->status = run ? run->status : HF_PENDING;
    hf_run_free(run);
    return NULL;
}

static void whoever_waits_for_a_run_hears_that_it_was_cancelled(void **state)
{
    (void)state;
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
    assert_true(hf__monotonic_us() - started < HF_SECONDS(3));
}

/* ---- Rights ---- */

static PGconn *connect_as(const char *role)
{
    char parameter[80], url[SCRATCH_URL];
    snprintf(parameter, sizeof parameter, "user=%s", role);
    scratch_url_with(url, scratch.url, parameter);
    return pg_connect(url);
}

static void a_role_may_do_what_it_was_granted_and_no_more(void **state)
{
    (void)state;
    pg_do(scratch.pg,
          "CREATE ROLE hf_sql_app LOGIN; CREATE ROLE hf_sql_reader LOGIN;"
          "GRANT USAGE ON SCHEMA holdfast TO hf_sql_app, hf_sql_reader;"
          "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA holdfast TO hf_sql_app;"
          "GRANT SELECT ON holdfast.runs, holdfast.run, holdfast.workflow, holdfast.tenant "
          "TO hf_sql_reader");
    PGconn *app = connect_as("hf_sql_app");
    PGconn *reader = connect_as("hf_sql_reader");
    const char *id = pg_text(app, "SELECT holdfast.trigger('work')");
    assert_string_equal(
        pg_text(scratch.pg, "SELECT actor FROM holdfast.events WHERE run = '%s'", id),
        "hf_sql_app");
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
    pg_do(scratch.pg,
          "DROP OWNED BY hf_sql_app, hf_sql_reader; DROP ROLE hf_sql_app, hf_sql_reader");
}

/* Functions, operators and tables of the caller's that would be found first, were the caller's path in force. */
static void a_hostile_search_path_changes_nothing(void **state)
{
    (void)state;
    pg_do(scratch.pg,
          "CREATE ROLE hf_sql_eve LOGIN; GRANT CREATE ON DATABASE %s TO hf_sql_eve;"
          "GRANT USAGE ON SCHEMA holdfast TO hf_sql_eve;"
          "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA holdfast TO hf_sql_eve",
          scratch.database);
    PGconn *eve = connect_as("hf_sql_eve");
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
    pg_do(scratch.pg, "DROP OWNED BY hf_sql_eve; DROP ROLE hf_sql_eve");
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

static int set_up(void **state)
{
    (void)state;
    scratch_create(&scratch);
    client = scratch_open(scratch.url);
    hf_workflow workflow = { .name = "work" };
    hf_workflow soon = { .name = "soon" };
    assert_ok(hf_workflow_put(client, &workflow, 0, err));
    assert_ok(hf_workflow_put(client, &soon, 0, err));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    hf_close(client);
    scratch_drop(&scratch);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_rolled_back_leaves_nothing),
        cmocka_unit_test(what_is_committed_is_there_with_the_callers_own_rows),
        cmocka_unit_test(a_savepoint_can_be_rolled_back_alone),
        cmocka_unit_test(it_works_at_every_isolation_level),
        cmocka_unit_test(in_a_serializable_transaction_a_key_taken_meanwhile_fails_to_serialize),
        cmocka_unit_test(a_key_that_is_being_taken_is_waited_for),
        cmocka_unit_test(the_same_keys_from_sql_and_from_the_library_make_one_run_each),
        cmocka_unit_test(an_open_transaction_does_not_stop_the_heartbeats_of_other_runs),
        cmocka_unit_test(a_sleeping_worker_is_woken_by_the_commit),
        cmocka_unit_test(a_signal_makes_a_waiting_run_due),
        cmocka_unit_test(whoever_waits_for_a_run_hears_that_it_was_cancelled),
        cmocka_unit_test(a_role_may_do_what_it_was_granted_and_no_more),
        cmocka_unit_test(a_hostile_search_path_changes_nothing),
        cmocka_unit_test(the_views_can_be_read_whatever_is_in_the_store),
        cmocka_unit_test(ids_are_uuids_of_version_seven_in_order),
        cmocka_unit_test(a_disabled_tenant_triggers_nothing),
    };
    if (!scratch_server())
        return 77;
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
