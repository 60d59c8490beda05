/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/socket_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "holdfast-run-"
#define LOCK "lock"
#define TRIES 5         /* others may clear away what we have just made */
#define LONGEST_NAME 16 /* bytes that a socket's name may add to the folder's path */

/* ---- What others left ---- */

static void remove_files(int folder)
{
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = copy >= 0 ? fdopendir(copy) : NULL;
    struct dirent *entry;
    if (!stream) {
        if (copy >= 0)
            close(copy);
        return;
    }
    while ((entry = readdir(stream)))
        if (entry->d_name[0] != '.')
            unlinkat(folder, entry->d_name, 0);
    closedir(stream);
}

/* Its maker holds the lock as long as it lives. Gives the lock of one whose maker does not: held while it is removed, so that
 * somebody who has just made it finds out. -1: it is not abandoned. */
static int take_abandoned(int folder)
{
    struct stat info;
    if (fstat(folder, &info) != 0 || info.st_uid != geteuid())
        return -1;
    int lock = openat(folder, LOCK, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) != 0) {
        close(lock);
        lock = -1;
    }
    return lock;
}

static void remove_abandoned(const char *parent)
{
    DIR *stream = opendir(parent);
    struct dirent *entry;
    if (!stream)
        return;
    while ((entry = readdir(stream))) {
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0)
            continue;
        int folder =
            openat(dirfd(stream), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (folder < 0)
            continue;
        int lock = take_abandoned(folder);
        if (lock >= 0) {
            remove_files(folder);
            unlinkat(dirfd(stream), entry->d_name, AT_REMOVEDIR);
            close(lock);
        }
        close(folder);
    }
    closedir(stream);
}

/* ---- Our own ---- */

/* Whether the locked file is still the one of this name: somebody may have taken the folder for an abandoned one before. */
static bool is_there(int lock, const char *path)
{
    struct stat ours, named;
    return fstat(lock, &ours) == 0 && stat(path, &named) == 0 && ours.st_ino == named.st_ino &&
           ours.st_dev == named.st_dev;
}

static int take_lock(const char *folder)
{
    char path[HF__SOCKET_PATH + sizeof LOCK];
    snprintf(path, sizeof path, "%s/" LOCK, folder);
    int lock = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (lock >= 0 && (flock(lock, LOCK_EX) != 0 || !is_there(lock, path))) {
        close(lock);
        lock = -1;
    }
    return lock;
}

static bool make_in(struct hf__socket_dir *dir, const char *parent)
{
    char path[HF__SOCKET_PATH];
    int length = snprintf(path, sizeof path, "%s/" PREFIX "XXXXXX", parent);
    if (parent[0] != '/' || length < 0 || length + LONGEST_NAME > HF__SOCKET_PATH) {
        errno = ENAMETOOLONG;
        return false;
    }
    remove_abandoned(parent);
    if (!mkdtemp(path)) /* with mode 0700 */
        return false;
    dir->lock = take_lock(path);
    if (dir->lock < 0) {
        rmdir(path);
        return false;
    }
    memcpy(dir->path, path, sizeof path);
    return true;
}

bool hf__socket_dir_name(struct hf__socket_dir *dir, char out[HF__SOCKET_PATH])
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    for (int tries = 0; !dir->path[0] && tries < TRIES; tries++)
        if (!(runtime && make_in(dir, runtime)) && make_in(dir, "/tmp"))
            break;
    if (!dir->path[0])
        return false;
    return snprintf(out, HF__SOCKET_PATH, "%s/%u", dir->path, ++dir->used) < HF__SOCKET_PATH;
}

void hf__socket_dir_close(struct hf__socket_dir *dir)
{
    if (!dir->path[0])
        return;
    int folder = open(dir->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder >= 0) {
        remove_files(folder);
        close(folder);
    }
    rmdir(dir->path);
    close(dir->lock);
    dir->path[0] = '\0';
}
