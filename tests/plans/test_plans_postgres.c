/* The plans of every statement, on a new database and on a full one: nothing reads a whole table, nothing sorts. A2.
 * SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sql/scratch.h"
#include "store/postgres.h"

enum { RUNS = 50000 };

static struct scratch scratch;
static char complaints[16384];

/* Tables that grow with the work. */
static const char *const big_tables[] = { "run",  "event",   "signal",      "outbox",
                                          "task", "run_tag", "dead_letter", "delivery" };

/* What a statement may do all the same. */
static const struct allowed {
    const char *statement;
    const char *complaint;
    const char *reason;
} allowed[] = {
    { "count_runs", "run: reads all of a tenant's", "counts what an operator's filter matches" },
    { "wake_unfit", "run: reads all of a tenant's", "what waits for a worker that fits" },
    { "find_unfit", "run: reads a whole index", "what waits for a worker that fits" },
    { "find_unfit", "sorts", "a line for each workflow" },
    { "find_misplaced", "run: reads all of a tenant's", "leases that ended since a time" },
    { "restore_places", "run: reads all of a tenant's", "leases that ended since a time" },
    { "find_newest", "run: reads all of a tenant's",
      "a page of what has no filter; else not beyond some runs, or ids of a time" },
    { "read_runs", "sorts", "the candidates of one page" },
    { "find_by_key", "sorts", "one run of each workflow" },
    { "find_deleted", "sorts", "a page of each workflow" },
    { "find_by_flow_key", "sorts", "a page of each workflow" },
    { "find_by_step", "sorts", "a page, and what is held" },
    { "find_by_state", "sorts",
      "a page of each workflow and status, and what it reaches of the queue" },
    { "find_overdue", "sorts",
      "what is due or past its deadline, and what it reaches of the queue" },
    { "find_purgeable", "run: reads all of a tenant's", "walks once through all, page by page" },
    { "list_run_tasks", "sorts", "the tasks of one run" },
    { "count_children", "sorts", "the children of one run" },
    { "list_workers", "sorts", "a table of some hundred rows" },
    { "live_patterns", "sorts", "a table of some hundred rows" },
    { "list_workflows", "sorts", "a table of some hundred rows" },
    { "list_tenants", "sorts", "a table of some hundred rows" },
    { "count_minutes", "sorts", "the minutes of an hour" },
    { "lock_flow", "sorts", "the workflows of one claim" },
    { "announce_outbox", "sorts", "the tenants of one flush, and the seats of one" },
    { "try_announce", "sorts", "the same" },
    { "claim_limited", "sorts", "the runs of one claim" },
    { "measure_store", "signal: reads a whole index", "no more than are counted at most" },
    { "measure_store", "dead_letter: reads a whole index", "no more than are counted at most" },
    { "measure_store", "outbox: reads a whole index", "no more than are counted at most" },
    { "measure_mail", "signal: reads a whole index", "no more than are counted at most" },
    { "measure_mail", "dead_letter: reads a whole index", "no more than are counted at most" },
    { "measure_mail", "sorts", "no more than are counted at most" },
    { "find_dead_holders", "sorts", "what dead workers hold" },
    { "count_lines", "event: reads a whole index",
      "comes after allow_bitmaps, which this test does not" },
    { "count_lines", "event: sequential scan",
      "comes after allow_bitmaps, which this test does not" },
    { "count_lines", "sorts", "the lines of ten seconds" },
    { "find_parked", "sorts", "subscriptions, of which there are few" },
    { "long_transactions", "sorts", "sessions" },
    { "server_settings", "sorts", "five settings" },
    { "table_health", "sorts", "the engine's tables" },
    { "table_locks", "sorts", "locks on the engine's tables" },
    { "insert_outbox", "sorts", "the subscriptions that get events of one flush" },
    { "lock_outbox", "sorts", "the events of one delivery" },
    { "list_subscriptions", "sorts", "a table of some hundred rows" },
    { "list_outbox", "outbox: reads all of a tenant's", "a page, from a cursor on, of any filter" },
    { "list_undelivered", "outbox: reads all of a tenant's", "a page of what is not delivered" },
    { "count_undelivered", "outbox: reads all of a tenant's", "what is not delivered, to a limit" },
    { "expire_outbox", "outbox: reads all of a tenant's", "from the oldest on, to a limit" },
    { "list_letters", "dead_letter: reads all of a tenant's", "a page, from a cursor on" },
    { "block_events", "sorts", "the events of one transaction" },
};

