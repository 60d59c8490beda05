/* The files beside the database that are ours: <db>-lock and <db>-wake.
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite.h"

#include "util/error.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whoever may write the database must be able to lock and to wake, whatever the umask of the one
 * who came first. */
static void share_like(int fd, const struct stat *model)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return;
    bool chowned = geteuid() == 0 && (st.st_uid != model->st_uid || st.st_gid != model->st_gid) &&
                   fchown(fd, model->st_uid, model->st_gid) == 0;
    if (!chowned && (st.st_uid != geteuid() || (st.st_mode & 0777) == (model->st_mode & 0777)))
        return;
    /* Best effort: if it fails, the others get a clear error when they open it. */
    if (fchmod(fd, model->st_mode & 0777) != 0)
        errno = 0;
}

int hf__sqlite_side_file(const struct hf__database *db, const char *suffix)
{
    char path[PATH_MAX];
    struct stat model;

    if (stat(db->path, &model) != 0)
        return -1;
    snprintf(path, sizeof path, "%s%s", db->path, suffix);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, model.st_mode & 0777);
    if (fd >= 0)
        share_like(fd, &model);
    return fd;
}

hf_code hf__sqlite_side_file_failed(const struct hf__database *db, const char *suffix,
                                    int error_number, hf_error *err)
{
    hf_code code = HF_UNAVAILABLE;
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
