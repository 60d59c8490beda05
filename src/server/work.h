/* Remote workers: they claim runs, record steps and commit over HTTP, and hold them like any other worker, by the version of
 * their claim.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_SERVER_WORK_H
#define HF_SERVER_WORK_H

#include "server/request.h"

/* The worker's name in the store: that of the tenant goes before it, so that no tenant meets another's. NULL: no memory. */
const char *hf__work_name(struct hf__request *request, const char *worker);

/* work_claim.c: gives out due runs, or waits for some. Runs that must not reach a handler are failed on the way. */
hf_code hf__work_claim(struct hf__request *request, hf_error *err);
hf_code hf__work_leave(struct hf__request *request, hf_error *err);
extern const struct hf__member hf__work_claim_members[];
extern const struct hf__member hf__work_leave_members[];

/* work_turn.c: how a turn ended. */
hf_code hf__work_commit(struct hf__request *request, hf_error *err);
hf_code hf__work_fail(struct hf__request *request, hf_error *err);
extern const struct hf__member hf__work_commit_members[];
extern const struct hf__member hf__work_fail_members[];

#endif
