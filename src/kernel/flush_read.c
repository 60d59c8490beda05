/* What a flush reads before it decides: rows under their locks, mailboxes, and answers by id.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernel/batch.h"

/* The locks come first: every later statement then sees mailboxes as they are under them. */
static hf_code ask_all(struct hf__batch *batch, hf_error *err)
{
    static const enum hf__stmt reads[] = {
        HF__STMT_AWAIT_PARENTS,   HF__STMT_LOCK_RUNS,       HF__STMT_LOCK_PARENTS,
        HF__STMT_LOCK_DEBOUNCED,  HF__STMT_PEEK_RUNS,       HF__STMT_PEEK_PARENTS,
        HF__STMT_FIND_SIGNALS,    HF__STMT_MAILBOX_SUMMARY, HF__STMT_UNFINISHED_CHILDREN,
        HF__STMT_EXPLAIN_REFUSED, HF__STMT_FIND_COMMITTED,  HF__STMT_FIND_STALE_SIGNALS,
        HF__STMT_FIND_DEBOUNCED,  HF__STMT_TRY_QUIET,       HF__STMT_PENDING_DELIVERIES,
        HF__STMT_FIND_TASKS,      HF__STMT_FIND_REQUESTS,   HF__STMT_WHAT_FOLLOWS,
    };
    const struct hf__driver *driver = batch->flusher->driver;
    hf__batch_sort_backwards(batch, HF__STMT_AWAIT_PARENTS);
    hf_code code = hf__batch_send_all(batch, reads, sizeof reads / sizeof *reads, err);
    if (code == HF_OK)
        code = driver->send(batch->flusher->conn, HF__STMT_GET_NOW, NULL,
                            &batch->sheets[HF__STMT_GET_NOW].out, err);
    if (code == HF_OK)
        code = driver->sync(batch->flusher->conn, err);
    if (code == HF_OK)
        batch->now = hf__as_number(hf__table_row(hf__batch_out(batch, HF__STMT_GET_NOW), 0)[0]);
    return code;
}

static void index_rows(struct hf__batch *batch, enum hf__stmt stmt)
{
    const struct hf__table *out = hf__batch_out(batch, stmt);
    for (int i = 0; i < out->nrows; i++) {
        struct hf__row *row = hf__arena_alloc(batch->arena, sizeof *row);
        if (!row) {
            batch->failed = true;
            return;
        }
        hf__row_read(row, hf__table_row(out, i));
        if (!hf__idmap_get(&batch->rows, row->id) && !hf__idmap_put(&batch->rows, row->id, row))
            batch->failed = true;
    }
}

/* From the id in the first column to the row of the answer. */
static void index_by_id(struct hf__batch *batch, struct hf__idmap *map, enum hf__stmt stmt)
{
    struct hf__table *out = hf__batch_out(batch, stmt);
    for (int i = 0; i < out->nrows; i++) {
        struct hf__cell *c = hf__table_row(out, i);
        if (!hf__idmap_put(map, hf__as_uuid(c[0]), c))
            batch->failed = true;
    }
}

static void index_answers(struct hf__batch *batch)
{
    index_rows(batch, HF__STMT_AWAIT_PARENTS);
    index_rows(batch, HF__STMT_LOCK_RUNS);
    index_rows(batch, HF__STMT_LOCK_PARENTS);
    index_rows(batch, HF__STMT_LOCK_DEBOUNCED);
    hf__debounce_index(batch);
    index_by_id(batch, &batch->peeked, HF__STMT_PEEK_RUNS);
    index_by_id(batch, &batch->parents, HF__STMT_PEEK_PARENTS);
    index_by_id(batch, &batch->explained, HF__STMT_EXPLAIN_REFUSED);
    index_by_id(batch, &batch->mailed, HF__STMT_FIND_SIGNALS);
    const struct hf__table *mail = hf__batch_out(batch, HF__STMT_MAILBOX_SUMMARY);
    for (int i = 0; i < mail->nrows; i++) {
        const struct hf__cell *c = hf__table_row(mail, i);
        struct hf__row *row = hf__batch_row(batch, hf__as_uuid(c[0]));
        if (!row)
            continue;
        row->child_ends = (int)hf__as_number(c[1]);
        row->failed_child = hf__as_number(c[2]) != 0;
        row->unseen = hf__as_number(c[3]) != 0;
        row->next_visible = hf__as_number(c[4]);
    }
    hf__note_deliveries(batch);
    const struct hf__table *parents = hf__batch_out(batch, HF__STMT_UNFINISHED_CHILDREN);
    for (int i = 0; i < parents->nrows; i++) {
        struct hf__row *row = hf__batch_row(batch, hf__as_uuid(hf__table_row(parents, i)[0]));
        if (row)
            row->has_children = true;
    }
    hf__follow_index(batch);
    const struct hf__table *ends = hf__batch_out(batch, HF__STMT_PEEK_PARENTS);
    for (int i = 0; i < ends->nrows; i++) {
        const struct hf__cell *c = hf__table_row(ends, i);
        struct hf__row *row = hf__batch_row(batch, hf__as_uuid(c[0]));
        if (row)
            row->end_is_told = hf__as_number(c[2]) != 0;
    }
}

/* Its run or its parent exists, but somebody else has it locked. */
bool hf__is_locked_out(struct hf__batch *batch, const struct hf__op *op)
{
    hf_id run = hf__op_run(op);
    if (!hf__batch_row_of(batch, op))
        return hf__idmap_get(&batch->peeked, run) != NULL;
    const struct hf__cell *c = hf__idmap_get(&batch->parents, run);
    return c && !hf__batch_row(batch, hf__as_uuid(c[1]));
}

hf_code hf__read_locked(struct hf__batch *batch, hf_error *err)
{
    hf_code code = ask_all(batch, err);
    if (code == HF_OK)
        index_answers(batch);
    return code;
}
