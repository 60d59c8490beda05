/* Claims that are handed out while their commit is on its way to the disk.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernel/claim.h"

enum { LOOKS_MOST = 10 }; /* whether a run is on disk */

bool hf__claim_is_urgent(const struct hf__batch *batch)
{
    if (!batch->flusher->driver->foretell || batch->count != 1 || batch->limited)
        return false;
    const struct hf__op *op = batch->ops[0];
    return op->kind == HF__OP_CLAIM && op->claim.early && op->claim.hands > 0;
}

/* Mail and steps are loaded after the commit. A run whose lease expired may have killed its worker: that its attempt is
 * counted must be certain before it may do so again. */
static bool can_begin(const struct hf__cell *c)
{
    bool mail = hf__as_number(c[15]), steps = hf__as_number(c[16]);
    bool suspect = hf__as_number(c[14]) == HF_LEASED;
    return !mail && !steps && !suspect;
}

/* A new run without key and parent, due at once, may be seen before it is on disk. */
static bool may_be_lost(const struct hf__cell *c)
{
    return hf__as_number(c[7]) == 1 && hf__is_null(c[5]) && hf__is_null(c[35]) &&
           hf__as_number(c[13]) <= hf__as_number(c[38]);
}

/* Where the answer to a claim tells up to which place in the log something of what it saw may not be on disk yet. */
static struct hf__cell *not_on_disk(const struct hf__table *out)
{
    return &hf__table_row(out, out->nrows - 1)[45];
}

static hf_code ask_disk(struct hf__batch *batch, struct hf__cell *place, hf_error *err)
{
    const struct hf__driver *driver = batch->flusher->driver;
    struct hf__sheet ask;
    hf__sheet_init(batch, &ask, HF__STMT_IS_ON_DISK, batch->arena);
    hf__table_add(&ask.in)[0] = *place;
    hf_code code = hf__sheet_send(batch, HF__STMT_IS_ON_DISK, &ask, err);
    if (code == HF_OK)
        code = driver->sync(batch->flusher->conn, err);
    if (code == HF_OK && ask.out.nrows == 1 && hf__as_number(hf__table_row(&ask.out, 0)[0]))
        *place = hf__null();
    return code;
}

/* The trigger waits for the disk meanwhile: that takes about as long as a few questions. If it takes longer, the claim's own
 * commit waits for it. */
hf_code hf__claim_await_disk(struct hf__batch *batch, hf_error *err)
{
    const struct hf__table *out = &batch->claims[0].out;
    hf_code code = HF_OK;
    if (!hf__claim_is_urgent(batch) || !batch->ops[0]->claim.place || out->nrows == 0)
        return HF_OK;
    struct hf__cell *place = not_on_disk(out);
    for (int i = 0; code == HF_OK && i < LOOKS_MOST && !hf__is_null(*place); i++)
        code = ask_disk(batch, place, err);
    return code;
}

/* What hands can begin at once. More than that is not worth it: those behind wait longer for a hand than for the disk. And
 * nothing may begin of which no trace is left if the server ends now. */
static bool all_can_begin(const struct hf__table *out, int hands)
{
    int count = hf__claim_runs(out);
    if (count == 0 || count > hands)
        return false;
    bool on_disk = hf__is_null(*not_on_disk(out));
    for (int i = 0; i < count; i++) {
        const struct hf__cell *c = hf__table_row(out, i);
        if (!can_begin(c) || (!on_disk && may_be_lost(c)))
            return false;
    }
    return true;
}

/* From here on the claim and its memory are shared with whoever was told. */
void hf__claim_foretell(void *arg)
{
    struct hf__batch *batch = arg;
    struct hf__op *op = batch->ops[0];
    if (!all_can_begin(&batch->claims[0].out, op->claim.hands))
        return;
    hf__claim_gather(batch, 0);
    if (batch->failed)
        return;
    op->told = true;
    op->claim.early(op, op->done_arg);
}
