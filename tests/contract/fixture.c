/* The store of a contract test: opened once per program, on one backend, through a driver that can lose answers. F9.
 * SPDX-License-Identifier: Apache-2.0 */
#include "contract/fixture.h"

#include <stdatomic.h>
#include <unistd.h>

#include "client/client.h"
#include "contract/sql.h"
#include "kernel/batch.h"
#include "store/sqlite.h"
#include "support/folder.h"
#include "support/invariants.h"
#include "util/clock.h"
#include "util/error.h"

#define START HF_SECONDS(1900000000) /* 2030: nobody's real time */
#define SKIPPED 77                   /* what Meson takes for a skipped test */

struct fixture fx;
static _Atomic int64_t time_now = START;
static PGconn *admin;     /* to the server, for creating and dropping */
static PGconn *sql_conn;  /* to the test's own database */
static char database[64]; /* on PostgreSQL */
static char directory[FOLDER_MOST];

/* ---- The driver's faults ---- */

static struct hf__driver driver;
static const struct hf__driver *real;
static struct hf__database *opened;
static struct hf__conn *_Atomic broken; /* the connection that an answer was lost with */
static atomic_int answers_to_lose;
static atomic_int commits_to_lose;
static atomic_int lost_count;
static atomic_int commit_count;
static void (*_Atomic lost_callback)(void);
static void (*_Atomic committed_callback)(void);
static void (*_Atomic disk_callback)(void);
static atomic_int sent[HF__STMT_COUNT];
static atomic_int next_fate; /* plus 1; 0: as the backend does it */
static atomic_bool foretells_nothing;
static void (*_Atomic fate_callback)(void);
static _Thread_local struct {
    hf__told told; /* NULL: the commit at hand is not foretold */
    struct hf__batch *batch;
} foretold;

void lose_answers(int count)
{
    atomic_store(&answers_to_lose, count);
}

void lose_commits(int count)
{
    atomic_store(&commits_to_lose, count);
}

void when_lost(void (*callback)(void))
{
    atomic_store(&lost_callback, callback);
}

void when_committed(void (*callback)(void))
{
    atomic_store(&committed_callback, callback);
}

int answers_lost(void)
{
    return atomic_load(&lost_count);
}

int commits_sent(void)
{
    return atomic_load(&commit_count);
}

void foretell_next(enum fate fate, void (*meanwhile)(void))
{
    atomic_store(&fate_callback, meanwhile);
    atomic_store(&next_fate, (int)fate + 1);
}

bool fate_was_met(void)
{
    return atomic_load(&next_fate) == 0;
}

void when_disk_is_asked(void (*callback)(void))
{
    atomic_store(&disk_callback, callback);
}

int times_sent(int stmt)
{
    return atomic_load(&sent[stmt]);
}

static bool is_armed(atomic_int *counter)
{
    int left = atomic_load(counter);
    while (left > 0)
        if (atomic_compare_exchange_weak(counter, &left, left - 1))
            return true;
    return false;
}

static hf_code lose(struct hf__conn *conn, bool *unknown, hf_error *err)
{
    atomic_store(&broken, conn);
    atomic_fetch_add(&lost_count, 1);
    void (*callback)(void) = atomic_exchange(&lost_callback, NULL);
    if (callback)
        callback();
    *unknown = true;
    return hf__fail(err, HF_UNAVAILABLE, "the answer was lost on purpose");
}

void foretell_nothing(bool nothing)
{
    atomic_store(&foretells_nothing, nothing);
}

static void faulty_foretell(struct hf__conn *conn, hf__told told, void *arg)
{
    if (atomic_load(&foretells_nothing))
        return;
    if (atomic_load(&next_fate)) {
        foretold.told = told;
        foretold.batch = arg;
    } else if (real->foretell) {
        real->foretell(conn, told, arg);
    }
}

static hf_code watched_send(struct hf__conn *conn, enum hf__stmt stmt,
                            const struct hf__table *params, struct hf__table *result, hf_error *err)
{
    atomic_fetch_add(&sent[stmt], 1);
    if (stmt == HF__STMT_IS_ON_DISK) {
        void (*callback)(void) = atomic_load(&disk_callback);
        if (callback)
            callback();
    }
    return real->send(conn, stmt, params, result, err);
}

