/* SPDX-License-Identifier: Apache-2.0 */
#include "util/duration.h"

#include "util/error.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { MAX_DECIMALS = 6 };

static const struct unit {
    const char *name;
    int64_t us;
} units[] = {
    { "w", INT64_C(604800000000) }, { "d", INT64_C(86400000000) }, { "h", INT64_C(3600000000) },
    { "m", INT64_C(60000000) },     { "s", INT64_C(1000000) },     { "ms", INT64_C(1000) },
    { "us", INT64_C(1) },
};

enum { UNIT_COUNT = sizeof units / sizeof units[0], SECONDS = 4 };

/* A decimal number, kept exact: whole + fraction / scale. */
struct amount {
    int64_t whole;
    int64_t fraction;
    int64_t scale;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* NULL, or what is wrong. */
static const char *read_fraction(const char **at, struct amount *out)
{
    if (!is_digit(**at))
        return "has a decimal point without digits after it";
    for (int i = 0; is_digit(**at); i++, (*at)++) {
        if (i == MAX_DECIMALS)
            return "has more than six decimals";
        out->fraction = out->fraction * 10 + (**at - '0');
        out->scale *= 10;
    }
    return NULL;
}

static const char *read_amount(const char **at, struct amount *out)
{
    *out = (struct amount){ .scale = 1 };
    if (**at == '-')
        return "is negative";
    if (!is_digit(**at))
        return "is not a number with a unit";
    for (; is_digit(**at); (*at)++) {
        out->whole = out->whole * 10 + (**at - '0');
        if (out->whole > HF__DURATION_MAX)
            return "is longer than 100 years";
    }
    if (**at != '.')
        return NULL;
    ++*at;
    return read_fraction(at, out);
}

/* Index into units, or UNIT_COUNT if it is none. */
static int read_unit(const char **at)
{
    size_t length = 0;
    while ((*at)[length] >= 'a' && (*at)[length] <= 'z')
        length++;
    for (int i = 0; i < UNIT_COUNT; i++) {
        if (strlen(units[i].name) == length && memcmp(units[i].name, *at, length) == 0) {
            *at += length;
            return i;
        }
    }
    return UNIT_COUNT;
}

static const char *add_amount(int64_t *total, const struct amount *amount, int unit)
{
    int64_t us = units[unit].us;
    if (amount->fraction * us % amount->scale != 0)
        return "is finer than a microsecond";
    if (amount->whole > HF__DURATION_MAX / us)
        return "is longer than 100 years";
    *total += amount->whole * us + amount->fraction * us / amount->scale;
    return *total > HF__DURATION_MAX ? "is longer than 100 years" : NULL;
}

static const char *read_duration(const char *at, int64_t *total)
{
    int smallest = -1;
    *total = 0;
    do {
        struct amount amount;
        const char *problem = read_amount(&at, &amount);
        if (problem)
            return problem;
        if (!*at && smallest < 0)
            return add_amount(total, &amount, SECONDS);
        int unit = read_unit(&at);
        if (unit == UNIT_COUNT)
            return "has no known unit (w, d, h, m, s, ms or us)";
        if (unit <= smallest)
            return "must have each unit once, the largest first";
        smallest = unit;
        problem = add_amount(total, &amount, unit);
        if (problem)
            return problem;
    } while (*at);
    return NULL;
}

hf_code hf__duration_parse(const char *text, int64_t *out, hf_error *err)
{
    int64_t total;
    const char *problem = text ? read_duration(text, &total) : "is missing";
    if (problem)
        return hf__fail(err, HF_INVALID,
                        "duration \"%.60s\" %s; write it as 90s, 1h30m, 1.5s or 3d",
                        text ? text : "", problem);
    *out = total;
    return HF_OK;
}

/* Appends "12h", or "1.5s" for 1 and 500000 millionths; returns the new end. */
static char *put_decimal(char *out, uint64_t whole, unsigned millionths, const char *unit)
{
    out += sprintf(out, "%" PRIu64, whole);
    if (millionths) {
        out += sprintf(out, ".%06u", millionths);
        while (out[-1] == '0')
            out--;
    }
    return stpcpy(out, unit);
}

void hf__duration_format(int64_t us, char out[HF__DURATION_TEXT])
{
    uint64_t rest = us < 0 ? 0 - (uint64_t)us : (uint64_t)us;
    if (us < 0)
        *out++ = '-';
    if (rest > 0 && rest < 1000) {
        put_decimal(out, rest, 0, "us");
        return;
    }
    if (rest > 0 && rest < 1000000) {
        put_decimal(out, rest / 1000, (unsigned)(rest % 1000) * 1000, "ms");
        return;
    }
    const char *start = out;
    for (int unit = 1; unit < SECONDS; unit++) {
        uint64_t size = (uint64_t)units[unit].us;
        if (rest >= size)
            out = put_decimal(out, rest / size, 0, units[unit].name);
        rest %= size;
    }
    if (rest > 0 || out == start)
        put_decimal(out, rest / 1000000, (unsigned)(rest % 1000000), "s");
}

struct timestamp {
    struct tm date; /* its own day and time, before the offset is taken off */
    int64_t micros;
    int64_t offset; /* seconds east of UTC */
};

static bool read_fixed(const char **at, int count, int low, int high, int *out)
{
    *out = 0;
    for (int i = 0; i < count; i++, (*at)++) {
        if (!is_digit(**at))
            return false;
        *out = *out * 10 + (**at - '0');
    }
    return *out >= low && *out <= high;
}

static bool read_char(const char **at, char upper)
{
    if (**at != upper && **at != (upper | 0x20))
        return false;
    ++*at;
    return true;
}

static int days_in(int year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month == 2 && leap ? 29 : days[month - 1];
}

static bool read_date(const char **at, struct tm *date)
{
    int year, month;
    if (!read_fixed(at, 4, 1969, 9999, &year) || !read_char(at, '-') ||
        !read_fixed(at, 2, 1, 12, &month) || !read_char(at, '-') ||
        !read_fixed(at, 2, 1, days_in(year, month), &date->tm_mday))
        return false;
    date->tm_year = year - 1900;
    date->tm_mon = month - 1;
    return true;
}

static bool read_clock_time(const char **at, struct tm *date)
{
    return read_fixed(at, 2, 0, 23, &date->tm_hour) && read_char(at, ':') &&
           read_fixed(at, 2, 0, 59, &date->tm_min) && read_char(at, ':') &&
           read_fixed(at, 2, 0, 59, &date->tm_sec);
}

static bool read_micros(const char **at, int64_t *out)
{
    struct amount amount = { .scale = 1 };
    if (**at == '.') {
        ++*at;
        if (read_fraction(at, &amount))
            return false;
    }
    *out = amount.fraction * (1000000 / amount.scale);
    return true;
}

static bool read_offset(const char **at, int64_t *seconds)
{
    *seconds = 0;
    if (read_char(at, 'Z'))
        return true;
    char sign = **at;
    if (sign != '+' && sign != '-')
        return false;
    ++*at;
    int hours, minutes;
    if (!read_fixed(at, 2, 0, 23, &hours) || !read_char(at, ':') ||
        !read_fixed(at, 2, 0, 59, &minutes))
        return false;
    *seconds = (hours * 60 + minutes) * (sign == '-' ? -60 : 60);
    return true;
}

static bool read_timestamp(const char *at, struct timestamp *out)
{
    *out = (struct timestamp){ .offset = 0 };
    return read_date(&at, &out->date) && read_char(&at, 'T') && read_clock_time(&at, &out->date) &&
           read_micros(&at, &out->micros) && read_offset(&at, &out->offset) && *at == '\0';
}

hf_code hf__time_parse(const char *text, int64_t *out, hf_error *err)
{
    struct timestamp stamp;
    if (!text || !read_timestamp(text, &stamp))
        return hf__fail(err, HF_INVALID,
                        "\"%.60s\" is not a time from 1970 to 9999; write it as "
                        "2026-11-15T21:20:51Z, with an offset (+01:00) instead of Z if you like, "
                        "and at most six decimals",
                        text ? text : "");
    int64_t us = ((int64_t)timegm(&stamp.date) - stamp.offset) * 1000000 + stamp.micros;
    if (us < 0 || us > HF__TIME_MAX)
        return hf__fail(err, HF_INVALID, "the time \"%.60s\" is not within 1970 to 9999 UTC", text);
    *out = us;
    return HF_OK;
}

void hf__time_format(int64_t us, char out[HF__TIME_TEXT])
{
    us = us < 0 ? 0 : us > HF__TIME_MAX ? HF__TIME_MAX : us;
    time_t seconds = (time_t)(us / 1000000);
    int micros = (int)(us % 1000000);
    struct tm date;
    gmtime_r(&seconds, &date);
    size_t length = strftime(out, HF__TIME_TEXT, "%Y-%m-%dT%H:%M:%S", &date);
    bool fine = micros % 1000 != 0;
    snprintf(out + length, HF__TIME_TEXT - length, ".%0*dZ", fine ? 6 : 3,
             fine ? micros : micros / 1000);
}
