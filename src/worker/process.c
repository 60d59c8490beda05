/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/process.h"

#include "util/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KILL_AFTER HF_SECONDS(2)
#define BLIND_PERIOD                                                                               \
    HF_MILLISECONDS(20) /* between looks at the child where the system has no pidfd */

enum { IN, OUT, ERR };

struct child {
    const struct hf__process_spec *spec;
    struct hf__process_result *result;
    pid_t pid;
    int pid_fd;
    int pipes[3]; /* our ends; -1: closed */
    size_t fed;   /* bytes of the input */
    bool unwanted;
    int64_t kill_at; /* monotonic us of the SIGKILL */
    bool exited;
    bool broken_pipe;
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- Starting ---- */

/* Away from 0, 1 and 2, which a program may have closed: the child's ends are moved there one
 * after the other. */
static bool move_up(int *fd)
{
    if (*fd > STDERR_FILENO)
        return true;
    int moved = fcntl(*fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close_fd(fd);
    *fd = moved;
    return moved >= 0;
}

/* `theirs` blocks, `ours` does not. */
static bool open_pipe(int *theirs, int *ours, bool they_read)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    *theirs = ends[they_read ? 0 : 1];
    *ours = ends[they_read ? 1 : 0];
    return move_up(theirs) && move_up(ours) && fcntl(*ours, F_SETFL, O_NONBLOCK) == 0;
}

/* Between vfork and exec, in the child: system calls only, since the memory is still its parent's. */
static void become(const struct hf__process_spec *spec, const int theirs[3], pid_t parent,
                   int report)
{
    struct sigaction plain = { .sa_handler = SIG_DFL };
    setpgid(0, 0);
    for (int number = 1; number < NSIG; number++)
        sigaction(number, &plain, NULL);
    for (int i = 0; i < 3; i++)
        if (dup2(theirs[i], i) < 0)
            return;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    /* A worker that is killed cannot end its programs, so they end with it; it may be gone already. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        return;
    execvpe(spec->argv[0], (char *const *)spec->argv, spec->env);
    int error = errno;
    while (write(report, &error, sizeof error) < 0 && errno == EINTR)
        ;
}

/* 0, or errno. Not posix_spawn, which cannot make the child die with us. */
static int spawn(struct child *child, const int theirs[3])
{
    int report[2] = { -1, -1 }, error = 0;
    sigset_t all, before;
    pid_t parent = getpid();
    if (pipe2(report, O_CLOEXEC) != 0)
        return errno;
    if (!move_up(&report[1]))
        error = EMFILE;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before); /* no handler may run in the child, in our memory */
    if (!error && (child->pid = vfork()) == 0) {
        become(child->spec, theirs, parent, report[1]);
        _exit(127);
    }
    if (!error && child->pid < 0)
        error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close_fd(&report[1]);
    if (!error && read(report[0], &error, sizeof error) == (ssize_t)sizeof error)
        while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    close_fd(&report[0]);
    return error;
}

/* 0, or errno. */
static int start(struct child *child)
{
    int theirs[3] = { -1, -1, -1 };
    int error = 0;
    for (int i = 0; i < 3 && !error; i++)
        if (!open_pipe(&theirs[i], &child->pipes[i], i == IN))
            error = errno ? errno : EMFILE;
    if (!error)
        error = spawn(child, theirs);
    for (int i = 0; i < 3; i++)
        close_fd(&theirs[i]);
    if (!error)
        child->pid_fd = pidfd_open(child->pid, 0);
    return error;
}

/* ---- Feeding and reading ---- */

static void stop(struct child *child, enum hf__process_end why)
{
    if (child->unwanted || child->exited)
        return;
    child->unwanted = true;
    child->result->end = why;
    child->kill_at = hf__monotonic_us() + KILL_AFTER;
    kill(-child->pid, SIGTERM);
}

static void feed(struct child *child)
{
    const struct hf__process_spec *spec = child->spec;
    while (child->fed < spec->input_length) {
        ssize_t wrote =
            write(child->pipes[IN], spec->input + child->fed, spec->input_length - child->fed);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0 && errno == EAGAIN)
            return;
        if (wrote < 0) {
            child->broken_pipe |= errno == EPIPE;
            break; /* it does not want to read: its own business */
        }
        child->fed += (size_t)wrote;
    }
    close_fd(&child->pipes[IN]);
}

static void keep_output(struct child *child, const char *bytes, size_t length)
{
    struct hf__buffer *output = &child->result->output;
    if (child->unwanted)
        return;
    hf__buffer_add(output, bytes, length);
    if (output->length > child->spec->max_output || output->failed)
        stop(child, HF__PROCESS_TALKATIVE);
}

static void keep_tail(struct child *child, const char *bytes, size_t length)
{
    struct hf__process_result *result = child->result;
    if (length > HF__PROCESS_TAIL) {
        bytes += length - HF__PROCESS_TAIL;
        length = HF__PROCESS_TAIL;
    }
    memcpy(result->tail + result->tail_length, bytes, length);
    result->tail_length += length;
    if (result->tail_length > HF__PROCESS_TAIL) {
        size_t excess = result->tail_length - HF__PROCESS_TAIL;
        memmove(result->tail, result->tail + excess, HF__PROCESS_TAIL);
        result->tail_length = HF__PROCESS_TAIL;
    }
}

