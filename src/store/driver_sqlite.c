/* The SQLite driver: connections and transactions. Statements are executed when they are sent;
 * sync has nothing left to do but to end a lone statement's own transaction.
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite.h"

#include "util/alloc.h"
#include "util/error.h"

#include <stdlib.h>

static hf_code open_store(struct hf__database **out, const char *url, const struct hf__clock *clock,
                          hf_error *err)
{
    return hf__sqlite_open_with(out, hf__sqlite_statements, HF__STMT_COUNT, url, clock, err);
}

static int flushers(const struct hf__database *db)
{
    (void)db;
    return 1;
}

static hf_code prepare_frame(struct hf__conn *conn, hf_error *err)
{
    static const enum hf__stmt names[] = {
        [HF__SQLITE_BEGIN] = HF__STMT_SQLITE_BEGIN,
        [HF__SQLITE_BEGIN_READING] = HF__STMT_SQLITE_BEGIN_READING,
        [HF__SQLITE_COMMIT] = HF__STMT_SQLITE_COMMIT,
        [HF__SQLITE_ROLLBACK] = HF__STMT_SQLITE_ROLLBACK,
    };
    hf_code code = HF_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names && code == HF_OK; i++)
        code = hf__sqlite_prepare(conn->session->handle, &hf__sqlite_statements[names[i]],
                                  &conn->frame[i], err);
    return code;
}

static hf_code open_session(struct hf__conn *conn, hf_error *err)
{
    if (conn->db->memory) {
        conn->session = &conn->db->memory_session;
        return HF_OK;
    }
    conn->session = &conn->own;
    hf_code code = hf__sqlite_session_open(&conn->own, conn->db->path, false, err);
    if (code == HF_OK)
        hf__sqlite_count_pages(conn->db, conn->own.handle);
    return code;
}

/* A memory store's handle is shared: whatever touches it does so in its turn. A file is read
 * without one. */
static hf_code enter(struct hf__conn *conn, hf_error *err)
{
    return conn->db->memory ? hf__sqlite_turn_take(&conn->turn, err) : HF_OK;
}

static void leave(struct hf__conn *conn)
{
    if (conn->db->memory && !conn->in_transaction)
        hf__sqlite_turn_give(&conn->turn);
}

static void rollback(struct hf__conn *conn);

static void disconnect(struct hf__conn *conn)
{
    if (!conn)
        return;
    rollback(conn);
    /* Refused only if this very thread has the turn already, and then it may go on as well. */
    (void)!enter(conn, NULL);
    for (int i = 0; conn->prepared && i < conn->db->statement_count; i++)
        hf__sqlite_finalize(&conn->prepared[i]);
    for (size_t i = 0; i < sizeof conn->frame / sizeof *conn->frame; i++)
        hf__sqlite_finalize(&conn->frame[i]);
    leave(conn);
    hf__sqlite_session_close(&conn->own);
    hf__sqlite_turn_close(&conn->turn);
    free(conn->prepared);
    free(conn);
}

static hf_code connect_store(struct hf__conn **out, struct hf__database *db, hf_error *err)
{
    struct hf__conn *conn = hf__calloc(1, sizeof *conn);
    if (!conn)
        return hf__nomem(err);
    conn->db = db;
    hf__sqlite_turn_init(&conn->turn, db);

    hf_code code;
    conn->prepared = hf__calloc((size_t)db->statement_count, sizeof *conn->prepared);
    if (!conn->prepared)
        code = hf__nomem(err);
    else
        code = open_session(conn, err);
    if (code == HF_OK)
        code = enter(conn, err);
    if (code == HF_OK) {
        code = prepare_frame(conn, err);
        leave(conn);
    }
    if (code != HF_OK) {
        disconnect(conn);
        return code;
    }
    *out = conn;
    return HF_OK;
}

static bool lost(const struct hf__conn *conn)
{
    return conn->lost;
}

