/* What a server does, as lines on stderr.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_SERVE_LOG_H
#define HF_CLI_SERVE_LOG_H

#include "server/server.h"

struct cli_serve_log {
    bool json;
    bool quiet; /* only what went wrong */
};

/* `arg` is a struct cli_serve_log. Each event is one write, so that lines of several threads do not mix. */
void cli_serve_log(const struct hf__server_event *event, void *arg);

#endif
