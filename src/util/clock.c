/* SPDX-License-Identifier: Apache-2.0 */
#include "util/clock.h"

#include <stddef.h>
#include <time.h>

static int64_t read_clock(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int64_t wall_clock(void *arg)
{
    (void)arg;
    return read_clock(CLOCK_REALTIME);
}

const struct hf__clock hf__system_clock = { .now = wall_clock, .arg = NULL };

int64_t hf__monotonic_us(void)
{
    return read_clock(CLOCK_MONOTONIC);
}
