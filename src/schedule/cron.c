/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/cron.h"

#include "schedule/calendar.h"
#include "util/duration.h"
#include "util/error.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define SECOND INT64_C(1000000)
#define EVERY_MIN SECOND
#define EVERY_MAX (366 * HF__DAY * SECOND)
/* Dates that come most seldom: 29 February on a weekday, across a century without leap day. */
#define HORIZON (INT64_C(60) * 366 * HF__DAY)
#define LAST_SECOND (HF__TIME_MAX / SECOND)

/* ---- Parsing ---- */

struct field {
    const char *name;
    int low, high;
    const char *const *words; /* words[0] stands for `low` */
    int word_count;
};

static const char *const month_words[] = { "jan", "feb", "mar", "apr", "may", "jun",
                                           "jul", "aug", "sep", "oct", "nov", "dec" };
static const char *const weekday_words[] = { "sun", "mon", "tue", "wed", "thu", "fri", "sat" };

enum { SECONDS, MINUTES, HOURS, DAYS, MONTHS, WEEKDAYS, FIELDS };

static const struct field fields[FIELDS] = {
    [SECONDS] = { "second", 0, 59, NULL, 0 },
    [MINUTES] = { "minute", 0, 59, NULL, 0 },
    [HOURS] = { "hour", 0, 23, NULL, 0 },
    [DAYS] = { "day of month", 1, 31, NULL, 0 },
    [MONTHS] = { "month", 1, 12, month_words, 12 },
    [WEEKDAYS] = { "day of week", 0, 7, weekday_words, 7 },
};

