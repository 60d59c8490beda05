/* The short ways: ends, steps and heartbeats that need no look at the run before they are written.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernel/batch.h"

/* Ends a run and brings nothing else. */
static bool ends_plainly(const struct hf__op *op)
{
    const hf_transition *t = op->commit.transition;
    return !op->long_way && !op->resent && !t->unleased &&
           (t->turn == HF_TURN_SUCCEED || t->turn == HF_TURN_FAIL) && t->consumed_count == 0 &&
           t->blamed_count == 0 && t->timer_count == 0 && t->cancelled_timer_count == 0 &&
           t->child_count == 0 && t->start_count == 0 && t->event_count == 0 &&
           t->outbox_count == 0 && t->task_count == 0 && t->withdrawn_task_count == 0 &&
           !t->current_step;
}

bool hf__commit_is_short(const struct hf__op *op)
{
    return op->commit.parentless && ends_plainly(op);
}

bool hf__commit_is_child_end(const struct hf__op *op)
{
    return op->kind == HF__OP_COMMIT && op->commit.child && ends_plainly(op);
}

void hf__fill_end(struct hf__cell *c, const struct hf__op *op)
{
    const hf_transition *t = op->commit.transition;
    bool ok = t->turn == HF_TURN_SUCCEED;
    c[0] = hf__number(op->tenant);
    c[1] = hf__uuid(&t->run);
    c[2] = hf__number(t->run_version);
    c[3] = hf__number(ok ? HF_SUCCEEDED : HF_FAILED);
    c[4] = hf__text(ok ? "succeeded" : "failed");
    c[5] = hf__text(t->worker ? t->worker : op->actor);
    c[6] = hf__text(t->state);
    c[7] = hf__text(t->result);
    c[8] = hf__text(ok ? NULL : t->error);
    c[9] = hf__text(ok ? NULL : t->error_code);
    c[10] = hf__text(ok ? NULL : t->last_error);
}

static void fill_step(struct hf__batch *batch, struct hf__op *op)
{
    const hf_step_record *step = op->step.record;
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_SAVE_STEPS);
    c[0] = hf__number(op->tenant);
    c[1] = hf__uuid(&step->run);
    c[2] = hf__number(step->run_version);
    c[3] = hf__text(step->worker ? step->worker : op->actor);
    c[4] = hf__text(step->name);
    c[5] = hf__text(step->status);
    c[6] = hf__text(step->data);
    c[7] = hf__text(op->step.request);
}

static int held_tenant(const struct hf__op *op, size_t i)
{
    return op->heartbeat.tenants ? op->heartbeat.tenants[i] : op->tenant;
}

static void fill_heartbeat(struct hf__batch *batch, struct hf__op *op)
{
    for (size_t i = 0; i < op->heartbeat.count; i++) {
        hf_held *held = &op->heartbeat.held[i];
        struct hf__cell *c = hf__batch_add(batch, HF__STMT_EXTEND_LEASES);
        c[0] = hf__number(held_tenant(op, i));
        c[1] = hf__uuid(&held->run);
        c[2] = hf__number(held->run_version);
        c[3] = hf__number(held->lease);
    }
}

void hf__short_fill(struct hf__batch *batch, struct hf__op *op)
{
    if (op->kind == HF__OP_COMMIT) {
        hf__fill_end(hf__batch_add(batch, HF__STMT_FINISH_RUNS), op);
        hf__alert_failed(batch, op);
    } else if (op->kind == HF__OP_STEP) {
        fill_step(batch, op);
    } else {
        fill_heartbeat(batch, op);
    }
}

/* Remembers which runs a short way has written, and tells their watchers. */
static void note_written(struct hf__batch *batch, enum hf__stmt stmt, int min_watched)
{
    const struct hf__table *out = hf__batch_out(batch, stmt);
    for (int i = 0; i < out->nrows; i++) {
        const struct hf__cell *c = hf__table_row(out, i);
        hf_id id = hf__as_uuid(c[0]);
        if (!hf__idmap_put(&batch->decided, id, batch))
            batch->failed = true;
        if (min_watched && hf__as_number(c[1]) >= min_watched)
            hf__wake_watcher_of(batch, id);
    }
}

static void note_leases(struct hf__batch *batch)
{
    const struct hf__table *out = hf__batch_out(batch, HF__STMT_EXTEND_LEASES);
    for (int i = 0; i < out->nrows; i++) {
        struct hf__cell *c = hf__table_row(out, i);
        if (!hf__idmap_put(&batch->leases, hf__as_uuid(c[0]), c))
            batch->failed = true;
    }
}

/* By the version too: a worker may hold a run and, without knowing, have lost an older claim of it. And by the tenant:
 * somebody else's heartbeat may name the run. */
static bool is_prolonged(struct hf__batch *batch, const struct hf__op *op, size_t i)
{
    const hf_held *held = &op->heartbeat.held[i];
    const struct hf__cell *c = hf__idmap_get(&batch->leases, held->run);
    return c && hf__as_number(c[1]) == held->run_version &&
           hf__as_number(c[2]) == held_tenant(op, i);
}

static void ask_peek(struct hf__batch *batch, int tenant, const hf_id *run)
{
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_PEEK_RUNS);
    c[0] = hf__number(tenant);
    c[1] = hf__uuid(run);
}

