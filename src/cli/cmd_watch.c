/* holdfast watch
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/outcome.h"
#include "cli/run_ref.h"
#include "cli/steps.h"
#include "cli/terminal.h"
#include "cli/watch.h"
#include "util/duration.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAGE = 500 };

/* Without a screen: a run whose end was missed is noticed after so long. */
#define LOOK_AGAIN HF_SECONDS(30)

/* ---- Line by line ---- */

static void say_step(struct cli_watch *watch, const hf_event *event)
{
    const struct hf__step_line *step = hf__step_lines_find(&watch->steps, event->step);
    printf("step ");
    cli_put_clean(stdout, event->step);
    printf(" %s", event->name);
    if (step && step->took >= 0) {
        char took[CLI_SPAN_TEXT];
        cli_span_text(step->took, took);
        printf(" in %s", took);
    }
    char *outcome = step ? cli_step_outcome(watch->session, step) : NULL;
    if (outcome && *outcome)
        printf(": %s", outcome);
    free(outcome);
}

static void say_other(const hf_event *event)
{
    bool life = strcmp(event->kind, "lifecycle") == 0;
    char *data = event->data ? cli_clean_line(event->data) : NULL;
    if (!life)
        printf("%s ", event->kind);
    cli_put_clean(stdout, event->name ? event->name : "");
    if (life && event->actor) {
        fputs(" by ", stdout);
        cli_put_clean(stdout, event->actor);
    }
    if (data)
        printf(": %s", data);
    free(data);
}

static void say(struct cli_watch *watch, const hf_event *event)
{
    char time[HF__TIME_TEXT];
    if (watch->session->json) {
        cli_record_json(stdout, hf__event_fields, event);
        return;
    }
    hf__time_format(event->at, time);
    printf("%s  ", time);
    if (strcmp(event->kind, "step") == 0 && event->step) {
        say_step(watch, event);
    } else if (event->name && strcmp(event->name, "progress") == 0 && watch->steps.percent >= 0) {
        printf("progress %d%%", watch->steps.percent);
        if (watch->steps.message) {
            fputs(": ", stdout);
            cli_put_clean(stdout, watch->steps.message);
        }
    } else {
        say_other(event);
    }
    putchar('\n');
}

/* ---- Following ---- */

static void take_event(struct cli_watch *watch, const hf_event *event)
{
    hf__step_lines_add(&watch->steps, event);
    watch->seq = event->seq;
    if (strcmp(event->kind, "lifecycle") == 0)
        watch->since = event->at;
    if (!watch->live)
        say(watch, event);
}

static void take_events(struct cli_watch *watch, const hf_events *events)
{
    for (size_t i = 0; i < events->count; i++)
        take_event(watch, &events->items[i]);
}

static hf_code read_rest(struct cli_watch *watch, hf_error *err)
{
    size_t got = PAGE;
    hf_code code = HF_OK;
    while (code == HF_OK && got == PAGE) {
        hf_events *events = NULL;
        code = hf_events_list(watch->session->client, &events, watch->id, watch->seq, PAGE, err);
        got = code == HF_OK ? events->count : 0;
        if (code == HF_OK)
            take_events(watch, events);
        hf_events_free(events);
    }
    fflush(stdout);
    return code;
}

/* The run is read before its journal, so that a run seen as ended has all its lines read. */
static hf_code refresh(struct cli_watch *watch, hf_error *err)
{
    hf_run *run = NULL;
    watch->session->now = 0;
    hf_code code = hf_get(watch->session->client, &run, watch->id, err);
    if (code == HF_OK) {
        hf_run_free(watch->run);
        watch->run = run;
        code = read_rest(watch, err);
    }
    if (code == HF_OK && watch->live)
        code = hf_child_counts(watch->session->client, watch->children, watch->id, err);
    return code;
}

/* Sleeps until something happens, or for a moment. */
static hf_code sleep_until_news(struct cli_watch *watch, hf_error *err)
{
    hf_events *events = NULL;
    hf_code code = hf_events_follow(watch->session->client, &events, watch->id, watch->seq, PAGE,
                                    watch->live ? CLI_WATCH_TICK : LOOK_AGAIN, err);
    if (code == HF_OK)
        take_events(watch, events);
    hf_events_free(events);
    return code == HF_TIMEOUT ? HF_OK : code;
}

static hf_code follow(struct cli_watch *watch, hf_error *err)
{
    hf_code code = refresh(watch, err);
    while (code == HF_OK && !hf_status_finished(watch->run->status)) {
        if (watch->live) {
            cli_watch_draw(watch);
            cli_frame_show(&watch->frame);
        }
        code = sleep_until_news(watch, err);
        if (code == HF_OK)
            code = refresh(watch, err);
    }
    if (code == HF_OK && watch->live)
        cli_watch_draw(watch);
    return code;
}

static int show_watch(struct cli_session *session, int count, char **operands)
{
    (void)count;
    int status = CLI_OK;
    hf_error err = { 0 };
    struct cli_watch watch = {
        .session = session,
        .steps = HF__STEP_LINES_INIT,
        .utf8 = cli_terminal_utf8(),
        .live = !session->json && isatty(STDOUT_FILENO),
    };
    if (!cli_run_id(session, operands[0], &watch.id, &status))
        return status;
    hf_code code = follow(&watch, &err);
    if (watch.live)
        cli_frame_close(&watch.frame);
    if (code != HF_OK)
        status = cli_run_fail(session, operands[0], &err);
    else if (watch.live)
        status = watch.run->status == HF_SUCCEEDED ? CLI_OK : CLI_RUN_FAILED;
    else
        status = cli_show_outcome(session, watch.run);
    hf__step_lines_free(&watch.steps);
    hf_run_free(watch.run);
    return status;
}

const struct cli_command cli_command_watch = {
    .name = "watch",
    .summary = "Watch a run live until it has ended",
    .operands = "RUN",
    .details =
        "On a terminal: its status, progress, what it waits for, its children and its steps, "
        "drawn again as they change. Otherwise one line for each change, then the result as "
        "`wait` prints it. The exit code is that of `wait`: 8 when the run failed or was "
        "cancelled. RUN is an id, or WORKFLOW/KEY.",
    .examples = "holdfast watch order.v1/o-17",
    .min_operands = 1,
    .max_operands = 1,
    .run = show_watch,
};
