/* Disks: the file system of a SQLite file, its log, the room there; the room that a PostgreSQL server has.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor.h"

#include "client/client.h"
#include "util/alloc.h"

#include <inttypes.h>
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

static void tell_room(struct cli_doctor *doctor, const char *path, const struct statvfs *fs)
{
    int64_t room = (int64_t)fs->f_bavail * (int64_t)fs->f_frsize;
    enum cli_level level = room < NO_ROOM       ? CLI_DANGER
                           : room < LITTLE_ROOM ? CLI_WARNING
                                                : CLI_FINE;
    cli_doctor_say(doctor, "disk", level,
                   level == CLI_FINE ? NULL
                                     : "make room, or remove old runs: holdfast purge --dry-run",
                   "%" PRId64 " MiB are free where %s lies", room / MEBIBYTE, path);
}

static void check_room(struct cli_doctor *doctor, const char *path)
{
    struct statvfs fs;
    if (statvfs(path, &fs) == 0)
        tell_room(doctor, path, &fs);
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

/* The server's log may have a disk of its own; whoever is not its owner cannot see into the directory. */
static bool check_server_room(struct cli_doctor *doctor, const char *directory)
{
    struct statvfs data, log;
    char path[4096];
    if (statvfs(directory, &data) != 0)
        return false;
    tell_room(doctor, directory, &data);
    snprintf(path, sizeof path, "%s/pg_wal", directory);
    if (statvfs(path, &log) == 0 && log.f_fsid != data.f_fsid)
        tell_room(doctor, path, &log);
    return true;
}

/* Not to see it is no fault of the store: it is said, and nothing more. */
static void check_server(struct cli_doctor *doctor)
{
    struct hf__ask ask;
    hf__ask_begin(&ask, doctor->session->client->engine, HF__STMT_SERVER_PLACE);
    if (cli_doctor_ask(doctor, "disk", &ask)) {
        const struct hf__cell *c = hf__table_row(&ask.out, 0);
        const char *directory = hf__as_text(c[0]);
        bool local = hf__as_number(c[1]) != 0;
        if (!directory || !local || !check_server_room(doctor, directory))
            cli_doctor_say(doctor, "disk", CLI_FINE, NULL,
                           "the database has %" PRId64 " MiB; how much is free cannot be seen from "
                           "here: %s",
                           hf__as_number(c[2]) / MEBIBYTE,
                           !local       ? "the server is on another machine"
                           : !directory ? "only roles with pg_monitor may know where its data is"
                                        : "its directory is not on this machine");
    }
    hf__ask_end(&ask);
}

void cli_doctor_disk(struct cli_doctor *doctor)
{
    static const char scheme[] = "sqlite:";
    const char *path = doctor->session->store + sizeof scheme - 1;
    if (cli_doctor_has(doctor, HF__STMT_SERVER_PLACE))
        check_server(doctor);
    if (strncmp(doctor->session->store, scheme, sizeof scheme - 1) != 0 || *path == ':')
        return;
    check_file_system(doctor, path);
    check_room(doctor, path);
    check_log(doctor, path);
}
