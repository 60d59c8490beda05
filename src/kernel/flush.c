/* One flush, from the locks to the verdicts. ARCHITECTURE.md walks through it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernel/flush.h"

#include <stdlib.h>
#include <string.h>

#include "kernel/batch.h"
#include "util/error.h"
#include "util/id.h"

#define CONFLICT_TRIES 5 /* of a flush that lost against another one */
#define WARY_FOR 100     /* flushes */

void hf__flusher_init(struct hf__flusher *flusher, const struct hf__driver *driver,
                      struct hf__conn *conn)
{
    memset(flusher, 0, sizeof *flusher);
    flusher->driver = driver;
    flusher->conn = conn;
    flusher->max_poison = 5;
    flusher->max_payload = 1 << 20;
    hf__random_seed(&flusher->random, 1);
    hf__arena_init(&flusher->arena, 64 * 1024);
}

void hf__flusher_free(struct hf__flusher *flusher)
{
    hf__arena_free(&flusher->arena);
}

static hf_code batch_init(struct hf__batch *batch, struct hf__flusher *flusher, struct hf__op **ops,
                          size_t count, hf_error *err)
{
    memset(batch, 0, sizeof *batch);
    hf__arena_reset(&flusher->arena);
    batch->flusher = flusher;
    batch->arena = &flusher->arena;
    batch->ops = ops;
    batch->count = count;
    hf__idmap_init(&batch->rows);
    hf__idmap_init(&batch->named);
    hf__idmap_init(&batch->fenced);
    hf__idmap_init(&batch->decided);
    hf__idmap_init(&batch->leases);
    hf__idmap_init(&batch->peeked);
    hf__idmap_init(&batch->parents);
    hf__idmap_init(&batch->explained);
    hf__idmap_init(&batch->mailed);
    for (int i = 0; i < HF__STMT_COUNT; i++) {
        const struct hf__statement *stmt = &flusher->driver->statements[i];
        hf__table_init(&batch->sheets[i].in, batch->arena, stmt->nparams);
        hf__table_init(&batch->sheets[i].out, batch->arena, stmt->ncolumns);
    }
    batch->claims = hf__arena_calloc(batch->arena, count, sizeof *batch->claims);
    return batch->claims ? HF_OK : hf__nomem(err);
}

static void batch_free(struct hf__batch *batch)
{
    hf__idmap_free(&batch->rows);
    hf__idmap_free(&batch->named);
    hf__idmap_free(&batch->fenced);
    hf__idmap_free(&batch->decided);
    hf__idmap_free(&batch->leases);
    hf__idmap_free(&batch->peeked);
    hf__idmap_free(&batch->parents);
    hf__idmap_free(&batch->explained);
    hf__idmap_free(&batch->mailed);
}

/* ---- Sorting the batch ---- */

static bool takes_long_way(const struct hf__op *op)
{
    return op->kind == HF__OP_SIGNAL || op->kind == HF__OP_CHANGE || op->kind == HF__OP_TASK ||
           (op->kind == HF__OP_COMMIT && !hf__commit_is_short(op) && !hf__commit_is_child_end(op));
}

/* A step or a first transition that may have happened is looked for before it is written again; so is the place of a
 * first transition that starts other runs, the run that a debounced trigger may go into, and that of a step which others
 * had locked. */
static bool is_looked_for(const struct hf__op *op)
{
    const hf_transition *initial = op->kind == HF__OP_TRIGGER ? op->trigger.initial : NULL;
    if (op->kind == HF__OP_TRIGGER && op->trigger.spec->debounce_key)
        return true;
    if (op->kind == HF__OP_STEP)
        return op->resent || op->long_way;
    return initial && (op->resent || initial->child_count || initial->start_count);
}

/* Another tenant has named this run in this flush. Answers are known by the run's id alone, so one of them waits. */
static bool meets_stranger(struct hf__batch *batch, struct hf__op *op, hf_id run)
{
    const struct hf__op *first = hf__idmap_get(&batch->named, run);
    if (!first && !hf__idmap_put(&batch->named, run, op))
        batch->failed = true;
    return first && first->tenant != op->tenant;
}

