/* Claims: due runs into a worker's hands, with their mail and recorded steps.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/claim.h"
#include "util/buffer.h"
#include "util/error.h"

/* Where a statement cannot take a share of each head (SQLite), it is executed once per head. */
static bool goes_head_by_head(const struct hf__batch *batch)
{
    return batch->flusher->driver->statements[HF__STMT_JOURNAL_CLAIMS].sql != NULL;
}

const struct hf__cell *hf__claim_shared(const struct hf__table *out)
{
    const struct hf__cell *last = out->nrows ? hf__table_row(out, out->nrows - 1) : NULL;
    return last && hf__is_null(last[0]) ? last : NULL;
}

int hf__claim_runs(const struct hf__table *out)
{
    return out->nrows - (hf__claim_shared(out) != NULL);
}

const char *hf__heads_json(struct hf__batch *batch, const struct hf__kind *kind)
{
    struct hf__buffer json = { 0 };
    for (size_t i = 0; i < kind->count; i++) {
        const struct hf__claim_head *head = kind->items[i];
        hf__buffer_addf(&json, "%s[%" PRId32 ",%d,%" PRId64, i ? "," : "[", head->lane,
                        head->priority, head->floor);
        if (head->share)
            hf__buffer_addf(&json, ",%d", head->share);
        hf__buffer_add_text(&json, "]");
    }
    hf__buffer_add_text(&json, "]");
    const char *text = json.failed ? NULL : hf__arena_strdup(batch->arena, json.data);
    batch->failed |= text == NULL;
    hf__buffer_free(&json);
    return text;
}

void hf__sheet_init(struct hf__batch *batch, struct hf__sheet *sheet, enum hf__stmt stmt,
                    struct hf__arena *arena)
{
    const struct hf__statement *statement = &batch->flusher->driver->statements[stmt];
    hf__table_init(&sheet->in, batch->arena, statement->nparams);
    hf__table_init(&sheet->out, arena, statement->ncolumns);
}

hf_code hf__sheet_send(struct hf__batch *batch, enum hf__stmt stmt, struct hf__sheet *sheet,
                       hf_error *err)
{
    if (sheet->in.failed || batch->failed)
        return hf__nomem(err);
    return batch->flusher->driver->send(batch->flusher->conn, stmt, &sheet->in, &sheet->out, err);
}

static hf_code send_claim(struct hf__batch *batch, const struct hf__op *op, enum hf__stmt stmt,
                          struct hf__sheet *sheet, const struct hf__kind *kind, int most,
                          hf_error *err)
{
    hf__sheet_init(batch, sheet, stmt, op->claim.arena);
    struct hf__cell *c = hf__table_add(&sheet->in);
    c[0] = hf__text(hf__heads_json(batch, kind));
    c[1] = hf__number(most);
    c[2] = hf__text(op->claim.worker);
    c[3] = hf__number_or_null(op->claim.lease);
    c[4] = hf__number(op->claim.suspect_attempts);
    if (stmt == HF__STMT_CLAIM_LIMITED)
        c[5] = hf__number(op->claim.hands);
    return hf__sheet_send(batch, stmt, sheet, err);
}

/* Where there is a shorter way for one head, it is taken. */
static bool takes_one_head(const struct hf__batch *batch, enum hf__stmt stmt,
                           const struct hf__kind *kind)
{
    return kind->count == 1 && batch->flusher->driver->statements[stmt].sql != NULL;
}

static int share_of(const struct hf__claim_head *head, int most)
{
    return head->share && head->share < most ? head->share : most;
}

static hf_code send_one_head(struct hf__batch *batch, const struct hf__op *op, enum hf__stmt stmt,
                             struct hf__sheet *sheet, const struct hf__claim_head *head, int most,
                             hf_error *err)
{
    hf__sheet_init(batch, sheet, stmt, op->claim.arena);
    struct hf__cell *c = hf__table_add(&sheet->in);
    c[0] = hf__number(head->lane);
    c[1] = hf__number(head->priority);
    c[2] = hf__number(head->floor);
    c[3] = hf__number(share_of(head, most));
    c[4] = hf__text(op->claim.worker);
    c[5] = hf__number_or_null(op->claim.lease);
    c[6] = hf__number(op->claim.suspect_attempts);
    if (stmt == HF__STMT_CLAIM_LIMITED_HEAD)
        c[7] = hf__number(op->claim.hands);
    return hf__sheet_send(batch, stmt, sheet, err);
}

static void append(struct hf__table *to, const struct hf__table *from)
{
    for (int i = 0; i < from->nrows; i++)
        memcpy(hf__table_add(to), hf__table_row(from, i),
               sizeof *from->cells * (size_t)from->ncolumns);
}

