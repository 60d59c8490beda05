/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/calendar.h"

#include <stdbool.h>

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static bool is_leap(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

int hf__days_in_month(int64_t year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    return days[month - 1] + (month == 2 && is_leap(year));
}

/* Counts years from March, so that the leap day comes last. */
int64_t hf__days_of(int64_t year, int month, int day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = floor_div(y, 400);
    int64_t of_era = y - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

void hf__date_of(int64_t days, int64_t *year, int *month, int *day)
{
    int64_t shifted = days + 719468;
    int64_t era = floor_div(shifted, 146097);
    int64_t of_era = shifted - era * 146097;
    int64_t years = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * years + years / 4 - years / 100);
    int64_t shifted_month = (5 * of_year + 2) / 153;
    *day = (int)(of_year - (153 * shifted_month + 2) / 5 + 1);
    *month = (int)(shifted_month < 10 ? shifted_month + 3 : shifted_month - 9);
    *year = years + era * 400 + (*month <= 2);
}

int hf__weekday_of(int64_t days)
{
    int64_t weekday = (days + 4) % 7; /* the epoch was a Thursday */
    return (int)(weekday < 0 ? weekday + 7 : weekday);
}

int64_t hf__day_of(int64_t seconds)
{
    return floor_div(seconds, HF__DAY);
}
