/* A worker to be killed. What it does goes into a log that survives it, one line each, written at once:
 *
 *   start TOKEN RUN ATTEMPT             a handler began; TOKEN is unique and becomes part of the run's result
 *   held TOKEN RUN                      the store has the claim and the worker knows it; the handler waits, see "hold"
 *   end TOKEN RUN CODE                  the handler returned this code
 *   finished WORKER RUN ATTEMPT STATUS  the store has taken the decision
 *   lost WORKER RUN ATTEMPT             the store has refused it, or the run was taken away
 *   store_lost, store_back, started, draining, stopped, each with the worker's name
 *
 * A handler sleeps as long as the run's input says, {"ms": 20, "stubborn": 1}, else up to 5 ms and seldom 800, stubbornly.
 * Unless it is stubborn, it looks now and then whether it still holds the run. "pad" makes its result so many bytes larger.
 * "kill" kills its worker. "hold" makes it wait for a file beside the log, LOG.go for all workers or LOG.go.NAME for one.
 * SPDX-License-Identifier: Apache-2.0 */
#include <holdfast/holdfast.h>

#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SLICE_MS 10
#define LONG_MS 800

static const char *name = "worker";
static const char *log_path;
static int log_fd = -1;
static hf_worker *worker;
static atomic_uint tokens;

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* One write each: lines of several processes never mix, and a kill cuts none in two. */
static void say(const char *fmt, ...)
{
    char line[256];
    va_list args;
    va_start(args, fmt);
    int length = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (write(log_fd, line, (size_t)length) != length)
        abort();
}

static void sleep_ms(long ms)
{
    struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
    nanosleep(&time, NULL);
}

/* ---- The handler ---- */

static long number_in(const char *json, const char *member, long otherwise)
{
    const char *at = strstr(json, member);
    return at ? strtol(at + strlen(member), NULL, 10) : otherwise;
}

/* Mostly short; some long enough to be stopped in the middle, and to be at work when its former holder comes back. */
static long some_ms(void)
{
    return random() % 100 == 0 ? LONG_MS : random() % 6;
}

static hf_code work_for(const hf_ctx *ctx, long ms, bool stubborn)
{
    hf_code code = HF_OK;
    if (stubborn)
        sleep_ms(ms);
    for (; !stubborn && ms > 0 && code == HF_OK; ms -= SLICE_MS) {
        sleep_ms(ms < SLICE_MS ? ms : SLICE_MS);
        code = hf_check(ctx);
    }
    return code;
}

static bool may_go(void)
{
    char all[4096], own[4096];
    snprintf(all, sizeof all, "%s.go", log_path);
    snprintf(own, sizeof own, "%s.go.%s", log_path, name);
    return access(all, F_OK) == 0 || access(own, F_OK) == 0;
}

/* A handler may begin before its claim is committed; what it writes waits for that. */
static hf_code hold(hf_ctx *ctx, const char *token, const char *run)
{
    hf_code code = hf_progress(ctx, 0, "held");
    if (code != HF_OK)
        return code;
    say("held %s %s\n", token, run);
    while (!may_go())
        sleep_ms(SLICE_MS);
    return HF_OK;
}

static hf_code give_result(hf_ctx *ctx, const char *token, long pad)
{
    char *result = NULL;
    char *padding = calloc(1, (size_t)pad + 1);
    if (!padding)
        return HF_NOMEM;
    memset(padding, 'x', (size_t)pad);
    hf_code code = HF_NOMEM;
    if (asprintf(&result, "{\"token\":\"%s\",\"pad\":\"%s\"}", token, padding) > 0)
        code = hf_return(ctx, result);
    free(result);
    free(padding);
    return code;
}

static hf_code handle(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    char token[100], run[HF_ID_TEXT];
    (void)arg, (void)err;
    hf_id_format(hf_ctx_run(ctx), run);
    snprintf(token, sizeof token, "%s-%d-%u", name, (int)getpid(), atomic_fetch_add(&tokens, 1));
    say("start %s %s %d\n", token, run, hf_ctx_attempt(ctx));
    if (number_in(input, "\"kill\":", 0) && hf_ctx_attempt(ctx) == 1)
        kill(getpid(), SIGKILL);
    long ms = number_in(input, "\"ms\":", some_ms());
    bool stubborn = ms == LONG_MS || number_in(input, "\"stubborn\":", 0) != 0;
    hf_code code = number_in(input, "\"hold\":", 0) ? hold(ctx, token, run) : HF_OK;
    if (code == HF_OK)
        code = work_for(ctx, ms, stubborn);
    say("end %s %s %s\n", token, run, hf_code_name(code));
    if (code != HF_OK)
        return code;
    return give_result(ctx, token, number_in(input, "\"pad\":", 0));
}

