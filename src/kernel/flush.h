/* One flush: a batch of operations applied in one transaction, single-threaded. Threads only gather batches
 * (group.h); the simulator calls this directly.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_KERNEL_FLUSH_H
#define HF_KERNEL_FLUSH_H

#include "kernel/metrics.h"
#include "kernel/op.h"
#include "store/driver.h"
#include "util/random.h"

#define HF__LANE_SLOTS 512

/* Lanes of workflows that were seen, so that a wake-up can name them in the commit's own packet, and those of flow keys need
 * not be made. */
struct hf__lane_cache {
    struct {
        int tenant;
        int32_t lane;   /* 0: empty */
        char name[128]; /* workflow, and a flow key behind it */
    } slots[HF__LANE_SLOTS];
};

struct hf__flusher {
    const struct hf__driver *driver;
    struct hf__conn *conn;
    struct hf__random random;
    hf_id last_id;          /* that it made; zero: none */
    struct hf__arena arena; /* of one flush */
    int max_poison;         /* failed turns on one signal before it is a dead letter; default 5 */
    struct hf__lane_cache lanes;
    /* Called after a commit with what became worth waking for in this process; may be NULL. */
    void (*woke)(const struct hf__wake *wake, void *arg);
    void *woke_arg;
    struct hf__metrics *metrics; /* borrowed; NULL: nothing is counted */
    int64_t max_payload;         /* bytes of an input */
    bool shares_mail;            /* ends of children that come together may share a row */
    bool defers;                 /* new runs may be seen before they are on disk */
    bool ends_first; /* the last flush wrote ends of children before it locked their parents */
    int wary;        /* flushes that do not: lately, a parent could not be had in the end */
};

void hf__flusher_init(struct hf__flusher *flusher, const struct hf__driver *driver,
                      struct hf__conn *conn);
void hf__flusher_free(struct hf__flusher *flusher);

/* Applies the batch. HF_OK: every operation has its code, or `again` set. Otherwise the store as a whole failed: no
 * operation is decided; with *unknown, the transaction may have happened, so they must be sent again as `resent`. A claim
 * that was handed out early counts as unknown if its commit failed: it is not repeated. */
hf_code hf__flush(struct hf__flusher *flusher, struct hf__op **ops, size_t count, bool *unknown,
                  hf_error *err);

#endif
