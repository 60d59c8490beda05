/* Durable functions: steps that are durable before the next begins, a fan-out, and runs that sleep.
 * SPDX-License-Identifier: Apache-2.0 */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define STEPS 10
#define STEPS_THREADS 64
#define WARM_UP 20000 /* runs */
#define SLEEP_FOR 10  /* seconds of watching */
#define HANDS_MOST 16 /* more processes of a fan-out */

struct stage {
    atomic_long finished;
    atomic_long asleep;
    atomic_bool tired; /* runs sleep from now on */
    long children;
};

static hf_code ten_steps(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    char name[16];
    (void)input;
    (void)err;
    (void)arg;
    for (int i = 0; i < STEPS; i++) {
        hf_step step;
        snprintf(name, sizeof name, "step-%d", i);
        if (hf_step_begin(ctx, name, &step))
            hf_try(hf_step_done(&step, "1"));
    }
    return HF_OK;
}

static hf_code noop(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)ctx;
    (void)input;
    (void)err;
    (void)arg;
    return HF_OK;
}

static hf_code sleeper(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    const struct stage *stage = arg;
    (void)input;
    (void)err;
    return atomic_load(&stage->tired) ? hf_sleep(ctx, "long", HF_DAYS(1)) : HF_OK;
}

static hf_code fan_out(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    const struct stage *stage = arg;
    size_t count = (size_t)stage->children;
    hf_trigger_spec *specs = calloc(count, sizeof *specs);
    hf_id *ids = calloc(count, sizeof *ids);
    hf_child_end *ends = calloc(count, sizeof *ends);
    hf_code code = HF_NOMEM;
    (void)input;
    (void)err;
    for (size_t i = 0; specs && i < count; i++) {
        specs[i] = (hf_trigger_spec)HF_TRIGGER_INIT;
        specs[i].workflow = BENCH_WORKFLOW;
    }
    if (specs && ids && ends)
        code = hf_children_start(ctx, "children", specs, count, ids);
    if (code == HF_OK)
        code = hf_children_wait(ctx, "all", ids, count, HF_WAIT_ALL, 0, ends);
    free(specs);
    free(ids);
    free(ends);
    return code;
}

/* Of our own runs: a worker's chores end as well, and are not what is counted. */
static void observe(const hf_worker_event *event, void *arg)
{
    struct stage *stage = arg;
    if (event->kind != HF_WORKER_RUN_FINISHED || strncmp(event->workflow, "bench.", 6) != 0)
        return;
    if (event->status == HF_WAITING)
        atomic_fetch_add(&stage->asleep, 1);
    if (event->status == HF_SUCCEEDED)
        atomic_fetch_add(&stage->finished, 1);
    if (event->status == HF_FAILED)
        fprintf(stderr, "a run failed: %s\n", event->message ? event->message : "");
}

static hf_worker *new_worker(struct bench *bench, struct stage *stage, hf_handler handler,
                             int threads)
{
    hf_error err;
    hf_worker *worker;
    hf_worker_options options = HF_WORKER_OPTIONS_INIT;
    options.observer = observe;
    options.observer_arg = stage;
    options.threads = threads;
    if (hf_worker_new(&worker, bench->client, &options, &err) != HF_OK ||
        hf_worker_handle(worker, BENCH_WORKFLOW, handler, stage, &err) != HF_OK ||
        hf_worker_handle(worker, "bench.fan.v1", fan_out, stage, &err) != HF_OK)
        bench_die("worker", &err);
    return worker;
}

static void end(hf_worker *worker, pthread_t thread)
{
    hf_worker_stop(worker);
    pthread_join(thread, NULL);
    hf_worker_free(worker);
}

void bench_steps(struct bench *bench)
{
    static struct stage stage;
    pthread_t thread;
    bench_open(bench);
    bench_fill(bench, bench->count);
    hf_worker *worker =
        new_worker(bench, &stage, ten_steps, bench->callers ? bench->callers : STEPS_THREADS);
    double from = bench_seconds();
    pthread_create(&thread, NULL, bench_work, worker);
    bench_await(&stage.finished, bench->count);
    bench_rate(bench, "steps", bench->count * STEPS, bench_seconds() - from);
    end(worker, thread);
}

/* Another process that works until it is killed. */
static pid_t hire(struct bench *bench, struct stage *stage)
{
    pid_t hand = fork();
    if (hand == 0) {
        bench_open(bench);
        bench_work(new_worker(bench, stage, noop, 0));
        _exit(1);
    }
    return hand;
}

