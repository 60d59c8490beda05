/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres.h"

#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"

#include <stdlib.h>
#include <string.h>

/* Settings, prepare, statement, sync point. */
enum { NOTIFY_ANSWERS = 4 };
/* Twice prepare and statement, sync point. */
enum { COMMIT_ANSWERS = 5 };
/* Prepare, statement, sync point. */
enum { DURABLE_ANSWERS = 3 };

/* How long a worker that was seen idle is taken for idle. */
#define SLEEPER_STAYS HF_SECONDS(1)

static hf_code check_alive(struct hf__conn *conn, hf_error *err)
{
    if (!conn->lost)
        return HF_OK;
    return hf__postgres_fail_as(err, HF_UNAVAILABLE, "08003",
                                "the connection to PostgreSQL was lost before; connect again");
}

/* Room comes first: once a question is sent, its answer must be owed. */
static hf_code make_room(struct hf__conn *conn, int answers, hf_error *err)
{
    if (conn->owed_count + answers <= conn->owed_capacity)
        return HF_OK;
    int capacity = conn->owed_capacity * 2 + 32;
    struct hf__postgres_owed *owed = hf__realloc(conn->owed, (size_t)capacity * sizeof *conn->owed);
    if (!owed)
        return hf__nomem(err);
    conn->owed = owed;
    conn->owed_capacity = capacity;
    return HF_OK;
}

/* `sent` is libpq's verdict on the question. */
static hf_code owe(struct hf__conn *conn, int sent, enum hf__postgres_step step, int stmt,
                   struct hf__table *result, hf_error *err)
{
    if (!sent) {
        hf_code code = hf__postgres_fail(err, NULL, conn->pg, "a statement");
        hf__postgres_abandon(conn);
        return code;
    }
    conn->owed[conn->owed_count++] = (struct hf__postgres_owed){
        .step = step, .forgiven = conn->waking, .stmt = stmt, .result = result
    };
    return HF_OK;
}

static hf_code queue_rollback(struct hf__conn *conn)
{
    hf_code code = make_room(conn, 1, NULL);
    if (code != HF_OK)
        return code;
    int sent = PQsendQueryParams(conn->pg, "ROLLBACK", 0, NULL, NULL, NULL, NULL, 1);
    return owe(conn, sent, HF__STEP_COMMAND, -1, NULL, NULL);
}

hf_code hf__postgres_queue_settings(struct hf__conn *conn, bool local, hf_error *err)
{
    hf_code code = make_room(conn, 1, err);
    if (code != HF_OK)
        return code;
    const char *values[] = { local ? "true" : "false" };
    int sent = PQsendQueryParams(conn->pg, conn->db->statements[HF__STMT_APPLY_SETTINGS].sql, 1,
                                 NULL, values, NULL, NULL, 1);
    return owe(conn, sent, HF__STEP_COMMAND, -1, NULL, err);
}

static hf_code queue_sync_point(struct hf__conn *conn, hf_error *err)
{
    hf_code code = make_room(conn, 1, err);
    if (code != HF_OK)
        return code;
    return owe(conn, PQpipelineSync(conn->pg), HF__STEP_SYNC, -1, NULL, err);
}

/* Behind a wake-up: its failure is nobody's. */
static hf_code queue_wake_sync(struct hf__conn *conn)
{
    conn->waking = true;
    hf_code code = queue_sync_point(conn, NULL);
    conn->waking = false;
    return code;
}

static hf_code queue_prepare(struct hf__conn *conn, enum hf__stmt stmt, hf_error *err)
{
    const struct hf__statement *statement = &conn->db->statements[stmt];
    if (conn->unprepared || conn->prepared[stmt] != HF__UNPREPARED)
        return HF_OK;
    hf_code code = make_room(conn, 1, err);
    if (code != HF_OK)
        return code;
    int sent = PQsendPrepare(conn->pg, statement->name, statement->sql, conn->params.count,
                             conn->params.types);
    code = owe(conn, sent, HF__STEP_PREPARE, (int)stmt, NULL, err);
    if (code == HF_OK)
        conn->prepared[stmt] = HF__PREPARING;
    return code;
}

