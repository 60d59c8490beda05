/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite.h"

#include "util/alloc.h"
#include "util/error.h"

#include <stdio.h>
#include <stdlib.h>

static hf_code prepare_failed(sqlite3 *handle, int rc, const struct hf__statement *statement,
                              hf_error *err)
{
    char doing[128];
    snprintf(doing, sizeof doing, "preparing statement %s", statement->name);
    return hf__sqlite_fail(handle, rc, doing, err);
}

static hf_code add_part(struct hf__sqlite_part ***end, sqlite3_stmt *handle, hf_error *err)
{
    struct hf__sqlite_part *part = hf__calloc(1, sizeof *part);
    if (!part) {
        sqlite3_finalize(handle);
        return hf__nomem(err);
    }
    part->handle = handle;
    **end = part;
    *end = &part->next;
    return HF_OK;
}

/* A named statement may be several to SQLite, which has no INSERT ... FROM (UPDATE ...
 * RETURNING). */
static hf_code prepare_parts(sqlite3 *handle, const struct hf__statement *statement,
                             struct hf__sqlite_prepared *prepared, hf_error *err)
{
    struct hf__sqlite_part **end = &prepared->parts;
    const char *rest = statement->sql;

    prepared->reads_only = true;
    prepared->takes_all = statement->takes == HF__TAKES_ROWS;
    while (*rest) {
        sqlite3_stmt *part = NULL;
        int rc = sqlite3_prepare_v3(handle, rest, -1, SQLITE_PREPARE_PERSISTENT, &part, &rest);
        if (rc != SQLITE_OK)
            return prepare_failed(handle, rc, statement, err);
        if (!part) /* white space or a comment */
            continue;
        prepared->reads_only = prepared->reads_only && sqlite3_stmt_readonly(part);
        prepared->takes_all = prepared->takes_all && sqlite3_bind_parameter_count(part) == 0;
        hf_code code = add_part(&end, part, err);
        if (code != HF_OK)
            return code;
    }
    return HF_OK;
}

/* Rows are given by as many columns as were declared, or by nobody: a wrong .sql file shows at
 * its first use. */
static hf_code check_columns(const struct hf__statement *statement,
                             const struct hf__sqlite_prepared *prepared, hf_error *err)
{
    int most = 0;
    for (const struct hf__sqlite_part *part = prepared->parts; part; part = part->next) {
        int count = sqlite3_column_count(part->handle);
        if (count != 0)
            most = count;
        if (count != 0 && count != statement->ncolumns)
            break;
    }
    if (most == statement->ncolumns)
        return HF_OK;
    return hf__fail(err, HF_INTERNAL, "statement %s gives %d columns, but %d were declared",
                    statement->name, most, statement->ncolumns);
}

hf_code hf__sqlite_prepare(sqlite3 *handle, const struct hf__statement *statement,
                           struct hf__sqlite_prepared *prepared, hf_error *err)
{
    if (!statement->sql)
        return hf__fail(err, HF_INTERNAL, "statement %s does not exist for SQLite",
                        statement->name);
    hf_code code = prepare_parts(handle, statement, prepared, err);
    if (code == HF_OK)
        code = check_columns(statement, prepared, err);
    if (code != HF_OK)
        hf__sqlite_finalize(prepared);
    return code;
}

void hf__sqlite_finalize(struct hf__sqlite_prepared *prepared)
{
    struct hf__sqlite_part *part = prepared->parts;
    while (part) {
        struct hf__sqlite_part *next = part->next;
        sqlite3_finalize(part->handle);
        free(part);
        part = next;
    }
    *prepared = (struct hf__sqlite_prepared){ 0 };
}

static int bind_cell(sqlite3_stmt *handle, int index, enum hf__type type, struct hf__cell cell)
{
    if (hf__is_null(cell))
        return sqlite3_bind_null(handle, index);
    switch (type) {
    case HF__INT:
    case HF__BIG:
    case HF__BOOL: return sqlite3_bind_int64(handle, index, cell.number);
    case HF__TEXT: return sqlite3_bind_text(handle, index, cell.bytes, cell.length, SQLITE_STATIC);
    case HF__UUID: return sqlite3_bind_blob(handle, index, cell.bytes, cell.length, SQLITE_STATIC);
    }
    return SQLITE_RANGE;
}

/* A dialect need not use every declared parameter, and SQLite knows only those up to the last
 * that is used. */
static int bind_row(const struct hf__statement *statement, sqlite3_stmt *handle,
                    const struct hf__cell *row)
{
    int count = sqlite3_bind_parameter_count(handle);
    if (count > statement->nparams)
        return SQLITE_RANGE;
    for (int i = 0; i < count; i++) {
        int rc = bind_cell(handle, i + 1, statement->param_types[i], row[i]);
        if (rc != SQLITE_OK)
            return rc;
    }
    return SQLITE_OK;
}

