/* holdfast top
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/field.h"
#include "cli/frame.h"
#include "cli/terminal.h"
#include "cli/top.h"
#include "util/duration.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TICK_MS 1000
#define LATE HF_SECONDS(30) /* a run that has been due for longer is shown as a warning */

enum { NAME_LEAST = 12, NAME_MOST = 60, NUMBERS = 67, WORKERS_LEAST = 4, WIDE = 160 };

static const char dim[] = "\033[2m";
static const char bold[] = "\033[1m";

struct screen {
    struct cli_session *session;
    struct cli_frame frame;
    bool paused;
    bool live;  /* a terminal, drawn again and again */
    bool ended; /* what is drawn now stays */
};

/* ---- Drawing ---- */

static void put_right(struct screen *screen, const char *color, int column, const char *text)
{
    cli_frame_pad(&screen->frame, column - cli_text_width(text));
    cli_frame_add(&screen->frame, color, text);
}

static void put_count(struct screen *screen, const char *color, int column, int64_t count)
{
    char text[CLI_COUNT_TEXT];
    cli_count_text(count, text);
    put_right(screen, count ? color : dim, column, text);
}

static void put_rate(struct screen *screen, const char *color, int column, double rate)
{
    char text[CLI_COUNT_TEXT];
    if (rate >= 100)
        cli_count_text((int64_t)(rate + 0.5), text);
    else
        snprintf(text, sizeof text, "%.1f", rate);
    put_right(screen, rate > 0 ? color : dim, column, rate > 0 ? text : "0");
}

static void put_total(struct screen *screen, const char *name, int64_t count, const char *color)
{
    char text[CLI_COUNT_TEXT];
    cli_count_text(count, text);
    cli_frame_addf(&screen->frame, count ? color : "", "%s ", text);
    cli_frame_addf(&screen->frame, dim, "%s   ", name);
}

static void draw_head(struct screen *screen, const struct cli_top *top)
{
    char time[HF__TIME_TEXT];
    hf__time_format(top->measure->now - top->measure->now % HF_SECONDS(1), time);
    time[strlen("2026-11-15T21:20:51")] = '\0';
    cli_frame_add(&screen->frame, bold, "holdfast top");
    if (screen->paused)
        cli_frame_add(&screen->frame, cli_color_of("paused"), "  paused");
    cli_frame_addf(&screen->frame, "", "  %s", cli_store_name(screen->session));
    cli_frame_addf(&screen->frame, dim, "  tenant %s  %sZ", top->client->tenant, time);
    cli_frame_end_line(&screen->frame);
}

static void draw_totals(struct screen *screen, const struct cli_top *top)
{
    const struct hf__measure *measure = top->measure;
    int64_t due = 0, leased = 0, delayed = 0, failed = 0;
    for (size_t i = 0; i < measure->count; i++) {
        due += measure->items[i].due;
        leased += measure->items[i].leased;
        delayed += measure->items[i].delayed;
        failed += measure->items[i].failed;
    }
    put_total(screen, "due", due, "");
    put_total(screen, "held", leased, cli_color_of("leased"));
    put_total(screen, "delayed", delayed, "");
    put_total(screen, "failed", failed, cli_color_of("failed"));
    put_total(screen, "mail", measure->mail, "");
    put_total(screen, "dead letters", measure->dead_letters, cli_color_of("failed"));
    put_total(screen, "undelivered", measure->undelivered, "");
    cli_frame_end_line(&screen->frame);
    cli_frame_end_line(&screen->frame);
}

/* Right ends of the columns behind the name. */
struct columns {
    int name, due, held, delayed, failed, triggered, started, ended, failing, oldest;
};

static struct columns place_columns(const struct screen *screen, const struct cli_top *top)
{
    int widest = NAME_LEAST;
    int room = screen->frame.columns - NUMBERS;
    for (size_t i = 0; i < top->measure->count; i++) {
        int width = cli_text_width(top->pulses[i].depth->workflow);
        widest = width > widest ? width : widest;
    }
    int most = room < NAME_LEAST ? NAME_LEAST : room > NAME_MOST ? NAME_MOST : room;
    int name = widest < most ? widest : most;
    return (struct columns){
        .name = name,
        .due = name + 8,
        .held = name + 15,
        .delayed = name + 23,
        .failed = name + 31,
        .triggered = name + 37,
        .started = name + 45,
        .ended = name + 51,
        .failing = name + 58,
        .oldest = name + NUMBERS,
    };
}

static void draw_titles(struct screen *screen, const struct columns *at)
{
    cli_frame_add(&screen->frame, dim, "WORKFLOW");
    put_right(screen, dim, at->due, "DUE");
    put_right(screen, dim, at->held, "HELD");
    put_right(screen, dim, at->delayed, "DELAYED");
    put_right(screen, dim, at->failed, "FAILED");
    put_right(screen, dim, at->triggered, "NEW/S");
    put_right(screen, dim, at->started, "START/S");
    put_right(screen, dim, at->ended, "OK/S");
    put_right(screen, dim, at->failing, "BAD/S");
    put_right(screen, dim, at->oldest, "OLDEST");
    cli_frame_end_line(&screen->frame);
}

