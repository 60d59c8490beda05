/* An event as a CloudEvent 1.0 over HTTP, signed.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_OUTBOX_CLOUDEVENT_H
#define HF_OUTBOX_CLOUDEVENT_H

#include <holdfast/outbox.h>

#include "util/arena.h"

/* What is delivered; everything is borrowed. */
struct hf__cloudevent {
    hf_id id;
    const char *tenant;
    const char *workflow; /* NULL: its run is purged */
    hf_id run;
    const char *type;
    const char *subject; /* NULL: none */
    const char *trace;   /* a traceparent; NULL: none */
    int64_t created_at;
    const char *payload; /* JSON; NULL means null */
};

/* A request to send, in the arena's memory. */
struct hf__request {
    const char *url;
    const char **headers; /* "Name: value", ends with NULL */
    const char *body;
    size_t length;
};

/* Makes the request and signs it as of `now`, the wall clock's us. */
hf_code hf__cloudevent_request(struct hf__request *out, const struct hf__cloudevent *event,
                               const char *url, const char *secret, hf_event_mode mode, int64_t now,
                               struct hf__arena *arena, hf_error *err);

#endif
