/* holdfast watch
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/children.h"
#include "cli/commands.h"
#include "cli/frame.h"
#include "cli/outcome.h"
#include "cli/run_ref.h"
#include "cli/steps.h"
#include "cli/terminal.h"
#include "util/duration.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAGE = 500, LABEL = 11, BAR = 24, NAME_MOST = 32 };

#define TICK HF_SECONDS(1) /* clocks on the screen are drawn so often */
#define LOOK_AGAIN                                                                                 \
    HF_SECONDS(30) /* without a screen: a run whose end was missed is noticed after so long */

static const char dim[] = "\033[2m";
static const char bold[] = "\033[1m";

struct watch {
    struct cli_session *session;
    hf_id id;
    hf_run *run;
    struct hf__step_lines steps;
    int64_t children[HF_STATUS_COUNT];
    int64_t seq;   /* of the last event that was seen */
    int64_t since; /* of the last event of its life */
    bool utf8;
    bool live; /* a terminal, drawn again and again */
    struct cli_frame frame;
};

/* ---- The picture ---- */

static void label(struct watch *watch, const char *text)
{
    cli_frame_add(&watch->frame, dim, text);
    cli_frame_pad(&watch->frame, LABEL);
}

static void put_span(struct watch *watch, const char *color, const char *before, int64_t us)
{
    char span[CLI_SPAN_TEXT];
    /* Clocks that tick by the second show no tenths. */
    cli_span_text(us >= TICK && us < HF_MINUTES(1) ? us - us % TICK : us, span);
    char *tenths = us >= TICK && us < HF_MINUTES(1) ? strchr(span, '.') : NULL;
    if (tenths)
        strcpy(tenths, "s");
    cli_frame_addf(&watch->frame, color, "%s%s", before, us < TICK ? "0s" : span);
}

static void draw_title(struct watch *watch)
{
    const hf_run *run = watch->run;
    char id[HF_ID_TEXT];
    hf_id_format(run->id, id);
    cli_frame_addf(&watch->frame, bold, "%s%s%s", run->workflow, run->key ? "/" : "",
                   run->key ? run->key : "");
    cli_frame_addf(&watch->frame, dim, "  %s", id);
    cli_frame_end_line(&watch->frame);
}

static void draw_status(struct watch *watch)
{
    const hf_run *run = watch->run;
    const char *status = hf_status_name(run->status);
    bool finished = hf_status_finished(run->status);
    int64_t now = cli_now(watch->session);
    label(watch, "status");
    cli_frame_add(&watch->frame, cli_color_of(status), status);
    if (!finished && watch->since)
        put_span(watch, "", " for ", now - watch->since);
    if (finished && run->started_at)
        put_span(watch, "", " after ", run->finished_at - run->started_at);
    if (run->attempt > 0)
        cli_frame_addf(&watch->frame, "", ", attempt %d of %d", cli_attempts_made(run),
                       run->max_attempts);
    if (run->pause_requested)
        cli_frame_add(&watch->frame, "", ", pauses at its next commit");
    cli_frame_end_line(&watch->frame);
    if (run->status == HF_LEASED && run->leased_by) {
        label(watch, "worker");
        cli_frame_add(&watch->frame, "", run->leased_by);
        cli_frame_end_line(&watch->frame);
    }
}

static void draw_progress(struct watch *watch)
{
    int percent = watch->steps.percent;
    if (percent < 0 || watch->run->status == HF_SUCCEEDED)
        return;
    int room = watch->frame.columns - LABEL - 8;
    int width = room < BAR ? (room < 4 ? 4 : room) : BAR;
    int filled = percent * width / 100;
    label(watch, "progress");
    cli_frame_add(&watch->frame, "", "[");
    for (int i = 0; i < width; i++)
        cli_frame_add(&watch->frame, i < filled ? cli_color_of("succeeded") : dim,
                      i < filled ? (watch->utf8 ? "█" : "#") : (watch->utf8 ? "░" : "."));
    cli_frame_addf(&watch->frame, "", "] %d%%", percent);
    if (watch->steps.message)
        cli_frame_addf(&watch->frame, "", "  %s", watch->steps.message);
    cli_frame_end_line(&watch->frame);
}

