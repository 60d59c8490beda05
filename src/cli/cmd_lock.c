/* holdfast lock
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/child.h"
#include "cli/commands.h"
#include "cli/renewer.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_TTL HF_SECONDS(30)
#define SHORTEST_TTL HF_SECONDS(1) /* below it, a busy machine loses the lock by accident */
#define FOREVER HF_DAYS(36500)

enum { CANNOT_RUN = 126, NO_SUCH_PROGRAM = 127 }; /* as shells do */

static struct {
    int64_t ttl;
    struct cli_maybe wait;
    const char *holder;
} args;

static const struct cli_option options[] = {
    CLI_OPT(DURATION, 0, "ttl", "DURATION",
            "the lock ends so long after this process is gone; default 30s", .value = &args.ttl),
    CLI_OPT(MAYBE_DURATION, 0, "wait", "DURATION",
            "wait for the lock, at most so long, instead of giving up", .value = &args.wait),
    CLI_OPT(TEXT, 0, "holder", "NAME", "who holds it, for others to see; default host:pid",
            .value = &args.holder),
    CLI_OPTIONS_END,
};

struct signals {
    sigset_t blocked; /* those that are waited for */
    sigset_t before;  /* the mask that the command gets */
};

static void name_holder(char *out, size_t size)
{
    char host[65] = "localhost";
    gethostname(host, sizeof host - 1);
    snprintf(out, size, "%s:%ld", host, (long)getpid());
}

/* Signals end us as usual while we only wait. */
static hf_code acquire(struct cli_session *session, struct cli_renewer *renewer, const char *name,
                       const struct signals *signals, hf_error *err)
{
    char holder[128];
    name_holder(holder, sizeof holder);
    int64_t wait = !args.wait.given ? 0 : args.wait.value < 0 ? FOREVER : args.wait.value;
    pthread_sigmask(SIG_SETMASK, &signals->before, NULL);
    hf_code code = hf_lock_acquire(session->client, &renewer->lock, name,
                                   args.holder ? args.holder : holder, renewer->ttl, wait, err);
    pthread_sigmask(SIG_BLOCK, &signals->blocked, NULL);
    return code;
}

/* The lock ends by the store's clock; this is the same moment on ours, or a little earlier. */
static int64_t end_of_lock(struct cli_session *session, const struct cli_renewer *renewer)
{
    int64_t store_now;
    int64_t here = hf__monotonic_us();
    if (hf_store_now(session->client, &store_now, NULL) != HF_OK)
        return here;
    int64_t left = renewer->lock.until - store_now;
    return here + (left < renewer->ttl ? left : renewer->ttl);
}

/* Our environment with the token added; yours to free, its strings are not. */
static char **environment_with(char *token)
{
    static const char variable[] = "HOLDFAST_LOCK_TOKEN=";
    size_t count = 0;
    while (environ[count])
        count++;
    char **copy = hf__calloc(count + 2, sizeof *copy);
    size_t kept = 0;
    for (size_t i = 0; copy && i < count; i++)
        if (strncmp(environ[i], variable, sizeof variable - 1) != 0)
            copy[kept++] = environ[i];
    if (copy)
        copy[kept] = token;
    return copy;
}

/* Ends the group before the lock does: asked at first, then by force. True: it was lost. */
static bool guard(struct cli_child *child, struct cli_renewer *renewer, bool *asked)
{
    int64_t left = atomic_load(&renewer->valid_until) - hf__monotonic_us();
    if (atomic_load(&renewer->lost) || left <= 0) {
        cli_child_kill(child, SIGKILL);
        return true;
    }
    if (left <= renewer->ttl / 6 && !*asked) {
        cli_child_kill(child, SIGTERM);
        *asked = true;
    }
    return *asked;
}

/* How long to sleep until guard has something to do. */
static int64_t patience(const struct cli_renewer *renewer, bool asked)
{
    int64_t left = atomic_load(&renewer->valid_until) - hf__monotonic_us();
    return asked ? left : left - renewer->ttl / 6;
}

