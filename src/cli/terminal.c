/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal.h"

#include "util/buffer.h"
#include "util/clock.h"
#include "util/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

enum { DEFAULT_WIDTH = 80, DEFAULT_HEIGHT = 24, NARROWEST = 40, BAR = 30 };

const char cli_color_end[] = "\033[0m";

static const struct status_color {
    const char *status;
    const char *sequence;
} status_colors[] = {
    { "pending", "\033[33m" },  { "leased", "\033[36m" },    { "waiting", "\033[34m" },
    { "paused", "\033[35m" },   { "succeeded", "\033[32m" }, { "failed", "\033[31m" },
    { "cancelled", "\033[2m" }, { "live", "\033[32m" },      { "dead", "\033[31m" },
};

int cli_terminal_width(void)
{
    if (!isatty(STDOUT_FILENO))
        return 0;
    struct winsize size;
    int width = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
    if (width == 0)
        width = DEFAULT_WIDTH;
    return width < NARROWEST ? NARROWEST : width;
}

void cli_terminal_size(int *columns, int *rows)
{
    struct winsize size;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    *columns = known && size.ws_col > 0 ? size.ws_col : DEFAULT_WIDTH;
    *rows = known && size.ws_row > 0 ? size.ws_row : DEFAULT_HEIGHT;
}

bool cli_terminal_utf8(void)
{
    static const char *const variables[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    if (!isatty(STDOUT_FILENO))
        return false;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *locale = getenv(variables[i]);
        if (locale && *locale)
            return strcasestr(locale, "utf-8") || strcasestr(locale, "utf8");
    }
    return false;
}

bool cli_terminal_colors(const struct cli_session *session)
{
    const char *no_color = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    return !session->no_color && !session->json && !(no_color && *no_color) &&
           !(terminal && strcmp(terminal, "dumb") == 0) && isatty(STDOUT_FILENO);
}

const char *cli_color_of(const char *status)
{
    for (size_t i = 0; i < sizeof status_colors / sizeof status_colors[0]; i++)
        if (strcmp(status_colors[i].status, status) == 0)
            return status_colors[i].sequence;
    return "";
}

/* C0, DEL and, as U+0080 to U+009F, C1. */
static bool steers_terminal(const char *bytes)
{
    unsigned char first = (unsigned char)bytes[0];
    return first < 0x20 || first == 0x7f || (first == 0xc2 && (unsigned char)bytes[1] < 0xa0);
}

/* Marks that turn the text around: an error or a key could look like another one. */
static bool turns_text(const char *bytes)
{
    static const char *const marks[] = { "\xd8\x9c", "\xe2\x80\x8e", "\xe2\x80\x8f" };
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        if (strncmp(bytes, marks[i], strlen(marks[i])) == 0)
            return true;
    if (strncmp(bytes, "\xe2\x80", 2) == 0)
        return (unsigned char)bytes[2] >= 0xa8 && (unsigned char)bytes[2] <= 0xae;
    return strncmp(bytes, "\xe2\x81", 2) == 0 && (unsigned char)bytes[2] >= 0xa6 &&
           (unsigned char)bytes[2] <= 0xa9;
}

static void add_clean(struct hf__buffer *out, const char *text, bool keep_lines)
{
    size_t length = strlen(text);
    for (size_t at = 0; at < length;) {
        size_t step = hf__utf8_sequence(text + at, length - at);
        bool is_space = text[at] == '\n' || text[at] == '\t';
        if (step == 0)
            hf__buffer_add_text(out, "\xef\xbf\xbd");
        else if (is_space)
            hf__buffer_add(out, keep_lines ? text + at : " ", 1);
        else if (steers_terminal(text + at) || turns_text(text + at))
            hf__buffer_add_text(out, "?");
        else
            hf__buffer_add(out, text + at, step);
        at += step ? step : 1;
    }
}

void cli_put_clean(FILE *out, const char *text)
{
    struct hf__buffer clean = { 0 };
    add_clean(&clean, text, true);
    if (clean.data && !clean.failed)
        fputs(clean.data, out);
    hf__buffer_free(&clean);
}

char *cli_clean_line(const char *text)
{
    struct hf__buffer clean = { 0 };
    add_clean(&clean, text, false);
    return hf__buffer_take(&clean);
}

/* Columns of the first character, whose bytes are counted in *bytes. */
static int width_of_first(const char *text, size_t *bytes)
{
    wchar_t wide = L' ';
    mbstate_t state = { 0 };
    size_t length = hf__utf8_sequence(text, strlen(text));
    *bytes = length ? length : 1;
    if (mbrtowc(&wide, text, *bytes, &state) > 4)
        return 1;
    int columns = wcwidth(wide);
    return columns < 0 ? 1 : columns;
}

int cli_text_width(const char *text)
{
    int columns = 0;
    size_t bytes;
    for (; *text; text += bytes)
        columns += width_of_first(text, &bytes);
    return columns;
}

size_t cli_text_fit(const char *text, int columns)
{
    size_t at = 0;
    size_t bytes;
    for (int used = 0; text[at]; at += bytes) {
        used += width_of_first(text + at, &bytes);
        if (used > columns)
            break;
    }
    return at;
}

/* Where a line of `columns` ends: at its last blank, or in the middle of a word that is longer. */
static size_t line_length(const char *text, int columns)
{
    size_t length = cli_text_fit(text, columns);
    size_t blank = length;
    while (text[length] && blank > 0 && text[blank] != ' ')
        blank--;
    return text[length] && blank > 0 ? blank : length;
}

void cli_put_folded(FILE *out, const char *text, int indent)
{
    int room = cli_terminal_width() - indent;
    while (room >= NARROWEST / 2 && cli_text_width(text) > room) {
        size_t length = line_length(text, room);
        fprintf(out, "%.*s\n%*s", (int)length, text, indent, "");
        text += length;
        text += strspn(text, " ");
    }
    fputs(text, out);
}

bool cli_can_ask(void)
{
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

bool cli_ask(const char *question)
{
    char answer[16] = "";
    fprintf(stderr, "%s [y/N] ", question);
    fflush(stderr);
    if (!fgets(answer, sizeof answer, stdin))
        return false;
    return strcmp(answer, "y\n") == 0 || strcmp(answer, "Y\n") == 0 || strcmp(answer, "yes\n") == 0;
}

static bool shows_progress(const struct cli_session *session)
{
    return !session->quiet && !session->json && isatty(STDERR_FILENO);
}

/* Drawing costs more than a batch does, so it is drawn ten times a second at most. */
static bool is_time_to_draw(void)
{
    static int64_t last;
    int64_t now = hf__monotonic_us();
    if (last && now - last < HF_MILLISECONDS(100))
        return false;
    last = now;
    return true;
}

void cli_progress_show(const struct cli_session *session, const char *what, int64_t done,
                       int64_t total)
{
    if (!shows_progress(session) || !is_time_to_draw())
        return;
    if (total <= 0) {
        fprintf(stderr, "\r\033[K%s %" PRId64, what, done);
        return;
    }
    int64_t part = done >= total ? total : done;
    int filled = (int)(part * BAR / total);
    fprintf(stderr, "\r\033[K%s [", what);
    for (int i = 0; i < BAR; i++)
        fputc(i < filled ? '#' : '.', stderr);
    fprintf(stderr, "] %" PRId64 "/%" PRId64 " %d%%", part, total, (int)(part * 100 / total));
}

void cli_progress_end(const struct cli_session *session)
{
    if (shows_progress(session))
        fputs("\r\033[K", stderr);
}