/* The step that the run stands at, if it waits there. */
static const struct hf__step_line *waiting_step(const struct watch *watch)
{
    const struct hf__step_line *step =
        watch->steps.count ? &watch->steps.items[watch->steps.count - 1] : NULL;
    return step && step->status && strcmp(step->status, "waiting") == 0 ? step : NULL;
}

static void draw_countdown(struct watch *watch, const char *before, int64_t until)
{
    int64_t left = until - cli_now(watch->session);
    if (left > 0)
        put_span(watch, "", before, left);
    else
        cli_frame_add(&watch->frame, "", ", due now");
}

static void draw_waiting(struct watch *watch)
{
    const hf_run *run = watch->run;
    const struct hf__step_line *step = waiting_step(watch);
    int64_t now = cli_now(watch->session);
    if (run->status == HF_PENDING && run->run_at > now + TICK) {
        label(watch, run->attempt > 0 ? "next try" : "starts");
        put_span(watch, "", "in ", run->run_at - now);
        cli_frame_end_line(&watch->frame);
    }
    if (run->status != HF_WAITING)
        return;
    label(watch, "waits for");
    cli_frame_add(&watch->frame, "", run->waiting_kind ? run->waiting_kind : "a signal");
    if (step)
        cli_frame_addf(&watch->frame, "", " \"%s\"", step->name);
    if (run->wait_count > 0)
        cli_frame_addf(&watch->frame, "", ", %d to come", run->wait_count);
    if (run->waiting_until)
        draw_countdown(watch, ", for another ", run->waiting_until);
    cli_frame_end_line(&watch->frame);
}

static void draw_children(struct watch *watch)
{
    struct hf__buffer text = { 0 };
    if (cli_counts_total(watch->children) == 0)
        return;
    label(watch, "children");
    cli_counts_add(&text, watch->children);
    if (!text.failed)
        cli_frame_add(&watch->frame, "", text.data);
    hf__buffer_free(&text);
    cli_frame_end_line(&watch->frame);
}

static void draw_outcome(struct watch *watch)
{
    const hf_run *run = watch->run;
    const char *error = run->last_error ? run->last_error : run->error;
    if (run->status == HF_SUCCEEDED && run->result) {
        label(watch, "result");
        cli_frame_add(&watch->frame, "", run->result);
        cli_frame_end_line(&watch->frame);
    } else if (error && run->status != HF_SUCCEEDED) {
        label(watch, run->status == HF_FAILED ? "error" : "last error");
        cli_frame_add(&watch->frame, cli_color_of("failed"), error);
        cli_frame_end_line(&watch->frame);
    }
}

static const char *mark_of(const struct watch *watch, const char *status)
{
    if (strcmp(status, "succeeded") == 0)
        return watch->utf8 ? "✓" : "+";
    if (strcmp(status, "failed") == 0)
        return watch->utf8 ? "✗" : "x";
    return watch->utf8 ? "◌" : "o";
}

static void draw_step(struct watch *watch, const struct hf__step_line *step, int name_width)
{
    const char *status = step->status ? step->status : "";
    bool waits = strcmp(status, "waiting") == 0;
    char *name = cli_clean_line(step->name);
    cli_frame_addf(&watch->frame, cli_color_of(status), "  %s ", mark_of(watch, status));
    if (name) {
        bool cut = cli_text_width(name) > name_width;
        name[cut ? cli_text_fit(name, name_width - 1) : strlen(name)] = '\0';
        cli_frame_add(&watch->frame, "", name);
        if (cut)
            cli_frame_add(&watch->frame, "", watch->utf8 ? "…" : "~");
    }
    free(name);
    cli_frame_pad(&watch->frame, 4 + name_width + 2);
    char took[CLI_SPAN_TEXT] = "";
    if (step->took >= 0)
        cli_span_text(step->took, took);
    if (waits && step->started)
        put_span(watch, dim, "", cli_now(watch->session) - step->started);
    else
        cli_frame_add(&watch->frame, dim, took);
    cli_frame_pad(&watch->frame, 4 + name_width + 2 + 9);
    if (waits && step->error)
        cli_frame_addf(&watch->frame, cli_color_of("failed"), "%s  ", step->error);
    if (waits && step->until)
        put_span(watch, "", "for another ", step->until - cli_now(watch->session));
    char *outcome = waits ? NULL : cli_step_outcome(watch->session, step);
    if (outcome)
        cli_frame_add(&watch->frame, step->error ? cli_color_of("failed") : dim, outcome);
    free(outcome);
    cli_frame_end_line(&watch->frame);
}

