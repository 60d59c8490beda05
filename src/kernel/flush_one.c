/* One new run without peculiarities, alone in its flush or along with the claim of the worker that waits for it: a store may
 * have shorter ways for these.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernel/claim.h"
#include "util/error.h"

/* Due at once, with nothing of its own but what insert_run takes. */
static bool is_bare(const struct hf__cell *plain)
{
    static const int peculiar[] = { 4, 6, 7, 8, 10, 11, 12, 13, HF__PLAIN_FLOW_KEY };
    for (size_t i = 0; i < sizeof peculiar / sizeof *peculiar; i++)
        if (!hf__is_null(plain[peculiar[i]]))
            return false;
    return hf__as_number(plain[5]) == 0;
}

static bool is_one(const struct hf__batch *batch, enum hf__stmt way)
{
    const struct hf__table *plain = &batch->sheets[HF__STMT_INSERT_PLAIN_RUNS].in;
    return batch->flusher->driver->statements[way].sql && plain->nrows == 1 &&
           is_bare(hf__table_row(plain, 0));
}

bool hf__inserts_one_run(const struct hf__batch *batch)
{
    return batch->count == 1 && is_one(batch, HF__STMT_INSERT_RUN);
}

bool hf__inserts_taken_run(const struct hf__batch *batch)
{
    return hf__brings_its_claim(batch) && is_one(batch, HF__STMT_INSERT_TAKEN_RUN);
}

/* What both ways take of a plain run. */
static struct hf__cell *fill(struct hf__batch *batch, struct hf__table *in, enum hf__stmt way)
{
    static const int taken[] = { 0, 1, 2, 3, 9, 14, 15 };
    const struct hf__cell *plain = hf__table_row(&batch->sheets[HF__STMT_INSERT_PLAIN_RUNS].in, 0);
    hf__table_init(in, batch->arena, batch->flusher->driver->statements[way].nparams);
    struct hf__cell *c = hf__table_add(in);
    size_t count = sizeof taken / sizeof *taken;
    for (size_t i = 0; i < count; i++)
        c[i] = plain[taken[i]];
    return c + count;
}

hf_code hf__insert_one_run(struct hf__batch *batch, hf_error *err)
{
    const struct hf__driver *driver = batch->flusher->driver;
    struct hf__conn *conn = batch->flusher->conn;
    struct hf__table one;
    /* Nobody else can know of it; and it is worth while only if somebody is woken for it. */
    batch->deferred = batch->flusher->defers && batch->lane_count > 0 && driver->may_defer(conn);
    struct hf__cell *c = fill(batch, &one, HF__STMT_INSERT_RUN);
    c[0] = batch->deferred ? hf__number(1) : hf__null();
    if (one.failed)
        return hf__nomem(err);
    return driver->send(conn, HF__STMT_INSERT_RUN, &one,
                        &batch->sheets[HF__STMT_INSERT_PLAIN_RUNS].out, err);
}

hf_code hf__insert_taken_run(struct hf__batch *batch, hf_error *err)
{
    const struct hf__op *claim = batch->ops[1];
    struct hf__sheet *sheet = &batch->claims[1];
    hf__sheet_init(batch, sheet, HF__STMT_INSERT_TAKEN_RUN, claim->claim.arena);
    struct hf__cell *c = fill(batch, &sheet->in, HF__STMT_INSERT_TAKEN_RUN);
    c[0] = hf__number(claim->claim.heads[0].lane);
    c[1] = hf__text(claim->claim.worker);
    c[2] = hf__number_or_null(claim->claim.lease);
    return hf__sheet_send(batch, HF__STMT_INSERT_TAKEN_RUN, sheet, err);
}

void hf__note_taken_run(struct hf__batch *batch)
{
    if (!hf__inserts_taken_run(batch) || batch->claims[1].out.nrows == 0)
        return;
    struct hf__table *taken = &batch->claims[1].out;
    const struct hf__cell *run = hf__table_row(taken, 0);
    struct hf__cell *c = hf__table_add(hf__batch_out(batch, HF__STMT_INSERT_PLAIN_RUNS));
    c[0] = run[0];
    c[1] = run[4];
    c[2] = run[13];
    c[3] = run[44];
    if (hf__as_number(run[7]) == 0)
        taken->nrows = 0;
}