static hf_code send_head_by_head(struct hf__batch *batch, const struct hf__op *op,
                                 enum hf__stmt stmt, struct hf__sheet *sheet,
                                 const struct hf__kind *kind, int most, hf_error *err)
{
    hf_code code = HF_OK;
    hf__sheet_init(batch, sheet, stmt, op->claim.arena);
    for (size_t i = 0; code == HF_OK && i < kind->count && most > 0; i++) {
        const struct hf__kind one = { kind->items + i, 1 };
        struct hf__sheet part;
        code = send_claim(batch, op, stmt, &part, &one, share_of(kind->items[i], most), err);
        if (code == HF_OK && stmt == HF__STMT_CLAIM_LIMITED)
            code = hf__limited_charge(batch, kind->items[i]->lane, part.out.nrows, err);
        if (code != HF_OK)
            break;
        most -= part.out.nrows;
        append(&sheet->out, &part.out);
        batch->failed |= sheet->out.failed;
    }
    return code;
}

bool hf__has_shares(const struct hf__kind *kind)
{
    for (size_t i = 0; i < kind->count; i++)
        if (kind->items[i]->share)
            return true;
    return false;
}

static hf_code send_limited(struct hf__batch *batch, const struct hf__op *op,
                            struct hf__sheet *sheet, struct hf__kind *kind, int most, hf_error *err)
{
    if (takes_one_head(batch, HF__STMT_CLAIM_LIMITED_HEAD, kind))
        return send_one_head(batch, op, HF__STMT_CLAIM_LIMITED_HEAD, sheet, kind->items[0], most,
                             err);
    if (!goes_head_by_head(batch))
        return send_claim(batch, op, HF__STMT_CLAIM_LIMITED, sheet, kind, most, err);
    hf_code code = hf__limited_scale(batch, kind, most, err);
    return code == HF_OK
               ? send_head_by_head(batch, op, HF__STMT_CLAIM_LIMITED, sheet, kind, most, err)
               : code;
}

hf_code hf__claim_kind(struct hf__batch *batch, const struct hf__op *op, bool limited,
                       struct hf__sheet *sheet, struct hf__kind *kind, int most, hf_error *err)
{
    if (limited)
        return send_limited(batch, op, sheet, kind, most, err);
    if (goes_head_by_head(batch) && hf__has_shares(kind))
        return send_head_by_head(batch, op, HF__STMT_CLAIM_RUNS, sheet, kind, most, err);
    if (takes_one_head(batch, HF__STMT_CLAIM_HEAD, kind))
        return send_one_head(batch, op, HF__STMT_CLAIM_HEAD, sheet, kind->items[0], most, err);
    return send_claim(batch, op, HF__STMT_CLAIM_RUNS, sheet, kind, most, err);
}

/* The run that a claim wants and no other, if the store can look for it: for one that the same flush inserts, that cannot
 * wait for anybody, and the trigger's answer waits for it; for one that was heard of, it is quicker. No flush has two of
 * them. */
static const hf_id *wanted_run(const struct hf__batch *batch, const struct hf__op *op)
{
    if (!batch->flusher->driver->statements[HF__STMT_CLAIM_RUN].sql)
        return NULL;
    if (hf__brings_its_claim(batch))
        return &batch->ops[0]->trigger.id;
    return batch->count > 1 || hf_id_is_zero(op->claim.run) ? NULL : &op->claim.run;
}

static bool claims_by_id(const struct hf__batch *batch, const struct hf__op *op)
{
    return op->kind == HF__OP_CLAIM && !op->again && wanted_run(batch, op) &&
           !hf__inserts_taken_run(batch);
}

static hf_code send_one_run(struct hf__batch *batch, size_t index, const hf_id *run, hf_error *err)
{
    const struct hf__op *op = batch->ops[index];
    struct hf__sheet *sheet = &batch->claims[index];
    hf__sheet_init(batch, sheet, HF__STMT_CLAIM_RUN, op->claim.arena);
    struct hf__cell *c = hf__table_add(&sheet->in);
    c[0] = hf__number(op->tenant);
    c[1] = hf__uuid(run);
    c[2] = hf__number(op->claim.heads[0].lane);
    c[3] = hf__number_or_null(op->claim.lease);
    hf_code code = hf__sheet_send(batch, HF__STMT_CLAIM_RUN, sheet, err);
    return code == HF_OK ? hf__claim_ask_disk(batch, err) : code;
}

