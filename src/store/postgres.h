/* Private to the PostgreSQL driver: what its files share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_STORE_POSTGRES_H
#define HF_STORE_POSTGRES_H

#include "store/driver.h"
#include "util/buffer.h"

#include <libpq-fe.h>
#include <stdatomic.h>

#define HF__POSTGRES_PARAMS_MAX 128
#define HF__POSTGRES_WAKE_CHANNEL "holdfast_wake"
#define HF__POSTGRES_RUN_CHANNEL "holdfast_run"

/* ---- url: a checked URL as libpq's own keywords and values ---- */

struct hf__postgres_url {
    char **keywords; /* both end with NULL, as PQconnectdbParams wants them */
    char **values;
    int count;
    bool unprepared; /* prepare=off: no prepared statements, settings per transaction */
    int64_t
        answer_limit; /* answer_timeout, us: after such a silence it is asked what is the matter */
    struct hf__conn_limits limits; /* max_open, max_idle, max_lifetime */
};

hf_code hf__postgres_url_parse(struct hf__postgres_url *out, const char *url, hf_error *err);
/* NULL when it was not given. */
const char *hf__postgres_url_value(const struct hf__postgres_url *url, const char *keyword);
void hf__postgres_url_free(struct hf__postgres_url *url);

/* ---- error: what the server says, in our codes ---- */

/* HF_STORE unless the SQLSTATE says more. */
hf_code hf__postgres_code(const char *sqlstate);
/* Fills err, with a SQLSTATE always; `result` NULL or without a SQLSTATE: libpq's own words about the connection.
 * `what` names the statement. */
hf_code hf__postgres_fail(hf_error *err, const PGresult *result, const PGconn *pg,
                          const char *what);
/* An error of ours with a SQLSTATE, so that callers sort it as they sort the server's. */
hf_code hf__postgres_fail_as(hf_error *err, hf_code code, const char *sqlstate, const char *fmt,
                             ...) __attribute__((format(printf, 4, 5)));

/* ---- encode: tables to binary parameters, binary results to tables ---- */

struct hf__postgres_params {
    struct hf__buffer bytes;
    int count;
    Oid types[HF__POSTGRES_PARAMS_MAX];
    const char *values[HF__POSTGRES_PARAMS_MAX]; /* into bytes; NULL for null */
    int lengths[HF__POSTGRES_PARAMS_MAX];
    int formats[HF__POSTGRES_PARAMS_MAX];
};

/* Reuses the memory of an earlier encoding; starts zeroed. `table` may be NULL when the statement takes nothing. */
hf_code hf__postgres_encode(struct hf__postgres_params *params,
                            const struct hf__statement *statement, const struct hf__table *table,
                            hf_error *err);
void hf__postgres_params_free(struct hf__postgres_params *params);
/* Appends the result's rows to the table. */
hf_code hf__postgres_decode(struct hf__table *table, const struct hf__statement *statement,
                            const PGresult *result, hf_error *err);

/* ---- wake: the payloads of NOTIFY ----
 *
 *   holdfast_wake   [lane *(" " lane)] ["@" earliest] ["#" id ["~" place]] ["!workflows"] ["!leases"]
 *                                                                      lane 0: any; "" means any lane, now; place: in the log
 *                   "?" anything                                       a listener's test of itself; others ignore it
 *   holdfast_run    id *(" " id)                                       32 hex digits each; all zero: any
 *
 * Payloads may come from anybody who may NOTIFY in this database: what cannot be read means "look everywhere". */

void hf__postgres_wake_workers(struct hf__buffer *out, const struct hf__wake *wake);
void hf__postgres_wake_runs(struct hf__buffer *out, const struct hf__wake *wake);
/* Calls `hear` for each thing the payload names; returns how many. */
int hf__postgres_hear(const char *channel, const char *payload, hf__hear hear, void *arg);

/* ---- connection ---- */

struct hf__database {
    const struct hf__statement *statements; /* HF__STMT_COUNT of them */
    struct hf__postgres_url url;
    _Atomic int64_t
        sleeper_seen_at; /* monotonic us at which a wake-up last found an idle worker; 0: it found none */
    atomic_bool alone;         /* the disk is all that a commit waits for, as it was told then */
    atomic_bool has_no_places; /* the server does not tell places in its log */
    atomic_bool unprepared;    /* by URL, or since a pooler lost our prepared statements */
    /* Of a server that does not answer, see silence: */
    atomic_int silences; /* how often that was noticed; older connections are lost with it */
    _Atomic int64_t ask_again_at; /* monotonic us; 0: it answers */
};

/* ---- silence: a server that is connected and does not answer ----
 *
 * Who waits for an answer has patience. After answer_limit without a byte the server is asked on a second connection
 * whether it is at work on it. If that is not answered either, or it is not, the connection is shut, as if it had broken.
 * While the server as a whole is silent, one at a time tries to connect, and all others are refused at once. */

struct hf__postgres_patience {
    struct hf__database *db;
    int pid;          /* of the session, or what a pooler tells instead */
    int64_t began;    /* monotonic us */
    int64_t heard_at; /* the same: when something was last sent or received */
    int64_t most;     /* us in all, whatever the server says; 0: as long as it is at work */
    bool asks;        /* a second connection is asked whether it is */
    bool over;        /* the connection was shut */
};

enum {
    HF__PATIENCE_NONE = 1,   /* times answer_limit: nobody is asked */
    HF__PATIENCE_WORK = 60,  /* ten minutes unless told otherwise */
    HF__PATIENCE_ENDLESS = 0 /* a migration */
};

void hf__postgres_patience(struct hf__postgres_patience *patience, struct hf__database *db,
                           PGconn *pg, int times);
