/* The SQLite driver's own parts. One store is one file with four neighbours: <db>-wal and
 * <db>-shm are SQLite's, <db>-lock queues the writers, <db>-wake wakes sleepers in other
 * processes.
 *
 * Lock order: the writer's turn (the gate, then the file), then `checkpointer.mutex` or `watch_mutex`; these two are never
 * held together.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_STORE_SQLITE_H
#define HF_STORE_SQLITE_H

#include "store/driver.h"

#include <pthread.h>
#include <sqlite3.h>
#include <sys/types.h>

/* One SQLite handle. A file store has one per connection and one for its checkpoints; a memory
 * store has one in all. */
struct hf__sqlite_session {
    sqlite3 *handle;
    int64_t now; /* what holdfast_now() answers; set before each transaction or lone statement */
    const struct hf__statement
        *taking;                  /* while it is executed: whose rows holdfast_rows shows, and */
    const struct hf__table *rows; /* these rows; NULL: none */
};

/* What the URL says of the files. */
struct hf__sqlite_settings {
    mode_t mode;          /* of a database that is made; its neighbours are like it */
    int64_t lock_timeout; /* us; of the wait for the turn */
};

/* The turn to write: one holder among all threads and processes. Each connection has its own,
 * because a flock belongs to an open file description. */
struct hf__sqlite_turn {
    struct hf__database *db;
    int fd;                         /* of <db>-lock; -1: not opened yet, or a memory store */
    struct hf__sqlite_queue *queue; /* where it waits, or has waited in vain; NULL: nowhere */
    bool held;
};

/* Where the connections of one database wait for the turn among themselves. */
struct hf__sqlite_gate {
    pthread_mutex_t mutex;
    pthread_cond_t freed;
    bool taken;
};

/* Copies the WAL back into the database, so that no committing thread has to. */
struct hf__sqlite_checkpointer {
    struct hf__sqlite_session session; /* the first to be opened and the last to be closed */
    struct hf__sqlite_turn turn;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t work;
    bool running; /* the thread was started */
    bool stop;
    int wal_pages;     /* in the WAL after the last commit of this process */
    int checked_pages; /* in the WAL at the last checkpoint */
};

struct hf__database {
    const struct hf__statement *statements;
    int statement_count;
    struct hf__clock clock;
    bool memory;
    struct hf__sqlite_settings settings;
    struct hf__sqlite_gate gate;
    char *path;                  /* absolute, symbolic links resolved; NULL for a memory store */
    pthread_mutex_t memory_turn; /* a memory store's one handle: held while anything runs on it */
    struct hf__sqlite_session memory_session;
    struct hf__sqlite_checkpointer checkpointer;
    pthread_mutex_t watch_mutex; /* guards what follows */
    struct hf__watch *watches;
    int wake_fd;    /* of <db>-wake; -1: not opened yet */
    uint64_t rings; /* written into <db>-wake */
};

/* A named statement made ready: its SQL statements in their order. */
struct hf__sqlite_part {
    sqlite3_stmt *handle;
    struct hf__sqlite_part *next;
};

struct hf__sqlite_prepared {
    struct hf__sqlite_part *parts; /* NULL: not prepared yet */
    bool reads_only;
    bool takes_all; /* has no parameters: it reads its rows from holdfast_rows, in one execution */
};

struct hf__conn {
    struct hf__database *db;
    struct hf__sqlite_session *session; /* `own`, or the memory store's */
    struct hf__sqlite_session own;
    struct hf__sqlite_turn turn;
    struct hf__sqlite_prepared *prepared; /* one per statement of the database */
    struct hf__sqlite_prepared frame[4];  /* see enum hf__sqlite_frame */
    bool in_transaction;
    bool implicit;    /* the transaction was begun by a lone writing statement; sync commits it */
    bool syncs_later; /* the transaction's commit does not wait for the disk: commit does */
    int64_t changes;  /* of rows by this connection, before such a transaction */
    hf__told told;    /* NULL: nobody wants to know of the commit before it is on disk */
    void *told_arg;
    hf_error
        failure; /* code is not HF_OK: a statement failed, the transaction can only roll back */
    bool lost;
};

enum hf__sqlite_frame {
    HF__SQLITE_BEGIN,
    HF__SQLITE_BEGIN_READING,
    HF__SQLITE_COMMIT,
    HF__SQLITE_ROLLBACK
};

extern const struct hf__statement hf__sqlite_statements[];
extern const struct hf__migration hf__sqlite_migrations[];

/* sqlite_database.c: as the driver's open, with statements of the caller's choice. */
hf_code hf__sqlite_open_with(struct hf__database **out, const struct hf__statement *statements,
                             int statement_count, const char *url, const struct hf__clock *clock,
                             hf_error *err);
void hf__sqlite_close(struct hf__database *db);

/* sqlite_url.c: cuts `text`, which follows "sqlite:", at the end of the path. */
hf_code hf__sqlite_url_read(struct hf__sqlite_settings *out, char *text, hf_error *err);

