/* The inside of durable functions: what a run remembers, and how a call is recorded or suspends the run.
 *
 * Each remembered call is an event of kind step: its name, a status (succeeded, failed, waiting) and data that begins with
 * what kind of call it was and ends with its output:
 *     {"op":"step","attempt":1,"started":…,"finished":…,"output":…}
 * A call that had to wait has a line of status waiting first. Used by the hand that plays the turn.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_FUNCTION_FUNCTION_H
#define HF_FUNCTION_FUNCTION_H

#include <holdfast/function.h>

#include "util/buffer.h"
#include "util/hash.h"
#include "worker/worker.h"

enum hf__entry_status { HF__ENTRY_WAITING, HF__ENTRY_SUCCEEDED, HF__ENTRY_FAILED };

/* What is remembered of one call. */
struct hf__entry {
    const char *name;
    const char *op;
    enum hf__entry_status status;
    const char *output; /* JSON as it was written */
    const char *error;
    const char *code;    /* of a failure; NULL: it was not said */
    const char *details; /* of a failure: JSON; NULL: none */
    int attempt;
    int64_t until; /* store clock */
    int64_t
        deferred; /* store clock, when attempts that do not count began; 0: the last one counts */
    bool own;     /* written by a turn of this run; else with its start, as the steps of a fork */
};

/* A child, and the call that has started it. */
struct hf__kin {
    const char *name; /* as recorded: "resize", "resize#2" */
    hf_id id;
};

struct hf__function {
    struct hf__entry **entries; /* in the order in which they were first recorded */
    size_t count;
    size_t capacity;
    size_t next;          /* the entry that the next call must match */
    struct hf__idmap all; /* by name */
    struct hf__idmap uses;
    struct hf__idmap children; /* that calls of this pass have started, or remember */
    struct hf__kin *kin;       /* the same */
    size_t kin_count;
    size_t kin_room;
    struct hf__idmap ends; /* of children, as earlier waits have told them: run -> hf_child_end */
    struct hf__idmap versions; /* by change: what hf_version has answered */
    const char *open;          /* the step that has begun and not ended; NULL: none, or by_name */
    hf_step
        open_step; /* the same, as it began, with options that do not lie in the handler's frame */
    hf_step_options open_options;
    bool *taken;  /* mail that calls of this turn have taken */
    bool apart;   /* ends were taken one by one: others that shared their row lie elsewhere now */
    bool by_name; /* calls may come in any order */
    bool in_step; /* then: what is told is told by a step, which no replay does again */
    bool met_failure; /* the last call told of a failure that every replay meets again */
    bool met_timeout; /* the same, of a wait whose time has passed */
    const struct hf__entry *failure; /* the step that failed so; NULL: it was another call */
    const char *broken;              /* error code of the first rule that was broken; NULL: none */
    const char *refused; /* why the output of the open step was refused; NULL: it was not */
    hf_code over;        /* HF_OK while calls may be made; then what all of them answer */
    hf_error error;
};

/* As hf_children_wait, for children that calls named `name` have started so far; where there are none, for all. They are in
 * the turn's memory, in the order of their ids. HF_INVALID: there is no child. */
hf_code hf__own_children_wait(hf_ctx *ctx, const char *name, hf_wait_for what, int64_t timeout,
                              hf_child_end **ends, size_t *count);

/* Calls are matched by name alone, for programs that make several at once. Before the first call. */
hf_code hf__function_by_name(hf_ctx *ctx);

/* The function's memory, read from the run's steps at the first call; NULL: no memory or nothing goes any more, and *code
 * tells. */
