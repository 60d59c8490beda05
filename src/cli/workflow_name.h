/* Names of workflows that are typed on the command line.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_WORKFLOW_NAME_H
#define HF_CLI_WORKFLOW_NAME_H

#include "cli/session.h"

/* Says that there is no such workflow, and which one may be meant. Returns the exit code. */
int cli_unknown_workflow(struct cli_session *session, const char *name, hf_code code);

/* Are its runs held back? Not if that cannot be learned: who asks has something else to do. */
bool cli_workflow_paused(struct cli_session *session, const char *name);
void cli_warn_paused(struct cli_session *session, const char *name);

#endif
