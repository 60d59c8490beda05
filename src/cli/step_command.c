/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/step_command.h"

#include "util/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define GRACE_MS 2000
#define GENERATIONS_MOST 1000 /* of orphans that are ended */

struct running {
    const struct hf__step_line_command *command;
    struct hf__step_line_result *result;
    pid_t pid;
    int pid_fd;
    int out, err;  /* -1: closed */
    int64_t until; /* monotonic us */
    size_t words;  /* bytes of result->words */
    bool over;
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- Starting ---- */

static void become(const struct hf__step_line_command *command, pid_t parent, int out, int err)
{
    signal(SIGPIPE, SIG_DFL);
    if (dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0)
        _exit(126);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(126);
    execvp(command->argv[0], command->argv);
    int why = errno;
    dprintf(STDERR_FILENO, "holdfast: cannot run \"%.200s\": %s\n", command->argv[0],
            strerror(why));
    _exit(why == ENOENT ? 127 : 126);
}

/* 0, or errno. */
static int start(struct running *running)
{
    int out[2], err[2];
    pid_t parent = getpid();
    if (pipe2(out, O_CLOEXEC) != 0)
        return errno;
    if (pipe2(err, O_CLOEXEC) != 0) {
        int why = errno;
        close(out[0]);
        close(out[1]);
        return why;
    }
    running->pid = fork();
    if (running->pid == 0)
        become(running->command, parent, out[1], err[1]);
    int error = running->pid < 0 ? errno : 0;
    close(out[1]);
    close(err[1]);
    running->out = out[0];
    running->err = err[0];
    if (error)
        return error;
    fcntl(running->out, F_SETFL, O_NONBLOCK);
    fcntl(running->err, F_SETFL, O_NONBLOCK);
    running->pid_fd = pidfd_open(running->pid, 0);
    return running->pid_fd < 0 ? errno : 0;
}

/* ---- Ending ---- */

static void note_exit(struct running *running)
{
    int status = 0;
    while (waitpid(running->pid, &status, 0) < 0 && errno == EINTR)
        ;
    running->over = true;
    running->result->exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Kills this process's children; what they started comes to this process, which made itself the reaper of orphans. */
static bool kill_children(void)
{
    char path[64], numbers[4096];
    bool any = false;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(numbers, 1, sizeof numbers - 1, file) : 0;
    if (file)
        fclose(file);
    numbers[length] = '\0';
    for (char *at = numbers, *end; *at; at = end) {
        long pid = strtol(at, &end, 10);
        if (end == at)
            break;
        any |= pid > 1 && kill((pid_t)pid, SIGKILL) == 0;
    }
    return any;
}

static void kill_all(void)
{
    for (int i = 0; i < GENERATIONS_MOST && kill_children(); i++)
        while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
            ;
}

static void stop(struct running *running, enum cli_step_end why, int grace_ms)
{
    struct pollfd exit = { .fd = running->pid_fd, .events = POLLIN };
    running->result->end = why;
    kill(running->pid, SIGTERM);
    while (grace_ms > 0 && poll(&exit, 1, grace_ms) < 0 && errno == EINTR)
        ;
    kill(running->pid, SIGKILL);
    note_exit(running);
    kill_all();
}

/* ---- Reading ---- */

static void keep_words(struct running *running, const char *bytes, size_t length)
{
    char *words = running->result->words;
    if (length > CLI_STEP_WORDS) {
        bytes += length - CLI_STEP_WORDS;
        length = CLI_STEP_WORDS;
    }
    if (running->words + length > CLI_STEP_WORDS) {
        size_t excess = running->words + length - CLI_STEP_WORDS;
        memmove(words, words + excess, running->words - excess);
        running->words -= excess;
    }
    memcpy(words + running->words, bytes, length);
    running->words += length;
}

static void pass_on(const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t wrote = write(STDERR_FILENO, bytes, length);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return; /* nobody reads it: its own business */
        bytes += wrote;
        length -= (size_t)wrote;
    }
}

/* Reads what is there. */
static void drain(struct running *running, int *fd)
{
    char bytes[65536];
    while (*fd >= 0) {
        ssize_t got = read(*fd, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return;
        if (got <= 0) {
            close_fd(fd);
        } else if (fd == &running->err) {
            keep_words(running, bytes, (size_t)got);
            pass_on(bytes, (size_t)got);
        } else {
            hf__buffer_add(&running->result->output, bytes, (size_t)got);
            if (running->result->output.length > running->command->output_limit)
                return;
        }
    }
}

static bool is_talkative(const struct running *running)
{
    const struct hf__buffer *output = &running->result->output;
    return output->failed || output->length > running->command->output_limit;
}

/* ---- Attending ---- */

static int timeout_ms(const struct running *running)
{
    if (running->until == INT64_MAX)
        return -1;
    int64_t left = running->until - hf__monotonic_us();
    if (left > INT64_C(3600000000))
        left = INT64_C(3600000000);
    return left <= 0 ? 0 : (int)((left + 999) / 1000);
}

static void attend(struct running *running)
{
    struct pollfd fds[] = {
        { .fd = running->out, .events = POLLIN },
        { .fd = running->err, .events = POLLIN },
        { .fd = running->pid_fd, .events = POLLIN },
        { .fd = running->command->watched, .events = POLLIN | POLLRDHUP },
    };
    if (poll(fds, 4, timeout_ms(running)) < 0)
        return;
    if (fds[0].revents)
        drain(running, &running->out);
    if (fds[1].revents)
        drain(running, &running->err);
    if (fds[3].revents)
        stop(running, CLI_STEP_LOST, 0);
    else if (is_talkative(running))
        stop(running, CLI_STEP_TALKATIVE, GRACE_MS);
    else if (fds[2].revents)
        note_exit(running);
    else if (hf__monotonic_us() >= running->until)
        stop(running, CLI_STEP_LATE, GRACE_MS);
}

static void finish_words(struct running *running)
{
    char *words = running->result->words;
    while (running->words > 0 && strchr("\n\r\t ", words[running->words - 1]))
        running->words--;
    words[running->words] = '\0';
}

void cli_step_command_run(const struct hf__step_line_command *command,
                          struct hf__step_line_result *result)
{
    struct running running = {
        .command = command,
        .result = result,
        .pid_fd = -1,
        .out = -1,
        .err = -1,
        .until = command->timeout ? hf__monotonic_us() + command->timeout : INT64_MAX,
    };
    *result = (struct hf__step_line_result){ .end = CLI_STEP_EXITED };
    signal(SIGCHLD, SIG_DFL); /* inherited as ignored, it would take the exit code away */
    void (*before)(int) = signal(SIGPIPE, SIG_IGN); /* stderr may be a pipe to a worker that dies */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    int error = start(&running);
    if (error) {
        result->end = CLI_STEP_BROKEN;
        result->exit_code = error;
    }
    while (!error && !running.over)
        attend(&running);
    drain(&running, &running.out);
    drain(&running, &running.err);
    if (result->end == CLI_STEP_EXITED && is_talkative(&running))
        result->end = CLI_STEP_TALKATIVE;
    finish_words(&running);
    close_fd(&running.out);
    close_fd(&running.err);
    close_fd(&running.pid_fd);
    signal(SIGPIPE, before);
}