static void draw_name(struct screen *screen, const char *name, int width)
{
    char text[256];
    bool cut = cli_text_width(name) > width;
    snprintf(text, sizeof text, "%.*s%s", (int)cli_text_fit(name, cut ? width - 1 : width), name,
             cut ? screen->frame.ellipsis : "");
    cli_frame_add(&screen->frame, "", text);
}

static void draw_workflow(struct screen *screen, const struct cli_top *top,
                          const struct cli_pulse *pulse, const struct columns *at)
{
    const struct hf__depth *depth = pulse->depth;
    int64_t age = depth->oldest ? top->measure->now - depth->oldest : 0;
    char span[CLI_SPAN_TEXT] = "-";
    if (depth->oldest)
        cli_span_text(age, span);
    draw_name(screen, depth->workflow, at->name);
    put_count(screen, "", at->due, depth->due);
    put_count(screen, cli_color_of("leased"), at->held, depth->leased);
    put_count(screen, "", at->delayed, depth->delayed);
    put_count(screen, cli_color_of("failed"), at->failed, depth->failed);
    put_rate(screen, "", at->triggered, pulse->triggered);
    put_rate(screen, "", at->started, pulse->started);
    put_rate(screen, cli_color_of("succeeded"), at->ended, pulse->succeeded);
    put_rate(screen, cli_color_of("failed"), at->failing, pulse->failed + pulse->retried);
    put_right(screen, age > LATE ? cli_color_of("waiting") : dim, at->oldest,
              depth->paused ? "paused" : span);
    cli_frame_end_line(&screen->frame);
}

static void draw_more(struct screen *screen, size_t count, const char *what)
{
    if (count == 0)
        return;
    cli_frame_addf(&screen->frame, dim, "and %zu more %s", count, what);
    cli_frame_end_line(&screen->frame);
}

static void draw_serves(struct screen *screen, const hf_worker_info *worker)
{
    char *text =
        cli_field_text(screen->session, hf__field_find(hf__worker_fields, "serves"), worker);
    cli_frame_add(&screen->frame, "", text ? text : "");
    free(text);
}

static void draw_worker(struct screen *screen, const hf_worker_info *worker, int width)
{
    const char *state = !worker->live ? "dead" : worker->draining ? "draining" : "live";
    draw_name(screen, worker->name, width);
    cli_frame_pad(&screen->frame, width + 2);
    cli_frame_add(&screen->frame, worker->live ? dim : cli_color_of("failed"), state);
    put_count(screen, cli_color_of("leased"), width + 16, worker->running);
    put_count(screen, "", width + 25, worker->threads);
    cli_frame_pad(&screen->frame, width + 27);
    draw_serves(screen, worker);
    cli_frame_end_line(&screen->frame);
}

static void draw_workers(struct screen *screen, const struct cli_top *top, int rows, int width)
{
    size_t count = top->workers->count;
    size_t shown = count <= (size_t)rows ? count : (size_t)(rows > 1 ? rows - 1 : 0);
    cli_frame_end_line(&screen->frame);
    cli_frame_add(&screen->frame, dim, count ? "WORKER" : "no workers");
    if (count) {
        put_right(screen, dim, width + 16, "HOLDS");
        put_right(screen, dim, width + 25, "THREADS");
        cli_frame_pad(&screen->frame, width + 27);
        cli_frame_add(&screen->frame, dim, "SERVES");
    }
    cli_frame_end_line(&screen->frame);
    for (size_t i = 0; i < shown; i++)
        draw_worker(screen, &top->workers->items[i], width);
    draw_more(screen, count - shown, "workers");
}

/* Workers get what they need, and at least a few lines; workflows get the rest. Without a screen there is room for all. */
static void draw(struct screen *screen, const struct cli_top *top)
{
    size_t count = top->measure->count;
    int workers = (int)top->workers->count;
    cli_frame_begin(&screen->frame, screen->session);
    if (!screen->live)
        screen->frame.columns = WIDE;
    struct columns at = place_columns(screen, top);
    draw_head(screen, top);
    draw_totals(screen, top);
    draw_titles(screen, &at);
    int room = screen->frame.rows - screen->frame.line - 3; /* workers' title, keys */
    int least = workers < WORKERS_LEAST ? workers : WORKERS_LEAST;
    int rows = room - least > 1 ? room - least : 1;
    size_t shown = count <= (size_t)rows || !screen->live ? count : (size_t)(rows - 1);
    for (size_t i = 0; i < shown; i++)
        draw_workflow(screen, top, &top->pulses[i], &at);
    draw_more(screen, count - shown, "workflows");
    int left = room - (int)(shown + (shown < count));
    draw_workers(screen, top, screen->live ? (left > 0 ? left : 1) : workers, at.name);
    if (screen->live && !screen->ended)
        cli_frame_add(&screen->frame, dim, "q: quit   space: pause");
}

