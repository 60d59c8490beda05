/* Filters as parameters of statements.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLIENT_READ_H
#define HF_CLIENT_READ_H

#include "client/ask.h"
#include "client/client.h"

/* Fills the parameters that find_newest, read_runs and count_runs share. */
hf_code hf__filter_fill(struct hf__ask *ask, hf_client *client, const hf_filter *filter,
                        const hf_id *before, int limit, hf_error *err);
/* hf_list; `brief` leaves out input, state, result and error, which may be megabytes each. */
hf_code hf__list(hf_client *client, hf_runs **out, const hf_filter *filter, bool brief,
                 hf_error *err);
/* After every name that begins with `prefix`, before all others; NULL without memory. */
char *hf__prefix_end(struct hf__arena *arena, const char *prefix);
/* hf_events_list, of lines that hold `bytes` at most, unless the first alone does. *more: there may be others after them. */
hf_code hf__events_list(hf_client *client, hf_events **out, hf_id id, int64_t after_seq, int limit,
                        int64_t bytes, bool *more, hf_error *err) HF_MUST_CHECK;
hf_code hf__count_runs(hf_client *client, int64_t *out, const hf_filter *filter, hf_error *err);

#endif
