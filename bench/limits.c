/* Limits that bind: are they never exceeded, and is nothing idle below them while more is due?
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "util/clock.h"
#include "worker/worker.h"

#define MAX_RUNNING 8
#define HANDLER_MS 5
#define THREADS 16 /* more than may run */
#define RATE 500   /* a second */
#define BURST 50

/* What happened at a time: something began (1) or ended (-1). */
struct moment {
    int64_t at; /* us */
    int change;
};

struct stage {
    struct moment *moments;
    atomic_long noted;
    atomic_long committed;
};

static void note(struct stage *stage, int64_t at, int change)
{
    stage->moments[atomic_fetch_add(&stage->noted, 1)] = (struct moment){ at, change };
}

static hf_code take_a_while(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)ctx;
    (void)input;
    (void)err;
    note(arg, hf__monotonic_us(), 1);
    bench_nap(HANDLER_MS);
    note(arg, hf__monotonic_us(), -1);
    return HF_OK;
}

/* By the store's clock, which the rate goes by: a handler may begin a little later than its run was started. */
static hf_code note_start(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)input;
    (void)err;
    note(arg, ctx->claimed->seen_at, 1);
    return HF_OK;
}

static void observe(const hf_worker_event *event, void *arg)
{
    struct stage *stage = arg;
    if (event->kind == HF_WORKER_RUN_FINISHED && event->status == HF_SUCCEEDED &&
        strcmp(event->workflow, BENCH_WORKFLOW) == 0)
        atomic_fetch_add(&stage->committed, 1);
}

static int by_time(const void *left, const void *right)
{
    const struct moment *a = left, *b = right;
    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    return a->change - b->change;
}

/* Fills the store, works it off under the limits, and leaves the moments in their order. */
static void drain(struct bench *bench, struct stage *stage, hf_handler handler,
                  const hf_workflow *limits)
{
    hf_error err;
    hf_worker *worker;
    pthread_t thread;
    hf_worker_options options = HF_WORKER_OPTIONS_INIT;
    options.observer = observe;
    options.observer_arg = stage;
    options.threads = THREADS;
    stage->moments = calloc(2 * (size_t)bench->count, sizeof *stage->moments);
    if (!stage->moments ||
        hf_workflow_set(bench->client, limits, HF_SET_MAX_RUNNING | HF_SET_RATE, &err) != HF_OK ||
        hf_worker_new(&worker, bench->client, &options, &err) != HF_OK ||
        hf_worker_handle(worker, BENCH_WORKFLOW, handler, stage, &err) != HF_OK)
        bench_die("limits", &err);
    bench_fill(bench, bench->count);
    pthread_create(&thread, NULL, bench_work, worker);
    bench_await(&stage->committed, bench->count);
    hf_worker_stop(worker);
    pthread_join(thread, NULL);
    hf_worker_free(worker);
    qsort(stage->moments, (size_t)stage->noted, sizeof *stage->moments, by_time);
}

/* From the first beginning to the last, more was due all the time. */
static void print_running(const struct bench *bench, const struct stage *stage)
{
    const struct moment *moments = stage->moments;
    int running = 0, most = 0;
    long begun = 0;
    int64_t below = 0, busy = 0, whole = 0;
    for (long i = 0; begun < bench->count; i++) {
        running += moments[i].change;
        begun += moments[i].change > 0;
        most = running > most ? running : most;
        int64_t lasts = begun < bench->count ? moments[i + 1].at - moments[i].at : 0;
        whole += lasts;
        busy += lasts * running;
        below += running < MAX_RUNNING ? lasts : 0;
    }
    printf("{\"workload\":\"limit_running\",\"n\":%ld,\"limit\":%d,\"handler_ms\":%d,\"most\":%d,"
           "\"below_percent\":%.2f,\"average\":%.2f,\"per_second\":%.1f}\n",
           bench->count, MAX_RUNNING, HANDLER_MS, most, 100.0 * (double)below / (double)whole,
           (double)busy / (double)whole, (double)bench->count * 1e6 / (double)whole);
}

/* How many begin in any one second: the most, and the least while more was due. */
static void print_rate(const struct bench *bench, const struct stage *stage)
{
    const struct moment *moments = stage->moments;
    long most = 0, least = bench->count, end = 0;
    int64_t last = moments[bench->count - 1].at;
    for (long begin = 0; begin < bench->count; begin++) {
        while (end < bench->count && moments[end].at < moments[begin].at + HF_SECONDS(1))
            end++;
        most = end - begin > most ? end - begin : most;
        if (moments[begin].at + HF_SECONDS(1) <= last && end - begin - 1 < least)
            least = end - begin - 1; /* the second that begins just after this one */
    }
    printf("{\"workload\":\"limit_rate\",\"n\":%ld,\"rate\":%d,\"burst\":%d,\"most\":%ld,"
           "\"least\":%ld,\"per_second\":%.1f}\n",
           bench->count, RATE, BURST, most, least,
           (double)(bench->count - BURST) * 1e6 / (double)(last - moments[0].at));
}

void bench_limits_exact(struct bench *bench)
{
    static struct stage running, rate;
    const hf_workflow of_running = { .name = BENCH_WORKFLOW, .max_running = MAX_RUNNING };
    const hf_workflow of_rate = {
        .name = BENCH_WORKFLOW, .rate = { .count = RATE, .interval = HF_SECONDS(1), .burst = BURST }
    };
    if (bench->count < 2 * (RATE + BURST)) {
        fprintf(stderr, "holdfast-bench: limits_exact needs at least %d runs\n",
                2 * (RATE + BURST));
        exit(2);
    }
    bench_open(bench);
    drain(bench, &running, take_a_while, &of_running);
    print_running(bench, &running);
    drain(bench, &rate, note_start, &of_rate);
    print_rate(bench, &rate);
    free(running.moments);
    free(rate.moments);
}