/* ---- Machines ---- */

static const struct hf__field depth_fields[] = {
    { "workflow", HF__FIELD_TEXT, offsetof(struct hf__depth, workflow) },
    { "paused", HF__FIELD_BOOL, offsetof(struct hf__depth, paused) },
    { "due", HF__FIELD_INT64, offsetof(struct hf__depth, due) },
    { "leased", HF__FIELD_INT64, offsetof(struct hf__depth, leased) },
    { "delayed", HF__FIELD_INT64, offsetof(struct hf__depth, delayed) },
    { "failed", HF__FIELD_INT64, offsetof(struct hf__depth, failed) },
    { "oldest_due", HF__FIELD_TIME, offsetof(struct hf__depth, oldest) },
    { NULL, HF__FIELD_TEXT, 0 },
};

static void print_json(const struct cli_top *top)
{
    for (size_t i = 0; i < top->measure->count; i++) {
        const struct cli_pulse *pulse = &top->pulses[i];
        struct hf__buffer line = { 0 };
        hf__buffer_add_text(&line, "{");
        hf__record_members(&line, depth_fields, pulse->depth);
        hf__buffer_addf(&line,
                        ",\"triggered_per_second\":%.3f,\"started_per_second\":%.3f,"
                        "\"succeeded_per_second\":%.3f,\"failed_per_second\":%.3f,"
                        "\"retried_per_second\":%.3f}\n",
                        pulse->triggered, pulse->started, pulse->succeeded, pulse->failed,
                        pulse->retried);
        if (!line.failed)
            fwrite(line.data, 1, line.length, stdout);
        hf__buffer_free(&line);
    }
}

/* ---- Going on ---- */

static void resized(int number)
{
    (void)number;
}

/* Ends poll at once, so that the picture fits again. */
static void watch_size(void)
{
    struct sigaction action = { .sa_handler = resized };
    sigemptyset(&action.sa_mask);
    sigaction(SIGWINCH, &action, NULL);
}

/* Waits for a second, a key or a new size. False: enough. */
static bool go_on(struct screen *screen)
{
    struct pollfd keys = { .fd = STDIN_FILENO, .events = POLLIN };
    char key = 0;
    if (poll(&keys, 1, TICK_MS) <= 0)
        return true;
    if (read(STDIN_FILENO, &key, 1) != 1)
        return false;
    if (key == ' ')
        screen->paused = !screen->paused;
    return key != 'q' && key != 'Q' && key != '\033';
}

static hf_code run_live(struct screen *screen, struct cli_top *top, hf_error *err)
{
    hf_code code = cli_top_look(top, err);
    watch_size();
    while (code == HF_OK) {
        draw(screen, top);
        cli_frame_show(&screen->frame);
        cli_frame_take_keys();
        if (!go_on(screen))
            break;
        if (!screen->paused)
            code = cli_top_look(top, err);
    }
    screen->ended = true;
    if (code == HF_OK)
        draw(screen, top);
    return code;
}

static hf_code run_once(struct screen *screen, struct cli_top *top, hf_error *err)
{
    hf_code code = cli_top_look(top, err);
    if (code == HF_OK) {
        poll(NULL, 0, TICK_MS);
        code = cli_top_look(top, err);
    }
    if (code == HF_OK && screen->session->json)
        print_json(top);
    else if (code == HF_OK)
        draw(screen, top);
    return code;
}

static int show_top(struct cli_session *session, int count, char **operands)
{
    (void)count, (void)operands;
    int status = CLI_OK;
    hf_error err = { 0 };
    if (!cli_open(session, &status))
        return status;
    struct screen screen = {
        .session = session,
        .live = !session->json && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO),
    };
    struct cli_top top = { .client = session->client };
    hf_code code = (screen.live ? run_live : run_once)(&screen, &top, &err);
    cli_frame_close(&screen.frame);
    cli_top_free(&top);
    return code == HF_OK ? CLI_OK : cli_fail(session, &err);
}

const struct cli_command cli_command_top = {
    .name = "top",
    .summary = "Show live what there is to do, how fast it goes, by whom",
    .operands = "",
    .details =
        "Workflows of the tenant, the busiest first, with their rates over the last ten seconds, "
        "and "
        "the workers; drawn again each second. Keys: q ends it, space holds the picture. At most "
        "100,000 runs of a workflow are counted.\n"
        "Without a terminal it looks for one second, prints that once and ends; --json prints one "
        "object for each workflow.",
    .examples = "holdfast top\n"
                "holdfast top --json | jq -c 'select(.due > 0) | [.workflow, .due]'",
    .run = show_top,
};