static bool is_allowed(const char *statement, const char *complaint)
{
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
        if (strcmp(allowed[i].statement, statement) == 0 &&
            strcmp(allowed[i].complaint, complaint) == 0)
            return true;
    return false;
}

static void complain(const char *statement, const char *table, const char *what)
{
    char complaint[200];
    snprintf(complaint, sizeof complaint, "%s%s%s", table, *table ? ": " : "", what);
    if (is_allowed(statement, complaint))
        return;
    size_t length = strlen(complaints);
    snprintf(complaints + length, sizeof complaints - length, "\n%s: %s", statement, complaint);
}

static bool is_big(const char *table)
{
    for (size_t i = 0; table && i < sizeof big_tables / sizeof *big_tables; i++)
        if (strcmp(big_tables[i], table) == 0)
            return true;
    return false;
}

static const char *text_of(const json_t *node, const char *name)
{
    const char *text = json_string_value(json_object_get(node, name));
    return text ? text : "";
}

/* An index is used well when more than the tenant is looked up in it. */
static bool is_narrow(const char *condition)
{
    static const char *const columns[] = {
        "(id ",         "run_id ",          " id ",         "lane ",     "key ",     "parent ",
        "(tag ",        "workflow_id ",     "subject ",     " tag ",     ".parent ", "slot ",
        "outbox_id ",   "subscription_id ", "reference ",   "assignee ", "due_at",   "(xid ",
        "(deleted_at ", "rest_step ",       "(finished_at "
    };
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        if (strstr(condition, columns[i]))
            return true;
    return false;
}

static void check_scan(const char *statement, const json_t *node)
{
    const char *type = text_of(node, "Node Type");
    const char *table = text_of(node, "Relation Name");
    const char *condition = text_of(node, "Index Cond");
    if (!is_big(table) || strcmp(type, "ModifyTable") == 0 || strcmp(type, "Tid Scan") == 0)
        return;
    if (strcmp(type, "Seq Scan") == 0)
        complain(statement, table, "sequential scan");
    else if (!*condition)
        complain(statement, table, "reads a whole index");
    else if (!is_narrow(condition))
        complain(statement, table, "reads all of a tenant's");
}

static void check_node(const char *statement, const json_t *node)
{
    const char *type = text_of(node, "Node Type");
    check_scan(statement, node);
    if (strstr(type, "Sort"))
        complain(statement, "", "sorts");
    if (strstr(type, "Hash Join") || strstr(type, "Merge Join"))
        complain(statement, "", "joins by hash or merge");
    size_t index;
    json_t *child;
    json_array_foreach(json_object_get(node, "Plans"), index, child) check_node(statement, child);
}

/* Nulls for every parameter: a generic plan does not look at them. */
static void add_nulls(char *sql, size_t size, int count)
{
    for (int i = 0; i < count; i++) {
        size_t length = strlen(sql);
        snprintf(sql + length, size - length, "%s", i == 0 ? "(NULL" : ", NULL");
    }
    size_t length = strlen(sql);
    snprintf(sql + length, size - length, "%s", count ? ")" : "");
}

static void prepare(const struct hf__statement *statement)
{
    struct hf__postgres_params params = { 0 };
    struct hf__arena arena;
    struct hf__table nulls;
    hf_error failure = { 0 };
    hf__arena_init(&arena, 4096);
    hf__table_init(&nulls, &arena, statement->nparams);
    if (statement->nparams > 0)
        hf__table_add(&nulls);
    if (hf__postgres_encode(&params, statement, &nulls, &failure) != HF_OK)
        fail_msg("%s: %s", statement->name, failure.message);
    PGresult *result =
        PQprepare(scratch.pg, statement->name, statement->sql, params.count, params.types);
    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        fail_msg("%s: %s", statement->name, PQerrorMessage(scratch.pg));
    PQclear(result);
    hf__postgres_params_free(&params);
    hf__arena_free(&arena);
}

