/* The files beside the database that are ours: <db>-lock and <db>-wake.
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite.h"

#include "util/error.h"
#include "util/random.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIES = 100, MOST_BYTES = 8 /* that a file of ours holds */ };

/* Whoever may write the database must be able to lock and to wake, whatever the umask of the one who came first. Only for what was
 * made just now: nothing that is found there is given away. */
static int share_like(int fd, const struct stat *model)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return -1;
    if (geteuid() == 0 && (st.st_uid != model->st_uid || st.st_gid != model->st_gid) &&
        fchown(fd, model->st_uid, model->st_gid) != 0)
        return -1;
    if (geteuid() != 0 && st.st_gid != model->st_gid)
        (void)!fchown(fd, (uid_t)-1, model->st_gid); /* as far as this user is of that group */
    return fchmod(fd, model->st_mode & 0777);
}

/* Gives it its name, and never takes that of another file. */
static int name_it(const char *fresh, const char *path)
{
    if (renameat2(AT_FDCWD, fresh, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS) /* the file system knows no such rename */
        return -1;
    return link(fresh, path) == 0 ? unlink(fresh) : -1;
}

/* It has its name once it is as it shall be. */
static int make(const char *path, const struct stat *model)
{
    char fresh[PATH_MAX];
    uint64_t number = 0;
    int folder = (int)(strrchr(path, '/') - path);
    if (!hf__random_bytes(&number, sizeof number))
        return -1;
    snprintf(fresh, sizeof fresh, "%.*s/.holdfast-%016" PRIx64, folder, path, number);
    int fd = open(fresh, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -1;
    int rc = share_like(fd, model);
    if (rc == 0)
        rc = name_it(fresh, path);
    int failure = rc == 0 ? 0 : errno;
    if (failure)
        unlink(fresh);
    close(fd);
    errno = failure;
    return failure && failure != EEXIST ? -1 : 0;
}

/* What root makes belongs to the database's owner, so what is still root's is not ours. Others than the owner have files here only
 * where they may write the database, too. */
static bool is_ours(const struct stat *st, const struct stat *model)
{
    bool shared = (model->st_mode & (S_IWGRP | S_IWOTH)) != 0;
    uid_t self = geteuid();
    return S_ISREG(st->st_mode) && st->st_nlink <= 1 && st->st_size <= MOST_BYTES &&
           (st->st_uid == model->st_uid || (self != 0 && st->st_uid == self) ||
            (shared && st->st_uid != 0));
}

/* -1: there is none, or (EINVAL) somebody put another file there. */
static int open_ours(const char *path, const struct stat *model)
{
    struct stat st;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || (fstat(fd, &st) == 0 && is_ours(&st, model)))
        return fd;
    close(fd);
    errno = EINVAL;
    return -1;
}

int hf__sqlite_side_file(const struct hf__database *db, const char *suffix)
{
    char path[PATH_MAX];
    struct stat model;

    if (stat(db->path, &model) != 0)
        return -1;
    snprintf(path, sizeof path, "%s%s", db->path, suffix);
    for (int i = 0; i < TRIES; i++) { /* others may remove what is made */
        int fd = open_ours(path, &model);
        if (fd >= 0 || errno != ENOENT || make(path, &model) != 0)
            return fd;
    }
    return -1;
}

hf_code hf__sqlite_side_file_failed(const struct hf__database *db, const char *suffix,
                                    int error_number, hf_error *err)
{
    hf_code code = HF_UNAVAILABLE;
    if (error_number == EINVAL || error_number == ELOOP)
        return hf__fail(err, HF_UNAVAILABLE,
                        "%s%s is not a file of this store: somebody may have put it there; look at "
                        "it, then move it away",
                        db->path, suffix);
    if (error_number == EACCES || error_number == EROFS || error_number == EPERM)
        code = HF_READ_ONLY;
    else if (error_number == ENOSPC || error_number == EDQUOT)
        code = HF_STORE_FULL;
    return hf__fail(err, code,
                    "%s%s cannot be used: %s; the folder and this file must be writable for this "
                    "user",
                    db->path, suffix, strerror(error_number));
}

bool hf__sqlite_side_file_named(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && st.st_nlink > 0;
}
