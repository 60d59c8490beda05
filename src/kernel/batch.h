/* The inside of a flush: the parameters and answers of every statement, and the rows that were locked.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_KERNEL_BATCH_H
#define HF_KERNEL_BATCH_H

#include "kernel/flush.h"
#include "kernel/row.h"
#include "util/hash.h"

struct hf__limited_claim;

/* What a statement takes and what it gave. */
struct hf__sheet {
    struct hf__table in;
    struct hf__table out;
};

struct hf__batch {
    struct hf__flusher *flusher;
    struct hf__arena *arena;
    struct hf__op **ops;
    size_t count;
    int64_t now; /* store clock, us; known after the locking */
    bool
        redo; /* a run was not inserted after all, or events not announced: roll back and try again */
    struct hf__sheet sheets[HF__STMT_COUNT];
    struct hf__sheet *claims;          /* one per op, used by claims */
    struct hf__limited_claim *limited; /* of the one claim that has limited lanes; NULL: none */
    struct hf__idmap rows;             /* run id -> struct hf__row, locked */
    struct hf__idmap named;   /* run id -> the op that named it first; whose tenant differs waits */
    struct hf__idmap fenced;  /* run id -> the one fenced op of this flush */
    struct hf__idmap decided; /* run id -> anything: given back by a short way */
    struct hf__idmap leases;  /* run id -> the answer about a lease that was prolonged */
    /* Answers of the reading, by the id in their first column: cells. */
    struct hf__idmap peeked;    /* runs that exist, locked or not */
    struct hf__idmap parents;   /* of runs that end */
    struct hf__idmap explained; /* what stands in the way of runs to be inserted */
    struct hf__idmap mailed;    /* runs with signals that came before, or in this flush */
    int32_t *lanes;             /* to wake */
    int lane_count;
    int lane_capacity;
    int64_t earliest; /* run_at among them */
    hf_id *watched;
    int watched_count;
    int watched_capacity;
    bool leases_lost;      /* for whoever holds a run that was cancelled */
    bool deferred;         /* the one new run may be seen before it is on disk */
    struct hf__sheet disk; /* whether the run that a claim has heard of is on disk by now */
    bool failed;           /* memory ran out */
};

/* A new row of parameters for a statement. */
struct hf__cell *hf__batch_add(struct hf__batch *batch, enum hf__stmt stmt);
struct hf__table *hf__batch_out(struct hf__batch *batch, enum hf__stmt stmt);
/* Queues a statement if it has parameters. */
hf_code hf__batch_send(struct hf__batch *batch, enum hf__stmt stmt, hf_error *err);
hf_code hf__batch_send_all(struct hf__batch *batch, const enum hf__stmt *stmts, size_t count,
                           hf_error *err);

/* Sorts the parameters by (tenant, id): statements that lock as they write do so in one order, so that two flushes cannot
 * wait for each other. */
void hf__batch_sort(struct hf__batch *batch, enum hf__stmt stmt);
/* The same, the newest first. */
void hf__batch_sort_backwards(struct hf__batch *batch, enum hf__stmt stmt);