static json_t *plan_of(const struct hf__statement *statement)
{
    char sql[2048];
    prepare(statement);
    snprintf(sql, sizeof sql, "EXPLAIN (FORMAT JSON) EXECUTE %s", statement->name);
    add_nulls(sql, sizeof sql, statement->nparams);
    const char *text = pg_text(scratch.pg, "%s", sql);
    json_t *plan = json_loads(text, 0, NULL);
    assert_non_null(plan);
    if (getenv("HOLDFAST_SHOW_PLANS"))
        print_message("%s\n%s\n", statement->name, text);
    pg_do(scratch.pg, "DEALLOCATE %s", statement->name);
    return plan;
}

static void check_statement(const struct hf__statement *statement)
{
    json_t *plan = plan_of(statement);
    check_node(statement->name, json_object_get(json_array_get(plan, 0), "Plan"));
    json_decref(plan);
}

static void apply_settings(void)
{
    const char *values[] = { "false" };
    PGresult *result =
        PQexecParams(scratch.pg, hf__postgres_statements[HF__STMT_APPLY_SETTINGS].sql, 1, NULL,
                     values, NULL, NULL, 0);
    assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
    PQclear(result);
}

static void check_all(void)
{
    complaints[0] = '\0';
    for (int i = 0; i < HF__STMT_COUNT; i++)
        if (hf__postgres_statements[i].sql && i != HF__STMT_APPLY_SETTINGS)
            check_statement(&hf__postgres_statements[i]);
    if (*complaints)
        fail_msg("%s", complaints);
}

static void fill(int runs)
{
    pg_do(scratch.pg, "INSERT INTO holdfast.workflow (tenant_id, name) "
                      "SELECT 1, 'w' || n FROM generate_series(1, 100) n ON CONFLICT DO NOTHING");
    pg_do(scratch.pg, "INSERT INTO holdfast.lane (id, tenant_id, workflow_id) "
                      "SELECT w.lane, 1, w.id FROM holdfast.workflow w ON CONFLICT DO NOTHING");
    pg_do(scratch.pg,
          "INSERT INTO holdfast.run (tenant_id, id, workflow_id, lane, status, priority, run_at, "
          "created_at, updated_at, key, parent, subject, reference, current_step, rest_step, "
          "event_seq) "
          "SELECT 1, gen_random_uuid(), w.id, w.lane, CASE WHEN n %% 50 = 0 THEN n / 50 %% 4 ELSE "
          "4 END, "
          "n %% 5, CASE WHEN n %% 50 = 0 THEN holdfast.now() + n END, n, n, "
          "CASE WHEN n %% 3 = 0 THEN 'k' || n || random() END, "
          "CASE WHEN n %% 7 = 0 THEN gen_random_uuid() END, 's' || n, 'r' || n, 'step-' || n %% 9, "
          "'step-' || n %% 9, 1 "
          "FROM generate_series(1, %d) n JOIN holdfast.workflow w ON w.name = 'w' || n %% 100 + 1",
          runs);
    pg_do(scratch.pg,
          "INSERT INTO holdfast.event (run_id, seq, version, tenant_id, at, kind, name) "
          "SELECT r.id, s, 1, 1, 0, 0, 'created' FROM holdfast.run r, generate_series(1, 2) s "
          "ON CONFLICT DO NOTHING");
    pg_do(scratch.pg,
          "INSERT INTO holdfast.signal (tenant_id, run_id, id, type, name, timer_key, occurred_at, "
          "visible_at, consumed_at) "
          "SELECT 1, r.id, 'm' || s, 'timer', 'n', 't' || s, 0, 0, CASE WHEN s = 1 THEN 1 END "
          "FROM holdfast.run r, generate_series(1, 2) s WHERE r.created_at %% 4 = 1 "
          "ON CONFLICT DO NOTHING");
    pg_do(scratch.pg, "INSERT INTO holdfast.run_tag SELECT 1, 't' || r.created_at %% 10, r.id "
                      "FROM holdfast.run r ON CONFLICT DO NOTHING");
    pg_do(scratch.pg, "INSERT INTO holdfast.outbox (id, tenant_id, run_id, seq, type, created_at) "
                      "SELECT gen_random_uuid(), 1, r.id, 1, 'x', 0 FROM holdfast.run r WHERE "
                      "r.created_at %% 4 = 1");
    pg_do(scratch.pg, "INSERT INTO holdfast.delivery (subscription_id, position, outbox_id) "
                      "SELECT gen_random_uuid(), o.position, o.id FROM holdfast.outbox o");
    pg_do(scratch.pg,
          "INSERT INTO holdfast.task (tenant_id, id, run_id, name, created_at, updated_at) "
          "SELECT 1, gen_random_uuid(), r.id, 'x', 0, 0 FROM holdfast.run r WHERE r.created_at %% "
          "4 = 1");
    pg_do(scratch.pg, "ANALYZE");
}

