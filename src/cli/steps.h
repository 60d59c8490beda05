/* The steps of a run on a terminal.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_STEPS_H
#define HF_CLI_STEPS_H

#include "cli/field.h"
#include "record/step_lines.h"

/* What came out of it in a few words, clean for a terminal, the caller's to free(): its output, its error, or until when it
 * waits. NULL when there is no memory. */
char *cli_step_outcome(struct cli_session *session, const struct hf__step_line *step)
    __attribute__((warn_unused_result));

#endif
