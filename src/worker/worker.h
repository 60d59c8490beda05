/* The inside of a worker.
 *
 * Threads: the caller of hf_worker_run watches over start and stop; the claimer fetches runs;
 * hands run handlers; the beat prolongs leases. The engine's flushers call back when an
 * operation is decided.
 *
 * Locks: worker->beat_lock before worker->lock. The engine may hold its own locks while it calls
 * back, and call-backs take worker->lock; so nothing of the engine or of a client is called
 * under worker->lock. Under beat_lock the worker's row is written, so that the last thing said
 * of it is the last thing that holds.
 *
 * Memory: a worker lives until its owner, its hands, its hauls and its errands are done with it
 * (hf__worker_ref). So a handler that never returns, and a store that never answers, do no harm
 * after hf_worker_run has returned.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_WORKER_WORKER_H
#define HF_WORKER_WORKER_H

#include <holdfast/holdfast.h>

#include "client/client.h"
#include "util/arena.h"
#include "util/random.h"
#include "worker/failure.h"
#include "worker/heads.h"
#include "worker/lanes.h"
#include "worker/registry.h"
#include "worker/socket_dir.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    HF__CLAIM_MOST = 1000,      /* runs of one claim */
    HF__AHEAD_MOST = 2000,      /* runs queued or running */
    HF__COMMITTING_MOST = 4000, /* commits under way */
    HF__RINGING_LANES = 64,     /* lanes named by wake-ups; more mean "any" */
    HF__ALONE_ATTEMPT = 3,      /* a suspect in its third attempt runs alone */
};

/* A tenant the worker works for; never freed before the worker. */
struct hf__master {
    int id;
    char *name;
    hf_client *client; /* acts in the worker's name */
};

/* An operation that a thread of the worker waits for, but leaves behind when the worker ends
 * before the answer. Allocated by its user; then `dispose` gives it back from the flusher's
 * thread. */
struct hf__errand {
    hf_worker *worker;
    struct hf__op op;
    hf_error error;
    pthread_cond_t *answer; /* signalled under worker->lock */
    bool told;              /* what it brings is known before it is answered; stays */
    bool answered;
    bool left;
    void (*settle)(
        struct hf__errand *errand); /* before an answer that was told counts; NULL: none */
    void (*dispose)(struct hf__errand *errand);
};

/* Whether the store has said that a claim holds. */
enum hf__standing {
    HF__CLAIM_KEPT,
    HF__CLAIM_OPEN, /* its commit is on its way: handlers may run, but nothing of them is sent */
    HF__CLAIM_LOST  /* it failed, or nobody knows: nothing of its runs is ever sent, since the store
                       may give the same version to somebody else */
};

/* What one claim brought: its runs share an arena, which goes when the last of them is done
 * with. */
struct hf__haul {
    struct hf__errand errand; /* first: disposed of through it */
    struct hf__arena arena;
    int64_t sent_at;                 /* monotonic us */
    hf_ctx *turns;                   /* written before turn_count */
    const struct hf__master *master; /* of all its runs; NULL: each has its own */

    /* Under worker->lock. */
    size_t turn_count;
    size_t left;   /* turns not released, and the claimer while it uses it */
    bool admitted; /* its runs are in the queue */
    enum hf__standing standing;
    hf_ctx *unsent; /* commits that wait until the claim no longer is open */
};

enum hf__turn_state {
    HF__TURN_QUEUED,
    HF__TURN_RUNNING,
    HF__TURN_COMMITTING,
    HF__TURN_ABANDONED /* given back by the drain while its handler still runs */
};

/* One attempt of one run: the handler's context. */
struct hf_ctx {
    hf_worker *worker;
    struct hf__haul *haul;
    const hf_claimed *claimed;
    const struct hf__master *master;
    int64_t deadline; /* monotonic us; INT64_MAX: none */

