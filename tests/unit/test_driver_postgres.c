/* The PostgreSQL driver on a server that answers: values, transactions, errors, the pool. F8.
 * SPDX-License-Identifier: Apache-2.0 */
#include "postgres_toys.h"
#include "util/alloc.h"

#include <pthread.h>

/* ---- values ---- */

static struct hf__table mixed_rows(const hf_id *id)
{
    struct hf__table made = table(5);
    struct hf__cell *row = hf__table_add(&made);
    row[0] = hf__number(INT32_MIN);
    row[1] = hf__number(INT64_MAX);
    row[2] = hf__text("h\xc3\xa9llo");
    row[3] = hf__uuid(id);
    row[4] = hf__number(1);
    hf__table_add(&made);
    row = hf__table_add(&made);
    row[0] = hf__number(7);
    row[1] = hf__number(-1);
    row[2] = hf__text("");
    row[3] = hf__uuid(id);
    row[4] = hf__number(0);
    return made;
}

static void assert_same(const struct hf__table *a, const struct hf__table *b)
{
    assert_int_equal(a->nrows, b->nrows);
    for (int i = 0; i < a->nrows * a->ncolumns; i++) {
        const struct hf__cell *x = &a->cells[i], *y = &b->cells[i];
        assert_int_equal(x->length, y->length);
        if (x->length == HF__NULL)
            continue;
        int type = mixed[i % a->ncolumns];
        if (type == HF__TEXT || type == HF__UUID)
            assert_memory_equal(x->bytes, y->bytes, (size_t)x->length);
        else
            assert_true(x->number == y->number);
    }
}

static void check_roundtrips(struct hf__database *to)
{
    const hf_id id = { { 0xff, 0, 1, 2 } };
    struct hf__conn *conn = connected(to);
    struct hf__table rows = mixed_rows(&id);
    struct hf__table answer = table(5), single = table(5), none = table(5);
    struct hf__table first = rows, second = rows, empty = table(5);
    first.nrows = 1;
    second.cells += 5;
    second.nrows = 1;
    for (int i = 0; i < 3; i++) {
        answer.nrows = single.nrows = 0;
        ok(ask(conn, ECHO_ROWS, &rows, &answer, &failure));
        ok(ask(conn, ECHO_ONE, &first, &single, &failure));
        ok(ask(conn, ECHO_ONE, &second, &single, &failure));
        ok(ask(conn, ECHO_ROWS, &empty, &none, &failure));
        ok(driver->sync(conn, &failure));
        assert_same(&answer, &rows);
        rows.nrows = 2;
        assert_same(&single, &rows);
        rows.nrows = 3;
        assert_int_equal(none.nrows, 0);
    }
    driver->disconnect(conn);
}

static void columns_of_nulls_come_back_as_they_went(void **state)
{
    NEED_SERVER();
    struct hf__conn *conn = connected(db);
    struct hf__table rows = table(5), answer = table(5);
    hf__table_add(&rows);
    hf__table_add(&rows)[1] = hf__number(7);
    hf__table_add(&rows);
    ok(ask(conn, ECHO_ROWS, &rows, &answer, &failure));
    ok(driver->sync(conn, &failure));
    assert_same(&answer, &rows);
    driver->disconnect(conn);
}

static void arrays_with_nulls_and_scalars_come_back_as_they_went(void **state)
{
    NEED_SERVER();
    check_roundtrips(db);
}

static void the_same_without_prepared_statements(void **state)
{
    NEED_SERVER();
    check_roundtrips(pooled);
}

static void big_batches_do_not_deadlock(void **state)
{
    NEED_SERVER();
    enum { ROWS = 1000, SIZE = 1024 };
    static char text[SIZE];
    memset(text, 'x', sizeof text);
    struct hf__conn *conn = connected(db);
    struct hf__table rows = table(10), first = table(10), second = table(10);
    for (int i = 0; i < ROWS; i++) {
        struct hf__cell *row = hf__table_add(&rows);
        for (int column = 0; column < 10; column++)
            row[column] = hf__text_n(text, sizeof text);
    }
    ok(ask(conn, ECHO_WIDE, &rows, &first, &failure));
    ok(ask(conn, ECHO_WIDE, &rows, &second, &failure));
    ok(driver->sync(conn, &failure));
    assert_int_equal(first.nrows, ROWS);
    assert_int_equal(second.nrows, ROWS);
    assert_int_equal(hf__table_row(&second, ROWS - 1)[9].length, SIZE);
    driver->disconnect(conn);
}

/* ---- transactions ---- */

