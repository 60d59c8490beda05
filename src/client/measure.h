/* How much there is to do in a store, counted at one moment and within bounds.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLIENT_MEASURE_H
#define HF_CLIENT_MEASURE_H

#include "client/client.h"

enum {
    HF__MEASURED_WORKFLOWS = 1000, /* no more are looked at */
    HF__MEASURED_RUNS = 100000     /* of each workflow; of all mail, dead letters and events */
};

struct hf__depth {
    int tenant_id;
    const char *tenant;
    const char *workflow;
    bool paused;
    int64_t due, delayed, leased, failed;
    int64_t
        oldest; /* since when something is due that nobody holds; store clock, us; 0: nothing is */
    int64_t mail, dead_letters; /* 0 before hf__measure_mail */
};

struct hf__measure {
    struct hf__depth *items; /* in the order in which workflows were made */
    size_t count;
    int64_t mail, dead_letters;
    int64_t undelivered;                      /* events in the outbox */
    int64_t oldest_undelivered;               /* when it was written; 0: there is none */
    int64_t workers, threads, running, stuck; /* of live workers */
    int64_t now;                              /* store clock, us */
};

/* Of one tenant by its id, or of all (0). Freed by hf__measure_free. */
hf_code hf__measure(struct hf__engine *engine, int tenant, struct hf__measure **out, hf_error *err);
/* Tells its workflows apart by their mail and dead letters too. */
hf_code hf__measure_mail(struct hf__engine *engine, struct hf__measure *measure, hf_error *err);
void hf__measure_free(struct hf__measure *measure);

#endif
