/* Whose the files are: the database's mode from its first moment, what is not SQLite's own beside it, and what is another
 * program's database.
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

/* ---- Making ---- */

/* A database that is there is never opened here: to close it would end SQLite's locks in this process. A link that leads to
 * nothing is followed, as SQLite does. What goes wrong, SQLite will tell. */
void hf__sqlite_make_file(const char *path, mode_t mode)
{
    struct stat st;
    if (stat(path, &st) == 0)
        return;
    bool link = lstat(path, &st) == 0;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | (link ? 0 : O_EXCL), mode);
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && st.st_size == 0)
        (void)!fchmod(fd, mode); /* whatever the umask */
    close(fd);
}

/* ---- As root ---- */

/* Takes the place of fchown in SQLite, for root: only what was made just now is given away, not what somebody has put there. */
static int give_new(int fd, uid_t uid, gid_t gid)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return -1;
    if (st.st_uid == uid && st.st_gid == gid)
        return 0;
    if (S_ISREG(st.st_mode) && st.st_nlink == 1 && st.st_size == 0 && st.st_uid == geteuid())
        return fchown(fd, uid, gid);
    errno = EPERM;
    return -1;
}

static void guard_fchown(void)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    if (vfs && vfs->iVersion >= 3 && vfs->xSetSystemCall)
        vfs->xSetSystemCall(vfs, "fchown", (sqlite3_syscall_ptr)give_new);
}

static hf_code check_neighbour(const struct stat *database, const char *path, hf_error *err)
{
    struct stat st;
    if (lstat(path, &st) != 0)
        return HF_OK;
    if (!S_ISREG(st.st_mode) || st.st_nlink > 1)
        return hf__fail(err, HF_UNAVAILABLE,
                        "%s is not a file of SQLite's own: somebody may have put it there; look at "
                        "it, then move it away",
                        path);
    if (st.st_uid == 0 && database->st_uid != 0)
        return hf__fail(err, HF_UNAVAILABLE,
                        "%s is root's, and the database is not: somebody may have put it there; if "
                        "it is the database's, give it to its owner with chown",
                        path);
    return HF_OK;
}

hf_code hf__sqlite_check_neighbours(const char *path, hf_error *err)
{
    static const char *const suffixes[] = { "-wal", "-shm", "-journal" };
    char neighbour[PATH_MAX];
    struct stat database;
    hf_code code = HF_OK;
    if (geteuid() != 0)
        return HF_OK;
    guard_fchown();
    if (stat(path, &database) != 0)
        return HF_OK;
    for (size_t i = 0; code == HF_OK && i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(neighbour, sizeof neighbour, "%s%s", path, suffixes[i]);
        code = check_neighbour(&database, neighbour, err);
    }
    return code;
}

/* ---- Another program's ---- */

hf_code hf__sqlite_check_whose(struct hf__sqlite_session *session, hf_error *err)
{
    const char *path = sqlite3_db_filename(session->handle, "main");
    sqlite3_stmt *statement = NULL;
    hf_code code = HF_OK;
    int rc = sqlite3_prepare_v2(session->handle, hf__sqlite_statements[HF__STMT_SQLITE_WHOSE].sql,
                                -1, &statement, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(statement);
    if (rc != SQLITE_ROW)
        code = hf__sqlite_fail(session->handle, rc, path, err);
    else if (!sqlite3_column_int(statement, 0))
        code = hf__fail(err, HF_INVALID,
                        "%s is the database of another program: give the path of a store, or of a "
                        "file that does not exist yet",
                        path);
    sqlite3_finalize(statement);
    return code;
}