static void check_transactions(struct hf__database *to)
{
    struct hf__conn *conn = connected(to);
    struct hf__table three = items(1, 3), more = items(10, 2), answer = table(1);
    bool unknown = true;
    ok(driver->begin(conn, &failure));
    ok(ask(conn, ADD, &three, &answer, &failure));
    ok(driver->sync(conn, &failure));
    assert_int_equal(answer.nrows, 3);
    assert_int_equal(stored(), 0);
    ok(ask(conn, ADD, &more, NULL, &failure));
    ok(driver->commit(conn, NULL, &unknown, &failure));
    assert_false(unknown);
    assert_int_equal(stored(), 5);

    struct hf__table late = items(20, 1);
    ok(driver->begin(conn, &failure));
    ok(ask(conn, ADD, &late, NULL, &failure));
    ok(driver->sync(conn, &failure));
    driver->rollback(conn);
    ok(driver->begin(conn, &failure));
    ok(ask(conn, ADD, &late, NULL, &failure));
    driver->rollback(conn);
    ok(ask(conn, ADD, &late, NULL, &failure));
    driver->rollback(conn);
    ok(driver->begin(conn, &failure));
    ok(ask(conn, ADD, &three, NULL, &failure)); /* would fail, if anybody asked */
    driver->rollback(conn);
    assert_int_equal(ask_number(conn, COUNT), 5);
    assert_false(driver->lost(conn));
    driver->disconnect(conn);
}

static void commits_stay_and_rollbacks_do_not(void **state)
{
    NEED_SERVER();
    check_transactions(db);
}

static void commits_stay_and_rollbacks_do_not_without_a_session(void **state)
{
    NEED_SERVER();
    check_transactions(pooled);
}

static void check_failed_statement(struct hf__database *to)
{
    struct hf__conn *conn = connected(to);
    struct hf__table three = items(1, 3), again = items(2, 1), answer = table(1);
    bool unknown = true;
    ok(driver->begin(conn, &failure));
    ok(ask(conn, ADD, &three, NULL, &failure));
    ok(ask(conn, ADD, &again, NULL, &failure));
    ok(ask(conn, COUNT, NULL, &answer, &failure));
    hf_code code = driver->commit(conn, NULL, &unknown, &failure);
    assert_failed(code, HF_STORE, "23505");
    assert_true(hf__error_is_data(&failure));
    assert_false(unknown);
    assert_int_equal(answer.nrows, 0);
    driver->rollback(conn);
    assert_int_equal(ask_number(conn, COUNT), 0);

    ok(driver->begin(conn, &failure));
    ok(ask(conn, ADD, &again, NULL, &failure));
    ok(ask(conn, ADD, &again, NULL, &failure));
    assert_failed(driver->sync(conn, &failure), HF_STORE, "23505");
    assert_failed(driver->commit(conn, NULL, &unknown, &failure), HF_STORE, "25P02");
    assert_false(unknown);
    driver->rollback(conn);
    assert_int_equal(ask_number(conn, COUNT), 0);
    assert_false(driver->lost(conn));
    driver->disconnect(conn);
}

static void one_failure_ends_the_transaction_but_not_the_connection(void **state)
{
    NEED_SERVER();
    check_failed_statement(db);
    check_failed_statement(pooled);
}

static void the_servers_errors_have_codes(void **state)
{
    NEED_SERVER();
    static const struct {
        const char *sqlstate;
        hf_code code;
        bool lost;
    } raised[] = { { "53100", HF_STORE_FULL, false },   { "53200", HF_STORE, false },
                   { "40001", HF_STORE, false },        { "40P01", HF_STORE, false },
                   { "55P03", HF_STORE, false },        { "25006", HF_READ_ONLY, false },
                   { "42P01", HF_SCHEMA_OLDER, false }, { "57P03", HF_UNAVAILABLE, true },
                   { "08006", HF_UNAVAILABLE, true } };
    for (size_t i = 0; i < sizeof raised / sizeof *raised; i++) {
        struct hf__conn *conn = connected(db);
        struct hf__table code = one_text(raised[i].sqlstate);
        ok(ask(conn, RAISE, &code, NULL, &failure));
        assert_failed(driver->sync(conn, &failure), raised[i].code, raised[i].sqlstate);
        assert_non_null(strstr(failure.message, "on purpose"));
        assert_int_equal(driver->lost(conn), raised[i].lost);
        driver->disconnect(conn);
    }
    struct hf__conn *conn = connected(db);
    ok(ask(conn, NO_SCHEMA, NULL, NULL, &failure));
    assert_failed(driver->sync(conn, &failure), HF_SCHEMA_OLDER, "42P01");
    ok(ask(conn, NO_SCHEMA, NULL, NULL,
           &failure)); /* it was not prepared: it fails the same way again */
    assert_failed(driver->sync(conn, &failure), HF_SCHEMA_OLDER, "42P01");
    driver->disconnect(conn);
}