/* sqlite_owner.c: makes the database file, empty, unless it is there. */
void hf__sqlite_make_file(const char *path, mode_t mode);
/* Whether what lies beside the database can be SQLite's own, before it is opened. As root SQLite gives its files to the owner
 * of the database, whoever put them there. */
hf_code hf__sqlite_check_neighbours(const char *path, hf_error *err);
/* Whether the file is a store, or empty. */
hf_code hf__sqlite_check_whose(struct hf__sqlite_session *session, hf_error *err);

/* sqlite_side_file.c: opens <db><suffix> for reading and writing, created with the rights of the
 * database file. -1: see errno. */
int hf__sqlite_side_file(const struct hf__database *db, const char *suffix);
hf_code hf__sqlite_side_file_failed(const struct hf__database *db, const char *suffix,
                                    int error_number, hf_error *err);
/* False once somebody deleted it: who opens it by name now gets another file. */
bool hf__sqlite_side_file_named(int fd);

/* sqlite_session.c */
hf_code hf__sqlite_session_open(struct hf__sqlite_session *session, const char *path, bool create,
                                hf_error *err);
/* Whether the session's commits wait for the disk; not within a transaction. */
hf_code hf__sqlite_sync_at_commit(struct hf__sqlite_session *session, bool at_commit,
                                  hf_error *err);
/* Waits until what was committed is on disk. */
hf_code hf__sqlite_sync_log(struct hf__sqlite_session *session, hf_error *err);
/* Refuses a file that lost its name: what is written into it is gone when the last handle
 * closes. */
hf_code hf__sqlite_check_place(struct hf__sqlite_session *session, hf_error *err);
/* Needs the writer's turn, since SQLite does not wait while it changes the journal. */
hf_code hf__sqlite_use_wal(struct hf__sqlite_session *session, hf_error *err);
void hf__sqlite_session_close(struct hf__sqlite_session *session);

/* sqlite_rows.c: gives the session the table holdfast_rows, with columns c1, c2 and so on. */
int hf__sqlite_register_rows(struct hf__sqlite_session *session);

/* sqlite_error.c: what SQLite said last, as our error. `doing` says what was tried: "reading the
 * database". */
hf_code hf__sqlite_fail(sqlite3 *handle, int rc, const char *doing, hf_error *err);
/* The same for what the named statement met while it ran. */
hf_code hf__sqlite_statement_failed(sqlite3 *handle, int rc, const struct hf__statement *statement,
                                    hf_error *err);

/* sqlite_statement.c */
hf_code hf__sqlite_prepare(sqlite3 *handle, const struct hf__statement *statement,
                           struct hf__sqlite_prepared *prepared, hf_error *err);
void hf__sqlite_finalize(struct hf__sqlite_prepared *prepared);
/* Executes once per row of params (once for NULL, or where it takes all) and adds what comes back to
 * result (NULL: not wanted). */
hf_code hf__sqlite_execute(struct hf__sqlite_session *session,
                           const struct hf__statement *statement,
                           const struct hf__sqlite_prepared *prepared,
                           const struct hf__table *params, struct hf__table *result, hf_error *err);

/* sqlite_queue.c: flock(fd, LOCK_EX), but gives up at `deadline` (monotonic us) with ETIMEDOUT. *queue is kept for the next call with the
 * same fd, or left. */
int hf__sqlite_queue_flock(struct hf__sqlite_queue **queue, int fd, int64_t deadline);
void hf__sqlite_queue_leave(struct hf__sqlite_queue *queue); /* NULL is fine */

/* sqlite_holder.c: "process 4711 (backup)", or "another process". */
#define HF__HOLDER_TEXT 80
void hf__sqlite_holder(int fd, char out[HF__HOLDER_TEXT]);

/* sqlite_lock.c */
void hf__sqlite_turn_init(struct hf__sqlite_turn *turn, struct hf__database *db);
/* Waits in turn, for the settings' lock_timeout at most: HF_UNAVAILABLE. */
hf_code hf__sqlite_turn_take(struct hf__sqlite_turn *turn, hf_error *err);
void hf__sqlite_turn_give(struct hf__sqlite_turn *turn); /* harmless when it is not held */
void hf__sqlite_turn_close(struct hf__sqlite_turn *turn);

/* sqlite_checkpoint.c */
hf_code hf__sqlite_checkpointer_start(struct hf__database *db, hf_error *err);
void hf__sqlite_checkpointer_stop(struct hf__database *db);
/* From now on the commits of this handle tell the checkpointer how long the WAL is. */
void hf__sqlite_count_pages(struct hf__database *db, sqlite3 *handle);

/* sqlite_watch.c: the driver's functions of the same names. */
hf_code hf__sqlite_watch(struct hf__watch **out, struct hf__database *db, hf_error *err);
hf_code hf__sqlite_watch_wait(struct hf__watch *watch, int64_t timeout, hf__hear hear, void *arg,
                              hf_error *err);
void hf__sqlite_watch_stop(struct hf__watch *watch);
void hf__sqlite_unwatch(struct hf__watch *watch);
void hf__sqlite_ring(struct hf__database *db, const struct hf__wake *wake);

#endif
