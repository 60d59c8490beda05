/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/retry.h"

/* While two versions of a worker live, about half of the tries fit: after ten, which are eight seconds, all but one in a thousand have
 * gone on. Where none fits, a worker that joins brings the next try
 * forward. */
#define FIRST_UNFIT_PAUSE HF_MILLISECONDS(250)
#define LAST_UNFIT_PAUSE HF_MINUTES(10)

/* base * 2^(attempt-1), at most cap. */
static int64_t backoff(const struct hf__retry_policy *policy, int attempt)
{
    int64_t delay = policy->base;
    for (int n = 1; n < attempt && delay < policy->cap; n++)
        delay = delay > INT64_MAX / 2 ? INT64_MAX : delay * 2;
    return delay < policy->cap ? delay : policy->cap;
}

struct hf__verdict hf__retry_decide(const struct hf__retry_policy *policy,
                                    const struct hf__failure *failure, int attempt, double random)
{
    if (failure->permanent || attempt >= policy->max_attempts)
        return (struct hf__verdict){ .turn = HF_TURN_FAIL };
    if (failure->retry_after > 0)
        return (struct hf__verdict){ .turn = HF_TURN_RETRY, .delay = failure->retry_after };

    int64_t delay = backoff(policy, attempt);
    int64_t jitter = (int64_t)(random * (double)delay / 2);
    return (struct hf__verdict){ .turn = HF_TURN_RETRY, .delay = delay + jitter };
}

int64_t hf__unfit_pause(int64_t last)
{
    int64_t pause = last + last / 4;
    if (pause < FIRST_UNFIT_PAUSE)
        return FIRST_UNFIT_PAUSE;
    return pause < LAST_UNFIT_PAUSE ? pause : LAST_UNFIT_PAUSE;
}
