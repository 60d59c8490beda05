/* Triggers: one call each from many callers, and in bulk.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>

#include "bench.h"

#define MAX_CALLERS 1000

struct caller {
    struct bench *bench;
    pthread_t thread;
    long count;
};

static void start(struct caller *callers, struct bench *bench, void *(*body)(void *))
{
    for (int i = 0; i < bench->callers; i++) {
        callers[i] = (struct caller){ .bench = bench, .count = bench->count / bench->callers };
        pthread_create(&callers[i].thread, NULL, body, &callers[i]);
    }
    for (int i = 0; i < bench->callers; i++)
        pthread_join(callers[i].thread, NULL);
}

static void *one_by_one(void *arg)
{
    struct caller *caller = arg;
    for (long i = 0; i < caller->count; i++) {
        hf_error err;
        hf_triggered answer;
        char input[32];
        hf_trigger_spec spec = HF_TRIGGER_INIT;
        snprintf(input, sizeof input, "{\"i\":%ld}", i);
        spec.workflow = BENCH_WORKFLOW;
        spec.input = input;
        if (hf_trigger(caller->bench->client, &answer, &spec, &err) != HF_OK)
            bench_die("trigger", &err);
    }
    return NULL;
}

void bench_trigger_single(struct bench *bench)
{
    static struct caller callers[MAX_CALLERS];
    bench_open(bench);
    double from = bench_seconds();
    start(callers, bench, one_by_one);
    bench_rate(bench, "trigger_single", bench->count / bench->callers * bench->callers,
               bench_seconds() - from);
}

void bench_trigger_bulk(struct bench *bench)
{
    bench_open(bench);
    double from = bench_seconds();
    bench_fill(bench, bench->count);
    bench_rate(bench, "trigger_bulk", bench->count, bench_seconds() - from);
}
