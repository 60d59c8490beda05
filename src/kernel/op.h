/* An operation: what a caller hands to the store, and how it ended. Operations that have gathered are applied together
 * by one flush; each is answered for itself.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_KERNEL_OP_H
#define HF_KERNEL_OP_H

#include <holdfast/transition.h>

#include "util/arena.h"

/* Pieces of mail, and steps, that a claim brings of one run, as load_mail and load_steps have it. Of mail it may be some more: a
 * row that ends share is brought as a whole. */
#define HF__LOAD_MOST 100000
#define HF__END_MAIL "child:" /* begins the id of the mail that a child's end is */

enum hf__op_kind {
    HF__OP_TRIGGER,
    HF__OP_CLAIM,
    HF__OP_COMMIT,
    HF__OP_STEP,
    HF__OP_SIGNAL,
    HF__OP_HEARTBEAT,
    HF__OP_CHANGE,
    HF__OP_TASK
};

/* What people do with a task. */
enum hf__task_action { HF__TASK_CLAIM, HF__TASK_RELEASE, HF__TASK_REASSIGN, HF__TASK_COMPLETE };

/* Where a claim looks: a lane and a priority. */
struct hf__claim_head {
    int32_t lane;
    int priority;
    int64_t floor; /* a run_at before which nothing is left; 0: unknown */
    int share;     /* take no more of it; 0: all that the claim may take */
    bool limited;  /* its workflow has limits */
};

/* What to take of a lane when several of one priority have due runs: workflows share evenly, and the lanes of a
 * workflow by their weights. At least 1. */
int hf__fair_share(int most, int weight, int64_t weights, size_t workflows);

/* Until when a limited lane gives nothing; store clock. */
struct hf__closed_lane {
    int32_t lane;
    int64_t until;
};

/* Whether new children are of one workflow and have nothing else of their own but a priority, a trace and an input. Then one
 * that is accepted tells that all are. */
bool hf__children_are_alike(const hf_trigger_spec *children, size_t count);

/* The key of the dead letter that a run brings which fails for good with a claim's version. The input of that letter begins
 * with {"run":"…; what the run was and did is added to it. */
enum { HF__LETTER_KEY = 80 };
void hf__letter_key(char *out, hf_id run, int64_t version);

struct hf__row;
struct hf__op;
typedef void (*hf__op_done)(struct hf__op *op, void *arg);

