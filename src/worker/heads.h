/* Heads: the (lane, priority) pairs that have unfinished runs, as last seen. What a claim
 * probes, in which order, and how long the claimer may sleep. Pairs that had some are remembered,
 * so that a wake-up can be followed by a claim at once. Used by one thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_WORKER_HEADS_H
#define HF_WORKER_HEADS_H

#include <holdfast/worker.h>

#include "kernel/op.h"
#include "util/arena.h"

#define HF__HEAD_EMPTY INT64_MAX

struct hf__head {
    int32_t lane;
    int priority;
    int64_t run_at;       /* earliest, store clock; HF__HEAD_EMPTY: nothing was there */
    int64_t floor;        /* nothing is left before it; 0: unknown */
    bool rung;            /* a wake-up named its lane since */
    bool passed_over;     /* due at the last two looks at all, and claims have not taken it */
    bool spent;           /* the last claim left nothing of it; holds until the next look */
    bool limited;         /* as it was at the last claim */
    bool taking;          /* was due at the last claim, so that it has a place in the turns */
    int64_t closed_until; /* store clock: a limit keeps it from giving anything before */
    double served;        /* runs taken of it, each counted by its pace: who has least is next */
    double pace;          /* lanes' work of one run, by the shares at the last claim */
    int share;            /* of the last claim; 0: not part of it */
    int taken;            /* by the last claim */
    int64_t taken_due;    /* latest due time among those taken since the last look at all */
};

struct hf__lanes;

struct hf__heads {
    struct hf__head *items; /* most urgent first, then by lane */
    size_t count;
    int64_t store_now; /* store clock at the last look */
    int64_t read_at;   /* monotonic us of the same moment */
    int64_t
        looked_at; /* monotonic us of the last look at all lanes; 0: look before anything else */
    bool stale;    /* what is not empty must be looked at again */
    int64_t passed_since; /* monotonic us since when heads were passed over; 0: none is */
    int64_t
        restored_at;  /* monotonic us: when runs whose lease ended were put back last; 0: never */
    bool passed_over; /* one of them was, and nothing was claimed since */
};

/* Looks at all served lanes; forgets floors. */
hf_code hf__heads_look(hf_worker *worker, hf_error *err);
/* Looks at the served ones among these lanes only, and with `known` at those that were not empty. */
hf_code hf__heads_look_at(hf_worker *worker, const int32_t *lanes, size_t count, bool known,
                          hf_error *err);
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
/* What a claim is for. */
struct hf__pick {
    int most;         /* runs */
    int breadth;      /* heads */
    bool with_floors; /* what lies below them is not wanted */
    bool passed_over; /* of heads that were, and no others */
};

/* The heads that are due or rung and not closed. Within one priority, those of which least was taken come first, each with its
 * share. NULL: no memory. */
struct hf__claim_head *hf__heads_pick(struct hf__heads *heads, const struct hf__lanes *lanes,
                                      struct hf__arena *arena, const struct hf__pick *pick,
                                      size_t *count);
/* How the claim ended: `got` of `most` runs. True: the heads do not tell where more is, so look. */
bool hf__heads_settle(struct hf__heads *heads, int got, int most);
/* Limits keep these lanes from giving anything for a time, `latest` at most; sorts them. */
void hf__heads_close(struct hf__heads *heads, struct hf__closed_lane *lanes, size_t count,
                     int64_t latest);
/* Heads were passed by as spent that may have something by now. */
bool hf__heads_spent(const struct hf__heads *heads);
/* Forgets that lanes of this workflow are closed; 0: all lanes. */
void hf__heads_open(struct hf__heads *heads, const struct hf__lanes *lanes, int32_t workflow);
/* All heads that are not empty, due or not. */
char *hf__heads_json_all(const struct hf__heads *heads, struct hf__arena *arena);
/* A claim took the run of this head that was due at `due_at`. */
void hf__heads_taken(struct hf__heads *heads, int32_t lane, int priority, int64_t due_at);
void hf__heads_free(struct hf__heads *heads);

#endif
