/* Watched runs: commits on them tell whoever listens (kernel/engine.h).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLIENT_WATCH_H
#define HF_CLIENT_WATCH_H

#include <holdfast/client.h>

enum hf__watch_level { HF__WATCH_END = 1, HF__WATCH_EVENTS = 2 };

/* From here on the run's end, or each of its events, is told. Listen first, then mark, then look. HF_TIMEOUT: somebody else
 * held the run's row until `until` (monotonic us). */
hf_code hf__watch_run(hf_client *client, hf_id run, enum hf__watch_level level, int64_t until,
                      hf_error *err);

#endif