/* At most one fenced operation per run and flush: what comes second waits for the next. Signals are not fenced. */
static bool must_wait(struct hf__batch *batch, struct hf__op *op)
{
    hf_id run = hf__op_run(op);
    if (hf_id_is_zero(run))
        return false;
    if (meets_stranger(batch, op, run))
        return true;
    if (op->kind == HF__OP_SIGNAL)
        return false;
    if (hf__idmap_get(&batch->fenced, run))
        return true;
    if (!hf__idmap_put(&batch->fenced, run, op))
        batch->failed = true;
    return false;
}

static void ask_lock(struct hf__batch *batch, struct hf__op *op, hf_id id)
{
    if (hf__idmap_get(&batch->decided, id))
        return;
    hf_id *run = hf__arena_alloc(batch->arena, sizeof *run);
    if (!run || !hf__idmap_put(&batch->decided, id, op)) {
        batch->failed = true;
        return;
    }
    *run = id;
    const enum hf__stmt asked[] = {
        batch->flusher->ends_first ? HF__STMT_AWAIT_PARENTS : HF__STMT_LOCK_RUNS,
        HF__STMT_PEEK_RUNS,
    };
    for (size_t i = 0; i < (batch->flusher->ends_first ? 1 : 2); i++) {
        struct hf__cell *c = hf__batch_add(batch, asked[i]);
        c[0] = hf__number(op->tenant);
        c[1] = hf__uuid(run);
    }
}

/* A flush of nothing but ends of children writes them first, and then waits for their parents: many who end children of one
 * parent work side by side. Whatever else a flush writes locks runs as well, and who waits for a parent would keep those. */
static bool ends_come_first(const struct hf__batch *batch)
{
    if (batch->flusher->wary > 0) {
        batch->flusher->wary--;
        return false;
    }
    for (size_t i = 0; i < batch->count; i++)
        if (!hf__commit_is_child_end(batch->ops[i]))
            return false;
    return true;
}

/* First pass: who waits, who needs a lock and what must be read. */
static bool prepare(struct hf__batch *batch)
{
    bool reads = false;
    batch->flusher->ends_first = ends_come_first(batch);
    for (size_t i = 0; i < batch->count; i++) {
        struct hf__op *op = batch->ops[i];
        op->row = NULL;
        op->again = must_wait(batch, op);
        op->again |= op->kind == HF__OP_CLAIM && hf__claim_waits(batch, op);
        if (op->again)
            continue;
        op->passed_over = false;
        if (op->kind == HF__OP_TRIGGER && op->trigger.initial)
            reads = true;
        if (hf__commit_is_child_end(op)) {
            ask_lock(batch, op, op->commit.child->parent);
            reads = true;
        }
        if (!takes_long_way(op) && !is_looked_for(op))
            continue;
        reads = true;
        if (op->kind == HF__OP_TRIGGER) {
            hf__trigger_prepare(batch, op);
            continue;
        }
        ask_lock(batch, op, hf__op_run(op));
        if (op->kind == HF__OP_COMMIT)
            hf__commit_prepare(batch, op);
        else if (op->kind == HF__OP_SIGNAL)
            hf__signal_prepare(batch, op);
        else if (op->kind == HF__OP_STEP)
            hf__step_prepare(batch, op);
        else if (op->kind == HF__OP_TASK)
            hf__task_prepare(batch, op);
        else
            hf__change_prepare(batch, op);
    }
    return reads;
}

/* ---- Deciding ---- */

/* Signals first: a holder's commit in the same flush then sees them. */
static void decide(struct hf__batch *batch)
{
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < batch->count; i++) {
            struct hf__op *op = batch->ops[i];
            if (op->again || (!takes_long_way(op) && !is_looked_for(op)) ||
                (op->kind == HF__OP_SIGNAL) != (pass == 0))
                continue;
            if (op->kind == HF__OP_TRIGGER) {
                hf__trigger_decide(batch, op);
            } else if (hf__is_locked_out(batch, op)) {
                hf__op_pass_over(op);
            } else if (op->kind == HF__OP_SIGNAL) {
                hf__signal_decide(batch, op);
            } else if (op->kind == HF__OP_COMMIT) {
                hf__commit_decide(batch, op);
            } else if (op->kind == HF__OP_STEP) {
                hf__step_decide(batch, op);
            } else if (op->kind == HF__OP_TASK) {
                hf__task_decide(batch, op);
            } else {
                hf__change_decide(batch, op);
            }
        }
}