static hf_code refuse(struct hf__conn *conn, hf_error *err)
{
    real->rollback(conn);
    hf__fail(err, HF_STORE, "the commit was refused on purpose");
    strcpy(err->sqlstate, "40001");
    return err->code;
}

/* A claim that found nothing, or a chore of the engine's own, leaves the fate to the next. */
static bool is_meant(const struct hf__op *op)
{
    return op->told && strncmp(op->claim.claims->items[0].run.workflow, "holdfast.", 9) != 0;
}

/* As PostgreSQL does it, on any backend. */
static hf_code commit_foretold(struct hf__conn *conn, const struct hf__wake *wake, bool *unknown,
                               hf_error *err)
{
    hf__told told = foretold.told;
    foretold.told = NULL;
    hf_code code = real->sync(conn, err);
    if (code != HF_OK)
        return code;
    told(foretold.batch);
    if (!is_meant(foretold.batch->ops[0]))
        return real->commit(conn, wake, unknown, err);
    enum fate fate = (enum fate)(atomic_exchange(&next_fate, 0) - 1);
    void (*meanwhile)(void) = atomic_load(&fate_callback);
    if (meanwhile)
        meanwhile();
    if (fate == COMMIT_IS_REFUSED)
        return refuse(conn, err);
    if (fate == COMMIT_IS_PREVENTED)
        real->rollback(conn);
    else
        code = real->commit(conn, wake, unknown, err);
    return fate == COMMIT_WORKS ? code : lose(conn, unknown, err);
}

static hf_code faulty_commit(struct hf__conn *conn, const struct hf__wake *wake, bool *unknown,
                             hf_error *err)
{
    atomic_fetch_add(&commit_count, 1);
    if (foretold.told)
        return commit_foretold(conn, wake, unknown, err);
    if (is_armed(&commits_to_lose)) {
        real->rollback(conn);
        return lose(conn, unknown, err);
    }
    hf_code code = real->commit(conn, wake, unknown, err);
    void (*callback)(void) = code == HF_OK ? atomic_exchange(&committed_callback, NULL) : NULL;
    if (callback)
        callback();
    if (code == HF_OK && is_armed(&answers_to_lose))
        return lose(conn, unknown, err);
    return code;
}

static bool faulty_lost(const struct hf__conn *conn)
{
    return conn == atomic_load(&broken) || real->lost(conn);
}

static void faulty_disconnect(struct hf__conn *conn)
{
    struct hf__conn *expected = conn;
    atomic_compare_exchange_strong(&broken, &expected, NULL);
    real->disconnect(conn);
}

static void faulty_unwatch(struct hf__watch *watch)
{
    struct hf__conn *expected = real->watch_conn ? real->watch_conn(watch) : NULL;
    if (expected)
        atomic_compare_exchange_strong(&broken, &expected, NULL);
    real->unwatch(watch);
}

static hf_code noting_open(struct hf__database **out, const char *url,
                           const struct hf__clock *clock, hf_error *err)
{
    hf_code code = real->open(out, url, clock, err);
    opened = code == HF_OK ? *out : NULL;
    return code;
}

static void make_driver(void)
{
    real = fx.backend == BACKEND_POSTGRES ? &hf__postgres_driver : &hf__sqlite_driver;
    driver = *real;
    driver.open = noting_open;
    driver.send = watched_send;
    driver.foretell = faulty_foretell;
    driver.commit = faulty_commit;
    driver.lost = faulty_lost;
    driver.disconnect = faulty_disconnect;
    driver.unwatch = faulty_unwatch;
}

/* ---- Time ---- */

static int64_t read_time(void *arg)
{
    (void)arg;
    return atomic_load(&time_now);
}

static const struct hf__clock test_clock = { .now = read_time };

int64_t now(void)
{
    return atomic_load(&time_now);
}

void advance(int64_t us)
{
    atomic_fetch_add(&time_now, us);
    if (fx.backend == BACKEND_POSTGRES)
        sql("UPDATE public.test_clock SET us = %lld", (long long)now());
}

/* ---- Opening and closing ---- */

static void command(PGconn *conn, const char *text)
{
    PGresult *result = PQexec(conn, text);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        fprintf(stderr, "%s: %s\n", text, PQresultErrorMessage(result));
        exit(1);
    }
    PQclear(result);
}