    /* Under worker->lock. */
    hf_ctx *older; /* all held turns, in no order that matters */
    hf_ctx *newer;
    hf_ctx *behind; /* in the queue, later among the unsent */
    enum hf__turn_state state;
    int users; /* who still needs it: its hand or its commit, both once it is abandoned */
    struct hf__hand *hand; /* whose turn it is, once it runs */
    int64_t began_at;      /* monotonic us, then */
    int64_t lost_at;       /* monotonic us of `lost`; 0: held */
    bool answered;         /* its commit is over, or there was none to make */
    bool gone;             /* no longer among the held */
    int wake_fd;           /* told when `lost` changes; -1: nobody waits */
    int64_t extended_at;   /* monotonic us of the claim or the last heartbeat */
    int64_t
        granted_at; /* monotonic us at which the last of them was sent that the store answered */
    bool alone;

    atomic_int lost;           /* hf_code; HF_OK while held */
    atomic_int gate;           /* enum hf__gate */
    atomic_bool leavable;      /* a handler runs that the worker may leave behind */
    _Atomic int64_t step_ends; /* monotonic us: the limit of the step that is open; 0: none */
    atomic_bool overlapped;    /* two threads of the handler made calls at once */

    /* The hand's until it commits. */
    struct hf__arena arena;
    const char *result;
    const char *refused; /* why hf_return did not take the result; NULL: it did */
    const char *error;
    const char *error_code;
    int64_t retry_after;
    hf_new_event *events;
    size_t event_count;
    size_t event_capacity;
    int64_t duration; /* us of the handler */

    /* The commit's. */
    hf_transition transition;
    struct hf__letter letter;                      /* of the dead-letter workflow */
    const hf_id *start_ids;                        /* of transition.starts; NULL: letter.id alone */
    const hf_id *child_ids;                        /* of transition.children */
    void (*apply)(hf_ctx *ctx, struct hf__op *op); /* NULL: by the worker's engine */
    struct hf__function *function; /* what it remembers; NULL: no durable call was made */
    bool unfit;                    /* the code does not fit what it remembers */
    bool suspended;                /* the transition was written by whoever answered HF_SUSPENDED */
    struct hf__op op;
    bool plain; /* what it brought was refused; sent again with the bare failure */
    hf_error op_error;
};

/* What the claimer needs before its next claim. */
enum hf__wish {
    HF__WISH_NOTHING,
    HF__WISH_ROOM,        /* the queue is half empty */
    HF__WISH_IDLE_HAND,   /* a suspect goes into an idle hand */
    HF__WISH_EMPTY_HANDS, /* a suspect of many attempts goes alone */
    HF__WISH_ANY_HAND     /* it has waited long enough for that */
};

struct hf__hand {
    hf_worker *worker;
    pthread_t thread;
    struct hf__hand *next; /* of all; hf_worker_run's thread's */
    bool ended;            /* worker->lock */
    bool written_off; /* its handler was left behind: it ends when that comes back. worker->lock */
};

/* What wake-ups said since the claimer last looked. */
struct hf__ring {
    bool any;       /* some lane, or more than fit */
    bool taken;     /* of the lanes, something was claimed already: look for the rest */
    bool workflows; /* lanes may have come */
    size_t lane_count;
    int32_t lanes[HF__RINGING_LANES];
    bool any_slot; /* more than fit */
    size_t slot_count;
    int32_t slots[HF__RINGING_LANES]; /* lanes whose workflow has a free slot */
};

struct hf_worker {
    atomic_int refs;
    atomic_int
        master_users;  /* hands, and hf_worker_run: the last one closes the tenants' clients */
    hf_client *client; /* borrowed until hf_worker_run returns */
    struct hf__engine *engine;
    char *name;
    bool named; /* by whoever made it: a former worker may have had the name */
    char *host;
    char **
        prefixes; /* given as an option, and each ends with '*'; or the patterns that fit the environment */
    size_t prefix_count;
    char **tenants; /* given as an option */
    size_t tenant_count;
    char *tenants_json; /* as registered */
    char *serves_json;
    int threads;
    int64_t poll;
    int64_t heartbeat; /* us; 0: by the leases */
    int64_t stop_limit;
    int64_t make_way_after; /* us for which a suspect is passed over by a busy worker */
    int64_t make_way_for;   /* us for which that then waits for empty hands, at most */
    int64_t step_grace;     /* us that a handler may stay in a step past its limit */
    int64_t lost_grace;     /* us that it may stay once its run is lost or past its deadline */
    _Atomic int64_t watched_until; /* monotonic us at which hf_worker_run's thread looks again */
    hf_worker_observer observer;
    void *observer_arg;
    struct hf__registry registry;
    bool chores_only; /* needs no handlers */
    bool no_dispatch; /* leaves the outbox to others */
    bool has_run;

