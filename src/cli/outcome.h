/* Waiting for a run to end and showing how it did.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_OUTCOME_H
#define HF_CLI_OUTCOME_H

#include "cli/session.h"

/* Waits at most `timeout` us (< 0: forever). The result goes to stdout, an error to stderr; returns the exit code.
 * `name` is how the user calls the run. */
int cli_wait_for(struct cli_session *session, const char *name, hf_id id, int64_t timeout);

/* Its attempts for people: the claim that finds none left is counted too, and called no handler. */
int cli_attempts_made(const hf_run *run);

/* What a waiting run waits for, in words. */
const char *cli_waits_for(const hf_run *run);

/* Prints how a run that has ended did so; returns the exit code. */
int cli_show_outcome(const struct cli_session *session, const hf_run *run);

#endif
