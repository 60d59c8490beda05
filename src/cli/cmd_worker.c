/* holdfast worker
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/words.h"
#include "cli/worker_log.h"
#include "util/alloc.h"
#include "util/error.h"

#include <holdfast/worker.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static struct {
    struct cli_texts execs, prefixes, tenants;
    int64_t exec_limit, threads, poll, stop_limit;
    const char *name;
} args;

static const struct cli_option options[] = {
    CLI_OPT(TEXTS, 'x', "exec", "PATTERN=COMMAND",
            "run COMMAND for these workflows, billing.charge.v1 or billing.*; may be repeated",
            .value = &args.execs),
    CLI_OPT(DURATION, 0, "exec-limit", "DURATION", "end a COMMAND that takes longer",
            .value = &args.exec_limit, .min = -1),
    CLI_OPT(TEXTS, 0, "prefix", "PREFIX",
            "claim the workflows whose name begins so, as in billing.; may be repeated",
            .value = &args.prefixes),
    CLI_OPT(NUMBER, 0, "threads", "N", "runs at once; default two for each core, at least 4",
            .value = &args.threads, .min = 1, .max = HF_MAX_THREADS),
    CLI_OPT(TEXT, 0, "name", "NAME", "its unique name; default host:pid:random",
            .value = &args.name),
    CLI_OPT(TEXTS, 0, "serve-tenant", "TENANT",
            "serve this tenant, * for all; may be repeated; default the one of --tenant",
            .value = &args.tenants),
    CLI_OPT(DURATION, 0, "poll", "DURATION",
            "look for work at least so often, in case a wake-up was lost; default 5s",
            .value = &args.poll, .min = -1),
    CLI_OPT(DURATION, 0, "stop-limit", "DURATION",
            "time for what is running after a stop; default 30s", .value = &args.stop_limit,
            .min = -1),
    CLI_OPTIONS_END,
};

/* The prefixes from the environment, split at commas; `text` is changed. */
static hf_code add_prefixes(char *text, hf_error *err)
{
    char *rest = NULL;
    for (char *word = strtok_r(text, ", ", &rest); word; word = strtok_r(NULL, ", ", &rest)) {
        const char **grown =
            hf__realloc(args.prefixes.items, (args.prefixes.count + 1) * sizeof *grown);
        if (!grown)
            return hf__nomem(err);
        args.prefixes.items = grown;
        args.prefixes.items[args.prefixes.count++] = word;
    }
    return HF_OK;
}

static hf_code prefixes_from_environment(hf_error *err)
{
    static char *kept; /* the prefixes point into it */
    const char *variable = getenv("WORKER_TYPE_PREFIXES");
    if (args.prefixes.count > 0 || !variable || !*variable)
        return HF_OK;
    kept = hf__strdup(variable);
    return kept ? add_prefixes(kept, err) : hf__nomem(err);
}

static bool is_covered(const char *pattern, size_t length)
{
    if (length > 0 && pattern[length - 1] == '*')
        length--;
    for (size_t i = 0; i < args.prefixes.count; i++) {
        size_t prefix = strcspn(args.prefixes.items[i], "*");
        size_t shorter = prefix < length ? prefix : length;
        if (strncmp(args.prefixes.items[i], pattern, shorter) == 0)
            return true;
    }
    return args.prefixes.count == 0;
}

