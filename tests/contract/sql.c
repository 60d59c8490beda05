/* Plain SQL beside the engine, for looking into its tables and for trying to break them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "contract/sql.h"

#include <libpq-fe.h>

#include "contract/fixture.h"
#include "store/sqlite.h"
#include "support/invariants.h"

static PGconn *postgres;
static sqlite3 *file;
static struct hf__database *database; /* SQLite's, as the engine opened it */

void sql_use_sqlite(struct hf__database *db)
{
    database = db;
    if (db->memory)
        return;
    if (sqlite3_open_v2(db->path, &file, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
        fail_msg("%s: %s", db->path, sqlite3_errmsg(file));
    sqlite3_busy_timeout(file, 10000);
}

void sql_use_postgres(PGconn *conn)
{
    postgres = conn;
}

void sql_forget(void)
{
    sqlite3_close(file);
    file = NULL;
    database = NULL;
    postgres = NULL;
}

/* ---- Running a statement ---- */

enum { MOST_COLUMNS = 80 };

static bool run_postgres(const char *text, invariants_row row, void *arg, char *error, size_t size)
{
    PGresult *result = PQexec(postgres, text);
    ExecStatusType status = PQresultStatus(result);
    bool ok = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
    if (!ok)
        snprintf(error, size, "%s", PQresultErrorMessage(result));
    for (int i = 0; ok && i < PQntuples(result); i++) {
        const char *cells[MOST_COLUMNS] = { NULL };
        for (int n = 0; n < PQnfields(result) && n < MOST_COLUMNS; n++)
            cells[n] = PQgetisnull(result, i, n) ? NULL : PQgetvalue(result, i, n);
        cells[MOST_COLUMNS - 1] = NULL;
        if (row)
            row(cells, arg);
    }
    PQclear(result);
    return ok;
}

static bool step_all(sqlite3_stmt *statement, invariants_row row, void *arg)
{
    int rc;
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *cells[MOST_COLUMNS] = { NULL };
        for (int n = 0; n < sqlite3_column_count(statement) && n < MOST_COLUMNS; n++)
            cells[n] = (const char *)sqlite3_column_text(statement, n);
        if (row)
            row(cells, arg);
    }
    return rc == SQLITE_DONE;
}

static void obey_triggers(sqlite3 *handle, int whether)
{
    sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, whether, NULL);
}

/* In the writer's turn, as the memory store's handle is shared; yet as any other program, which obeys the triggers. */
static bool run_sqlite(const char *text, invariants_row row, void *arg, char *error, size_t size)
{
    sqlite3 *handle = file ? file : database->memory_session.handle;
    sqlite3_stmt *statement = NULL;
    struct hf__sqlite_turn turn;
    hf__sqlite_turn_init(&turn, database);
    if (hf__sqlite_turn_take(&turn, NULL) != HF_OK)
        abort();
    obey_triggers(handle, 1);
    bool ok = sqlite3_prepare_v2(handle, text, -1, &statement, NULL) == SQLITE_OK &&
              step_all(statement, row, arg);
    if (!ok)
        snprintf(error, size, "%s", sqlite3_errmsg(handle));
    sqlite3_finalize(statement);
    obey_triggers(handle, handle == file);
    hf__sqlite_turn_give(&turn);
    hf__sqlite_turn_close(&turn);
    return ok;
}

bool sql_run(const char *text, invariants_row row, void *arg, char *error, size_t size)
{
    return postgres ? run_postgres(text, row, arg, error, size)
                    : run_sqlite(text, row, arg, error, size);
}

/* ---- Short names ---- */

static void first_cell(const char *const *cells, void *arg)
{
    char **answer = arg;
    if (!*answer && cells[0])
        *answer = strdup(cells[0]);
}

static char *ask(const char *fmt, va_list args)
{
    char text[4000];
    char error[500];
    char *answer = NULL;
    vsnprintf(text, sizeof text, fmt, args);
    if (!sql_run(text, first_cell, &answer, error, sizeof error))
        fail_msg("%s: %s", text, error);
    return answer;
}

int64_t sql_number(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *answer = ask(fmt, args);
    va_end(args);
    int64_t number = answer ? strtoll(answer, NULL, 10) : 0;
    free(answer);
    return number;
}

const char *sql_text(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *answer = ask(fmt, args);
    va_end(args);
    return answer ? keep(answer, free) : NULL;
}

void sql(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    free(ask(fmt, args));
    va_end(args);
}

bool sql_works(const char *fmt, ...)
{
    char text[4000];
    char error[500];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return sql_run(text, NULL, NULL, error, sizeof error);
}

const char *sql_id(hf_id id)
{
    char text[HF_ID_TEXT];
    char hex[HF_ID_TEXT];
    char *out = hex;
    hf_id_format(id, text);
    if (postgres)
        return text_of("'%s'", text);
    for (const char *p = text; *p; p++)
        if (*p != '-')
            *out++ = *p;
    *out = '\0';
    return text_of("x'%s'", hex);
}

/* ---- Dumps ---- */

static void add_line(const char *const *cells, void *arg)
{
    FILE *out = arg;
    for (int i = 0; i < MOST_COLUMNS; i++)
        if (cells[i])
            fprintf(out, "%d=%s|", i, cells[i]);
    fputc('\n', out);
}

const char *dump(void)
{
    static const char *const queries[] = {
        "SELECT * FROM run ORDER BY id",          "SELECT * FROM event ORDER BY run_id, seq",
        "SELECT * FROM signal ORDER BY position", "SELECT * FROM outbox ORDER BY position",
        "SELECT * FROM task ORDER BY id",         "SELECT * FROM dead_letter ORDER BY id",
        "SELECT * FROM run_tag ORDER BY run_id",  "SELECT * FROM workflow ORDER BY id",
        "SELECT * FROM host_lock ORDER BY name",  "SELECT * FROM tenant ORDER BY id",
    };
    char *text = NULL;
    size_t size = 0;
    char error[500];
    FILE *out = open_memstream(&text, &size);
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        fprintf(out, "%s\n", queries[i]);
        if (!sql_run(queries[i], add_line, out, error, sizeof error))
            fail_msg("%s: %s", queries[i], error);
    }
    fclose(out);
    return keep(text, free);
}
