/* The plans of every statement on SQLite, in a new file and in a full one: nothing reads a whole table, nothing sorts.
 * A2.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>
#include <cmocka.h>

#include <holdfast/holdfast.h>

#include "store/sqlite.h"
#include "store/statements.h"
#include "support/folder.h"

enum { RUNS = 50000 };

static char directory[FOLDER_MOST];
static char path[FOLDER_MOST + 16];
static sqlite3 *db;
static struct hf__sqlite_session session; /* that of `db` */
static char complaints[16384];

/* What may be read from end to end, whoever does it. */
static const char *const small[] = {
    "SCAN tenant",
    "SCAN worker",
    "SCAN workflow",
    "SCAN schema_version",
    "SCAN t",
    "SCAN w",
    "SCAN (subquery-1)",
    "SCAN sqlite_master",
    "SCAN CONSTANT ROW",
    "SCAN host_lock",
};

/* What a statement may do all the same. */
static const struct allowed {
    const char *statement;
    const char *step;
    const char *reason;
} allowed[] = {
    { "missing_guards", "SCAN g", "a list of names" },
    { "wake_unfit", "SCAN r USING INDEX run_unfit", "what waits for a worker that fits" },
    { "find_unfit", "SCAN r USING INDEX run_unfit", "what waits for a worker that fits" },
    { "find_unfit", "SCAN u", "what waits for a worker that fits" },
    { "find_unfit", "SCAN (subquery", "what waits for a worker that fits" },
    { "find_unfit", "USE TEMP B-TREE", "a line for each workflow" },
    { "list_workers", "USE TEMP B-TREE", "a table of some hundred rows" },
    { "live_patterns", "USE TEMP B-TREE", "a table of some hundred rows" },
    { "list_tenants", "USE TEMP B-TREE", "a table of some hundred rows" },
    { "list_workflows", "USE TEMP B-TREE", "a table of some hundred rows" },
    { "list_workflows", "SCAN p", "the rows of the recursion at hand" },
    { "list_workflows", "SCAN h", "lanes and priorities" },
    { "list_workflows", "SCAN c", "no more than are counted at most" },
    { "list_workflows", "SCAN s", "no more than are counted at most" },
    { "list_workflows", "SCAN y", "no more than are counted at most" },
    { "list_workflows", "SCAN (subquery", "no more than are counted at most" },
    { "read_runs", "USE TEMP B-TREE", "the candidates of one page" },
    { "read_runs", "SCAN c", "the candidates of one page" },
    { "read_runs", "SCAN p", "one page" },
    { "read_runs", "SCAN (subquery", "one page" },
    { "find_newest", "SCAN n", "what it looks at, one by one" },
    { "find_newest", "SCAN f", "what it found" },
    { "find_newest", "SCAN g", "the last that it looked at" },
    { "find_by_key", "USE TEMP B-TREE", "one run of each workflow" },
    { "find_deleted", "USE TEMP B-TREE", "a page of each workflow" },
    { "find_by_flow_key", "USE TEMP B-TREE", "a page of each workflow" },
    { "find_by_step", "SCAN f", "what it found" },
    { "find_by_step", "USE TEMP B-TREE", "a page, and what is held" },
    { "find_by_state", "SCAN p", "the rows of the recursion at hand" },
    { "find_by_state", "SCAN h", "lanes and priorities" },
    { "find_by_state", "SCAN n", "64 of them, or what it found" },
    { "find_by_state", "SCAN c", "the ends of 64 of them" },
    { "find_by_state", "SCAN b", "one row" },
    { "find_by_state", "SCAN f", "what it found" },
    { "find_by_state", "SCAN q", "what it reaches of the queue" },
    { "find_by_state", "SCAN (subquery", "one row" },
    { "find_by_state", "UNION USING TEMP B-TREE", "what it reaches of the queue" },
    { "find_by_state", "USE TEMP B-TREE",
      "a page of each workflow and status, and what it reaches of the queue" },
    { "find_overdue", "SCAN p", "the rows of the recursion at hand" },
    { "find_overdue", "SCAN h", "lanes and priorities" },
    { "find_overdue", "SCAN n", "64 of them, or what it found" },
    { "find_overdue", "SCAN c", "the ends of 64 of them" },
    { "find_overdue", "SCAN b", "one row" },
    { "find_overdue", "SCAN e", "one row" },
    { "find_overdue", "SCAN f", "what it found" },
    { "find_overdue", "SCAN q", "what it reaches of the queue" },
    { "find_overdue", "SCAN t", "what is due, no more than it reaches" },
    { "find_overdue", "SCAN (subquery", "one row" },
    { "find_overdue", "UNION USING TEMP B-TREE", "what it reaches of the queue" },
    { "find_overdue", "USE TEMP B-TREE", "what it reaches of the queue" },
    { "measure_queues", "SCAN p", "the rows of the recursion at hand" },
    { "measure_queues", "SCAN h", "lanes and priorities" },
    { "measure_queues", "SCAN c", "no more than are counted at most" },
    { "measure_queues", "SCAN (subquery", "no more than are counted at most" },
    { "count_children", "USE TEMP B-TREE", "the children of one run" },
    { "list_run_tasks", "USE TEMP B-TREE", "the tasks of one run" },
    { "insert_outbox", "SCAN x", "the one run that it tells of" },
    { "insert_outbox", "SCAN f", "the steps of one run" },
    { "insert_outbox", "SCAN (subquery", "the steps of one run" },
    { "tell_starts", "SCAN x", "the one run that it tells of" },
    { "tell_starts", "SCAN f", "the steps of one run" },
    { "tell_starts", "SCAN (subquery", "the steps of one run" },
    { "insert_outbox", "SEARCH s USING INDEX sqlite_autoindex_subscription_2 (tenant_id=?)",
      "a tenant's subscriptions" },
    { "list_subscriptions", "SEARCH s USING INDEX sqlite_autoindex_subscription_2 (tenant_id=?)",
      "a tenant's subscriptions" },
    { "count_undelivered", "SEARCH o USING INDEX outbox_waiting (tenant_id=?)",
      "what is not delivered, to a limit" },
    { "find_heads", "SCAN p", "the rows of the recursion at hand" },
    { "find_heads", "SCAN h", "its result" },
    { "load_mail", "SCAN s", "the mail of one run" },
    { "load_mail", "SCAN (subquery", "the mail of one run" },
    { "claim_runs", "SCAN n", "tenants, of which there are few" },
    { "claim_limited", "SCAN h", "the one head" },
    { "claim_limited", "SCAN f", "the one head" },
    { "claim_limited", "SCAN m", "the one head" },
    { "claim_limited", "SCAN o", "what it takes" },
    { "claim_limited", "SCAN n", "what it takes, or tenants, of which there are few" },
    { "flow_state", "SCAN k", "the lanes of one claim" },
    { "flow_state", "SCAN d", "the workflows of one claim" },
    { "flow_state", "SCAN l", "the lanes of one claim" },
    { "flow_state", "USE TEMP B-TREE FOR DISTINCT", "the lanes of one claim" },
    { "count_minutes", "USE TEMP B-TREE FOR GROUP BY", "the minutes of an hour" },
    { "charge_starts", "SCAN s", "the one workflow" },
    { "served_lanes", "SCAN l", "a worker that serves all tenants learns all lanes" },
    { "measure_workflows", "SCAN n", "tenants, of which there are few" },
    { "measure_workflows", "SCAN c", "no more than are counted at most" },
    { "measure_workflows", "SCAN (subquery", "no more than are counted at most" },
    { "measure_workflows", "SCAN p", "the rows of the recursion at hand" },
    { "measure_store", "SCAN s USING INDEX signal_mailbox", "no more than are counted at most" },
    { "measure_store", "SCAN dead_letter", "no more than are counted at most" },
    { "measure_store", "SCAN o USING INDEX outbox_waiting", "no more than are counted at most" },
    { "measure_store", "SCAN (subquery", "no more than are counted at most" },
    { "measure_store", "SCAN x", "no more than are counted at most, or workers" },
    { "measure_mail", "SCAN s USING INDEX signal_mailbox", "no more than are counted at most" },
    { "measure_mail", "SCAN l", "no more than are counted at most" },
    { "measure_mail", "SCAN m", "no more than are counted at most" },
    { "measure_mail", "SCAN d", "no more than are counted at most" },
    { "measure_mail", "SCAN x", "no more than are counted at most" },
    { "measure_mail", "SCAN (subquery", "no more than are counted at most" },
    { "measure_mail", "USE TEMP B-TREE", "no more than are counted at most" },
    { "find_dead_holders", "SCAN l", "all lanes, no more than are looked at at most" },
    { "find_dead_holders", "SCAN h", "no more than are looked at at most" },
    { "find_dead_holders", "USE TEMP B-TREE", "dead workers" },
    { "count_lines", "USE TEMP B-TREE", "workflows and what happens to runs" },
    { "find_parked", "SCAN s", "subscriptions, of which there are few" },
    { "find_parked", "USE TEMP B-TREE", "subscriptions, of which there are few" },
    { "find_parked", "SEARCH s", "subscriptions, of which there are few" },
    { "seal_head", "SCAN seal", "the last one" },
    { "seal_wanted", "SCAN s", "the last one" },
    { "seal_horizon", "SCAN e", "the last one" },
    { "count_runs", "SCAN r", "counts what an operator's filter matches" },
    { "list_tokens", "SEARCH api_token", "all tokens of a tenant, for an operator" },
};

