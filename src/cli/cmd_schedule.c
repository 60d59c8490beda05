/* holdfast schedule create, list, show, next, pause, resume, delete
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/noun.h"
#include "cli/table.h"
#include "util/alloc.h"
#include "util/duration.h"

#include <holdfast/schedule.h>

#include <stdlib.h>

#define NEXT_MOST 1000

static struct {
    const char *cron, *every, *workflow, *input, *timezone, *overlap, *catch_up;
    int64_t priority;
    struct cli_texts tags;
} args;

static const struct cli_option options[] = {
    CLI_OPT(TEXT, 0, "cron", "EXPRESSION",
            "minute hour day-of-month month day-of-week; six fields begin with "
            "seconds; @hourly, "
            "@daily, @weekly, @monthly, @yearly",
            .value = &args.cron),
    CLI_OPT(TEXT, 0, "every", "DURATION", "a fixed interval of at least 1s, instead of --cron",
            .value = &args.every),
    CLI_OPT(TEXT, 0, "workflow", "NAME", "what is started", .value = &args.workflow),
    CLI_OPT(TEXT, 0, "input", "JSON|@FILE|-", "the input of the started runs; default null",
            .value = &args.input),
    CLI_OPT(TEXT, 0, "timezone", "ZONE", "whose clocks count, like Europe/Berlin; default UTC",
            .value = &args.timezone),
    CLI_OPT(TEXT, 0, "overlap", "POLICY",
            "while the last run has not finished: skip (default), allow, queue, cancel",
            .value = &args.overlap),
    CLI_OPT(TEXT, 0, "catch-up", "POLICY",
            "what was missed while no worker ran: one (default) fires the latest, none, all",
            .value = &args.catch_up),
    CLI_OPT(NUMBER, 0, "priority", "N", "of the started runs; higher is more urgent",
            .value = &args.priority, .min = -1000, .max = 1000),
    CLI_OPT(TEXTS, 0, "tag", "TAG", "of the started runs; may be given several times",
            .value = &args.tags),
    CLI_OPTIONS_END,
};

/* ---- show ---- */

static char *state_text(struct cli_session *session, const void *record)
{
    const hf_schedule *schedule = record;
    (void)session;
    if (schedule->paused)
        return hf__strdup("paused");
    return hf__strdup(hf_status_finished(schedule->status) ? hf_status_name(schedule->status)
                                                           : "active");
}

static const struct cli_column lines[] = {
    { .header = "name", .field = "name" },
    { .header = "state", .make = state_text },
    { .header = "cron", .field = "cron" },
    { .header = "timezone", .field = "timezone" },
    { .header = "workflow", .field = "workflow" },
    { .header = "input", .field = "input" },
    { .header = "overlap", .field = "overlap" },
    { .header = "catch-up", .field = "catch_up" },
    { .header = "priority", .field = "priority" },
    { .header = "tags", .field = "tags" },
    { .header = "next", .field = "next_at" },
    { .header = "last", .field = "last_at" },
    { .header = "last run", .field = "last_run" },
    { .header = "fired", .field = "fired" },
    { .header = "skipped", .field = "skipped" },
    { .header = "queued", .field = "queued" },
    { .header = "last error", .field = "last_error" },
    { .header = "created", .field = "created_at" },
    { .header = "run", .field = "run" },
    { .header = NULL },
};

static int print(struct cli_session *session, const char *name);

static const struct cli_noun noun = { "schedule named", "schedule", print };

static int print(struct cli_session *session, const char *name)
{
    hf_schedule *schedule = NULL;
    hf_error err = { 0 };
    if (hf_schedule_get(session->client, &schedule, name, &err) != HF_OK)
        return cli_noun_fail(session, &noun, name, &err);
    cli_block_print(session, lines, hf__schedule_fields, schedule);
    hf_schedule_free(schedule);
    return CLI_OK;
}

static int show(struct cli_session *session, int count, char **operands)
{
    (void)count;
    return cli_noun_show(session, &noun, operands[0]);
}

/* ---- create ---- */

