/* Waking sleepers: a write to <db>-wake after each commit, heard through inotify. The WAL itself
 * is no use for this, since a commit becomes visible only after the last write to that file.
 * Whoever listens has a byte of that file locked, anywhere: where only this database's own watch
 * does, nothing is written, since its owner knows what it commits. A lock ends with its process.
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite.h"

#include "util/alloc.h"
#include "util/error.h"
#include "util/random.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PLACES_TRIED = 8 };

struct hf__watch {
    struct hf__database *db;
    struct hf__watch *next;
    int event_fd;   /* watch_stop, and rings that cannot go through the file */
    int inotify_fd; /* -1 for a memory store */
    int file_fd;    /* of <db>-wake, for the lock; -1 for a memory store */
    off_t place;    /* of the byte that is locked; 0: none is */
    dev_t device;   /* which file is listened to: its name may come to mean another */
    ino_t inode;
    atomic_bool stopped;
};

/* Called with watch_mutex held. */
static bool open_wake_file(struct hf__database *db)
{
    if (db->wake_fd >= 0 && hf__sqlite_side_file_named(db->wake_fd))
        return true;
    if (db->wake_fd >= 0)
        close(db->wake_fd);
    db->wake_fd = hf__sqlite_side_file(db, "-wake");
    return db->wake_fd >= 0;
}

/* A byte of the file, which need not be that long; one of two watches with the same would not hear of the other. Where it
 * cannot be had, for somebody's own lock or for want of such locks, whoever asks for locks is not told that there is none. */
static void lock_a_byte(struct hf__watch *watch)
{
    uint64_t number;
    for (int tries = 0; tries < PLACES_TRIED; tries++) {
        if (!hf__random_bytes(&number, sizeof number))
            break;
        watch->place = (off_t)(number >> 2) + 1;
        struct flock byte = {
            .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = watch->place, .l_len = 1
        };
        if (fcntl(watch->file_fd, F_OFD_SETLK, &byte) == 0)
            return;
    }
    watch->place = 0;
}

static hf_code find_wake_file(struct hf__watch *watch, hf_error *err)
{
    struct stat st;
    watch->file_fd = hf__sqlite_side_file(watch->db, "-wake");
    if (watch->file_fd < 0 || fstat(watch->file_fd, &st) != 0)
        return hf__sqlite_side_file_failed(watch->db, "-wake", errno, err);
    lock_a_byte(watch);
    watch->device = st.st_dev;
    watch->inode = st.st_ino;
    return HF_OK;
}

static void wake_path(const struct hf__database *db, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s-wake", db->path);
}

/* Its name may mean another file by now, and this ear is on one that nobody rings any more. */
static bool lost_its_name(const struct hf__watch *watch)
{
    char path[PATH_MAX];
    struct stat st;

    wake_path(watch->db, path);
    return stat(path, &st) != 0 || st.st_dev != watch->device || st.st_ino != watch->inode;
}

static hf_code listen_to_file(struct hf__watch *watch, hf_error *err)
{
    char path[PATH_MAX];
    hf_code code = find_wake_file(watch, err);
    if (code != HF_OK)
        return code;

    wake_path(watch->db, path);
    watch->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (watch->inotify_fd < 0 ||
        inotify_add_watch(watch->inotify_fd, path, IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF) < 0)
        return hf__fail(err, HF_UNAVAILABLE,
                        "%s cannot be watched: %s; raise fs.inotify.max_user_instances and "
                        "fs.inotify.max_user_watches",
                        path, strerror(errno));
    if (lost_its_name(watch))
        return hf__fail(err, HF_UNAVAILABLE, "%s was replaced meanwhile; watch again", path);
    return HF_OK;
}

static void enlist(struct hf__watch *watch)
{
    struct hf__database *db = watch->db;
    pthread_mutex_lock(&db->watch_mutex);
    watch->next = db->watches;
    db->watches = watch;
    pthread_mutex_unlock(&db->watch_mutex);
}

static void delist(struct hf__watch *watch)
{
    struct hf__database *db = watch->db;
    pthread_mutex_lock(&db->watch_mutex);
    struct hf__watch **at = &db->watches;
    while (*at && *at != watch)
        at = &(*at)->next;
    if (*at)
        *at = watch->next;
    pthread_mutex_unlock(&db->watch_mutex);
}

hf_code hf__sqlite_watch(struct hf__watch **out, struct hf__database *db, hf_error *err)
{
    struct hf__watch *watch = hf__calloc(1, sizeof *watch);
    if (!watch)
        return hf__nomem(err);
    watch->db = db;
    watch->inotify_fd = watch->file_fd = -1;

    hf_code code = HF_OK;
    watch->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (watch->event_fd < 0)
        code = hf__fail(err, HF_UNAVAILABLE, "no eventfd: %s; raise the limit on open files",
                        strerror(errno));
    else if (!db->memory)
        code = listen_to_file(watch, err);
    if (code != HF_OK) {
        hf__sqlite_unwatch(watch);
        return code;
    }
    enlist(watch);
    *out = watch;
    return HF_OK;
}