static int widest_name(const struct watch *watch, size_t from)
{
    int widest = 8;
    for (size_t i = from; i < watch->steps.count; i++) {
        int width = cli_text_width(watch->steps.items[i].name);
        widest = width > widest ? width : widest;
    }
    int most = watch->frame.columns / 2 < NAME_MOST ? watch->frame.columns / 2 : NAME_MOST;
    return widest < most ? widest : most;
}

/* As many of the newest as fit; all of them in the picture that stays. */
static void draw_steps(struct watch *watch)
{
    size_t count = watch->steps.count;
    size_t from = 0;
    if (count == 0)
        return;
    cli_frame_end_line(&watch->frame);
    int room = watch->frame.rows - watch->frame.line - 1;
    bool finished = hf_status_finished(watch->run->status);
    if (!finished && room < (int)count) {
        from = room > 1 ? count - (size_t)(room - 1) : count - 1;
        cli_frame_addf(&watch->frame, dim, "  %zu earlier steps, see `holdfast steps`", from);
        cli_frame_end_line(&watch->frame);
    }
    int name_width = widest_name(watch, from);
    for (size_t i = from; i < count; i++)
        draw_step(watch, &watch->steps.items[i], name_width);
}

static void draw(struct watch *watch)
{
    cli_frame_begin(&watch->frame, watch->session);
    draw_title(watch);
    draw_status(watch);
    draw_progress(watch);
    draw_waiting(watch);
    draw_children(watch);
    draw_outcome(watch);
    draw_steps(watch);
}

/* ---- Line by line ---- */

static void say_step(struct watch *watch, const hf_event *event)
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

static void say(struct watch *watch, const hf_event *event)
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

static void take_event(struct watch *watch, const hf_event *event)
{
    hf__step_lines_add(&watch->steps, event);
    watch->seq = event->seq;
    if (strcmp(event->kind, "lifecycle") == 0)
        watch->since = event->at;
    if (!watch->live)
        say(watch, event);
}

static void take_events(struct watch *watch, const hf_events *events)
{
    for (size_t i = 0; i < events->count; i++)
        take_event(watch, &events->items[i]);
}

static hf_code read_rest(struct watch *watch, hf_error *err)
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
static hf_code refresh(struct watch *watch, hf_error *err)
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
static hf_code sleep_until_news(struct watch *watch, hf_error *err)
{
    hf_events *events = NULL;
    hf_code code = hf_events_follow(watch->session->client, &events, watch->id, watch->seq, PAGE,
                                    watch->live ? TICK : LOOK_AGAIN, err);
    if (code == HF_OK)
        take_events(watch, events);
    hf_events_free(events);
    return code == HF_TIMEOUT ? HF_OK : code;
}

static hf_code follow(struct watch *watch, hf_error *err)
{
    hf_code code = refresh(watch, err);
    while (code == HF_OK && !hf_status_finished(watch->run->status)) {
        if (watch->live) {
            draw(watch);
            cli_frame_show(&watch->frame);
        }
        code = sleep_until_news(watch, err);
        if (code == HF_OK)
            code = refresh(watch, err);
    }
    if (code == HF_OK && watch->live)
        draw(watch);
    return code;
}

static int show_watch(struct cli_session *session, int count, char **operands)
{
    (void)count;
    int status = CLI_OK;
    hf_error err = { 0 };
    struct watch watch = {
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