static void write_input(struct hf__batch *batch, const struct hf__row *row)
{
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_REPLACE_INPUTS);
    c[0] = hf__number(row->tenant);
    c[1] = hf__uuid(&row->id);
    c[2] = hf__text(row->input);
    c[3] = hf__number_or_null(row->debounce_until);
}

static void write_rows(struct hf__batch *batch)
{
    size_t cursor = 0;
    void *value;
    hf_id id;
    while (hf__idmap_next(&batch->rows, &cursor, &id, &value)) {
        struct hf__row *row = value;
        if (!row->dirty)
            continue;
        hf__row_write(row, hf__batch_add(batch, HF__STMT_UPDATE_RUNS));
        if (row->new_input)
            write_input(batch, row);
        if (row->limited && row->was_held && row->status != HF_LEASED)
            hf__wake_slot(batch, row->lane);
    }
}

/* ---- Writing ---- */

/* Wakes the lane of a trigger in the commit's own packet, if it is known by now. */
static void wake_for_trigger(struct hf__batch *batch, const struct hf__op *op)
{
    const hf_trigger_spec *spec = op->trigger.spec;
    int32_t lane =
        hf__lane_recall(&batch->flusher->lanes, op->tenant, spec->workflow, spec->flow_key);
    if (lane)
        hf__wake_lane(batch, lane, spec->run_at ? spec->run_at : 1);
}

static void fill_short(struct hf__batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        struct hf__op *op = batch->ops[i];
        if (op->again || op->decided || op->kind == HF__OP_CLAIM || takes_long_way(op))
            continue;
        if (op->kind == HF__OP_TRIGGER) {
            hf__trigger_fill(batch, op);
            if (!hf__brings_its_claim(batch))
                wake_for_trigger(batch, op);
        } else {
            hf__short_fill(batch, op);
            if (op->kind == HF__OP_COMMIT && op->commit.slot_lane)
                hf__wake_slot(batch, op->commit.slot_lane);
        }
    }
}

static int by_flow_key(const void *left, const void *right)
{
    const struct hf__cell *a = left;
    const struct hf__cell *b = right;
    if (a[0].number != b[0].number)
        return a[0].number < b[0].number ? -1 : 1;
    int order = strcmp(a[1].bytes, b[1].bytes);
    return order ? order : strcmp(a[2].bytes, b[2].bytes);
}

/* Sorted as well, and each once. */
static void sort_lanes(struct hf__batch *batch)
{
    struct hf__table *in = &batch->sheets[HF__STMT_ENSURE_LANES].in;
    size_t size = sizeof *in->cells * (size_t)in->ncolumns;
    int kept = 0;
    if (in->nrows < 2)
        return;
    qsort(in->cells, (size_t)in->nrows, size, by_flow_key);
    for (int i = 0; i < in->nrows; i++)
        if (i == 0 || by_flow_key(hf__table_row(in, kept - 1), hf__table_row(in, i)) != 0)
            memmove(hf__table_row(in, kept++), hf__table_row(in, i), size);
    in->nrows = kept;
}

/* A trigger whose answer was lost may have let its run be seen before it was on disk; where it is found, nothing else is
 * written. */
static hf_code make_durable(struct hf__batch *batch, hf_error *err)
{
    const struct hf__driver *driver = batch->flusher->driver;
    bool resent = false;
    for (size_t i = 0; i < batch->count; i++)
        resent |= batch->ops[i]->kind == HF__OP_TRIGGER && batch->ops[i]->resent;
    if (!resent || !driver->statements[HF__STMT_MAKE_DURABLE].sql)
        return HF_OK;
    return driver->send(batch->flusher->conn, HF__STMT_MAKE_DURABLE, NULL, NULL, err);
}

