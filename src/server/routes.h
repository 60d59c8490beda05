/* The groups of routes, one file each. Each ends with a NULL method.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_SERVER_ROUTES_H
#define HF_SERVER_ROUTES_H

#include "server/route.h"

#include <holdfast/schedule.h>

extern const struct hf__route hf__run_routes[];
extern const struct hf__route hf__many_routes[];
extern const struct hf__route hf__workflow_routes[];
extern const struct hf__route hf__schedule_routes[];
extern const struct hf__route hf__worker_routes[];
extern const struct hf__route hf__work_routes[];
extern const struct hf__route hf__tenant_routes[];
extern const struct hf__route hf__token_routes[];
extern const struct hf__route hf__letter_routes[];
extern const struct hf__route hf__outbox_routes[];
extern const struct hf__route hf__task_routes[];
extern const struct hf__route hf__event_routes[];
extern const struct hf__route hf__live_routes[];
extern const struct hf__route hf__system_routes[];
extern const struct hf__route hf__metrics_routes[];

extern const struct hf__member hf__workflow_setting_members[]; /* hf_workflow, with bits */

/* A schedule's settings as they are sent. */
struct hf__schedule_body {
    hf_schedule_spec spec;
    const char *overlap;
    const char *catch_up;
};
#define HF__SCHEDULE_BODY_INIT                                                                     \
    {                                                                                              \
        .spec = HF_SCHEDULE_INIT                                                                   \
    }
extern const struct hf__member hf__schedule_members[];
/* Completes the spec of what was read. */
hf_code hf__schedule_body_check(struct hf__schedule_body *body, const char *name, hf_error *err);

extern const struct hf__member hf__filter_members[];  /* hf_filter */
extern const struct hf__field hf__triggered_fields[]; /* hf_triggered */

#endif