/* With the parameters that were encoded last, prepared if it is not yet. */
static hf_code queue_statement(struct hf__conn *conn, enum hf__postgres_step step,
                               enum hf__stmt stmt, struct hf__table *result, hf_error *err)
{
    const struct hf__statement *statement = &conn->db->statements[stmt];
    const struct hf__postgres_params *params = &conn->params;
    hf_code code = queue_prepare(conn, stmt, err);
    if (code == HF_OK)
        code = make_room(conn, 1, err);
    if (code != HF_OK)
        return code;
    int sent = conn->unprepared
                   ? PQsendQueryParams(conn->pg, statement->sql, params->count, params->types,
                                       params->values, params->lengths, params->formats, 1)
                   : PQsendQueryPrepared(conn->pg, statement->name, params->count, params->values,
                                         params->lengths, params->formats, 1);
    return owe(conn, sent, step, (int)stmt, result, err);
}

/* A statement that takes nothing. */
static hf_code queue_bare(struct hf__conn *conn, enum hf__postgres_step step, enum hf__stmt stmt,
                          hf_error *err)
{
    hf_code code = hf__postgres_encode(&conn->params, &conn->db->statements[stmt], NULL, err);
    return code == HF_OK ? queue_statement(conn, step, stmt, NULL, err) : code;
}

/* Without a session of our own, each transaction brings its settings: the explicit one, or the implicit one that lasts until
 * the next sync point. */
static hf_code ensure_settings(struct hf__conn *conn, hf_error *err)
{
    if (!conn->unprepared || conn->settings_queued)
        return HF_OK;
    hf_code code = hf__postgres_queue_settings(conn, true, err);
    conn->settings_queued = code == HF_OK;
    return code;
}

hf_code hf__postgres_begin(struct hf__conn *conn, hf_error *err)
{
    hf_code code = check_alive(conn, err);
    if (code == HF_OK)
        code = queue_bare(conn, HF__STEP_COMMAND, HF__STMT_BEGIN, err);
    if (code != HF_OK)
        return code;
    conn->in_transaction = true;
    conn->settings_queued = false;
    conn->told = NULL;
    return ensure_settings(conn, err);
}

hf_code hf__postgres_send(struct hf__conn *conn, enum hf__stmt stmt, const struct hf__table *params,
                          struct hf__table *result, hf_error *err)
{
    const struct hf__statement *statement = &conn->db->statements[stmt];
    hf_code code = check_alive(conn, err);
    if (code != HF_OK)
        return code;
    if (!statement->sql)
        return hf__fail(err, HF_INTERNAL, "statement '%s' does not exist for PostgreSQL",
                        statement->name ? statement->name : "?");
    if (result && result->nrows == 0)
        result->ncolumns = statement->ncolumns;
    if (statement->takes == HF__TAKES_ROWS && params && params->nrows == 0 && !params->failed)
        return HF_OK;

    code = hf__postgres_encode(&conn->params, statement, params, err);
    if (code == HF_OK)
        code = ensure_settings(conn, err);
    if (code == HF_OK)
        code = queue_statement(conn, HF__STEP_STATEMENT, stmt, result, err);
    return code;
}

hf_code hf__postgres_sync(struct hf__conn *conn, hf_error *err)
{
    hf_code code = check_alive(conn, err);
    if (code != HF_OK || conn->owed_count == 0)
        return code;
    code = queue_sync_point(conn, err);
    return code == HF_OK ? hf__postgres_drain(conn, conn->owed_count, err) : code;
}

static hf_code queue_notify(struct hf__conn *conn, enum hf__stmt stmt, const char *channel,
                            const struct hf__buffer *payload)
{
    struct hf__cell cells[] = { hf__text(channel), hf__text_n(payload->data, payload->length) };
    struct hf__table one = { .cells = cells, .ncolumns = 2, .nrows = 1, .capacity = 1 };
    hf_code code = make_room(conn, NOTIFY_ANSWERS, NULL);
    if (code != HF_OK)
        return code;
    conn->waking = true;
    conn->settings_queued = false;
    code = hf__postgres_send(conn, stmt, &one, NULL, NULL);
    conn->waking = false;
    return code;
}

