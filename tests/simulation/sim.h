/* The simulator: workers and clients on one real store in memory, single-threaded, with a clock, an order of steps and
 * faults that all follow from one seed.
 *
 * A node is a process: it gathers operations in a queue of its own and flushes them as group commit does. When it
 * crashes, its memory is gone and what it held stays leased. What nodes were told is kept in jobs; check.c compares
 * it with what the store holds.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_TESTS_SIM_H
#define HF_TESTS_SIM_H

#include <sqlite3.h>

#include "kernel/flush.h"
#include "kernel/op.h"
#include "store/driver.h"
#include "util/arena.h"
#include "util/clock.h"
#include "util/hash.h"
#include "util/random.h"

#define SIM_TENANT 1
#define SIM_PLAIN 4             /* workflows whose runs decide by chance */
#define SIM_FUNCTION 4          /* the workflow whose runs play programs */
#define SIM_FUNCTION_ATTEMPTS 3 /* at least, of its runs */
#define SIM_WORKFLOWS 5         /* all of them */
#define SIM_MAX_NODES 8
#define SIM_MAX_JOBS 8192
#define SIM_MAX_BATCH 12
#define SIM_TRACE_LINES 50
#define SIM_TRACE_WIDTH 200

struct world;
struct node;
struct turn;
struct play;
struct story;

/* What the simulation knows of a run from the answers it was given. */
struct known {
    struct known *next;
    hf_id id;
    const char *name;      /* for the trace: "r7" */
    bool accepted;         /* a trigger or a commit said that it exists */
    bool refused;          /* its trigger was answered with an error and never sent again */
    bool state_sure;       /* `state` is what the last accepted commit wrote */
    int64_t state_version; /* the claim of the last commit that did happen or may have */
    char state[48];
    struct eaten *eaten;    /* signals that an accepted commit consumed */
    bool function;          /* it plays a program */
    struct story *story;    /* what became of it; NULL: nobody has played it */
    struct replay *journal; /* as far as it was read; NULL: not at all */
};

struct eaten {
    struct eaten *next;
    const char *id;
};

/* One operation on its way, and what its sender was told. */
struct job {
    struct hf__op op;
    struct job *next; /* in its node's queue */
    struct node *node;
    struct turn *turn;   /* whose operation it is; NULL: none, or its holder is gone */
    struct known *known; /* the run it is about */
    void (*answered)(struct world *world, struct job *job);
    hf_error error;
    hf_transition transition;
    hf_step_record step;
    hf_trigger_spec trigger;
    hf_signal_spec signal;
    hf_change change;
    int64_t nonce;       /* written by what it does, so that it can be found in the store */
    char mark[16];       /* the nonce as JSON */
    bool marked;         /* a domain event with the mark goes with it */
    bool told;           /* it was answered */
    bool patient;        /* sent again for as long as it takes */
    bool dropped;        /* its node crashed before an answer came */
    char state[48];      /* that a commit writes */
    const char *portion; /* that it starts of a family: the data of its line; NULL: none */
};

enum phase { PLAYING, ASKING };

/* A run in the hands of a worker. */
struct turn {
    struct turn *next;
    struct node *node;
    struct known *known;
    const hf_claimed *claimed;
    enum phase phase;
    bool begun; /* the handler has done something */
    bool plain; /* the store refused its decision: nothing that can be refused again */
    int steps_left;
    int changes_out;   /* cancels of children that are not answered */
    int turns;         /* the run's own counters, from its state */
    int started;       /* children */
    int ended;         /* of them, whose end was consumed */
    struct play *play; /* a function on its way; NULL: none */
};

struct node {
    int index;
    bool worker;
    int generation; /* how often it was started */
    char name[24];
    struct hf__flusher flusher;
    struct job *first;
    struct job *last;
    int queued;
    struct turn *turns;
    int held;
    bool claiming; /* a claim is on its way */
    bool adopt;    /* a claim's answer was lost */
    int fruitless; /* flushes in a row that decided nothing */
    int asleep;    /* steps for which it does nothing, as in a long pause of the machine */
};

enum fault_kind {
    FAULT_NONE,
    FAULT_BEFORE,      /* a call before the commit fails */
    FAULT_REFUSED,     /* the commit fails and has not happened */
    FAULT_LOST,        /* the commit happens, its answer is lost */
    FAULT_LOST_UNDONE, /* the commit does not happen, and nobody can tell */
    FAULT_AFTER        /* a call after the commit fails */
};

enum fault_error { ERROR_AWAY, ERROR_DATA, ERROR_RACE };

struct faults {
    struct world *world;
    enum fault_kind kind;
    enum fault_error error;
    int countdown; /* calls until it strikes */
    int times;     /* it strikes so often */
    bool committed;
    bool struck;
};

struct trace {
    char lines[SIM_TRACE_LINES][SIM_TRACE_WIDTH];
    int count; /* written so far */
    uint64_t hash;
};

