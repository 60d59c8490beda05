/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite.h"

#include "util/error.h"

#include <string.h>

/* Nobody who takes the writer's turn first waits for SQLite's own lock; this is for programs
 * that do not know of it. */
enum { BUSY_TIMEOUT = 500 /* ms */ };

static void sql_now(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    (void)argv;
    const struct hf__sqlite_session *session = sqlite3_user_data(context);
    sqlite3_result_int64(context, session->now);
}

static void sql_uuid_text(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    hf_id id;
    char text[HF_ID_TEXT];

    if (sqlite3_value_type(argv[0]) == SQLITE_NULL)
        return;
    const void *bytes = sqlite3_value_blob(argv[0]);
    if (!bytes || sqlite3_value_bytes(argv[0]) != (int)sizeof id.bytes) {
        sqlite3_result_error(context, "holdfast_uuid_text needs a blob of 16 bytes", -1);
        return;
    }
    memcpy(id.bytes, bytes, sizeof id.bytes);
    hf_id_format(id, text);
    sqlite3_result_text(context, text, HF_ID_TEXT - 1, SQLITE_TRANSIENT);
}

/* holdfast_uuid(text): the 16 bytes of an id. */
static void sql_uuid(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    hf_id id;

    if (!hf_id_parse((const char *)sqlite3_value_text(argv[0]), &id))
        sqlite3_result_error(context, "holdfast_uuid needs an id as text", -1);
    else
        sqlite3_result_blob(context, id.bytes, (int)sizeof id.bytes, SQLITE_TRANSIENT);
}

/* holdfast_in_time(id): 1 where it tells the time at which it is stored, as near as run_odd_id has it; else null. */
static void sql_in_time(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    const struct hf__sqlite_session *session = sqlite3_user_data(context);
    const unsigned char *bytes = sqlite3_value_blob(argv[0]);
    int64_t ms = 0;

    if (!bytes || sqlite3_value_bytes(argv[0]) != (int)sizeof(hf_id))
        return;
    for (int i = 0; i < 6; i++)
        ms = ms << 8 | bytes[i];
    if (ms >= session->now / 1000 - 1000 && ms <= session->now / 1000 + 100)
        sqlite3_result_int(context, 1);
}

static int register_pure(struct hf__sqlite_session *session, const char *name,
                         void (*function)(sqlite3_context *, int, sqlite3_value **))
{
    return sqlite3_create_function_v2(session->handle, name, 1,
                                      SQLITE_UTF8 | SQLITE_INNOCUOUS | SQLITE_DETERMINISTIC, NULL,
                                      function, NULL, NULL, NULL);
}

static int register_timed(struct hf__sqlite_session *session, const char *name, int argc,
                          void (*function)(sqlite3_context *, int, sqlite3_value **))
{
    return sqlite3_create_function_v2(session->handle, name, argc, SQLITE_UTF8 | SQLITE_INNOCUOUS,
                                      session, function, NULL, NULL, NULL);
}

static int register_functions(struct hf__sqlite_session *session)
{
    int rc = register_timed(session, "holdfast_now", 0, sql_now);
    if (rc == SQLITE_OK)
        rc = register_timed(session, "holdfast_in_time", 1, sql_in_time);
    if (rc == SQLITE_OK)
        rc = register_pure(session, "holdfast_uuid_text", sql_uuid_text);
    if (rc == SQLITE_OK)
        rc = register_pure(session, "holdfast_uuid", sql_uuid);
    if (rc == SQLITE_OK)
        rc = hf__sqlite_register_rows(session);
    return rc;
}

static int configure(struct hf__sqlite_session *session)
{
    sqlite3_extended_result_codes(session->handle, 1);
    int rc = sqlite3_busy_timeout(session->handle, BUSY_TIMEOUT);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(session->handle, hf__sqlite_statements[HF__STMT_SQLITE_SESSION].sql, NULL,
                          NULL, NULL);
    if (rc == SQLITE_OK)
        rc = register_functions(session);
    /* The triggers that keep the journal append-only guard against other programs. Ours cannot do what they refuse
     * (tools/check_sql.py sees to it), and pays a fifth of its speed for asking. */
    if (rc == SQLITE_OK)
        rc = sqlite3_db_config(session->handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    return rc;
}

hf_code hf__sqlite_session_open(struct hf__sqlite_session *session, const char *path, bool create,
                                hf_error *err)
{
    /* NOMUTEX: a handle is used by one thread at a time, which the callers see to. */
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (create ? SQLITE_OPEN_CREATE : 0);
    int rc = sqlite3_open_v2(path, &session->handle, flags, NULL);
    if (rc == SQLITE_OK)
        rc = configure(session);
    if (rc == SQLITE_OK)
        return HF_OK;

    hf_code code = hf__sqlite_fail(session->handle, rc, path, err);
    hf__sqlite_session_close(session);
    return code;
}

hf_code hf__sqlite_sync_at_commit(struct hf__sqlite_session *session, bool at_commit, hf_error *err)
{
    enum hf__stmt how = at_commit ? HF__STMT_SQLITE_SYNC_AT_COMMIT : HF__STMT_SQLITE_SYNC_LATER;
    int rc = sqlite3_exec(session->handle, hf__sqlite_statements[how].sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? HF_OK
                           : hf__sqlite_fail(session->handle, rc, "changing when to sync", err);
}

hf_code hf__sqlite_sync_log(struct hf__sqlite_session *session, hf_error *err)
{
    sqlite3_file *log = NULL;
    int rc =
        sqlite3_file_control(session->handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, (void *)&log);
    if (rc == SQLITE_OK)
        rc = log && log->pMethods ? log->pMethods->xSync(log, SQLITE_SYNC_NORMAL) : SQLITE_IOERR;
    return rc == SQLITE_OK ? HF_OK
                           : hf__sqlite_fail(session->handle, rc, "waiting for the disk", err);
}

hf_code hf__sqlite_check_place(struct hf__sqlite_session *session, hf_error *err)
{
    int moved = 0;
    int rc = sqlite3_file_control(session->handle, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    if (rc != SQLITE_OK || !moved)
        return HF_OK;
    return hf__fail(
        err, HF_UNAVAILABLE,
        "%s was moved or deleted while it was open; put it back and open the store again",
        sqlite3_db_filename(session->handle, "main"));
}

static bool answers_wal(sqlite3_stmt *statement)
{
    const unsigned char *mode = sqlite3_column_text(statement, 0);
    return mode && strcmp((const char *)mode, "wal") == 0;
}

hf_code hf__sqlite_use_wal(struct hf__sqlite_session *session, hf_error *err)
{
    hf_code code = HF_OK;
    sqlite3_stmt *statement = NULL;
    const char *sql = hf__sqlite_statements[HF__STMT_SQLITE_USE_WAL].sql;
    const char *path = sqlite3_db_filename(session->handle, "main");

    int rc = sqlite3_prepare_v2(session->handle, sql, -1, &statement, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(statement);
    if (rc != SQLITE_ROW)
        code = hf__sqlite_fail(session->handle, rc, path, err);
    else if (!answers_wal(statement))
        code = hf__fail(err, HF_UNAVAILABLE,
                        "%s: SQLite cannot keep a write-ahead log here; use a local file system",
                        path);
    sqlite3_finalize(statement);
    return code;
}

void hf__sqlite_session_close(struct hf__sqlite_session *session)
{
    sqlite3_close(session->handle);
    session->handle = NULL;
}
