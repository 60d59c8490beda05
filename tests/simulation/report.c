/* What happened: a trace of the last actions, its hash, and the first invariant that did not hold.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "sim.h"

uint64_t hash_more(uint64_t hash, const char *text)
{
    for (const char *p = text; *p; p++)
        hash = (hash ^ (unsigned char)*p) * UINT64_C(1099511628211);
    return hash;
}

void note(struct world *world, const char *fmt, ...)
{
    struct trace *trace = &world->trace;
    char *line = trace->lines[trace->count++ % SIM_TRACE_LINES];
    int length = snprintf(line, SIM_TRACE_WIDTH, "%4d +%.6f ", world->step,
                          (double)(world->now % HF_DAYS(1)) / 1e6);
    va_list args;
    va_start(args, fmt);
    vsnprintf(line + length, SIM_TRACE_WIDTH - (size_t)length, fmt, args);
    va_end(args);
    trace->hash = hash_more(trace->hash, line);
}

void breach(struct world *world, const char *fmt, ...)
{
    if (world->broken)
        return;
    world->broken = true;
    va_list args;
    va_start(args, fmt);
    vsnprintf(world->breach, sizeof world->breach, fmt, args);
    va_end(args);
}

void report_breach(const struct world *world, int steps)
{
    const struct trace *trace = &world->trace;
    if (world->verbose) {
        int first = trace->count > SIM_TRACE_LINES ? trace->count - SIM_TRACE_LINES : 0;
        for (int i = first; i < trace->count; i++)
            fprintf(stderr, "  %s\n", trace->lines[i % SIM_TRACE_LINES]);
    }
    fprintf(stderr, "seed %" PRIu64 ", step %d: %s\n", world->seed, world->step, world->breach);
    fprintf(stderr,
            "to see it again: simulate --first %" PRIu64 " --seeds 1 --steps %d --verbose\n",
            world->seed, steps);
}