static const char *const shorthands[][2] = {
    { "@hourly", "0 * * * *" },   { "@daily", "0 0 * * *" },   { "@midnight", "0 0 * * *" },
    { "@weekly", "0 0 * * 0" },   { "@monthly", "0 0 1 * *" }, { "@yearly", "0 0 1 1 *" },
    { "@annually", "0 0 1 1 *" },
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool take_word(const char **at, const struct field *field, int *out)
{
    for (int i = 0; i < field->word_count; i++)
        if (strncasecmp(*at, field->words[i], 3) == 0) {
            *at += 3;
            *out = field->low + i;
            return true;
        }
    return false;
}

static bool take_number(const char **at, int *out)
{
    if (!is_digit(**at))
        return false;
    for (*out = 0; is_digit(**at); ++*at)
        if ((*out = *out * 10 + (**at - '0')) > 9999)
            return false;
    return true;
}

static bool take_value(const char **at, const struct field *field, int *out)
{
    return take_word(at, field, out) ||
           (take_number(at, out) && *out >= field->low && *out <= field->high);
}

/* One item of a list: "*", "5", "mon-fri", "10-40/5", with its step. False: it is none. */
static bool take_item(const char **at, const struct field *field, uint64_t *bits)
{
    int low = field->low, high = field->high, step = 1;
    bool star =
        **at == '*' || (**at == '?' && (field == &fields[DAYS] || field == &fields[WEEKDAYS]));
    bool range = star;
    if (star) {
        ++*at;
    } else {
        if (!take_value(at, field, &low))
            return false;
        high = low;
        if ((range = **at == '-')) {
            ++*at;
            if (!take_value(at, field, &high))
                return false;
            if (field == &fields[WEEKDAYS] && high == 0)
                high = 7; /* fri-sun */
        }
    }
    if (**at == '/') {
        ++*at;
        if (!take_number(at, &step) || step < 1 || step > field->high - field->low + 1)
            return false;
        if (!range)
            high = field->high; /* 10/5: from 10 on */
    }
    if (low > high)
        return false;
    for (int value = low; value <= high; value += step)
        *bits |= UINT64_C(1) << (field == &fields[WEEKDAYS] ? value % 7 : value);
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static hf_code take_field(const char **at, const struct field *field, uint64_t *bits, bool *star,
                          hf_error *err)
{
    const char *began = *at;
    bool good = true;
    *bits = 0;
    *star = **at == '*' || **at == '?';
    do {
        good = take_item(at, field, bits);
    } while (good && **at == ',' && ++*at);
    if (good && (**at == '\0' || is_blank(**at)))
        return HF_OK;
    return hf__fail(err, HF_INVALID,
                    "the %s \"%.*s\" of the cron expression is not understood: write *, a value "
                    "from %d to %d%s, a range 1-5, a list 1,3 or a step */2",
                    field->name, (int)strcspn(began, " \t") > 60 ? 60 : (int)strcspn(began, " \t"),
                    began, field->low, field->high, field->words ? " or its name" : "");
}

static int count_fields(const char *text)
{
    int count = 0;
    for (bool inside = false; *text; text++) {
        count += !inside && !is_blank(*text);
        inside = !is_blank(*text);
    }
    return count;
}

/* 31 February, 31 of short months. A restricted weekday matches by itself. */
static bool never_comes(const struct hf__cron *cron)
{
    static const int most[] = { 0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    if (!cron->any_day && !cron->any_weekday)
        return false;
    for (int month = 1; month <= 12; month++)
        for (int day = 1; day <= most[month]; day++)
            if (cron->months >> month & 1 && cron->days >> day & 1)
                return false;
    return true;
}

static hf_code parse_fields(struct hf__cron *cron, const char *text, hf_error *err)
{
    uint64_t bits[FIELDS] = { [SECONDS] = 1 };
    bool stars[FIELDS] = { false };
    int count = count_fields(text);
    if (count != 5 && count != 6)
        return hf__fail(err, HF_INVALID,
                        "the cron expression \"%.100s\" has %d fields: write five (minute hour "
                        "day-of-month month day-of-week), six with seconds first, @daily, or "
                        "\"every 15m\"",
                        text, count);
    hf_code code = HF_OK;
    for (int i = count == 5 ? MINUTES : SECONDS; code == HF_OK && i < FIELDS; i++) {
        text += strspn(text, " \t");
        code = take_field(&text, &fields[i], &bits[i], &stars[i], err);
    }
    cron->seconds = bits[SECONDS];
    cron->minutes = bits[MINUTES];
    cron->hours = (uint32_t)bits[HOURS];
    cron->days = (uint32_t)bits[DAYS];
    cron->months = (uint32_t)bits[MONTHS];
    cron->weekdays = (uint32_t)bits[WEEKDAYS];
    cron->any_hour = stars[HOURS];
    cron->any_day = stars[DAYS];
    cron->any_weekday = stars[WEEKDAYS];
    if (code == HF_OK && never_comes(cron))
        code = hf__fail(err, HF_INVALID,
                        "the cron expression names a date that never comes: no month of it has "
                        "that day");
    return code;
}

static hf_code parse_every(struct hf__cron *cron, const char *text, hf_error *err)
{
    text += strspn(text, " \t");
    hf_code code = hf__duration_parse(text, &cron->every, err);
    if (code == HF_OK && (cron->every < EVERY_MIN || cron->every > EVERY_MAX))
        code = hf__fail(err, HF_INVALID, "the interval \"%.60s\" must be from 1s to 366d", text);
    if (code == HF_OK && cron->every % SECOND != 0)
        code = hf__fail(err, HF_INVALID, "the interval \"%.60s\" must be whole seconds", text);
    return code;
}

hf_code hf__cron_parse(struct hf__cron *out, const char *text, hf_error *err)
{
    *out = (struct hf__cron){ 0 };
    if (strnlen(text, HF__CRON_TEXT_MAX + 1) > HF__CRON_TEXT_MAX)
        return hf__fail(err, HF_INVALID, "a cron expression has at most %d bytes",
                        HF__CRON_TEXT_MAX);
    if (strncmp(text, "every", 5) == 0 && is_blank(text[5]))
        return parse_every(out, text + 5, err);
    for (size_t i = 0; i < sizeof shorthands / sizeof *shorthands; i++)
        if (strcasecmp(text, shorthands[i][0]) == 0)
            return parse_fields(out, shorthands[i][1], err);
    if (text[0] == '@')
        return hf__fail(err, HF_INVALID,
                        "\"%.60s\" is not known: use @hourly, @daily, @midnight, @weekly, "
                        "@monthly, @yearly or @annually",
                        text);
    return parse_fields(out, text, err);
}

/* ---- Firing ---- */

static bool day_matches(const struct hf__cron *cron, int64_t days, int day)
{
    bool by_day = cron->days >> day & 1;
    bool by_weekday = cron->weekdays >> hf__weekday_of(days) & 1;
    if (!cron->any_day && !cron->any_weekday)
        return by_day || by_weekday;
    return by_day && by_weekday;
}

/* The smallest set bit from `from` on; -1: none. */
static int next_bit(uint64_t bits, int from)
{
    uint64_t rest = from < 64 ? bits >> from << from : 0;
    return rest ? __builtin_ctzll(rest) : -1;
}

/* The first matching second of a day from `from` on; -1: none. */
static int time_of_day(const struct hf__cron *cron, int from)
{
    int hour = from / 3600, minute = from / 60 % 60, second = from % 60;
    for (int h = next_bit(cron->hours, hour); h >= 0; h = next_bit(cron->hours, h + 1)) {
        int first_minute = h == hour ? minute : 0;
        for (int m = next_bit(cron->minutes, first_minute); m >= 0;
             m = next_bit(cron->minutes, m + 1)) {
            int s = next_bit(cron->seconds, h == hour && m == minute ? second : 0);
            if (s >= 0)
                return h * 3600 + m * 60 + s;
        }
    }
    return -1;
}

/* The first match in [from, until) of local time, counted in seconds as if it were UTC; -1: none. */
static int64_t match_local(const struct hf__cron *cron, int64_t from, int64_t until)
{
    int64_t year, days = from / HF__DAY;
    int month, day, start = (int)(from % HF__DAY);
    while (days * HF__DAY < until) {
        hf__date_of(days, &year, &month, &day);
        if (!(cron->months >> month & 1)) {
            days += hf__days_in_month(year, month) - day + 1;
            start = 0;
            continue;
        }
        int time = day_matches(cron, days, day) ? time_of_day(cron, start) : -1;
        if (time >= 0)
            return days * HF__DAY + time < until ? days * HF__DAY + time : -1;
        days++;
        start = 0;
    }
    return -1;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The first firing in a span from `from` on, in seconds; -1: none. */
static int64_t match_span(const struct hf__cron *cron, const struct hf__zone_span *span,
                          int64_t from, int64_t limit)
{
    int64_t until = (span->until < limit ? span->until : limit) + span->offset;
    int64_t local = from + span->offset;
    bool begins = from == span->from;
    if (!cron->any_hour && begins && span->before < span->offset &&
        match_local(cron, later(from + span->before, 0), local) >= 0)
        return from; /* the clocks jumped over it */
    if (!cron->any_hour && span->from != INT64_MIN && span->before > span->offset)
        local = later(local, span->from + span->before); /* before that it was already */
    int64_t match = match_local(cron, later(local, 0), until);
    return match < 0 ? -1 : match - span->offset;
}

static int64_t next_interval(const struct hf__cron *cron, int64_t after)
{
    int64_t next = (after / cron->every + 1) * cron->every;
    return next <= HF__TIME_MAX ? next : 0;
}

int64_t hf__cron_next(const struct hf__cron *cron, const struct hf__zone *zone, int64_t after)
{
    if (after < 0)
        after = 0;
    if (after >= HF__TIME_MAX)
        return 0;
    if (cron->every)
        return next_interval(cron, after);
    int64_t from = after / SECOND + 1;
    int64_t limit = from + HORIZON < LAST_SECOND ? from + HORIZON : LAST_SECOND;
    while (from < limit) {
        struct hf__zone_span span = hf__zone_at(zone, from);
        int64_t match = match_span(cron, &span, from, limit);
        if (match >= 0)
            return match * SECOND;
        from = span.until;
    }
    return 0;
}

/* Going on from any time before the last firing finds one that is not too late; from the last firing itself none. */
int64_t hf__cron_last(const struct hf__cron *cron, const struct hf__zone *zone, int64_t after,
                      int64_t until)
{
    int64_t last = hf__cron_next(cron, zone, after);
    if (last == 0 || last > until)
        return 0;
    for (int64_t high = until; last < high;) {
        int64_t middle = last + (high - last) / 2;
        int64_t next = hf__cron_next(cron, zone, middle);
        if (next != 0 && next <= until)
            last = next;
        else
            high = middle;
    }
    return last;
}
