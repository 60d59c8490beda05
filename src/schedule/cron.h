/* When a schedule fires: cron expressions and fixed intervals. Pure: no store, no clock.
 *
 * Daylight saving. With a fixed hour ("30 2 * * *"), a local time that the clocks jump over fires at the jump, and one
 * that happens twice fires the first time only. With a wildcard hour, one that begins with '*', whatever the local clock
 * shows counts: times that do not exist are no loss, and those that happen twice are two.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_SCHEDULE_CRON_H
#define HF_SCHEDULE_CRON_H

#include "schedule/zone.h"

#define HF__CRON_TEXT_MAX 500 /* bytes of an expression */

struct hf__cron {
    int64_t every;    /* us; 0: by the fields. Counted from the epoch, so that it needs no memory */
    uint64_t seconds; /* bit n: second n */
    uint64_t minutes;
    uint32_t hours;
    uint32_t days;     /* bit 1..31 */
    uint32_t months;   /* bit 1..12 */
    uint32_t weekdays; /* bit 0..6; 0: Sunday */
    bool any_hour;     /* wildcards */
    bool any_day;
    bool any_weekday;
};

/* "M H DAY MONTH WEEKDAY", the same with seconds first, "@daily" and its like, "every 15m". Dates that never come are
 * refused. */
hf_code hf__cron_parse(struct hf__cron *out, const char *text, hf_error *err)
    __attribute__((warn_unused_result));
/* The first firing after a time (us since the epoch); 0: there is none before the year 9999. */
int64_t hf__cron_next(const struct hf__cron *cron, const struct hf__zone *zone, int64_t after);
/* The last firing in (after, until]; 0: none. */
int64_t hf__cron_last(const struct hf__cron *cron, const struct hf__zone *zone, int64_t after,
                      int64_t until);

#endif
