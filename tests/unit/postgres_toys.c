/* SPDX-License-Identifier: Apache-2.0 */
#include "postgres_toys.h"

extern const struct hf__statement hf__postgres_statements[];

const unsigned char mixed[] = { HF__INT, HF__BIG, HF__TEXT, HF__UUID, HF__BOOL };
static const unsigned char texts[] = { HF__TEXT, HF__TEXT, HF__TEXT, HF__TEXT, HF__TEXT,
                                       HF__TEXT, HF__TEXT, HF__TEXT, HF__TEXT, HF__TEXT };
static const unsigned char big[] = { HF__BIG };
static const unsigned char item[] = { HF__INT, HF__TEXT };

#define TAKES(how, count, types) .takes = HF__TAKES_##how, .nparams = count, .param_types = types
#define GIVES(count, types) .ncolumns = count, .column_types = types

static const struct hf__statement toys[TOYS] = {
    [ECHO_ROWS] = { .name = "echo_rows",
                    TAKES(ROWS, 5, mixed),
                    GIVES(5, mixed),
                    .sql = "SELECT * FROM unnest($1, $2, $3, $4, $5)" },
    [ECHO_ONE] = { .name = "echo_one",
                   TAKES(ONE, 5, mixed),
                   GIVES(5, mixed),
                   .sql = "SELECT $1, $2, $3, $4, $5" },
    [ECHO_WIDE] = { .name = "echo_wide",
                    TAKES(ROWS, 10, texts),
                    GIVES(10, texts),
                    .sql = "SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)" },
    [ADD] = { .name = "add",
              TAKES(ROWS, 2, item),
              GIVES(1, item),
              .sql = "INSERT INTO " SCHEMA ".item SELECT * FROM unnest($1, $2) RETURNING id" },
    [COUNT] = { .name = "count", GIVES(1, big), .sql = "SELECT count(*) FROM " SCHEMA ".item" },
    [EXPLAIN_FIND] = { .name = "explain_find",
                       TAKES(ROWS, 1, item),
                       GIVES(1, texts),
                       .sql = "EXPLAIN SELECT i.id, i.note FROM unnest($1) k(id) JOIN " SCHEMA
                              ".item i ON i.id = k.id" },
    [BACKEND] = { .name = "backend", GIVES(1, item), .sql = "SELECT pg_backend_pid()" },
    [SLEEP] = { .name = "sleep", TAKES(ONE, 1, item), .sql = "SELECT pg_sleep($1)" },
    [SETTING] = { .name = "setting",
                  TAKES(ONE, 1, texts),
                  GIVES(1, texts),
                  .sql = "SELECT current_setting($1)" },
    [RAISE] = { .name = "raise", TAKES(ONE, 1, texts), .sql = "SELECT " SCHEMA ".raise($1)" },
    [NO_SCHEMA] = { .name = "no_schema", .sql = "SELECT 1 FROM no_such_schema.t" },
    [FORGET_PREPARED] = { .name = "forget_prepared", .sql = "DEALLOCATE ALL" },
    [ADD_SLOWLY_COMMITTED] = { .name = "add_slowly",
                               TAKES(ROWS, 2, item),
                               .sql = "INSERT INTO " SCHEMA ".slow SELECT * FROM unnest($1, $2)" },
};

const struct hf__statement notify = { .name = "notify_any",
                                      TAKES(ONE, 2, texts),
                                      .sql = "SELECT pg_notify($1, $2)" };

static const char set_up_sql[] =
    "CREATE SCHEMA " SCHEMA ";"
    "CREATE SCHEMA holdfast;"
    "CREATE TABLE holdfast.schema_version (version int PRIMARY KEY);"
    "CREATE TABLE " SCHEMA ".item (id int PRIMARY KEY, note text);"
    "CREATE TABLE " SCHEMA ".slow (id int PRIMARY KEY, note text);"
    "CREATE FUNCTION " SCHEMA ".raise(code text) RETURNS void LANGUAGE plpgsql AS "
    "$$BEGIN RAISE EXCEPTION 'on purpose' USING ERRCODE = code; END$$;"
    "CREATE FUNCTION " SCHEMA ".doze() RETURNS trigger LANGUAGE plpgsql AS "
    "$$BEGIN PERFORM pg_sleep(600); RETURN NULL; END$$;"
    "CREATE CONSTRAINT TRIGGER doze AFTER INSERT ON " SCHEMA ".slow DEFERRABLE INITIALLY DEFERRED "
    "FOR EACH ROW EXECUTE FUNCTION " SCHEMA ".doze();";

const struct hf__driver *const driver = &hf__postgres_driver;
const char *url;
char own_url[URL_SIZE];
struct hf__statement statements[HF__STMT_COUNT];
struct hf__database *db, *pooled;
struct hf__arena arena;
PGconn *admin;
hf_error failure;

static char database[40];
static enum hf__stmt
    toy_at[TOYS]; /* toys take the places of statements that the driver itself does not use */

