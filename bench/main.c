/* Measures one workload on one store and prints one JSON line. bench/run puts the lines side by side with peers.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

struct workload {
    const char *name;
    long count;
    int callers;
    void (*run)(struct bench *bench);
    const char *meaning;
};

static const struct workload workloads[] = {
    { "trigger_single", 20000, 10, bench_trigger_single, "one call for each run" },
    { "trigger_bulk", 200000, 2, bench_trigger_bulk, "hf_trigger_many, 5,000 runs a call" },
    { "drain", 100000, 0, bench_drain,
      "no-op runs in the store, one worker, until all are committed" },
    { "drain_limited", 100000, 0, bench_drain_limited,
      "the same with limits that are never reached" },
    { "limits_exact", 2000, 0, bench_limits_exact,
      "limits that bind: how many run at once, and begin in a second; two lines" },
    { "latency_inside", 300, 0, bench_latency_inside,
      "trigger to handler, idle worker, one process" },
    { "latency_across", 300, 0, bench_latency_across,
      "trigger to handler, idle worker, two processes" },
    { "trigger_http", 20000, 10, bench_trigger_http, "one request for each run; needs a PORT" },
    { "latency_http", 300, 0, bench_latency_http,
      "trigger over HTTP to handler, idle worker; needs a PORT" },
    { "fill_varied", 5000000, 0, bench_fill_varied,
      "runs with keys, subjects, references, tags and some flow keys; nothing is measured" },
    { "claim_flat", 2000000, 0, bench_claim_flat, "cost of a claim from 1,000 to so many pending" },
    { "memory", 100000, 0, bench_memory, "resident size of a worker with so many pending" },
    { "first_claim", 1, 0, bench_first_claim, "opening a store to the first handler" },
    { "steps", 3000, 64, bench_steps,
      "functions of 10 no-op steps, each durable before the next; per_second counts steps" },
    { "fan_out", 10000, 0, bench_fan_out,
      "one function and so many children, with CALLERS more worker processes" },
    { "asleep", 100000, 0, bench_asleep,
      "cost, memory and threads of a worker while so many runs sleep" },
};

static int usage(void)
{
    fputs("usage: holdfast-bench WORKLOAD STORE_URL [RUNS] [CALLERS] [PORT]\n\n", stderr);
    for (size_t i = 0; i < sizeof workloads / sizeof *workloads; i++)
        fprintf(stderr, "  %-16s %s (%ld runs)\n", workloads[i].name, workloads[i].meaning,
                workloads[i].count);
    return 2;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return usage();
    for (size_t i = 0; i < sizeof workloads / sizeof *workloads; i++) {
        const struct workload *workload = &workloads[i];
        if (strcmp(argv[1], workload->name) != 0)
            continue;
        struct bench bench = {
            .url = argv[2],
            .count = argc > 3 ? atol(argv[3]) : workload->count,
            .callers = argc > 4 ? atoi(argv[4]) : workload->callers,
            .port = argc > 5 ? atoi(argv[5]) : 0,
        };
        if (bench.count < 1 || bench.callers < 0 || bench.callers > 1000)
            return usage();
        workload->run(&bench);
        hf_close(bench.client);
        return 0;
    }
    return usage();
}