    int stop_fd;           /* rung by hf_worker_stop and by whoever the drain waits for */
    atomic_int stop_calls; /* hf_worker_stop, or the worker's own reasons to end */
    atomic_bool silent;    /* hf_worker_run has returned: the observer may be gone */
    atomic_bool draining;
    atomic_bool idle;       /* said of the worker in the store */
    atomic_bool store_lost; /* a query failed and none has worked since */
    atomic_bool adopt;      /* the store came back: look for claims whose answer was lost */

    struct hf__master **masters; /* the claimer's alone, once it runs; only grows */
    size_t master_count;
    bool all_tenants;
    int house; /* the default tenant's id, in which the store's own chores live; 0: not worked for */
    struct hf__lanes lanes; /* the claimer's alone */
    struct hf__heads heads; /* the claimer's alone */

    pthread_mutex_t beat_lock;

    pthread_mutex_t lock;
    pthread_cond_t work;    /* hands wait for the queue */
    pthread_cond_t claimer; /* the claimer waits for room, wake-ups and answers */
    pthread_cond_t beat;    /* the beat waits for its time and its answer */
    pthread_cond_t settled; /* handlers with something to write wait for their open claim */
    hf_code end_code;       /* why it ends by itself */
    bool stopping;          /* no new claims */
    bool quit;              /* leave what is not answered yet */
    bool claimer_ended;
    bool standing_by;   /* the claimer sleeps and nothing is due, as far as it knows */
    bool lent;          /* a claim that it has not sent is under way */
    bool returning;     /* and was answered: what it brought is being taken in */
    enum hf__wish wish; /* what the claimer waits for */
    bool prompted;      /* it is there */
    struct hf__ring ring;
    hf_ctx *first; /* of the queue */
    hf_ctx *last;
    hf_ctx *held; /* newest */
    int queued;
    int running;
    int held_count;
    int idle_hands;
    int hands_alive;
    int abandoned;          /* hands that sit in a handler given back */
    int alone;              /* held runs that must have no company */
    int measured;           /* how many measurements the average is of */
    double average;         /* us of a handler */
    int64_t moved_at;       /* monotonic us: a hand took a run, or had done with one */
    double payload;         /* bytes of the largest run of late; falls slowly */
    int64_t shortest_lease; /* us, since the worker last held nothing; 0: holds nothing */
    bool beat_now;
    int64_t alarm;      /* monotonic us: a beat for all that are held for a while; 0: none */
    int64_t alarmed_at; /* the last time that a lease may have been lost */
    struct hf__socket_dir sockets; /* where programs reach their hands */

    pthread_t claimer_thread;
    pthread_t beat_thread;
    struct hf__hand *hands; /* newest */
    struct hf__ear *ear;
};

/* worker.c */
hf_worker *hf__worker_ref(hf_worker *worker);
void hf__worker_unref(hf_worker *worker);
/* As hf_worker_stop, for the worker's own reasons: hf_worker_run will return `code`. */
void hf__worker_end(hf_worker *worker, hf_code code);
/* Wakes the thread that watches over the drain. */
void hf__worker_nudge(hf_worker *worker);
void hf__worker_observe(const hf_worker *worker, const hf_worker_event *event);
void hf__worker_say(const hf_worker *worker, hf_worker_event_kind kind, const char *message);
/* Every query tells here how it ended, so that the loss of the store and its return are reported
 * once each. */
void hf__worker_heard_from_store(hf_worker *worker, hf_code code, const hf_error *err);
/* Waits at most until a monotonic time; worker->lock is held. */
void hf__worker_wait(hf_worker *worker, pthread_cond_t *cond, int64_t until);
/* A query of the worker's; the outcome is told to hf__worker_heard_from_store. */
hf_code hf__worker_query(hf_worker *worker, enum hf__stmt stmt, const struct hf__table *params,
                         struct hf__table *result, hf_error *err);

