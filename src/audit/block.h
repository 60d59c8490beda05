/* The events of one block by their runs: as the journal has them, or as a seal says that they were. As text, the table
 * seal's `runs`: a line for each run, by id,
 *
 *     TENANT RUN HASH SEQ:MARK[ SEQ:MARK...]
 *
 * where HASH is over the digests of the run's events in this block, by their sequence, and a MARK is the first eight
 * digits of an event's digest: HASH proves, marks tell which event it was.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_AUDIT_BLOCK_H
#define HF_AUDIT_BLOCK_H

#include "audit/digest.h"
#include "kernel/engine.h"
#include "util/buffer.h"
#include "util/hash.h"

enum { HF__MARK = 8 };

struct hf__block_event {
    int64_t seq;
    struct hf__digest digest; /* unset in a block that was read from a seal */
    char mark[HF__MARK + 1];
};

struct hf__block_run {
    int tenant; /* the store's number */
    hf_id id;
    bool live;                      /* the run is there, if that was asked */
    char hash[HF__DIGEST_TEXT];     /* "" until closed */
    struct hf__block_event *events; /* by seq, once closed */
    size_t count;
    size_t capacity;
};

/* Memory goes with the arena. */
struct hf__block {
    struct hf__arena *arena;
    struct hf__idmap by_id;
    struct hf__block_run **runs; /* by id, once closed */
    size_t run_count;
    size_t run_capacity;
    int64_t events;
};

void hf__block_init(struct hf__block *block, struct hf__arena *arena);
void hf__block_free(struct hf__block *block);
/* Reads the events between two places of the journal, page by page, and closes the block. `asks_live`: looks which of
 * their runs are there. */
hf_code hf__block_read(struct hf__block *block, struct hf__engine *engine, int64_t lo, int64_t hi,
                       bool asks_live, hf_error *err);
/* From a seal's text. False in *good: it is not such a text. */
hf_code hf__block_parse(struct hf__block *block, const char *runs, bool *good, hf_error *err);
void hf__block_text(const struct hf__block *block, struct hf__buffer *out);

#endif
