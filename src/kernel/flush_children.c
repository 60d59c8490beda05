/* The short way for the ends of children: all are written at once with their mail, and each parent, which is locked before or
 * after that, learns how many came.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernel/batch.h"

#define WARY_FOR 100 /* flushes */

void hf__be_wary(struct hf__flusher *flusher)
{
    flusher->wary = WARY_FOR;
}

/* Where the parent cannot be had at once, the long way knows what to do. */
static void go_the_long_way(struct hf__op *op)
{
    op->long_way = op->again = true;
}

static bool fails(const struct hf__op *op)
{
    return op->commit.transition->turn != HF_TURN_SUCCEED;
}

static void fill(struct hf__batch *batch, struct hf__op *op)
{
    const hf_transition *t = op->commit.transition;
    const hf_run *child = op->commit.child;
    const struct hf__row *parent = hf__batch_row(batch, child->parent);
    bool first = batch->flusher->ends_first;
    if (!first && (!parent || hf__batch_row(batch, t->run))) { /* which this flush may write, too */
        go_the_long_way(op);
        return;
    }
    struct hf__end end = {
        .run = &t->run,
        .workflow = child->workflow,
        .key = child->key,
        .status = fails(op) ? "failed" : "succeeded",
        .result = fails(op) ? NULL : t->result,
        .error = fails(op) ? t->error : NULL,
    };
    bool told = first || parent->status != HF_SUCCEEDED;
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_FINISH_CHILDREN);
    hf__fill_end(c, op);
    c[11] = hf__uuid(&child->parent);
    c[12] = hf__text(hf__end_mail_id(batch, t->run));
    c[13] = hf__text(child->key ? child->key : child->workflow);
    c[14] = hf__text(told ? hf__end_payload(batch, &end) : NULL);
    hf__alert_failed(batch, op);
}

/* That the mail was new may come with the end, or in a line of its own behind it. */
static void take_answer(struct hf__batch *batch, const struct hf__cell *c)
{
    hf_id run = hf__as_uuid(c[0]);
    struct hf__op *op = hf__idmap_get(&batch->fenced, run);
    if (!op)
        return;
    if (!op->decided && op->commit.slot_lane)
        hf__wake_slot(batch, op->commit.slot_lane);
    if (hf__as_number(c[1]) >= 1)
        hf__wake_watcher_of(batch, run);
    hf__op_ok(op);
    if (hf__as_number(c[2]))
        hf__children_told(batch, hf__batch_row(batch, op->commit.child->parent), 1, fails(op));
}

hf_code hf__child_ends_send(struct hf__batch *batch, hf_error *err)
{
    for (size_t i = 0; i < batch->count; i++)
        if (!batch->ops[i]->again && hf__commit_is_child_end(batch->ops[i]))
            fill(batch, batch->ops[i]);
    hf__batch_sort(batch, HF__STMT_FINISH_CHILDREN);
    return hf__batch_send(batch, HF__STMT_FINISH_CHILDREN, err);
}

/* A parent that is gone, or that has succeeded, wants no mail: what was written for it is undone. */
static bool wants_no_mail(struct hf__batch *batch, const struct hf__op *op)
{
    const struct hf__row *parent = hf__batch_row(batch, op->commit.child->parent);
    return batch->flusher->ends_first && (!parent || parent->status == HF_SUCCEEDED);
}

void hf__child_ends_tell(struct hf__batch *batch)
{
    const struct hf__table *out = hf__batch_out(batch, HF__STMT_FINISH_CHILDREN);
    for (size_t i = 0; i < batch->count; i++) {
        const struct hf__op *op = batch->ops[i];
        if (!op->again && hf__commit_is_child_end(op) && wants_no_mail(batch, op)) {
            hf__be_wary(batch->flusher);
            batch->redo = true;
            return;
        }
    }
    for (int i = 0; i < out->nrows; i++)
        take_answer(batch, hf__table_row(out, i));
    for (size_t i = 0; i < batch->count; i++) {
        struct hf__op *op = batch->ops[i];
        if (!op->again && !op->decided && hf__commit_is_child_end(op))
            go_the_long_way(op); /* refused: there it is told why */
    }
}
