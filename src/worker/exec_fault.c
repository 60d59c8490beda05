/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/exec_fault.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_LINE 256 /* bytes of a "#!" line that the kernel reads */

static bool is_file(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

/* As the system finds it; else a file of this name that may not be run; else nothing. */
static bool find_in_path(const char *name, char path[PATH_MAX])
{
    char found[PATH_MAX];
    const char *folder = getenv("PATH");
    path[0] = '\0';
    while (folder && *folder) {
        size_t length = strcspn(folder, ":");
        int written = snprintf(found, sizeof found, "%.*s/%s", (int)length, folder, name);
        folder += length + (folder[length] == ':');
        if (written < 0 || (size_t)written >= sizeof found || !is_file(found))
            continue;
        bool runs = access(found, X_OK) == 0;
        if (runs || !path[0])
            memcpy(path, found, sizeof found);
        if (runs)
            break;
    }
    return path[0] != '\0';
}

/* The interpreter that the first line of a script names, as the kernel reads it; false: it names none. */
static bool read_interpreter(const char *path, char line[FIRST_LINE])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t got = fd >= 0 ? read(fd, line, FIRST_LINE - 1) : -1;
    if (fd >= 0)
        close(fd);
    if (got < 2 || line[0] != '#' || line[1] != '!')
        return false;
    line[got] = '\0';
    line[strcspn(line, "\n")] = '\0';
    const char *from = line + 2 + strspn(line + 2, " \t");
    size_t length = strcspn(from, " \t");
    memmove(line, from, length);
    line[length] = '\0';
    return length > 0;
}

/* False: nothing is wrong with it, or nobody can say. */
static bool explain_interpreter(const char *name, const char *path, char *out, size_t size)
{
    char interpreter[FIRST_LINE];
    if (!read_interpreter(path, interpreter) || access(interpreter, X_OK) == 0)
        return false;
    size_t length = strlen(interpreter);
    const char *what = access(interpreter, F_OK) == 0 ? "may not be run" : "does not exist";
    if (interpreter[length - 1] == '\r') {
        interpreter[length - 1] = '\0';
        what = "does not exist: its lines end as on Windows, with a carriage return; save it with "
               "plain newlines";
    }
    snprintf(out, size, "cannot run %.100s: its interpreter %.100s %s", name, interpreter, what);
    return true;
}

/* False: there is nothing to say against running it. */
static bool explain(const char *name, char *out, size_t size)
{
    char path[PATH_MAX];
    struct stat about;
    if (strchr(name, '/'))
        snprintf(path, sizeof path, "%s", name);
    else if (!find_in_path(name, path))
        return snprintf(out, size, "cannot run %.100s: there is no such program in PATH", name) > 0;
    if (stat(path, &about) != 0)
        return snprintf(out, size, "cannot run %.100s: %s", name,
                        errno == ENOENT ? "there is no such program" : strerror(errno)) > 0;
    if (!S_ISREG(about.st_mode))
        return snprintf(out, size, "cannot run %.100s: it is %s", name,
                        S_ISDIR(about.st_mode) ? "a folder" : "no file") > 0;
    if (access(path, X_OK) != 0)
        return snprintf(out, size, "cannot run %.100s: it is not executable (chmod +x %.100s)",
                        name, path) > 0;
    return explain_interpreter(name, path, out, size);
}

bool hf__exec_find_fault(const char *name, char *out, size_t size)
{
    return explain(name, out, size);
}

/* The system's word comes first where the files tell nothing: too many processes, a filesystem without programs. */
const char *hf__exec_fault(const char *name, int error, char *out, size_t size)
{
    bool by_files = error == ENOENT || error == EACCES || error == ENOTDIR;
    if (!by_files || !explain(name, out, size))
        snprintf(out, size, "cannot run %.100s: %s", name, strerror(error));
    return out;
}