/* These give pages of bounded size: what was found, no more than a page, is gone through twice more and sorted both times. */
static const char *const bounded[] = {
    "list_events",    "list_outbox",         "list_undelivered",
    "list_letters",   "list_tasks",          "list_open_tasks",
    "list_due_tasks", "list_assigned_tasks", "list_assigned_due_tasks",
    "list_run_tasks"
};
enum { PAGE_SORTS = 2 };
static int page_sorts; /* so far, of the statement at hand */

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static bool is_of_page(const char *statement, const char *step)
{
    size_t i = 0;
    while (i < sizeof bounded / sizeof *bounded && strcmp(bounded[i], statement) != 0)
        i++;
    if (i == sizeof bounded / sizeof *bounded)
        return false;
    if (starts_with(step, "USE TEMP B-TREE FOR ORDER BY"))
        return ++page_sorts <= PAGE_SORTS;
    return strcmp(step, "SCAN c") == 0 || strcmp(step, "SCAN p") == 0 ||
           starts_with(step, "SCAN (subquery");
}

static bool is_allowed(const char *statement, const char *step)
{
    if (is_of_page(statement, step))
        return true;
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
        if (strcmp(allowed[i].statement, statement) == 0 && starts_with(step, allowed[i].step))
            return true;
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        size_t length = strlen(small[i]);
        if (starts_with(step, small[i]) && (step[length] == '\0' || step[length] == ' '))
            return true;
    }
    return false;
}

