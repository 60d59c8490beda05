/* What a schedule is told, as it is stored: the settings in the input of its run and in `set` signals, and the state
 * between its turns. Both are JSON objects.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_SCHEDULE_SPEC_H
#define HF_SCHEDULE_SPEC_H

#include <holdfast/schedule.h>

#include "schedule/cron.h"
#include "util/arena.h"

#define HF__SCHEDULE_QUEUE 100 /* due times that may wait for the last run to end */

/* Signals that the schedule's run understands. */
#define HF__SCHEDULE_SET "set"         /* payload: the new settings */
#define HF__SCHEDULE_RESUMED "resumed" /* what was due before it was missed, not late */

struct hf__schedule_state {
    hf_schedule_spec spec; /* without the name */
    int64_t from;          /* us: due times up to here are done with */
    int64_t last_at;
    hf_id last_run;
    int64_t fired;
    int64_t skipped;
    int64_t queue[HF__SCHEDULE_QUEUE]; /* due times, oldest first */
    int queued;
};

/* The settings as JSON. The input is kept as the text it was, so that no number loses a digit. NULL: no memory. */
char *hf__schedule_spec_json(const hf_schedule_spec *spec, struct hf__arena *arena);
char *hf__schedule_state_json(const struct hf__schedule_state *state, struct hf__arena *arena);
/* Strings are copied into the arena. HF_INVALID when it is not what the functions above write. */
hf_code hf__schedule_spec_read(hf_schedule_spec *out, const char *json, struct hf__arena *arena,
                               hf_error *err) __attribute__((warn_unused_result));
hf_code hf__schedule_state_read(struct hf__schedule_state *out, const char *json,
                                struct hf__arena *arena, hf_error *err)
    __attribute__((warn_unused_result));

/* When it fires; hf__zone_free the zone after. */
hf_code hf__schedule_clock(const hf_schedule_spec *spec, struct hf__cron *cron,
                           struct hf__zone *zone, hf_error *err)
    __attribute__((warn_unused_result));

#endif