struct hf__function *hf__function_of(hf_ctx *ctx, hf_code *code);
/* Ends the function with an error that every later call answers. */
hf_code hf__function_end(hf_ctx *ctx, hf_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The handler broke a rule: its run fails for good, whatever it does with what its calls answer. The first one counts. */
hf_code hf__function_break(hf_ctx *ctx, const char *error_code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Ends it as well: the code does not fit what is remembered, and the run is left to a worker whose code does. */
hf_code hf__function_misfit(hf_ctx *ctx, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* After the handler: replaces what it returned by what really became of the function. */
hf_code hf__function_outcome(hf_ctx *ctx, hf_code code, hf_error *err);
/* Whether the handler gave up because of a failure that is remembered: to try the run again would be in vain. */
bool hf__function_is_hopeless(const hf_ctx *ctx, hf_code code);
/* Ends the open step as late in place of a handler that does not: HF_SUSPENDED, with a transition that remembers the failure, or
 * why not. */
hf_code hf__function_end_late(hf_ctx *ctx);
/* The step on whose failure it gave up; NULL: there is none. */
const struct hf__entry *hf__function_failure(const hf_ctx *ctx, hf_code code);
/* Remembered as a wait whose time has passed. Returns HF_TIMEOUT. */
hf_code hf__function_late(hf_ctx *ctx, const char *why);
/* Whether it is for this that the handler gave up. */
bool hf__function_gave_up_waiting(const hf_ctx *ctx, hf_code code);
/* The handler came to its end for another reason than the failure that it was told of last. */
void hf__function_set_failure_aside(hf_ctx *ctx);
void hf__function_free(hf_ctx *ctx);

/* The remembered name of this use of `name` ("name", "name#2") in *full, and its entry in *entry (NULL: not called before).
 * HF_OK, or the function is over. */
hf_code hf__function_call(hf_ctx *ctx, const char *op, const char *name, const char **full,
                          struct hf__entry **entry);
/* Whether what comes next is of this kind and name, or nothing is remembered any more; it is not called by this. */
bool hf__function_expects(hf_ctx *ctx, const char *op, const char *name);
/* Whether a turn of this run came by here before: something that it has remembered lies ahead. Where calls come in any order
 * nobody knows. */
bool hf__function_replays(const struct hf__function *function);
/* Names, for maps. */
hf_id hf__function_hash(const char *name);

/* Never NULL: failures of older histories have none of their own. */
const char *hf__entry_code(const struct hf__entry *entry);

struct hf__entry *hf__function_find(const struct hf__function *function, const char *full);
/* False: no memory. */
bool hf__function_append(struct hf__function *function, struct hf__entry *entry);

/* Takes mail as the answer to a call: remembered and out of the mailbox at once. */
hf_code hf__function_receive(hf_ctx *ctx, const char *op, const char *full, int found,
                             const char **payload);
/* Bytes of what the store takes. */
size_t hf__function_max_payload(const hf_ctx *ctx);

/* The store's clock, as far as this side can know. */
int64_t hf__function_now(const hf_ctx *ctx);
/* A time that lies so far ahead of `now`; never after the last one that a store can hold. */
int64_t hf__function_later(int64_t now, int64_t us);
/* The same for limits: 0 is none, and one that is negative has passed. */
int64_t hf__function_limit(int64_t now, int64_t us);

/* What a call records. */
struct hf__record {
    const char *op;
    const char *name; /* as remembered */
    enum hf__entry_status status;
    const char *output; /* JSON; NULL: none */
    const char *error;
    const char *code;    /* of the error; NULL: none */
    const char *details; /* of the error: JSON; NULL: none */
    int attempt;
    int64_t started; /* store clock; 0: not said */
    int64_t until;
    int64_t deferred; /* as in an entry */
    /* Positions: the mail that is consumed with it is every child's end from here to there. 0: it is consumed by id. */
    int64_t ends_from, ends_to;
};

/* Remembers it, durably. `extra` (NULL: nothing) is a transition of which children, consumed mail, outbox entries, state and one
 * event are written with it. *entry may be NULL. */
hf_code hf__function_record(hf_ctx *ctx, const struct hf__record *record, hf_transition *extra,
                            const hf_id *child_ids, struct hf__entry **entry);
/* Makes a transition one that goes on with this turn, and checks it. */
hf_code hf__function_check(hf_ctx *ctx, hf_transition *transition);
/* Writes a transition that goes on, durably. */
hf_code hf__function_go_on(hf_ctx *ctx, hf_transition *transition);

/* Waits as `wait` says (kind, until, children, pause); remembers it first if `record` is not NULL. Returns HF_SUSPENDED, or
 * why not. */
hf_code hf__function_suspend(hf_ctx *ctx, const struct hf__record *record,
                             const hf_transition *wait);

#endif
