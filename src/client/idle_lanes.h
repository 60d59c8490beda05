/* Lanes of flow keys that nothing needs any more. They span tenants.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLIENT_IDLE_LANES_H
#define HF_CLIENT_IDLE_LANES_H

#include "client/client.h"

/* Looks at the next lanes after *after, a thousand at most, and removes those that are as new and have no runs. *after
 * becomes the last one looked at; 0: there are no more. */
hf_code hf__idle_lanes_step(struct hf__engine *engine, int32_t *after, hf_error *err);
/* The transaction of it: removes those of the lanes, a struct hf__table (lane), that still are so once they are locked. */
hf_code hf__idle_lanes_remove(const struct hf__driver *driver, struct hf__conn *conn, void *lanes,
                              hf_error *err);

#endif