/* A search by the tenant alone reads all its runs. */
static bool is_wide(const char *step)
{
    return strstr(step, "(tenant_id=?)") &&
           !strstr(step, "autoindex_workflow_"); /* of which there are few */
}

static void check_step(const char *statement, const char *step)
{
    bool scan = starts_with(step, "SCAN") && !strstr(step, "VIRTUAL TABLE"); /* json_each */
    bool bad = scan || strstr(step, "TEMP B-TREE") || is_wide(step);
    static const char *const pages[] = { "count_runs", "find_purgeable", "list_workflows",
                                         "list_letters", "measure_queues" };
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
        if (is_wide(step) && strcmp(statement, pages[i]) == 0)
            return; /* what an operator asks for may be all of a tenant's */
    if (!bad || is_allowed(statement, step))
        return;
    size_t length = strlen(complaints);
    snprintf(complaints + length, sizeof complaints - length, "\n%s: %s", statement, step);
}

/* Explains one statement of the text; gives what follows it. */
static const char *explain(const char *statement, const char *sql)
{
    sqlite3_stmt *prepared = NULL;
    const char *rest = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &prepared, &rest) != SQLITE_OK)
        fail_msg("%s: %s", statement, sqlite3_errmsg(db));
    sqlite3_finalize(prepared);
    char *explained = sqlite3_mprintf("EXPLAIN QUERY PLAN %.*s", (int)(rest - sql), sql);
    if (sqlite3_prepare_v2(db, explained, -1, &prepared, NULL) != SQLITE_OK)
        fail_msg("%s: %s", statement, sqlite3_errmsg(db));
    while (sqlite3_step(prepared) == SQLITE_ROW) {
        const char *step = (const char *)sqlite3_column_text(prepared, 3);
        if (getenv("HOLDFAST_SHOW_PLANS"))
            print_message("%s: %s\n", statement, step);
        check_step(statement, step);
    }
    sqlite3_finalize(prepared);
    sqlite3_free(explained);
    return rest + strspn(rest, " \t\n");
}

