/* What the sending of claims shares between lanes with and without limits.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_KERNEL_CLAIM_H
#define HF_KERNEL_CLAIM_H

#include "kernel/batch.h"

/* The part of a claim that comes from lanes with limits. */
struct hf__limited_claim {
    size_t index;      /* of its op */
    const char *heads; /* of it, JSON */
    struct hf__sheet lock;
    struct hf__sheet claim;
    struct hf__sheet rest; /* what came last, of the kind that came first */
    bool rest_is_limited;
    struct hf__sheet state;
};

/* Heads of one kind, limited or not, in their order. */
struct hf__kind {
    const struct hf__claim_head **items;
    size_t count;
};

/* A claim from one head tells once what all its runs share, in a last row without an id. NULL: each run has its own. */
const struct hf__cell *hf__claim_shared(const struct hf__table *out);
/* How many runs an answer brings. */
int hf__claim_runs(const struct hf__table *out);
const char *hf__heads_json(struct hf__batch *batch, const struct hf__kind *kind);
bool hf__has_shares(const struct hf__kind *kind);
void hf__sheet_init(struct hf__batch *batch, struct hf__sheet *sheet, enum hf__stmt stmt,
                    struct hf__arena *arena);
hf_code hf__sheet_send(struct hf__batch *batch, enum hf__stmt stmt, struct hf__sheet *sheet,
                       hf_error *err);
/* Claims at most so many from heads of one kind. */
hf_code hf__claim_kind(struct hf__batch *batch, const struct hf__op *op, bool limited,
                       struct hf__sheet *sheet, struct hf__kind *kind, int most, hf_error *err);

/* Claims from limited lanes, and from the others of the same operation in their order. */
hf_code hf__limited_send(struct hf__batch *batch, size_t index, struct hf__kind kinds[2],
                         hf_error *err);
/* Shares are of what is free, where that is less than the claim may take. */
hf_code hf__limited_scale(struct hf__batch *batch, struct hf__kind *kind, int most, hf_error *err);
/* Pays for the starts before the next head counts what is left. */
hf_code hf__limited_charge(struct hf__batch *batch, int32_t lane, int starts, hf_error *err);
/* Why limited lanes gave less than the claim would have taken. Asked after the commit: a slot that was freed meanwhile is
 * not missed. */
hf_code hf__limited_ask_closed(struct hf__batch *batch, size_t index, hf_error *err);

#endif
