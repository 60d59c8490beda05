/* Claims: due runs into a worker's hands, with their mail and recorded steps.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "kernel/batch.h"
#include "util/error.h"

hf_code hf__claim_send(struct hf__batch *batch, size_t index, hf_error *err)
{
    struct hf__op *op = batch->ops[index];
    struct hf__sheet *sheet = &batch->claims[index];
    const struct hf__driver *driver = batch->flusher->driver;
    const struct hf__statement *stmt = &driver->statements[HF__STMT_CLAIM_RUNS];
    hf__table_init(&sheet->in, batch->arena, stmt->nparams);
    hf__table_init(&sheet->out, op->claim.arena, stmt->ncolumns);
    struct hf__cell *c = hf__table_add(&sheet->in);
    c[0] = hf__text(op->claim.heads);
    c[1] = hf__number(op->claim.most);
    c[2] = hf__text(op->claim.worker);
    c[3] = hf__number_or_null(op->claim.lease);
    c[4] = hf__number(op->claim.suspect_attempts);
    if (sheet->in.failed)
        return hf__nomem(err);
    return driver->send(batch->flusher->conn, HF__STMT_CLAIM_RUNS, &sheet->in, &sheet->out, err);
}

/* Where the claim could not write its own journal lines (SQLite), they follow in the same transaction. */
hf_code hf__claim_journal(struct hf__batch *batch, hf_error *err)
{
    if (!batch->flusher->driver->statements[HF__STMT_JOURNAL_CLAIMS].sql)
        return HF_OK;
    for (size_t i = 0; i < batch->count; i++) {
        const struct hf__table *out = &batch->claims[i].out;
        for (int row = 0; row < out->nrows; row++) {
            const struct hf__cell *claimed = hf__table_row(out, row);
            struct hf__cell *c = hf__batch_add(batch, HF__STMT_JOURNAL_CLAIMS);
            c[0] = claimed[1];
            c[1] = claimed[0];
            c[2] = claimed[11];
            c[3] = claimed[9];
            c[4] = hf__text(batch->ops[i]->claim.worker);
        }
    }
    return hf__batch_send(batch, HF__STMT_JOURNAL_CLAIMS, err);
}

static void read_claimed(hf_claimed *claimed, const struct hf__cell *c)
{
    hf_run *run = &claimed->run;
    run->id = hf__as_uuid(c[0]);
    claimed->tenant_id = (int)hf__as_number(c[1]);
    run->tenant = hf__as_text(c[2]);
    run->workflow = hf__as_text(c[3]);
    claimed->lane = (int)hf__as_number(c[4]);
    run->key = hf__as_text(c[5]);
    run->priority = (int)hf__as_number(c[6]);
    run->attempt = (int)hf__as_number(c[7]);
    run->max_attempts = (int)hf__as_number(c[8]);
    run->version = hf__as_number(c[9]);
    run->revision = hf__as_number(c[10]);
    run->run_at = run->lease_until = hf__as_number(c[12]);
    claimed->due_at = hf__as_number(c[13]);
    claimed->suspect = hf__as_number(c[14]) == HF_LEASED;
    run->status = HF_LEASED;
    run->input = hf__as_text(c[18]);
    run->state = hf__as_text(c[19]);
    run->error = hf__as_text(c[20]);
    run->error_code = hf__as_text(c[21]);
    run->last_error = hf__as_text(c[22]);
    run->current_step = hf__as_text(c[23]);
    run->waiting_kind = hf__as_text(c[24]);
    run->waiting_token = hf__as_text(c[25]);
    run->waiting_until = hf__as_number(c[26]);
    run->wait_count = (int)hf__as_number(c[27]);
    run->last_worker = hf__as_text(c[28]);
    run->subject = hf__as_text(c[29]);
    run->reference = hf__as_text(c[30]);
    run->tags = hf__as_text(c[31]);
    run->partition = hf__as_text(c[32]);
    run->trace = hf__as_text(c[33]);
    run->actor = hf__as_text(c[34]);
    run->parent = hf__as_uuid(c[35]);
    run->root = hf__as_uuid(c[36]);
    run->timeout_at = hf__as_number(c[37]);
    run->created_at = hf__as_number(c[38]);
    run->started_at = hf__as_number(c[39]);
    claimed->lease = hf__as_number(c[40]);
    claimed->retry_base = hf__as_number(c[41]);
    claimed->retry_cap = hf__as_number(c[42]);
    claimed->dead_letter = hf__as_text(c[43]);
    claimed->seen_at = hf__as_number(c[44]);
    claimed->exhausted = run->attempt > run->max_attempts;
    claimed->overdue = run->timeout_at != 0 && run->timeout_at <= claimed->seen_at;
}