static hf_code send_writes(struct hf__batch *batch, hf_error *err)
{
    /* The events of locked rows come before those of the short ways, which number theirs after them. */
    static const enum hf__stmt writes[] = {
        HF__STMT_UPDATE_RUNS,     HF__STMT_REPLACE_INPUTS,  HF__STMT_INSERT_EVENTS,
        HF__STMT_FINISH_RUNS,     HF__STMT_SAVE_STEPS,      HF__STMT_EXTEND_LEASES,
        HF__STMT_CREATE_WORKFLOW, HF__STMT_ENSURE_LANES,    HF__STMT_INSERT_PLAIN_RUNS,
        HF__STMT_INSERT_RUNS,     HF__STMT_INSERT_CHILDREN, HF__STMT_INSERT_DEBOUNCED,
        HF__STMT_MARK_PARENTS,    HF__STMT_TELL_STARTS,     HF__STMT_INSERT_FIRST_EVENTS,
        HF__STMT_INSERT_TAGS,     HF__STMT_SPLIT_ENDS,      HF__STMT_CONSUME_SIGNALS,
        HF__STMT_CONSUME_ENDS,    HF__STMT_INSERT_ENDS,     HF__STMT_BLAME_SIGNALS,
        HF__STMT_CANCEL_TIMERS,   HF__STMT_PUT_TIMERS,      HF__STMT_INSERT_SIGNALS,
        HF__STMT_ANNOUNCE_OUTBOX, HF__STMT_TRY_ANNOUNCE,    HF__STMT_INSERT_OUTBOX,
        HF__STMT_UPDATE_TASKS,    HF__STMT_WITHDRAW_TASKS,  HF__STMT_REOPEN_TASKS,
        HF__STMT_INSERT_TASKS,    HF__STMT_CANCEL_TASKS,
    };
    hf__batch_sort(batch, HF__STMT_FINISH_RUNS);
    hf__batch_sort(batch, HF__STMT_SAVE_STEPS);
    hf__batch_sort(batch, HF__STMT_EXTEND_LEASES);
    sort_lanes(batch);
    hf__announce_gently(batch);
    hf_code code = hf__batch_send_all(batch, writes, sizeof writes / sizeof *writes, err);
    for (size_t i = 0; code == HF_OK && i < batch->count; i++)
        if (batch->ops[i]->kind == HF__OP_CLAIM && !batch->ops[i]->again)
            code = hf__claim_send(batch, i, err);
    if (code == HF_OK)
        code = hf__claim_journal(batch, err);
    return code == HF_OK ? make_durable(batch, err) : code;
}

/* Whether a run that this operation inserts was taken for granted, and is not among those that were made. */
static bool misses_a_run(const struct hf__op *op, const struct hf__idmap *made)
{
    if (op->kind == HF__OP_TRIGGER && op->trigger.initial && is_looked_for(op) && !op->decided)
        return !hf__idmap_get(made, op->trigger.id) || hf__misses_a_child(op, made);
    return op->kind == HF__OP_COMMIT && op->decided && op->commit.written &&
           hf__misses_a_child(op, made);
}

static bool takes_for_granted(const struct hf__op *op)
{
    static const struct hf__idmap nothing = { 0 };
    return misses_a_run(op, &nothing);
}

/* A key may be taken since it was looked up, also by a neighbour in this flush: then the flush is undone and tried again,
 * in the end alone. */
static hf_code check_inserted(struct hf__batch *batch, hf_error *err)
{
    bool asked = false;
    for (size_t i = 0; !asked && i < batch->count; i++)
        asked = takes_for_granted(batch->ops[i]);
    if (!asked)
        return HF_OK;
    hf_code code = batch->flusher->driver->sync(batch->flusher->conn, err);
    if (code != HF_OK)
        return code;
    hf__note_inserted(batch);
    for (size_t i = 0; i < batch->count; i++)
        if (misses_a_run(batch->ops[i], &batch->decided)) {
            batch->redo = true;
            batch->ops[i]->tries++;
        }
    return HF_OK;
}

/* ---- After the commit ---- */

/* Nothing of this flush happened: what was decided on it must be decided anew. */
static void undecide(struct hf__batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        batch->ops[i]->decided = false;
        batch->ops[i]->code = HF_OK;
    }
}

