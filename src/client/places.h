/* The places in the order of runs whose holder did not come back.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLIENT_PLACES_H
#define HF_CLIENT_PLACES_H

#include "kernel/engine.h"

/* What has been due for longer than this makes the order matter, us. */
#define HF__BACKLOG HF_SECONDS(1)

/* A lease that has ended lies in the order where it ended, behind all that became due meanwhile. Puts the runs of such leases back
 * to where they were before they were claimed. */
hf_code hf__places_restore(struct hf__engine *engine, hf_error *err);

#endif