/* ---- The worker ---- */

static void observe(const hf_worker_event *event, void *arg)
{
    char run[HF_ID_TEXT];
    (void)arg;
    if (event->workflow && strncmp(event->workflow, "holdfast.", 9) == 0)
        return; /* the engine's own chores */
    hf_id_format(event->run, run);
    switch (event->kind) {
    case HF_WORKER_STARTED: say("started %s\n", name); break;
    case HF_WORKER_RUN_STARTED: break;
    case HF_WORKER_RUN_FINISHED:
        say("finished %s %s %d %s\n", name, run, event->attempt, hf_status_name(event->status));
        break;
    case HF_WORKER_RUN_LOST: say("lost %s %s %d\n", name, run, event->attempt); break;
    case HF_WORKER_STORE_LOST: say("store_lost %s %.100s\n", name, event->message); break;
    case HF_WORKER_STORE_BACK: say("store_back %s\n", name); break;
    case HF_WORKER_DRAINING: say("draining %s\n", name); break;
    case HF_WORKER_THREAD_LOST:
    case HF_WORKER_THREAD_BACK:
    case HF_WORKER_STOPPED: say("stopped %s\n", name); break;
    }
}

static void on_stop(int signal_number)
{
    (void)signal_number;
    hf_worker_stop(worker);
}

/* A store that is down is expected to come back. */
static hf_client *open_store(const char *url)
{
    hf_error err;
    hf_client *client = NULL;
    hf_options options = HF_OPTIONS_INIT;
    hf_code code;
    while ((code = hf_open(&client, url, &options, &err)) == HF_UNAVAILABLE)
        sleep_ms(50);
    if (code == HF_OK)
        return client;
    fprintf(stderr, "%s: cannot open the store: %s\n", name, err.message);
    exit(1);
}

/* Says that the store is open, and goes on when the file is there. */
static void await_gate(const char *path)
{
    say("opened %s\n", name);
    while (access(path, F_OK) != 0)
        sleep_ms(20);
}

static hf_code serve(hf_client *client, const hf_worker_options *options, hf_error *err)
{
    struct sigaction action = { .sa_handler = on_stop };
    hf_code code = hf_worker_new(&worker, client, options, err);
    if (code == HF_OK)
        code = hf_worker_handle(worker, "crash.*", handle, NULL, err);
    if (code == HF_OK) {
        sigaction(SIGTERM, &action, NULL);
        code = hf_worker_run(worker, err);
    }
    hf_worker_free(worker);
    return code;
}

int main(int argc, char **argv)
{
    const char *url = NULL, *gate = NULL;
    hf_worker_options options = HF_WORKER_OPTIONS_INIT;
    options.observer = observe;
    for (int c; (c = getopt(argc, argv, "u:l:n:p:t:s:g:")) != -1;) {
        switch (c) {
        case 'u': url = optarg; break;
        case 'l': log_path = optarg; break;
        case 'n': name = optarg; break;
        case 'g': gate = optarg; break;
        case 'p': options.poll = HF_MILLISECONDS(atoi(optarg)); break;
        case 't': options.threads = atoi(optarg); break;
        case 's': options.stop_limit = HF_MILLISECONDS(atoi(optarg)); break;
        default: return 2;
        }
    }
    if (!url || !log_path)
        return 2;
    options.name = name;
    srandom((unsigned)getpid());
    log_fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log_fd < 0)
        return 2;
    hf_error err;
    hf_client *client = open_store(url);
    if (gate)
        await_gate(gate);
    hf_code code = serve(client, &options, &err);
    hf_close(client);
    if (code != HF_OK)
        fprintf(stderr, "%s: %s\n", name, err.message);
    return code == HF_OK ? 0 : 1;
}