static hf_code queue_wake_workers(struct hf__conn *conn, enum hf__stmt stmt,
                                  const struct hf__wake *wake)
{
    struct hf__buffer payload = { 0 };
    hf_code code = HF_OK;
    hf__postgres_wake_workers(&payload, wake);
    if (!payload.failed)
        code = queue_notify(conn, stmt, HF__POSTGRES_WAKE_CHANNEL, &payload);
    hf__buffer_free(&payload);
    return code;
}

static hf_code queue_wake_runs(struct hf__conn *conn, const struct hf__wake *wake)
{
    struct hf__buffer payload = { 0 };
    hf_code code = HF_OK;
    hf__postgres_wake_runs(&payload, wake);
    if (!payload.failed)
        code = queue_notify(conn, HF__STMT_NOTIFY_RUNS, HF__POSTGRES_RUN_CHANNEL, &payload);
    hf__buffer_free(&payload);
    return code;
}

/* Where no idle worker was seen of late, nobody's answer waits for a wake-up. */
static bool is_urgent(const struct hf__conn *conn, const struct hf__wake *wake)
{
    return wake && wake->urgent && wake->lane_count > 0 &&
           hf__monotonic_us() - atomic_load(&conn->db->sleeper_seen_at) < SLEEPER_STAYS;
}

/* Worth while where an idle worker hears of it meanwhile. Behind a pooler, nothing may stand behind the COMMIT. */
bool hf__postgres_may_defer(const struct hf__conn *conn)
{
    const struct hf__database *db = conn->db;
    return !conn->unprepared && atomic_load(&db->alone) && !atomic_load(&db->has_no_places) &&
           hf__monotonic_us() - atomic_load(&db->sleeper_seen_at) < SLEEPER_STAYS;
}

/* Each has its own sync point: its own transaction, and no share in another's failure. */
static void queue_wake(struct hf__conn *conn, const struct hf__wake *wake, bool urgent)
{
    hf_code code = HF_OK;
    if (!wake)
        return;
    if (!urgent && (wake->lane_count > 0 || wake->workflows_changed || wake->leases_lost)) {
        enum hf__stmt stmt = wake->leases_lost ? HF__STMT_NOTIFY_RUNS : HF__STMT_NOTIFY_WORKERS;
        code = queue_wake_workers(conn, stmt, wake);
        if (code == HF_OK)
            code = queue_wake_sync(conn);
    }
    if (code == HF_OK && wake->watched_count > 0 && queue_wake_runs(conn, wake) == HF_OK)
        queue_wake_sync(conn);
}

/* A pooler gives the session to others when the COMMIT's sync point is answered, even if it has passed on a part of what
 * stands behind it: so nothing does. */
static void wake_alone(struct hf__conn *conn, const struct hf__wake *wake, bool urgent)
{
    if (conn->lost)
        return;
    queue_wake(conn, wake, urgent);
    hf__postgres_drain(conn, conn->owed_count, NULL);
}

/* Without a flush request the server keeps all answers back until the sync point behind the COMMIT. A pooler's word that it
 * took the COMMIT is not the server's: then nothing is told before the answer. */
void hf__postgres_foretell(struct hf__conn *conn, hf__told told, void *arg)
{
    if (conn->unprepared || conn->lost || !PQsendFlushRequest(conn->pg))
        return;
    conn->told = told;
    conn->told_arg = arg;
    conn->told_at = conn->owed_count;
}

/* The wake-up is a transaction of its own; then that is waited for which could not be done before it. */
static hf_code queue_durable(struct hf__conn *conn, hf_error *err)
{
    hf_code code = queue_wake_sync(conn);
    if (code == HF_OK)
        code = queue_bare(conn, HF__STEP_COMMAND, HF__STMT_MAKE_DURABLE, err);
    return code == HF_OK ? owe(conn, PQpipelineSync(conn->pg), HF__STEP_DURABLE, -1, NULL, err)
                         : code;
}

/* An urgent wake-up stands between the COMMIT and the sync point, so that the server sends it before it turns to the answer.
 * Nobody looks again whether there is an idle worker: a NOTIFY too many does no harm. */