hf_code hf__claim_read_wanted(struct hf__batch *batch, hf_error *err)
{
    const struct hf__driver *driver = batch->flusher->driver;
    for (size_t i = 0; i < batch->count; i++)
        if (claims_by_id(batch, batch->ops[i])) {
            hf_code code = driver->sync(batch->flusher->conn, err);
            return code == HF_OK ? hf__claim_await_disk(batch, err) : code;
        }
    return HF_OK;
}

hf_code hf__claim_lease_wanted(struct hf__batch *batch, hf_error *err)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct hf__table *out = &batch->claims[i].out;
        if (!claims_by_id(batch, batch->ops[i]) || out->nrows == 0)
            continue;
        const struct hf__cell *claimed = hf__table_row(out, 0);
        struct hf__cell *c = hf__batch_add(batch, HF__STMT_LEASE_RUN);
        c[0] = claimed[1];
        c[1] = claimed[0];
        c[2] = hf__text(batch->ops[i]->claim.worker);
        c[3] = claimed[44];
        c[4] = claimed[12];
    }
    return hf__batch_send(batch, HF__STMT_LEASE_RUN, err);
}

hf_code hf__claim_send(struct hf__batch *batch, size_t index, hf_error *err)
{
    const struct hf__op *op = batch->ops[index];
    if (hf__inserts_taken_run(batch))
        return HF_OK;
    const hf_id *run = wanted_run(batch, op);
    if (run)
        return send_one_run(batch, index, run, err);
    struct hf__kind kinds[2] = { { 0 } };
    for (int i = 0; i < 2; i++)
        kinds[i].items =
            hf__arena_calloc(batch->arena, op->claim.head_count + 1, sizeof *kinds[i].items);
    if (!kinds[0].items || !kinds[1].items)
        return hf__nomem(err);
    for (size_t i = 0; i < op->claim.head_count; i++) {
        struct hf__kind *kind = &kinds[op->claim.heads[i].limited];
        kind->items[kind->count++] = &op->claim.heads[i];
    }
    if (kinds[1].count)
        return hf__limited_send(batch, index, kinds, err);
    return kinds[0].count ? hf__claim_kind(batch, op, false, &batch->claims[index], &kinds[0],
                                           op->claim.most, err)
                          : HF_OK;
}

static void journal_rows(struct hf__batch *batch, const struct hf__table *out, const char *worker)
{
    for (int row = 0; row < out->nrows; row++) {
        const struct hf__cell *claimed = hf__table_row(out, row);
        struct hf__cell *c = hf__batch_add(batch, HF__STMT_JOURNAL_CLAIMS);
        c[0] = claimed[1];
        c[1] = claimed[0];
        c[2] = claimed[11];
        c[3] = claimed[9];
        c[4] = hf__text(worker);
    }
}

/* Where the claim could not write its own journal lines (SQLite), they follow in the same transaction. */
hf_code hf__claim_journal(struct hf__batch *batch, hf_error *err)
{
    if (!batch->flusher->driver->statements[HF__STMT_JOURNAL_CLAIMS].sql)
        return HF_OK;
    for (size_t i = 0; i < batch->count; i++)
        if (batch->ops[i]->kind == HF__OP_CLAIM)
            journal_rows(batch, &batch->claims[i].out, batch->ops[i]->claim.worker);
    if (batch->limited) {
        const char *worker = batch->ops[batch->limited->index]->claim.worker;
        journal_rows(batch, &batch->limited->claim.out, worker);
        journal_rows(batch, &batch->limited->rest.out, worker);
    }
    return hf__batch_send(batch, HF__STMT_JOURNAL_CLAIMS, err);
}

