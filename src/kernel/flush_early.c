/* Claims that are handed out while their commit is on its way to the disk.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernel/claim.h"

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

/* What hands can begin at once. More than that is not worth it: those behind wait longer for a hand than for the disk. */
static bool all_can_begin(const struct hf__table *out, int hands)
{
    int count = hf__claim_runs(out);
    for (int i = 0; i < count; i++)
        if (!can_begin(hf__table_row(out, i)))
            return false;
    return count > 0 && count <= hands;
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
