/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres.h"

#include "util/clock.h"
#include "util/error.h"

#include <string.h>

void hf__postgres_abandon(struct hf__conn *conn)
{
    conn->lost = true;
    conn->in_transaction = false;
    conn->settings_queued = false;
    conn->owed_count = 0;
}

static bool is_sync_point(const struct hf__postgres_owed *owed)
{
    return owed->step == HF__STEP_SYNC || owed->step == HF__STEP_DURABLE;
}

static const char *owed_name(const struct hf__conn *conn, const struct hf__postgres_owed *owed)
{
    switch (owed->step) {
    case HF__STEP_COMMIT: return "the commit";
    case HF__STEP_PREPARE:
    case HF__STEP_STATEMENT: return conn->db->statements[owed->stmt].name;
    default: return "a command";
    }
}

static bool is_about_preparing(const char *sqlstate)
{
    return strcmp(sqlstate, "26000") == 0 || strcmp(sqlstate, "42P05") == 0;
}

/* A pooler that hands out another session per transaction forgets what we prepared. From now on nothing is prepared, and the
 * caller's new connection works. */
static void notice_pooler(struct hf__conn *conn, const char *sqlstate)
{
    if (!is_about_preparing(sqlstate))
        return;
    atomic_store(&conn->db->unprepared, true);
    conn->lost = true;
}

/* Answers come in order: an error before the commit's own answer means that the commit was skipped. Not so when the server
 * goes away at the commit itself, nor when a pooler (class 08) only tells that it lost the server. */
static bool rules_out_commit(const struct hf__postgres_owed *owed, const char *sqlstate,
                             hf_code code)
{
    if (owed->forgiven || is_sync_point(owed) || strncmp(sqlstate, "08", 2) == 0)
        return false;
    return owed->step != HF__STEP_COMMIT || code != HF_UNAVAILABLE;
}

static hf_code take_error(struct hf__conn *conn, const struct hf__postgres_owed *owed,
                          const PGresult *result, hf_error *err)
{
    hf_code code = hf__postgres_fail(err, result, conn->pg, owed_name(conn, owed));
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    if (owed->stmt == HF__STMT_NOTIFY_EARLY && code != HF_UNAVAILABLE)
        atomic_store(&conn->db->has_no_places, true);
    /* A wake-up whose preparation failed may be sent again before that is known. */
    if (sqlstate && owed->forgiven && is_about_preparing(sqlstate))
        return code;
    if (sqlstate) {
        notice_pooler(conn, sqlstate);
        conn->refused = conn->refused || rules_out_commit(owed, sqlstate, code);
    }
    if (code == HF_UNAVAILABLE)
        conn->lost = true;
    return code;
}

static hf_code take_commit(struct hf__conn *conn, PGresult *result, hf_error *err)
{
    conn->committed = strcmp(PQcmdStatus(result), "COMMIT") == 0;
    if (conn->committed)
        return HF_OK;
    conn->refused = true;
    return hf__postgres_fail_as(err, HF_STORE, "25P02",
                                "PostgreSQL rolled back instead of committing: a statement of the "
                                "transaction had failed before");
}

/* Whether notify_workers found somebody to notify, and what it tells of the server. */
static void note_sleeper(struct hf__conn *conn, const struct hf__postgres_owed *owed,
                         const PGresult *result)
{
    if (owed->stmt != HF__STMT_NOTIFY_WORKERS)
        return;
    bool found = PQntuples(result) > 0;
    atomic_store(&conn->db->sleeper_seen_at, found ? hf__monotonic_us() : 0);
    atomic_store(&conn->db->alone, found && PQnfields(result) > 1 && *PQgetvalue(result, 0, 1));
}

static hf_code take_success(struct hf__conn *conn, const struct hf__postgres_owed *owed,
                            PGresult *result, hf_error *err)
{
    switch (owed->step) {
    case HF__STEP_PREPARE: conn->prepared[owed->stmt] = HF__PREPARED; return HF_OK;
    case HF__STEP_COMMIT: return take_commit(conn, result, err);
    case HF__STEP_STATEMENT:
        note_sleeper(conn, owed, result);
        if (owed->result)
            return hf__postgres_decode(owed->result, &conn->db->statements[owed->stmt], result,
                                       err);
        return HF_OK;
    default: return HF_OK;
    }
}

