/* Where requests wait for something to happen: long polls and streams. They cost memory, but no thread.
 *
 * A handler that may have to wait calls hf__park_listen before it looks, so that nothing that happens after the look is
 * missed; if there is nothing to answer yet it calls hf__park_sleep and returns HF_OK. It is called again when something was
 * heard, and at `until` at the latest.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_SERVER_PARK_H
#define HF_SERVER_PARK_H

#include "server/request.h"

struct hf__park;
struct hf__hands;

hf_code hf__park_new(struct hf__park **out, hf_client *client, struct hf__hands *hands,
                     hf_error *err) HF_MUST_CHECK;
void hf__park_free(struct hf__park *park);

/* Listens to a run, or (zero) to work becoming due in any lane. Does nothing when it listens already. */
void hf__park_listen(struct hf__request *request, hf_id run);
/* To be called again at `until` (monotonic us), or before. */
void hf__park_sleep(struct hf__request *request, int64_t until);
/* After the handler has returned, for one that wants to sleep. */
void hf__park_enter(struct hf__request *request);
/* It listens no more. Safe for one that never did. */
void hf__park_leave(struct hf__request *request);
/* A channel to listen to: a run was cancelled while somebody held it, here or in another process. */
extern const hf_id hf__lost_leases;
/* Wakes those who listen to an id that is no run's, but a channel of the server's own. */
void hf__park_tell(struct hf__park *park, hf_id channel);
bool hf__park_has_listeners(struct hf__park *park, hf_id channel);
/* Wakes a sleeping request, or all of them. */
void hf__park_wake(struct hf__request *request);
void hf__park_wake_all(struct hf__park *park);
/* Calls those that listen to work becoming due and are meant. `meant` is called under the park's mutex. */
void hf__park_tell_workers(struct hf__park *park, bool (*meant)(struct hf__request *, void *arg),
                           void *arg);
/* How many are asleep. */
int hf__park_count(struct hf__park *park);

#endif
