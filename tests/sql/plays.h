/* A case that is played twice on one store whose clock stands still, in one tenant by the library and in another by
 * SQL, and the comparison of what both left.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_TESTS_PLAYS_H
#define HF_TESTS_PLAYS_H

#include "sql/scratch.h"

enum { LIBRARY, SQL, WAYS };

/* One of the two plays. */
struct play {
    hf_client *client;
    char tenant[40];
    hf_id run; /* acted upon */
};

struct situation {
    const char *name;
    void (*make)(struct play *play);
};

extern struct scratch scratch;
extern struct play plays[WAYS];

int plays_set_up(void **state);
int plays_tear_down(void **state);

/* Two tenants of their own for each case. */
void new_plays(void);
/* The clock, so many us after a fixed time. */
void stand_still(int64_t later);
/* Makes two runs in each situation, one minute ago, and acts. */
void in_every_situation(void (*act)(const struct situation *situation));

void assert_same_rows(const char *name);
void assert_same_verdict(const char *name, hf_code code, const char *sqlstate);
/* A test, to be the last: what the journal says is where the runs are. */
void the_journal_equals_the_state(void **state);

/* Good until the next 8 calls. */
const char *id_text(hf_id id);

#endif
