/* Migrations: while programs of the version before go on working, by several processes at once, and refused where they
 * must be. F10.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sql/scratch.h"

#include <holdfast/transition.h>

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/client.h"
#include "kernel/engine.h"
#include "store/sqlite.h"
#include "support/folder.h"

enum { TRIGGERERS = 2, WORKERS = 2, PROCESSES = 4 };

static bool on_postgres;
static struct scratch scratch;
static char directory[FOLDER_MOST];
static char url[SCRATCH_URL];

static const struct hf__driver *driver_at_work(void)
{
    return on_postgres ? &hf__postgres_driver : &hf__sqlite_driver;
}

static int newest_schema(void)
{
    const struct hf__driver *driver = driver_at_work();
    return driver->migrations[driver->migration_count - 1].version;
}

static int set_up(void **state)
{
    (void)state;
    if (on_postgres) {
        scratch_create_empty(&scratch);
        strcpy(url, scratch.url);
    } else {
        folder_make(directory);
        snprintf(url, sizeof url, "sqlite:%s/store.db", directory);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (!on_postgres)
        return folder_remove(directory);
    scratch_drop(&scratch);
    return 0;
}

/* A statement behind the library's back; on PostgreSQL `schema.` is put before what begins with '@'. */
static int64_t meddle(const char *sql)
{
    char text[500] = "";
    for (size_t i = 0; *sql; sql++) {
        const char *add = *sql != '@'   ? (const char[2]){ *sql, '\0' }
                          : on_postgres ? "holdfast."
                                        : "";
        strcpy(text + i, add);
        i += strlen(add);
    }
    if (on_postgres)
        return pg_number(scratch.pg, "%s", text);
    sqlite3 *db;
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_open(url + strlen("sqlite:"), &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    if (sqlite3_prepare_v2(db, text, -1, &statement, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    int64_t number = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
    sqlite3_close(db);
    return number;
}

/* A client as a program has it that knows no schema beyond `schema`. */
static hf_client *open_old(int schema)
{
    hf_client *client;
    const struct hf__engine_options inner = { .max_schema = schema };
    assert_ok(hf__open(&client, url, NULL, &inner, err));
    return client;
}

/* ---- Statements of before (SQLite) ---- */

/* As schema version 14 had them. They name indexes. */
static const char find_odd_14[] =
    "SELECT r.id FROM run r INDEXED BY run_odd "
    "WHERE r.tenant_id = ?1 AND r.id < ?2 AND r.id >= ?4 "
    "AND hex(r.id) NOT BETWEEN printf('%012X', r.created_at / 1000 - 1000) "
    "AND printf('%012X', r.created_at / 1000 + 101) "
    "AND (?5 IS NULL OR r.created_at >= ?5) AND (?6 IS NULL OR r.created_at < ?6) "
    "ORDER BY r.id DESC LIMIT ?3";
static const char find_by_flow_key_14[] =
    "SELECT r.id FROM workflow w "
    "CROSS JOIN lane l INDEXED BY lane_key "
    "ON l.workflow_id = w.id AND coalesce(l.flow_key, '') = ?4 "
    "CROSS JOIN run r INDEXED BY run_flow "
    "ON r.lane = l.id AND r.lane <> r.workflow_id AND r.id < ?2 "
    "AND r.id >= coalesce((SELECT x.id FROM run x INDEXED BY run_flow "
    "WHERE x.lane = l.id AND x.lane <> x.workflow_id AND x.id < ?2 "
    "ORDER BY x.id DESC LIMIT 1 OFFSET ?3 - 1), x'') "
    "WHERE w.tenant_id = ?1 ORDER BY r.id DESC LIMIT ?3";

static struct hf__statement statements_14[HF__STMT_COUNT];

/* A statement that inserts runs did not know of in_time; it writes another column, which does not matter. */
static void forget_in_time(struct hf__statement *statement, char *text, size_t size)
{
    static const char column[] = " in_time)";
    const char *found = strstr(statement->sql, column);
    assert_non_null(found);
    snprintf(text, size, "%.*s delete_reason)%s", (int)(found - statement->sql), statement->sql,
             found + strlen(column));
    assert_null(strstr(text, column));
    statement->sql = text;
}

/* Journal lines had no requests: there are none in this play. */
static void forget_requests(struct hf__statement *statement, char *text, size_t size)
{
    static const char columns[] = ", request, answer)";
    static const char values[] = "?9, ?10, ?11)";
    const char *found = strstr(statement->sql, columns);
    const char *then = strstr(statement->sql, values);
    assert_non_null(found);
    assert_non_null(then);
    const char *rest = found + strlen(columns);
    snprintf(text, size, "%.*s)%.*s coalesce(?9, ?10, ?11))%s", (int)(found - statement->sql),
             statement->sql, (int)(then - rest), rest, then + strlen(values));
    statement->sql = text;
}

/* Nor did a run wait for a worker that fits, or was known to have children: none does, or has, in this play. */
static void forget(struct hf__statement *statement, char *text, size_t size, const char *what,
                   const char *instead)
{
    const char *found = strstr(statement->sql, what);
    assert_non_null(found);
    snprintf(text, size, "%.*s%s%s", (int)(found - statement->sql), statement->sql, instead,
             found + strlen(what));
    statement->sql = text;
}

static hf_code open_14(struct hf__database **out, const char *path, const struct hf__clock *clock,
                       hf_error *failure)
{
    return hf__sqlite_open_with(out, statements_14, HF__STMT_COUNT, path, clock, failure);
}

/* The driver as a program of the version before has it, where that matters. */
static const struct hf__driver *driver_14(void)
{
    static struct hf__driver driver;
    static char texts[9][8000];
    driver = hf__sqlite_driver;
    memcpy(statements_14, driver.statements, sizeof statements_14);
    forget_in_time(&statements_14[HF__STMT_INSERT_RUNS], texts[0], sizeof texts[0]);
    forget_in_time(&statements_14[HF__STMT_INSERT_PLAIN_RUNS], texts[1], sizeof texts[1]);
    forget_in_time(&statements_14[HF__STMT_INSERT_CHILDREN], texts[2], sizeof texts[2]);
    forget_requests(&statements_14[HF__STMT_INSERT_EVENTS], texts[3], sizeof texts[3]);
    static const enum hf__stmt locks[] = { HF__STMT_LOCK_RUNS, HF__STMT_LOCK_PARENTS,
                                           HF__STMT_AWAIT_PARENTS };
    for (size_t i = 0; i < sizeof locks / sizeof *locks; i++)
        forget(&statements_14[locks[i]], texts[4 + i], sizeof texts[4 + i],
               "r.unfit_since, r.unfit_pause, w.fit_within", "NULL, NULL, 0");
    forget(&statements_14[HF__STMT_UPDATE_RUNS], texts[7], sizeof texts[7],
           "unfit_since = ?36, unfit_pause = ?37", "last_signal = coalesce(?28, ?36, ?37)");
    forget(&statements_14[HF__STMT_FINISH_RUNS], texts[8], sizeof texts[8],
           " AND has_children IS NULL", "");
    statements_14[HF__STMT_WHAT_FOLLOWS].sql = "SELECT ?2, NULL, NULL, NULL, NULL WHERE ?1 IS NULL";
    statements_14[HF__STMT_FIND_ODD].sql = find_odd_14;
    statements_14[HF__STMT_FIND_BY_FLOW_KEY].sql = find_by_flow_key_14;
    driver.statements = statements_14;
    driver.open = open_14;
    return &driver;
}

/* ---- Work under way ---- */

static hf_client *busy;
static atomic_bool stopping;
static atomic_int triggered, finished, failures;

static void *trigger_on(void *arg)
{
    (void)arg;
    while (!atomic_load(&stopping)) {
        hf_trigger_spec spec = HF_TRIGGER_INIT;
        const char *const tags[] = { "tagged" };
        hf_triggered made;
        spec.workflow = "work";
        spec.tags = tags;
        spec.tag_count = 1;
        hf_error failure = { 0 };
        if (hf_trigger(busy, &made, &spec, &failure) == HF_OK)
            atomic_fetch_add(&triggered, 1);
        else if (atomic_fetch_add(&failures, 1) == 0)
            fprintf(stderr, "trigger: %s\n", failure.message);
    }
    return NULL;
}

static size_t work_once(void)
{
    const char *pattern = "work";
    hf_claim_spec spec = HF_CLAIM_INIT;
    hf_claims *claims = NULL;
    hf_error failure = { 0 };
    spec.worker = "anna";
    spec.patterns = &pattern;
    spec.pattern_count = 1;
    spec.limit = 50;
    if (hf_claim(busy, &claims, &spec, &failure) != HF_OK) {
        if (atomic_fetch_add(&failures, 1) == 0)
            fprintf(stderr, "claim: %s\n", failure.message);
        return 0;
    }
    size_t count = claims->count;
    for (size_t i = 0; i < count; i++) {
        hf_transition done = { .version = HF_TRANSITION_VERSION,
                               .run = claims->items[i].run.id,
                               .run_version = claims->items[i].run.version,
                               .turn = HF_TURN_SUCCEED,
                               .worker = "anna" };
        if (hf_commit(busy, &done, NULL, &failure) == HF_OK)
            atomic_fetch_add(&finished, 1);
        else if (atomic_fetch_add(&failures, 1) == 0)
            fprintf(stderr, "commit: %s\n", failure.message);
    }
    hf_claims_free(claims);
    return count;
}

static void *work_on(void *arg)
{
    (void)arg;
    while (!atomic_load(&stopping))
        if (work_once() == 0)
            usleep(1000);
    return NULL;
}

static int wait_for_more(void)
{
    int before = atomic_load(&finished);
    for (int i = 0; i < 24000 && atomic_load(&finished) < before + 20; i++)
        usleep(5000);
    return atomic_load(&finished) - before;
}

/* The older program says what this one says, for want of its own statements. On PostgreSQL these need the columns in_time,
 * rest_step, deferred, request, answer and those of what fits and what follows from an end, which are added beforehand: the
 * migrations bear with that. */
static hf_client *open_oldest(void)
{
    hf_client *client;
    const struct hf__engine_options inner = { .max_schema = 1,
                                              .driver = on_postgres ? NULL : driver_14() };
    assert_ok(hf__open(&client, url, NULL, &inner, err));
    assert_int_equal(meddle("SELECT max(version) FROM @schema_version"), 1);
    if (on_postgres)
        pg_do(scratch.pg,
              "ALTER TABLE holdfast.run ADD COLUMN in_time boolean, "
              "ADD COLUMN rest_step text COLLATE \"C\", "
              "ADD COLUMN deferred boolean, ADD COLUMN has_children boolean, "
              "ADD COLUMN unfit_since bigint, ADD COLUMN unfit_pause bigint; "
              "ALTER TABLE holdfast.workflow ADD COLUMN fit_within bigint NOT NULL "
              "DEFAULT 86400000000, ADD COLUMN on_cancel text, ADD COLUMN children text; "
              "ALTER TABLE holdfast.event ADD COLUMN request text COLLATE \"C\", "
              "ADD COLUMN answer text");
    return client;
}

static void a_store_is_migrated_while_older_programs_work(void **state)
{
    (void)state;
    pthread_t threads[TRIGGERERS + WORKERS];
    atomic_store(&stopping, false);
    atomic_store(&triggered, 0);
    atomic_store(&finished, 0);
    atomic_store(&failures, 0);
    busy = open_oldest();
    hf_workflow work = { .name = "work" };
    assert_ok(hf_workflow_put(busy, &work, 0, err));
    for (int i = 0; i < TRIGGERERS + WORKERS; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, i < TRIGGERERS ? trigger_on : work_on, NULL), 0);
    assert_true(wait_for_more() >= 20);

    hf_client *newer = scratch_open(url);
    assert_int_equal(meddle("SELECT max(version) FROM @schema_version"), newest_schema());
    assert_true(wait_for_more() >= 20);

    atomic_store(&stopping, true);
    for (int i = 0; i < TRIGGERERS + WORKERS; i++)
        pthread_join(threads[i], NULL);
    while (work_once() > 0)
        continue;
    assert_int_equal(atomic_load(&failures), 0);
    assert_int_equal(atomic_load(&finished), atomic_load(&triggered));
    assert_int_equal(meddle("SELECT count(*) FROM @run WHERE status = 4"), atomic_load(&triggered));
    assert_int_equal(meddle("SELECT count(*) FROM @event"), 3 * atomic_load(&triggered));
    assert_int_equal(meddle("SELECT count(*) FROM @runs WHERE status = 'succeeded'"),
                     atomic_load(&triggered));
    hf_close(newer);
    hf_close(busy);
}

/* ---- Lists of before ---- */

static int64_t in_2100(void *arg)
{
    (void)arg;
    return HF_DAYS(365) * 130;
}

static size_t count_listed(hf_client *client, const hf_filter *filter)
{
    hf_runs *page = NULL;
    assert_ok(hf_list(client, &page, filter, err));
    size_t count = page->count;
    hf_runs_free(page);
    return count;
}

/* By time as well: the store's clock is another than that of the ids. */
static void older_programs_go_on_listing_by_time_and_by_flow_key(void **state)
{
    static const struct hf__clock clock = { .now = in_2100 };
    hf_client *older;
    hf_workflow work = { .name = "work" };
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    hf_filter by_key = HF_FILTER_INIT, by_time = HF_FILTER_INIT;
    hf_triggered made;
    (void)state;
    if (on_postgres)
        return; /* there no statement names an index */
    const struct hf__engine_options inner = { .max_schema = 14,
                                              .driver = driver_14(),
                                              .clock = &clock };
    assert_ok(hf__open(&older, url, NULL, &inner, err));
    assert_ok(hf_workflow_put(older, &work, 0, err));
    spec.workflow = "work";
    assert_ok(hf_trigger(older, &made, &spec, err));
    spec.flow_key = "customer";
    assert_ok(hf_trigger(older, &made, &spec, err));
    by_key.flow_key = "customer";
    by_time.created_after = in_2100(NULL);
    for (int migrated = 0; migrated < 2; migrated++) {
        assert_int_equal(count_listed(older, &by_key), 1);
        assert_int_equal(count_listed(older, &by_time), 2);
        hf_client *newer = scratch_open(url);
        assert_int_equal(count_listed(newer, &by_key), 1);
        assert_int_equal(count_listed(newer, &by_time), 2);
        hf_close(newer);
    }
    assert_int_equal(meddle("SELECT max(version) FROM @schema_version"), newest_schema());
    hf_close(older);
}

static void a_new_store_has_nothing_that_older_programs_alone_need(void **state)
{
    (void)state;
    if (on_postgres)
        return;
    hf_close(scratch_open(url));
    assert_int_equal(
        meddle("SELECT count(*) FROM sqlite_master WHERE name IN ('run_odd', 'run_flow')"), 0);
}

/* ---- Several at once ---- */

static void open_in_child(void)
{
    hf_client *client;
    hf_error failure = { 0 };
    hf_code code = hf_open(&client, url, NULL, &failure);
    if (code == HF_OK)
        hf_close(client);
    else
        fprintf(stderr, "%s\n", failure.message);
    _exit(code == HF_OK ? 0 : 1);
}

static void migrate_by_many(int from)
{
    pid_t children[PROCESSES];
    if (from > 0)
        hf_close(open_old(from));
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0)
            open_in_child();
        assert_true(children[i] > 0);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(meddle("SELECT count(*) FROM @schema_version"), newest_schema());
    assert_int_equal(meddle("SELECT count(*) FROM @tenant"), 1);
}

static void many_processes_create_one_schema(void **state)
{
    (void)state;
    migrate_by_many(0);
}

static void many_processes_migrate_once(void **state)
{
    (void)state;
    migrate_by_many(1);
}

/* Whoever may log in can take any lock by number. */
static void a_lock_by_number_keeps_nobody_from_migrating(void **state)
{
    (void)state;
    if (!on_postgres)
        return; /* there are none */
    PGconn *stranger = pg_connect(scratch.url);
    pg_do(stranger, "SELECT pg_advisory_lock(7525352680829580148)");
    hf_close(open_old(1));
    hf_close(scratch_open(url));
    PQfinish(stranger);
    assert_int_equal(meddle("SELECT count(*) FROM @schema_version"), newest_schema());
}

static bool waits_for_the_table(void)
{
    return pg_number(scratch.pg, "SELECT count(*) FROM pg_locks WHERE NOT granted AND "
                                 "relation = 'holdfast.run'::regclass AND "
                                 "mode = 'AccessExclusiveLock'") > 0;
}

static void a_long_transaction_holds_up_a_migration_and_nobody_else(void **state)
{
    int status;
    (void)state;
    if (!on_postgres)
        return; /* there is one writer */
    hf_close(open_old(15));
    PGconn *reader = pg_connect(scratch.url);
    pg_do(reader, "BEGIN");
    pg_number(reader, "SELECT count(*) FROM holdfast.run");
    pid_t child = fork();
    if (child == 0)
        open_in_child();
    for (int i = 0; i < 60000 && !waits_for_the_table(); i++)
        usleep(2000);
    assert_int_equal(meddle("SELECT count(*) FROM @schema_version"), 15);
    pg_do(scratch.pg, "SET lock_timeout = '30s'");
    pg_do(scratch.pg, "UPDATE holdfast.run SET updated_at = 1");
    pg_do(reader, "COMMIT");
    PQfinish(reader);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(meddle("SELECT count(*) FROM @schema_version"), newest_schema());
}

static void a_migration_that_broke_off_is_done_again(void **state)
{
    (void)state;
    if (!on_postgres)
        return; /* there every migration is one transaction */
    hf_close(open_old(2));
    pg_do(scratch.pg, "CREATE INDEX run_tag_run ON holdfast.run_tag (tag)");
    pg_do(scratch.pg, "UPDATE pg_index SET indisvalid = false "
                      "WHERE indexrelid = 'holdfast.run_tag_run'::regclass");
    hf_close(scratch_open(url));
    assert_string_equal(pg_text(scratch.pg, "SELECT indexdef FROM pg_indexes "
                                            "WHERE indexname = 'run_tag_run'"),
                        "CREATE INDEX run_tag_run ON holdfast.run_tag USING btree (run_id)");
}

/* A function with more arguments is another one: what was made of the old one, and who may call it, must stay. */
static void what_depends_on_an_sql_function_goes_on_working(void **state)
{
    char role
        [40]; /* roles belong to the whole server, where the same test may run for another build */
    (void)state;
    if (!on_postgres)
        return; /* there are none */
    snprintf(role, sizeof role, "hf_migrated_%ld", (long)getpid());
    hf_client *old = open_old(5);
    hf_workflow work = { .name = "work" };
    assert_ok(hf_workflow_put(old, &work, 0, err));
    hf_close(old);
    pg_do(
        scratch.pg,
        "CREATE ROLE %1$s; GRANT USAGE ON SCHEMA holdfast TO %1$s;"
        "GRANT EXECUTE ON FUNCTION holdfast.trigger(text, jsonb, text, int, timestamptz, interval, "
        "interval, timestamptz, int, text, text, text[], text, text, text) TO %1$s;"
        "CREATE TABLE public.invoice (id int, run uuid DEFAULT holdfast.trigger('work', key => "
        "'k'))",
        role);
    hf_close(scratch_open(url));
    pg_do(scratch.pg, "INSERT INTO public.invoice (id) VALUES (1)");
    assert_int_equal(pg_number(scratch.pg,
                               "SELECT count(*) FROM public.invoice i JOIN holdfast.run r "
                               "ON r.id = i.run AND r.key = 'k'"),
                     1);
    pg_do(scratch.pg, "SET ROLE %s", role);
    pg_do(scratch.pg, "SELECT holdfast.trigger('work', '1'::jsonb, flow_key => 'a')");
    assert_string_equal(pg_refusal(scratch.pg, "SELECT holdfast.trigger('work')"), "42501");
    pg_do(scratch.pg, "RESET ROLE");
    assert_int_equal(pg_number(scratch.pg, "SELECT count(*) FROM pg_proc WHERE proname = "
                                           "'trigger_before_006'"),
                     1);
    pg_do(scratch.pg, "DROP OWNED BY %1$s; DROP ROLE %1$s", role);
}

/* ---- Steps of before ---- */

enum { AT_A_STEP = 2500 }; /* more than are written at once */

static int64_t listed_at(hf_client *client, const char *step)
{
    hf_filter filter = HF_FILTER_INIT;
    hf_runs *page = NULL;
    int64_t count = 0;
    char next[HF_ID_TEXT];
    filter.current_step = step;
    filter.limit = 1000;
    do {
        assert_ok(hf_list(client, &page, &filter, err));
        count += (int64_t)page->count;
        filter.cursor = page->next ? strcpy(next, page->next) : NULL;
        hf_runs_free(page);
    } while (filter.cursor);
    return count;
}

/* Runs as a program of schema 16 left them: one of each status, again and again, the last ones of another tenant. */
static void leave_runs_at_steps(void)
{
    hf_client *old = open_old(16);
    hf_workflow work = { .name = "work" };
    assert_ok(hf_workflow_put(old, &work, 0, err));
    assert_ok(hf_tenant_create(old, "other", err));
    hf_close(old);
    pg_do(scratch.pg,
          "INSERT INTO holdfast.run (tenant_id, id, workflow_id, lane, status, run_at, created_at, "
          "updated_at, current_step) "
          "SELECT CASE WHEN n > %1$d THEN t.id ELSE w.tenant_id END, gen_random_uuid(), w.id, "
          "w.lane, n %% 7, CASE WHEN n %% 7 <= 1 THEN holdfast.now() + 3600000000 END, n, n, "
          "CASE WHEN n %% 2 = 0 THEN 'pack' END "
          "FROM holdfast.workflow w, holdfast.tenant t, generate_series(1, %1$d + 100) n "
          "WHERE w.name = 'work' AND t.name = 'other'",
          AT_A_STEP);
}

static void runs_of_before_are_listed_by_their_step(void **state)
{
    (void)state;
    if (!on_postgres)
        return; /* there an index does it */
    leave_runs_at_steps();
    hf_client *newer = scratch_open(url);
    assert_int_equal(listed_at(newer, "pack"), AT_A_STEP / 2);
    assert_int_equal(pg_number(scratch.pg, "SELECT count(*) FROM holdfast.run "
                                           "WHERE rest_step IS NOT NULL AND (status = 1 OR "
                                           "current_step IS NULL)"),
                     0);
    assert_int_equal(pg_number(scratch.pg, "SELECT count(*) FROM holdfast.run WHERE status <> 1 "
                                           "AND rest_step IS NULL AND current_step IS NOT NULL"),
                     0);
    hf_close(newer);
}

static void what_a_program_of_before_leaves_later_can_be_listed_too(void **state)
{
    (void)state;
    if (!on_postgres)
        return; /* there an index does it */
    leave_runs_at_steps();
    hf_client *newer = scratch_open(url);
    pg_do(scratch.pg, "UPDATE holdfast.run SET current_step = 'send' WHERE status = 4");
    assert_int_equal(listed_at(newer, "send"), 0);
    pg_do(scratch.pg, "CALL holdfast.fill_rest_steps()");
    assert_int_equal(listed_at(newer, "send"),
                     pg_number(scratch.pg, "SELECT count(*) FROM holdfast.run r "
                                           "JOIN holdfast.workflow w ON w.id = r.workflow_id "
                                           "WHERE r.status = 4 AND r.tenant_id = w.tenant_id"));
    hf_close(newer);
}

static void *fill_steps(void *arg)
{
    PGconn *pg = arg;
    PQclear(PQexec(pg, "CALL holdfast.fill_rest_steps()"));
    return NULL;
}

/* What somebody has locked is waited for, and nothing else has to wait with it. */
static void a_locked_run_of_before_is_listed_by_its_step(void **state)
{
    static const char *const left = "SELECT count(*) FROM holdfast.run WHERE status <> 1 AND "
                                    "current_step IS NOT NULL AND rest_step IS NULL";
    pthread_t filler;
    (void)state;
    if (!on_postgres)
        return; /* there is one writer */
    leave_runs_at_steps();
    hf_close(scratch_open(url));
    pg_do(scratch.pg, "UPDATE holdfast.run SET rest_step = NULL");
    PGconn *locker = pg_connect(scratch.url);
    PGconn *other = pg_connect(scratch.url);
    pg_do(locker, "BEGIN");
    pg_do(locker, "SELECT 1 FROM holdfast.run WHERE status = 4 AND current_step IS NOT NULL "
                  "LIMIT 1 FOR UPDATE");
    int64_t before = pg_number(scratch.pg, "%s", left);
    assert_int_equal(pthread_create(&filler, NULL, fill_steps, other), 0);
    for (int i = 0; i < 24000 && pg_number(scratch.pg, "%s", left) == before; i++)
        usleep(5000);
    pg_do(scratch.pg, "SET lock_timeout = '60s'");
    pg_do(scratch.pg, "UPDATE holdfast.run SET updated_at = 1 "
                      "WHERE status <> 4 OR current_step IS NULL");
    assert_true(pg_number(scratch.pg, "%s", left) >= 1);
    pg_do(locker, "COMMIT");
    pthread_join(filler, NULL);
    assert_int_equal(pg_number(scratch.pg, "%s", left), 0);
    PQfinish(locker);
    PQfinish(other);
}

/* ---- Mail that is shared ---- */

enum { CHILDREN = 500 };

static hf_claims *claim_all(hf_client *client, const char *workflow)
{
    hf_claim_spec spec = HF_CLAIM_INIT;
    hf_claims *claims = NULL;
    spec.worker = "anna";
    spec.patterns = &workflow;
    spec.pattern_count = 1;
    spec.limit = CHILDREN;
    assert_ok(hf_claim(client, &claims, &spec, err));
    return claims;
}

static hf_transition turn_of(const hf_claimed *held, hf_turn turn)
{
    return (hf_transition){ .version = HF_TRANSITION_VERSION,
                            .run = held->run.id,
                            .run_version = held->run.version,
                            .turn = turn,
                            .worker = "anna" };
}

static void start_family(hf_client *client)
{
    static hf_trigger_spec specs[CHILDREN];
    hf_workflow work = { .name = "work" };
    hf_workflow child = { .name = "child" };
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    hf_triggered made;
    assert_ok(hf_workflow_put(client, &work, 0, err));
    assert_ok(hf_workflow_put(client, &child, 0, err));
    spec.workflow = "work";
    assert_ok(hf_trigger(client, &made, &spec, err));
    for (int i = 0; i < CHILDREN; i++) {
        specs[i] = (hf_trigger_spec)HF_TRIGGER_INIT;
        specs[i].workflow = "child";
    }
    hf_claims *parent = claim_all(client, "work");
    hf_transition wait = turn_of(&parent->items[0], HF_TURN_WAIT);
    wait.children = specs;
    wait.child_count = CHILDREN;
    wait.wait_children = CHILDREN;
    assert_ok(hf_commit(client, &wait, NULL, err));
    hf_claims_free(parent);
}

/* As a worker does it. Returns how many rows of mail the parent has got. */
static int64_t end_family(hf_client *client)
{
    static struct hf__op ops[CHILDREN];
    static hf_transition ends[CHILDREN];
    start_family(client);
    hf_claims *children = claim_all(client, "child");
    assert_int_equal(children->count, CHILDREN);
    for (size_t i = 0; i < CHILDREN; i++) {
        ends[i] = turn_of(&children->items[i], HF_TURN_SUCCEED);
        ops[i] = (struct hf__op){ .kind = HF__OP_COMMIT,
                                  .tenant = client->tenant_id,
                                  .commit = { .transition = &ends[i],
                                              .child = &children->items[i].run } };
    }
    hf__engine_apply(client->engine, ops, CHILDREN);
    hf_claims_free(children);
    hf_claims *parent = claim_all(client, "work");
    assert_int_equal(parent->count, 1);
    assert_int_equal(parent->items[0].mail_count, CHILDREN);
    hf_claims_free(parent);
    return meddle("SELECT count(*) FROM @signal");
}

static void programs_that_cannot_read_shared_mail_go_on_where_they_were(void **state)
{
    (void)state;
    hf_client *older = open_old(driver_at_work()->shares_mail - 1);
    hf_client *newer = scratch_open(url);
    assert_int_equal(meddle("SELECT max(version) FROM @schema_version"), newest_schema());
    assert_int_equal(end_family(newer), CHILDREN);
    hf_close(newer);
    hf_close(older);
}

static void in_a_new_store_mail_is_shared_and_such_programs_are_refused(void **state)
{
    hf_client *older = NULL;
    hf_error failure = { 0 };
    const struct hf__engine_options inner = { .max_schema = driver_at_work()->shares_mail - 1 };
    (void)state;
    hf_client *newer = scratch_open(url);
    assert_true(end_family(newer) < CHILDREN / 2);
    assert_int_equal(hf__open(&older, url, NULL, &inner, &failure), HF_SCHEMA_NEWER);
    assert_int_equal(meddle("SELECT min(min_writer) FROM @schema_version"),
                     driver_at_work()->min_writer);
    hf_close(newer);
}

/* How many of a few lone triggers let their runs be seen before they were on disk: the first learns the lane and that a worker
 * is idle. */
static int64_t count_deferred(hf_client *client)
{
    hf_workflow work = { .name = "work" };
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    spec.workflow = "work";
    assert_ok(hf_workflow_put(client, &work, 0, err));
    meddle("INSERT INTO @worker (name, tenants, serves, host, pid, program, threads, idle, "
           "started_at, seen_at, expires_at) "
           "VALUES ('idle', '[]', '[]', 'h', 1, 'p', 1, true, 0, 0, 0)");
    for (int i = 0; i < 20; i++) {
        hf_triggered out;
        assert_ok(hf_trigger(client, &out, &spec, err));
    }
    return meddle("SELECT count(*) FROM @run WHERE deferred");
}

/* Programs of the version before would begin with what a crash may take back. */
static void only_a_new_store_shows_runs_that_are_not_on_disk(void **state)
{
    (void)state;
    if (!on_postgres)
        skip();
    hf_client *older = open_old(driver_at_work()->defers - 1);
    hf_client *newer = scratch_open(url);
    assert_int_equal(count_deferred(newer), 0);
    hf_close(newer);
    hf_close(older);
    tear_down(state);
    set_up(state);
    newer = scratch_open(url);
    assert_true(count_deferred(newer) > 0);
    hf_close(newer);
}

static void *open_older(void *arg)
{
    hf_client **older = arg;
    hf_error failure = { 0 };
    const struct hf__engine_options inner = { .max_schema = driver_at_work()->shares_mail - 1 };
    if (hf__open(older, url, NULL, &inner, &failure) != HF_OK)
        *older = NULL;
    return NULL;
}

/* Whoever of them made the store: an older program never meets mail that is shared. */
static void an_older_and_a_newer_program_make_one_store(void **state)
{
    enum { TRIES = 10 };
    for (int i = 0; i < TRIES; i++) {
        hf_client *older = NULL;
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, open_older, &older), 0);
        hf_client *newer = scratch_open(url);
        pthread_join(thread, NULL);
        if (older)
            assert_int_equal(end_family(newer), CHILDREN);
        hf_close(newer);
        hf_close(older);
        tear_down(state);
        set_up(state);
    }
}

