/* What follows a failed attempt. Pure.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_KERNEL_RETRY_H
#define HF_KERNEL_RETRY_H

#include <holdfast/transition.h>

struct hf__retry_policy {
    int max_attempts;
    int64_t base; /* us */
    int64_t cap;  /* us */
};

struct hf__failure {
    bool permanent;
    int64_t retry_after; /* us, given by the handler; 0: by the policy */
};

struct hf__verdict {
    hf_turn turn;  /* HF_TURN_RETRY or HF_TURN_FAIL */
    int64_t delay; /* us before the next attempt */
};

/* `attempt` counts from 1; `random` in [0, 1) spreads retries over half of the delay. */
struct hf__verdict hf__retry_decide(const struct hf__retry_policy *policy,
                                    const struct hf__failure *failure, int attempt, double random);

/* How long a run rests, us, before the next worker looks whether its code fits; `last`: the pause before, 0: none. */
int64_t hf__unfit_pause(int64_t last);

#endif
