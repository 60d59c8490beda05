/* Requests that wait for something to happen to a run.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_SERVER_WAIT_H
#define HF_SERVER_WAIT_H

#include "server/request.h"

/* Answers with the run when it has ended, or with the run as it is after `wait` us (at most 60 s). */
hf_code hf__wait_for_end(struct hf__request *request, hf_id run, int64_t wait, hf_error *err);
/* A stream of the run's journal after `after` or Last-Event-ID, until the run has ended. */
hf_code hf__follow_events(struct hf__request *request, hf_id run, int64_t after, hf_error *err);

#endif