/* Fills in what the options say; false: the mistake was shown. */
static bool spec_from_options(struct cli_session *session, hf_schedule_spec *spec, char **every,
                              int *status)
{
    if (!args.cron == !args.every)
        *status = cli_usage(session, "say when it fires: either --cron or --every%s",
                            args.cron ? ", not both" : "");
    else if (!args.workflow)
        *status = cli_usage(session, "say what it starts: --workflow NAME");
    else if (args.overlap && !hf_overlap_parse(args.overlap, &spec->overlap))
        *status = cli_usage(session, "--overlap is skip, allow, queue or cancel, not \"%.60s\"",
                            args.overlap);
    else if (args.catch_up && !hf_catch_up_parse(args.catch_up, &spec->catch_up))
        *status =
            cli_usage(session, "--catch-up is one, none or all, not \"%.60s\"", args.catch_up);
    else if (args.every && asprintf(every, "every %s", args.every) < 0)
        *status = cli_failf(session, HF_NOMEM, "%s", hf_code_meaning(HF_NOMEM));
    if (*status != CLI_OK)
        return false;
    spec->cron = args.every ? *every : args.cron;
    spec->workflow = args.workflow;
    spec->timezone = args.timezone;
    spec->priority = (int)args.priority;
    spec->tags = args.tags.items;
    spec->tag_count = args.tags.count;
    return true;
}

static bool has_live_worker(struct cli_session *session)
{
    hf_worker_list *workers = NULL;
    bool live = hf_workers(session->client, &workers, NULL) != HF_OK;
    for (size_t i = 0; workers && i < workers->count; i++)
        live |= workers->items[i].live;
    hf_worker_list_free(workers);
    return live;
}

static int create(struct cli_session *session, int count, char **operands)
{
    (void)count;
    int status = CLI_OK;
    hf_error err = { 0 };
    hf_schedule_spec spec = HF_SCHEDULE_INIT;
    char *every = NULL, *input = NULL;
    if (!spec_from_options(session, &spec, &every, &status))
        goto done;
    if (args.input && cli_input_json(&input, "input", args.input, &err) != HF_OK) {
        status = cli_fail(session, &err);
        goto done;
    }
    spec.name = operands[0];
    spec.input = input;
    if (!cli_open(session, &status))
        goto done;
    if (hf_schedule_set(session->client, &spec, &err) != HF_OK) {
        status = cli_fail(session, &err);
        goto done;
    }
    if (!has_live_worker(session))
        cli_notice(session, "warning: no worker is live; the schedule fires when one is (start it "
                            "with `holdfast worker`)");
    if (session->json)
        status = print(session, spec.name);
done:
    free(every);
    free(input);
    return status;
}

/* ---- list ---- */

static const struct cli_column columns[] = {
    { .header = "NAME", .field = "name", .shrinks = true },
    { .header = "STATE", .make = state_text },
    { .header = "CRON", .field = "cron" },
    { .header = "WORKFLOW", .field = "workflow", .shrinks = true },
    { .header = "NEXT", .field = "next_at" },
    { .header = "TIMEZONE", .field = "timezone" },
    { .header = "LAST", .field = "last_at" },
    { .header = "FIRED", .field = "fired", .right = true },
    { .header = "SKIPPED", .field = "skipped", .right = true },
    { .header = NULL },
};

static int list(struct cli_session *session, int count, char **operands)
{
    (void)count, (void)operands;
    int status = CLI_OK;
    hf_error err = { 0 };
    hf_schedules *schedules = NULL;
    if (!cli_open(session, &status))
        return status;
    if (hf_schedule_list(session->client, &schedules, &err) != HF_OK)
        return cli_fail(session, &err);
    cli_table_print(session, columns, hf__schedule_fields, schedules->items,
                    sizeof *schedules->items, schedules->count, true);
    if (schedules->count == 0)
        cli_notice(session,
                   "no schedules in %s (tenant %s); create one with `holdfast schedule create "
                   "NAME`",
                   cli_store_name(session), cli_tenant(session));
    hf_schedules_free(schedules);
    return CLI_OK;
}

/* ---- next ---- */

static int64_t next_count = 5;

static const struct cli_option next_options[] = {
    CLI_OPT(NUMBER, 0, "count", "N", "how many; default 5, at most 1000", .value = &next_count,
            .min = 1, .max = NEXT_MOST),
    CLI_OPTIONS_END,
};

struct firing {
    int64_t at;
};

static const struct hf__field firing_fields[] = {
    { "at", HF__FIELD_TIME, offsetof(struct firing, at) },
    { NULL, HF__FIELD_TEXT, 0 },
};

