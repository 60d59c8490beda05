/* Whom a flush wakes: by the commit's own packet, and by what its answers tell.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernel/claim.h"

bool hf__brings_its_claim(const struct hf__batch *batch)
{
    return batch->count == 2 && batch->ops[0]->kind == HF__OP_TRIGGER &&
           batch->ops[1]->kind == HF__OP_CLAIM && batch->ops[1]->claim.along;
}

/* By the claim of this flush. */
static bool is_taken(const struct hf__batch *batch, hf_id run)
{
    if (!hf__brings_its_claim(batch))
        return false;
    const struct hf__table *taken = &batch->claims[1].out;
    for (int i = 0; i < taken->nrows; i++)
        if (hf_id_equal(hf__as_uuid(hf__table_row(taken, i)[0]), run))
            return true;
    return false;
}

static void wake_made(struct hf__batch *batch, const struct hf__table *made)
{
    for (int i = 0; i < made->nrows; i++) {
        const struct hf__cell *c = hf__table_row(made, i);
        if (!is_taken(batch, hf__as_uuid(c[0])))
            hf__wake_lane(batch, (int)hf__as_number(c[1]), hf__as_number(c[2]));
    }
}

/* Learns lanes from what was inserted; wakes for those that the commit's packet could not name. */
static void learn_lanes(struct hf__batch *batch, enum hf__stmt stmt, int flow_key)
{
    const struct hf__table *made = hf__batch_out(batch, stmt);
    const struct hf__table *asked = &batch->sheets[stmt].in;
    wake_made(batch, made);
    if (made->nrows != asked->nrows)
        return;
    for (int i = 0; i < made->nrows; i++) {
        const struct hf__cell *in = hf__table_row(asked, i);
        const struct hf__cell *out = hf__table_row(made, i);
        if (memcmp(in[1].bytes, out[0].bytes, sizeof(hf_id)) == 0)
            hf__lane_remember(&batch->flusher->lanes, (int)in[0].number, in[2].bytes,
                              hf__as_text(in[flow_key]), (int32_t)hf__as_number(out[1]));
    }
}

/* Runs that deliver events were made due. */
static void note_dispatchers(struct hf__batch *batch)
{
    const struct hf__table *woken = hf__batch_out(batch, HF__STMT_INSERT_OUTBOX);
    for (int i = 0; i < woken->nrows; i++) {
        const struct hf__cell *c = hf__table_row(woken, i);
        hf__wake_lane(batch, (int)hf__as_number(c[0]), hf__as_number(c[1]));
    }
}

struct hf__wake hf__wake_of(const struct hf__batch *batch)
{
    return (struct hf__wake){
        .lanes = batch->lanes,
        .lane_count = batch->lane_count,
        .earliest = batch->earliest,
        .watched = batch->watched,
        .watched_count = batch->watched_count,
        .workflows_changed = batch->sheets[HF__STMT_CREATE_WORKFLOW].in.nrows > 0,
        .leases_lost = batch->leases_lost,
    };
}

static void note_watchers(struct hf__batch *batch, enum hf__stmt stmt, int min_watched)
{
    const struct hf__table *out = hf__batch_out(batch, stmt);
    for (int i = 0; i < out->nrows; i++) {
        const struct hf__cell *c = hf__table_row(out, i);
        if (hf__as_number(c[1]) >= min_watched)
            hf__wake_watcher_of(batch, hf__as_uuid(c[0]));
    }
}

/* Whoever follows a run hears that it was started. */
static void note_claims(struct hf__batch *batch, const struct hf__table *out)
{
    int count = hf__claim_runs(out);
    for (int i = 0; i < count; i++) {
        const struct hf__cell *c = hf__table_row(out, i);
        if (hf__as_number(c[17]) >= 2)
            hf__wake_watcher_of(batch, hf__as_uuid(c[0]));
    }
}

static void note_all_claims(struct hf__batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        if (batch->ops[i]->kind == HF__OP_CLAIM && !batch->ops[i]->again)
            note_claims(batch, &batch->claims[i].out);
    if (batch->limited) {
        note_claims(batch, &batch->limited->claim.out);
        note_claims(batch, &batch->limited->rest.out);
    }
}

/* What the answers of the commit itself told: lanes and watchers that nobody was woken for yet. */
void hf__wake_late(struct hf__batch *batch, const struct hf__wake *early)
{
    const struct hf__flusher *flusher = batch->flusher;
    int lanes = batch->lane_count;
    int watched = batch->watched_count;
    note_watchers(batch, HF__STMT_FINISH_RUNS, 1);
    note_watchers(batch, HF__STMT_SAVE_STEPS, 2);
    note_all_claims(batch);
    note_dispatchers(batch);
    learn_lanes(batch, HF__STMT_INSERT_PLAIN_RUNS, HF__PLAIN_FLOW_KEY);
    learn_lanes(batch, HF__STMT_INSERT_RUNS, HF__RUN_FLOW_KEY);
    wake_made(batch, hf__batch_out(batch, HF__STMT_INSERT_DEBOUNCED));
    struct hf__wake late = hf__wake_of(batch);
    if (flusher->woke)
        flusher->woke(&late, flusher->woke_arg);
    if (batch->lane_count == lanes && batch->watched_count == watched && early)
        return;
    late.lanes = lanes ? late.lanes + lanes : late.lanes;
    late.lane_count -= lanes;
    late.watched = watched ? late.watched + watched : late.watched;
    late.watched_count -= watched;
    late.workflows_changed = late.leases_lost = false;
    if (late.lane_count || late.watched_count)
        flusher->driver->ring(flusher->conn, &late);
}