static hf_code try_to_add(struct hf__conn *conn, bool *unknown)
{
    const int32_t lane = 1;
    const hf_id run = { { 1 } };
    const struct hf__wake wake = {
        .lanes = &lane, .lane_count = 1, .watched = &run, .watched_count = 1
    };
    struct hf__cell cells[] = { hf__number(1), hf__text("note") };
    struct hf__table row = { .cells = cells, .ncolumns = 2, .nrows = 1 };
    struct hf__table answer = table(1);
    hf_code code = driver->begin(conn, &failure);
    if (code == HF_OK)
        code = ask(conn, ADD, &row, &answer, &failure);
    if (code == HF_OK)
        code = driver->commit(conn, &wake, unknown, &failure);
    if (code != HF_OK)
        driver->rollback(conn);
    return code;
}

static void check_short_of_memory(struct hf__database *to)
{
    bool reached = true;
    for (long n = 0; reached; n++) {
        struct hf__conn *conn = NULL;
        bool unknown = false;
        admin_do("TRUNCATE " SCHEMA ".item");
        hf__arena_free(&arena);
        atomic_store(&hf__alloc_fail_after, n);
        hf_code code = driver->connect(&conn, to, &failure);
        if (code == HF_OK)
            code = try_to_add(conn, &unknown);
        reached = atomic_load(&hf__alloc_fail_after) < 0;
        atomic_store(&hf__alloc_fail_after, -1);
        assert_true(code == HF_OK || code == HF_NOMEM);
        if (!unknown)
            assert_int_equal(stored(), code == HF_OK);
        if (conn && !driver->lost(conn))
            assert_int_equal(ask_number(conn, COUNT), stored());
        driver->disconnect(conn);
    }
}

static void running_out_of_memory_neither_hangs_nor_leaks(void **state)
{
    NEED_SERVER();
    check_short_of_memory(db);
    check_short_of_memory(pooled);
}

/* ---- settings ---- */

static void assert_setting(struct hf__conn *conn, const char *name, const char *wanted)
{
    struct hf__table question = one_text(name), answer = table(1);
    ok(ask(conn, SETTING, &question, &answer, &failure));
    ok(driver->sync(conn, &failure));
    assert_string_equal(hf__as_text(hf__table_row(&answer, 0)[0]), wanted);
}

static void assert_settings(struct hf__conn *conn)
{
    assert_setting(conn, "enable_seqscan", "off");
    assert_setting(conn, "plan_cache_mode", "force_generic_plan");
    assert_setting(conn, "jit", "off");
    assert_setting(conn, "search_path", "pg_catalog, pg_temp");
    assert_setting(conn, "client_encoding", "UTF8");
    assert_setting(conn, "application_name", "holdfast");
    assert_setting(conn, "idle_in_transaction_session_timeout", "1min");
}

static void settings_hold_in_and_out_of_transactions(void **state)
{
    NEED_SERVER();
    struct hf__database *const both[] = { db, pooled };
    for (int i = 0; i < 2; i++) {
        struct hf__conn *conn = connected(both[i]);
        assert_settings(conn);
        ok(driver->begin(conn, &failure));
        assert_settings(conn);
        bool unknown;
        ok(driver->commit(conn, NULL, &unknown, &failure));
        driver->disconnect(conn);
    }
}

static void without_a_session_nothing_is_left_behind_in_it(void **state)
{
    NEED_SERVER();
    struct hf__conn *conn = connected(pooled);
    assert_setting(conn, "enable_seqscan", "off");
    ok(driver->script(conn,
                      "DO $$BEGIN IF current_setting('enable_seqscan') <> 'on' OR EXISTS"
                      " (SELECT FROM pg_prepared_statements WHERE name <> '')"
                      " THEN RAISE 'left behind'; END IF; END$$",
                      &failure));
    driver->disconnect(conn);
}

static void lookups_by_arrays_use_the_primary_key(void **state)
{
    NEED_SERVER();
    struct hf__database *const both[] = { db, pooled };
    for (int i = 0; i < 2; i++) {
        struct hf__conn *conn = connected(both[i]);
        struct hf__table keys = one_number(5), plan = table(1);
        ok(ask(conn, EXPLAIN_FIND, &keys, &plan, &failure));
        ok(driver->sync(conn, &failure));
        bool nested = false, by_index = false;
        for (int row = 0; row < plan.nrows; row++) {
            const char *line = hf__as_text(hf__table_row(&plan, row)[0]);
            nested = nested || strstr(line, "Nested Loop");
            by_index = by_index || strstr(line, "Index Scan using item_pkey");
        }
        assert_true(nested && by_index);
        driver->disconnect(conn);
    }
}

