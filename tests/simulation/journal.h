/* A run's journal, replayed: what its row must say.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_TESTS_SIM_JOURNAL_H
#define HF_TESTS_SIM_JOURNAL_H

#include "sim.h"

struct replay {
    struct world *world;
    const struct known *known;
    int64_t seq;
    int64_t version;
    int64_t position;
    hf_status status;
    hf_status before_pause;
    int attempt;       /* claims since the last progress */
    int wait_children; /* of the last wait */
    int64_t wait_version;
    int steps; /* that it says succeeded */
    int call;  /* of a function: the last one that has a line; -1: none */
    int progress; /* of it, that its last line tells: the attempt of a step, the children that were started */
    bool final;  /* its last line says that it is over */
    bool failed; /* of a step: for good */
    char holder[24];
};

/* story.c: a line that a function's call has written. */
void replay_call(struct replay *r, const char *full, const char *status, const char *data);
/* Says on the way what the journal itself must not hold: gaps, changes that are not allowed, commits of strangers. Not `anew`:
 * from where it was the last time, since what is written stays. */
struct replay replay_journal(struct world *world, struct known *known, bool anew);

#endif
