/* The live feed: one reader for all who listen. It reads the lines that are new in all journals, by position, twice a
 * second while somebody listens, and keeps the newest in a ring from which each listener takes its own.
 *
 * On PostgreSQL a line may become visible after one with a higher position. A gap in the positions is waited for, up to two
 * seconds; a transaction that takes longer is left out. So this is a live view; a run's journal is the record.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_SERVER_FEED_H
#define HF_SERVER_FEED_H

#include "server/request.h"

struct hf__feed;
struct hf__park;

/* What a listener wants. */
struct hf__feed_query {
    const char *workflow; /* NULL: any */
    const char *kind;     /* NULL: any */
    int last;             /* so many of the newest lines first */
};

extern const struct hf__field hf__feed_fields[];

hf_code hf__feed_new(struct hf__feed **out, hf_client *client, struct hf__park *park,
                     hf_error *err) HF_MUST_CHECK;
void hf__feed_free(struct hf__feed *feed);
/* Streams the lines of the caller's tenant; after Last-Event-ID when it is given. */
hf_code hf__feed_follow(struct hf__request *request, const struct hf__feed_query *query,
                        hf_error *err);

#endif
