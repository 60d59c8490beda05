/* holdfast serve
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/place.h"
#include "cli/serve_log.h"
#include "cli/work.h"
#include "server/server.h"
#include "util/error.h"
#include "util/thread.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define REGISTERED_WITHIN 10 /* seconds */

static struct {
    const char *listen;
    const char *certificate, *private_key;
    int64_t max_body;
    int64_t max_connections;
    int64_t receive_limit; /* us */
    bool insecure, no_api, no_worker, no_dashboard;
} args;

static const struct cli_option options[] = {
    CLI_OPT(TEXT, 'l', "listen", "HOST:PORT", "where to listen; default 127.0.0.1:8420",
            .value = &args.listen),
    CLI_OPT(TEXT, 0, "tls-cert", "FILE", "serve HTTPS with this certificate chain (PEM)",
            .value = &args.certificate),
    CLI_OPT(TEXT, 0, "tls-key", "FILE", "its private key (PEM)", .value = &args.private_key),
    CLI_OPT(NUMBER, 0, "max-body", "BYTES", "largest request; default 16777216",
            .value = &args.max_body, .min = 1024, .max = 1073741824),
    CLI_OPT(
        NUMBER, 0, "max-connections", "N",
        "clients at once, more have to wait; default 20000, or what the system allows files for",
        .value = &args.max_connections, .min = 1, .max = 1000000),
    CLI_OPT(DURATION, 0, "receive-limit", "DURATION",
            "how long a request may take to arrive, and a connection to be idle; default 30s",
            .value = &args.receive_limit, .min = -1),
    CLI_OPT(SWITCH, 0, "insecure", NULL,
            "listen beyond this machine although there are no tokens: everybody may do everything",
            .value = &args.insecure),
    CLI_OPT(SWITCH, 0, "no-worker", NULL,
            "run nothing, not even the engine's own chores, nor deliver events",
            .value = &args.no_worker),
    CLI_OPT(SWITCH, 0, "no-dashboard", NULL, "the API alone", .value = &args.no_dashboard),
    CLI_OPT(SWITCH, 0, "no-api", NULL,
            "neither the API nor the dashboard: /metrics, /healthz and /readyz alone",
            .value = &args.no_api),
    CLI_OPTIONS_OF(cli_work_options),
    CLI_OPTIONS_END,
};

/* ---- Certificates ---- */

static hf_code read_file(char **out, const char *path, hf_error *err)
{
    enum { MOST = 1 << 20 };
    FILE *file = path ? fopen(path, "rb") : NULL;
    *out = NULL;
    if (!path)
        return HF_OK;
    if (!file)
        return hf__fail(err, HF_INVALID, "cannot read %.200s: %m", path);
    char *text = calloc(1, MOST + 1);
    size_t length = text ? fread(text, 1, MOST, file) : 0;
    fclose(file);
    if (length == 0) {
        free(text);
        return hf__fail(err, HF_INVALID, "%.200s is empty", path);
    }
    *out = text;
    return HF_OK;
}

/* ---- Running ---- */

static sigset_t stop_signals;

static void block_signals(void)
{
    sigemptyset(&stop_signals);
    sigaddset(&stop_signals, SIGTERM);
    sigaddset(&stop_signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &stop_signals, NULL);
    signal(SIGPIPE, SIG_IGN);
}

struct working {
    struct cli_work work;
    struct cli_log *log;
    sem_t underway; /* it is registered, or has ended */
    pthread_t thread;
    bool started;
    hf_code code;
    hf_error err;
};

/* A worker that cannot go on ends the server too. The signal goes to the process: this thread has blocked all of them, and
 * one that is sent to it alone would be seen by nobody. */
static void *work_main(void *arg)
{
    struct working *working = arg;
    working->code = hf_worker_run(working->work.worker, &working->err);
    if (working->code != HF_OK)
        kill(getpid(), SIGTERM);
    sem_post(&working->underway);
    return NULL;
}

static void observe(const hf_worker_event *event, void *arg)
{
    struct working *working = arg;
    cli_worker_log(event, working->log);
    if (event->kind == HF_WORKER_STARTED)
        sem_post(&working->underway);
}

/* Whoever triggers a run as soon as the server says that it is there finds its workflows. A store that is away keeps nobody. */
static void await_worker(struct working *working)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += REGISTERED_WITHIN;
    while (working->started && sem_timedwait(&working->underway, &until) != 0 && errno == EINTR)
        ;
}

