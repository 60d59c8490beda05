/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres.h"

#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NO_TRANSACTION "-- holdfast: no transaction"
#define BRIEF_LOCKS " lock_timeout = '200ms'"

enum { LOCK_RETRY_US = 100000, LOCK_PATIENCE_US = 60000000 };

/* Takes `result` over. */
static hf_code check_plain(PGconn *pg, PGresult *result, const char *what, hf_error *err)
{
    ExecStatusType status = PQresultStatus(result);
    hf_code code = HF_OK;
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK && status != PGRES_EMPTY_QUERY)
        code = hf__postgres_fail(err, result, pg, what);
    PQclear(result);
    return code;
}

static hf_code run_plain(struct hf__conn *conn, const char *sql, hf_error *err)
{
    PGresult *result = hf__postgres_ask(conn->pg, conn->db, HF__PATIENCE_ENDLESS, sql, 0, NULL);
    return check_plain(conn->pg, result, "the migration", err);
}

/* The next line that holds nothing but ";;", or NULL. */
static const char *find_divider(const char *sql)
{
    for (const char *at = sql; (at = strstr(at, ";;")) != NULL; at += 2) {
        bool starts = at == sql || at[-1] == '\n';
        if (starts && (at[2] == '\n' || at[2] == '\0'))
            return at;
    }
    return NULL;
}

/* Whether it waits for locks without keeping others from the table meanwhile. */
static bool waits_aside(const char *part)
{
    const char *call = strstr(part, "CALL ");
    return strstr(part, "CONCURRENTLY") || (call && (call == part || call[-1] == '\n'));
}

/* Who waits for a table's strongest lock stands before all that come later: it gives up after a moment, lets them pass and
 * stands in line again. */
static hf_code run_part(struct hf__conn *conn, const char *part, hf_error *err)
{
    hf_error failure = { 0 };
    bool aside = waits_aside(part);
    hf_code code = run_plain(conn, aside ? "SET lock_timeout = 0" : "SET" BRIEF_LOCKS, err);
    if (code != HF_OK)
        return code;
    while ((code = run_plain(conn, part, &failure)) != HF_OK && hf__error_is_lock(&failure))
        nanosleep(&(struct timespec){ .tv_nsec = LOCK_RETRY_US * 1000L }, NULL);
    if (err && code != HF_OK)
        *err = failure;
    return code;
}

/* Each part by itself: what refuses to run inside a transaction must not share its message with anything. */
static hf_code run_parts(struct hf__conn *conn, const char *sql, hf_error *err)
{
    hf_code code = HF_OK;
    const char *at = sql;
    while (code == HF_OK && at) {
        const char *divider = find_divider(at);
        char *part = hf__strndup(at, divider ? (size_t)(divider - at) : strlen(at));
        if (!part)
            return hf__nomem(err);
        code = run_part(conn, part, err);
        free(part);
        at = divider ? divider + 2 : NULL;
    }
    return code;
}

/* Brings the session's settings back; a pooler's shared session has none of ours. */
static hf_code restore_settings(struct hf__conn *conn, hf_error *err)
{
    static const char *const session_wide[] = { "false" };
    if (conn->unprepared)
        return run_plain(conn, "RESET lock_timeout", err);
    const char *settings = conn->db->statements[HF__STMT_APPLY_SETTINGS].sql;
    return check_plain(
        conn->pg,
        hf__postgres_ask(conn->pg, conn->db, HF__PATIENCE_WORK, settings, 1, session_wide),
        "a setting", err);
}

/* In a transaction, whoever began it tries again where it was locked out. */
static hf_code run_script(struct hf__conn *conn, const char *sql, bool parts, hf_error *err)
{
    if (!parts) {
        hf_code code = run_plain(conn, "SET LOCAL" BRIEF_LOCKS, err);
        return code == HF_OK ? run_plain(conn, sql, err) : code;
    }
    hf_code code = run_parts(conn, sql, err);
    hf_code restored = restore_settings(conn, code == HF_OK ? err : NULL);
    return code == HF_OK ? restored : code;
}

static bool wants_no_transaction(const char *sql)
{
    const char *line = strstr(sql, NO_TRANSACTION);
    return line && (line == sql || line[-1] == '\n');
}

hf_code hf__postgres_script(struct hf__conn *conn, const char *sql, hf_error *err)
{
    bool parts = wants_no_transaction(sql);
    if (parts && conn->in_transaction)
        return hf__fail(err, HF_INTERNAL, "a script '%s' was run inside one", NO_TRANSACTION);
    hf_code code = hf__postgres_sync(conn, err);
    if (code != HF_OK)
        return code;
    if (!PQexitPipelineMode(conn->pg))
        return hf__postgres_fail(err, NULL, conn->pg, "the end of pipeline mode");

    code = run_script(conn, sql, parts, err);
    if (PQstatus(conn->pg) != CONNECTION_OK || !PQenterPipelineMode(conn->pg))
        hf__postgres_abandon(conn);
    return code;
}

static PGresult *ask_briefly(PGconn *pg, struct hf__database *db, const char *sql)
{
    return hf__postgres_ask(pg, db, HF__PATIENCE_WORK, sql, 0, NULL);
}

/* One try in a transaction of its own, which stays open if the lock was got. */
static hf_code try_lock(PGconn *pg, struct hf__database *db, bool *locked, hf_error *err)
{
    hf_code code = check_plain(pg, ask_briefly(pg, db, "BEGIN"), "a command", err);
    if (code == HF_OK)
        code = check_plain(pg,
                           ask_briefly(pg, db, "SET LOCAL idle_in_transaction_session_timeout = 0"),
                           "a command", err);
    if (code != HF_OK)
        return code;
    hf_error failure = { 0 };
    PGresult *result = ask_briefly(pg, db, db->statements[HF__STMT_TRY_MIGRATE_LOCK].sql);
    code = check_plain(pg, result, "the schema's lock", &failure);
    *locked = code == HF_OK;
    if (code != HF_OK && hf__error_is_lock(&failure))
        return check_plain(pg, ask_briefly(pg, db, "ROLLBACK"), "a command", err);
    if (code != HF_OK && err)
        *err = failure;
    return code;
}

/* The lock belongs to an open transaction on a connection of its own, so that it holds through a pooler too. It is tried
 * again and again instead of waited for: a waiting statement has a snapshot, for which CREATE INDEX CONCURRENTLY of the lock's
 * holder would wait in turn. */
hf_code hf__postgres_migrate_lock(struct hf__conn *conn, hf_error *err)
{
    PGconn *pg = NULL;
    hf_code code = hf__postgres_dial(&pg, conn->db, err);
    int64_t deadline = hf__monotonic_us() + LOCK_PATIENCE_US;
    bool locked = false;
    while (code == HF_OK) {
        code = try_lock(pg, conn->db, &locked, err);
        if (code != HF_OK || locked)
            break;
        if (hf__monotonic_us() >= deadline)
            code = hf__fail(err, HF_LOCKED,
                            "another process has been migrating the schema for %d s; try again "
                            "when it is done",
                            LOCK_PATIENCE_US / 1000000);
        nanosleep(&(struct timespec){ .tv_nsec = LOCK_RETRY_US * 1000L }, NULL);
    }
    if (code == HF_OK)
        conn->migration_lock = pg;
    else
        PQfinish(pg);
    return code;
}

void hf__postgres_migrate_unlock(struct hf__conn *conn)
{
    PQfinish(conn->migration_lock);
    conn->migration_lock = NULL;
}
