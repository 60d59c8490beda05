/* holdfast workflow create, set, show, list, pause, resume
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/table.h"
#include "cli/workflow_name.h"
#include "util/alloc.h"
#include "util/duration.h"
#include "util/error.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    unsigned mask;
    int64_t max_attempts, retry_base, retry_cap, lease, timeout, retention;
    int64_t max_running, key_max_running;
    int64_t fit_within;
    const char *dead_letter, *on_cancel, *children, *definition;
    const char *rate, *key_rate;
    struct cli_texts weights;
} args;

#define SETS(field_, bit_) .value = &args.field_, .mask = &args.mask, .bit = bit_

static const struct cli_option options[] = {
    CLI_OPT(NUMBER, 0, "max-attempts", "N", "attempts before a run fails for good; default 3",
            SETS(max_attempts, HF_SET_MAX_ATTEMPTS), .min = 1, .max = 1000000),
    CLI_OPT(DURATION, 0, "retry-base", "DURATION",
            "delay after the first failure, doubled by each next; default 1s",
            SETS(retry_base, HF_SET_RETRY_BASE)),
    CLI_OPT(DURATION, 0, "retry-cap", "DURATION", "the longest delay; default 5m",
            SETS(retry_cap, HF_SET_RETRY_CAP)),
    CLI_OPT(DURATION, 0, "lease", "DURATION",
            "how long a worker may be silent before another takes the run; default 30s",
            SETS(lease, HF_SET_LEASE), .min = -1),
    CLI_OPT(DURATION, 0, "timeout", "DURATION", "from the trigger to the deadline; 0: none",
            SETS(timeout, HF_SET_TIMEOUT)),
    CLI_OPT(DURATION, 0, "retention", "DURATION",
            "how long ended runs are kept, with its unit; 0: forever",
            SETS(retention, HF_SET_RETENTION), .unit = true),
    CLI_OPT(TEXT, 0, "dead-letter", "WORKFLOW",
            "started when a run has failed for good; '' for none",
            SETS(dead_letter, HF_SET_DEAD_LETTER)),
    CLI_OPT(DURATION, 0, "fit-within", "DURATION",
            "how long a run waits for a worker whose code fits its history; default 1d, 0: not",
            SETS(fit_within, HF_SET_FIT_WITHIN)),
    CLI_OPT(TEXT, 0, "on-cancel", "WORKFLOW", "started when a run is cancelled; '' for none",
            SETS(on_cancel, HF_SET_ON_CANCEL)),
    CLI_OPT(
        TEXT, 0, "children", "POLICY",
        "what becomes of children at work when their parent ends: leave (the default), cancel, or "
        "fail",
        SETS(children, HF_SET_CHILDREN)),
    CLI_OPT(NUMBER, 0, "max-running", "N", "runs held by workers at once; 0: no limit",
            SETS(max_running, HF_SET_MAX_RUNNING), .max = 1000000),
    CLI_OPT(NUMBER, 0, "max-running-per-key", "N", "the same for each flow key by itself",
            SETS(key_max_running, HF_SET_KEY_MAX_RUNNING), .max = 1000000),
    CLI_OPT(TEXT, 0, "rate", "N/DURATION[+BURST]",
            "starts in a time, such as 100/1m, and how many may come at once; none: no limit",
            SETS(rate, HF_SET_RATE)),
    CLI_OPT(TEXT, 0, "rate-per-key", "N/DURATION[+BURST]", "the same for each flow key by itself",
            SETS(key_rate, HF_SET_KEY_RATE)),
    CLI_OPT(TEXTS, 0, "weight", "KEY=N",
            "the share of a flow key beside others, 1 to 1000; default 1; may be repeated",
            .value = &args.weights),
    CLI_OPT(TEXT, 0, "definition", "TEXT|@FILE", "the text of a declared workflow",
            SETS(definition, HF_SET_DEFINITION)),
    CLI_OPTIONS_END,
};

static int workflow_fail(struct cli_session *session, const char *name, const hf_error *err)
{
    if (err->code == HF_UNKNOWN_WORKFLOW || err->code == HF_NOT_FOUND)
        return cli_unknown_workflow(session, name, err->code);
    return cli_fail(session, err);
}

/* Parts of a second count as one. */
static int whole_seconds(int64_t us)
{
    int64_t seconds = (us + HF_SECONDS(1) - 1) / HF_SECONDS(1);
    return seconds < INT_MAX ? (int)seconds : INT_MAX;
}