/* Words live as long as the worker; there are as many as --exec. */
static hf_code add_exec(const struct cli_session *session, hf_worker *worker, const char *text,
                        char ***words, hf_error *err)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return hf__fail(err, HF_INVALID, "--exec wants PATTERN=COMMAND, not \"%.100s\"", text);
    hf_code code = cli_words_split(words, equals + 1, err);
    if (code != HF_OK)
        return hf__fail(err, code, "--exec \"%.100s\": %s", text, err->message);
    if (!(*words)[0] || !(*words)[0][0])
        return hf__fail(err, HF_INVALID, "--exec \"%.100s\" names no program", text);
    if (!cli_program_exists((*words)[0]))
        return hf__fail(err, HF_INVALID, "--exec \"%.100s\": there is no program \"%.200s\"", text,
                        (*words)[0]);
    if (!is_covered(text, (size_t)(equals - text)))
        cli_notice(session, "warning: no --prefix covers --exec \"%s\"; it will never run", text);
    char *pattern = hf__strndup(text, (size_t)(equals - text));
    if (!pattern)
        return hf__nomem(err);
    hf_exec_options exec = HF_EXEC_OPTIONS_INIT;
    exec.argv = (const char *const *)*words;
    exec.time_limit = args.exec_limit;
    code = hf_worker_exec(worker, pattern, &exec, err);
    free(pattern);
    return code;
}

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

static hf_worker_options worker_options(struct cli_worker_log *log)
{
    hf_worker_options chosen = HF_WORKER_OPTIONS_INIT;
    chosen.name = args.name;
    chosen.threads = (int)args.threads;
    chosen.prefixes = args.prefixes.items;
    chosen.prefix_count = args.prefixes.count;
    chosen.tenants = args.tenants.items;
    chosen.tenant_count = args.tenants.count;
    chosen.poll = args.poll;
    chosen.stop_limit = args.stop_limit;
    chosen.observer = cli_worker_log;
    chosen.observer_arg = log;
    return chosen;
}

static hf_code add_execs(const struct cli_session *session, hf_worker *worker, char ***words,
                         hf_error *err)
{
    hf_code code = HF_OK;
    for (size_t i = 0; code == HF_OK && i < args.execs.count; i++)
        code = add_exec(session, worker, args.execs.items[i], &words[i], err);
    return code;
}

static int work(struct cli_session *session)
{
    struct cli_worker_log log = { .json = session->json, .quiet = session->quiet };
    hf_worker_options chosen = worker_options(&log);
    hf_worker *worker = NULL;
    hf_error err = { 0 };
    int status = CLI_OK;
    char ***words = hf__calloc(args.execs.count + 1, sizeof *words);
    if (!words) {
        hf__nomem(&err);
        return cli_fail(session, &err);
    }
    hf_code code = hf_worker_new(&worker, session->client, &chosen, &err);
    if (code == HF_OK)
        code = add_execs(session, worker, words, &err);
    if (code == HF_OK) {
        handle_signals(worker);
        code = hf_worker_run(worker, &err);
        stoppable = NULL;
    }
    if (code != HF_OK)
        status = cli_fail(session, &err);
    hf_worker_free(worker);
    for (size_t i = 0; i < args.execs.count; i++)
        free(words[i]);
    free(words);
    return status;
}

static int worker(struct cli_session *session, int count, char **operands)
{
    (void)count, (void)operands;
    hf_error err = { 0 };
    int status = CLI_OK;
    if (prefixes_from_environment(&err) != HF_OK)
        return cli_fail(session, &err);
    if (args.execs.count == 0 && args.prefixes.count == 0)
        return cli_usage(session,
                         "nothing to run; give --exec, as in --exec 'default.*=./program'");
    if (args.execs.count == 0)
        cli_notice(session, "warning: without --exec every run it claims fails as "
                            "no_handler_registered");
    if (!cli_open(session, &status))
        return status;
    /* For programs that trigger or read runs themselves; the tenant is the run's. */
    setenv("HOLDFAST_STORE", session->store, 1);
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
        "either, the patterns of --exec do. A run that is claimed and matches no --exec fails "
        "with no_handler_registered.\n"
        "SIGTERM or SIGINT stops it: no new runs, what is running may end within --stop-limit, "
        "the rest is given back. A second signal gives back at once. What happens is logged to "
        "stderr, a line each.",
    .examples = "holdfast worker --exec 'billing.*=./charge.sh --live' --threads 8\n"
                "WORKER_TYPE_PREFIXES=billing.,mail. holdfast worker -x 'billing.*=./bill' -x "
                "'mail.*=./mail'",
    .options = options,
    .creates = true,
    .run = worker,
};