static hf_code start_working(struct working *working, struct cli_session *session,
                             struct cli_log *log, hf_error *err)
{
    working->log = log;
    sem_init(&working->underway, 0, 0);
    hf_code code = cli_work_new(&working->work, session, observe, working, true, err);
    if (code == HF_OK)
        code = hf__thread_start(&working->thread, work_main, working, err);
    working->started = code == HF_OK;
    return code;
}

static void stop_working(struct working *working)
{
    if (working->started) {
        hf_worker_stop(working->work.worker);
        pthread_join(working->thread, NULL);
    }
    cli_work_free(&working->work);
}

static void wait_for_signal(void)
{
    int number;
    while (sigwait(&stop_signals, &number) != 0)
        ;
}

static hf_code start_server(struct hf__server **out, struct cli_session *session,
                            struct cli_log *log, char *texts[2], hf_error *err)
{
    struct cli_place place;
    bool tokens = false;
    hf_code code =
        cli_place_read(&place, "--listen", args.listen ? args.listen : "127.0.0.1:8420", err);
    if (code == HF_OK)
        code = cli_place_guard(&place, session->client, args.insecure, &tokens, err);
    if (code == HF_OK && !args.certificate != !args.private_key)
        code = hf__fail(err, HF_INVALID, "--tls-cert and --tls-key belong together");
    if (code == HF_OK)
        code = read_file(&texts[0], args.certificate, err);
    if (code == HF_OK)
        code = read_file(&texts[1], args.private_key, err);
    struct hf__server_options chosen = {
        .host = place.host,
        .port = place.port,
        .open = !tokens,
        .certificate = texts[0],
        .private_key = texts[1],
        .max_body = (size_t)args.max_body,
        .max_connections = (int)args.max_connections,
        .receive_limit = args.receive_limit,
        .dashboard = !args.no_dashboard && !args.no_api,
        .metrics_only = args.no_api,
        .log = cli_serve_log,
        .log_arg = log,
    };
    return code == HF_OK ? hf__server_start(out, session->client, &chosen, err) : code;
}

static void greet(const struct cli_session *session, const struct hf__server *server)
{
    if (session->json)
        printf("{\"event\":\"listening\",\"url\":\"%s\"}\n", hf__server_url(server));
    else
        printf("Listening on %s\n", hf__server_url(server));
    fflush(stdout);
}

static int serve(struct cli_session *session, int count, char **operands)
{
    (void)count, (void)operands;
    struct cli_log log = { .json = session->json, .quiet = session->quiet };
    struct working working = { 0 };
    struct hf__server *server = NULL;
    char *texts[2] = { NULL, NULL };
    hf_error err = { 0 };
    int status = CLI_OK;
    block_signals();
    if (cli_work_prefixes(&err) != HF_OK)
        return cli_fail(session, &err);
    if (!cli_open(session, &status))
        return status;
    hf_code code = start_server(&server, session, &log, texts, &err);
    if (code == HF_OK && !args.no_worker)
        code = start_working(&working, session, &log, &err);
    if (code == HF_OK) {
        await_worker(&working);
        greet(session, server);
        wait_for_signal();
    }
    if (server)
        hf__server_stop(server, HF_SECONDS(10));
    stop_working(&working);
    if (code == HF_OK && working.code != HF_OK) {
        code = working.code;
        err = working.err;
    }
    free(texts[0]);
    free(texts[1]);
    return code == HF_OK ? CLI_OK : cli_fail(session, &err);
}

const struct cli_command cli_command_serve = {
    .name = "serve",
    .summary = "Serve the HTTP API and the dashboard, and work on runs",
    .operands = "",
    .details =
        "One process that is API, dashboard, worker and dispatcher of events; each can be switched "
        "off. Without --exec the worker does the engine's own chores alone. What is switched off "
        "here some other process on the same store has to do, or it waits.\n"
        "As long as the store has no token (`holdfast token create`), everybody who reaches the "
        "server may do everything, and it listens on this machine only. From the first token on, "
        "requests need one.\n"
        "SIGTERM or SIGINT stops it: requests under way are answered, runs at work may end.",
    .examples = "holdfast serve --exec 'billing.*=./charge.sh'\n"
                "curl -s http://127.0.0.1:8420/v1/runs -H 'Content-Type: application/json' -d "
                "'{\"workflow\":\"billing.charge.v1\",\"input\":{\"invoice\":42}}'",
    .options = options,
    .creates = true,
    .run = serve,
};
