/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/frame.h"

#include "cli/terminal.h"
#include "util/alloc.h"

#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#define ENTER "\033[?1049h\033[?25l" /* the other screen, no cursor */
#define LEAVE "\033[?25h\033[?1049l"

/* What stays behind. A signal handler, in whatever thread, may be reading the one that is just replaced: so each lives
 * one picture longer than it is needed. */
struct picture {
    size_t length;
    char text[];
};
static _Atomic(struct picture *) last;
static struct picture *replaced;

static void remember(const struct hf__buffer *text)
{
    struct picture *picture = text ? hf__malloc(sizeof *picture + text->length) : NULL;
    if (picture) {
        picture->length = text->length;
        memcpy(picture->text, text->data, text->length);
    }
    free(replaced);
    replaced = atomic_exchange(&last, picture);
}

/* The terminal's own settings, while keys are taken. */
static struct termios settings;
static atomic_bool keys_taken;

static void write_all(const char *text, size_t length)
{
    while (length > 0) {
        ssize_t written = write(STDOUT_FILENO, text, length);
        if (written <= 0)
            return;
        text += written;
        length -= (size_t)written;
    }
}

/* Only what a signal handler may call. */
static void give_back(void)
{
    if (atomic_load(&keys_taken))
        tcsetattr(STDIN_FILENO, TCSANOW, &settings);
    write_all(LEAVE, sizeof LEAVE - 1);
    const struct picture *picture = atomic_load(&last);
    if (picture)
        write_all(picture->text, picture->length);
}

static void stop(int number)
{
    give_back();
    signal(number, SIG_DFL);
    raise(number);
}

static void open_screen(void)
{
    struct sigaction action = { .sa_handler = stop, .sa_flags = SA_RESTART };
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    fflush(stdout);
    write_all(ENTER, sizeof ENTER - 1);
}

void cli_frame_take_keys(void)
{
    if (atomic_load(&keys_taken) || tcgetattr(STDIN_FILENO, &settings) != 0)
        return;
    struct termios changed = settings;
    changed.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    atomic_store(&keys_taken, true);
    tcsetattr(STDIN_FILENO, TCSANOW, &changed);
}

void cli_frame_begin(struct cli_frame *frame, const struct cli_session *session)
{
    cli_terminal_size(&frame->columns, &frame->rows);
    frame->colors = cli_terminal_colors(session);
    frame->ellipsis = cli_terminal_utf8() ? "…" : "~";
    frame->line = 0;
    frame->used = 0;
    hf__buffer_clear(&frame->text);
}

void cli_frame_add(struct cli_frame *frame, const char *color, const char *text)
{
    int room = frame->columns - frame->used;
    char *clean = room > 0 ? cli_clean_line(text) : NULL;
    if (!clean)
        return;
    bool cut = cli_text_width(clean) > room;
    bool colored = frame->colors && *color;
    if (cut)
        clean[cli_text_fit(clean, room - 1)] = '\0';
    hf__buffer_addf(&frame->text, "%s%s%s%s", colored ? color : "", clean,
                    cut ? frame->ellipsis : "", colored ? cli_color_end : "");
    frame->used = cut ? frame->columns : frame->used + cli_text_width(clean);
    free(clean);
}

void cli_frame_addf(struct cli_frame *frame, const char *color, const char *fmt, ...)
{
    char text[600];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    cli_frame_add(frame, color, text);
}

void cli_frame_pad(struct cli_frame *frame, int column)
{
    for (; frame->used < column && frame->used < frame->columns; frame->used++)
        hf__buffer_add_text(&frame->text, " ");
}

void cli_frame_end_line(struct cli_frame *frame)
{
    hf__buffer_add_text(&frame->text, "\n");
    frame->used = 0;
    frame->line++;
}

/* Every line wipes what was behind it; the rest of the screen is wiped below. */
static void draw(const struct cli_frame *frame)
{
    struct hf__buffer out = { 0 };
    int line = 0;
    hf__buffer_add_text(&out, "\033[H");
    for (const char *at = frame->text.data; *at && line < frame->rows; line++) {
        size_t length = strcspn(at, "\n");
        hf__buffer_add_text(&out, line ? "\r\n" : "");
        hf__buffer_add(&out, at, length);
        hf__buffer_add_text(&out, "\033[K");
        at += length + (at[length] == '\n');
    }
    hf__buffer_add_text(&out, "\033[J");
    if (!out.failed)
        write_all(out.data, out.length);
    hf__buffer_free(&out);
}

void cli_frame_show(struct cli_frame *frame)
{
    if (frame->text.failed || !frame->text.data)
        return;
    remember(&frame->text);
    if (!frame->open)
        open_screen();
    frame->open = true;
    draw(frame);
}

void cli_frame_close(struct cli_frame *frame)
{
    if (frame->open) {
        if (!frame->text.failed && frame->text.data)
            remember(&frame->text);
        give_back();
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        signal(SIGHUP, SIG_DFL);
        remember(NULL);
        remember(NULL);
    } else if (frame->text.data && !frame->text.failed) {
        fwrite(frame->text.data, 1, frame->text.length, stdout);
    }
    frame->open = false;
    hf__buffer_free(&frame->text);
}