/* More urgent first, then the one that was due first. */
static int by_urgency(const void *left, const void *right)
{
    const hf_claimed *a = left;
    const hf_claimed *b = right;
    if (a->run.priority != b->run.priority)
        return a->run.priority > b->run.priority ? -1 : 1;
    if (a->due_at != b->due_at)
        return a->due_at < b->due_at ? -1 : 1;
    return memcmp(a->run.id.bytes, b->run.id.bytes, sizeof a->run.id.bytes);
}

/* Turns the answer into claims and asks for the mail and steps of those that have any. */
static void gather(struct hf__batch *batch, size_t index)
{
    struct hf__op *op = batch->ops[index];
    const struct hf__table *out = &batch->claims[index].out;
    hf_claims *claims = hf__arena_calloc(op->claim.arena, 1, sizeof *claims);
    hf_claimed *items = hf__arena_calloc(op->claim.arena, (size_t)out->nrows + 1, sizeof *items);
    if (!claims || !items) {
        batch->failed = true;
        return;
    }
    claims->items = items;
    claims->count = (size_t)out->nrows;
    for (int i = 0; i < out->nrows; i++) {
        const struct hf__cell *c = hf__table_row(out, i);
        read_claimed(&items[i], c);
        if (hf__as_number(c[15]))
            hf__batch_add(batch, HF__STMT_LOAD_MAIL)[0] = c[0];
        if (hf__as_number(c[16])) {
            struct hf__cell *p = hf__batch_add(batch, HF__STMT_LOAD_STEPS);
            p[0] = c[1];
            p[1] = c[0];
        }
        if (hf__as_number(c[17]) >= 2)
            hf__wake_watcher_of(batch, items[i].run.id);
    }
    qsort(items, claims->count, sizeof *items, by_urgency);
    for (size_t i = 0; i < claims->count; i++)
        if (!hf__idmap_put(&batch->rows, items[i].run.id, &items[i]))
            batch->failed = true;
    op->claim.claims = claims;
}

static const char *keep(struct hf__batch *batch, struct hf__arena *arena, struct hf__cell cell)
{
    if (hf__is_null(cell))
        return NULL;
    const char *copy = hf__arena_strndup(arena, cell.bytes, (size_t)cell.length);
    if (!copy)
        batch->failed = true;
    return copy;
}

/* Rows of one run lie together: counts how many begin at `from`. */
static int same_run(const struct hf__table *out, int from)
{
    hf_id id = hf__as_uuid(hf__table_row(out, from)[0]);
    int n = 1;
    while (from + n < out->nrows && hf_id_equal(hf__as_uuid(hf__table_row(out, from + n)[0]), id))
        n++;
    return n;
}

static void attach_mail(struct hf__batch *batch, struct hf__arena *arena, hf_claimed *claimed,
                        int from, int count)
{
    const struct hf__table *out = hf__batch_out(batch, HF__STMT_LOAD_MAIL);
    claimed->mail = hf__arena_calloc(arena, (size_t)count, sizeof *claimed->mail);
    if (!claimed->mail) {
        batch->failed = true;
        return;
    }
    claimed->mail_count = (size_t)count;
    for (int i = 0; i < count; i++) {
        const struct hf__cell *c = hf__table_row(out, from + i);
        hf_mail *mail = &claimed->mail[i];
        mail->id = keep(batch, arena, c[1]);
        mail->type = keep(batch, arena, c[2]);
        mail->name = keep(batch, arena, c[3]);
        mail->payload = keep(batch, arena, c[4]);
        mail->token = keep(batch, arena, c[5]);
        mail->sender = keep(batch, arena, c[6]);
        mail->position = hf__as_number(c[7]);
        mail->visible_at = hf__as_number(c[8]);
        mail->occurred_at = hf__as_number(c[9]);
        mail->attempts = (int)hf__as_number(c[10]);
        if (mail->position > claimed->seen_position)
            claimed->seen_position = mail->position;
    }
}

