/* How a run is named on the command line: its id, or WORKFLOW/KEY.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_RUN_REF_H
#define HF_CLI_RUN_REF_H

#include "cli/session.h"

/* The id that an operand names; a key is looked up. False: the error was shown, *status is the exit code. */
bool cli_run_id(struct cli_session *session, const char *operand, hf_id *out,
                int *status) HF_MUST_CHECK;
/* Reads the run; yours to free. */
bool cli_run_get(struct cli_session *session, const char *operand, hf_run **out,
                 int *status) HF_MUST_CHECK;
/* Shows an error of a call about this run. */
int cli_run_fail(struct cli_session *session, const char *operand, const hf_error *err);

#endif