struct hf__row *hf__batch_row(struct hf__batch *batch, hf_id id);
/* The row of the run that the operation names, if it is its own tenant's: another one's may be locked by this flush, too. */
struct hf__row *hf__batch_row_of(struct hf__batch *batch, const struct hf__op *op);
/* A new id, from the flusher's random numbers; after those that the flusher made before it. */
hf_id hf__batch_id(struct hf__batch *batch);
/* Memory of this flush; NULL sets `failed`. */
char *hf__batch_printf(struct hf__batch *batch, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Ends an operation well, or with a code and a message. */
void hf__op_ok(struct hf__op *op);
void hf__op_end(struct hf__op *op, hf_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Not in this flush: somebody else has its run locked. */
void hf__op_pass_over(struct hf__op *op);

enum { HF__LIFECYCLE = 0, HF__DOMAIN = 1, HF__STEP = 2, HF__TASK = 3, HF__SIGNAL = 4 };
int hf__event_kind(const char *name); /* -1: unknown */
const char *hf__event_kind_name(int kind);

/* A journal line for a locked row: takes its next sequence number. */
void hf__journal(struct hf__batch *batch, struct hf__row *row, int kind, const char *name,
                 const char *actor, const char *step, const char *data);

/* Remember whom to wake after the commit. run_at 0: nobody. */
void hf__wake_lane(struct hf__batch *batch, int lane, int64_t run_at);
/* A slot of this lane's workflow is free. */
void hf__wake_slot(struct hf__batch *batch, int lane);
void hf__wake_watchers(struct hf__batch *batch, struct hf__row *row, bool finished);
void hf__wake_watcher_of(struct hf__batch *batch, hf_id run);

/* 0: not known yet. The lane of a flow key may be gone. */
int32_t hf__lane_recall(const struct hf__lane_cache *cache, int tenant, const char *workflow,
                        const char *flow_key);
void hf__lane_remember(struct hf__lane_cache *cache, int tenant, const char *workflow,
                       const char *flow_key, int32_t lane);
void hf__lane_forget_all(struct hf__lane_cache *cache);

/* The earlier of two times, where 0 is never. */
static inline int64_t hf__earlier(int64_t a, int64_t b)
{
    if (a == 0 || b == 0)
        return a + b;
    return a < b ? a : b;
}

/* ---- Stages ---- */

/* Locks and reads what was asked for, and indexes the answers. */
hf_code hf__read_locked(struct hf__batch *batch, hf_error *err);
bool hf__is_locked_out(struct hf__batch *batch, const struct hf__op *op);
/* What was inserted, into `decided`. */
void hf__note_inserted(struct hf__batch *batch);
struct hf__wake hf__wake_of(const struct hf__batch *batch);
/* One trigger and the claim that goes along with it. Nobody need be woken before it is known whether it took the run. */
bool hf__brings_its_claim(const struct hf__batch *batch);
/* Wakes for what only the answers of the commit told; `early` are those it woke itself. */
void hf__wake_late(struct hf__batch *batch, const struct hf__wake *early);

/* ---- The kinds of operations ---- */

/* Adds what must be read or locked first. */
void hf__ask_parent(struct hf__batch *batch, int tenant, const hf_id *run);
void hf__commit_prepare(struct hf__batch *batch, struct hf__op *op);
void hf__signal_prepare(struct hf__batch *batch, struct hf__op *op);
void hf__task_prepare(struct hf__batch *batch, struct hf__op *op);
void hf__change_prepare(struct hf__batch *batch, struct hf__op *op);
/* Of those that were sent again, they may have happened; and of first transitions that start other runs. */
void hf__trigger_prepare(struct hf__batch *batch, struct hf__op *op);
void hf__trigger_decide(struct hf__batch *batch, struct hf__op *op);
/* Of debounced triggers. Those that are not decided become runs of their own. */
void hf__debounce_prepare(struct hf__batch *batch, struct hf__op *op);
void hf__debounce_index(struct hf__batch *batch);
/* It was sent again and had happened; else forgets what an earlier flush decided. */
bool hf__debounce_is_done(struct hf__batch *batch, struct hf__op *op);
void hf__debounce_decide(struct hf__batch *batch, struct hf__op *op);
void hf__step_prepare(struct hf__batch *batch, struct hf__op *op);
void hf__step_decide(struct hf__batch *batch, struct hf__op *op);
/* Decide on the locked rows; fill the sheets that write. */
void hf__commit_decide(struct hf__batch *batch, struct hf__op *op);
void hf__signal_decide(struct hf__batch *batch, struct hf__op *op);
void hf__task_decide(struct hf__batch *batch, struct hf__op *op);
/* Puts mail into the mailbox of a locked run and wakes it. */
void hf__deliver_mail(struct hf__batch *batch, struct hf__row *row, const hf_signal_spec *spec,
                      const char *sender);
/* A locked run is over, or goes on after its end: its open tasks are cancelled, or opened again. */
void hf__cancel_tasks(struct hf__batch *batch, const struct hf__row *row);
void hf__reopen_tasks(struct hf__batch *batch, const struct hf__row *row);
void hf__change_decide(struct hf__batch *batch, struct hf__op *op);
/* A locked run is over: its row's last state, the child's end for its parent. */
void hf__row_finish(struct hf__batch *batch, struct hf__row *row, hf_status status);
/* Where a waiting run's run_at belongs, by its mailbox and its limits. */
int64_t hf__row_wake_time(const struct hf__batch *batch, const struct hf__row *row);
/* What a turn waits for; never NULL: resume tells by it that a paused run was waiting. */
const char *hf__waiting_kind(const hf_transition *transition);
/* Waits, or waited before it was claimed, for a worker whose code fits its history. */
#define HF__WAITING_WORKER "worker"
bool hf__awaits_worker(const struct hf__row *row);
/* Whether a terminal commit can go by finish_runs, or by finish_children. */
bool hf__commit_is_short(const struct hf__op *op);
bool hf__commit_is_child_end(const struct hf__op *op);
/* The first eleven parameters of either. */
void hf__fill_end(struct hf__cell *c, const struct hf__op *op);
/* Writes the plain ends of children. Once it is answered and their parents are locked, hf__child_ends_tell tells those. */
hf_code hf__child_ends_send(struct hf__batch *batch, hf_error *err);
hf_code hf__child_ends_tell(struct hf__batch *batch, hf_error *err);

/* A run to insert. `parent` NULL: none. */
struct hf__new_run {
    int tenant;
    const hf_id *id;
    const hf_trigger_spec *spec;
    const char *actor;
    const hf_id *parent;
    const hf_id *root;
    const hf_transition *initial;
    const char *trace; /* of the run that starts it, where the spec has none */
    bool always;       /* in a disabled tenant too: what runs may be finished */
};
void hf__insert_run(struct hf__batch *batch, const struct hf__new_run *run);
/* Where the flow key is among the parameters of insert_runs and of insert_plain_runs. */
enum { HF__RUN_FLOW_KEY = 30, HF__PLAIN_FLOW_KEY = 16 };
/* The batch is one new run without peculiarities, and the store has a shorter way for that: insert_run, which gives what
 * insert_plain_runs does; or for that with the claim that goes along, insert_taken_run, which gives what a claim does. */
bool hf__inserts_one_run(const struct hf__batch *batch);
bool hf__inserts_taken_run(const struct hf__batch *batch);
hf_code hf__insert_one_run(struct hf__batch *batch, hf_error *err);
hf_code hf__insert_taken_run(struct hf__batch *batch, hf_error *err);
/* Tells what the second gave as if it were the answers of an insert and of a claim, which may have got nothing. */
void hf__note_taken_run(struct hf__batch *batch);
void hf__trigger_fill(struct hf__batch *batch, struct hf__op *op);
/* After the commit: verdicts of triggers, with a look at those that were refused. */
hf_code hf__trigger_verdicts(struct hf__batch *batch, hf_error *err);

void hf__short_fill(struct hf__batch *batch, struct hf__op *op); /* finish, step, heartbeat */
hf_code hf__short_verdicts(struct hf__batch *batch, hf_error *err);

/* Whether this claim must wait for the next flush: one claim from limited lanes per flush, so that flushes cannot wait
 * for each other in a circle. */
bool hf__claim_waits(struct hf__batch *batch, const struct hf__op *op);
hf_code hf__claim_send(struct hf__batch *batch, size_t index, hf_error *err);
hf_code hf__claim_journal(struct hf__batch *batch, hf_error *err);
/* Waits for what a claim by id gives, if there is one; then writes it, which nobody need wait for. */
hf_code hf__claim_read_wanted(struct hf__batch *batch, hf_error *err);
hf_code hf__claim_lease_wanted(struct hf__batch *batch, hf_error *err);
hf_code hf__claim_deliver(struct hf__batch *batch, hf_error *err);
/* Turns the answers to a claim into op->claim.claims, and asks for the mail and steps of those that have any. */
void hf__claim_gather(struct hf__batch *batch, size_t index);
/* A claim that somebody waits for with idle hands, alone in its flush: so nothing but the claim is undone if its commit
 * fails. */
bool hf__claim_is_urgent(const struct hf__batch *batch);
/* Of a run that was heard of before it was on disk: asks whether it is, and waits until it is. */
hf_code hf__claim_ask_disk(struct hf__batch *batch, hf_error *err);
hf_code hf__claim_await_disk(struct hf__batch *batch, hf_error *err);
/* Hands out that claim before its commit is answered. `batch` is a struct hf__batch. */
void hf__claim_foretell(void *batch);
/* Mail and steps that were loaded, into the claims in `rows`. */
void hf__claim_attach(struct hf__batch *batch, struct hf__arena *arena);

/* Requests with an id. NULL: the operation has none. */
const char *hf__request_of(const struct hf__op *op);
/* Asks whether it was carried out before, under this claim; what was found, or NULL. */
void hf__ask_request(struct hf__batch *batch, const struct hf__op *op);
const struct hf__cell *hf__find_request(struct hf__batch *batch, const struct hf__op *op);
/* Ends a commit as its first sending was answered. */
void hf__answer_again(struct hf__op *op, const struct hf__cell *found);
/* Puts a commit's request into the first line that it wrote: `first` lines of this flush come before. */
void hf__note_request(struct hf__batch *batch, const struct hf__op *op, struct hf__row *row,
                      int first);

/* The name that a commit's events bear. */
const char *hf__commit_actor(const struct hf__op *op);

/* Families: runs that a turn starts, and the parent of a run that ends. */
void hf__ask_started(struct hf__batch *batch, const struct hf__op *op);
bool hf__children_possible(struct hf__batch *batch, struct hf__op *op);
void hf__insert_started(struct hf__batch *batch, struct hf__op *op, struct hf__row *row);
/* The turn's children by insert_children; false: they are not of that kind, and nothing is done. */
bool hf__insert_siblings(struct hf__batch *batch, const struct hf__op *op,
                         const struct hf__row *parent);
void hf__insert_first_started(struct hf__batch *batch, struct hf__op *op);
/* Whether a keyed child of the operation is not among those that were made. */
bool hf__misses_a_child(const struct hf__op *op, const struct hf__idmap *made);
void hf__end_child(struct hf__batch *batch, const struct hf__row *row);
/* So many more ends are in a locked parent's mailbox; `failed`: one of them is no success. */
void hf__children_told(struct hf__batch *batch, struct hf__row *parent, int count, bool failed);
/* The mail that tells a parent how a child ended. */
struct hf__end {
    const hf_id *run;
    const char *workflow;
    const char *key;
    const char *status;
    const char *result;
    const char *error;
};
/* A JSON object that begins with the run: {"run":"…. Who splits what shares a row goes by that place. */
const char *hf__end_payload(struct hf__batch *batch, const struct hf__end *end);
const char *hf__end_mail_id(struct hf__batch *batch, hf_id run);

/* What follows from the end of a run: asked for with its lock, and known in its row. */
void hf__ask_what_follows(struct hf__batch *batch, int tenant, const hf_id *run);
void hf__follow_index(struct hf__batch *batch);
/* Of a turn that ends the run: how many children it leaves at work, and whether it fails because of that. Then the turn is made
 * that failure. */
int64_t hf__children_left(const struct hf__row *row, const hf_transition *transition);
bool hf__children_fail(const struct hf__row *row, const hf_transition *transition);
void hf__fail_for_children(struct hf__batch *batch, const struct hf__row *row,
                           hf_transition *transition);
/* What the workflow wants done with children that are left. */
void hf__follow_turn(struct hf__batch *batch, const struct hf__op *op, struct hf__row *row);
/* Children are cancelled by a run of the engine's own. `reason` NULL: their parent was cancelled. */
void hf__cancel_children(struct hf__batch *batch, const char *actor, const struct hf__row *row,
                         const char *reason);
/* The run is cancelled, and had this status. */
void hf__start_on_cancel(struct hf__batch *batch, const char *actor, const struct hf__row *row,
                         hf_status had, const char *reason);
/* A started run is a dead letter of the turn at hand: it is told what the run was and did. */
void hf__tell_letter(struct hf__batch *batch, const struct hf__op *op, const hf_id *id,
                     const hf_trigger_spec *spec);
/* How many bytes what is told of a run may take beside an object that is begun; NULL: none. */
int64_t hf__told_room(const struct hf__batch *batch, const char *head);
/* The run has started children. */
void hf__mark_parent(struct hf__batch *batch, int tenant, const hf_id *run);

/* Appends what a transition brings besides the row: mail, events, timers, outbox, tasks. */
void hf__transition_done_mail(struct hf__batch *batch, struct hf__op *op, struct hf__row *row);
void hf__transition_blame(struct hf__batch *batch, struct hf__op *op, struct hf__row *row);
void hf__transition_events(struct hf__batch *batch, struct hf__op *op, struct hf__row *row);
void hf__transition_timers(struct hf__batch *batch, int tenant, const hf_id *run,
                           const hf_transition *transition, int64_t *earliest);
void hf__transition_outbox(struct hf__batch *batch, int tenant, const hf_id *run, int64_t seq,
                           const hf_transition *transition);
/* The engine's own events of a turn that ends a run badly, and of a letter that may become dead by it. They are written
 * only if it is so, and if a subscription wants them. */
void hf__alert_failed(struct hf__batch *batch, const struct hf__op *op);
void hf__alert_cancelled(struct hf__batch *batch, const struct hf__row *row, hf_status had,
                         const char *reason);
void hf__alert_letter(struct hf__batch *batch, int tenant, const hf_id *run, const hf_id *letter,
                      const char *signal);
/* A run that delivers events wants to sleep: asks whether it may, and marks those that may not as having unseen mail. */
void hf__ask_deliveries(struct hf__batch *batch, const struct hf__op *op);
void hf__note_deliveries(struct hf__batch *batch);
/* Before and after the writes: a flush in which such a run may sleep does not wait to write events. If it would have to,
 * it is to be done again. */
void hf__announce_gently(struct hf__batch *batch);
hf_code hf__check_announced(struct hf__batch *batch, hf_error *err);
void hf__transition_tasks(struct hf__batch *batch, int tenant, const hf_id *run,
                          const hf_transition *transition);

#endif
