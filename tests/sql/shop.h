/* A store with a client and the workflows work and soon, for tests of the SQL functions.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_TESTS_SHOP_H
#define HF_TESTS_SHOP_H

#include "sql/scratch.h"

#include <holdfast/transition.h>

extern struct scratch scratch;
extern hf_client *client;

int shop_set_up(void **state);
int shop_tear_down(void **state);

/* The one due run of a workflow. */
hf_claims *claim_from(const char *workflow);
/* A new run that waits for a signal, the only one of waiting_workflow. */
hf_id waiting_run(void);
extern char waiting_workflow[40];

/* Good until the next call. */
const char *text_of(hf_id id);

#endif