static int copy_bytes(struct hf__arena *arena, const void *bytes, int length, struct hf__cell *out)
{
    const char *copy =
        bytes || length == 0 ? hf__arena_strndup(arena, bytes, (size_t)length) : NULL;
    if (!copy)
        return SQLITE_NOMEM;
    *out = hf__text_n(copy, (size_t)length);
    return SQLITE_OK;
}

static int read_cell(sqlite3_stmt *handle, int column, enum hf__type type, struct hf__arena *arena,
                     struct hf__cell *out)
{
    if (sqlite3_column_type(handle, column) == SQLITE_NULL) {
        *out = hf__null();
        return SQLITE_OK;
    }
    const void *bytes;
    switch (type) {
    case HF__INT:
    case HF__BIG:
    case HF__BOOL: *out = hf__number(sqlite3_column_int64(handle, column)); return SQLITE_OK;
    case HF__TEXT:
        bytes = sqlite3_column_text(handle, column);
        return copy_bytes(arena, bytes, sqlite3_column_bytes(handle, column), out);
    case HF__UUID:
        bytes = sqlite3_column_blob(handle, column);
        if (sqlite3_column_bytes(handle, column) != (int)sizeof(hf_id))
            return SQLITE_MISMATCH;
        return copy_bytes(arena, bytes, sizeof(hf_id), out);
    }
    return SQLITE_RANGE;
}

static hf_code read_row(const struct hf__statement *statement, sqlite3_stmt *handle,
                        struct hf__table *result, hf_error *err)
{
    struct hf__cell *row = hf__table_add(result);
    if (result->failed)
        return hf__nomem(err);
    for (int i = 0; i < statement->ncolumns; i++) {
        int rc = read_cell(handle, i, statement->column_types[i], result->arena, &row[i]);
        if (rc == SQLITE_NOMEM)
            return hf__nomem(err);
        if (rc != SQLITE_OK)
            return hf__fail(err, HF_STORE,
                            "statement %s: column %s holds something that is not its type; the "
                            "table was changed by hand",
                            statement->name, statement->column_names[i]);
    }
    return HF_OK;
}

static hf_code step_through(sqlite3 *handle, const struct hf__statement *statement,
                            sqlite3_stmt *part, struct hf__table *result, hf_error *err)
{
    int rc;
    while ((rc = sqlite3_step(part)) == SQLITE_ROW) {
        hf_code code = result ? read_row(statement, part, result, err) : HF_OK;
        if (code != HF_OK)
            return code;
    }
    return rc == SQLITE_DONE ? HF_OK : hf__sqlite_statement_failed(handle, rc, statement, err);
}

static hf_code execute_row(sqlite3 *handle, const struct hf__statement *statement,
                           const struct hf__sqlite_prepared *prepared, const struct hf__cell *row,
                           struct hf__table *result, hf_error *err)
{
    hf_code code = HF_OK;
    for (const struct hf__sqlite_part *part = prepared->parts; part && code == HF_OK;
         part = part->next) {
        int rc = bind_row(statement, part->handle, row);
        code = rc == SQLITE_OK ? step_through(handle, statement, part->handle, result, err)
                               : hf__sqlite_statement_failed(handle, rc, statement, err);
        sqlite3_reset(part->handle);
    }
    return code;
}

static hf_code execute_all(struct hf__sqlite_session *session,
                           const struct hf__statement *statement,
                           const struct hf__sqlite_prepared *prepared,
                           const struct hf__table *params, struct hf__table *result, hf_error *err)
{
    session->taking = statement;
    session->rows = params;
    hf_code code = execute_row(session->handle, statement, prepared, NULL, result, err);
    session->taking = NULL;
    session->rows = NULL;
    return code;
}

hf_code hf__sqlite_execute(struct hf__sqlite_session *session,
                           const struct hf__statement *statement,
                           const struct hf__sqlite_prepared *prepared,
                           const struct hf__table *params, struct hf__table *result, hf_error *err)
{
    hf_code code = HF_OK;
    int count = params ? params->nrows : 1;
    if (prepared->takes_all)
        return execute_all(session, statement, prepared, params, result, err);
    for (int i = 0; i < count && code == HF_OK; i++)
        code = execute_row(session->handle, statement, prepared,
                           params ? hf__table_row(params, i) : NULL, result, err);
    /* The caller's texts may be gone after this. */
    for (const struct hf__sqlite_part *part = prepared->parts; part; part = part->next)
        sqlite3_clear_bindings(part->handle);
    return code;
}