static hf_workflow workflow_from_options(const char *name, const char *definition)
{
    return (hf_workflow){
        .name = name,
        .max_attempts = (int)args.max_attempts,
        .retry_base = args.retry_base,
        .retry_cap = args.retry_cap,
        .lease = args.lease,
        .timeout = args.timeout,
        .retention = args.retention,
        .dead_letter = args.dead_letter && *args.dead_letter ? args.dead_letter : NULL,
        .fit_within = whole_seconds(args.fit_within),
        .on_cancel = args.on_cancel && *args.on_cancel ? args.on_cancel : NULL,
        .children = args.children && *args.children ? args.children : NULL,
        .definition = definition && *definition ? definition : NULL,
        .max_running = (int)args.max_running,
        .key_max_running = (int)args.key_max_running,
    };
}

/* A unit alone is one of it. */
static hf_code read_interval(int64_t *out, const char *text, hf_error *err)
{
    char one[80];
    bool unit = *text >= 'a' && *text <= 'z';
    snprintf(one, sizeof one, "%s%.70s", unit ? "1" : "", text);
    return hf__duration_parse(one, out, err);
}

/* "100/1m", "100/m", "100/1m+20", "none". */
static hf_code read_rate(hf_rate *out, const char *what, const char *text, hf_error *err)
{
    char copy[80];
    int64_t count = 0, burst = 0;
    *out = (hf_rate){ 0 };
    if (!text || strcmp(text, "none") == 0 || strcmp(text, "0") == 0)
        return HF_OK;
    snprintf(copy, sizeof copy, "%s", text);
    char *slash = strchr(copy, '/');
    char *plus = slash ? strchr(slash, '+') : NULL;
    if (!slash || strlen(text) >= sizeof copy)
        return hf__fail(err, HF_INVALID, "%s: write it as 100/1m, as 100/1m+20, or none", what);
    *slash = '\0';
    if (plus)
        *plus = '\0';
    hf_code code = cli_number_parse(what, copy, 1, 1000000, &count, err);
    if (code == HF_OK && plus)
        code = cli_number_parse(what, plus + 1, 1, 1000000, &burst, err);
    if (code == HF_OK)
        code = read_interval(&out->interval, slash + 1, err);
    out->count = (int)count;
    out->burst = (int)burst;
    return code;
}

static hf_code read_rates(hf_workflow *workflow, hf_error *err)
{
    hf_code code = read_rate(&workflow->rate, "--rate", args.rate, err);
    return code == HF_OK ? read_rate(&workflow->key_rate, "--rate-per-key", args.key_rate, err)
                         : code;
}

/* "KEY=N"; the key may have "=" in it. */
static hf_code set_weight(hf_client *client, const char *workflow, const char *text, hf_error *err)
{
    char key[256];
    int64_t weight = 0;
    const char *mark = strrchr(text, '=');
    if (!mark || (size_t)(mark - text) >= sizeof key)
        return hf__fail(err, HF_INVALID,
                        "--weight: write it as KEY=N, with a key of 200 bytes at most");
    snprintf(key, sizeof key, "%.*s", (int)(mark - text), text);
    hf_code code = cli_number_parse("--weight", mark + 1, 1, 1000, &weight, err);
    return code == HF_OK ? hf_workflow_weight(client, workflow, key, (int)weight, err) : code;
}

static hf_code set_weights(hf_client *client, const char *workflow, hf_error *err)
{
    hf_code code = HF_OK;
    for (size_t i = 0; code == HF_OK && i < args.weights.count; i++)
        code = set_weight(client, workflow, args.weights.items[i], err);
    return code;
}

typedef hf_code (*store_function)(hf_client *client, const hf_workflow *workflow, unsigned mask,
                                  hf_error *err);

static int show_stored(struct cli_session *session, const char *name);

static int store_workflow(struct cli_session *session, const char *name, store_function store)
{
    int status = CLI_OK;
    hf_error err = { 0 };
    char *definition = NULL;
    if (args.definition &&
        cli_input_text(&definition, "definition", args.definition, &err) != HF_OK)
        return cli_fail(session, &err);
    hf_workflow workflow = workflow_from_options(name, definition);
    if (read_rates(&workflow, &err) != HF_OK) {
        status = cli_fail(session, &err);
        goto done;
    }
    if (!cli_open(session, &status))
        goto done;
    if (store(session->client, &workflow, args.mask, &err) != HF_OK ||
        set_weights(session->client, name, &err) != HF_OK)
        status = workflow_fail(session, name, &err);
    else if (session->json)
        status = show_stored(session, name);
done:
    free(definition);
    return status;
}