static void drain(struct child *child, int which)
{
    char bytes[16384];
    while (child->pipes[which] >= 0) {
        ssize_t got = read(child->pipes[which], bytes, sizeof bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return;
        if (got <= 0)
            close_fd(&child->pipes[which]);
        else if (which == OUT)
            keep_output(child, bytes, (size_t)got);
        else
            keep_tail(child, bytes, (size_t)got);
        if (child->unwanted && !child->exited)
            return;
    }
}

/* ---- Waiting ---- */

/* Whether it has ended. What is left of its group is killed before it is reaped, while its number
 * cannot be anybody else's: the attempt is over, and nothing of it shall work on beside the next. */
static void look_at(struct child *child)
{
    siginfo_t info = { 0 };
    int status = 0;
    if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOWAIT | WNOHANG) == 0 && !info.si_pid)
        return;
    kill(-child->pid, SIGKILL);
    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
        ;
    child->exited = true;
    if (child->unwanted)
        return;
    child->result->end = WIFSIGNALED(status) ? HF__PROCESS_SIGNALLED : HF__PROCESS_EXITED;
    child->result->number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

static int timeout_ms(const struct child *child)
{
    int64_t until = child->unwanted ? child->kill_at : child->spec->until;
    int64_t now = hf__monotonic_us();
    int64_t left = until == INT64_MAX ? HF_HOURS(1) : until - now;
    if (child->pid_fd < 0 && left > BLIND_PERIOD)
        left = BLIND_PERIOD;
    if (left > HF_HOURS(1))
        left = HF_HOURS(1);
    return left <= 0 ? 0 : (int)((left + 999) / 1000);
}

static void check_time(struct child *child)
{
    int64_t now = hf__monotonic_us();
    if (!child->unwanted && now >= child->spec->until)
        stop(child, HF__PROCESS_LATE);
    if (child->unwanted && now >= child->kill_at) {
        kill(-child->pid, SIGKILL);
        child->kill_at = now + KILL_AFTER;
    }
}

enum { PID = ERR + 1, WAKE, OWN_FDS };

static nfds_t list_fds(const struct child *child, struct pollfd *fds)
{
    const struct hf__process_side *side = child->spec->side;
    fds[IN] = (struct pollfd){ .fd = child->pipes[IN], .events = POLLOUT };
    fds[OUT] = (struct pollfd){ .fd = child->pipes[OUT], .events = POLLIN };
    fds[ERR] = (struct pollfd){ .fd = child->pipes[ERR], .events = POLLIN };
    fds[PID] = (struct pollfd){ .fd = child->pid_fd, .events = POLLIN };
    fds[WAKE] =
        (struct pollfd){ .fd = child->unwanted ? -1 : child->spec->wake_fd, .events = POLLIN };
    return OWN_FDS + (side && !child->unwanted ? side->list(side->arg, fds + OWN_FDS) : 0);
}

static void attend(struct child *child)
{
    struct pollfd fds[OWN_FDS + HF__PROCESS_SIDE_FDS];
    const struct hf__process_side *side = child->unwanted ? NULL : child->spec->side;
    nfds_t count = list_fds(child, fds);
    if (poll(fds, count, timeout_ms(child)) < 0) {
        if (errno != EINTR)
            stop(child, HF__PROCESS_UNWANTED);
        return;
    }
    if (fds[IN].revents)
        feed(child);
    if (fds[OUT].revents)
        drain(child, OUT);
    if (fds[ERR].revents)
        drain(child, ERR);
    if (fds[WAKE].revents)
        stop(child, HF__PROCESS_UNWANTED);
    check_time(child);
    if (side && !child->unwanted && side->attend(side->arg, fds + OWN_FDS))
        stop(child, HF__PROCESS_SUSPENDED);
    if (fds[PID].revents || child->pid_fd < 0)
        look_at(child);
}

/* ---- SIGPIPE would end the whole program ---- */

static void hold_sigpipe(sigset_t *before)
{
    sigset_t pipe_only;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_only, before);
}

static void release_sigpipe(const sigset_t *before, bool pending)
{
    sigset_t pipe_only;
    struct timespec no_time = { 0, 0 };
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    if (pending && !sigismember(before, SIGPIPE))
        while (sigtimedwait(&pipe_only, NULL, &no_time) < 0 && errno == EINTR)
            ;
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

void hf__process_run(const struct hf__process_spec *spec, struct hf__process_result *result)
{
    struct child child = { .spec = spec, .result = result, .pid_fd = -1, .pipes = { -1, -1, -1 } };
    sigset_t before;
    result->tail_length = 0;
    result->output = (struct hf__buffer){ 0 };
    hold_sigpipe(&before);
    int error = start(&child);
    if (error) {
        result->end = HF__PROCESS_NOT_STARTED;
        result->number = error;
    } else {
        while (!child.exited)
            attend(&child);
        drain(&child, OUT);
        drain(&child, ERR);
        if (result->output.length > spec->max_output)
            result->end = HF__PROCESS_TALKATIVE;
    }
    for (int i = 0; i < 3; i++)
        close_fd(&child.pipes[i]);
    close_fd(&child.pid_fd);
    release_sigpipe(&before, child.broken_pipe);
}
