/* A SQLite file: its file system, the room there, its log.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor.h"

#include "util/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#define MEBIBYTE ((int64_t)1 << 20)
#define LARGE_LOG (64 * MEBIBYTE) /* checkpoints keep it below, unless a reader is in their way */
#define LITTLE_ROOM (1024 * MEBIBYTE)
#define NO_ROOM (100 * MEBIBYTE)

bool cli_is_network_fs(unsigned long type)
{
    static const unsigned long network[] = {
        0x6969,     /* NFS */
        0xff534d42, /* CIFS */
        0xfe534d42, /* SMB2 */
        0x517b,     /* SMB */
        0x01021997, /* 9P */
        0x00c36400, /* Ceph */
        0x5346414f, /* AFS */
        0x0bd00bd0, /* Lustre */
        0x01161970, /* GFS2 */
        0x7461636f, /* OCFS2 */
    };
    for (size_t i = 0; i < sizeof network / sizeof *network; i++)
        if (network[i] == type)
            return true;
    return false;
}

static void check_file_system(struct cli_doctor *doctor, const char *path)
{
    struct statfs fs;
    if (statfs(path, &fs) != 0)
        return;
    bool network = cli_is_network_fs((unsigned long)fs.f_type);
    cli_doctor_say(doctor, "file system", network ? CLI_DANGER : CLI_FINE,
                   network
                       ? "move it to a local disk, or use PostgreSQL: the log is shared memory, "
                         "which other machines do not see"
                       : NULL,
                   network ? "%s lies on a network file system" : "%s lies on a local one", path);
}

bool cli_doctor_room(struct cli_doctor *doctor, const char *path)
{
    struct statvfs fs;
    if (statvfs(path, &fs) != 0)
        return false;
    int64_t room = (int64_t)fs.f_bavail * (int64_t)fs.f_frsize;
    enum cli_level level = room < NO_ROOM       ? CLI_DANGER
                           : room < LITTLE_ROOM ? CLI_WARNING
                                                : CLI_FINE;
    cli_doctor_say(doctor, "disk", level,
                   level == CLI_FINE
                       ? NULL
                       : "make room, or remove old runs: holdfast purge --older-than 30d --dry-run",
                   "%" PRId64 " MiB are free where %s lies", room / MEBIBYTE, path);
    return true;
}

static void check_log(struct cli_doctor *doctor, const char *path)
{
    struct stat log = { 0 };
    char *name = hf__malloc(strlen(path) + sizeof "-wal");
    if (!name)
        return;
    strcpy(name, path);
    strcat(name, "-wal");
    if (stat(name, &log) != 0)
        log.st_size = 0;
    bool large = log.st_size > LARGE_LOG;
    cli_doctor_say(doctor, "log", large ? CLI_WARNING : CLI_FINE,
                   large
                       ? "end whoever reads the file in a long transaction: it keeps the log from "
                         "being copied back"
                       : NULL,
                   "%s has %" PRId64 " MiB", name, (int64_t)log.st_size / MEBIBYTE);
    free(name);
}

/* Whoever reads the file reads the secrets of tokens' webhooks, and whoever opens the lock stops all writers. */
static void check_rights(struct cli_doctor *doctor, const char *path)
{
    static const char *const suffixes[] = { "", "-wal", "-shm", "-lock", "-wake" };
    char name[CLI_STORE_FILE + sizeof "-lock"];
    struct stat st;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        if (stat(name, &st) != 0 || (st.st_mode & S_IRWXO) == 0)
            continue;
        cli_doctor_say(doctor, "rights", CLI_WARNING,
                       "keep them out, when nothing uses the store: chmod o= on it and the files "
                       "beside it",
                       "every user of this machine may open %s", name);
        return;
    }
    cli_doctor_say(doctor, "rights", CLI_FINE, NULL, "no other user may open %s", path);
}

void cli_doctor_disk(struct cli_doctor *doctor)
{
    char path[CLI_STORE_FILE];
    if (!cli_store_file(doctor->session, path))
        return;
    check_file_system(doctor, path);
    cli_doctor_room(doctor, path);
    check_log(doctor, path);
    check_rights(doctor, path);
}