/* fitting.c */
/* Chooses what the worker claims where no option does: its handlers, or those that WORKER_TYPE_PREFIXES leaves. HF_INVALID: that
 * leaves none. */
hf_code hf__fitting_choose(hf_worker *worker, hf_error *err);

/* identity.c */
hf_code hf__identity_choose(hf_worker *worker, const char *name, hf_error *err);
/* Writes down what it serves, before it is registered. */
hf_code hf__identity_describe(hf_worker *worker, hf_error *err);
hf_code hf__identity_register(hf_worker *worker, hf_error *err);
/* If that fails, its row expires by itself. */
void hf__identity_remove(hf_worker *worker);

/* masters.c */
hf_code hf__masters_resolve(hf_worker *worker, hf_error *err);
/* NULL: not known yet. The claimer's, or for whom it waits. */
const struct hf__master *hf__master_known(const hf_worker *worker, int id);
/* Asks the store about one that is not known. NULL: it could not be asked. */
const struct hf__master *hf__master_add(hf_worker *worker, const char *tenant);
/* Never called from a flusher's thread, which could not close the engine under itself. */
void hf__masters_leave(hf_worker *worker);

/* errand.c */
void hf__errand_init(struct hf__errand *errand, hf_worker *worker, pthread_cond_t *answer,
                     void (*dispose)(struct hf__errand *));
void hf__errand_send(struct hf__errand *errand);
/* Waits for the answer, or until it is told if that suffices. False: left behind, the errand is no
 * longer the caller's. */
bool hf__errand_await(struct hf__errand *errand, bool told_suffices);
/* Sends it and waits for the answer. */
bool hf__errand_run(struct hf__errand *errand);

/* claimer.c */
void *hf__claimer_main(void *worker);
void hf__claimer_hear(const struct hf__heard *heard, void *worker);
/* Hands and commits say that there may be room; worker->lock is held. */
void hf__claimer_prompt(hf_worker *worker);
/* How many runs can be begun at once; worker->lock is held. */
int hf__claimer_free_hands(const hf_worker *worker);

/* standby.c */
/* The claim of a worker that sleeps: for the flush that brings a run, or for the thread that hears of some. */
struct hf__op *hf__standby_lend(int32_t lane, const int *priority, void *worker);
/* Waits until that is answered, or the worker must not wait any more. */
void hf__standby_await(hf_worker *worker);

/* haul.c */
struct hf__haul *hf__haul_new(hf_worker *worker);
/* The claimer is done with it. */
void hf__haul_release(struct hf__haul *haul);
void hf__haul_free(struct hf__haul *haul);
/* Puts the claimed runs into the queue, or gives them back when the worker is stopping. */
void hf__haul_admit(struct hf__haul *haul);
/* Waits while the turn's claim is open. False: it is lost. */
bool hf__haul_await(const hf_ctx *turn);
/* How the turn's claim stands; while it is open, the turn's commit is kept, and sent when it no
 * longer is. */
enum hf__standing hf__haul_hold_back(hf_ctx *turn);

/* adopt.c */
/* Gives back what the store says this worker holds and it does not. The claimer's. */
void hf__adopt(hf_worker *worker);

/* hands.c */
void *hf__hand_main(void *hand);
/* Starts one more. False: the system gives no thread. hf_worker_run's thread's. */
bool hf__hand_start(hf_worker *worker);
/* How many work and are not written off. */
int hf__hands_count(hf_worker *worker);
/* Joins those that have ended. */
void hf__hands_reap(hf_worker *worker);
/* The worker ends: those that sit in handlers which do not return are left alone; they hold what they need. */
void hf__hands_part(hf_worker *worker);

/* stuck.c: handlers that do not come back */
/* Leaves behind those whose time is over, and replaces their hands. Returns the monotonic us of the next look. */
int64_t hf__stuck_look(hf_worker *worker);
/* A look is wanted by this time. */
void hf__stuck_expect(hf_worker *worker, int64_t at);

/* turn.c */
/* Runs the handler and commits what it decided; the turn is no longer the caller's. Returns the
 * handler's us, negative if there was none. */
