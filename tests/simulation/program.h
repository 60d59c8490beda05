/* Programs that simulated functions play: drawn from a number in the run's input, so that whoever claims the run plays the
 * same. A story is what became of one.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_TESTS_SIM_PROGRAM_H
#define HF_TESTS_SIM_PROGRAM_H

#include <holdfast/function.h>

#include "sim.h"

#define CALLS_MOST 12
#define GROUP_MOST 6 /* children of one start */

enum call_kind {
    CALL_STEP,
    CALL_SLEEP,
    CALL_PAUSE,
    CALL_SIGNAL,
    CALL_START,
    CALL_CHILDREN,
    CALL_NOW,
    CALL_RANDOM,
    CALL_UUID,
    CALL_VERSION,
    CALL_EMIT,
    CALL_PROGRESS,
    CALL_PUBLISH
};

struct call {
    enum call_kind kind;
    const char *name;
    char full[16]; /* as it is remembered: "a#2" */
    int64_t us;    /* how long it sleeps, or waits at most; 0: no limit */
    int fails;     /* attempts of a step that fail */
    int max_attempts;
    bool permanent; /* its first failure is the last */
    bool in_one;    /* by hf_step_run */
    int count;      /* children; the version of the code */
    int group;      /* the start whose children are waited for */
    hf_wait_for what;
};

struct program {
    uint64_t number;
    int depth;
    int count;
    struct call calls[CALLS_MOST];
};

/* A wait that was sent: how much of the mailbox it knew. */
struct look {
    struct look *next;
    int64_t version;
    int64_t seen_position;
    int64_t seen_at;
};

struct story {
    struct program program;
    const char *seen[CALLS_MOST]; /* what each call has answered; NULL: nothing yet */
    struct look *looks;
};

/* program.c */
const char *program_input(struct world *world, uint64_t number, int depth);
const char *signal_name(int index);
bool is_recorded_call(const struct call *call);
/* The story of a run, drawn from its input at the first time. */
struct story *story_of(struct world *world, struct known *known, const char *input);
/* What a run without crashes would say of a call, if only one answer is right; NULL: it depends. */
const char *expected_text(struct world *world, const struct call *call);
/* The number of children that a call starts, and what the n-th gets. */
const char *child_input(struct world *world, const struct program *program, int call, int child);
/* The name of the signal that a run waits for. */
const char *story_waits_for(struct world *world, const struct known *known);
/* A function's result: it follows from all that its calls answered. */
uint64_t result_of(const char *const *texts, int count);

#endif
