/* A courier carries requests to receivers over HTTP, several at once, over connections that it keeps. One thread's.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_OUTBOX_COURIER_H
#define HF_OUTBOX_COURIER_H

#include "outbox/cloudevent.h"

#define HF__COURIER_MOST 16 /* requests under way at once */

struct hf__courier;

/* What came of a request. */
struct hf__receipt {
    bool taken;          /* the receiver answered 2xx */
    int status;          /* of HTTP; 0: there was no answer */
    int64_t retry_after; /* us, as the receiver asked for; 0: it did not */
    char error[300];     /* "" if it was taken */
};

typedef void (*hf__courier_back)(void *tag, const struct hf__receipt *receipt, void *arg);

hf_code hf__courier_new(struct hf__courier **out, hf_error *err);
/* What is under way is dropped. */
void hf__courier_free(struct hf__courier *courier);
int hf__courier_busy(const struct hf__courier *courier);
/* Starts it; the request stays the caller's until it is back. Not more than HF__COURIER_MOST. */
hf_code hf__courier_send(struct hf__courier *courier, const struct hf__request *request, void *tag,
                         hf_error *err);
/* Carries on for at most so many milliseconds; tells what is back. */
hf_code hf__courier_wait(struct hf__courier *courier, int milliseconds, hf__courier_back back,
                         void *arg, hf_error *err);

#endif
