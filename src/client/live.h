/* Reading what happens in the whole store, for live views. A live view, not an audit: what commits late may be left out.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLIENT_LIVE_H
#define HF_CLIENT_LIVE_H

#include <holdfast/client.h>

/* A line of some journal, without its data. */
struct hf__feed_line {
    int64_t position;
    int tenant;
    hf_id run;
    int64_t seq;
    const char *kind;
    const char *name;
    const char *actor;
    const char *step;
    int64_t at;
    const char *workflow; /* NULL: the run was purged meanwhile */
    const char *key;
};

struct hf__feed_page {
    struct hf__feed_line *items; /* by position */
    size_t count;
};

enum { HF__MOST_QUEUED = 10000 }; /* no more of each kind are counted of a workflow */

/* What a workflow of a tenant has to do. */
struct hf__queue {
    const char *name;
    bool paused;
    int64_t due;
    int64_t delayed; /* pending, not due yet */
    int64_t waiting; /* for a time, a signal, a child or a person */
    int64_t leased;
    int64_t failed;
    int64_t oldest_due; /* since when the longest waiting of the due ones is due; 0: none is */
};

struct hf__queues {
    struct hf__queue *items; /* by name */
    size_t count;
};

/* How often something happened within a minute. */
struct hf__minute_count {
    int64_t minute;   /* since the epoch */
    const char *name; /* of the event: created, succeeded, failed, cancelled */
    int64_t count;
};

struct hf__minute_counts {
    struct hf__minute_count *items;
    size_t count;
};

/* The position of the newest event; some before it may not have been committed yet. */
hf_code hf__newest_position(hf_client *client, int64_t *out, hf_error *err) HF_MUST_CHECK;
/* Of all tenants. Each answer is freed by hf__answer_free (client/answer.h). */
hf_code hf__feed_read(hf_client *client, struct hf__feed_page **out, int64_t after, int most,
                      hf_error *err) HF_MUST_CHECK;
hf_code hf__queues_read(hf_client *client, struct hf__queues **out, int tenant,
                        hf_error *err) HF_MUST_CHECK;
/* Of the events after one position and up to another. */
hf_code hf__minutes_read(hf_client *client, struct hf__minute_counts **out, int tenant,
                         int64_t after, int64_t upto, hf_error *err) HF_MUST_CHECK;

#endif