/* Exact on a terminal too: nobody plans by "in 3h". */
static char *exact_text(struct cli_session *session, const void *record)
{
    char text[HF__TIME_TEXT];
    (void)session;
    hf__time_format(((const struct firing *)record)->at, text);
    return hf__strdup(text);
}

static const struct cli_column firing_columns[] = {
    { .header = "AT", .make = exact_text },
    { .header = NULL },
};

/* Then these are the times at which it would fire. */
static void warn_paused(const struct cli_session *session, const char *name)
{
    hf_schedule *schedule = NULL;
    if (hf_schedule_get(session->client, &schedule, name, NULL) == HF_OK && schedule->paused)
        cli_notice(session,
                   "%s is paused; it fires at these times after `holdfast schedule resume %s`",
                   name, name);
    hf_schedule_free(schedule);
}

static int next(struct cli_session *session, int count, char **operands)
{
    (void)count;
    int status = CLI_OK;
    hf_error err = { 0 };
    int64_t times[NEXT_MOST];
    size_t found = 0;
    if (!cli_open(session, &status))
        return status;
    if (hf_schedule_next(session->client, operands[0], times, (size_t)next_count, &found, &err) !=
        HF_OK)
        return cli_noun_fail(session, &noun, operands[0], &err);
    warn_paused(session, operands[0]);
    cli_table_print(session, firing_columns, firing_fields, times, sizeof *times, found, true);
    return CLI_OK;
}

/* ---- pause, resume, delete ---- */

static int pause_schedule(struct cli_session *session, int count, char **operands)
{
    (void)count;
    return cli_noun_change(session, &noun, operands[0], hf_schedule_pause);
}

static int resume_schedule(struct cli_session *session, int count, char **operands)
{
    (void)count;
    return cli_noun_change(session, &noun, operands[0], hf_schedule_resume);
}

static int delete_schedule(struct cli_session *session, int count, char **operands)
{
    (void)count;
    return cli_noun_remove(session, &noun, operands[0], hf_schedule_delete);
}

/* ---- The table ---- */

const struct cli_command cli_command_schedule_create = {
    .name = "schedule create",
    .summary = "Start runs by the clock, or change how",
    .operands = "NAME",
    .details =
        "A schedule of that name gets the new settings; what it has fired so far stays.\n"
        "It fires as long as any worker of the tenant lives. Each due time starts one run, whose "
        "key is schedule:NAME:TIME.",
    .examples = "holdfast schedule create nightly --cron '30 2 * * *' --timezone Europe/Berlin "
                "--workflow report.v1\n"
                "holdfast schedule create poll --every 15m --workflow mail.fetch.v1 --input "
                "'{\"box\":\"in\"}' --overlap queue --catch-up none",
    .min_operands = 1,
    .max_operands = 1,
    .options = options,
    .run = create,
    .creates = true,
};

const struct cli_command cli_command_schedule_list = {
    .name = "schedule list",
    .summary = "List the schedules",
    .operands = "",
    .run = list,
};

const struct cli_command cli_command_schedule_show = {
    .name = "schedule show",
    .summary = "Show a schedule with what it did last and does next",
    .operands = "NAME",
    .min_operands = 1,
    .max_operands = 1,
    .run = show,
};

const struct cli_command cli_command_schedule_next = {
    .name = "schedule next",
    .summary = "Show the next due times of a schedule",
    .operands = "NAME",
    .min_operands = 1,
    .max_operands = 1,
    .options = next_options,
    .run = next,
};

const struct cli_command cli_command_schedule_pause = {
    .name = "schedule pause",
    .summary = "Stop a schedule from firing",
    .operands = "NAME",
    .details = "Runs that it started go on.",
    .min_operands = 1,
    .max_operands = 1,
    .run = pause_schedule,
};

const struct cli_command cli_command_schedule_resume = {
    .name = "schedule resume",
    .summary = "Let a paused schedule fire again",
    .operands = "NAME",
    .details = "What became due meanwhile is handled by its catch-up policy.",
    .min_operands = 1,
    .max_operands = 1,
    .run = resume_schedule,
};

const struct cli_command cli_command_schedule_delete = {
    .name = "schedule delete",
    .summary = "Remove a schedule",
    .operands = "NAME",
    .details = "Runs that it started go on, and its name is free.",
    .min_operands = 1,
    .max_operands = 1,
    .run = delete_schedule,
};