static void check_statement(const char *name, const char *sql)
{
    page_sorts = 0;
    while (*sql)
        sql = explain(name, sql);
}

static void check_all(void)
{
    complaints[0] = '\0';
    for (int i = 0; i < HF__STMT_COUNT; i++) {
        const struct hf__statement *statement = &hf__sqlite_statements[i];
        if (statement->sql && !starts_with(statement->name, "sqlite_"))
            check_statement(statement->name, statement->sql);
    }
    if (*complaints)
        fail_msg("%s", complaints);
}

static void run_sql(const char *sql)
{
    char *message = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s", message);
}

static void fill(void)
{
    char sql[4096];
    run_sql("BEGIN; WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 100) "
            "INSERT INTO workflow (tenant_id, name, lane, created_at, updated_at) "
            "SELECT 1, 'w' || n, n, 0, 0 FROM n;"
            "INSERT INTO lane (id, tenant_id, workflow_id, created_at) "
            "SELECT lane, 1, id, 0 FROM workflow;");
    snprintf(
        sql, sizeof sql,
        "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < %d) "
        "INSERT INTO run (tenant_id, id, workflow_id, lane, status, priority, run_at, created_at, "
        "updated_at, key, parent, subject, reference, event_seq) "
        "SELECT 1, randomblob(16), n %% 100 + 1, n %% 100 + 1, "
        "CASE WHEN n %% 50 = 0 THEN n / 50 %% 4 ELSE 4 END, n %% 5, "
        "CASE WHEN n %% 50 = 0 THEN n END, n, n, CASE WHEN n %% 3 = 0 THEN 'k' || n END, "
        "CASE WHEN n %% 7 = 0 THEN randomblob(16) END, 's' || n, 'r' || n, 1 FROM n",
        RUNS);
    run_sql(sql);
    run_sql("INSERT INTO event (run_id, seq, version, tenant_id, at, kind, name) "
            "SELECT id, 1, 1, 1, 0, 0, 'created' FROM run;"
            "INSERT INTO signal (tenant_id, run_id, id, type, name, timer_key, occurred_at, "
            "visible_at) "
            "SELECT 1, id, 'm', 'timer', 'n', 't', 0, 0 FROM run WHERE created_at % 4 = 0;"
            "INSERT INTO run_tag SELECT 1, 't' || created_at % 10, id FROM run;"
            "INSERT INTO outbox (id, tenant_id, run_id, seq, type, created_at) "
            "SELECT randomblob(16), 1, id, 1, 'x', 0 FROM run WHERE created_at % 4 = 0;"
            "INSERT INTO delivery (subscription_id, position, outbox_id) "
            "SELECT randomblob(16), position, id FROM outbox;"
            "INSERT INTO task (tenant_id, id, run_id, name, created_at, updated_at) "
            "SELECT 1, randomblob(16), id, 'x', 0, 0 FROM run WHERE created_at % 4 = 0;"
            "COMMIT; ANALYZE");
}

/* ---- Tests ---- */

static void in_a_new_file_no_statement_reads_a_whole_table(void **state)
{
    (void)state;
    check_all();
}