static hf_code queue_commit(struct hf__conn *conn, const struct hf__wake *urgent, hf_error *err)
{
    conn->deferred = urgent && urgent->deferred;
    hf_code code = make_room(conn, COMMIT_ANSWERS + NOTIFY_ANSWERS + DURABLE_ANSWERS, err);
    if (code == HF_OK && conn->deferred)
        code = queue_bare(conn, HF__STEP_COMMAND, HF__STMT_DEFER_FLUSH, err);
    if (code == HF_OK)
        code = queue_bare(conn, HF__STEP_COMMIT, HF__STMT_COMMIT, err);
    if (code != HF_OK)
        return code;
    if (urgent)
        (void)!queue_wake_workers(
            conn, conn->deferred ? HF__STMT_NOTIFY_EARLY : HF__STMT_NOTIFY_RUNS, urgent);
    code = conn->deferred ? queue_durable(conn, err) : queue_sync_point(conn, err);
    if (code != HF_OK) /* a COMMIT left in the queue would be performed by a later sync */
        hf__postgres_abandon(conn);
    return code;
}

/* What was committed and is not on disk for certain is sent again, over another connection. */
static hf_code leave_unknown(struct hf__conn *conn, hf_error *err)
{
    conn->lost = true;
    if (err)
        err->code = HF_UNAVAILABLE;
    return HF_UNAVAILABLE;
}

hf_code hf__postgres_commit(struct hf__conn *conn, const struct hf__wake *wake, bool *unknown,
                            hf_error *err)
{
    *unknown = false;
    hf_code code = check_alive(conn, err);
    if (code != HF_OK)
        return code;
    bool urgent = (wake && wake->deferred) || is_urgent(conn, wake);
    bool has_no_places = atomic_load(&conn->db->has_no_places);
    code = queue_commit(conn, urgent ? wake : NULL, err);
    int awaited = conn->owed_count;
    if (code == HF_OK) {
        conn->in_transaction = false;
        if (!conn->unprepared)
            queue_wake(conn, wake, urgent);
        code = check_alive(conn, err);
    }
    if (code != HF_OK) {
        conn->told = NULL; /* whom it would tell is gone by the next commit */
        *unknown = conn->lost;
        return code;
    }
    code = hf__postgres_drain(conn, awaited, err);
    conn->in_transaction = !conn->committed && !conn->lost;
    /* Committed in spite of an error: an answer could not be kept, so to the caller it is lost. */
    *unknown = code != HF_OK && (conn->committed || (conn->lost && !conn->refused));
    if (*unknown && conn->committed && conn->deferred)
        return leave_unknown(conn, err);
    if (code == HF_OK && has_no_places != atomic_load(&conn->db->has_no_places))
        wake_alone(conn, wake, false);
    if (conn->unprepared && conn->committed)
        wake_alone(conn, wake, urgent);
    return code;
}

/* What was queued but never synced is answered to nobody. Its failure must not stop the ROLLBACK behind a BEGIN; without a
 * BEGIN, a sync point would commit it. */
static hf_code disown(struct hf__conn *conn)
{
    for (int i = 0; i < conn->owed_count; i++)
        conn->owed[i].result = NULL;
    return conn->owed_count && conn->in_transaction ? queue_sync_point(conn, NULL) : HF_OK;
}

void hf__postgres_rollback(struct hf__conn *conn)
{
    conn->told = NULL;
    if (conn->lost || (!conn->in_transaction && conn->owed_count == 0))
        return;
    bool ready = disown(conn) == HF_OK && queue_rollback(conn) == HF_OK &&
                 queue_sync_point(conn, NULL) == HF_OK;
    conn->in_transaction = false;
    if (ready)
        hf__postgres_drain(conn, conn->owed_count, NULL);
    if (!ready || PQtransactionStatus(conn->pg) != PQTRANS_IDLE)
        hf__postgres_abandon(conn);
}

void hf__postgres_ring(struct hf__conn *conn, const struct hf__wake *wake)
{
    if (!conn->in_transaction)
        wake_alone(conn, wake, false);
}