void hf__sqlite_unwatch(struct hf__watch *watch)
{
    if (!watch)
        return;
    delist(watch);
    if (watch->inotify_fd >= 0)
        close(watch->inotify_fd);
    if (watch->file_fd >= 0)
        close(watch->file_fd);
    if (watch->event_fd >= 0)
        close(watch->event_fd);
    free(watch);
}

static void signal_watch(struct hf__watch *watch)
{
    uint64_t one = 1;
    /* It fails only when so many signals wait already that one more says nothing new. */
    (void)!write(watch->event_fd, &one, sizeof one);
}

void hf__sqlite_watch_stop(struct hf__watch *watch)
{
    atomic_store(&watch->stopped, true);
    signal_watch(watch);
}

static bool drain_event_fd(struct hf__watch *watch)
{
    uint64_t count;
    return read(watch->event_fd, &count, sizeof count) == (ssize_t)sizeof count;
}

static bool tells_of_the_end(const struct hf__watch *watch, const struct inotify_event *event)
{
    return (event->mask & (IN_IGNORED | IN_MOVE_SELF)) ||
           ((event->mask & IN_ATTRIB) && lost_its_name(watch));
}

/* Any event is a reason to look at the store; *gone: there will be no more, since the file was
 * deleted or moved. */
static bool drain_inotify(struct hf__watch *watch, bool *gone)
{
    _Alignas(struct inotify_event) char buffer[4096];
    bool heard = false;
    ssize_t length;

    if (watch->inotify_fd < 0)
        return false;
    while ((length = read(watch->inotify_fd, buffer, sizeof buffer)) > 0) {
        heard = true;
        for (ssize_t at = 0; at < length;) {
            const struct inotify_event *event = (const void *)(buffer + at);
            *gone = *gone || tells_of_the_end(watch, event);
            at += (ssize_t)(sizeof *event + event->len);
        }
    }
    return heard;
}

/* 1: something came, 0: time is over, negative: an error. */
static int wait_for_sound(struct hf__watch *watch, int64_t deadline)
{
    struct pollfd fds[2] = { { .fd = watch->event_fd, .events = POLLIN },
                             { .fd = watch->inotify_fd, .events = POLLIN } };
    for (;;) {
        int64_t left = deadline - hf__monotonic_us();
        if (left < 0)
            left = 0;
        struct timespec limit = { .tv_sec = left / 1000000, .tv_nsec = left % 1000000 * 1000 };
        int rc = ppoll(fds, 2, deadline == INT64_MAX ? NULL : &limit, NULL);
        if (rc >= 0 || errno != EINTR)
            return rc;
    }
}

static int64_t deadline_of(int64_t timeout)
{
    int64_t deadline;
    if (timeout < 0 || __builtin_add_overflow(hf__monotonic_us(), timeout, &deadline))
        return INT64_MAX;
    return deadline;
}

hf_code hf__sqlite_watch_wait(struct hf__watch *watch, int64_t timeout, hf__hear hear, void *arg,
                              hf_error *err)
{
    static const struct hf__heard anything = {
        .lanes = true, .run = true, .workflows_changed = true, .leases_lost = true
    };
    bool gone = false;

    if (atomic_load(&watch->stopped))
        return HF_OK;
    int rc = wait_for_sound(watch, deadline_of(timeout));
    if (rc < 0)
        return hf__fail(err, HF_UNAVAILABLE, "waiting for wake-ups failed: %s", strerror(errno));
    bool signalled = drain_event_fd(watch);
    bool heard = drain_inotify(watch, &gone) || signalled;
    if (atomic_load(&watch->stopped))
        return HF_OK;
    if (gone)
        return hf__fail(err, HF_UNAVAILABLE, "%s-wake was deleted or moved; watch again",
                        watch->db->path);
    if (heard)
        hear(&anything, arg);
    return HF_OK;
}

static bool worth_telling(const struct hf__wake *wake)
{
    return wake && (wake->lane_count > 0 || wake->watched_count > 0 || wake->workflows_changed ||
                    wake->leases_lost);
}

static bool is_locked(int fd, off_t from, off_t length)
{
    struct flock range = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = from, .l_len = length
    };
    return fcntl(fd, F_OFD_GETLK, &range) != 0 || range.l_type != F_UNLCK;
}

/* Another process, or another handle of this one. Called with watch_mutex held. */
static bool others_listen(const struct hf__database *db)
{
    const struct hf__watch *own = db->watches;
    if (!own)
        return is_locked(db->wake_fd, 0, 0);
    return own->next || !own->place || is_locked(db->wake_fd, 0, own->place) ||
           is_locked(db->wake_fd, own->place + 1, 0);
}

static bool ring_file(struct hf__database *db)
{
    if (db->memory || !open_wake_file(db))
        return false;
    db->rings++;
    return !others_listen(db) ||
           pwrite(db->wake_fd, &db->rings, sizeof db->rings, 0) == (ssize_t)sizeof db->rings;
}

void hf__sqlite_ring(struct hf__database *db, const struct hf__wake *wake)
{
    if (!worth_telling(wake))
        return;
    pthread_mutex_lock(&db->watch_mutex);
    bool rung = ring_file(db);
    /* Where the file is silent, watches of this database are called by name. */
    for (struct hf__watch *watch = db->watches; watch && !rung; watch = watch->next)
        signal_watch(watch);
    pthread_mutex_unlock(&db->watch_mutex);
}
