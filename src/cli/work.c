/* The worker of a command line: what it serves, and how.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/work.h"

#include "cli/words.h"
#include "util/alloc.h"
#include "util/buffer.h"
#include "util/error.h"
#include "worker/exec_fault.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_PATTERN "default.*"

static struct {
    struct cli_texts execs, env, prefixes, tenants;
    int64_t exec_limit, threads, poll, stop_limit;
    const char *name;
    bool give_store, no_dispatch;
} args;

const struct cli_option cli_work_options[] = {
    CLI_OPT(TEXTS, 'x', "exec", "[PATTERN=]COMMAND",
            "run COMMAND for these workflows, billing.charge.v1 or billing.*, without PATTERN for "
            "all that are claimed; may be repeated",
            .value = &args.execs),
    CLI_OPT(DURATION, 0, "exec-limit", "DURATION", "end a COMMAND that takes longer; 0: no limit",
            .value = &args.exec_limit),
    CLI_OPT(TEXTS, 0, "env", "NAME[=VALUE]",
            "a variable for COMMAND, with the worker's own value if none is given; may be repeated",
            .value = &args.env),
    CLI_OPT(SWITCH, 0, "give-store", NULL,
            "let COMMAND open the store itself: HOLDFAST_STORE, with its password, is in its "
            "environment",
            .value = &args.give_store),
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
    CLI_OPT(SWITCH, 0, "no-dispatch", NULL,
            "deliver no events to subscriptions; another worker has to",
            .value = &args.no_dispatch),
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

hf_code cli_work_prefixes(hf_error *err)
{
    static char *kept; /* the prefixes point into it */
    const char *variable = getenv("WORKER_TYPE_PREFIXES");
    if (args.prefixes.count > 0 || !variable || !*variable)
        return HF_OK;
    kept = hf__strdup(variable);
    return kept ? add_prefixes(kept, err) : hf__nomem(err);
}

static bool is_covered(const char *pattern)
{
    size_t length = strlen(pattern);
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

/* A command without a pattern is for whatever is claimed. The caller frees it. */
static hf_code pattern_of(const char *text, char **out, const char **command, hf_error *err)
{
    const char *equals = strchr(text, '=');
    if (equals == text)
        return hf__fail(err, HF_INVALID, "--exec wants PATTERN=COMMAND, not \"%.100s\"", text);
    *command = equals ? equals + 1 : text;
    if (equals)
        *out = hf__strndup(text, (size_t)(equals - text));
    else
        *out = hf__strdup(args.prefixes.count > 0 ? "*" : DEFAULT_PATTERN);
    return *out ? HF_OK : hf__nomem(err);
}

static hf_code split_command(char ***words, const char *text, const char *command, hf_error *err)
{
    hf_code code = cli_words_split(words, command, err);
    if (code != HF_OK)
        return hf__fail(err, code, "--exec \"%.100s\": %s", text, err->message);
    if (!(*words)[0] || !(*words)[0][0])
        return hf__fail(err, HF_INVALID, "--exec \"%.100s\" names no program", text);
    char fault[HF__EXEC_FAULT];
    if (hf__exec_find_fault((*words)[0], fault, sizeof fault))
        return hf__fail(err, HF_INVALID, "--exec \"%.100s\": %s", text, fault);
    return HF_OK;
}

/* Words live as long as the worker; there are as many as --exec. */
static hf_code add_exec(const struct cli_session *session, hf_worker *worker, const char *text,
                        char ***words, hf_error *err)
{
    char *pattern = NULL;
    const char *command = NULL;
    hf_code code = pattern_of(text, &pattern, &command, err);
    if (code == HF_OK)
        code = split_command(words, text, command, err);
    if (code == HF_OK) {
        if (!is_covered(pattern))
            cli_notice(session, "warning: no --prefix covers --exec \"%s\"; it will never run",
                       text);
        hf_exec_options exec = HF_EXEC_OPTIONS_INIT;
        exec.argv = (const char *const *)*words;
        exec.time_limit = args.exec_limit;
        exec.env = args.env.items;
        exec.env_count = args.env.count;
        code = hf_worker_exec(worker, pattern, &exec, err);
    }
    free(pattern);
    return code;
}

static hf_worker_options worker_options(hf_worker_observer observer, void *arg)
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
    chosen.no_dispatch = args.no_dispatch;
    chosen.observer = observer;
    chosen.observer_arg = arg;
    return chosen;
}

/* Programs do not get the store, with its password, unless somebody wants that. */
static hf_code give_store(const struct cli_session *session, hf_error *err)
{
    struct hf__buffer variable = { 0 };
    const char **grown = hf__realloc(args.env.items, (args.env.count + 1) * sizeof *grown);
    if (!grown)
        return hf__nomem(err);
    args.env.items = grown;
    hf__buffer_addf(&variable, "HOLDFAST_STORE=%s", session->store);
    args.env.items[args.env.count] = hf__buffer_take(&variable);
    return args.env.items[args.env.count++] ? HF_OK : hf__nomem(err);
}

static hf_code add_execs(const struct cli_session *session, hf_worker *worker, char ***words,
                         hf_error *err)
{
    hf_code code = HF_OK;
    for (size_t i = 0; code == HF_OK && i < args.execs.count; i++)
        code = add_exec(session, worker, args.execs.items[i], &words[i], err);
    return code;
}

bool cli_work_has_execs(void)
{
    return args.execs.count > 0;
}

const char *cli_work_first_prefix(void)
{
    return args.prefixes.count > 0 ? args.prefixes.items[0] : NULL;
}

void cli_work_free(struct cli_work *work)
{
    hf_worker_free(work->worker);
    for (size_t i = 0; work->words && i < args.execs.count; i++)
        free(work->words[i]);
    free(work->words);
    *work = (struct cli_work){ 0 };
}

hf_code cli_work_new(struct cli_work *out, struct cli_session *session, hf_worker_observer observer,
                     void *arg, bool chores_only, hf_error *err)
{
    hf_worker_options chosen = worker_options(observer, arg);
    chosen.chores_only = chores_only;
    *out = (struct cli_work){ .words = hf__calloc(args.execs.count + 1, sizeof *out->words) };
    hf_code code =
        out->words ? hf_worker_new(&out->worker, session->client, &chosen, err) : hf__nomem(err);
    if (code == HF_OK && args.give_store)
        code = give_store(session, err);
    if (code == HF_OK)
        code = add_execs(session, out->worker, out->words, err);
    if (code != HF_OK)
        cli_work_free(out);
    return code;
}
