/* The SQLite driver on one connection or several of one process: values, transactions, errors. F9.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sqlite_toy.h"

#include "util/alloc.h"

#include <string.h>

static const hf_id some_id = { { 0x01, 0x8f, 0x10, 0xab, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0,
                                 7 } };

static struct hf__table items(struct toy *toy, const char *const *names, int count)
{
    struct hf__table table;
    hf__table_init(&table, &toy->arena, 4);
    for (int i = 0; i < count; i++) {
        struct hf__cell *row = hf__table_add(&table);
        row[0] = hf__uuid(&some_id);
        row[1] = hf__text(names[i]);
        row[2] = hf__number(INT64_MAX - i);
        row[3] = hf__number(1);
    }
    return table;
}

static void values_come_back_as_they_went(void **state)
{
    struct toy *toy = *state;
    const char *names[] = { "a", "b\xc3\xa9", "" };
    struct hf__table rows = items(toy, names, 3), result = { .arena = &toy->arena };

    assert_ok(toy, toy_run(toy->conn, TOY_ADD_ITEMS, &rows, NULL, &toy->err));
    assert_ok(toy, toy_run(toy->conn, TOY_LIST_ITEMS, NULL, &result, &toy->err));
    assert_int_equal(result.nrows, 3);
    assert_int_equal(result.ncolumns, 4);
    struct hf__cell *row = hf__table_row(&result, 2);
    assert_true(hf_id_equal(hf__as_uuid(row[0]), some_id));
    assert_string_equal(hf__as_text(row[1]), "b\xc3\xa9");
    assert_int_equal(row[1].length, 3);
    assert_int_equal(hf__as_number(row[2]), INT64_MAX - 1);
    assert_int_equal(hf__as_number(row[3]), 1);
    assert_string_equal(hf__as_text(hf__table_row(&result, 0)[1]), "");
}

static void null_comes_back_as_null(void **state)
{
    struct toy *toy = *state;
    struct hf__table rows, result = { .arena = &toy->arena };
    hf__table_init(&rows, &toy->arena, 4);
    hf__table_add(&rows);

    assert_ok(toy, toy_run(toy->conn, TOY_ADD_ITEMS, &rows, NULL, &toy->err));
    assert_ok(toy, toy_run(toy->conn, TOY_LIST_ITEMS, NULL, &result, &toy->err));
    for (int i = 0; i < 4; i++)
        assert_true(hf__is_null(hf__table_row(&result, 0)[i]));
}

static void rows_are_executed_one_by_one_and_their_answers_gathered(void **state)
{
    struct toy *toy = *state;
    const char *names[] = { "a", "b", "c" }, *sought[] = { "c", "nobody", "a" };
    struct hf__table rows = items(toy, names, 3), params, result = { .arena = &toy->arena };
    assert_ok(toy, toy_run(toy->conn, TOY_ADD_ITEMS, &rows, NULL, &toy->err));

    hf__table_init(&params, &toy->arena, 2);
    for (int i = 0; i < 3; i++)
        hf__table_add(&params)[0] = hf__text(sought[i]);
    assert_ok(toy, toy_run(toy->conn, TOY_FIND_ITEMS, &params, &result, &toy->err));
    assert_int_equal(result.nrows, 2);
    assert_int_equal(hf__as_number(hf__table_row(&result, 0)[0]), INT64_MAX - 2);
    assert_int_equal(hf__as_number(hf__table_row(&result, 1)[0]), INT64_MAX);
}

static void no_rows_means_nothing_is_done(void **state)
{
    struct toy *toy = *state;
    struct hf__table none, result = { .arena = &toy->arena, .nrows = 9 };
    hf__table_init(&none, &toy->arena, 2);
    assert_ok(toy, toy_run(toy->conn, TOY_RESIZE_AND_LOG, &none, &result, &toy->err));
    assert_int_equal(result.nrows, 0);
    assert_ok(toy, toy_run(toy->conn, TOY_RESIZE_AND_LOG, NULL, &result, &toy->err));
    assert_int_equal(toy_number(toy->conn, TOY_LOGGED), 0);
}

static void a_named_statement_may_have_several_parts(void **state)
{
    struct toy *toy = *state;
    const char *names[] = { "a", "b" };
    struct hf__table rows = items(toy, names, 2), params, result = { .arena = &toy->arena };
    assert_ok(toy, toy_run(toy->conn, TOY_ADD_ITEMS, &rows, NULL, &toy->err));

    hf__table_init(&params, &toy->arena, 2);
    for (int i = 0; i < 2; i++) {
        struct hf__cell *row = hf__table_add(&params);
        row[0] = hf__text(names[i]);
        row[1] = hf__number(i + 5);
    }
    assert_ok(toy, toy_run(toy->conn, TOY_RESIZE_AND_LOG, &params, &result, &toy->err));
    assert_int_equal(result.nrows, 2);
    assert_int_equal(hf__as_number(hf__table_row(&result, 1)[0]), 6);
    assert_int_equal(toy_number(toy->conn, TOY_LOGGED), 2);
}

static void a_wrong_call_is_refused(void **state)
{
    struct toy *toy = *state;
    struct hf__table two_rows, narrow;
    hf__table_init(&two_rows, &toy->arena, 1);
    hf__table_add(&two_rows);
    hf__table_add(&two_rows);
    hf__table_init(&narrow, &toy->arena, 1);
    hf__table_add(&narrow);

    assert_int_equal(toy_run(toy->conn, TOY_UUID_TEXT, &two_rows, NULL, &toy->err), HF_INTERNAL);
    assert_int_equal(toy_run(toy->conn, TOY_UUID_TEXT, NULL, NULL, &toy->err), HF_INTERNAL);
    assert_int_equal(toy_run(toy->conn, TOY_ADD_ITEMS, &narrow, NULL, &toy->err), HF_INTERNAL);
    assert_int_equal(toy_run(toy->conn, TOY_NOT_HERE, NULL, NULL, &toy->err), HF_INTERNAL);
    assert_int_equal(toy_run(toy->conn, TOY_STATEMENTS, NULL, NULL, &toy->err), HF_INTERNAL);
    assert_int_equal(toy_run(toy->conn, TOY_WRONG_COLUMNS, NULL, NULL, &toy->err), HF_INTERNAL);
    two_rows.failed = true;
    assert_int_equal(toy_run(toy->conn, TOY_ADD_LARGE, &two_rows, NULL, &toy->err), HF_NOMEM);
}

static void ids_are_shown_as_text(void **state)
{
    struct toy *toy = *state;
    struct hf__table params, result = { .arena = &toy->arena };
    hf__table_init(&params, &toy->arena, 1);
    struct hf__cell *cell = hf__table_add(&params);

    cell[0] = hf__uuid(&some_id);
    assert_ok(toy, toy_run(toy->conn, TOY_UUID_TEXT, &params, &result, &toy->err));
    assert_string_equal(hf__as_text(hf__table_row(&result, 0)[0]),
                        "018f10ab-0000-7000-8000-000000000007");
    cell[0] = hf__null();
    assert_ok(toy, toy_run(toy->conn, TOY_UUID_TEXT, &params, &result, &toy->err));
    assert_true(hf__is_null(hf__table_row(&result, 0)[0]));
    cell[0] = hf__text_n("short", 5);
    assert_int_equal(toy_run(toy->conn, TOY_UUID_TEXT, &params, &result, &toy->err), HF_STORE);
}

static int64_t ticking(void *arg)
{
    return ++*(int64_t *)arg;
}

static void time_stands_still_within_a_transaction(void **state)
{
    struct toy *toy = *state;
    int64_t ticks = 100;
    bool unknown;
    const struct hf__clock clock = { ticking, &ticks };
    struct hf__database *db;
    assert_ok(toy, toy_open(&db, "sqlite::memory:", &clock, &toy->err));
    struct hf__conn *conn = toy_connect(db);

    int64_t outside = toy_number(conn, TOY_NOW);
    assert_int_equal(outside, 101);
    assert_int_equal(toy_number(conn, TOY_NOW), 102);
    assert_ok(toy, driver->begin(conn, &toy->err));
    assert_int_equal(toy_number(conn, TOY_NOW), 103);
    assert_int_equal(toy_number(conn, TOY_NOW), 103);
    assert_ok(toy, driver->commit(conn, NULL, &unknown, &toy->err));
    assert_int_equal(toy_number(conn, TOY_NOW), 104);
    driver->disconnect(conn);
    driver->close(db);
}

static void a_committed_change_is_seen_by_others_and_a_rolled_back_one_is_not(void **state)
{
    struct toy *toy = *state;
    struct hf__conn *other = toy_connect(toy->db);

    assert_ok(toy, toy_increment(toy->conn, &toy->err));
    assert_int_equal(toy_number(other, TOY_COUNT), 1);
    assert_ok(toy, driver->begin(toy->conn, &toy->err));
    assert_int_equal(toy_number(toy->conn, TOY_INCREMENT), 2);
    driver->rollback(toy->conn);
    assert_int_equal(toy_number(other, TOY_COUNT), 1);
    assert_ok(toy, toy_increment(other, &toy->err));
    assert_int_equal(toy_number(toy->conn, TOY_COUNT), 2);
    driver->disconnect(other);
}

static void a_lone_write_is_its_own_transaction(void **state)
{
    struct toy *toy = *state;
    struct hf__conn *other = toy_connect(toy->db);
    assert_int_equal(toy_number(toy->conn, TOY_INCREMENT), 1);
    assert_int_equal(toy_number(other, TOY_COUNT), 1);
    assert_ok(toy, toy_increment(other, &toy->err));
    driver->disconnect(other);
}

static void a_refused_value_is_a_data_error_and_frees_the_lock(void **state)
{
    struct toy *toy = *state;
    const char *names[] = { "a", "same", "same" };
    struct hf__table rows = items(toy, names, 3);
    struct hf__conn *other = toy_connect(toy->db);

    assert_ok(toy, driver->begin(toy->conn, &toy->err));
    assert_int_equal(toy_run(toy->conn, TOY_ADD_ITEMS, &rows, NULL, &toy->err), HF_STORE);
    assert_string_equal(toy->err.sqlstate, "23000");
    assert_true(hf__error_is_data(&toy->err));
    assert_non_null(strstr(toy->err.message, "item.name"));
    driver->rollback(toy->conn);

    assert_int_equal(toy_run(toy->conn, TOY_ADD_ITEMS, &rows, NULL, &toy->err), HF_STORE);
    assert_ok(toy, toy_increment(other, &toy->err));
    struct hf__table result = { .arena = &toy->arena };
    assert_ok(toy, toy_run(other, TOY_LIST_ITEMS, NULL, &result, &toy->err));
    assert_int_equal(result.nrows, 0);
    driver->disconnect(other);
}

static void a_transaction_with_a_failed_statement_cannot_commit(void **state)
{
    struct toy *toy = *state;
    const char *names[] = { "same", "same" };
    struct hf__table rows = items(toy, names, 2);
    bool unknown = true;
    hf_error first;

    assert_ok(toy, driver->begin(toy->conn, &toy->err));
    assert_int_equal(toy_number(toy->conn, TOY_INCREMENT), 1);
    driver->send(toy->conn, (enum hf__stmt)TOY_ADD_ITEMS, &rows, NULL, &first);
    assert_int_equal(driver->send(toy->conn, (enum hf__stmt)TOY_COUNT, NULL, NULL, &toy->err),
                     HF_STORE);
    assert_int_equal(driver->sync(toy->conn, &toy->err), HF_STORE);
    assert_int_equal(driver->commit(toy->conn, NULL, &unknown, &toy->err), HF_STORE);
    assert_string_equal(toy->err.message, first.message);
    assert_false(unknown);
    assert_int_equal(toy_number(toy->conn, TOY_COUNT), 0);
    assert_ok(toy, toy_increment(toy->conn, &toy->err));
}

static void a_failed_lone_statement_is_told_by_sync_once(void **state)
{
    struct toy *toy = *state;
    const char *names[] = { "same", "same" };
    struct hf__table rows = items(toy, names, 2);
    driver->send(toy->conn, (enum hf__stmt)TOY_ADD_ITEMS, &rows, NULL, NULL);
    assert_int_equal(driver->sync(toy->conn, &toy->err), HF_STORE);
    assert_ok(toy, driver->sync(toy->conn, &toy->err));
    assert_ok(toy, toy_increment(toy->conn, &toy->err));
}

static void bad_json_is_a_data_error_and_a_missing_table_is_not(void **state)
{
    struct toy *toy = *state;
    struct hf__table params;
    hf__table_init(&params, &toy->arena, 1);
    hf__table_add(&params)[0] = hf__text("{");

    assert_int_equal(toy_run(toy->conn, TOY_CHECK_JSON, &params, NULL, &toy->err), HF_STORE);
    assert_true(hf__error_is_data(&toy->err));
    assert_int_equal(toy_run(toy->conn, TOY_NO_TABLE, NULL, NULL, &toy->err), HF_STORE);
    assert_string_equal(toy->err.sqlstate, "42P01");
    assert_false(hf__error_is_data(&toy->err));
    assert_false(hf__error_is_data(NULL));
}

static void an_id_of_the_wrong_size_is_noticed_when_read(void **state)
{
    struct toy *toy = *state;
    struct hf__table rows, result = { .arena = &toy->arena };
    hf__table_init(&rows, &toy->arena, 4);
    hf__table_add(&rows)[0] = hf__text_n("short", 5);
    assert_ok(toy, toy_run(toy->conn, TOY_ADD_ITEMS, &rows, NULL, &toy->err));
    assert_int_equal(toy_run(toy->conn, TOY_LIST_ITEMS, NULL, &result, &toy->err), HF_STORE);
    assert_false(hf__error_is_data(&toy->err));
}

static void a_broken_script_changes_nothing(void **state)
{
    struct toy *toy = *state;
    bool unknown;
    assert_int_equal(driver->script(toy->conn, "SELECT 1;", &toy->err), HF_INTERNAL);
    assert_ok(toy, driver->begin(toy->conn, &toy->err));
    assert_int_equal(
        driver->script(toy->conn, "DELETE FROM counter; CREATE TABLE log (x); ", &toy->err),
        HF_STORE);
    assert_int_equal(driver->commit(toy->conn, NULL, &unknown, &toy->err), HF_STORE);
    driver->rollback(toy->conn);
    assert_int_equal(toy_number(toy->conn, TOY_COUNT), 0);
}

static void transactions_do_not_nest(void **state)
{
    struct toy *toy = *state;
    bool unknown;
    assert_int_equal(driver->commit(toy->conn, NULL, &unknown, &toy->err), HF_INTERNAL);
    assert_ok(toy, driver->begin(toy->conn, &toy->err));
    assert_int_equal(driver->begin(toy->conn, &toy->err), HF_INTERNAL);
    driver->rollback(toy->conn);
    driver->rollback(toy->conn);
    driver->rollback(toy->conn);
    assert_ok(toy, toy_increment(toy->conn, &toy->err));
}

static void a_memory_store_belongs_to_its_database_alone(void **state)
{
    struct toy *toy = *state;
    struct hf__database *other_db;
    assert_ok(toy, toy_open(&other_db, toy->url, NULL, &toy->err));
    struct hf__conn *stranger = toy_connect(other_db);
    struct hf__conn *friend = toy_connect(toy->db);

    assert_ok(toy, toy_increment(friend, &toy->err));
    assert_int_equal(toy_number(toy->conn, TOY_COUNT), 1);
    assert_int_equal(toy_run(stranger, TOY_COUNT, NULL, NULL, &toy->err), HF_STORE);
    driver->disconnect(friend);
    driver->disconnect(stranger);
    driver->close(other_db);
}

static void a_thread_that_waits_for_itself_is_told(void **state)
{
    struct toy *toy = *state;
    struct hf__conn *other = toy_connect(toy->db);
    assert_ok(toy, driver->begin(toy->conn, &toy->err));
    assert_int_equal(driver->begin(other, &toy->err), HF_INTERNAL);
    assert_int_equal(toy_run(other, TOY_COUNT, NULL, NULL, &toy->err), HF_INTERNAL);
    assert_int_equal(toy_number(toy->conn, TOY_INCREMENT), 1);
    driver->disconnect(other);
    driver->rollback(toy->conn);
    assert_int_equal(toy_number(toy->conn, TOY_COUNT), 0);
}

static void *increment_often(void *arg)
{
    struct hf__conn *conn = toy_connect(arg);
    hf_error err;
    intptr_t failures = 0;
    for (int i = 0; i < 200; i++) {
        failures += toy_increment(conn, &err) != HF_OK;
        failures += toy_number(conn, TOY_COUNT) < i;
    }
    driver->disconnect(conn);
    return (void *)failures;
}

static void threads_lose_no_update(void **state)
{
    struct toy *toy = *state;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, increment_often, toy->db), 0);
    for (int i = 0; i < 4; i++) {
        void *failures;
        pthread_join(threads[i], &failures);
        assert_null(failures);
    }
    assert_int_equal(toy_number(toy->conn, TOY_COUNT), 800);
}

/* Everything that allocates, once through; answers the first error. */
static hf_code live(const char *url, hf_error *err)
{
    struct hf__database *db = NULL;
    struct hf__conn *conn = NULL;
    struct hf__watch *watch = NULL;
    struct hf__arena arena = { 0 };
    struct hf__table result = { .arena = &arena };

    hf_code code = toy_open(&db, url, NULL, err);
    if (code == HF_OK)
        code = driver->connect(&conn, db, err);
    if (code == HF_OK)
        code = driver->watch(&watch, db, err);
    if (code == HF_OK)
        code = toy_run(conn, TOY_NOW, NULL, &result, err);
    if (code == HF_OK)
        code = driver->begin(conn, err);
    if (code == HF_OK)
        code = driver->script(conn, "CREATE TABLE IF NOT EXISTS counter (n)", err);
    if (code == HF_OK)
        code = driver->send(conn, (enum hf__stmt)TOY_INCREMENT, NULL, &result, err);
    driver->unwatch(watch);
    driver->disconnect(conn);
    driver->close(db);
    hf__arena_free(&arena);
    return code;
}

