/* The Gregorian calendar, in days since the epoch.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_SCHEDULE_CALENDAR_H
#define HF_SCHEDULE_CALENDAR_H

#include <stdint.h>

enum { HF__DAY = 86400 }; /* seconds */

/* The day of a date, and back. */
int64_t hf__days_of(int64_t year, int month, int day);
void hf__date_of(int64_t days, int64_t *year, int *month, int *day);
/* The day that holds a time, in seconds since the epoch. */
int64_t hf__day_of(int64_t seconds);
int hf__days_in_month(int64_t year, int month);
/* 0: Sunday. */
int hf__weekday_of(int64_t days);

#endif