/* A lone trigger: of a run that is new for certain, and due, the id goes out as well. */
static void tell_trigger(const struct hf__batch *batch, struct hf__wake *wake)
{
    const struct hf__op *op = batch->ops[0];
    wake->urgent = batch->count == 1 && op->kind == HF__OP_TRIGGER;
    if (wake->urgent && batch->sheets[HF__STMT_INSERT_PLAIN_RUNS].in.nrows == 1 &&
        !op->trigger.spec->run_at && !op->trigger.spec->delay)
        wake->fresh = &op->trigger.id;
    wake->deferred = batch->deferred;
}

static hf_code commit_and_answer(struct hf__batch *batch, bool *unknown, hf_error *err)
{
    const struct hf__driver *driver = batch->flusher->driver;
    struct hf__wake wake = hf__wake_of(batch);
    tell_trigger(batch, &wake);
    hf_code code = hf__claim_read_wanted(batch, err);
    if (code == HF_OK && hf__claim_is_urgent(batch))
        driver->foretell(batch->flusher->conn, hf__claim_foretell, batch);
    if (code == HF_OK)
        code = hf__claim_lease_wanted(batch, err);
    if (code == HF_OK)
        code = driver->commit(batch->flusher->conn, &wake, unknown, err);
    if (code != HF_OK) {
        undecide(batch);
        *unknown |= batch->count == 1 && batch->ops[0]->told;
        return code;
    }
    *unknown = true; /* from here on it has happened, whatever becomes of the answers */
    hf__note_taken_run(batch);
    hf__wake_late(batch, &wake);
    code = hf__trigger_verdicts(batch, err);
    if (code == HF_OK)
        code = hf__short_verdicts(batch, err);
    if (code == HF_OK)
        code = hf__claim_deliver(batch, err);
    if (code == HF_OK && batch->failed)
        code = hf__nomem(err);
    if (code == HF_OK)
        *unknown = false;
    return code;
}

/* Writes the ends of children, then waits for their parents. */
static hf_code end_children(struct hf__batch *batch, hf_error *err)
{
    hf_code code = hf__child_ends_send(batch, err);
    if (code == HF_OK)
        code = hf__read_locked(batch, err);
    if (code == HF_OK)
        code = hf__child_ends_tell(batch, err);
    if (code == HF_OK)
        write_rows(batch);
    return code;
}

/* Locks what is decided on, first of all; the ends of children are written under the locks of their parents. */
static hf_code read_and_decide(struct hf__batch *batch, hf_error *err)
{
    hf_code code = hf__read_locked(batch, err);
    if (code != HF_OK)
        return code;
    decide(batch);
    code = hf__child_ends_send(batch, err);
    if (code == HF_OK && batch->sheets[HF__STMT_FINISH_CHILDREN].in.nrows > 0)
        code = batch->flusher->driver->sync(batch->flusher->conn, err);
    if (code == HF_OK)
        code = hf__child_ends_tell(batch, err);
    if (code == HF_OK)
        write_rows(batch);
    return code;
}

static hf_code run_batch(struct hf__batch *batch, bool *unknown, hf_error *err)
{
    const struct hf__driver *driver = batch->flusher->driver;
    bool reads = prepare(batch);
    if (driver->may_foretell && hf__claim_is_urgent(batch))
        driver->may_foretell(batch->flusher->conn);
    hf_code code = batch->failed ? hf__nomem(err) : driver->begin(batch->flusher->conn, err);
    if (code == HF_OK && reads)
        code = batch->flusher->ends_first ? end_children(batch, err) : read_and_decide(batch, err);
    if (code == HF_OK) {
        hf__idmap_free(&batch->decided);
        hf__idmap_init(&batch->decided);
        fill_short(batch);
        code = batch->failed ? hf__nomem(err) : send_writes(batch, err);
    }
    if (code == HF_OK)
        code = check_inserted(batch, err);
    if (code == HF_OK)
        code = hf__check_announced(batch, err);
    if (code != HF_OK || batch->redo) {
        driver->rollback(batch->flusher->conn);
        undecide(batch);
        return code;
    }
    code = commit_and_answer(batch, unknown, err);
    if (code != HF_OK)
        driver->rollback(batch->flusher->conn);
    return code;
}

