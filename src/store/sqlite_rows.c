/* The rows that a statement takes, as a table that it can read: holdfast_rows. So it inserts them all by one execution,
 * where others are executed once per row.
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite.h"

#include "util/alloc.h"

#include <stdlib.h>

enum { EXPECTED_ROWS = 100 };

struct rows_table {
    sqlite3_vtab base;
    const struct hf__sqlite_session *session; /* has the rows */
};

struct rows_cursor {
    sqlite3_vtab_cursor base;
    int row;
};

static int rows_connect(sqlite3 *handle, void *session, int argc, const char *const *argv,
                        sqlite3_vtab **out, char **message)
{
    (void)argc;
    (void)argv;
    (void)message;
    int rc = sqlite3_declare_vtab(handle, hf__sqlite_statements[HF__STMT_SQLITE_ROWS].sql);
    if (rc != SQLITE_OK)
        return rc;
    struct rows_table *table = hf__calloc(1, sizeof *table);
    if (!table)
        return SQLITE_NOMEM;
    table->session = session;
    *out = &table->base;
    return SQLITE_OK;
}

static int rows_disconnect(sqlite3_vtab *table)
{
    free(table);
    return SQLITE_OK;
}

/* There is one way to read them: all, in their order. */
static int rows_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
    (void)table;
    info->estimatedRows = EXPECTED_ROWS;
    info->estimatedCost = EXPECTED_ROWS;
    return SQLITE_OK;
}

static int rows_open(sqlite3_vtab *table, sqlite3_vtab_cursor **out)
{
    (void)table;
    struct rows_cursor *cursor = hf__calloc(1, sizeof *cursor);
    if (!cursor)
        return SQLITE_NOMEM;
    *out = &cursor->base;
    return SQLITE_OK;
}

static int rows_close(sqlite3_vtab_cursor *cursor)
{
    free(cursor);
    return SQLITE_OK;
}

static int rows_filter(sqlite3_vtab_cursor *cursor, int number, const char *text, int argc,
                       sqlite3_value **argv)
{
    (void)number;
    (void)text;
    (void)argc;
    (void)argv;
    ((struct rows_cursor *)cursor)->row = 0;
    return SQLITE_OK;
}

static int rows_next(sqlite3_vtab_cursor *cursor)
{
    ((struct rows_cursor *)cursor)->row++;
    return SQLITE_OK;
}

static const struct hf__sqlite_session *session_of(const sqlite3_vtab_cursor *cursor)
{
    return ((const struct rows_table *)cursor->pVtab)->session;
}

static int rows_eof(sqlite3_vtab_cursor *cursor)
{
    const struct hf__table *rows = session_of(cursor)->rows;
    return !rows || ((struct rows_cursor *)cursor)->row >= rows->nrows;
}

/* Texts and ids stay where they are until the statement has ended. */
static int rows_column(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int column)
{
    const struct hf__sqlite_session *session = session_of(cursor);
    if (column >= session->rows->ncolumns)
        return SQLITE_RANGE;
    struct hf__cell cell =
        hf__table_row(session->rows, ((struct rows_cursor *)cursor)->row)[column];
    if (hf__is_null(cell))
        return SQLITE_OK;
    switch ((enum hf__type)session->taking->param_types[column]) {
    case HF__INT:
    case HF__BIG:
    case HF__BOOL: sqlite3_result_int64(context, cell.number); break;
    case HF__TEXT: sqlite3_result_text(context, cell.bytes, cell.length, SQLITE_STATIC); break;
    case HF__UUID: sqlite3_result_blob(context, cell.bytes, cell.length, SQLITE_STATIC); break;
    }
    return SQLITE_OK;
}

static int rows_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *out)
{
    *out = ((struct rows_cursor *)cursor)->row;
    return SQLITE_OK;
}

int hf__sqlite_register_rows(struct hf__sqlite_session *session)
{
    static const sqlite3_module module = {
        .xConnect = rows_connect,
        .xDisconnect = rows_disconnect,
        .xBestIndex = rows_best_index,
        .xOpen = rows_open,
        .xClose = rows_close,
        .xFilter = rows_filter,
        .xNext = rows_next,
        .xEof = rows_eof,
        .xColumn = rows_column,
        .xRowid = rows_rowid,
    };
    return sqlite3_create_module_v2(session->handle, "holdfast_rows", &module, session, NULL);
}