static int create(struct cli_session *session, int count, char **operands)
{
    (void)count;
    return store_workflow(session, operands[0], hf_workflow_put);
}

static int set(struct cli_session *session, int count, char **operands)
{
    (void)count;
    if (args.mask == 0 && args.weights.count == 0)
        return cli_usage(session, "nothing to set; give at least one option");
    return store_workflow(session, operands[0], hf_workflow_set);
}

static char *limit_text(int64_t us, const char *none)
{
    char text[HF__DURATION_TEXT];
    hf__duration_format(us, text);
    return hf__strdup(us ? text : none);
}

static char *timeout_text(struct cli_session *session, const void *record)
{
    (void)session;
    return limit_text(((const hf_workflow *)record)->timeout, "none");
}

static char *retention_text(struct cli_session *session, const void *record)
{
    (void)session;
    return limit_text(((const hf_workflow *)record)->retention, "forever");
}

static char *slots_text(int slots)
{
    char text[24];
    snprintf(text, sizeof text, "%d", slots);
    return hf__strdup(slots ? text : "no limit");
}

static char *rate_text(const hf_rate *rate)
{
    char interval[HF__DURATION_TEXT], text[HF__DURATION_TEXT + 40];
    hf__duration_format(rate->interval, interval);
    snprintf(text, sizeof text, "%d/%s+%d", rate->count, interval, rate->burst);
    return hf__strdup(rate->count ? text : "no limit");
}

static char *max_running_text(struct cli_session *session, const void *record)
{
    (void)session;
    return slots_text(((const hf_workflow *)record)->max_running);
}

static char *key_max_running_text(struct cli_session *session, const void *record)
{
    (void)session;
    return slots_text(((const hf_workflow *)record)->key_max_running);
}

static char *whole_rate_text(struct cli_session *session, const void *record)
{
    (void)session;
    return rate_text(&((const hf_workflow *)record)->rate);
}

static char *key_rate_text(struct cli_session *session, const void *record)
{
    (void)session;
    return rate_text(&((const hf_workflow *)record)->key_rate);
}

static const struct cli_column lines[] = {
    { .header = "name", .field = "name" },
    { .header = "paused", .field = "paused" },
    { .header = "max attempts", .field = "max_attempts" },
    { .header = "retry base", .field = "retry_base" },
    { .header = "retry cap", .field = "retry_cap" },
    { .header = "lease", .field = "lease" },
    { .header = "timeout", .make = timeout_text },
    { .header = "retention", .make = retention_text },
    { .header = "dead letter", .field = "dead_letter" },
    { .header = "fit within", .field = "fit_within" },
    { .header = "on cancel", .field = "on_cancel" },
    { .header = "children", .field = "children" },
    { .header = "max running", .make = max_running_text },
    { .header = "rate", .make = whole_rate_text },
    { .header = "max per key", .make = key_max_running_text },
    { .header = "rate per key", .make = key_rate_text },
    { .header = "weights", .field = "weights" },
    { .header = "due", .field = "due" },
    { .header = "delayed", .field = "delayed" },
    { .header = "parked", .field = "parked" },
    { .header = "leased", .field = "leased" },
    { .header = "failed", .field = "failed" },
    { .header = "workers", .field = "workers" },
    { .header = "created", .field = "created_at" },
    { .header = "updated", .field = "updated_at" },
    { .header = "definition", .field = "definition" },
    { .header = NULL },
};

static int show_stored(struct cli_session *session, const char *name)
{
    hf_workflow *workflow = NULL;
    hf_error err = { 0 };
    if (hf_workflow_get(session->client, &workflow, name, &err) != HF_OK)
        return workflow_fail(session, name, &err);
    cli_block_print(session, lines, hf__workflow_fields, workflow);
    hf_workflow_free(workflow);
    return CLI_OK;
}

static int show(struct cli_session *session, int count, char **operands)
{
    (void)count;
    int status = CLI_OK;
    return cli_open(session, &status) ? show_stored(session, operands[0]) : status;
}

