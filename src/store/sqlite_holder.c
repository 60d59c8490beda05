/* Who holds a file's flock, as the kernel tells.
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* "1: FLOCK  ADVISORY  WRITE 4711 fd:01:131 0 EOF"; who waits has an arrow after the first column. 0: another line. */
static int holder_in(const char *line, const struct stat *file)
{
    unsigned int major_number, minor_number;
    unsigned long long inode;
    int pid;
    if (sscanf(line, "%*d: FLOCK %*s %*s %d %x:%x:%llu", &pid, &major_number, &minor_number,
               &inode) != 4 ||
        inode != file->st_ino || major_number != major(file->st_dev) ||
        minor_number != minor(file->st_dev))
        return 0;
    return pid;
}

static void read_name(int pid, char name[32])
{
    char path[40];
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    FILE *comm = fopen(path, "re");
    if (!comm || !fgets(name, 32, comm))
        *name = '\0';
    name[strcspn(name, "\n")] = '\0';
    if (comm)
        fclose(comm);
}

void hf__sqlite_holder(int fd, char out[HF__HOLDER_TEXT])
{
    char line[256], name[32] = "";
    struct stat file;
    int pid = 0;
    FILE *locks = fopen("/proc/locks", "re");
    if (locks && fstat(fd, &file) == 0)
        while (pid <= 0 && fgets(line, sizeof line, locks))
            pid = holder_in(line, &file);
    if (locks)
        fclose(locks);
    if (pid > 0)
        read_name(pid, name);
    if (pid > 0)
        snprintf(out, HF__HOLDER_TEXT, "process %d%s%s%s", pid, *name ? " (" : "", name,
                 *name ? ")" : "");
    else
        snprintf(out, HF__HOLDER_TEXT, "another process");
}
