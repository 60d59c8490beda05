/* A worker with a no-op handler: how fast it drains, how soon it starts, how large it is.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

/* Shared with a worker in another process. */
struct stage {
    _Atomic double started; /* when the handler began last */
    atomic_long handled;
    atomic_long committed;
    atomic_bool ready; /* the worker is up */
};

static hf_code noop(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)ctx;
    (void)input;
    (void)err;
    struct stage *stage = arg;
    atomic_store(&stage->started, bench_seconds());
    atomic_fetch_add(&stage->handled, 1);
    return HF_OK;
}

static void observe(const hf_worker_event *event, void *arg)
{
    struct stage *stage = arg;
    if (event->kind == HF_WORKER_STARTED)
        atomic_store(&stage->ready, true);
    if (event->kind == HF_WORKER_RUN_FINISHED)
        atomic_fetch_add(&stage->committed, 1);
}

static hf_worker *new_worker(hf_client *client, struct stage *stage)
{
    hf_error err;
    hf_worker *worker;
    hf_worker_options options = HF_WORKER_OPTIONS_INIT;
    options.observer = observe;
    options.observer_arg = stage;
    if (hf_worker_new(&worker, client, &options, &err) != HF_OK)
        bench_die("worker", &err);
    if (hf_worker_handle(worker, BENCH_WORKFLOW, noop, stage, &err) != HF_OK)
        bench_die("handler", &err);
    return worker;
}

static void drain(struct bench *bench, const char *workload, const hf_workflow *limits,
                  unsigned mask)
{
    static struct stage stage;
    pthread_t thread;
    hf_error err;
    bench_open(bench);
    if (mask && hf_workflow_set(bench->client, limits, mask, &err) != HF_OK)
        bench_die("limits", &err);
    bench_fill(bench, bench->count);
    hf_worker *worker = new_worker(bench->client, &stage);
    double from = bench_seconds();
    pthread_create(&thread, NULL, bench_work, worker);
    bench_await(&stage.committed, bench->count);
    bench_rate(bench, workload, bench->count, bench_seconds() - from);
    hf_worker_stop(worker);
    pthread_join(thread, NULL);
    hf_worker_free(worker);
}

void bench_drain(struct bench *bench)
{
    drain(bench, "drain", NULL, 0);
}

/* Limits of every kind, none of which is ever reached. */
void bench_drain_limited(struct bench *bench)
{
    const hf_rate much = { .count = 1000000, .interval = HF_SECONDS(1), .burst = 1000000 };
    const hf_workflow limits = { .name = BENCH_WORKFLOW,
                                 .max_running = 100000,
                                 .key_max_running = 100000,
                                 .rate = much,
                                 .key_rate = much };
    drain(bench, "drain_limited", &limits,
          HF_SET_MAX_RUNNING | HF_SET_KEY_MAX_RUNNING | HF_SET_RATE | HF_SET_KEY_RATE);
}

/* One run at a time while the worker is idle; 20 to 60 ms apart. */
/* One trigger by a call of the library. */
static void trigger_by_call(struct bench *bench)
{
    hf_error err;
    hf_triggered answer;
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    spec.workflow = BENCH_WORKFLOW;
    if (hf_trigger(bench->client, &answer, &spec, &err) != HF_OK)
        bench_die("trigger", &err);
}

static void trigger_by_request(struct bench *bench)
{
    static int fd = -1;
    bench_http_trigger(bench, &fd, "null");
}

static void measure_latency(struct bench *bench, struct stage *stage, const char *workload,
                            void (*trigger)(struct bench *bench))
{
    double *ms = calloc((size_t)bench->count, sizeof *ms);
    unsigned seed = 7;
    while (!atomic_load(&stage->ready))
        bench_nap(1);
    bench_nap(200);
    for (long i = 0; ms && i < bench->count; i++) {
        bench_nap(20 + rand_r(&seed) % 40);
        long before = atomic_load(&stage->handled);
        double from = bench_seconds();
        trigger(bench);
        bench_await(&stage->handled, before + 1);
        ms[i] = (atomic_load(&stage->started) - from) * 1000;
    }
    bench_latency(bench, workload, ms, (int)bench->count);
    free(ms);
}

void bench_latency_inside(struct bench *bench)
{
    static struct stage stage;
    pthread_t thread;
    bench_open(bench);
    hf_worker *worker = new_worker(bench->client, &stage);
    pthread_create(&thread, NULL, bench_work, worker);
    measure_latency(bench, &stage, "latency_inside", trigger_by_call);
    hf_worker_stop(worker);
    pthread_join(thread, NULL);
    hf_worker_free(worker);
}

/* The worker is here, the server another process. */
void bench_latency_http(struct bench *bench)
{
    static struct stage stage;
    pthread_t thread;
    bench_open(bench);
    hf_worker *worker = new_worker(bench->client, &stage);
    pthread_create(&thread, NULL, bench_work, worker);
    measure_latency(bench, &stage, "latency_http", trigger_by_request);
    hf_worker_stop(worker);
    pthread_join(thread, NULL);
    hf_worker_free(worker);
}

void bench_latency_across(struct bench *bench)
{
    struct stage *stage =
        mmap(NULL, sizeof *stage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    if (child == 0) {
        bench_open(bench);
        bench_work(new_worker(bench->client, stage));
        _exit(0);
    }
    while (!atomic_load(&stage->ready))
        bench_nap(1);
    bench_open(bench);
    measure_latency(bench, stage, "latency_across", trigger_by_call);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    munmap(stage, sizeof *stage);
}

/* The store is filled by another process, so that only the worker's own memory counts. */
void bench_memory(struct bench *bench)
{
    static struct stage stage;
    pthread_t thread;
    pid_t child = fork();
    if (child == 0) {
        bench_open(bench);
        bench_fill(bench, bench->count);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    bench_open(bench);
    hf_worker *worker = new_worker(bench->client, &stage);
    pthread_create(&thread, NULL, bench_work, worker);
    bench_await(&stage.committed, bench->count / 2);
    printf("{\"workload\":\"memory\",\"n\":%ld,\"resident_mb\":%.1f}\n", bench->count,
           (double)bench_status("VmHWM") / 1024);
    hf_worker_stop(worker);
    pthread_join(thread, NULL);
    hf_worker_free(worker);
}

void bench_first_claim(struct bench *bench)
{
    static struct stage stage;
    pthread_t thread;
    bench_open(bench);
    bench_fill(bench, bench->count);
    hf_close(bench->client);
    double from = bench_seconds();
    bench_open(bench);
    hf_worker *worker = new_worker(bench->client, &stage);
    pthread_create(&thread, NULL, bench_work, worker);
    bench_await(&stage.handled, 1);
    double ms = (atomic_load(&stage.started) - from) * 1000;
    bench_latency(bench, "first_claim", &ms, 1);
    hf_worker_stop(worker);
    pthread_join(thread, NULL);
    hf_worker_free(worker);
}
