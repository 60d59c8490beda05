/* Claims that are handed out while their commit is on its way to the disk.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernel/claim.h"
#include "util/clock.h"

#include <time.h>

/* Whether a run is on disk. */
#define LOOK_AT_ONCE HF_MILLISECONDS(1)
#define LOOK_FOR HF_MILLISECONDS(200)

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

/* Nothing but its trigger has written it so far, and that may not be on disk yet. */
static bool may_be_lost(const struct hf__cell *c)
{
    return hf__as_number(c[45]) && hf__as_number(c[9]) == 2;
}

hf_code hf__claim_ask_disk(struct hf__batch *batch, hf_error *err)
{
    const struct hf__op *op = batch->ops[0];
    if (!hf__claim_is_urgent(batch) || !op->claim.place)
        return HF_OK;
    hf__sheet_init(batch, &batch->disk, HF__STMT_IS_ON_DISK, batch->arena);
    hf__table_add(&batch->disk.in)[0] = hf__number(op->claim.place);
    return hf__sheet_send(batch, HF__STMT_IS_ON_DISK, &batch->disk, err);
}

static bool is_on_disk(const struct hf__batch *batch)
{
    const struct hf__table *answer = &batch->disk.out;
    return answer->nrows > 0 && hf__as_number(hf__table_row(answer, 0)[0]);
}

/* The trigger waits for the disk meanwhile: that is soon over, and shorter in any case than to wait for the claim's own commit,
 * which would come after it. Looks are far apart only when it takes long. */
hf_code hf__claim_await_disk(struct hf__batch *batch, hf_error *err)
{
    int64_t began = hf__monotonic_us(), waited = 0;
    bool waits = batch->disk.out.nrows > 0 && batch->claims[0].out.nrows > 0;
    hf_code code = HF_OK;
    while (code == HF_OK && waits && !is_on_disk(batch) && waited < LOOK_FOR) {
        if (waited > LOOK_AT_ONCE)
            nanosleep(&(struct timespec){ .tv_nsec = waited * 1000 / 8 }, NULL);
        code = hf__claim_ask_disk(batch, err);
        if (code == HF_OK)
            code = batch->flusher->driver->sync(batch->flusher->conn, err);
        waited = hf__monotonic_us() - began;
    }
    return code;
}

/* What hands can begin at once. More than that is not worth it: those behind wait longer for a hand than for the disk. And
 * nothing may begin of which no trace is left if the server ends now. */
static bool all_can_begin(const struct hf__batch *batch)
{
    const struct hf__table *out = &batch->claims[0].out;
    int count = hf__claim_runs(out);
    for (int i = 0; i < count; i++) {
        const struct hf__cell *c = hf__table_row(out, i);
        if (!can_begin(c) || (may_be_lost(c) && !is_on_disk(batch)))
            return false;
    }
    return count > 0 && count <= batch->ops[0]->claim.hands;
}

/* From here on the claim and its memory are shared with whoever was told. */
void hf__claim_foretell(void *arg)
{
    struct hf__batch *batch = arg;
    struct hf__op *op = batch->ops[0];
    if (!all_can_begin(batch))
        return;
    hf__claim_gather(batch, 0);
    if (batch->failed)
        return;
    op->told = true;
    op->claim.early(op, op->done_arg);
}