/* ---- Lists ---- */

/* What a list reads runs by; nothing else of the table may be read. */
static const struct finder {
    enum hf__stmt statement;
    const char *indexes; /* separated by spaces */
} finders[] = {
    { HF__STMT_READ_RUNS, "run_pkey run_tag_pkey run_tag_run" },
    { HF__STMT_FIND_NEWEST, "run_pkey run_tag_pkey run_tag_run" },
    { HF__STMT_FIND_BY_SUBJECT, "run_subject" },
    { HF__STMT_FIND_BY_REFERENCE, "run_reference" },
    { HF__STMT_FIND_BY_TAG, "run_tag_pkey" },
    { HF__STMT_FIND_BY_KEY, "run_key" },
    { HF__STMT_FIND_CHILDREN, "run_parent" },
    { HF__STMT_FIND_DELETED, "run_deleted_id" },
    { HF__STMT_FIND_BY_FLOW_KEY, "run_flow run_pkey" },
    { HF__STMT_FIND_BY_STEP, "run_step run_state" },
    { HF__STMT_FIND_ODD, "run_odd" },
    { HF__STMT_FIND_BY_STATE, "run_state run_claim run_keyed run_odd" },
    { HF__STMT_FIND_OVERDUE, "run_timed run_claim run_state run_keyed run_odd" },
};

static void expect_indexes(const char *statement, const char *allowed_names, const json_t *node)
{
    const char *name = text_of(node, "Index Name");
    if (is_big(text_of(node, "Relation Name")) && !strstr(allowed_names, *name ? name : "none"))
        fail_msg("%s reads %s by %s", statement, text_of(node, "Relation Name"), name);
    size_t index;
    json_t *child;
    json_array_foreach(json_object_get(node, "Plans"), index, child)
        expect_indexes(statement, allowed_names, child);
}

static void check_finders(void)
{
    for (size_t i = 0; i < sizeof finders / sizeof *finders; i++) {
        const struct hf__statement *statement = &hf__postgres_statements[finders[i].statement];
        json_t *plan = plan_of(statement);
        expect_indexes(statement->name, finders[i].indexes,
                       json_object_get(json_array_get(plan, 0), "Plan"));
        json_decref(plan);
    }
}

/* ---- Floors ---- */

/* Whether some scan of run_claim begins at a run_at, and does not read up to it. */
static bool begins_at_floor(const json_t *node)
{
    size_t index;
    json_t *child;
    if (strcmp(text_of(node, "Index Name"), "run_claim") == 0 &&
        strstr(text_of(node, "Index Cond"), "run_at >= "))
        return true;
    bool begins = false;
    json_array_foreach(json_object_get(node, "Plans"), index, child) begins |=
        begins_at_floor(child);
    return begins;
}
/* ---- Tests ---- */

static void on_an_empty_database_no_statement_reads_a_whole_table(void **state)
{
    (void)state;
    check_all();
    check_finders();
}

/* What is planned here must serve when the tables have grown and nobody has analyzed them again. */
static void on_a_database_with_three_runs_no_statement_reads_a_whole_table(void **state)
{
    (void)state;
    fill(3);
    check_all();
    check_finders();
}

static void on_a_full_database_no_statement_reads_a_whole_table(void **state)
{
    (void)state;
    fill(RUNS);
    check_all();
    check_finders();
}