static void memory_may_run_out_anywhere(void **state)
{
    struct toy *toy = *state;
    for (long n = 0;; n++) {
        hf__alloc_fail_after = n;
        hf_code code = live(toy->url, &toy->err);
        bool reached = hf__alloc_fail_after < 0;
        hf__alloc_fail_after = -1;
        assert_int_equal(code, reached ? HF_NOMEM : HF_OK);
        assert_ok(toy, toy_increment(toy->conn, &toy->err));
        if (!reached)
            break;
        assert_true(n < 100);
    }
}

static void the_engines_own_statements_fit_its_schema(void **state)
{
    struct toy *toy = *state;
    struct hf__database *db;
    bool unknown;
    assert_ok(toy, driver->open(&db, "sqlite::memory:", NULL, &toy->err));
    struct hf__conn *conn = toy_connect(db);
    assert_ok(toy, driver->begin(conn, &toy->err));
    for (int i = 0; i < driver->migration_count; i++)
        assert_ok(toy, driver->script(conn, driver->migrations[i].sql, &toy->err));
    assert_ok(toy, driver->commit(conn, NULL, &unknown, &toy->err));
    driver->rollback(conn);

    int wrong = 0;
    for (int i = 0; i < HF__STMT_COUNT; i++) {
        struct hf__sqlite_prepared prepared = { 0 };
        const struct hf__statement *statement = &driver->statements[i];
        if (!statement->sql || i == HF__STMT_SQLITE_SESSION)
            continue;
        if (hf__sqlite_prepare(conn->session->handle, statement, &prepared, &toy->err) != HF_OK) {
            print_error("%s\n", toy->err.message);
            wrong++;
        }
        hf__sqlite_finalize(&prepared);
    }
    assert_int_equal(wrong, 0);
    driver->disconnect(conn);
    driver->close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(values_come_back_as_they_went),
        ON_BOTH(null_comes_back_as_null),
        ON_BOTH(rows_are_executed_one_by_one_and_their_answers_gathered),
        ON_BOTH(no_rows_means_nothing_is_done),
        ON_BOTH(a_named_statement_may_have_several_parts),
        ON_BOTH(a_wrong_call_is_refused),
        ON_BOTH(ids_are_shown_as_text),
        IN_MEMORY(time_stands_still_within_a_transaction),
        ON_BOTH(a_committed_change_is_seen_by_others_and_a_rolled_back_one_is_not),
        ON_BOTH(a_lone_write_is_its_own_transaction),
        ON_BOTH(a_refused_value_is_a_data_error_and_frees_the_lock),
        ON_BOTH(a_transaction_with_a_failed_statement_cannot_commit),
        ON_BOTH(a_failed_lone_statement_is_told_by_sync_once),
        ON_BOTH(bad_json_is_a_data_error_and_a_missing_table_is_not),
        ON_BOTH(an_id_of_the_wrong_size_is_noticed_when_read),
        ON_BOTH(a_broken_script_changes_nothing),
        ON_BOTH(transactions_do_not_nest),
        IN_MEMORY(a_memory_store_belongs_to_its_database_alone),
        IN_MEMORY(a_thread_that_waits_for_itself_is_told),
        ON_BOTH(threads_lose_no_update),
        ON_FILE(memory_may_run_out_anywhere),
        IN_MEMORY(the_engines_own_statements_fit_its_schema),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
