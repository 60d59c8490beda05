/* A run that is watched, and its picture on a terminal.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_WATCH_H
#define HF_CLI_WATCH_H

#include "cli/frame.h"
#include "cli/session.h"
#include "record/step_lines.h"

#define CLI_WATCH_TICK HF_SECONDS(1) /* clocks on the screen are drawn so often */

struct cli_watch {
    struct cli_session *session;
    hf_id id;
    hf_run *run;
    struct hf__step_lines steps;
    int64_t children[HF_STATUS_COUNT];
    int64_t seq;   /* of the last event that was seen */
    int64_t since; /* of the last event of its life */
    bool utf8;
    bool live; /* a terminal, drawn again and again */
    struct cli_frame frame;
};

/* Makes the frame anew; showing it is the caller's. */
void cli_watch_draw(struct cli_watch *watch);

#endif
