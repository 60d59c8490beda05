/* What becomes of a run whose attempt failed: tried again, or failed for good and told of.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_WORKER_FAILURE_H
#define HF_WORKER_FAILURE_H

#include <holdfast/transition.h>

#include "kernel/op.h"
#include "kernel/retry.h"
#include "util/arena.h"

/* The run that is started to tell of one that failed for good. Stays as long as the transition. */
struct hf__letter {
    hf_trigger_spec spec;
    hf_id id;
    char key[HF__LETTER_KEY];
};

/* {"attempt","code","message","step","details"}; step and details (JSON) may be NULL. NULL: no memory. */
char *hf__error_json(struct hf__arena *arena, int attempt, const char *code, const char *message,
                     const char *step, const char *details);
/* Fills in turn, error and dead letter. An error (JSON) that is there already is kept. Of the claim: the run, the policy and
 * the dead-letter workflow. */
void hf__fail_for_good(hf_transition *transition, const hf_claimed *claimed,
                       struct hf__letter *letter, struct hf__arena *arena, const char *code,
                       const char *message);
/* The same as far as the policy gives no further attempt. `random` is in [0, 1). */
void hf__fail_or_retry(hf_transition *transition, const hf_claimed *claimed,
                       struct hf__letter *letter, struct hf__arena *arena,
                       const struct hf__failure *failure, const char *code, const char *message,
                       double random);
/* The worker's code does not fit the run's history: it waits for another worker, or fails for good if that is `over`. */
void hf__leave_to_others(hf_transition *transition, const hf_claimed *claimed,
                         struct hf__letter *letter, struct hf__arena *arena, const char *message,
                         bool over);
#define HF__HISTORY_MISMATCH "history_mismatch"

#endif