static bool used_by_driver(int stmt)
{
    return stmt == HF__STMT_NOTIFY_WORKERS || stmt == HF__STMT_NOTIFY_RUNS ||
           stmt == HF__STMT_APPLY_SETTINGS || stmt == HF__STMT_TRY_MIGRATE_LOCK ||
           stmt == HF__STMT_IS_AT_WORK || stmt == HF__STMT_END_SESSION ||
           stmt == HF__STMT_DEFER_FLUSH || stmt == HF__STMT_NOTIFY_EARLY ||
           stmt == HF__STMT_MAKE_DURABLE;
}

static void place_toys(void)
{
    memcpy(statements, hf__postgres_statements, sizeof statements);
    int place = 0;
    for (int i = 0; i < TOYS; i++) {
        while (used_by_driver(place))
            place++;
        assert_true(place < HF__STMT_COUNT);
        toy_at[i] = (enum hf__stmt)place;
        statements[place++] = toys[i];
    }
    statements[HF__STMT_NOTIFY_WORKERS] = notify;
}

void admin_do(const char *sql)
{
    PGresult *result = PQexec(admin, sql);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        fail_msg("%s", PQerrorMessage(admin));
    PQclear(result);
}

static void admin_do_with_database(const char *before, const char *after)
{
    char sql[200];
    snprintf(sql, sizeof sql, "%s %s %s", before, database, after);
    admin_do(sql);
}

static void with_parameter(char out[URL_SIZE], const char *to, const char *parameter)
{
    const char *separator = !*parameter ? "" : strchr(to, '?') ? "&" : "?";
    int length = snprintf(out, URL_SIZE, "%s%s%s", to, separator, parameter);
    assert_in_range(length, 0, URL_SIZE - 1);
}

struct hf__database *opened_with(const char *parameter)
{
    char text[URL_SIZE];
    with_parameter(text, own_url, parameter);
    struct hf__database *opened = NULL;
    if (hf__postgres_open_with(&opened, statements, text, NULL, &failure) != HF_OK)
        fail_msg("%s", failure.message);
    return opened;
}

static void connect_admin(const char *to)
{
    admin = PQconnectdb(to);
    if (PQstatus(admin) != CONNECTION_OK)
        fail_msg("%s", PQerrorMessage(admin));
}

int set_up(void **state)
{
    (void)state;
    url = getenv("HOLDFAST_TEST_POSTGRES");
    if (!url || !*url) {
        url = NULL;
        return 0;
    }
    connect_admin(url);
    snprintf(database, sizeof database, "holdfast_toys_%d", (int)getpid());
    admin_do_with_database("CREATE DATABASE", "");
    PQfinish(admin);
    char parameter[60];
    snprintf(parameter, sizeof parameter, "dbname=%s", database);
    with_parameter(own_url, url, parameter);
    connect_admin(own_url);
    admin_do(set_up_sql);
    place_toys();
    db = opened_with("");
    pooled = opened_with("prepare=off");
    return 0;
}

int tear_down(void **state)
{
    (void)state;
    if (!url)
        return 0;
    driver->close(db);
    driver->close(pooled);
    PQfinish(admin);
    connect_admin(url);
    admin_do_with_database("DROP DATABASE", "WITH (FORCE)");
    PQfinish(admin);
    hf__arena_free(&arena);
    return 0;
}

int before_each(void **state)
{
    (void)state;
    if (url) {
        admin_do("TRUNCATE " SCHEMA ".item, " SCHEMA ".slow");
        hf__arena_reset(&arena);
    }
    return 0;
}

struct hf__conn *connected(struct hf__database *to)
{
    struct hf__conn *conn = NULL;
    ok(driver->connect(&conn, to, &failure));
    return conn;
}

hf_code ask(struct hf__conn *conn, enum toy toy, const struct hf__table *params,
            struct hf__table *result, hf_error *out)
{
    return driver->send(conn, toy_at[toy], params, result, out);
}

struct hf__table table(int columns)
{
    struct hf__table made;
    hf__table_init(&made, &arena, columns);
    return made;
}

struct hf__table one_number(int64_t number)
{
    struct hf__table made = table(1);
    hf__table_add(&made)[0] = hf__number(number);
    return made;
}

struct hf__table one_text(const char *text)
{
    struct hf__table made = table(1);
    hf__table_add(&made)[0] = hf__text(text);
    return made;
}

struct hf__table items(int first, int count)
{
    struct hf__table made = table(2);
    for (int i = 0; i < count; i++) {
        struct hf__cell *row = hf__table_add(&made);
        row[0] = hf__number(first + i);
        row[1] = hf__text("note");
    }
    return made;
}

int64_t ask_number(struct hf__conn *conn, enum toy toy)
{
    struct hf__table answer = table(1);
    ok(ask(conn, toy, NULL, &answer, &failure));
    ok(driver->sync(conn, &failure));
    assert_int_equal(answer.nrows, 1);
    return hf__as_number(hf__table_row(&answer, 0)[0]);
}

int64_t stored(void)
{
    PGresult *result = PQexec(admin, "SELECT count(*) FROM " SCHEMA ".item");
    int64_t count = atoll(PQgetvalue(result, 0, 0));
    PQclear(result);
    return count;
}

void assert_failed(hf_code got, hf_code wanted, const char *sqlstate)
{
    if (got != wanted || strcmp(failure.sqlstate, sqlstate) != 0)
        fail_msg("%s %s: %s", hf_code_name(got), failure.sqlstate, failure.message);
}
