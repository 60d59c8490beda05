/* Heads: the (lane, priority) pairs that have unfinished runs, as last seen. What a claim
 * probes, in which order, and how long the claimer may sleep. Pairs that had some are remembered,
 * so that a wake-up can be followed by a claim at once. Used by one thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_WORKER_HEADS_H
#define HF_WORKER_HEADS_H

#include <holdfast/worker.h>

#include "util/arena.h"

#define HF__HEAD_EMPTY INT64_MAX

struct hf__head {
    int32_t lane;
    int priority;
    int64_t run_at; /* earliest, store clock; HF__HEAD_EMPTY: nothing was there */
    int64_t floor;  /* nothing is left before it; 0: unknown */
    bool rung;      /* a wake-up named its lane since */
};

struct hf__heads {
    struct hf__head *items; /* most urgent first, then by lane */
    size_t count;
    int64_t store_now; /* store clock at the last look */
    int64_t read_at;   /* monotonic us of the same moment */
    int64_t
        looked_at; /* monotonic us of the last look at all lanes; 0: look before anything else */
    unsigned rotation;    /* moves the lane that is probed first */
    int64_t passed_since; /* monotonic us since when heads were passed over; 0: none is */
    bool passed_over;     /* a head was due at two looks in a row, and claims have not taken it */
};

/* Looks at all served lanes; forgets floors. */
hf_code hf__heads_look(hf_worker *worker, hf_error *err);
/* Looks at the served ones among these lanes only. */
hf_code hf__heads_look_at(hf_worker *worker, const int32_t *lanes, size_t count, hf_error *err);
/* Takes what is remembered of these lanes for due, until the next look. False: one of them is served
 * but was never seen with work, so it must be looked at. */
bool hf__heads_ring(hf_worker *worker, const int32_t *lanes, size_t count);
/* The store's clock, carried on by ours. */
int64_t hf__heads_now(const struct hf__heads *heads);
bool hf__heads_due(const struct hf__heads *heads);
/* The earliest run_at that lies ahead, as far as the heads show; 0: none. */
int64_t hf__heads_next(const struct hf__heads *heads);
/* The same, asked of the store, for when due runs that cannot be had hide later ones. */
hf_code hf__heads_ask_next(hf_worker *worker, int64_t *run_at, hf_error *err);
/* The heads that are due or rung, for a claim: [[lane, priority, floor], ...]. Lanes of one priority take turns in
 * coming first. NULL: no memory. */
char *hf__heads_json(struct hf__heads *heads, struct hf__arena *arena, bool with_floors);
/* All heads that are not empty, due or not. */
char *hf__heads_json_all(const struct hf__heads *heads, struct hf__arena *arena);
/* A claim took the run of this head that was due at `due_at`. */
void hf__heads_taken(struct hf__heads *heads, int32_t lane, int priority, int64_t due_at);
void hf__heads_free(struct hf__heads *heads);

#endif
