/* The program's exit codes. Scripts rely on them: a number never changes its meaning.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_EXIT_H
#define HF_CLI_EXIT_H

#include <holdfast/error.h>

/* symbol, number, what it means */
#define CLI_EXITS(X)                                                                               \
    X(CLI_OK, 0, "it worked")                                                                      \
    X(CLI_FAILED, 1, "another failure")                                                            \
    X(CLI_USAGE, 2, "wrong usage: an option, a name or an input is not acceptable")                \
    X(CLI_NOT_FOUND, 3, "there is no such run, workflow or tenant")                                \
    X(CLI_REFUSED, 4, "refused: conflict, not allowed, stale, changed meanwhile, disabled")        \
    X(CLI_STORE, 5, "the store is unavailable, full, read-only or of another schema version")      \
    X(CLI_TIMEOUT, 6, "the time limit passed first")                                               \
    X(CLI_NO_WORKER, 7, "no live worker could run it")                                             \
    X(CLI_RUN_FAILED, 8, "the run failed or was cancelled (wait, trigger --wait)")                 \
    X(CLI_TAMPERED, 9, "the journal is not what was sealed (audit verify)")                        \
    X(CLI_LOCKED, 73, "somebody else holds the lock (lock)")                                       \
    X(CLI_LOCK_LOST, 74, "the lock was lost and the command was ended (lock)")

enum cli_exit {
#define CLI_EXIT_ENUM(symbol, number, meaning) symbol = number,
    CLI_EXITS(CLI_EXIT_ENUM)
#undef CLI_EXIT_ENUM
};

int cli_exit_of(hf_code code);

#endif
