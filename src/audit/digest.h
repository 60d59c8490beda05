/* The bytes that seals are made of. docs/audit.md describes them for other programs: a change here is a new format.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_AUDIT_DIGEST_H
#define HF_AUDIT_DIGEST_H

#include "store/table.h"
#include "util/digest.h"

#include <stdint.h>

/* The columns of block_events. */
enum {
    HF__BLOCK_PLACE,
    HF__BLOCK_POSITION,
    HF__BLOCK_TENANT,
    HF__BLOCK_RUN,
    HF__BLOCK_SEQ,
    HF__BLOCK_VERSION,
    HF__BLOCK_AT,
    HF__BLOCK_KIND,
    HF__BLOCK_FORMAT,
    HF__BLOCK_NAME,
    HF__BLOCK_ACTOR,
    HF__BLOCK_STEP,
    HF__BLOCK_DATA,
    HF__BLOCK_LIVE,
    HF__BLOCK_LAST,
    HF__BLOCK_COLUMNS
};

/* The digest of one event, from a row of block_events. */
hf_code hf__digest_event(struct hf__digest *out, const struct hf__cell *row, hf_error *err);

/* One row of the table seal, without its hash. */
struct hf__seal {
    int64_t block;        /* from 1 */
    int64_t lo;           /* place of the first event that may be in it */
    int64_t hi;           /* and of the first that may not */
    int64_t events;       /* in it when it was sealed */
    int64_t created_at;   /* us */
    const char *previous; /* the hash of the block before, in hexadecimal; "" for the first */
    const char *runs;     /* see block.h */
};

hf_code hf__digest_seal(struct hf__digest *out, const struct hf__seal *seal, hf_error *err);

#endif
