/* The command of a step: run in this process's group, its stdout kept, its stderr passed on.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_STEP_COMMAND_H
#define HF_CLI_STEP_COMMAND_H

#include "util/buffer.h"

#include <stdint.h>

#define CLI_STEP_WORDS 300 /* bytes of the end of stderr that are kept */

struct hf__step_line_command {
    char *const *argv;
    size_t output_limit; /* bytes of stdout */
    int64_t timeout;     /* us; 0: none */
    int watched;         /* a descriptor that says nothing while all is well */
};

enum cli_step_end {
    CLI_STEP_EXITED,
    CLI_STEP_LATE,      /* ended: the time was up */
    CLI_STEP_TALKATIVE, /* ended: more output than allowed */
    CLI_STEP_LOST,      /* killed: `watched` said something */
    CLI_STEP_BROKEN     /* not started: errno in exit_code */
};

struct hf__step_line_result {
    enum cli_step_end end;
    int exit_code; /* as a shell gives it: 128 + n after signal n, 126 and 127 if it cannot be run */
    struct hf__buffer output;
    char words[CLI_STEP_WORDS + 1]; /* the end of stderr, without the last newlines */
};

/* Ends all that the command started where `end` says so; otherwise what it left in the background stays. Free
 * result->output. */
void cli_step_command_run(const struct hf__step_line_command *command,
                          struct hf__step_line_result *result);

#endif
