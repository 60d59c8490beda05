/* What a worker does, as lines on stderr.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_WORKER_LOG_H
#define HF_CLI_WORKER_LOG_H

#include <holdfast/worker.h>

struct cli_worker_log {
    bool json;
    bool quiet; /* only what went wrong */
};

/* An hf_worker_observer; `arg` is a struct cli_worker_log. Each event is one write, so that lines of several threads do
 * not mix. */
void cli_worker_log(const hf_worker_event *event, void *arg);

#endif