void hf__step_prepare(struct hf__batch *batch, struct hf__op *op)
{
    const hf_step_record *step = op->step.record;
    if (!op->resent || op->step.request) /* save_steps looks for the request itself */
        return;
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_FIND_COMMITTED);
    c[0] = hf__number(op->tenant);
    c[1] = hf__uuid(&step->run);
    c[2] = hf__number(step->run_version);
    c[3] = hf__text(step->worker ? step->worker : op->actor);
    c[4] = hf__text(step->status);
    c[5] = hf__number(HF__STEP);
    c[6] = hf__text(step->name);
    c[7] = hf__null();
}

static bool was_committed(const struct hf__table *found, hf_id run)
{
    for (int i = 0; i < found->nrows; i++)
        if (hf_id_equal(hf__as_uuid(hf__table_row(found, i)[0]), run))
            return true;
    return false;
}

void hf__step_decide(struct hf__batch *batch, struct hf__op *op)
{
    if (was_committed(hf__batch_out(batch, HF__STMT_FIND_COMMITTED), op->step.record->run))
        hf__op_ok(op);
}

/* Gathers questions about what was refused; answers what is known already. */
static void first_verdict(struct hf__batch *batch, struct hf__op *op)
{
    if (op->kind == HF__OP_COMMIT) {
        if (hf__idmap_get(&batch->decided, op->commit.transition->run))
            hf__op_ok(op);
        else
            op->long_way = op->again = true;
    } else if (op->kind == HF__OP_STEP) {
        if (hf__idmap_get(&batch->decided, op->step.record->run)) {
            hf__op_ok(op);
            return;
        }
        ask_peek(batch, op->tenant, &op->step.record->run);
        if (op->step.request)
            hf__ask_request(batch, op);
    } else {
        for (size_t i = 0; i < op->heartbeat.count; i++)
            if (!is_prolonged(batch, op, i))
                ask_peek(batch, held_tenant(op, i), &op->heartbeat.held[i].run);
    }
}

/* Where a refused holder's run stands: cancelled, or simply in other hands. */
static hf_code refusal(const struct hf__table *peeked, int tenant, hf_id run)
{
    for (int i = 0; i < peeked->nrows; i++) {
        const struct hf__cell *c = hf__table_row(peeked, i);
        if (hf_id_equal(hf__as_uuid(c[0]), run) && hf__as_number(c[3]) == tenant)
            return hf__as_number(c[1]) == HF_CANCELLED ? HF_RUN_CANCELLED : HF_STALE;
    }
    return HF_STALE;
}

static bool is_held(const struct hf__table *peeked, const struct hf__op *op)
{
    for (int i = 0; i < peeked->nrows; i++) {
        const struct hf__cell *c = hf__table_row(peeked, i);
        if (hf_id_equal(hf__as_uuid(c[0]), op->step.record->run) &&
            hf__as_number(c[3]) == op->tenant)
            return hf__as_number(c[1]) == HF_LEASED &&
                   hf__as_number(c[2]) == op->step.record->run_version;
    }
    return false;
}

static void last_verdict(struct hf__batch *batch, struct hf__op *op)
{
    const struct hf__table *peeked = hf__batch_out(batch, HF__STMT_PEEK_RUNS);
    if (op->kind == HF__OP_STEP) {
        if (hf__find_request(batch, op) && (op->resent || is_held(peeked, op))) {
            hf__op_ok(op);
            return;
        }
        hf_code code = refusal(peeked, op->tenant, op->step.record->run);
        hf__op_end(op, code, "the step \"%s\" was not recorded: %s", op->step.record->name,
                   hf_code_meaning(code));
        return;
    }
    for (size_t i = 0; i < op->heartbeat.count; i++) {
        hf_held *held = &op->heartbeat.held[i];
        held->code =
            is_prolonged(batch, op, i) ? HF_OK : refusal(peeked, held_tenant(op, i), held->run);
    }
    hf__op_ok(op);
}

static bool is_short(const struct hf__op *op)
{
    if (op->decided || op->again)
        return false;
    return op->kind == HF__OP_STEP || op->kind == HF__OP_HEARTBEAT ||
           (op->kind == HF__OP_COMMIT && hf__commit_is_short(op));
}

hf_code hf__short_verdicts(struct hf__batch *batch, hf_error *err)
{
    static const enum hf__stmt questions[] = { HF__STMT_PEEK_RUNS, HF__STMT_FIND_REQUESTS };
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        struct hf__sheet *sheet = &batch->sheets[questions[i]];
        hf__table_init(&sheet->in, batch->arena, sheet->in.ncolumns);
        hf__table_init(&sheet->out, batch->arena, sheet->out.ncolumns);
    }
    note_written(batch, HF__STMT_FINISH_RUNS, 0);
    note_written(batch, HF__STMT_SAVE_STEPS, 0);
    note_leases(batch);
    for (size_t i = 0; i < batch->count; i++)
        if (is_short(batch->ops[i]))
            first_verdict(batch, batch->ops[i]);

    hf_code code = hf__batch_send_all(batch, questions, sizeof questions / sizeof *questions, err);
    if (code == HF_OK && batch->sheets[HF__STMT_PEEK_RUNS].in.nrows > 0)
        code = batch->flusher->driver->sync(batch->flusher->conn, err);
    for (size_t i = 0; code == HF_OK && i < batch->count; i++)
        if (is_short(batch->ops[i]))
            last_verdict(batch, batch->ops[i]);
    return code;
}