/* `s`: what it shares with others, or its own row. */
static void read_claimed(hf_claimed *claimed, const struct hf__cell *c, const struct hf__cell *s)
{
    hf_run *run = &claimed->run;
    run->id = hf__as_uuid(c[0]);
    claimed->tenant_id = (int)hf__as_number(c[1]);
    run->tenant = hf__as_text(s[2]);
    run->workflow = hf__as_text(s[3]);
    claimed->lane = (int)hf__as_number(s[4]);
    run->key = hf__as_text(c[5]);
    run->priority = (int)hf__as_number(s[6]);
    run->attempt = (int)hf__as_number(c[7]);
    run->max_attempts = (int)hf__as_number(hf__is_null(c[8]) ? s[8] : c[8]);
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
    claimed->lease = hf__as_number(s[40]);
    claimed->retry_base = hf__as_number(s[41]);
    claimed->retry_cap = hf__as_number(s[42]);
    claimed->dead_letter = hf__as_text(s[43]);
    claimed->seen_at = hf__as_number(s[44]);
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

static void ask_belongings(struct hf__batch *batch, enum hf__stmt stmt, const struct hf__cell *run)
{
    struct hf__cell *p = hf__batch_add(batch, stmt);
    p[0] = run[1];
    p[1] = run[0];
}

static bool asks_for_belongings(const struct hf__batch *batch)
{
    return batch->sheets[HF__STMT_LOAD_MAIL].in.nrows > 0 ||
           batch->sheets[HF__STMT_LOAD_STEPS].in.nrows > 0;
}

/* Turns answers into claims and asks for the mail and steps of those that have any. */
static void gather_rows(struct hf__batch *batch, const struct hf__table *out, hf_claims *claims,
                        bool limited)
{
    const struct hf__cell *shared = hf__claim_shared(out);
    int count = hf__claim_runs(out);
    for (int i = 0; i < count; i++) {
        const struct hf__cell *c = hf__table_row(out, i);
        hf_claimed *claimed = &claims->items[claims->count++];
        read_claimed(claimed, c, shared ? shared : c);
        claimed->limited = limited;
        if (hf__as_number(c[15]))
            ask_belongings(batch, HF__STMT_LOAD_MAIL, c);
        if (hf__as_number(c[16]))
            ask_belongings(batch, HF__STMT_LOAD_STEPS, c);
    }
}

void hf__claim_gather(struct hf__batch *batch, size_t index)
{
    struct hf__op *op = batch->ops[index];
    const struct hf__limited_claim *limited =
        batch->limited && batch->limited->index == index ? batch->limited : NULL;
    const struct hf__table *out = &batch->claims[index].out;
    size_t count = (size_t)out->nrows;
    if (limited)
        count += (size_t)limited->claim.out.nrows + (size_t)limited->rest.out.nrows;
    hf_claims *claims = hf__arena_calloc(op->claim.arena, 1, sizeof *claims);
    hf_claimed *items = hf__arena_calloc(op->claim.arena, count + 1, sizeof *items);
    if (!claims || !items) {
        batch->failed = true;
        return;
    }
    claims->items = items;
    gather_rows(batch, out, claims, false);
    op->claim.closed_count = 0;
    if (limited) {
        gather_rows(batch, &limited->claim.out, claims, true);
        gather_rows(batch, &limited->rest.out, claims, limited->rest_is_limited);
    }
    qsort(items, claims->count, sizeof *items, by_urgency);
    for (size_t i = 0; asks_for_belongings(batch) && i < claims->count; i++)
        if (!hf__idmap_put(&batch->rows, items[i].run.id, &items[i]))
            batch->failed = true;
    op->claim.claims = claims;
}

/* One claim after the other, so that each one's memory is its own. */
static hf_code deliver_one(struct hf__batch *batch, size_t index, hf_error *err)
{
    const struct hf__driver *driver = batch->flusher->driver;
    struct hf__op *op = batch->ops[index];
    if (op->told) {
        hf__op_ok(op);
        return HF_OK;
    }
    for (int i = 0; i < 2; i++) {
        struct hf__sheet *sheet = &batch->sheets[i ? HF__STMT_LOAD_STEPS : HF__STMT_LOAD_MAIL];
        hf__table_init(&sheet->in, batch->arena, sheet->in.ncolumns);
        hf__table_init(&sheet->out, batch->arena, sheet->out.ncolumns);
    }
    hf__claim_gather(batch, index);
    bool more = asks_for_belongings(batch);
    hf_code code = HF_OK;
    if (more)
        code = hf__batch_send(batch, HF__STMT_LOAD_MAIL, err);
    if (more && code == HF_OK)
        code = hf__batch_send(batch, HF__STMT_LOAD_STEPS, err);
    if (more && code == HF_OK)
        code = driver->sync(batch->flusher->conn, err);
    if (code != HF_OK)
        return code;
    hf__claim_attach(batch, op->claim.arena);
    if (!batch->failed)
        code = hf__limited_ask_closed(batch, index, err);
    if (batch->failed)
        return hf__nomem(err);
    if (code != HF_OK)
        return code;
    hf__op_ok(op);
    return HF_OK;
}

hf_code hf__claim_deliver(struct hf__batch *batch, hf_error *err)
{
    hf__idmap_free(&batch->rows);
    hf__idmap_init(&batch->rows);
    for (size_t i = 0; i < batch->count; i++)
        if (batch->ops[i]->kind == HF__OP_CLAIM && !batch->ops[i]->again) {
            hf_code code = deliver_one(batch, i, err);
            if (code != HF_OK)
                return code;
        }
    return HF_OK;
}