/* ---- Refusals ---- */

static void assert_refused(hf_code expected, bool no_migrate, const char *words)
{
    hf_client *client = NULL;
    hf_error failure = { 0 };
    hf_options options = HF_OPTIONS_INIT;
    options.no_migrate = no_migrate;
    assert_int_equal(hf_open(&client, url, &options, &failure), expected);
    if (!strstr(failure.message, words))
        fail_msg("\"%s\" does not say \"%s\"", failure.message, words);
}

static void a_schema_that_needs_a_newer_program_is_refused(void **state)
{
    (void)state;
    hf_close(scratch_open(url));
    meddle("INSERT INTO @schema_version (version, name, min_writer, applied_at) "
           "VALUES (99, 'future', 98, 0)");
    assert_refused(HF_SCHEMA_NEWER, false, "install a newer holdfast");
    assert_refused(HF_SCHEMA_NEWER, true, "needs a program that knows version 98");
}

static void a_newer_schema_that_suits_older_programs_is_used(void **state)
{
    (void)state;
    hf_client *client = scratch_open(url);
    hf_close(client);
    meddle("INSERT INTO @schema_version (version, name, min_writer, applied_at) "
           "VALUES (99, 'future', 1, 0)");
    client = scratch_open(url);
    int in_store = 0, newest = 0;
    assert_ok(hf_schema(client, &in_store, &newest, err));
    assert_int_equal(in_store, 99);
    assert_int_equal(newest, newest_schema());
    hf_close(client);
}