static void dismiss(pid_t hand)
{
    kill(hand, SIGKILL);
    waitpid(hand, NULL, 0);
}

/* With so many more processes as there are callers. */
void bench_fan_out(struct bench *bench)
{
    static struct stage stage;
    pthread_t thread;
    hf_error err;
    hf_triggered out;
    hf_run *run = NULL;
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    pid_t hands[HANDS_MOST];
    int others = bench->callers < HANDS_MOST ? bench->callers : HANDS_MOST;
    stage.children = bench->count;
    for (int i = 0; i < others; i++)
        hands[i] = hire(bench, &stage);
    bench_open(bench);
    hf_worker *worker = new_worker(bench, &stage, noop, 0);
    spec.workflow = "bench.fan.v1";
    pthread_create(&thread, NULL, bench_work, worker);
    bench_nap(others ? 1000 : 300);
    double from = bench_seconds();
    if (hf_trigger(bench->client, &out, &spec, &err) != HF_OK ||
        hf_wait(bench->client, &run, out.id, HF_MINUTES(10), &err) != HF_OK)
        bench_die("fan-out", &err);
    if (run->status != HF_SUCCEEDED)
        fprintf(stderr, "the fan-out failed: %s\n", run->last_error);
    bench_rate(bench, "fan_out", bench->count, bench_seconds() - from);
    hf_run_free(run);
    for (int i = 0; i < others; i++)
        dismiss(hands[i]);
    end(worker, thread);
}

static double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* What fell asleep has written lines, which the worker seals: that is not what sleeping costs. A look goes through the whole
 * journal, and the worker has use for the processor. */
static void await_seals(struct bench *bench)
{
    hf_error err;
    hf_audit_report report = { .unsealed = bench->count };
    for (int tries = 0; report.unsealed >= 1000 && tries < 100; tries++) {
        bench_nap(3000);
        if (hf_audit_verify(bench->client, &report, NULL, &err) != HF_OK)
            bench_die("audit", &err);
    }
}

/* How far it has come, shared between the worker and a process that fills the store and looks at its journal: what that takes
 * in memory is not the worker's. */
enum { WARMING = 1, WARM, ASLEEP, SEALED };

static void attend(struct bench *bench, atomic_long *progress)
{
    bench_open(bench);
    bench_fill(bench, WARM_UP);
    atomic_store(progress, WARMING);
    bench_await(progress, WARM);
    bench_fill(bench, bench->count);
    bench_await(progress, ASLEEP);
    await_seals(bench);
    hf_close(bench->client);
    atomic_store(progress, SEALED);
}

/* What the allocator has kept of memory that was freed is nobody's any more. */
static void print_asleep(const struct bench *bench, double core_percent)
{
    malloc_trim(0);
    printf("{\"workload\":\"asleep\",\"n\":%ld,\"core_percent\":%.3f,\"resident_mb\":%.1f,"
           "\"peak_mb\":%.1f,\"threads\":%ld}\n",
           bench->count, core_percent, (double)bench_status("VmRSS") / 1024,
           (double)bench_status("VmHWM") / 1024, bench_status("Threads"));
}

/* Before anybody sleeps, so many runs are drained that the caches of worker and store are as large as they get. */
static void put_to_sleep(struct bench *bench, struct stage *stage, atomic_long *progress)
{
    bench_await(&stage->finished, WARM_UP);
    atomic_store(&stage->tired, true);
    atomic_store(progress, WARM);
    bench_await(&stage->asleep, bench->count);
    atomic_store(progress, ASLEEP);
    bench_await(progress, SEALED);
    bench_nap(1000);
}

void bench_asleep(struct bench *bench)
{
    static struct stage stage;
    pthread_t thread;
    atomic_long *progress =
        mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    if (child == 0) {
        attend(bench, progress);
        _exit(0);
    }
    bench_await(progress, WARMING);
    bench_open(bench);
    hf_worker *worker = new_worker(bench, &stage, sleeper, 0);
    pthread_create(&thread, NULL, bench_work, worker);
    put_to_sleep(bench, &stage, progress);
    double before = cpu_seconds();
    bench_nap(SLEEP_FOR * 1000);
    print_asleep(bench, (cpu_seconds() - before) / SLEEP_FOR * 100);
    end(worker, thread);
    waitpid(child, NULL, 0);
    munmap(progress, sizeof *progress);
}
