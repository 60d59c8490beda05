/* What the stores' queues look like and how much happened in the last hour, for people who watch. Measured by a thread of
 * its own while somebody asks, and answered from memory: how long it takes does not matter to those who ask, and a store
 * that takes long is asked less often.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_SERVER_GAUGES_H
#define HF_SERVER_GAUGES_H

#include "server/request.h"

struct hf__field;
struct hf__gauges;
struct hf__part;
struct hf__park;

hf_code hf__gauges_new(struct hf__gauges **out, hf_client *client, struct hf__park *park,
                       hf_error *err) HF_MUST_CHECK;
void hf__gauges_free(struct hf__gauges *gauges);
/* What an answer has. */
extern const struct hf__field hf__stats_fields[];
extern const struct hf__part hf__stats_parts[];
/* Answers with the newest measurement of the caller's tenant; the first one is waited for. */
hf_code hf__gauges_answer(struct hf__request *request, hf_error *err);

#endif
