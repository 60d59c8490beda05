/* holdfast worker
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/place.h"
#include "cli/work.h"
#include "server/server.h"

#include <signal.h>
#include <string.h>

static const char *metrics_at;
static bool insecure;

static const struct cli_option options[] = {
    CLI_OPT(TEXT, 0, "metrics", "HOST:PORT",
            "serve the worker's metrics there, at /metrics, and its health at /healthz",
            .value = &metrics_at),
    CLI_OPT(SWITCH, 0, "insecure", NULL,
            "let everybody who reaches them see the metrics, although they are served beyond this "
            "machine",
            .value = &insecure),
    CLI_OPTIONS_OF(cli_work_options),
    CLI_OPTIONS_END,
};

/* Async-signal-safe, since hf_worker_stop is. A second signal gives back at once. */
static hf_worker *volatile stoppable;

static void stop(int number)
{
    (void)number;
    if (stoppable)
        hf_worker_stop(stoppable);
}

/* A handler instead of SIG_IGN, so that programs that the worker starts do not inherit it. */
static void ignore(int number)
{
    (void)number;
}

static void handle_signals(hf_worker *worker)
{
    struct sigaction action = { .sa_handler = stop, .sa_flags = SA_RESTART };
    stoppable = worker;
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    action.sa_handler = ignore;
    sigaction(SIGPIPE, &action, NULL);
}

/* NULL: it was not asked for. */
static hf_code serve_metrics(struct hf__server **out, struct cli_session *session, hf_error *err)
{
    struct cli_place place;
    bool tokens = false;
    if (!metrics_at)
        return HF_OK;
    hf_code code = cli_place_read(&place, "--metrics", metrics_at, err);
    if (code == HF_OK)
        code = cli_place_guard(&place, session->client, insecure, &tokens, err);
    struct hf__server_options chosen = {
        .host = place.host,
        .port = place.port,
        .open = !tokens,
        .hands = 1,
        .metrics_only = true,
    };
    if (code == HF_OK)
        code = hf__server_start(out, session->client, &chosen, err);
    if (code == HF_OK)
        cli_notice(session, "metrics at %s/metrics", hf__server_url(*out));
    return code;
}

static int work(struct cli_session *session)
{
    struct cli_log log = { .json = session->json, .quiet = session->quiet };
    struct cli_work work;
    struct hf__server *metrics = NULL;
    hf_error err = { 0 };
    hf_code code = cli_work_new(&work, session, cli_worker_log, &log, false, &err);
    if (code != HF_OK)
        return cli_fail(session, &err);
    code = serve_metrics(&metrics, session, &err);
    if (code == HF_OK) {
        handle_signals(work.worker);
        code = hf_worker_run(work.worker, &err);
        stoppable = NULL;
    }
    hf__server_stop(metrics, HF_SECONDS(1));
    cli_work_free(&work);
    return code == HF_OK ? CLI_OK : cli_fail(session, &err);
}

static int nothing_to_run(struct cli_session *session)
{
    const char *prefix = cli_work_first_prefix();
    if (!prefix)
        return cli_usage(session,
                         "nothing to run; give --exec, as in --exec ./program for default.*, or "
                         "--exec 'billing.*=./program'");
    return cli_usage(
        session,
        "nothing to run: --prefix (or WORKER_TYPE_PREFIXES) says what to claim, --exec "
        "what to run for it; add it, as in --exec '%.*s*=./program'",
        (int)strcspn(prefix, "*"), prefix);
}

static int worker(struct cli_session *session, int count, char **operands)
{
    (void)count, (void)operands;
    hf_error err = { 0 };
    int status = CLI_OK;
    if (cli_work_prefixes(&err) != HF_OK)
        return cli_fail(session, &err);
    if (!cli_work_has_execs())
        return nothing_to_run(session);
    if (!cli_open(session, &status))
        return status;
    return work(session);
}

const struct cli_command cli_command_worker = {
    .name = "worker",
    .summary = "Work on runs: claim them and run a program for each",
    .operands = "",
    .details =
        "The program gets the run's input on stdin; its stdout is the result (JSON, or text that "
        "becomes a JSON string). Exit code 0: succeeded. 75: try again later. 78: failed for "
        "good. Any other: failed, with the end of stderr as the error, and tried again by the "
        "workflow's policy. A program can remember steps, sleep for days and wait for signals: "
        "see `holdfast help step`.\n"
        "COMMAND is split into words at blanks; '...', \"...\" and \\ quote as in a shell, nothing "
        "is expanded, and no shell is used. The longest matching PATTERN wins.\n"
        "Without --prefix, WORKER_TYPE_PREFIXES (separated by commas) says what to claim; without "
        "either, the patterns of --exec do, and for an --exec without one, default.*. A run that "
        "is claimed and matches no --exec fails with no_handler_registered.\n"
        "SIGTERM or SIGINT stops it: no new runs, what is running may end within --stop-limit, "
        "the rest is given back. A second signal gives back at once. What happens is logged to "
        "stderr, a line each.",
    .examples = "holdfast worker --exec ./handler.sh\n"
                "holdfast worker --exec 'billing.*=./charge.sh --live' --threads 8\n"
                "WORKER_TYPE_PREFIXES=billing.,mail. holdfast worker -x 'billing.*=./bill' -x "
                "'mail.*=./mail'",
    .options = options,
    .creates = true,
    .run = worker,
};
