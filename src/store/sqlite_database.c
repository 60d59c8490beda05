/* Opening and closing a store: from "sqlite:<path>" to a database that is ready for connections.
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite.h"

#include "util/alloc.h"
#include "util/error.h"
#include "util/thread.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCHEME "sqlite:"
#define MEMORY ":memory:"

enum { LONGEST_PATH = 490 }; /* bytes; SQLite allows 512 with its suffixes */

static hf_code folder_failed(const char *folder, int error_number, hf_error *err)
{
    if (error_number == ENOENT)
        return hf__fail(err, HF_UNAVAILABLE, "the folder %s does not exist; create it first",
                        folder);
    return hf__fail(err, HF_UNAVAILABLE, "the folder %s cannot be used: %s; give another path",
                    folder, strerror(error_number));
}

static hf_code path_too_long(hf_error *err)
{
    return hf__fail(err, HF_INVALID, "the path of the database is too long; SQLite allows %d bytes",
                    LONGEST_PATH);
}

/* "orders.db" -> "/where/we/are/orders.db", so that a later chdir changes nothing. */
static hf_code resolve_folder(const char *path, char out[PATH_MAX], hf_error *err)
{
    char folder[PATH_MAX] = ".";
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;

    if (slash) {
        size_t length = slash == path ? 1 : (size_t)(slash - path);
        memcpy(folder, path, length);
        folder[length] = '\0';
    }
    if (!realpath(folder, out))
        return folder_failed(folder, errno, err);
    size_t length = strlen(out);
    if (length + 1 + strlen(name) > LONGEST_PATH)
        return path_too_long(err);
    if (length > 1)
        out[length++] = '/';
    strcpy(out + length, name);
    return HF_OK;
}

static hf_code check_kind(const char *path, hf_error *err)
{
    struct stat st;
    if (stat(path, &st) != 0 || S_ISREG(st.st_mode)) /* what is missing is created */
        return HF_OK;
    return hf__fail(err, HF_INVALID, "%s is %s; give the path of a file, as in sqlite:%s", path,
                    S_ISDIR(st.st_mode) ? "a folder" : "not a regular file",
                    S_ISDIR(st.st_mode) ? "orders.db" : "/var/lib/orders.db");
}

static hf_code resolve_path(const char *path, char out[PATH_MAX], hf_error *err)
{
    if (*path == '\0')
        return hf__fail(err, HF_INVALID,
                        "the URL names no file; write sqlite:orders.db or sqlite:" MEMORY);
    if (strlen(path) > LONGEST_PATH)
        return path_too_long(err);
    if (path[strlen(path) - 1] == '/')
        return hf__fail(err, HF_INVALID, "%s is a folder; give the path of a file", path);
    hf_code code = resolve_folder(path, out, err);
    return code == HF_OK ? check_kind(out, err) : code;
}

static hf_code check_writable(struct hf__database *db, hf_error *err)
{
    if (sqlite3_db_readonly(db->checkpointer.session.handle, "main") != 1)
        return HF_OK;
    return hf__fail(err, HF_READ_ONLY,
                    "%s cannot be written; give this user the right to write it and its folder",
                    db->path);
}

static hf_code use_wal(struct hf__database *db, hf_error *err)
{
    struct hf__sqlite_checkpointer *checkpointer = &db->checkpointer;
    hf_code code = hf__sqlite_turn_take(&checkpointer->turn, err);
    if (code == HF_OK)
        code = hf__sqlite_use_wal(&checkpointer->session, err);
    hf__sqlite_turn_give(&checkpointer->turn);
    return code;
}

/* SQLite looks for them beside what links lead to. */
static hf_code check_neighbours(const char *path, hf_error *err)
{
    char real[PATH_MAX];
    return realpath(path, real) ? hf__sqlite_check_neighbours(real, err) : HF_OK;
}

static hf_code open_file(struct hf__database *db, const char *path, hf_error *err)
{
    char resolved[PATH_MAX];
    struct hf__sqlite_session *session = &db->checkpointer.session;

    hf_code code = resolve_path(path, resolved, err);
    if (code == HF_OK)
        hf__sqlite_make_file(resolved, db->settings.mode);
    if (code == HF_OK)
        code = check_neighbours(resolved, err);
    if (code == HF_OK)
        code = hf__sqlite_session_open(session, resolved, true, err);
    if (code != HF_OK)
        return code;
    /* SQLite's own idea of the name: links are resolved, so all programs find the same
     * neighbours. */
    db->path = hf__strdup(sqlite3_db_filename(session->handle, "main"));
    if (!db->path)
        return hf__nomem(err);
    code = check_writable(db, err);
    if (code == HF_OK)
        code = hf__sqlite_check_whose(session, err);
    if (code == HF_OK)
        code = use_wal(db, err);
    if (code == HF_OK)
        code = hf__sqlite_checkpointer_start(db, err);
    return code;
}

static void init_locks(struct hf__database *db)
{
    pthread_mutexattr_t careful;
    pthread_mutexattr_init(&careful);
    /* A thread that takes the memory store twice gets an error instead of waiting for itself. */
    pthread_mutexattr_settype(&careful, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&db->memory_turn, &careful);
    pthread_mutexattr_destroy(&careful);
    pthread_mutex_init(&db->gate.mutex, NULL);
    hf__cond_init(&db->gate.freed);
    pthread_mutex_init(&db->checkpointer.mutex, NULL);
    pthread_cond_init(&db->checkpointer.work, NULL);
    pthread_mutex_init(&db->watch_mutex, NULL);
}

hf_code hf__sqlite_open_with(struct hf__database **out, const struct hf__statement *statements,
                             int statement_count, const char *url, const struct hf__clock *clock,
                             hf_error *err)
{
    if (strncmp(url, SCHEME, strlen(SCHEME)) != 0)
        return hf__fail(err, HF_INVALID, "the URL must start with " SCHEME ", not %s", url);
    char *path = hf__strdup(url + strlen(SCHEME));
    struct hf__database *db = hf__calloc(1, sizeof *db);
    if (!db || !path) {
        free(path);
        free(db);
        return hf__nomem(err);
    }
    db->statements = statements;
    db->statement_count = statement_count;
    db->clock = clock ? *clock : hf__system_clock;
    hf_code code = hf__sqlite_url_read(&db->settings, path, err);
    db->memory = strcmp(path, MEMORY) == 0;
    db->wake_fd = -1;
    init_locks(db);
    hf__sqlite_turn_init(&db->checkpointer.turn, db);

    if (code == HF_OK)
        code = db->memory ? hf__sqlite_session_open(&db->memory_session, MEMORY, true, err)
                          : open_file(db, path, err);
    free(path);
    if (code != HF_OK) {
        hf__sqlite_close(db);
        return code;
    }
    *out = db;
    return HF_OK;
}

void hf__sqlite_close(struct hf__database *db)
{
    if (!db)
        return;
    hf__sqlite_checkpointer_stop(db);
    hf__sqlite_session_close(&db->memory_session);
    if (db->wake_fd >= 0)
        close(db->wake_fd);
    pthread_cond_destroy(&db->gate.freed);
    pthread_mutex_destroy(&db->gate.mutex);
    pthread_mutex_destroy(&db->watch_mutex);
    pthread_cond_destroy(&db->checkpointer.work);
    pthread_mutex_destroy(&db->checkpointer.mutex);
    pthread_mutex_destroy(&db->memory_turn);
    free(db->path);
    free(db);
}
