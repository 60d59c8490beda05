/* Watched runs: commits on them tell whoever listens (kernel/engine.h).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLIENT_WATCH_H
#define HF_CLIENT_WATCH_H

#include <holdfast/client.h>

enum hf__watch_level { HF__WATCH_END = 1, HF__WATCH_EVENTS = 2 };

/* From here on the run's end, or each of its events, is told. Listen first, then mark, then look. *locked: it is not, as
 * somebody else holds the run's row in the store; nobody waits for them here. */
hf_code hf__watch_try(hf_client *client, hf_id run, enum hf__watch_level level, bool *locked,
                      hf_error *err) HF_MUST_CHECK;
/* How long to wait after so many tries that found it locked, us. Most are over in a moment. */
int64_t hf__watch_pause(int tries);

#endif