static hf_code take_result(struct hf__conn *conn, const struct hf__postgres_owed *owed,
                           PGresult *result, hf_error *err)
{
    switch (PQresultStatus(result)) {
    case PGRES_COMMAND_OK:
    case PGRES_TUPLES_OK: return take_success(conn, owed, result, err);
    case PGRES_PIPELINE_SYNC:
    case PGRES_PIPELINE_ABORTED: return HF_OK;
    case PGRES_FATAL_ERROR: return take_error(conn, owed, result, err);
    default:
        hf__postgres_abandon(conn);
        return hf__fail(err, HF_INTERNAL, "statement '%s' gave an unexpected answer (%s)",
                        owed_name(conn, owed), PQresStatus(PQresultStatus(result)));
    }
}

/* False: the connection ended before the answer did. A sync point is one result, anything else ends with NULL. */
static bool take_answer(struct hf__conn *conn, const struct hf__postgres_owed *owed, hf_code *code,
                        hf_error *err)
{
    PGresult *result = hf__postgres_next(conn->pg, &conn->patience);
    if (!result)
        return false;
    if (is_sync_point(owed)) {
        bool synced = PQresultStatus(result) == PGRES_PIPELINE_SYNC;
        if (!synced)
            *code = take_result(conn, owed, result, err);
        PQclear(result);
        return synced;
    }
    while (result) {
        hf_code each = take_result(conn, owed, result, *code == HF_OK ? err : NULL);
        if (*code == HF_OK)
            *code = each;
        PQclear(result);
        result = hf__postgres_next(conn->pg, &conn->patience);
    }
    return true;
}

/* What was being prepared when the pipeline was aborted is not prepared. */
static void settle_prepared(struct hf__conn *conn)
{
    for (int i = 0; i < HF__STMT_COUNT; i++)
        if (conn->prepared[i] == HF__PREPARING)
            conn->prepared[i] = HF__UNPREPARED;
}

/* One answer. The first failure that matters is kept in *code and err: none behind a COMMIT that was answered well, where a
 * wake-up may fail and the connection break. False: there is nothing more to read. */
static bool drain_one(struct hf__conn *conn, const struct hf__postgres_owed *owed, hf_code *code,
                      hf_error *err)
{
    bool behind_commit = conn->committed && owed->step == HF__STEP_SYNC;
    bool matters = *code == HF_OK && !owed->forgiven && !behind_commit;
    hf_code own = HF_OK;
    bool whole = take_answer(conn, owed, &own, matters ? err : NULL);
    if (!whole) {
        conn->lost = true;
        if (own == HF_OK)
            own = hf__postgres_fail(matters ? err : NULL, NULL, conn->pg, owed_name(conn, owed));
    }
    if (matters)
        *code = own;
    return whole;
}

/* The first of them, once they are all sent: a wake-up that waits in our own buffer wakes nobody. */
static bool may_stop(struct hf__conn *conn, int read, int awaited)
{
    return read >= awaited && PQflush(conn->pg) <= 0;
}

/* What was asked for was answered well, and nothing of the COMMIT waits in our own buffer. */
static void tell(struct hf__conn *conn, int read, hf_code code)
{
    if (!conn->told || read != conn->told_at)
        return;
    hf__told told = conn->told;
    conn->told = NULL;
    if (code == HF_OK && PQflush(conn->pg) == 0)
        told(conn->told_arg);
}

hf_code hf__postgres_drain(struct hf__conn *conn, int awaited, hf_error *err)
{
    hf_code code = HF_OK;
    int read = 0;
    conn->refused = false;
    conn->committed = false;
    hf__postgres_patience(&conn->patience, conn->db, conn->pg, HF__PATIENCE_WORK);
    while (read < conn->owed_count && !may_stop(conn, read, awaited)) {
        tell(conn, read, code);
        if (!drain_one(conn, &conn->owed[read], &code, err))
            break;
        read++;
    }
    if (read < awaited && code == HF_OK && (!conn->committed || conn->deferred))
        code = hf__postgres_fail(err, NULL, conn->pg, "a statement");
    if (conn->patience.over && code == HF_UNAVAILABLE)
        hf__postgres_fail_silent(conn->db, err);
    conn->owed_count = conn->lost ? 0 : conn->owed_count - read;
    if (conn->owed_count > 0)
        memmove(conn->owed, conn->owed + read, (size_t)conn->owed_count * sizeof *conn->owed);
    conn->settings_queued = conn->settings_queued && conn->in_transaction;
    if (conn->owed_count == 0)
        settle_prepared(conn);
    if (conn->lost || PQstatus(conn->pg) != CONNECTION_OK)
        hf__postgres_abandon(conn);
    return code;
}
