/* Where the time comes from, so that tests can own it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_UTIL_CLOCK_H
#define HF_UTIL_CLOCK_H

#include <stdint.h>

struct hf__clock {
    int64_t (*now)(void *arg); /* microseconds since the epoch */
    void *arg;
};

/* The machine's wall clock. */
extern const struct hf__clock hf__system_clock;

static inline int64_t hf__clock_now(const struct hf__clock *clock)
{
    return clock->now(clock->arg);
}

/* Microseconds since an arbitrary start; never goes backwards. For measuring and for waiting. */
int64_t hf__monotonic_us(void);

#endif