static hf_code run_frame(struct hf__conn *conn, enum hf__sqlite_frame which, int *rc, hf_error *err)
{
    static const char *const doing[] = { "beginning a transaction", "beginning to read",
                                         "committing", "rolling back" };
    sqlite3_stmt *handle = conn->frame[which].parts->handle;

    *rc = sqlite3_step(handle);
    hf_code code = HF_OK;
    if (*rc != SQLITE_DONE)
        code = hf__sqlite_fail(conn->session->handle, *rc, doing[which], err);
    sqlite3_reset(handle);
    return code;
}

/* A handle that met a broken or vanished file is better replaced. A memory store has nothing to
 * go back to. */
static void note_loss(struct hf__conn *conn)
{
    int rc = sqlite3_errcode(conn->session->handle) & 0xff;
    if (!conn->db->memory && (rc == SQLITE_IOERR || rc == SQLITE_CANTOPEN))
        conn->lost = true;
}

/* Nothing else may ever be committed without the disk: a connection that cannot be set back is replaced. */
static void sync_at_commit_again(struct hf__conn *conn)
{
    conn->told = NULL;
    if (conn->syncs_later && hf__sqlite_sync_at_commit(conn->session, true, NULL) != HF_OK)
        conn->lost = true;
    conn->syncs_later = false;
}

static void may_foretell(struct hf__conn *conn)
{
    if (conn->db->memory || conn->in_transaction)
        return;
    conn->syncs_later = true;
    conn->changes = sqlite3_total_changes64(conn->session->handle);
    if (hf__sqlite_sync_at_commit(conn->session, false, NULL) != HF_OK)
        sync_at_commit_again(conn);
}

static void foretell(struct hf__conn *conn, hf__told told, void *arg)
{
    conn->told = conn->syncs_later ? told : NULL;
    conn->told_arg = arg;
}

/* The commit can be seen by now, whatever becomes of this process. If the disk refuses it, what others write into the log behind it
 * would not be found after a power cut: so the log begins anew, if that can be done. */
static hf_code tell_and_sync(struct hf__conn *conn, hf_error *err)
{
    if (conn->told)
        conn->told(conn->told_arg);
    hf_code code = HF_OK;
    if (sqlite3_total_changes64(conn->session->handle) != conn->changes)
        code = hf__sqlite_sync_log(conn->session, err);
    if (code != HF_OK) {
        conn->lost = true;
        sqlite3_wal_checkpoint_v2(conn->session->handle, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL,
                                  NULL);
    }
    sync_at_commit_again(conn);
    return code;
}

static hf_code begin_in_turn(struct hf__conn *conn, hf_error *err)
{
    int rc;
    hf_code code = conn->db->memory ? HF_OK : hf__sqlite_check_place(conn->session, err);
    if (code != HF_OK) {
        conn->lost = true;
        return code;
    }
    code = run_frame(conn, HF__SQLITE_BEGIN, &rc, err);
    if (code != HF_OK) {
        note_loss(conn);
        return code;
    }
    conn->session->now = hf__clock_now(&conn->db->clock);
    conn->in_transaction = true;
    conn->failure.code = HF_OK;
    return HF_OK;
}

static hf_code begin(struct hf__conn *conn, hf_error *err)
{
    if (conn->in_transaction)
        return hf__fail(err, HF_INTERNAL, "a transaction is open on this connection already");
    hf_code code = hf__sqlite_turn_take(&conn->turn, err);
    if (code == HF_OK)
        code = begin_in_turn(conn, err);
    if (code != HF_OK) {
        sync_at_commit_again(conn);
        hf__sqlite_turn_give(&conn->turn);
    }
    return code;
}

/* Some errors end SQLite's transaction by themselves, others leave it open. */
static void end_transaction(struct hf__conn *conn)
{
    int rc;
    if (!sqlite3_get_autocommit(conn->session->handle) &&
        run_frame(conn, HF__SQLITE_ROLLBACK, &rc, NULL) != HF_OK)
        note_loss(conn);
}

