/* The outbox from the inside: what the dispatcher and retention do with it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLIENT_OUTBOX_H
#define HF_CLIENT_OUTBOX_H

#include <holdfast/outbox.h>

#include "store/table.h"

#define HF__OUTBOX_RETENTION HF_DAYS(7) /* published events are kept so long by default */

/* The columns of load_deliveries. */
struct hf__delivery {
    int64_t position;
    hf_id id; /* of the event */
    hf_id run;
    const char *type;
    const char *payload;
    int64_t created_at;
    int attempts;
    const char *workflow; /* NULL: the run is purged */
    const char *subject;
    const char *key;
    const char *trace;
    int64_t behind; /* how many there are up to range.after, at the same moment */
};

enum { HF__MOST_HELD = 3 };

/* Which events are wanted. */
struct hf__delivery_range {
    hf_id subscription;
    int64_t after;             /* a position */
    int most;                  /* of them */
    hf_id held[HF__MOST_HELD]; /* runs whose events come without their payload; all zero: none */
};

/* In order; memory from the arena. */
hf_code hf__deliveries_load(hf_client *client, struct hf__delivery **out, size_t *count,
                            const struct hf__delivery_range *range, struct hf__arena *arena,
                            hf_error *err);
/* These were delivered; events that no subscription waits for any more are published. */
hf_code hf__deliveries_end(hf_client *client, hf_id subscription,
                           const struct hf__delivery *const *ended, size_t count, hf_error *err);
hf_code hf__delivery_blame(hf_client *client, hf_id subscription,
                           const struct hf__delivery *delivery, const char *why, hf_error *err);

/* Removes at most `limit` events of the tenant that were published before a time (store clock, us). `removed` may be
 * NULL. */
hf_code hf__outbox_expire(hf_client *client, int64_t older_than, int limit, int64_t *removed,
                          hf_error *err);

#endif
