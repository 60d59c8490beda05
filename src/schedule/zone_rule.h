/* The rule by which a place's clocks change, as it stands at the end of a zone file: "CET-1CEST,M3.5.0,M10.5.0/3".
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_SCHEDULE_ZONE_RULE_H
#define HF_SCHEDULE_ZONE_RULE_H

#include <stdbool.h>
#include <stdint.h>

/* A day of the year on which clocks change, by a rule. */
struct hf__zone_rule {
    /* 'M': weekday `day` of week `week` in `month`; 'J': day 1..365 without 29 February; 'N': day 0..365 */
    char form;
    int month;
    int week; /* 5: the last one */
    int day;
    int seconds; /* after local midnight; may be negative or beyond the day */
};

/* What holds after the last listed change. */
struct hf__zone_rest {
    int standard; /* seconds east of UTC */
    int summer;
    bool changes; /* false: standard for ever */
    struct hf__zone_rule begin;
    struct hf__zone_rule end;
};

struct hf__zone_change {
    int64_t at; /* seconds since the epoch */
    int offset; /* from then on; seconds east of UTC */
};

enum { HF__ZONE_CHANGES = 6 };

/* False: the text is no such rule. */
bool hf__zone_rest_parse(struct hf__zone_rest *rest, const char *begin, const char *end)
    __attribute__((warn_unused_result));
/* The changes in the years around a time, in order; returns how many. */
int hf__zone_rest_changes(const struct hf__zone_rest *rest, int64_t seconds,
                          struct hf__zone_change out[HF__ZONE_CHANGES]);

#endif