static PGconn *connect_to(const char *url)
{
    PGconn *conn = PQconnectdb(url);
    if (PQstatus(conn) != CONNECTION_OK) {
        fprintf(stderr, "%s: %s\n", url, PQerrorMessage(conn));
        exit(1);
    }
    command(conn, "SET client_min_messages = warning");
    return conn;
}

/* The server's URL with another database. */
static void url_of_database(const char *url)
{
    const char *authority = strstr(url, "://");
    const char *slash = authority ? strchr(authority + 3, '/') : NULL;
    const char *options = slash ? strchr(slash, '?') : NULL;
    if (!slash) {
        fprintf(stderr, "HOLDFAST_TEST_POSTGRES must name a database: %s\n", url);
        exit(1);
    }
    snprintf(fx.url, sizeof fx.url, "%.*s/%s%s", (int)(slash - url), url, database,
             options ? options : "");
}

/* A copy of one that has the tables, if there is one: to make them takes longer. */
static void create_database(void)
{
    char text[200];
    const char *url = getenv("HOLDFAST_TEST_POSTGRES");
    const char *pristine = getenv("HOLDFAST_TEST_PRISTINE");
    snprintf(database, sizeof database, "contract_%ld_%lld", (long)getpid(),
             (long long)hf__monotonic_us());
    admin = connect_to(url);
    snprintf(text, sizeof text, "CREATE DATABASE %s TEMPLATE %s STRATEGY file_copy", database,
             pristine && *pristine ? pristine : "template1");
    command(admin, text);
    url_of_database(url);
}

static void choose_store(void)
{
    if (fx.backend == BACKEND_MEMORY) {
        strcpy(fx.url, "sqlite::memory:");
    } else if (fx.backend == BACKEND_FILE) {
        folder_make(directory);
        folder_put_tables(directory, "store.db");
        snprintf(fx.url, sizeof fx.url, "sqlite:%s/store.db", directory);
    } else {
        create_database();
    }
}

static void open_root(void)
{
    struct hf__engine_options inner = { .clock = &test_clock, .driver = &driver };
    if (hf__open(&fx.root, fx.url, NULL, &inner, &fx.error) != HF_OK) {
        fprintf(stderr, "%s: %s\n", fx.url, fx.error.message);
        exit(1);
    }
}

/* PostgreSQL's clock is a function in the database: from here on it reads a table of the test's. */
static void take_over_clock(void)
{
    char text[300];
    hf_close(fx.root);
    sql_conn = connect_to(fx.url);
    snprintf(text, sizeof text,
             "CREATE TABLE public.test_clock (us bigint);"
             "INSERT INTO public.test_clock VALUES (%lld);"
             "CREATE OR REPLACE FUNCTION holdfast.now() RETURNS bigint LANGUAGE sql STABLE AS "
             "$$ SELECT us FROM public.test_clock $$",
             (long long)now());
    command(sql_conn, text);
    command(sql_conn, "SET search_path = holdfast, public");
    open_root();
}

static void open_store(void)
{
    choose_store();
    make_driver();
    open_root();
    if (fx.backend == BACKEND_POSTGRES) {
        take_over_clock();
        sql_use_postgres(sql_conn);
    } else {
        sql_use_sqlite(opened);
    }
}

static void close_store(void)
{
    char text[200];
    sql_forget();
    hf_close(fx.root);
    if (fx.backend == BACKEND_POSTGRES) {
        PQfinish(sql_conn);
        snprintf(text, sizeof text, "DROP DATABASE %s WITH (FORCE)", database);
        command(admin, text);
        PQfinish(admin);
    } else if (fx.backend == BACKEND_FILE) {
        if (folder_remove(directory) != 0)
            fprintf(stderr, "%s is left behind\n", directory);
    }
}

static bool choose_backend(const char *name)
{
    static const char *const names[] = { "memory", "file", "postgres" };
    for (int i = 0; i < 3; i++)
        if (strcmp(names[i], name) == 0) {
            fx.backend = (enum backend)i;
            return true;
        }
    return false;
}