static void rollback(struct hf__conn *conn)
{
    if (conn->in_transaction)
        end_transaction(conn);
    conn->in_transaction = conn->implicit = false;
    conn->failure.code = HF_OK;
    sync_at_commit_again(conn);
    hf__sqlite_turn_give(&conn->turn);
}

/* These refuse before anything is written that a later recovery of the WAL could find complete. */
static bool surely_refused(struct hf__conn *conn, int rc)
{
    if (!sqlite3_get_autocommit(conn->session->handle))
        return true;
    switch (rc & 0xff) {
    case SQLITE_FULL:
    case SQLITE_BUSY:
    case SQLITE_READONLY:
    case SQLITE_CONSTRAINT: return true;
    default: return false;
    }
}

/* Who sends without looking still hears of the first failure when they sync or commit. */
static hf_code repeat_failure(const struct hf__conn *conn, hf_error *err)
{
    if (err)
        *err = conn->failure;
    return conn->failure.code;
}

static hf_code commit(struct hf__conn *conn, const struct hf__wake *wake, bool *unknown,
                      hf_error *err)
{
    int rc;
    *unknown = false;
    if (!conn->in_transaction)
        return hf__fail(err, HF_INTERNAL, "no transaction is open on this connection");
    if (conn->failure.code != HF_OK) {
        hf_code code = repeat_failure(conn, err);
        rollback(conn);
        return code;
    }
    hf_code code = run_frame(conn, HF__SQLITE_COMMIT, &rc, err);
    if (code != HF_OK) {
        *unknown = !surely_refused(conn, rc);
        note_loss(conn);
        rollback(conn);
        return code;
    }
    conn->in_transaction = conn->implicit = false;
    if (conn->syncs_later)
        code = tell_and_sync(conn, err);
    *unknown = code != HF_OK;
    hf__sqlite_turn_give(&conn->turn);
    hf__sqlite_ring(conn->db, wake);
    return code;
}

static hf_code check_call(struct hf__conn *conn, int number, const struct hf__table *params,
                          hf_error *err)
{
    if (number < 0 || number >= conn->db->statement_count)
        return hf__fail(err, HF_INTERNAL, "there is no statement %d", number);
    const struct hf__statement *statement = &conn->db->statements[number];
    if (statement->takes == HF__TAKES_NOTHING)
        return HF_OK;
    if (params && params->failed)
        return hf__nomem(err);
    int rows = params ? params->nrows : 0;
    if (statement->takes == HF__TAKES_ONE && rows != 1)
        return hf__fail(err, HF_INTERNAL, "statement %s takes one row, not %d", statement->name,
                        rows);
    if (rows > 0 && params->ncolumns != statement->nparams)
        return hf__fail(err, HF_INTERNAL, "statement %s takes %d parameters, not %d",
                        statement->name, statement->nparams, params->ncolumns);
    return HF_OK;
}

/* Several executions of one reading statement see one state of the store. */
static hf_code read_alone(struct hf__conn *conn, int number, const struct hf__table *params,
                          struct hf__table *result, hf_error *err)
{
    int rc;
    bool framed = params && params->nrows > 1;

    conn->session->now = hf__clock_now(&conn->db->clock);
    hf_code code = framed ? run_frame(conn, HF__SQLITE_BEGIN_READING, &rc, err) : HF_OK;
    if (code == HF_OK)
        code = hf__sqlite_execute(conn->session, &conn->db->statements[number],
                                  &conn->prepared[number], params, result, err);
    if (code != HF_OK)
        note_loss(conn);
    end_transaction(conn);
    return code;
}

static hf_code execute(struct hf__conn *conn, int number, const struct hf__table *params,
                       struct hf__table *result, hf_error *err)
{
    sqlite3 *handle = conn->session->handle;
    const struct hf__statement *statement = &conn->db->statements[number];
    struct hf__sqlite_prepared *prepared = &conn->prepared[number];
    hf_code code = HF_OK;

