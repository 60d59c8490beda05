/* The SQL functions take part in the caller's transaction, beside the library and beside each other. F15.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sql/shop.h"

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
    const char *sql;
    char answer[64];
};

static void *trigger_rival(void *arg)
{
    struct rival *rival = arg;
    PGresult *result = PQexec(rival->pg, rival->sql);
    snprintf(rival->answer, sizeof rival->answer, "%s",
             PQresultStatus(result) == PGRES_TUPLES_OK
                 ? PQgetvalue(result, 0, 0)
                 : PQresultErrorField(result, PG_DIAG_SQLSTATE));
    PQclear(result);
    return NULL;
}

static void wait_for_lock(void)
{
    for (int i = 0; i < 12000; i++) {
        if (pg_number(scratch.pg, "SELECT count(*) FROM pg_stat_activity WHERE datname = "
                                  "current_database() AND wait_event_type = 'Lock'") > 0)
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
        struct rival rival = { .pg = pg_connect(scratch.url),
                               .sql = "SELECT holdfast.trigger('work', '1', key => 'rivals')" };
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

static void a_run_that_is_being_debounced_into_is_waited_for(void **state)
{
    (void)state;
    static const char *const ends[] = { "ROLLBACK", "COMMIT" };
    for (int i = 0; i < 4; i++) {
        bool existed = i >= 2; /* else the first one makes it */
        pthread_t thread;
        struct rival rival = { .pg = pg_connect(scratch.url),
                               .sql = "SELECT holdfast.trigger('work', '2', debounce_key => "
                                      "'rivals', debounce_for => '1 hour')" };
        PGconn *first = pg_connect(scratch.url);
        if (existed)
            pg_do(first, "SELECT holdfast.trigger('work', '0', debounce_key => 'rivals', "
                         "debounce_for => '1 hour')");
        pg_do(first, "BEGIN");
        const char *id = pg_text(first, "SELECT holdfast.trigger('work', '1', debounce_key => "
                                        "'rivals', debounce_for => '1 hour')");
        assert_int_equal(pthread_create(&thread, NULL, trigger_rival, &rival), 0);
        wait_for_lock();
        pg_do(first, "%s", ends[i % 2]);
        pthread_join(thread, NULL);
        assert_int_equal(strcmp(rival.answer, id) == 0, existed || i == 1);
        assert_string_equal(pg_text(scratch.pg, "SELECT input FROM holdfast.run "
                                                "WHERE debounce_key = 'rivals' AND version = 1"),
                            "2");
        assert_int_equal(pg_number(scratch.pg,
                                   "SELECT count(*) FROM holdfast.event WHERE run_id = '%s'",
                                   rival.answer),
                         1 + (i > 0) + (i == 3));
        pg_do(scratch.pg, "SELECT holdfast.cancel('%s')", rival.answer);
        PQfinish(first);
        PQfinish(rival.pg);
    }
}

enum { DEBOUNCES = 100 };

static void *debounce_by_sql(void *arg)
{
    PGconn *pg = arg;
    for (int i = 0; i < DEBOUNCES; i++) {
        char sql[200];
        snprintf(sql, sizeof sql,
                 "SELECT holdfast.trigger('work', '%d', debounce_key => 'both', debounce_for => "
                 "'1 hour')",
                 i);
        PGresult *result = PQexec(pg, sql);
        assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
        PQclear(result);
    }
    return NULL;
}

static void sql_and_the_library_debounce_into_one_run(void **state)
{
    (void)state;
    pthread_t threads[2];
    PGconn *others[2];
    for (int i = 0; i < 2; i++) {
        others[i] = pg_connect(scratch.url);
        assert_int_equal(pthread_create(&threads[i], NULL, debounce_by_sql, others[i]), 0);
    }
    for (int i = 0; i < DEBOUNCES; i++) {
        hf_trigger_spec spec = HF_TRIGGER_INIT;
        hf_triggered made;
        spec.workflow = "work";
        spec.debounce_key = "both";
        spec.debounce_for = HF_HOURS(1);
        assert_ok(hf_trigger(client, &made, &spec, err));
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        PQfinish(others[i]);
    }
    assert_int_equal(
        pg_number(scratch.pg, "SELECT count(*) FROM holdfast.run WHERE debounce_key = 'both'"), 1);
    assert_int_equal(pg_number(scratch.pg, "SELECT event_seq FROM holdfast.run "
                                           "WHERE debounce_key = 'both'"),
                     3 * DEBOUNCES);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_rolled_back_leaves_nothing),
        cmocka_unit_test(what_is_committed_is_there_with_the_callers_own_rows),
        cmocka_unit_test(a_savepoint_can_be_rolled_back_alone),
        cmocka_unit_test(it_works_at_every_isolation_level),
        cmocka_unit_test(in_a_serializable_transaction_a_key_taken_meanwhile_fails_to_serialize),
        cmocka_unit_test(a_key_that_is_being_taken_is_waited_for),
        cmocka_unit_test(a_run_that_is_being_debounced_into_is_waited_for),
        cmocka_unit_test(sql_and_the_library_debounce_into_one_run),
        cmocka_unit_test(the_same_keys_from_sql_and_from_the_library_make_one_run_each),
        cmocka_unit_test(an_open_transaction_does_not_stop_the_heartbeats_of_other_runs),
    };
    if (!scratch_server())
        return 77;
    return cmocka_run_group_tests(tests, shop_set_up, shop_tear_down);
}
