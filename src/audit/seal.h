/* Closing blocks of the journal.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_AUDIT_SEAL_H
#define HF_AUDIT_SEAL_H

#include "audit/digest.h"
#include "kernel/engine.h"

struct hf__seal_head {
    int64_t block; /* 0: nothing is sealed */
    int64_t hi;    /* place of the first event after it */
    char hash[HF__DIGEST_TEXT];
    int64_t created_at; /* us */
};

hf_code hf__seal_head(struct hf__engine *engine, struct hf__seal_head *out, hf_error *err);

enum { HF__SEAL_EVENTS = 2000 }; /* of a block, unless one transaction has more */

struct hf__sealed {
    int64_t events; /* of the block; 0: none was closed */
    bool more;      /* there are lines behind it that could be sealed now */
    int64_t at;     /* store clock, us: when it was looked for */
};

/* Closes the next block with about `most` events, or none when there is nothing but what `sealer`, the sealing run itself,
 * has written, or what may still be joined by transactions under way. */
hf_code hf__seal_next(struct hf__engine *engine, hf_id sealer, int most, struct hf__sealed *out,
                      hf_error *err);

#endif