    if (!prepared->parts)
        code = hf__sqlite_prepare(handle, statement, prepared, err);
    if (code != HF_OK) {
        note_loss(conn);
        return code;
    }
    if (!conn->in_transaction && prepared->reads_only)
        return read_alone(conn, number, params, result, err);
    if (!conn->in_transaction) {
        code = begin(conn, err);
        conn->implicit = code == HF_OK;
    }
    if (code == HF_OK)
        code = hf__sqlite_execute(conn->session, statement, prepared, params, result, err);
    if (code != HF_OK)
        note_loss(conn);
    return code;
}

static hf_code perform(struct hf__conn *conn, int number, const struct hf__table *params,
                       struct hf__table *result, hf_error *err)
{
    hf_code code = check_call(conn, number, params, err);
    if (code != HF_OK)
        return code;
    const struct hf__statement *statement = &conn->db->statements[number];
    if (result)
        hf__table_init(result, result->arena, statement->ncolumns);
    if (statement->takes == HF__TAKES_NOTHING)
        params = NULL;
    else if (!params || params->nrows == 0)
        return HF_OK;

    code = enter(conn, err);
    if (code != HF_OK)
        return code;
    code = execute(conn, number, params, result, err);
    leave(conn);
    return code;
}

static hf_code send(struct hf__conn *conn, enum hf__stmt stmt, const struct hf__table *params,
                    struct hf__table *result, hf_error *err)
{
    if (conn->in_transaction && conn->failure.code != HF_OK)
        return repeat_failure(conn, err);
    hf_error failure = { .code = HF_OK };
    hf_code code = perform(conn, (int)stmt, params, result, &failure);
    if (code != HF_OK && (conn->implicit || !conn->in_transaction))
        rollback(conn);
    conn->failure = failure;
    return code == HF_OK ? HF_OK : repeat_failure(conn, err);
}

static hf_code sync_sent(struct hf__conn *conn, hf_error *err)
{
    bool unknown;
    if (conn->implicit)
        return commit(conn, NULL, &unknown, err);
    if (conn->failure.code == HF_OK)
        return HF_OK;
    hf_code code = repeat_failure(conn, err);
    if (!conn->in_transaction)
        conn->failure.code = HF_OK;
    return code;
}

static hf_code script(struct hf__conn *conn, const char *sql, hf_error *err)
{
    sqlite3 *handle = conn->session->handle;
    if (!conn->in_transaction)
        return hf__fail(err, HF_INTERNAL, "a script needs an open transaction");
    if (conn->failure.code != HF_OK)
        return repeat_failure(conn, err);
    int rc = sqlite3_exec(handle, sql, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        return HF_OK;
    note_loss(conn);
    hf__sqlite_fail(handle, rc, "running a script", &conn->failure);
    return repeat_failure(conn, err);
}

static void ring(struct hf__conn *conn, const struct hf__wake *wake)
{
    hf__sqlite_ring(conn->db, wake);
}

/* Every migration begins a transaction, and there is one writer at a time. */
static hf_code no_lock_needed(struct hf__conn *conn, hf_error *err)
{
    (void)conn;
    (void)err;
    return HF_OK;
}

static void no_unlock_needed(struct hf__conn *conn)
{
    (void)conn;
}

const struct hf__driver hf__sqlite_driver = {
    .name = "sqlite",
    .statements = hf__sqlite_statements,
    .migrations = hf__sqlite_migrations,
    .migration_count = HF__SQLITE_MIGRATION_COUNT,
    .min_writer = 17,
    .shares_mail = 17,
    .open = open_store,
    .close = hf__sqlite_close,
    .flushers = flushers,
    .connect = connect_store,
    .disconnect = disconnect,
    .lost = lost,
    .begin = begin,
    .send = send,
    .sync = sync_sent,
    .may_foretell = may_foretell,
    .foretell = foretell,
    .commit = commit,
    .rollback = rollback,
    .script = script,
    .migrate_lock = no_lock_needed,
    .migrate_unlock = no_unlock_needed,
    .watch = hf__sqlite_watch,
    .watch_wait = hf__sqlite_watch_wait,
    .watch_stop = hf__sqlite_watch_stop,
    .unwatch = hf__sqlite_unwatch,
    .ring = ring,
};
