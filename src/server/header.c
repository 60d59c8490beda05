/* SPDX-License-Identifier: Apache-2.0 */
#include "server/header.h"

const struct hf__header_text hf__header_texts[] = {
    { HF__HEADER_IDEMPOTENCY_KEY, "Idempotency-Key", true,
      "what a request that is sent again is known by" },
    { HF__HEADER_IF_MATCH, "If-Match", true,
      "an ETag: refused (412) when the revision that it begins with (a task's version) is another "
      "by now" },
    { HF__HEADER_LAST_EVENT_ID, "Last-Event-ID", true,
      "of a stream: go on after the event with this id" },
    { HF__HEADER_TRACEPARENT, "traceparent", true,
      "the caller's trace (W3C Trace Context), kept with the run" },
    { HF__HEADER_PREFER, "Prefer", true,
      "return=minimal: leave out input, state, result and error (null)" },
    { HF__HEADER_ETAG, "If-None-Match", true, "an ETag: 304 when it is still this one" },
    { HF__HEADER_ETAG, "ETag", false,
      "changes with whatever the answer shows; weak where it was compressed" },
    { HF__HEADER_LOCATION, "Location", false, "the path of the run" },
    { 0, NULL, false, NULL },
};

const struct hf__header_text hf__header_callers[] = {
    { 0, "Holdfast-Tenant", true,
      "for whom it is, while there are no tokens; a token stands for its own tenant" },
    { 0, "Holdfast-Actor", true,
      "who asks, for the journal, while there are no tokens; a token has a name" },
    { 0, NULL, false, NULL },
};

const struct hf__header_text hf__header_authenticate = { 0, "WWW-Authenticate", false,
                                                         "with 401: how to say who asks" };
const struct hf__header_text hf__header_retry_after = {
    0, "Retry-After", false, "with 503 and 507: seconds after which to try again"
};