int64_t hf__turn_play(hf_ctx *turn, struct hf__random *random);
/* Takes a run out of the worker's hands, at the drain. */
void hf__turn_give_back(hf_ctx *turn);
/* The worker decides in place of a handler that it left behind, whose step or run is out of time. */
void hf__turn_decide_late(hf_ctx *turn);
/* Tells the observer that a thread is lost to a handler that does not come back. */
void hf__turn_report_left(const hf_ctx *turn);
/* Takes it out of what the worker holds; worker->lock is held. */
void hf__turn_let_go(hf_ctx *turn);
/* Tells a handler that its run is lost; worker->lock is held. */
void hf__turn_lose(hf_ctx *turn, hf_code code);
bool hf__turn_overdue(const hf_ctx *turn);

/* commit.c */
void hf__turn_commit(hf_ctx *turn);
/* Sends what the turn has ready to commit, or drops it with its lost claim. */
void hf__turn_send(hf_ctx *turn, enum hf__standing standing);
/* One user less; worker->lock is not held. */
void hf__turn_release(hf_ctx *turn);

/* beat.c */
void *hf__beat_main(void *worker);
/* us between two beats; worker->lock is held. */
int64_t hf__beat_period(const hf_worker *worker);
/* Says in the store that the worker lives, what it holds and whether it sleeps. */
hf_code hf__beat_say(hf_worker *worker, hf_error *err);
/* The run's lease has ended as far as this side can know; worker->lock is not held. */
bool hf__beat_lapsed(hf_ctx *turn);
/* Somebody's lease may have been lost: looks soon. */
void hf__beat_alarm(hf_worker *worker);

/* drain.c */
/* Blocks until somebody wants the worker to end, then until it holds nothing or the stop limit
 * has passed. */
void hf__drain(hf_worker *worker);
/* worker->lock is held. Whether all hands sit in handlers that do not end soon: then nothing shall wait behind them. */
bool hf__hands_are_stuck(const hf_worker *worker);
/* Gives back what waits behind such handlers: others may have hands for it. */
void hf__queue_let_go(hf_worker *worker);
/* Behind what waits for a hand; worker->lock is held. True: a hand is idle, and to be woken for it. */
bool hf__queue_append(hf_worker *worker, hf_ctx *turn);

/* exec.c */
struct hf__program;
hf_code hf__program_new(struct hf__program **out, const hf_exec_options *options,
                        size_t max_payload, hf_error *err);
void hf__program_free(void *program);
hf_code hf__program_handle(hf_ctx *ctx, const char *input, hf_error *err, void *program);

/* chores.c: the engine's own workflows */
hf_handler hf__chore_find(const char *workflow);
/* Ends a chore's turn: it is called again at a time. Returns HF_SUSPENDED. */
hf_code hf__chore_wait(hf_ctx *ctx, const char *kind, int64_t until);
/* Makes sure that the store has its chores, if the worker works for the default tenant. */
hf_code hf__chores_prepare(hf_worker *worker, hf_error *err);

/* With the beat: calls the chores that it is time for. *called: monotonic us, when it did so for those that are not asked
 * for at each beat; 0: not yet. False: the worker ends. */
bool hf__chores_call(hf_worker *worker, int64_t *called);

/* chore_call.c: starts a chore of the whole store, or one that somebody cancelled once more. Keys and inputs have up to 39
 * bytes; input may be NULL. The beat's; false: the worker ends. */
bool hf__chore_call(hf_worker *worker, const char *workflow, const char *key, const char *input);

/* seal_chore.c */
hf_code hf__seal_chore(hf_ctx *ctx, const char *input, hf_error *err, void *arg);
/* Starts a sealing run if there is something to seal. The beat's; false: the worker ends. */
bool hf__seal_call(hf_worker *worker);

/* retention_chore.c */
hf_code hf__retention_chore(hf_ctx *ctx, const char *input, hf_error *err, void *arg);
hf_code hf__retention_start(hf_client *client, hf_error *err);
/* The beat's; false: the worker ends. */
bool hf__retention_call(hf_worker *worker);

/* dispatch_chore.c */
hf_code hf__dispatch_chore(hf_ctx *ctx, const char *input, hf_error *err, void *arg);

/* schedule_chore.c */
hf_code hf__schedule_chore(hf_ctx *ctx, const char *input, hf_error *err, void *arg);

#endif