static hf_code flush_once(struct hf__flusher *flusher, struct hf__op **ops, size_t count,
                          bool *unknown, hf_error *err)
{
    struct hf__batch batch;
    hf_code code = batch_init(&batch, flusher, ops, count, err);
    if (code == HF_OK)
        code = run_batch(&batch, unknown, err);
    if (code == HF_OK && batch.redo)
        for (size_t i = 0; i < count; i++)
            ops[i]->again = true;
    if (code == HF_OK && !batch.redo && flusher->metrics)
        hf__metrics_count(flusher->metrics, &batch);
    batch_free(&batch);
    return code;
}

/* Or somebody has cancelled the statement. */
static bool lost_a_race(const hf_error *err)
{
    return err->code == HF_STORE &&
           (strcmp(err->sqlstate, "40001") == 0 || strcmp(err->sqlstate, "40P01") == 0 ||
            strcmp(err->sqlstate, "57014") == 0);
}

/* A new run had no lane: a null where there must be none (PostgreSQL). Its lane was remembered, and removed meanwhile. */
static bool lost_a_lane(struct hf__flusher *flusher, const hf_error *err)
{
    bool lost = err->code == HF_STORE && strcmp(err->sqlstate, "23502") == 0;
    if (lost)
        hf__lane_forget_all(&flusher->lanes);
    return lost;
}

/* Another session has carried out a request of this flush in this moment: the next try sees it. */
static bool lost_to_a_repeat(struct hf__op **ops, size_t count, const hf_error *err)
{
    if (err->code != HF_STORE || strcmp(err->sqlstate, "23505") != 0)
        return false;
    for (size_t i = 0; i < count; i++)
        if (hf__request_of(ops[i]))
            return true;
    return false;
}

/* Somebody keeps a parent locked, or two wait for each other's. Whatever it was, parents are locked first now. */
static bool lost_a_parent(struct hf__flusher *flusher, const hf_error *err)
{
    bool lost = flusher->ends_first &&
                (hf__error_is_data(err) || hf__error_is_lock(err) || lost_a_race(err));
    if (lost)
        flusher->wary = WARY_FOR;
    return lost;
}

/* The store refused one operation's data: it ends alone. */
static void end_refused(struct hf__op *op, const hf_error *err)
{
    if (op->kind == HF__OP_CHANGE && op->change.action == HF_RESTORE &&
        strncmp(err->sqlstate, "23", 2) == 0)
        hf__op_end(
            op, HF_CONFLICT,
            "its key, or debounce key, was taken by another run meanwhile: delete that first");
    else
        hf__op_end(op, err->code, "%s", err->message);
    if (op->error)
        memcpy(op->error->sqlstate, err->sqlstate, sizeof err->sqlstate);
}

hf_code hf__flush(struct hf__flusher *flusher, struct hf__op **ops, size_t count, bool *unknown,
                  hf_error *err)
{
    hf_code code = HF_OK;
    *unknown = false;
    for (int tries = 0; tries < CONFLICT_TRIES; tries++) {
        code = flush_once(flusher, ops, count, unknown, err);
        if (code == HF_OK || *unknown ||
            !(lost_a_parent(flusher, err) || lost_a_race(err) || lost_a_lane(flusher, err) ||
              lost_to_a_repeat(ops, count, err)))
            break;
    }
    if (code == HF_OK || *unknown || !(hf__error_is_data(err) || hf__error_is_lock(err)))
        return code;
    if (count == 1 && (hf__error_is_lock(err) || hf__commit_is_child_end(ops[0]))) {
        ops[0]->again = true;
        ops[0]->tries++;
        ops[0]->long_way =
            true; /* which passes over runs that are locked, and mail that is there */
        return HF_OK;
    }
    if (count == 1) {
        end_refused(ops[0], err);
        return HF_OK;
    }
    /* Halve until the one that the store refuses, or that is locked, is alone. Arrays are reordered by neither half. */
    code = hf__flush(flusher, ops, count / 2, unknown, err);
    if (code == HF_OK)
        code = hf__flush(flusher, ops + count / 2, count - count / 2, unknown, err);
    return code;
}
