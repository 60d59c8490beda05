/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FILL_PAGE 5000
#define MAX_PAYLOAD                                                                                \
    ((size_t)16 << 20) /* a fan-out remembers the ends of its children in one step */

void bench_die(const char *what, const hf_error *err)
{
    fprintf(stderr, "holdfast-bench: %s: %s\n", what, err->message);
    exit(1);
}

double bench_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void bench_open(struct bench *bench)
{
    hf_error err;
    hf_workflow workflow = { .name = BENCH_WORKFLOW };
    hf_options options = HF_OPTIONS_INIT;
    options.max_payload = MAX_PAYLOAD;
    if (hf_open(&bench->client, bench->url, &options, &err) != HF_OK)
        bench_die("open", &err);
    if (hf_workflow_put(bench->client, &workflow, 0, &err) != HF_OK)
        bench_die("workflow", &err);
}

void bench_fill(struct bench *bench, long count)
{
    static hf_trigger_spec specs[FILL_PAGE];
    static hf_triggered answers[FILL_PAGE];
    static char inputs[FILL_PAGE][32];
    for (long from = 0; from < count; from += FILL_PAGE) {
        hf_error err;
        size_t n = (size_t)(count - from < FILL_PAGE ? count - from : FILL_PAGE);
        for (size_t i = 0; i < n; i++) {
            snprintf(inputs[i], sizeof inputs[i], "{\"i\":%ld}", from + (long)i);
            specs[i] = (hf_trigger_spec)HF_TRIGGER_INIT;
            specs[i].workflow = BENCH_WORKFLOW;
            specs[i].input = inputs[i];
        }
        if (hf_trigger_many(bench->client, answers, specs, n, &err) != HF_OK)
            bench_die("fill", &err);
    }
}

void bench_rate(const struct bench *bench, const char *workload, long n, double seconds)
{
    printf("{\"workload\":\"%s\",\"n\":%ld,\"callers\":%d,\"seconds\":%.3f,\"per_second\":%.1f}\n",
           workload, n, bench->callers, seconds, (double)n / seconds);
}

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return a < b ? -1 : a > b;
}

void bench_latency(const struct bench *bench, const char *workload, double *ms, int n)
{
    (void)bench;
    qsort(ms, (size_t)n, sizeof *ms, by_size);
    printf("{\"workload\":\"%s\",\"n\":%d,\"p50_ms\":%.3f,\"p99_ms\":%.3f}\n", workload, n,
           ms[n / 2], ms[n * 99 / 100]);
}

void bench_nap(double ms)
{
    struct timespec time = { .tv_sec = (time_t)(ms / 1000),
                             .tv_nsec = (long)((long)(ms * 1e6) % 1000000000) };
    nanosleep(&time, NULL);
}

/* Whoever looks more often slows down what it waits for. */
void bench_await(atomic_long *counter, long wanted)
{
    while (atomic_load(counter) < wanted)
        bench_nap(2);
}

long bench_status(const char *name)
{
    long value = 0;
    size_t length = strlen(name);
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, name, length) == 0 && line[length] == ':')
            value = atol(line + length + 1);
    if (status)
        fclose(status);
    return value;
}

void *bench_work(void *worker)
{
    hf_error err;
    if (hf_worker_run(worker, &err) != HF_OK)
        bench_die("run", &err);
    return NULL;
}
