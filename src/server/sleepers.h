/* Requests by the time at which they are called again: a pairing heap, since ten thousand may wait and each comes and goes
 * at any time. It lives in the requests themselves and takes no memory. Not thread-safe.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_SERVER_SLEEPERS_H
#define HF_SERVER_SLEEPERS_H

#include "server/request.h"

struct hf__sleepers {
    struct hf__request *soonest; /* NULL: nobody sleeps */
};

/* By request->parking.until, which stays as it is until the request is removed. */
void hf__sleepers_add(struct hf__sleepers *sleepers, struct hf__request *request);
void hf__sleepers_remove(struct hf__sleepers *sleepers, struct hf__request *request);

#endif
