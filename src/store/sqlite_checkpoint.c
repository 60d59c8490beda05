/* The thread that copies the write-ahead log back into the database.
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite.h"

#include "util/thread.h"

enum {
    PAGES_BETWEEN = 1000,  /* a checkpoint is due when the WAL has grown by more */
    LONG_WAL = 64 << 8,    /* pages of 4 KiB: 64 MiB */
    READERS_TIMEOUT = 100, /* ms that writers may be held up while readers leave a long WAL */
};

static int after_commit(void *arg, sqlite3 *handle, const char *schema, int pages)
{
    (void)handle;
    (void)schema;
    struct hf__sqlite_checkpointer *checkpointer = arg;

    pthread_mutex_lock(&checkpointer->mutex);
    checkpointer->wal_pages = pages;
    if (pages < checkpointer->checked_pages) /* the WAL was begun anew */
        checkpointer->checked_pages = 0;
    if (pages - checkpointer->checked_pages > PAGES_BETWEEN)
        pthread_cond_signal(&checkpointer->work);
    pthread_mutex_unlock(&checkpointer->mutex);
    return SQLITE_OK;
}

void hf__sqlite_count_pages(struct hf__database *db, sqlite3 *handle)
{
    if (!db->memory)
        sqlite3_wal_hook(handle, after_commit, &db->checkpointer);
}

static void set_pages(struct hf__sqlite_checkpointer *checkpointer, int pages)
{
    pthread_mutex_lock(&checkpointer->mutex);
    checkpointer->wal_pages = pages;
    checkpointer->checked_pages = pages;
    pthread_mutex_unlock(&checkpointer->mutex);
}

/* Copies the rest while nobody writes, so that the WAL begins anew at its start: a file that does not grow is flushed in
 * half the time, and without this a WAL that is written all the time would grow for ever. Most pages were copied just
 * before by the passive checkpoint, so writers do not wait long. */
static void begin_anew(struct hf__sqlite_checkpointer *checkpointer, bool cut)
{
    if (hf__sqlite_turn_take(&checkpointer->turn, NULL) != HF_OK)
        return;
    int rc = sqlite3_wal_checkpoint_v2(checkpointer->session.handle, NULL,
                                       cut ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE,
                                       NULL, NULL);
    if (cut && rc == SQLITE_OK)
        set_pages(checkpointer, 0);
    hf__sqlite_turn_give(&checkpointer->turn);
}

/* A checkpoint that fails is tried again when the WAL has grown by as much again: nobody depends
 * on it, and a full or broken disk shows in the commits. */
static void *checkpoint_loop(void *arg)
{
    struct hf__sqlite_checkpointer *checkpointer = arg;

    pthread_mutex_lock(&checkpointer->mutex);
    while (!checkpointer->stop) {
        int pages = checkpointer->wal_pages;
        if (pages - checkpointer->checked_pages <= PAGES_BETWEEN) {
            pthread_cond_wait(&checkpointer->work, &checkpointer->mutex);
            continue;
        }
        checkpointer->checked_pages = pages;
        pthread_mutex_unlock(&checkpointer->mutex);
        sqlite3_wal_checkpoint_v2(checkpointer->session.handle, NULL, SQLITE_CHECKPOINT_PASSIVE,
                                  NULL, NULL);
        begin_anew(checkpointer, pages > LONG_WAL);
        pthread_mutex_lock(&checkpointer->mutex);
    }
    pthread_mutex_unlock(&checkpointer->mutex);
    return NULL;
}

hf_code hf__sqlite_checkpointer_start(struct hf__database *db, hf_error *err)
{
    struct hf__sqlite_checkpointer *checkpointer = &db->checkpointer;
    sqlite3_busy_timeout(checkpointer->session.handle, READERS_TIMEOUT);
    hf_code code = hf__thread_start(&checkpointer->thread, checkpoint_loop, checkpointer, err);
    checkpointer->running = code == HF_OK;
    return code;
}

void hf__sqlite_checkpointer_stop(struct hf__database *db)
{
    struct hf__sqlite_checkpointer *checkpointer = &db->checkpointer;
    bool opened = checkpointer->running;

    if (opened) {
        pthread_mutex_lock(&checkpointer->mutex);
        checkpointer->stop = true;
        pthread_cond_signal(&checkpointer->work);
        pthread_mutex_unlock(&checkpointer->mutex);
        pthread_join(checkpointer->thread, NULL);
        checkpointer->running = false;
    }
    if (!checkpointer->session.handle)
        return;
    /* The last handle of all copies the whole WAL and keeps everybody out meanwhile; with the
     * turn they wait instead of being refused. Without it (the folder may be gone) closing is
     * still right. A file that was refused is another program's. */
    if (opened)
        (void)!hf__sqlite_turn_take(&checkpointer->turn, NULL);
    hf__sqlite_session_close(&checkpointer->session);
    hf__sqlite_turn_close(&checkpointer->turn);
}
