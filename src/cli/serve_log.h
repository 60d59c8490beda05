/* What a server does, as lines on stderr.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_SERVE_LOG_H
#define HF_CLI_SERVE_LOG_H

#include "server/server.h"

/* `arg` is a struct cli_log. */
void cli_serve_log(const struct hf__server_event *event, void *arg);

#endif
