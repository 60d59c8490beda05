/* What the workloads of the benchmark share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_BENCH_H
#define HF_BENCH_H

#include <holdfast/holdfast.h>

#include <stdatomic.h>

#define BENCH_WORKFLOW "bench.noop.v1"

struct bench {
    const char *url; /* of an empty store */
    long count;      /* runs */
    int callers;
    int port; /* of a server on this machine; for the workloads over HTTP */
    hf_client *client;
};

/* Prints why and ends the program. */
void bench_die(const char *what, const hf_error *err) __attribute__((noreturn));
/* Seconds on the monotonic clock, which is the same for all processes of a machine. */
double bench_seconds(void);
/* Opens the store with the workflow in it. */
void bench_open(struct bench *bench);
/* Triggers `count` runs in bulk. */
void bench_fill(struct bench *bench, long count);
/* One JSON line: what was measured. */
void bench_rate(const struct bench *bench, const char *workload, long n, double seconds);
void bench_latency(const struct bench *bench, const char *workload, double *ms, int n);

void bench_nap(double ms);
/* Until a counter has reached so much. */
void bench_await(atomic_long *counter, long wanted);
/* A number of /proc/self/status, such as "VmRSS", in kB, or "Threads". */
long bench_status(const char *name);
/* Runs a worker until it is stopped; a thread's main function. */
void *bench_work(void *worker);

/* A trigger over an HTTP connection that is kept; `fd` is -1 before the first. */
void bench_http_trigger(const struct bench *bench, int *fd, const char *input);

void bench_trigger_single(struct bench *bench);
void bench_trigger_bulk(struct bench *bench);
void bench_drain(struct bench *bench);
void bench_drain_limited(struct bench *bench);
void bench_limits_exact(struct bench *bench);
void bench_latency_inside(struct bench *bench);
void bench_latency_across(struct bench *bench);
void bench_latency_http(struct bench *bench);
void bench_trigger_http(struct bench *bench);
void bench_fill_varied(struct bench *bench);
void bench_claim_flat(struct bench *bench);
void bench_memory(struct bench *bench);
void bench_first_claim(struct bench *bench);
void bench_steps(struct bench *bench);
void bench_fan_out(struct bench *bench);
void bench_asleep(struct bench *bench);

#endif