static int attend_until_end(struct cli_child *child, struct cli_renewer *renewer,
                            const sigset_t *blocked)
{
    bool asked = false;
    bool lost = false;
    while (!child->ended) {
        int64_t pause = lost ? HF_SECONDS(1) : patience(renewer, asked);
        cli_child_attend(child, blocked, pause);
        if (!child->ended && guard(child, renewer, &asked))
            lost = true;
    }
    cli_child_finish(child);
    if (lost)
        cli_child_kill(child, SIGKILL);
    return lost ? CLI_LOCK_LOST : child->exit_code;
}

static int cannot_start(struct cli_session *session, const char *program, int failure)
{
    cli_failf(session, HF_INVALID, "cannot run \"%.200s\": %s", program, strerror(failure));
    return failure == ENOENT ? NO_SUCH_PROGRAM : CANNOT_RUN;
}

static int run_child(struct cli_session *session, struct cli_renewer *renewer, char **argv,
                     const struct signals *signals)
{
    char token[64];
    struct cli_child child;
    snprintf(token, sizeof token, "HOLDFAST_LOCK_TOKEN=%" PRId64, renewer->lock.token);
    char **environment = environment_with(token);
    if (!environment)
        return cli_failf(session, HF_NOMEM, "memory ran out");
    int failure = cli_child_start(&child, argv, environment, &signals->before);
    free(environment);
    if (failure)
        return cannot_start(session, argv[0], failure);
    int status = attend_until_end(&child, renewer, &signals->blocked);
    if (status == CLI_LOCK_LOST)
        cli_notice(session, "the lock %s was lost; the command was ended", renewer->lock.name);
    return status;
}

static int run_locked(struct cli_session *session, const char *name, char **argv,
                      const struct signals *signals)
{
    struct cli_renewer renewer = { .client = session->client,
                                   .ttl = args.ttl ? args.ttl : DEFAULT_TTL };
    hf_error err = { 0 };
    if (acquire(session, &renewer, name, signals, &err) != HF_OK ||
        cli_renewer_start(&renewer, end_of_lock(session, &renewer), &err) != HF_OK)
        return cli_fail(session, &err);
    int status = run_child(session, &renewer, argv, signals);
    cli_renewer_stop(&renewer);
    if (hf_lock_release(session->client, &renewer.lock, &err) != HF_OK && err.code != HF_STALE)
        cli_notice(session, "the lock %s could not be released (%s); it ends by itself", name,
                   err.message);
    return status;
}

static int lock(struct cli_session *session, int count, char **operands)
{
    (void)count;
    int status = CLI_OK;
    struct signals signals;
    if (args.ttl && args.ttl < SHORTEST_TTL)
        return cli_usage(session, "--ttl must be at least 1s");
    if (args.holder && strlen(args.holder) > 255)
        return cli_usage(session, "--holder is longer than 255 bytes");
    cli_child_block_signals(&signals.blocked, &signals.before);
    if (!cli_open(session, &status))
        return status;
    return run_locked(session, operands[0], operands + 1, &signals);
}

const struct cli_command cli_command_lock = {
    .name = "lock",
    .summary = "Run a command that only one machine may run at a time",
    .operands = "NAME -- COMMAND [ARGUMENT...]",
    .details =
        "Takes the lock NAME, runs COMMAND, gives the lock back, and exits with COMMAND's exit "
        "code (128 + n if signal n ended it). Exit code 73: somebody else holds it. The lock is "
        "renewed while COMMAND runs; should it be lost all the same, COMMAND and all that it "
        "started are ended, with exit code 74.\n"
        "COMMAND finds HOLDFAST_LOCK_TOKEN in its environment, a number that rises with every "
        "holder: hand it to what the lock protects, so that it can refuse an old holder. Signals "
        "are passed on.",
    .examples = "holdfast lock nightly-report -- ./report.sh\n"
                "holdfast lock import --wait=10m --ttl 1m -- python3 import.py --all",
    .min_operands = 2,
    .max_operands = CLI_MANY,
    .options = options,
    .creates = true,
    .run = lock,
};
