/* The short way for the ends of children: all are written at once. Each parent, which is locked before or after that, then gets
 * its mail and learns how many came.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernel/batch.h"
#include "util/buffer.h"

enum {
    SHARED_BYTES = 1000, /* of an end, at most, to share a row with others */
    SHARED_MOST = 1000   /* ends in one */
};

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
    const hf_run *child = op->commit.child;
    bool locked = hf__batch_row(batch, child->parent) != NULL;
    bool own = hf__batch_row(batch, op->commit.transition->run) != NULL; /* may be written, too */
    if (!batch->flusher->ends_first && (!locked || own)) {
        go_the_long_way(op);
        return;
    }
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_FINISH_CHILDREN);
    hf__fill_end(c, op);
    c[11] = hf__uuid(&child->parent);
    hf__alert_failed(batch, op);
}

hf_code hf__child_ends_send(struct hf__batch *batch, hf_error *err)
{
    for (size_t i = 0; i < batch->count; i++)
        if (!batch->ops[i]->again && hf__commit_is_child_end(batch->ops[i]))
            fill(batch, batch->ops[i]);
    hf__batch_sort(batch, HF__STMT_FINISH_CHILDREN);
    return hf__batch_send(batch, HF__STMT_FINISH_CHILDREN, err);
}

/* ---- Telling the parents, which are locked ---- */

/* One that is gone, or has succeeded, wants to hear of nothing. */
static struct hf__row *parent_of(struct hf__batch *batch, const struct hf__op *op)
{
    struct hf__row *parent = hf__batch_row(batch, op->commit.child->parent);
    return parent && parent->status != HF_SUCCEEDED ? parent : NULL;
}

/* Of children that may have told before, as those that were retried: whose mail is there already? */
static hf_code find_told(struct hf__batch *batch, hf_error *err)
{
    const struct hf__table *ends = hf__batch_out(batch, HF__STMT_FINISH_CHILDREN);
    struct hf__sheet *find = &batch->sheets[HF__STMT_FIND_SIGNALS];
    hf__table_init(&find->in, batch->arena, find->in.ncolumns);
    hf__table_init(&find->out, batch->arena, find->out.ncolumns);
    for (int i = 0; i < ends->nrows; i++) {
        const struct hf__cell *end = hf__table_row(ends, i);
        const struct hf__op *op = hf__idmap_get(&batch->fenced, hf__as_uuid(end[0]));
        if (!op || !hf__as_number(end[2]) || !parent_of(batch, op))
            continue;
        struct hf__cell *c = hf__batch_add(batch, HF__STMT_FIND_SIGNALS);
        c[0] = hf__number(op->tenant);
        c[1] = hf__uuid(&op->commit.child->parent);
        c[2] = hf__text(hf__end_mail_id(batch, op->commit.transition->run));
    }
    hf_code code = hf__batch_send(batch, HF__STMT_FIND_SIGNALS, err);
    if (code == HF_OK && find->in.nrows > 0)
        code = batch->flusher->driver->sync(batch->flusher->conn, err);
    return code;
}

static bool was_told(struct hf__batch *batch, const char *mail)
{
    const struct hf__table *told = hf__batch_out(batch, HF__STMT_FIND_SIGNALS);
    for (int i = 0; i < told->nrows; i++)
        if (strcmp(hf__as_text(hf__table_row(told, i)[1]), mail) == 0)
            return true;
    return false;
}

/* Ends that go into one row of mail: of one parent, and told by one name. */
struct mail_row {
    const struct hf__op *first;
    const char *id; /* of the row: that of the first end's mail */
    struct hf__buffer ends;
    int count;
    bool closed; /* to others */
};

static const char *name_of(const hf_run *child)
{
    return child->key ? child->key : child->workflow;
}

