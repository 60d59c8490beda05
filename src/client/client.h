/* The inside of a client handle.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLIENT_CLIENT_H
#define HF_CLIENT_CLIENT_H

#include <holdfast/holdfast.h>

#include <pthread.h>

#include "kernel/engine.h"

/* What live workers serve, as of the last look. */
struct hf__coverage {
    char **patterns;
    size_t count;
    int64_t asked_at; /* monotonic us; 0: never */
};
void hf__coverage_free(struct hf__coverage *coverage);

struct hf_client {
    struct hf__engine *engine;
    int tenant_id;
    char *tenant;
    char *actor;
    bool from_afar; /* acts for somebody who cannot open the store, as a server does */
    pthread_mutex_t coverage_mutex; /* guards coverage */
    struct hf__coverage coverage;
};

/* For tests and the simulator: hf_open with the engine's inner options. */
hf_code hf__open(hf_client **out, const char *url, const hf_options *options,
                 const struct hf__engine_options *inner, hf_error *err);
/* A client of the same engine for a tenant known by id. */
hf_code hf__client_for(hf_client **out, struct hf__engine *engine, int tenant_id,
                       const char *tenant, const char *actor, hf_error *err);
/* Registers a workflow of the engine's own in the client's tenant, if it is new there. */
hf_code hf__workflow_ensure(hf_client *client, const char *name, hf_error *err);
/* The same for many whose names were checked, in one statement. */
hf_code hf__workflows_ensure(hf_client *client, const char *const *names, size_t count,
                             hf_error *err);
/* Registers the workflow and starts a run of it, unless one with its key is there. `initial` may be NULL. */
hf_code hf__chore_start(hf_client *client, hf_triggered *out, hf_trigger_spec *spec,
                        const hf_transition *initial, hf_error *err);
/* A signal that may go to a run of the engine's own: for those who have asked whether the caller may steer it. */
hf_code hf__steer(hf_client *client, hf_id run, const hf_signal_spec *spec, hf_error *err);
/* The same for a change. */
hf_code hf__steer_run(hf_client *client, hf_id id, hf_action action, hf_error *err);
/* Ends the leases that a worker holds in a tenant, or with 0 in all: what it held is due at once, in its old place, and its next
 * claim shuts that worker out, if it is still there. */
hf_code hf__leases_end(struct hf__engine *engine, int tenant, const char *worker, hf_error *err);
/* Tells subscriptions that a run is cancelled, which had this status: for the chore that follows a cancel by SQL. */
hf_code hf__tell_cancelled(hf_client *client, hf_id run, hf_status had, hf_error *err);
/* All that hf_schedule_set checks, but whether there is the workflow. */
hf_code hf__schedule_check(hf_client *client, const hf_schedule_spec *spec, hf_error *err);
/* hf_commit with ids that the caller has made for the children. Where a request is repeated they are replaced by those of the
 * children that it has. */
hf_code hf__commit_with_ids(hf_client *client, const hf_transition *transition, hf_id *child_ids,
                            hf_error *err);

#endif
