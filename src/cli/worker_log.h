/* What a worker does, as lines on stderr.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_WORKER_LOG_H
#define HF_CLI_WORKER_LOG_H

#include <holdfast/worker.h>

/* An hf_worker_observer; `arg` is a struct cli_log. */
void cli_worker_log(const hf_worker_event *event, void *arg);

#endif
