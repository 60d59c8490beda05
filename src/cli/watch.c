/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/watch.h"

#include <stdlib.h>
#include <string.h>

#include "cli/children.h"
#include "cli/outcome.h"
#include "cli/steps.h"
#include "cli/terminal.h"

enum { LABEL = 11, BAR = 24, NAME_MOST = 32 };

static const char dim[] = "\033[2m";
static const char bold[] = "\033[1m";

static void label(struct cli_watch *watch, const char *text)
{
    cli_frame_add(&watch->frame, dim, text);
    cli_frame_pad(&watch->frame, LABEL);
}

static void put_span(struct cli_watch *watch, const char *color, const char *before, int64_t us)
{
    char span[CLI_SPAN_TEXT];
    /* Clocks that tick by the second show no tenths. */
    cli_span_text(us >= CLI_WATCH_TICK && us < HF_MINUTES(1) ? us - us % CLI_WATCH_TICK : us, span);
    char *tenths = us >= CLI_WATCH_TICK && us < HF_MINUTES(1) ? strchr(span, '.') : NULL;
    if (tenths)
        strcpy(tenths, "s");
    cli_frame_addf(&watch->frame, color, "%s%s", before, us < CLI_WATCH_TICK ? "0s" : span);
}

static void draw_title(struct cli_watch *watch)
{
    const hf_run *run = watch->run;
    char id[HF_ID_TEXT];
    hf_id_format(run->id, id);
    cli_frame_addf(&watch->frame, bold, "%s%s%s", run->workflow, run->key ? "/" : "",
                   run->key ? run->key : "");
    cli_frame_addf(&watch->frame, dim, "  %s", id);
    cli_frame_end_line(&watch->frame);
}

static void draw_status(struct cli_watch *watch)
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

static void draw_progress(struct cli_watch *watch)
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
static const struct hf__step_line *waiting_step(const struct cli_watch *watch)
{
    const struct hf__step_line *step =
        watch->steps.count ? &watch->steps.items[watch->steps.count - 1] : NULL;
    return step && step->status && strcmp(step->status, "waiting") == 0 ? step : NULL;
}

static void draw_countdown(struct cli_watch *watch, const char *before, int64_t until)
{
    int64_t left = until - cli_now(watch->session);
    if (left > 0)
        put_span(watch, "", before, left);
    else
        cli_frame_add(&watch->frame, "", ", due now");
}

static void draw_waiting(struct cli_watch *watch)
{
    const hf_run *run = watch->run;
    const struct hf__step_line *step = waiting_step(watch);
    int64_t now = cli_now(watch->session);
    if (run->status == HF_PENDING && run->run_at > now + CLI_WATCH_TICK) {
        label(watch, run->attempt > 0 ? "next try" : "starts");
        put_span(watch, "", "in ", run->run_at - now);
        cli_frame_end_line(&watch->frame);
    }
    if (run->status != HF_WAITING)
        return;
    label(watch, "waits for");
    cli_frame_add(&watch->frame, "", cli_waits_for(run));
    if (step)
        cli_frame_addf(&watch->frame, "", " \"%s\"", step->name);
    if (run->wait_count > 0)
        cli_frame_addf(&watch->frame, "", ", %d to come", run->wait_count);
    if (run->waiting_until)
        draw_countdown(watch, ", for another ", run->waiting_until);
    cli_frame_end_line(&watch->frame);
}

static void draw_children(struct cli_watch *watch)
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

static void draw_outcome(struct cli_watch *watch)
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

static const char *mark_of(const struct cli_watch *watch, const char *status)
{
    if (strcmp(status, "succeeded") == 0)
        return watch->utf8 ? "✓" : "+";
    if (strcmp(status, "failed") == 0)
        return watch->utf8 ? "✗" : "x";
    return watch->utf8 ? "◌" : "o";
}

static void draw_step(struct cli_watch *watch, const struct hf__step_line *step, int name_width)
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

static int widest_name(const struct cli_watch *watch, size_t from)
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
static void draw_steps(struct cli_watch *watch)
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

void cli_watch_draw(struct cli_watch *watch)
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
