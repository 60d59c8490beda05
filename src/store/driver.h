/* What a backend must do: run named statements over tables of values, in transactions, and wake sleepers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_STORE_DRIVER_H
#define HF_STORE_DRIVER_H

#include <holdfast/types.h>

#include "statements.h" /* generated: enum hf__stmt */
#include "store/statement.h"
#include "store/table.h"
#include "util/clock.h"

struct hf__database; /* a backend's shared state: URL, files, settings; one per opened store */
struct hf__conn;     /* one connection; used by one thread at a time */
struct hf__watch;    /* a sleeper's ear */

/* What a commit made worth waking for. */
struct hf__wake {
    const int32_t
        *lanes; /* in which something is or will be due; negative: whose workflow has a free slot */
    int lane_count;
    int64_t earliest;     /* earliest run_at among them; 0: now */
    const hf_id *watched; /* runs whose watchers should look */
    int watched_count;
    bool workflows_changed; /* workers should read their lanes again */
    bool leases_lost;       /* a run was cancelled while somebody held it */
    bool
        urgent; /* somebody else should be woken before the commit is answered, if that is quicker */
    const hf_id *fresh; /* the new run of the one lane, where there is one; NULL: not said */
    bool deferred;      /* and it may be seen before it is on disk: may_defer was true */
};

/* One thing that was heard. */
struct hf__heard {
    bool lanes; /* `lane`/`earliest` hold; lane 0: any; negative: a slot of its workflow is free */
    int32_t lane;
    int64_t earliest;
    hf_id fresh;   /* a new run in this lane, which may be claimed by its id; all zero: not said */
    int64_t place; /* in the store's log, up to which that run was written; 0: not said */
    bool taken;    /* a claim was made for it already: there may be more */
    bool run;      /* `run` holds; all zero: any */
    hf_id run_id;
    bool workflows_changed;
    bool leases_lost;
};

/* What a URL says of connections; -1 where it says nothing. */
struct hf__conn_limits {
    int max_open;
    int max_idle;
    int64_t max_lifetime; /* us */
};

typedef void (*hf__hear)(const struct hf__heard *heard, void *arg);
typedef void (*hf__told)(void *arg);

struct hf__driver {
    const char *name; /* "sqlite", "postgres" */
    const struct hf__statement *statements;
    const struct hf__migration *migrations;
    int migration_count;
    int min_writer;  /* the schema that programs must know to write in a store that is new */
    int shares_mail; /* the schema from which on ends of children may share a row of mail */
    int defers; /* the schema from which on workers know runs that may not be on disk; 0: there are none */

    /* `clock` overrides the store's clock (tests, simulation) where the backend allows it; NULL: real time. */
    hf_code (*open)(struct hf__database **out, const char *url, const struct hf__clock *clock,
                    hf_error *err);
    void (*close)(struct hf__database *db);
    /* One writer alone (SQLite), or as many as make sense (PostgreSQL). */
    int (*flushers)(const struct hf__database *db);
    /* Optional, NULL: its URLs say nothing of connections. */
    const struct hf__conn_limits *(*limits)(const struct hf__database *db);

    hf_code (*connect)(struct hf__conn **out, struct hf__database *db, hf_error *err);
    void (*disconnect)(struct hf__conn *conn);
    bool (*lost)(const struct hf__conn *conn); /* must be replaced */

    /* A transaction that may write. */
    hf_code (*begin)(struct hf__conn *conn, hf_error *err);
    /* Queues a statement; `params` (NULL for nothing) and the memory it points to must stay until sync; `result` (NULL:
     * not wanted) is filled by sync at the latest, from result->arena. A `rows` statement with no rows is skipped. Outside
     * of begin/commit each send+sync is its own transaction. In the SQLite dialect a named statement may consist of several,
     * run in order with the same parameters (an UPDATE, then its journal line WHERE changes() = 1). */
    hf_code (*send)(struct hf__conn *conn, enum hf__stmt stmt, const struct hf__table *params,
                    struct hf__table *result, hf_error *err);
    /* Performs what is queued. After an error the transaction is over: call rollback. */
    hf_code (*sync)(struct hf__conn *conn, hf_error *err);
    /* Optional, before commit: whether the run of a lone trigger may be seen before it is on disk, so that it is worth while. */
    bool (*may_defer)(const struct hf__conn *conn);
    /* Optional, before begin: the commit of the next transaction is likely to be foretold. */
    void (*may_foretell)(struct hf__conn *conn);
    /* Optional, NULL: the backend cannot. Between begin and commit, with nothing to sync before it: the commit to come calls
     * `told` once all that is queued by now was answered well, and the rest with the commit is in the store's hands, to be
     * carried out even if this process dies. Those results are filled by then; whether it succeeds is not known yet. It may
     * also not be called at all. */
    void (*foretell)(struct hf__conn *conn, hf__told told, void *arg);
    /* Performs what is queued, commits, then wakes (wake may be NULL). *unknown is set when the answer was lost: it may
     * have happened. */
    hf_code (*commit)(struct hf__conn *conn, const struct hf__wake *wake, bool *unknown,
                      hf_error *err);
    void (*rollback)(struct hf__conn *conn);
    /* Runs one migration's script; the schema's lock is held by the caller through migrate_lock. */
    hf_code (*script)(struct hf__conn *conn, const char *sql, hf_error *err);
    hf_code (*migrate_lock)(struct hf__conn *conn, hf_error *err);
    void (*migrate_unlock)(struct hf__conn *conn);

    /* Hearing others. While it begins to, it may have a second connection open. `listening` tells whether wake-ups from other processes arrive (not through a pooler). */
    hf_code (*watch)(struct hf__watch **out, struct hf__database *db, hf_error *err);
    /* Calls `hear` for what arrives; returns after something was heard, after timeout us, or after watch_stop. HF_UNAVAILABLE when
     * the connection broke: unwatch and watch again. */
    hf_code (*watch_wait)(struct hf__watch *watch, int64_t timeout, hf__hear hear, void *arg,
                          hf_error *err);
    /* Optional: the connection on which it listens, for transactions of the thread that waits, also while it hears. NULL: it
     * has none that can be used. */
    struct hf__conn *(*watch_conn)(struct hf__watch *watch);
    void (*watch_stop)(struct hf__watch *watch); /* from another thread */
    void (*unwatch)(struct hf__watch *watch);
    /* Wakes without a commit. */
    void (*ring)(struct hf__conn *conn, const struct hf__wake *wake);
};

extern const struct hf__driver hf__sqlite_driver;
extern const struct hf__driver hf__postgres_driver;

/* A data error is one operation's fault: the batch is bisected. Anything else concerns the store as a whole. */
bool hf__error_is_data(const hf_error *err);
/* Somebody's transaction has something locked, for longer than the store waits. */
bool hf__error_is_lock(const hf_error *err);

#endif