int fixture_run(int argc, char **argv, const char *name, const struct CMUnitTest *tests,
                size_t count)
{
    char title[64];
    if (argc < 2 || !choose_backend(argv[1])) {
        fprintf(stderr, "usage: %s memory|file|postgres [TEST]\n", argv[0]);
        return 2;
    }
    if (fx.backend == BACKEND_POSTGRES && !getenv("HOLDFAST_TEST_POSTGRES")) {
        fprintf(stderr, "HOLDFAST_TEST_POSTGRES is not set: skipped\n");
        return SKIPPED;
    }
    if (argc > 2)
        cmocka_set_test_filter(argv[2]);
    open_store();
    snprintf(title, sizeof title, "%s on %s", name, argv[1]);
    int failed = _cmocka_run_group_tests(title, tests, count, NULL, NULL);
    close_store();
    return failed ? 1 : 0;
}

static hf_client *open_through(const struct hf__driver *chosen)
{
    struct hf__engine_options inner = { .clock = &test_clock, .driver = chosen };
    hf_options options = HF_OPTIONS_INIT;
    hf_client *client = NULL;
    options.tenant = fx.tenant;
    options.actor = "tester";
    if (fx.backend == BACKEND_MEMORY)
        return NULL;
    assert_ok(hf__open(&client, fx.url, &options, &inner, &fx.error));
    return client;
}

hf_client *open_beside(void)
{
    return open_through(NULL);
}

hf_client *open_beside_with_faults(void)
{
    return open_through(&driver);
}

/* ---- One test ---- */

static struct kept {
    void *memory;
    void (*free_it)(void *);
    struct kept *next;
} * kept;

void *keep(void *memory, void (*free_it)(void *))
{
    struct kept *entry = malloc(sizeof *entry);
    assert_non_null(entry);
    *entry = (struct kept){ memory, free_it, kept };
    kept = entry;
    return memory;
}

const char *text_of(const char *fmt, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, fmt);
    int length = vasprintf(&text, fmt, args);
    va_end(args);
    assert_true(length >= 0);
    return keep(text, free);
}

static void free_kept(void)
{
    while (kept) {
        struct kept *entry = kept;
        kept = entry->next;
        entry->free_it(entry->memory);
        free(entry);
    }
}

static hf_client *new_tenant(const char *name)
{
    hf_client *client = NULL;
    assert_ok(hf_tenant_create(fx.root, name, &fx.error));
    assert_ok(hf_open_as(&client, fx.root, name, "tester", &fx.error));
    return client;
}

int fixture_set_up(void **state)
{
    static int counter;
    (void)state;
    counter++;
    advance(HF_DAYS(1)); /* nothing of an earlier test is new */
    snprintf(fx.tenant, sizeof fx.tenant, "test-%d", counter);
    snprintf(fx.other_tenant, sizeof fx.other_tenant, "other-%d", counter);
    fx.client = new_tenant(fx.tenant);
    fx.other = new_tenant(fx.other_tenant);
    define(WORK);
    return 0;
}

static bool query(void *arg, const char *text, invariants_row row, void *row_arg)
{
    char error[500];
    (void)arg;
    return sql_run(text, row, row_arg, error, sizeof error);
}

int fixture_tear_down(void **state)
{
    char complaint[600];
    char tenants[80];
    struct invariants_source source = {
        .query = query,
        .id_format = fx.backend == BACKEND_POSTGRES ? "CAST(%s AS text)" : "hex(%s)",
        .tenants = tenants,
        .now = now(),
        .rests = fx.backend == BACKEND_POSTGRES,
    };
    (void)state;
    snprintf(tenants, sizeof tenants, "'%s', '%s'", fx.tenant, fx.other_tenant);
    lose_answers(0);
    lose_commits(0);
    when_lost(NULL);
    when_disk_is_asked(NULL);
    atomic_store(&next_fate, 0);
    hf_close(fx.client);
    hf_close(fx.other);
    fx.client = fx.other = NULL;
    free_kept();
    if (invariants_hold(&source, complaint, sizeof complaint))
        return 0;
    fail_msg("the journal does not equal the state: %s", complaint);
    return -1;
}

void fixture_assert_code(hf_code code, hf_code expected, const char *call, const char *file,
                         int line)
{
    if (code == expected)
        return;
    print_error("%s is %s (%s), not %s\n", call, hf_code_name(code),
                code == HF_OK ? "" : fx.error.message, hf_code_name(expected));
    _fail(file, line);
}
