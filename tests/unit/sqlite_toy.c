/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite_toy.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TYPES(...)                                                                                 \
    (const unsigned char[])                                                                        \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define NAMES(...)                                                                                 \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static const char schema[] =
    "CREATE TABLE counter (n INTEGER NOT NULL); INSERT INTO counter VALUES (0);"
    "CREATE TABLE item (id BLOB, name TEXT UNIQUE, size INTEGER, ok INTEGER);"
    "CREATE TABLE log (name TEXT);"
    "CREATE TABLE schema_version (min_writer INTEGER);";

static const struct hf__statement statements[TOY_STATEMENTS] = {
    [TOY_INCREMENT] = { .name = "increment",
                        .sql = "UPDATE counter SET n = n + 1 RETURNING n;",
                        .ncolumns = 1,
                        .column_types = TYPES(HF__BIG),
                        .column_names = NAMES("n") },
    [TOY_COUNT] = { .name = "count",
                    .sql = "SELECT n FROM counter;",
                    .ncolumns = 1,
                    .column_types = TYPES(HF__BIG),
                    .column_names = NAMES("n") },
    [TOY_ADD_ITEMS] = { .name = "add_items",
                        .sql = "INSERT INTO item VALUES (?1, ?2, ?3, ?4);",
                        .takes = HF__TAKES_ROWS,
                        .nparams = 4,
                        .param_types = TYPES(HF__UUID, HF__TEXT, HF__BIG, HF__BOOL) },
    [TOY_LIST_ITEMS] = { .name = "list_items",
                         .sql = "SELECT id, name, size, ok FROM item ORDER BY name;",
                         .ncolumns = 4,
                         .column_types = TYPES(HF__UUID, HF__TEXT, HF__BIG, HF__BOOL),
                         .column_names = NAMES("id", "name", "size", "ok") },
    [TOY_FIND_ITEMS] = { .name = "find_items",
                         .sql = "SELECT size FROM item WHERE name = ?1;",
                         .takes = HF__TAKES_ROWS,
                         .nparams = 2, /* the second is not used in this dialect */
                         .param_types = TYPES(HF__TEXT, HF__BIG),
                         .ncolumns = 1,
                         .column_types = TYPES(HF__BIG),
                         .column_names = NAMES("size") },
    [TOY_NOW] = { .name = "now",
                  .sql = "SELECT holdfast_now();",
                  .ncolumns = 1,
                  .column_types = TYPES(HF__BIG),
                  .column_names = NAMES("now") },
    [TOY_UUID_TEXT] = { .name = "uuid_text",
                        .sql = "SELECT holdfast_uuid_text(?1);",
                        .takes = HF__TAKES_ONE,
                        .nparams = 1,
                        .param_types = TYPES(HF__UUID),
                        .ncolumns = 1,
                        .column_types = TYPES(HF__TEXT),
                        .column_names = NAMES("text") },
    [TOY_RESIZE_AND_LOG] = { .name = "resize_and_log",
                             .sql = "UPDATE item SET size = ?2 WHERE name = ?1 RETURNING size;\n"
                                    "INSERT INTO log VALUES (?1);\n-- the end\n",
                             .takes = HF__TAKES_ROWS,
                             .nparams = 2,
                             .param_types = TYPES(HF__TEXT, HF__BIG),
                             .ncolumns = 1,
                             .column_types = TYPES(HF__BIG),
                             .column_names = NAMES("size") },
    [TOY_LOGGED] = { .name = "logged",
                     .sql = "SELECT count(*) FROM log;",
                     .ncolumns = 1,
                     .column_types = TYPES(HF__BIG),
                     .column_names = NAMES("count") },
    [TOY_CHECK_JSON] = { .name = "check_json",
                         .sql = "SELECT json(?1);",
                         .takes = HF__TAKES_ONE,
                         .nparams = 1,
                         .param_types = TYPES(HF__TEXT),
                         .ncolumns = 1,
                         .column_types = TYPES(HF__TEXT),
                         .column_names = NAMES("json") },
    [TOY_NO_TABLE] = { .name = "no_table",
                       .sql = "SELECT a FROM missing;",
                       .ncolumns = 1,
                       .column_types = TYPES(HF__BIG),
                       .column_names = NAMES("a") },
    [TOY_ADD_LARGE] = { .name = "add_large",
                        .sql = "INSERT INTO item (name) VALUES (hex(randomblob(?1)));",
                        .takes = HF__TAKES_ROWS,
                        .nparams = 1,
                        .param_types = TYPES(HF__BIG) },
    [TOY_WRONG_COLUMNS] = { .name = "wrong_columns",
                            .sql = "SELECT 1, 2;",
                            .ncolumns = 1,
                            .column_types = TYPES(HF__BIG),
                            .column_names = NAMES("one") },
    [TOY_NOT_HERE] = { .name = "not_here" },
};