static void attach_steps(struct hf__batch *batch, struct hf__arena *arena, hf_claimed *claimed,
                         int from, int count)
{
    const struct hf__table *out = hf__batch_out(batch, HF__STMT_LOAD_STEPS);
    claimed->steps = hf__arena_calloc(arena, (size_t)count, sizeof *claimed->steps);
    if (!claimed->steps) {
        batch->failed = true;
        return;
    }
    claimed->step_count = (size_t)count;
    for (int i = 0; i < count; i++) {
        const struct hf__cell *c = hf__table_row(out, from + i);
        hf_event *step = &claimed->steps[i];
        step->run = claimed->run.id;
        step->seq = hf__as_number(c[1]);
        step->position = hf__as_number(c[2]);
        step->version = hf__as_number(c[3]);
        step->name = keep(batch, arena, c[4]);
        step->actor = keep(batch, arena, c[5]);
        step->step = keep(batch, arena, c[6]);
        step->kind = step->step ? "step" : "lifecycle";
        step->data = keep(batch, arena, c[7]);
        step->at = hf__as_number(c[8]);
    }
}

static void attach(struct hf__batch *batch, struct hf__arena *arena, enum hf__stmt stmt,
                   void (*one)(struct hf__batch *, struct hf__arena *, hf_claimed *, int, int))
{
    const struct hf__table *out = hf__batch_out(batch, stmt);
    for (int i = 0, n; i < out->nrows; i += n) {
        n = same_run(out, i);
        hf_claimed *claimed = hf__idmap_get(&batch->rows, hf__as_uuid(hf__table_row(out, i)[0]));
        if (claimed)
            one(batch, arena, claimed, i, n);
    }
}

/* One claim after the other, so that each one's memory is its own. */
static hf_code deliver_one(struct hf__batch *batch, size_t index, hf_error *err)
{
    const struct hf__driver *driver = batch->flusher->driver;
    struct hf__op *op = batch->ops[index];
    for (int i = 0; i < 2; i++) {
        struct hf__sheet *sheet = &batch->sheets[i ? HF__STMT_LOAD_STEPS : HF__STMT_LOAD_MAIL];
        hf__table_init(&sheet->in, batch->arena, sheet->in.ncolumns);
        hf__table_init(&sheet->out, batch->arena, sheet->out.ncolumns);
    }
    gather(batch, index);
    bool more = batch->sheets[HF__STMT_LOAD_MAIL].in.nrows > 0 ||
                batch->sheets[HF__STMT_LOAD_STEPS].in.nrows > 0;
    hf_code code = HF_OK;
    if (more)
        code = hf__batch_send(batch, HF__STMT_LOAD_MAIL, err);
    if (more && code == HF_OK)
        code = hf__batch_send(batch, HF__STMT_LOAD_STEPS, err);
    if (more && code == HF_OK)
        code = driver->sync(batch->flusher->conn, err);
    if (code != HF_OK)
        return code;
    attach(batch, op->claim.arena, HF__STMT_LOAD_MAIL, attach_mail);
    attach(batch, op->claim.arena, HF__STMT_LOAD_STEPS, attach_steps);
    if (batch->failed)
        return hf__nomem(err);
    hf__op_ok(op);
    return HF_OK;
}

hf_code hf__claim_deliver(struct hf__batch *batch, hf_error *err)
{
    hf__idmap_free(&batch->rows);
    hf__idmap_init(&batch->rows);
    for (size_t i = 0; i < batch->count; i++)
        if (batch->ops[i]->kind == HF__OP_CLAIM) {
            hf_code code = deliver_one(batch, i, err);
            if (code != HF_OK)
                return code;
        }
    return HF_OK;
}
