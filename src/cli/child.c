/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/child.h"

#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const int forwarded[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT };

enum { FORWARDED_COUNT = sizeof forwarded / sizeof forwarded[0] };

void cli_child_block_signals(sigset_t *blocked, sigset_t *old)
{
    /* Inherited as ignored, it would let the kernel reap the child before we can ask how it ended. */
    signal(SIGCHLD, SIG_DFL);
    sigemptyset(blocked);
    sigaddset(blocked, SIGCHLD);
    for (int i = 0; i < FORWARDED_COUNT; i++)
        sigaddset(blocked, forwarded[i]);
    sigprocmask(SIG_BLOCK, blocked, old);
}

/* Only the foreground process group of a terminal may give it away. */
static bool owns_terminal(void)
{
    return isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* From a group in the background this is stopped by SIGTTOU unless that is ignored. */
static void give_terminal(pid_t group)
{
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    struct sigaction before;
    sigaction(SIGTTOU, &ignore, &before);
    tcsetpgrp(STDIN_FILENO, group);
    sigaction(SIGTTOU, &before, NULL);
}

int cli_child_start(struct cli_child *child, char *const *argv, char *const *environment,
                    const sigset_t *mask)
{
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    *child = (struct cli_child){ .has_terminal = owns_terminal() };
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, mask);
    if (child->has_terminal)
        posix_spawn_file_actions_addtcsetpgrp_np(&actions, STDIN_FILENO);
    int failure = posix_spawnp(&child->pid, argv[0], &actions, &attributes, argv, environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return failure;
}

void cli_child_kill(const struct cli_child *child, int number)
{
    kill(-child->pid, number);
}

/* Ctrl-Z reaches the child alone; we stop with it, so that the shell takes over, and go on with it. */
static void stop_together(const struct cli_child *child)
{
    if (!child->has_terminal)
        return;
    give_terminal(getpgrp());
    raise(SIGSTOP);
    give_terminal(child->pid);
    kill(-child->pid, SIGCONT);
}

static void reap(struct cli_child *child)
{
    int status;
    if (waitpid(child->pid, &status, WNOHANG | WUNTRACED) != child->pid)
        return;
    if (WIFSTOPPED(status)) {
        stop_together(child);
        return;
    }
    child->ended = true;
    child->exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void cli_child_attend(struct cli_child *child, const sigset_t *blocked, int64_t patience)
{
    if (patience < 0)
        patience = 0;
    struct timespec limit = { .tv_sec = patience / 1000000, .tv_nsec = patience % 1000000 * 1000 };
    int number = sigtimedwait(blocked, NULL, &limit);
    if (number == SIGCHLD)
        reap(child);
    else if (number > 0)
        cli_child_kill(child, number);
}

void cli_child_finish(const struct cli_child *child)
{
    if (child->has_terminal)
        give_terminal(getpgrp());
}