const struct hf__driver *const driver = &hf__sqlite_driver;
const struct hf__wake toy_wake = { .lanes = (const int32_t[]){ 1 }, .lane_count = 1 };

hf_code toy_open(struct hf__database **out, const char *url, const struct hf__clock *clock,
                 hf_error *err)
{
    return hf__sqlite_open_with(out, statements, TOY_STATEMENTS, url, clock, err);
}

struct hf__database *toy_open_again(const struct toy *toy)
{
    struct hf__database *db = NULL;
    hf_error err;
    if (toy_open(&db, toy->url, NULL, &err) != HF_OK)
        fprintf(stderr, "%s\n", err.message);
    return db;
}

struct hf__conn *toy_connect(struct hf__database *db)
{
    struct hf__conn *conn = NULL;
    hf_error err;
    if (driver->connect(&conn, db, &err) != HF_OK)
        fprintf(stderr, "%s\n", err.message);
    return conn;
}

hf_code toy_run(struct hf__conn *conn, int statement, const struct hf__table *params,
                struct hf__table *result, hf_error *err)
{
    hf_code code = driver->send(conn, (enum hf__stmt)statement, params, result, err);
    return code == HF_OK ? driver->sync(conn, err) : code;
}

int64_t toy_number(struct hf__conn *conn, int statement)
{
    struct hf__arena arena = { 0 };
    struct hf__table result = { .arena = &arena };
    hf_error err;
    int64_t number = INT64_MIN;
    if (toy_run(conn, statement, NULL, &result, &err) == HF_OK && result.nrows == 1)
        number = hf__as_number(hf__table_row(&result, 0)[0]);
    hf__arena_free(&arena);
    return number;
}

hf_code toy_increment(struct hf__conn *conn, hf_error *err)
{
    bool unknown;
    hf_code code = driver->begin(conn, err);
    if (code != HF_OK)
        return code;
    code = driver->send(conn, (enum hf__stmt)TOY_INCREMENT, NULL, NULL, err);
    if (code == HF_OK)
        code = driver->commit(conn, &toy_wake, &unknown, err);
    driver->rollback(conn);
    return code;
}

static struct toy *new_toy(void)
{
    struct toy *toy = calloc(1, sizeof *toy);
    assert_non_null(toy);
    folder_make(toy->folder);
    snprintf(toy->path, sizeof toy->path, "%s/toy.db", toy->folder);
    snprintf(toy->note, sizeof toy->note, "%s/note", toy->folder);
    return toy;
}

hf_code toy_fill(struct toy *toy)
{
    bool unknown;
    hf_code code = toy_open(&toy->db, toy->url, NULL, &toy->err);
    if (code == HF_OK)
        code = driver->connect(&toy->conn, toy->db, &toy->err);
    if (code == HF_OK)
        code = driver->begin(toy->conn, &toy->err);
    if (code == HF_OK)
        code = driver->script(toy->conn, schema, &toy->err);
    if (code == HF_OK)
        code = driver->commit(toy->conn, NULL, &unknown, &toy->err);
    if (toy->conn)
        driver->rollback(toy->conn);
    return code;
}

static void start(struct toy *toy)
{
    /* A lock that is never given back must fail the test, not hang it. */
    alarm(50);
    assert_ok(toy, toy_fill(toy));
}

int toy_setup_file(void **state)
{
    struct toy *toy = *state = new_toy();
    snprintf(toy->url, sizeof toy->url, "sqlite:%s", toy->path);
    start(toy);
    return 0;
}

int toy_setup_memory(void **state)
{
    struct toy *toy = *state = new_toy();
    snprintf(toy->url, sizeof toy->url, "sqlite::memory:");
    start(toy);
    return 0;
}

int toy_teardown(void **state)
{
    struct toy *toy = *state;
    driver->disconnect(toy->conn);
    driver->close(toy->db);
    hf__arena_free(&toy->arena);
    folder_remove(toy->folder);
    free(toy);
    alarm(0);
    return 0;
}

int toy_child_status(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

void toy_close(struct toy *toy)
{
    driver->disconnect(toy->conn);
    driver->close(toy->db);
    toy->conn = NULL;
    toy->db = NULL;
}

void toy_reopen(struct toy *toy)
{
    toy->db = toy_open_again(toy);
    assert_non_null(toy->db);
    toy->conn = toy_connect(toy->db);
    assert_non_null(toy->conn);
}

pid_t toy_start_child(struct toy *toy, int (*work)(struct toy *), int *go)
{
    int start[2];
    char byte;
    toy_close(toy);
    assert_int_equal(pipe2(start, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
        close(start[1]);
        _exit(read(start[0], &byte, 1) == 0 ? work(toy) : 1);
    }
    close(start[0]);
    *go = start[1];
    toy_reopen(toy);
    return child;
}