static int64_t scans_of(const char *relation)
{
    pg_do(scratch.pg, "SELECT pg_stat_force_next_flush()");
    return atoll(
        pg_text(scratch.pg, "SELECT pg_stat_get_numscans('holdfast.%s'::regclass)", relation));
}

/* Its plan is inside a function, where the statements' plans do not show it. */
static void the_journal_is_read_by_position_through_its_index(void **state)
{
    (void)state;
    int64_t by_index = scans_of("event_by_position");
    int64_t whole = scans_of("event");
    pg_do(scratch.pg, "SELECT * FROM holdfast.events_after(100, 200, 10)");
    assert_int_equal(scans_of("event_by_position"), by_index + 1);
    assert_int_equal(scans_of("event"), whole);
}

static void a_claim_reads_no_index_entry_below_the_floor(void **state)
{
    static const enum hf__stmt claims[] = { HF__STMT_CLAIM_RUNS, HF__STMT_CLAIM_HEAD,
                                            HF__STMT_CLAIM_LIMITED, HF__STMT_CLAIM_LIMITED_HEAD };
    (void)state;
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        const struct hf__statement *statement = &hf__postgres_statements[claims[i]];
        json_t *plan = plan_of(statement);
        bool begins = begins_at_floor(json_object_get(json_array_get(plan, 0), "Plan"));
        json_decref(plan);
        if (!begins)
            fail_msg("%s does not begin at the floor of its head", statement->name);
    }
}

/* A column that is in any index, be it in its condition alone, would make every step write an entry in all of them. */
static void a_step_writes_no_index_of_runs(void **state)
{
    const char *const step[] = { "{1}",    "{11111111-1111-7111-8111-111111111111}",
                                 "{2}",    "{anna}",
                                 "{pack}", "{succeeded}",
                                 "{1}",    "{NULL}" };
    (void)state;
    pg_do(scratch.pg, "BEGIN");
    pg_do(scratch.pg,
          "INSERT INTO holdfast.run (tenant_id, id, workflow_id, lane, status, version, run_at, "
          "leased_by, created_at, updated_at) "
          "VALUES (1, '11111111-1111-7111-8111-111111111111', 1, 1, 1, 2, 1, 'anna', 1, 1)");
    PGresult *result = PQexecParams(scratch.pg, hf__postgres_statements[HF__STMT_SAVE_STEPS].sql,
                                    (int)(sizeof step / sizeof *step), NULL, step, NULL, NULL, 0);
    assert_int_equal(PQntuples(result), 1);
    PQclear(result);
    assert_int_equal(
        pg_number(scratch.pg,
                  "SELECT pg_stat_get_xact_tuples_hot_updated('holdfast.run'::regclass)"),
        1);
    pg_do(scratch.pg, "ROLLBACK");
}

static void a_bad_plan_is_noticed(void **state)
{
    (void)state;
    static const struct hf__statement bad = { .name = "bad",
                                              .sql = "SELECT r.id FROM holdfast.run r "
                                                     "WHERE r.subject > 'x' OR r.actor = 'y' "
                                                     "ORDER BY r.created_at" };
    complaints[0] = '\0';
    check_statement(&bad);
    assert_non_null(strstr(complaints, "bad: run: sequential scan"));
    assert_non_null(strstr(complaints, "bad: sorts"));
}

static int set_up(void **state)
{
    (void)state;
    scratch_create(&scratch);
    hf_close(scratch_open(scratch.url));
    apply_settings();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_drop(&scratch);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_an_empty_database_no_statement_reads_a_whole_table),
        cmocka_unit_test(on_a_database_with_three_runs_no_statement_reads_a_whole_table),
        cmocka_unit_test(on_a_full_database_no_statement_reads_a_whole_table),
        cmocka_unit_test(the_journal_is_read_by_position_through_its_index),
        cmocka_unit_test(a_claim_reads_no_index_entry_below_the_floor),
        cmocka_unit_test(a_step_writes_no_index_of_runs),
        cmocka_unit_test(a_bad_plan_is_noticed),
    };
    if (!scratch_server())
        return 77;
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
