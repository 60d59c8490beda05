/* A command in a process group of its own.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_CHILD_H
#define HF_CLI_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct cli_child {
    pid_t pid;         /* of the leader and of the group */
    bool has_terminal; /* it was made the foreground group of stdin's terminal */
    bool ended;
    int exit_code; /* as a shell gives it: 128 + n after signal n */
};

/* Blocks the signals that a child should get or that tell of it. Call it before any thread is started: they inherit the
 * mask. `old` is what the child gets back. */
void cli_child_block_signals(sigset_t *blocked, sigset_t *old);
/* Starts argv[0], looked up in PATH. 0, or errno. */
int cli_child_start(struct cli_child *child, char *const *argv, char *const *environment,
                    const sigset_t *mask);
/* Waits for the next signal, at most `patience` us, and passes it on to the group, or notes how the child ended. */
void cli_child_attend(struct cli_child *child, const sigset_t *blocked, int64_t patience);
/* Sends it to all of the group that are left. */
void cli_child_kill(const struct cli_child *child, int number);
/* Takes the terminal back. */
void cli_child_finish(const struct cli_child *child);

#endif