static void in_a_full_file_no_statement_reads_a_whole_table(void **state)
{
    (void)state;
    fill();
    check_all();
}

enum { BELOW = 5000 };

/* Due runs of one lane and priority, all of them before this file's "now", which is 0. */
static void fill_below(void)
{
    char sql[500];
    run_sql("INSERT INTO workflow (id, tenant_id, name, lane, created_at, updated_at) "
            "VALUES (1, 1, 'w', 1, 0, 0);"
            "INSERT INTO lane (id, tenant_id, workflow_id, created_at) VALUES (1, 1, 1, 0)");
    snprintf(sql, sizeof sql,
             "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < %d) "
             "INSERT INTO run (tenant_id, id, workflow_id, lane, status, priority, run_at, "
             "created_at, updated_at, event_seq) "
             "SELECT 1, randomblob(16), 1, 1, 0, 9, -n, 1, 1, 1 FROM n",
             BELOW);
    run_sql(sql);
}

/* Performs a claim of one run of that head, and tells how much it did in the units of SQLite's own machine. */
static int steps_of_claim(const struct hf__statement *statement, const char *head, bool finds)
{
    sqlite3_stmt *claim = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, statement->sql, -1, &claim, NULL), SQLITE_OK);
    sqlite3_bind_text(claim, 1, head, -1, SQLITE_STATIC);
    sqlite3_bind_int(claim, 2, 1); /* most; what is not bound is null */
    assert_int_equal(sqlite3_step(claim), finds ? SQLITE_ROW : SQLITE_DONE);
    int steps = sqlite3_stmt_status(claim, SQLITE_STMTSTATUS_VM_STEP, 0);
    sqlite3_finalize(claim);
    return steps;
}

/* The plan does not tell: that run_at is not null is a lower bound as well. */
static void a_claim_steps_over_nothing_below_the_floor(void **state)
{
    static const enum hf__stmt claims[] = { HF__STMT_CLAIM_RUNS, HF__STMT_CLAIM_LIMITED };
    (void)state;
    run_sql("BEGIN");
    fill_below();
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        const struct hf__statement *statement = &hf__sqlite_statements[claims[i]];
        steps_of_claim(statement, "[[1,9,-5000]]", true);
        assert_in_range(steps_of_claim(statement, "[[1,9,0]]", false), 1, BELOW / 2);
    }
    run_sql("ROLLBACK");
}

static void a_bad_plan_is_noticed(void **state)
{
    (void)state;
    complaints[0] = '\0';
    check_statement("bad", "SELECT id FROM run WHERE actor = 'y' ORDER BY created_at");
    assert_non_null(strstr(complaints, "bad: SCAN run"));
    assert_non_null(strstr(complaints, "bad: USE TEMP B-TREE"));
}

static void return_zero(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    (void)values;
    sqlite3_result_int64(context, 0);
}

static int set_up(void **state)
{
    (void)state;
    char url[FOLDER_MOST + 32];
    hf_client *client;
    folder_make(directory);
    snprintf(path, sizeof path, "%s/plans.db", directory);
    snprintf(url, sizeof url, "sqlite:%s", path);
    assert_int_equal(hf_open(&client, url, NULL, NULL), HF_OK);
    hf_close(client);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    run_sql("PRAGMA synchronous = OFF");
    sqlite3_create_function(db, "holdfast_now", 0, SQLITE_UTF8, NULL, return_zero, NULL, NULL);
    static const char *const others[] = { "holdfast_uuid_text", "holdfast_uuid",
                                          "holdfast_in_time" };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        sqlite3_create_function(db, others[i], 1, SQLITE_UTF8, NULL, return_zero, NULL, NULL);
    session.handle = db;
    assert_int_equal(hf__sqlite_register_rows(&session), SQLITE_OK);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sqlite3_close(db);
    return folder_remove(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_a_new_file_no_statement_reads_a_whole_table),
        cmocka_unit_test(a_claim_steps_over_nothing_below_the_floor),
        cmocka_unit_test(in_a_full_file_no_statement_reads_a_whole_table),
        cmocka_unit_test(a_bad_plan_is_noticed),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