static void an_older_schema_is_refused_when_migrations_are_off(void **state)
{
    (void)state;
    hf_close(open_old(1));
    assert_refused(HF_SCHEMA_OLDER, true, "run `holdfast migrate`");
    assert_int_equal(meddle("SELECT max(version) FROM @schema_version"), 1);
    hf_close(scratch_open(url));
    hf_options options = HF_OPTIONS_INIT;
    hf_client *client;
    options.no_migrate = true;
    assert_ok(hf_open(&client, url, &options, err));
    hf_close(client);
}

static void an_empty_store_is_refused_when_migrations_are_off(void **state)
{
    (void)state;
    assert_refused(HF_SCHEMA_OLDER, true, "run `holdfast migrate`");
}

#define MIGRATION_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MIGRATION_TEST(many_processes_create_one_schema),
        MIGRATION_TEST(many_processes_migrate_once),
        MIGRATION_TEST(a_lock_by_number_keeps_nobody_from_migrating),
        MIGRATION_TEST(a_store_is_migrated_while_older_programs_work),
        MIGRATION_TEST(older_programs_go_on_listing_by_time_and_by_flow_key),
        MIGRATION_TEST(a_new_store_has_nothing_that_older_programs_alone_need),
        MIGRATION_TEST(a_long_transaction_holds_up_a_migration_and_nobody_else),
        MIGRATION_TEST(a_migration_that_broke_off_is_done_again),
        MIGRATION_TEST(what_depends_on_an_sql_function_goes_on_working),
        MIGRATION_TEST(runs_of_before_are_listed_by_their_step),
        MIGRATION_TEST(what_a_program_of_before_leaves_later_can_be_listed_too),
        MIGRATION_TEST(a_locked_run_of_before_is_listed_by_its_step),
        MIGRATION_TEST(programs_that_cannot_read_shared_mail_go_on_where_they_were),
        MIGRATION_TEST(in_a_new_store_mail_is_shared_and_such_programs_are_refused),
        MIGRATION_TEST(only_a_new_store_shows_runs_that_are_not_on_disk),
        MIGRATION_TEST(an_older_and_a_newer_program_make_one_store),
        MIGRATION_TEST(a_schema_that_needs_a_newer_program_is_refused),
        MIGRATION_TEST(a_newer_schema_that_suits_older_programs_is_used),
        MIGRATION_TEST(an_older_schema_is_refused_when_migrations_are_off),
        MIGRATION_TEST(an_empty_store_is_refused_when_migrations_are_off),
    };
    int failed = cmocka_run_group_tests_name("on SQLite", tests, NULL, NULL);
    on_postgres = true;
    if (scratch_server())
        failed += cmocka_run_group_tests_name("on PostgreSQL", tests, NULL, NULL);
    return failed;
}
