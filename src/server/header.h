/* What the headers of requests and answers are for, in the words of the document.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_SERVER_HEADER_H
#define HF_SERVER_HEADER_H

#include "server/route.h"

struct hf__header_text {
    enum hf__header bit;
    const char *name;
    bool asked; /* of a request, not of an answer */
    const char *about;
};

/* Of those that a route may name; ends with a NULL name. */
extern const struct hf__header_text hf__header_texts[];
/* Of every request that needs a token where there are any; ends with a NULL name. */
extern const struct hf__header_text hf__header_callers[];
/* Of every refusal for want of a token, and of every "not now". */
extern const struct hf__header_text hf__header_authenticate;
extern const struct hf__header_text hf__header_retry_after;

#endif