/* ---- migrations ---- */

static void a_script_is_part_of_its_transaction(void **state)
{
    NEED_SERVER();
    struct hf__conn *conn = connected(db);
    struct hf__table three = items(1, 3);
    bool unknown;
    ok(driver->migrate_lock(conn, &failure));
    ok(driver->begin(conn, &failure));
    ok(driver->script(conn, "CREATE TABLE " SCHEMA ".a (x int); CREATE TABLE " SCHEMA ".b (x int);",
                      &failure));
    ok(ask(conn, ADD, &three, NULL, &failure));
    driver->rollback(conn);
    ok(driver->begin(conn, &failure));
    ok(driver->script(conn, "CREATE TABLE " SCHEMA ".a (x int);", &failure));
    ok(ask(conn, ADD, &three, NULL, &failure));
    ok(driver->commit(conn, NULL, &unknown, &failure));
    admin_do("DROP TABLE " SCHEMA ".a");
    assert_int_equal(stored(), 3);
    driver->migrate_unlock(conn);

    ok(driver->begin(conn, &failure));
    hf_code code = driver->script(conn, "CREATE TABLE " SCHEMA ".c (x int); SELECT 1/0", &failure);
    assert_failed(code, HF_STORE, "22012");
    driver->rollback(conn);
    assert_int_equal(ask_number(conn, COUNT), 3);
    driver->disconnect(conn);
}

static void a_script_without_transaction_runs_part_by_part(void **state)
{
    NEED_SERVER();
    static const char concurrent[] =
        "-- holdfast: no transaction\n"
        "CREATE INDEX CONCURRENTLY item_note ON " SCHEMA ".item (note)\n"
        ";;\n"
        "DROP INDEX CONCURRENTLY " SCHEMA ".item_note;\n"
        ";;\n";
    struct hf__conn *conn = connected(db);
    ok(driver->script(conn, concurrent, &failure));
    ok(driver->begin(conn, &failure));
    assert_int_equal(driver->script(conn, concurrent, &failure), HF_INTERNAL);
    driver->rollback(conn);
    assert_int_equal(ask_number(conn, COUNT), 0);
    driver->disconnect(conn);
}

struct migrator {
    struct hf__conn *conn;
    _Atomic bool locked;
};

static void *lock_too(void *arg)
{
    struct migrator *migrator = arg;
    migrator->locked = driver->migrate_lock(migrator->conn, NULL) == HF_OK;
    return NULL;
}

static void one_migrates_at_a_time_and_builds_its_index_meanwhile(void **state)
{
    NEED_SERVER();
    struct hf__conn *first = connected(db);
    struct migrator second = { .conn = connected(pooled) };
    pthread_t thread;
    ok(driver->migrate_lock(first, &failure));
    assert_int_equal(pthread_create(&thread, NULL, lock_too, &second), 0);
    usleep(150000);
    assert_false(second.locked);
    ok(driver->script(first,
                      "-- holdfast: no transaction\n"
                      "CREATE INDEX CONCURRENTLY item_note ON " SCHEMA ".item (note)\n;;\n"
                      "DROP INDEX " SCHEMA ".item_note\n",
                      &failure));
    driver->migrate_unlock(first);
    pthread_join(thread, NULL);
    assert_true(second.locked);
    driver->disconnect(first);
    driver->disconnect(second.conn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(arrays_with_nulls_and_scalars_come_back_as_they_went),
        TEST(columns_of_nulls_come_back_as_they_went),
        TEST(the_same_without_prepared_statements),
        TEST(big_batches_do_not_deadlock),
        TEST(commits_stay_and_rollbacks_do_not),
        TEST(commits_stay_and_rollbacks_do_not_without_a_session),
        TEST(one_failure_ends_the_transaction_but_not_the_connection),
        TEST(the_servers_errors_have_codes),
        TEST(running_out_of_memory_neither_hangs_nor_leaks),
        TEST(settings_hold_in_and_out_of_transactions),
        TEST(without_a_session_nothing_is_left_behind_in_it),
        TEST(lookups_by_arrays_use_the_primary_key),
        TEST(a_script_is_part_of_its_transaction),
        TEST(a_script_without_transaction_runs_part_by_part),
        TEST(one_migrates_at_a_time_and_builds_its_index_meanwhile),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