struct check_statements {
    sqlite3_stmt *row;
    sqlite3_stmt *events;
    sqlite3_stmt *mail;
    sqlite3_stmt *marks;
    sqlite3_stmt *changes;
    sqlite3_stmt *orphans;
    sqlite3_stmt *arrivals;
    sqlite3_stmt *commits;
    sqlite3_stmt *steps;
    sqlite3_stmt *signal;
    sqlite3_stmt *made;
    sqlite3_stmt *unseen;
    sqlite3_stmt *unseen_failure;
    sqlite3_stmt *lines;
    sqlite3_stmt *steps_told;
    sqlite3_stmt *saved;
    sqlite3_stmt *results;
    sqlite3_stmt *totals;
    sqlite3_stmt *consumed;
    sqlite3_stmt *outbox;
    sqlite3_stmt *debounces;
    sqlite3_stmt *held; /* of a lane, by leases that have not ended */
    sqlite3_stmt *due;  /* the first time, but of what waits in one lane */
};

struct world {
    uint64_t seed;
    struct hf__random random;
    int64_t now;    /* store clock, us */
    int64_t latest; /* the clock's highest reading: it also goes backwards */
    int64_t flush_began;
    int step;
    bool calm; /* no more faults and no new work: everything must end */
    struct hf__database *db;
    struct hf__conn *conn;
    sqlite3 *handle;
    struct hf__table heads; /* of the store after so many changes; in the arena */
    int64_t heads_of;
    struct hf__clock clock;
    struct hf__driver driver; /* the store's, with faults */
    struct faults faults;
    struct hf__arena arena; /* all that belongs to one seed */
    struct node nodes[SIM_MAX_NODES];
    int worker_count;
    int node_count;
    int32_t lanes[SIM_WORKFLOWS + 1]; /* of the workflows, then of the engine's chore */
    bool paused[SIM_WORKFLOWS];
    int max_running; /* of the first workflow; 0: no limit */
    struct known *runs;
    struct hf__idmap by_id;
    int run_count;
    int triggered;
    struct job *jobs[SIM_MAX_JOBS];
    int job_count;
    struct check_statements sql;
    struct play *plays; /* all that are on their way */
    struct trace trace;
    bool verbose;
    bool broken;
    char breach[400]; /* the invariant that does not hold */
};

/* world.c */
void world_open(struct world *world);
void world_close(struct world *world);
void world_begin(struct world *world, uint64_t seed);
void world_play(struct world *world, int steps);
void *world_alloc(struct world *world, size_t size);
char *world_printf(struct world *world, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int below(struct world *world, int limit);
bool chance(struct world *world, int percent);
const char *workflow_name(int index);
void workflow_pause(struct world *world, int index, bool paused);
struct known *known_of(struct world *world, hf_id id);
/* The first column of the first row, or 0; for looks that the simulation takes from outside. */
int64_t ask_number(struct world *world, const char *sql);

/* report.c */
void note(struct world *world, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* An invariant does not hold; the first one counts. */
void breach(struct world *world, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void report_breach(const struct world *world, int steps);
uint64_t hash_more(uint64_t hash, const char *text);

/* queue.c */
struct job *job_new(struct world *world, struct node *node, enum hf__op_kind kind,
                    struct known *known);
void job_submit(struct world *world, struct job *job);
void node_flush(struct world *world, struct node *node);
void node_crash(struct world *world, struct node *node);
void node_begin(struct world *world, struct node *node, int index, bool worker);

/* worker.c */
/* One heartbeat for all that it holds, also for what it is committing. */
void worker_beat(struct world *world, struct node *node);
void worker_act(struct world *world, struct node *node);
/* Plays and claims as long as there is something to do; false: there was nothing. */
bool worker_exhaust(struct world *world, struct node *node);

/* handler.c */
void handler_play(struct world *world, struct turn *turn);
/* A first transition or one without a claim: also clients decide. */
void handler_execute(struct world *world, struct node *node, struct known *known);
void counters_read(const char *state, int *turns, int *started, int *ended);
struct job *commit_new(struct world *world, struct node *node, struct known *known,
                       int64_t version);
/* Tries again or fails for good, by the workflow's policy. */
void fail_turn(struct world *world, struct turn *turn, struct job *job, bool permanent);
void let_go(struct turn *turn);

/* play.c */
/* Goes on with the function until it asks the store, rests or ends. */
void play_on(struct world *world, struct turn *turn);
/* Its process has died, or nobody waits for it: what it does from here on reaches nobody. */
void play_end(struct turn *turn);
void plays_end(struct world *world);

/* client.c */
void client_act(struct world *world, struct node *node);
/* In the end: resumes, restores and signals what waits for people. False: there was nothing. */
bool client_drive(struct world *world, struct node *node);
void client_change(struct world *world, struct node *node, struct known *known, hf_action action);

/* faults.c */
void faults_install(struct world *world);
void faults_arm(struct world *world);
void faults_disarm(struct world *world);

/* check.c */
void check_open(struct world *world);
void check_close(struct world *world);
void check_run(struct world *world, hf_id id);
void check_job(struct world *world, const struct job *job);
/* Only right after the answer: later the run may have new mail, or be retried and have children again. */
void check_execution(struct world *world, const struct job *job);
void check_cascade(struct world *world, const struct job *job);
/* No more runs of the first workflow are held than its limit allows. */
void check_limit(struct world *world);
/* Slots that nobody holds by a lease. */
int limit_left(struct world *world);
/* The first time at which something is due that no limit keeps back; 0: never. */
int64_t next_due(struct world *world);
/* What the run of a story must hold, whatever became of it. */
void check_story(struct world *world, const struct known *known, hf_status status);
void check_delivery(struct world *world, struct known *known, const hf_claimed *claimed);
void check_everything(struct world *world);
void check_ended(struct world *world);

#endif
