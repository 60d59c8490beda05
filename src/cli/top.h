/* What `holdfast top` shows: how much there is to do, who does it, and how much of it was done in the last seconds.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_TOP_H
#define HF_CLI_TOP_H

#include "client/measure.h"

enum { CLI_TOP_SECONDS = 10 }; /* rates are taken over so many looks */

/* One workflow; rates are per second. */
struct cli_pulse {
    const struct hf__depth *depth;
    double triggered, started, succeeded, failed, retried;
};

struct cli_top {
    hf_client *client;
    struct hf__measure *measure;
    hf_worker_list *workers;
    struct cli_pulse *pulses; /* as many as measure->count, the busiest first */
    struct {
        int64_t position; /* where the journal ended */
        int64_t at;       /* monotonic us */
    } marks[CLI_TOP_SECONDS + 1];
    int mark_count;
};

/* Looks again. What it showed before is gone. */
hf_code cli_top_look(struct cli_top *top, hf_error *err) HF_MUST_CHECK;
void cli_top_free(struct cli_top *top);

#endif