/* The next result; NULL at the end of one answer. Never blocks on a connection that is broken or was shut: what arrived
 * before is given first. */
PGresult *hf__postgres_next(PGconn *pg, struct hf__postgres_patience *patience);
/* PQexecParams (without values: PQexec) with a limit. NULL, or a result that is yours. */
PGresult *hf__postgres_ask(PGconn *pg, struct hf__database *db, int times, const char *sql,
                           int count, const char *const *values);
/* Says so in place of what libpq makes of it. */
hf_code hf__postgres_fail_silent(const struct hf__database *db, hf_error *err);

enum hf__postgres_step {
    HF__STEP_PREPARE,
    HF__STEP_COMMAND, /* BEGIN, settings, ROLLBACK */
    HF__STEP_STATEMENT,
    HF__STEP_COMMIT,
    HF__STEP_SYNC,
    HF__STEP_DURABLE /* a sync point behind a COMMIT that is not durable before it */
};

/* One answer that the server owes us, in the order of the questions. */
struct hf__postgres_owed {
    enum hf__postgres_step step;
    bool forgiven;            /* a wake: its failure is nobody's */
    int stmt;                 /* -1: none */
    struct hf__table *result; /* NULL: not wanted */
};

enum hf__postgres_prepared { HF__UNPREPARED, HF__PREPARING, HF__PREPARED };

struct hf__conn {
    struct hf__database *db;
    PGconn *pg;             /* always in pipeline mode, except inside script() */
    PGconn *migration_lock; /* holds the advisory lock in its open transaction; NULL: not held */
    bool lost;
    bool unprepared;      /* fixed when it connected */
    bool in_transaction;  /* between begin and commit or rollback */
    bool settings_queued; /* unprepared only: the present transaction has its settings */
    bool waking;          /* what is queued now is forgiven */
    bool refused;   /* since the last drain the server said something that rules out a commit */
    bool committed; /* since the last drain COMMIT was answered with success */
    bool deferred;  /* the last COMMIT is durable only with what follows it */
    hf__told told;  /* called when all that was owed before it is answered; NULL: nobody asked */
    void *told_arg;
    int told_at;                            /* how many those are */
    struct hf__postgres_patience patience;  /* of the present drain */
    int silences;                           /* the database's when it connected */
    unsigned char prepared[HF__STMT_COUNT]; /* enum hf__postgres_prepared */
    struct hf__postgres_owed *owed;
    int owed_count;
    int owed_capacity;
    struct hf__postgres_params params; /* scratch of send */
};

/* A plain connection that prints nothing; the caller finishes it. */
hf_code hf__postgres_dial(PGconn **out, struct hf__database *db, hf_error *err);
/* The same, however silent the server may be. */
hf_code hf__postgres_dial_anyway(PGconn **out, const struct hf__postgres_url *url, hf_error *err);
hf_code hf__postgres_connect(struct hf__conn **out, struct hf__database *db, hf_error *err);
void hf__postgres_disconnect(struct hf__conn *conn);
bool hf__postgres_lost(const struct hf__conn *conn);

/* ---- pipeline ---- */

/* Queues the engine's settings: for the session, or for the transaction at hand. */
hf_code hf__postgres_queue_settings(struct hf__conn *conn, bool local, hf_error *err);
hf_code hf__postgres_begin(struct hf__conn *conn, hf_error *err);
hf_code hf__postgres_send(struct hf__conn *conn, enum hf__stmt stmt, const struct hf__table *params,
                          struct hf__table *result, hf_error *err);
hf_code hf__postgres_sync(struct hf__conn *conn, hf_error *err);
bool hf__postgres_may_defer(const struct hf__conn *conn);
void hf__postgres_foretell(struct hf__conn *conn, hf__told told, void *arg);
hf_code hf__postgres_commit(struct hf__conn *conn, const struct hf__wake *wake, bool *unknown,
                            hf_error *err);
void hf__postgres_rollback(struct hf__conn *conn);
void hf__postgres_ring(struct hf__conn *conn, const struct hf__wake *wake);

/* ---- answers: reading what the pipeline gives back ---- */

/* Reads so many of the answers that are owed; the first failure that is not forgiven is reported. What is left is read
 * with the next: the answers to wake-ups, for which nobody waits. */
hf_code hf__postgres_drain(struct hf__conn *conn, int awaited, hf_error *err);
/* Marks the connection as lost and forgets what was owed. */
void hf__postgres_abandon(struct hf__conn *conn);

/* ---- script: migrations ---- */

hf_code hf__postgres_script(struct hf__conn *conn, const char *sql, hf_error *err);
hf_code hf__postgres_migrate_lock(struct hf__conn *conn, hf_error *err);
void hf__postgres_migrate_unlock(struct hf__conn *conn);

/* ---- watch ---- */

hf_code hf__postgres_watch(struct hf__watch **out, struct hf__database *db, hf_error *err);
hf_code hf__postgres_watch_wait(struct hf__watch *watch, int64_t timeout, hf__hear hear, void *arg,
                                hf_error *err);
struct hf__conn *hf__postgres_watch_conn(struct hf__watch *watch);
void hf__postgres_watch_stop(struct hf__watch *watch);
void hf__postgres_unwatch(struct hf__watch *watch);
/* False behind a pooler that swallows notifications. */
bool hf__postgres_watch_hears(const struct hf__watch *watch);

/* ---- driver ---- */

/* As the driver's open, with statements of the caller's choice: HF__STMT_COUNT of them, which must outlive it. */
hf_code hf__postgres_open_with(struct hf__database **out, const struct hf__statement *statements,
                               const char *url, const struct hf__clock *clock, hf_error *err);

#endif