static int set_paused(struct cli_session *session, const char *name, bool paused)
{
    int status = CLI_OK;
    hf_error err = { 0 };
    hf_workflow workflow = { .name = name, .paused = paused };
    if (!cli_open(session, &status))
        return status;
    if (hf_workflow_set(session->client, &workflow, HF_SET_PAUSED, &err) != HF_OK)
        return workflow_fail(session, name, &err);
    return session->json ? show_stored(session, name) : CLI_OK;
}

static int pause_workflow(struct cli_session *session, int count, char **operands)
{
    (void)count;
    return set_paused(session, operands[0], true);
}

static int resume_workflow(struct cli_session *session, int count, char **operands)
{
    (void)count;
    return set_paused(session, operands[0], false);
}

static const char *list_prefix;

static const struct cli_option list_options[] = {
    CLI_OPT(TEXT, 0, "prefix", "PREFIX", "only those whose name begins so", .value = &list_prefix),
    CLI_OPTIONS_END,
};

static const struct cli_column columns[] = {
    { .header = "NAME", .field = "name", .shrinks = true },
    { .header = "PAUSED", .field = "paused" },
    { .header = "DUE", .field = "due", .right = true },
    { .header = "DELAYED", .field = "delayed", .right = true },
    { .header = "PARKED", .field = "parked", .right = true },
    { .header = "LEASED", .field = "leased", .right = true },
    { .header = "FAILED", .field = "failed", .right = true },
    { .header = "WORKERS", .field = "workers", .right = true },
    { .header = "DEAD LETTER", .field = "dead_letter", .shrinks = true },
    { .header = NULL },
};

static int list(struct cli_session *session, int count, char **operands)
{
    (void)count, (void)operands;
    int status = CLI_OK;
    hf_error err = { 0 };
    hf_workflows *workflows = NULL;
    if (!cli_open(session, &status))
        return status;
    if (hf_workflow_list(session->client, &workflows, list_prefix, &err) != HF_OK)
        return cli_fail(session, &err);
    cli_table_print(session, columns, hf__workflow_fields, workflows->items,
                    sizeof *workflows->items, workflows->count, true);
    if (workflows->count == 0)
        cli_notice(session,
                   "no such workflows in %s (tenant %s); create one with `holdfast "
                   "workflow create NAME`",
                   cli_store_name(session), cli_tenant(session));
    hf_workflows_free(workflows);
    return CLI_OK;
}

const struct cli_command cli_command_workflow_create = {
    .name = "workflow create",
    .summary = "Register a workflow",
    .operands = "NAME",
    .details = "Does nothing to one that is there already, except that the given options are set. "
               "A worker registers the workflows that it serves by their full name itself.",
    .examples = "holdfast workflow create billing.charge.v1 --max-attempts 5 --timeout 1h",
    .min_operands = 1,
    .max_operands = 1,
    .options = options,
    .creates = true,
    .run = create,
};

const struct cli_command cli_command_workflow_set = {
    .name = "workflow set",
    .summary = "Change the settings of a workflow",
    .operands = "NAME",
    .details =
        "Only the given options are changed. Limits hold from then on; runs that are held already "
        "go on, and count.",
    .examples = "holdfast workflow set billing.charge.v1 --retention 90d",
    .min_operands = 1,
    .max_operands = 1,
    .options = options,
    .run = set,
};

const struct cli_command cli_command_workflow_show = {
    .name = "workflow show",
    .summary = "Show the settings and the counts of a workflow",
    .operands = "NAME",
    .min_operands = 1,
    .max_operands = 1,
    .run = show,
};

const struct cli_command cli_command_workflow_list = {
    .name = "workflow list",
    .summary = "List workflows with their counts",
    .operands = "",
    .details = "`holdfast workflows` is the same.",
    .options = list_options,
    .run = list,
};

const struct cli_command cli_command_workflows = {
    .name = "workflows",
    .summary = "List workflows with their counts",
    .operands = "",
    .details = "Short for `holdfast workflow list`.",
    .options = list_options,
    .run = list,
};

const struct cli_command cli_command_workflow_pause = {
    .name = "workflow pause",
    .summary = "Start no run of a workflow until it is resumed",
    .operands = "NAME",
    .details = "Runs that a worker holds go on. Triggers are still accepted.",
    .min_operands = 1,
    .max_operands = 1,
    .run = pause_workflow,
};

const struct cli_command cli_command_workflow_resume = {
    .name = "workflow resume",
    .summary = "Let the runs of a paused workflow start again",
    .operands = "NAME",
    .min_operands = 1,
    .max_operands = 1,
    .run = resume_workflow,
};