static void write_row(struct hf__batch *batch, struct mail_row *row)
{
    const bool shared = row->count > 1;
    if (row->count == 0)
        return;
    hf__buffer_add_text(&row->ends, shared ? "]" : "");
    const char *payload =
        row->ends.failed ? NULL : hf__arena_strdup(batch->arena, row->ends.data + !shared);
    if (!payload)
        batch->failed = true;
    const hf_run *child = row->first->commit.child;
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_INSERT_ENDS);
    c[0] = hf__number(row->first->tenant);
    c[1] = hf__uuid(&child->parent);
    c[2] = hf__text(row->id);
    c[3] = hf__text(name_of(child));
    c[4] = hf__text(payload);
    c[5] = hf__number(fails(row->first));
    c[6] = shared ? hf__number(row->count) : hf__null();
    hf__buffer_clear(&row->ends);
    row->count = 0;
}

/* What others may be told of with it. A run that has succeeded does not end again, so nobody will look for its mail. */
static bool shares(const struct hf__batch *batch, const struct hf__op *op, const char *payload)
{
    return batch->flusher->shares_mail && !fails(op) && !op->commit.child->key &&
           strlen(payload) <= SHARED_BYTES;
}

static bool belongs(const struct mail_row *row, const struct hf__op *op)
{
    const hf_run *child = op->commit.child;
    const hf_run *first = row->first->commit.child;
    return row->first->tenant == op->tenant && hf_id_equal(first->parent, child->parent) &&
           strcmp(first->workflow, child->workflow) == 0;
}

static void add_to_row(struct hf__batch *batch, struct mail_row *row, const struct hf__op *op,
                       const char *id, const char *payload)
{
    bool open = shares(batch, op, payload);
    if (!open || row->closed || row->count == SHARED_MOST || (row->count && !belongs(row, op)))
        write_row(batch, row);
    if (row->count == 0) {
        row->first = op;
        row->id = id;
        row->closed = !open;
    }
    hf__buffer_add_text(&row->ends, row->count++ ? "," : "[");
    hf__buffer_add_text(&row->ends, payload);
}

static void tell(struct hf__batch *batch, const struct hf__op *op, bool older, struct mail_row *row)
{
    const hf_transition *t = op->commit.transition;
    const hf_run *child = op->commit.child;
    struct hf__row *parent = parent_of(batch, op);
    const char *mail = parent ? hf__end_mail_id(batch, t->run) : NULL;
    if (!mail || (older && was_told(batch, mail)))
        return;
    struct hf__end end = {
        .run = &t->run,
        .workflow = child->workflow,
        .key = child->key,
        .status = fails(op) ? "failed" : "succeeded",
        .result = fails(op) ? NULL : t->result,
        .error = fails(op) ? t->error : NULL,
    };
    const char *payload = hf__end_payload(batch, &end);
    if (payload)
        add_to_row(batch, row, op, mail, payload);
    hf__children_told(batch, parent, 1, fails(op));
}

static void take_answer(struct hf__batch *batch, const struct hf__cell *c, struct mail_row *row)
{
    hf_id run = hf__as_uuid(c[0]);
    struct hf__op *op = hf__idmap_get(&batch->fenced, run);
    if (!op)
        return;
    if (op->commit.slot_lane)
        hf__wake_slot(batch, op->commit.slot_lane);
    if (hf__as_number(c[1]) >= 1)
        hf__wake_watcher_of(batch, run);
    hf__op_ok(op);
    tell(batch, op, hf__as_number(c[2]) != 0, row);
}

hf_code hf__child_ends_tell(struct hf__batch *batch, hf_error *err)
{
    const struct hf__table *ends = hf__batch_out(batch, HF__STMT_FINISH_CHILDREN);
    struct mail_row row = { 0 };
    hf_code code = ends->nrows ? find_told(batch, err) : HF_OK;
    for (int i = 0; code == HF_OK && i < ends->nrows; i++)
        take_answer(batch, hf__table_row(ends, i), &row);
    write_row(batch, &row);
    hf__buffer_free(&row.ends);
    for (size_t i = 0; code == HF_OK && i < batch->count; i++) {
        struct hf__op *op = batch->ops[i];
        if (!op->again && !op->decided && hf__commit_is_child_end(op))
            go_the_long_way(op); /* refused: there it is told why */
    }
    return code;
}