/* Everything pointed to is the caller's and must stay until the operation is done. Inputs were checked. */
struct hf__op {
    enum hf__op_kind kind;
    int tenant;        /* id in the store; claim: of the run that it wants, if it wants one */
    const char *actor; /* who is written into the journal */
    union {
        struct {
            hf_id id; /* made by the client, so that sending again does no harm */
            const hf_trigger_spec *spec;
            const hf_transition *initial; /* NULL: none */
            const hf_id *child_ids;       /* of initial, as for a commit */
            const hf_id *start_ids;
            hf_id existing; /* out: the run that has the key, or that it was debounced into */
            bool existed;   /* out */
            bool debounced; /* out */
            int64_t seq;    /* the flush's own: of the line `debounced` that it wrote; 0: none */
        } trigger;
        struct {
            const struct hf__claim_head *heads; /* in the order in which they are looked at */
            size_t head_count;
            int most;
            int hands; /* idle ones: a worker takes no more free slots than these, or half of them */
            const char *worker;
            int64_t lease;        /* us; 0: each workflow's */
            int suspect_attempts; /* take runs whose lease expired up to this attempt; 0: none */
            bool along; /* wants no more than the run of the trigger that it is flushed with */
            hf_id run;  /* wants no more than this one, of op->tenant, if it is new and the first of
                           its lane, and the store can look for it; all zero: whatever is due */
            int64_t place; /* in the store's log, up to which that run was written: it will be on
                              disk in a moment; 0: not known */
            hf__op_done
                early; /* called with `claims` filled while their commit is still on its way, if
                                     the store can tell and it is worth it; only when `done` comes with
                                     HF_OK do they hold. NULL: not wanted */
            hf_claims *claims; /* out; memory from `arena` */
            struct hf__closed_lane
                *closed; /* out: limited lanes that were looked at and give no more for now */
            size_t closed_count;
            struct hf__arena *arena;
        } claim;
        struct {
            const hf_transition *transition;
            const hf_id *child_ids; /* child_count ids made by the client */
            bool new_ids;           /* they were made for this commit: no run can have them */
            const hf_id *start_ids; /* start_count ids */
            const char
                *request;    /* unique within the claim: sent again, nothing changes; NULL: none */
            hf_id *answered; /* out, with a request: child_count ids, where it was repeated */
            bool repeated; /* out: it was carried out before, and started the children `answered` */
            /* Positions: what is consumed are all ends of children that lie from here to there in the mailbox. 0: not known, so
             * it is consumed by id. */
            int64_t ends_from, ends_to;
            bool parentless; /* known to have no parent: may go the short way */
            const hf_run
                *child; /* as it was claimed, where it is known to have a parent; NULL: not known */
            const char *workflow; /* for the metrics; NULL: not known, the run tells */
            int64_t duration;     /* us that its handler took; 0: not known */
            int32_t slot_lane;    /* its end frees a slot that others may wait for; 0: none */
            hf_id
                mark; /* the flush's own: in the journal line of an unleased commit, to know it by */
            bool written; /* the flush's own: applied by this flush, not by an earlier one */
            int64_t children_left; /* out: so many children are at work while their run has ended */
            bool children_fail;    /* out: it failed for that, where it would have succeeded */
            int64_t
                seq; /* the flush's own: of its journal line; 0: it has never written one the long way */
        } commit;
        struct {
            const hf_step_record *record;
            const char *request; /* as for a commit */
        } step;
        struct {
            hf_id run;
            const hf_signal_spec *spec; /* with id and type filled in */
            bool steers;                /* the engine's own: its runs take no others */
            bool duplicate;             /* out */
        } signal;
        struct {
            hf_held *held;
            const int *tenants; /* one per held run; NULL: all of op->tenant */
            size_t count;
        } heartbeat;
        struct {
            hf_id run;
            hf_action action;
            const hf_change *change;
            bool steers;       /* as for a signal */
            bool from_afar;    /* who asks cannot open the store */
            const char *event; /* the flush's own: the journal line that it wrote, if the answer */
            int64_t version;   /* was lost: its name, the run's version, its number */
            int64_t seq;
            bool tells;    /* changes nothing: tells subscriptions that the run is cancelled */
            hf_status had; /* tells: before that */
        } change;
        struct {
            hf_id run; /* that asked */
            hf_id id;
            enum hf__task_action action;
            int64_t expected_version; /* of the task; 0: any */
            const char *assignee;     /* reassign: NULL: nobody */
            const char *outcome;      /* complete */
            const char *result;       /* complete: JSON */
            const char *event;        /* as for a change: the journal line that it wrote */
            int64_t version;
            int64_t seq;
        } task;
    };

    bool decided; /* out: code holds */
    /* Out, monotonic us: when the flush began that decided it. What the store granted in it was granted after that. */
    int64_t flushed_at;
    hf_code code;     /* out */
    hf_error *error;  /* out; NULL: not wanted */
    hf__op_done done; /* called once, from the thread that flushes, when it is decided */
    void *done_arg;
    int64_t
        patience; /* us to go on trying while the store cannot be reached; 0: the engine's connect_limit; < 0: for
                           ever, and through a full disk too. Also while others keep its run locked, then HF_LOCKED, or
                           HF_UNAVAILABLE if it was resent */
    bool bears_locks; /* that is waited for without a limit */
    uint64_t shard;   /* operations on one run, and on a family of runs, should share it */

    /* the flush's own */
    struct hf__op *next;
    int64_t give_up_at; /* monotonic us; 0: never */
    const struct hf__row
        *row;         /* the run as this flush has locked and decided it; NULL: it has not */
    int tries;        /* flushes that were undone because of it, or passed it over */
    bool again;       /* not decided by this flush; to be part of the next */
    bool passed_over; /* others had its run locked in the last flush: its neighbours lost nothing */
    bool long_way;    /* the short way was refused */
    bool resent;      /* an earlier answer was lost: it may have happened */
    bool told;        /* a claim that was handed out early */
};

/* Who waits for runs may be asked for a claim in this lane: of the one run of this priority that the asker is about to
 * insert in the same flush, or, where that is NULL, of all that may have come. It is the asker's then, to be flushed and
 * answered as if it had been submitted. NULL: not now. */
typedef struct hf__op *(*hf__stand_by)(int32_t lane, const int *priority, void *arg);

/* As it must be before its first flush. Store trouble is borne until a time (monotonic us; 0: for ever). */
void hf__op_begin(struct hf__op *op, int64_t give_up_at);
/* About how much it writes. */
size_t hf__op_bytes(const struct hf__op *op);
/* The run that an operation is fenced on, or all zero (trigger, claim, heartbeat). */
hf_id hf__op_run(const struct hf__op *op);

#endif
