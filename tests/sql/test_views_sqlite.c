/* The views of an SQLite store, read by a program that knows nothing of Holdfast.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <sqlite3.h>
#include <cmocka.h>

#include <holdfast/holdfast.h>

#include "support/folder.h"

static char directory[FOLDER_MOST];
static sqlite3 *db;
static hf_client *client;
static char id[HF_ID_TEXT];

/* The first value of a query, as text. */
static const char *ask(const char *sql)
{
    static char answer[500];
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    const unsigned char *text = sqlite3_column_text(statement, 0);
    snprintf(answer, sizeof answer, "%s", text ? (const char *)text : "(null)");
    sqlite3_finalize(statement);
    return answer;
}

static void every_view_can_be_read(void **state)
{
    (void)state;
    static const char *const views[] = { "runs",    "events",    "steps",
                                         "signals", "workflows", "workers" };
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        char sql[100];
        sqlite3_stmt *statement;
        snprintf(sql, sizeof sql, "SELECT * FROM %s", views[i]);
        if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
            fail_msg("%s: %s", sql, sqlite3_errmsg(db));
        int rc;
        while ((rc = sqlite3_step(statement)) == SQLITE_ROW)
            continue;
        assert_int_equal(rc, SQLITE_DONE);
        sqlite3_finalize(statement);
    }
}

static void ids_and_statuses_are_texts(void **state)
{
    (void)state;
    assert_string_equal(ask("SELECT id FROM runs"), id);
    assert_string_equal(ask("SELECT run FROM events WHERE name = 'created'"), id);
    assert_string_equal(ask("SELECT run FROM signals"), id);
    assert_string_equal(ask("SELECT status FROM runs"), "pending");
    assert_string_equal(ask("SELECT kind FROM events WHERE name = 'go'"), "signal");
    assert_string_equal(ask("SELECT tenant || ' ' || workflow FROM runs"), "default work");
    assert_string_equal(ask("SELECT parent FROM runs"), "(null)");
    assert_string_equal(ask("SELECT flow_key FROM runs"), "acme");
    assert_string_equal(ask("SELECT debounce_key FROM runs"), "(null)");
}

static void times_are_iso_8601_to_the_microsecond(void **state)
{
    (void)state;
    assert_string_equal(ask("SELECT run_at FROM runs"), "2030-03-17T17:46:40.000042Z");
    assert_string_equal(
        ask("SELECT count(*) FROM runs "
            "WHERE created_at GLOB '20[0-9][0-9]-*T*:*:*.[0-9][0-9][0-9][0-9][0-9][0-9]Z'"),
        "1");
    assert_string_equal(ask("SELECT finished_at FROM runs"), "(null)");
}

static void workflows_show_their_depth(void **state)
{
    (void)state;
    assert_string_equal(ask("SELECT name || due || delayed || leased || failed FROM workflows"),
                        "work0100");
}

static int set_up(void **state)
{
    (void)state;
    char url[FOLDER_MOST + 32];
    hf_triggered made;
    hf_workflow workflow = { .name = "work" };
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    hf_signal_spec signal = HF_SIGNAL_INIT;
    folder_make(directory);
    snprintf(url, sizeof url, "sqlite:%s/store.db", directory);
    assert_int_equal(hf_open(&client, url, NULL, NULL), HF_OK);
    assert_int_equal(hf_workflow_put(client, &workflow, 0, NULL), HF_OK);
    spec.workflow = "work";
    spec.run_at = 1900000000000042;
    spec.flow_key = "acme";
    assert_int_equal(hf_trigger(client, &made, &spec, NULL), HF_OK);
    hf_id_format(made.id, id);
    signal.name = "go";
    signal.delay = HF_DAYS(36000);
    assert_int_equal(hf_signal(client, made.id, &signal, NULL, NULL), HF_OK);
    assert_int_equal(sqlite3_open(url + strlen("sqlite:"), &db), SQLITE_OK);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sqlite3_close(db);
    hf_close(client);
    return folder_remove(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_view_can_be_read),
        cmocka_unit_test(ids_and_statuses_are_texts),
        cmocka_unit_test(times_are_iso_8601_to_the_microsecond),
        cmocka_unit_test(workflows_show_their_depth),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
