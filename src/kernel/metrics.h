/* What this process has done, as counters: how many runs of each workflow it triggered, started and ended, how long they
 * waited and took, how large its flushes were. Written where operations are decided, by atomic additions without a lock;
 * read by whoever shows them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_KERNEL_METRICS_H
#define HF_KERNEL_METRICS_H

#include <holdfast/types.h>

#include <pthread.h>
#include <stdatomic.h>

enum {
    HF__METRIC_WORKFLOWS = 200, /* with counters of their own; the others share one set */
    HF__METRIC_SLOTS = 512,     /* of the table that finds them */
    HF__METRIC_BUCKETS = 12
};

struct hf__batch;

/* The upper bounds of the buckets; one more holds what is above them. */
extern const int64_t hf__time_bounds[HF__METRIC_BUCKETS]; /* us */
extern const int64_t hf__size_bounds[HF__METRIC_BUCKETS];

struct hf__histogram {
    atomic_uint_fast64_t counts[HF__METRIC_BUCKETS + 1]; /* each bucket by itself */
    atomic_uint_fast64_t sum;
};

struct hf__workflow_counts {
    int tenant;                     /* id in the store; 0: the set that the others share */
    char name[201];                 /* of the workflow */
    atomic_uint_fast64_t triggered, /* runs that were made, children and dead letters among them */
        started,                    /* claims */
        succeeded, failed, cancelled,
        retried,               /* attempts that failed and are followed by another */
        lost,                  /* refused or warned: the run was somebody else's by then */
        expired;               /* taken over from a holder whose lease had ended */
    struct hf__histogram wait; /* us from due to claimed */
    struct hf__histogram run;  /* us in handlers of this process, a turn each */
};

struct hf__metrics {
    struct hf__histogram flush_time; /* us */
    struct hf__histogram flush_size; /* operations */
    struct hf__workflow_counts others;
    pthread_mutex_t mutex; /* for adding to the table */
    int known;
    _Atomic(struct hf__workflow_counts *) slots[HF__METRIC_SLOTS];
};

hf_code hf__metrics_new(struct hf__metrics **out, hf_error *err);
void hf__metrics_free(struct hf__metrics *metrics);

/* The operations of a batch that was applied. */
void hf__metrics_count(struct hf__metrics *metrics, const struct hf__batch *batch);
/* A flush, whatever became of it. */
void hf__metrics_flush(struct hf__metrics *metrics, size_t ops, int64_t duration);
/* A holder learned that it had lost its run. */
void hf__metrics_lost(struct hf__metrics *metrics, int tenant, const char *workflow);

/* The counters of workflows, one after the other: start with *cursor = 0. NULL: no more. */
const struct hf__workflow_counts *hf__metrics_next(struct hf__metrics *metrics, size_t *cursor);

#endif
