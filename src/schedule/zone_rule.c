/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/zone_rule.h"

#include "schedule/calendar.h"

struct text {
    const char *at;
    const char *end;
};

static bool take(struct text *text, char c)
{
    if (text->at == text->end || *text->at != c)
        return false;
    text->at++;
    return true;
}

static bool is_digit(const struct text *text)
{
    return text->at < text->end && *text->at >= '0' && *text->at <= '9';
}

static bool take_number(struct text *text, int low, int high, int *out)
{
    int value = 0;
    if (!is_digit(text))
        return false;
    for (; is_digit(text); text->at++) {
        value = value * 10 + (*text->at - '0');
        if (value > high)
            return false;
    }
    *out = value;
    return value >= low;
}

static bool is_letter(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool skip_name(struct text *text)
{
    const char *began = text->at;
    if (take(text, '<')) {
        while (text->at < text->end && *text->at != '>')
            text->at++;
        return take(text, '>');
    }
    while (text->at < text->end && is_letter(*text->at))
        text->at++;
    return text->at - began >= 3;
}

/* [+-]hh[:mm[:ss]] in seconds. */
static bool take_clock(struct text *text, int most_hours, int *out)
{
    int hours, minutes = 0, seconds = 0;
    bool negative = take(text, '-');
    if (!negative)
        take(text, '+');
    if (!take_number(text, 0, most_hours, &hours))
        return false;
    if (take(text, ':')) {
        if (!take_number(text, 0, 59, &minutes))
            return false;
        if (take(text, ':') && !take_number(text, 0, 59, &seconds))
            return false;
    }
    *out = hours * 3600 + minutes * 60 + seconds;
    if (negative)
        *out = -*out;
    return true;
}

static bool take_day(struct text *text, struct hf__zone_rule *rule)
{
    if (take(text, 'M')) {
        rule->form = 'M';
        return take_number(text, 1, 12, &rule->month) && take(text, '.') &&
               take_number(text, 1, 5, &rule->week) && take(text, '.') &&
               take_number(text, 0, 6, &rule->day);
    }
    bool julian = take(text, 'J');
    rule->form = julian ? 'J' : 'N';
    return take_number(text, julian ? 1 : 0, 365, &rule->day);
}

static bool take_rule(struct text *text, struct hf__zone_rule *rule)
{
    *rule = (struct hf__zone_rule){ .seconds = 2 * 3600 };
    if (!take(text, ',') || !take_day(text, rule))
        return false;
    return !take(text, '/') || take_clock(text, 167, &rule->seconds);
}

/* Offsets are written westwards. */
bool hf__zone_rest_parse(struct hf__zone_rest *rest, const char *begin, const char *end)
{
    struct text text = { begin, end };
    int west;
    *rest = (struct hf__zone_rest){ 0 };
    if (!skip_name(&text) || !take_clock(&text, 24, &west))
        return false;
    rest->standard = -west;
    if (text.at == text.end)
        return true;
    rest->changes = true;
    rest->summer = rest->standard + 3600;
    if (!skip_name(&text))
        return false;
    if (text.at < text.end && *text.at != ',') {
        if (!take_clock(&text, 24, &west))
            return false;
        rest->summer = -west;
    }
    return take_rule(&text, &rest->begin) && take_rule(&text, &rest->end) && text.at == text.end;
}

/* Days since the epoch on which a rule falls in a year. */
static int64_t rule_day(const struct hf__zone_rule *rule, int64_t year)
{
    int64_t january = hf__days_of(year, 1, 1);
    if (rule->form == 'N')
        return january + rule->day;
    if (rule->form == 'J')
        return january + rule->day - 1 + (hf__days_in_month(year, 2) == 29 && rule->day >= 60);
    int64_t first = hf__days_of(year, rule->month, 1);
    int day = (rule->day - hf__weekday_of(first) + 7) % 7 + (rule->week - 1) * 7;
    while (day >= hf__days_in_month(year, rule->month))
        day -= 7;
    return first + day;
}

/* A change of the clocks is meant in the time before it. */
int hf__zone_rest_changes(const struct hf__zone_rest *rest, int64_t seconds,
                          struct hf__zone_change out[HF__ZONE_CHANGES])
{
    int64_t year;
    int month, day, count = 0;
    hf__date_of(hf__day_of(seconds), &year, &month, &day);
    for (int64_t y = year - 1; y <= year + 1; y++) {
        struct hf__zone_change pair[2] = {
            { rule_day(&rest->begin, y) * HF__DAY + rest->begin.seconds - rest->standard,
              rest->summer },
            { rule_day(&rest->end, y) * HF__DAY + rest->end.seconds - rest->summer,
              rest->standard },
        };
        bool swapped = pair[1].at < pair[0].at; /* summer lies across the new year */
        out[count++] = pair[swapped];
        out[count++] = pair[!swapped];
    }
    return count;
}
