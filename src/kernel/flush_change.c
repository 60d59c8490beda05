/* Operators' changes: cancel, pause, resume, retry, delete, restore.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernel/batch.h"
#include "kernel/chores.h"
#include "kernel/lifecycle.h"
#include "util/buffer.h"

static const char *reason_of(const struct hf__op *op)
{
    return op->change.change ? op->change.change->reason : NULL;
}

/* Whether the journal holds the line that this operation wrote before its answer was lost. */
static void ask_done(struct hf__batch *batch, const struct hf__op *op)
{
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_FIND_COMMITTED);
    c[0] = hf__number(op->tenant);
    c[1] = hf__uuid(&op->change.run);
    c[2] = hf__number(op->change.version);
    c[3] = hf__text(op->actor);
    c[4] = hf__text(op->change.event);
    c[5] = hf__number(HF__LIFECYCLE);
    c[6] = hf__null();
    c[7] = hf__number(op->change.seq);
}

static bool is_done(struct hf__batch *batch, const struct hf__op *op)
{
    const struct hf__table *found = hf__batch_out(batch, HF__STMT_FIND_COMMITTED);
    for (int i = 0; op->resent && i < found->nrows; i++)
        if (hf_id_equal(hf__as_uuid(hf__table_row(found, i)[0]), op->change.run))
            return true;
    return false;
}

void hf__change_prepare(struct hf__batch *batch, struct hf__op *op)
{
    const hf_id *run = &op->change.run;
    struct hf__cell *c;
    if (op->change.tells)
        return;
    if (op->change.action == HF_CANCEL || op->change.action == HF_DELETE)
        hf__ask_parent(batch, op->tenant, run);
    if (op->change.action == HF_CANCEL) {
        c = hf__batch_add(batch, HF__STMT_UNFINISHED_CHILDREN);
        c[0] = hf__number(op->tenant);
        c[1] = hf__uuid(run);
        hf__ask_what_follows(batch, op->tenant, run);
    } else if (op->change.action == HF_RESUME) {
        c = hf__batch_add(batch, HF__STMT_MAILBOX_SUMMARY);
        c[0] = hf__number(op->tenant);
        c[1] = hf__uuid(run);
        c[2] = hf__number(0);
        c[3] = hf__number(0);
        c[4] = hf__null();
        c[5] = hf__null();
    }
    if (op->resent && op->change.event)
        ask_done(batch, op);
}

static const char *change_data(struct hf__batch *batch, const struct hf__op *op)
{
    const char *reason = reason_of(op);
    if (!reason)
        return NULL;
    struct hf__buffer json = { 0 };
    hf__buffer_add_text(&json, "{\"reason\":");
    hf__buffer_add_json_string(&json, reason, strlen(reason));
    hf__buffer_add_text(&json, "}");
    char *data = json.failed ? NULL : hf__arena_strdup(batch->arena, json.data);
    hf__buffer_free(&json);
    if (!data)
        batch->failed = true;
    return data;
}

static void journal_change(struct hf__batch *batch, struct hf__op *op, struct hf__row *row,
                           const char *name)
{
    hf__journal(batch, row, HF__LIFECYCLE, name, op->actor, NULL, change_data(batch, op));
    op->change.event = name;
    op->change.version = row->version;
    op->change.seq = row->event_seq;
}

/* A change of status that an operator makes. */
static void move(struct hf__batch *batch, struct hf__op *op, struct hf__row *row, hf_status to)
{
    const char *name = hf__lifecycle_find(row->status, to)->event;
    row->version++;
    row->revision++;
    row->dirty = true;
    row->status = to;
    journal_change(batch, op, row, name);
}

static void cancel(struct hf__batch *batch, struct hf__op *op, struct hf__row *row)
{
    const char *reason = reason_of(op);
    const hf_status had = row->status;
    batch->leases_lost |= row->status == HF_LEASED;
    move(batch, op, row, HF_CANCELLED);
    row->mask |= HF__ROW_OUTCOME | HF__ROW_LAST_ERROR;
    row->error_code = "cancelled";
    row->last_error = reason ? reason : "cancelled";
    hf__row_finish(batch, row, HF_CANCELLED);
    if (row->has_children)
        hf__cancel_children(batch, op->actor, row, NULL);
    hf__start_on_cancel(batch, op->actor, row, had, reason);
    hf__alert_cancelled(batch, row, had, reason);
}

static void pause(struct hf__batch *batch, struct hf__op *op, struct hf__row *row)
{
    if (row->status == HF_LEASED) {
        row->pause_requested = true;
        journal_change(batch, op, row, "pause_requested");
        return;
    }
    move(batch, op, row, HF_PAUSED);
    row->paused_at = batch->now;
    row->due_at = row->run_at;
    row->run_at = row->timeout_at;
}

/* Its holder paused it: that is what it waited for. Or it delivers events, and those that came meanwhile did not wake it. */
static bool waits_for_resume(const struct hf__row *row)
{
    return strcmp(row->waiting_kind, "pause") == 0 ||
           strcmp(row->waiting_kind, HF__WAITING_OUTBOX) == 0;
}

static void resume(struct hf__batch *batch, struct hf__op *op, struct hf__row *row)
{
    if (row->status == HF_LEASED) {
        row->pause_requested = false;
        journal_change(batch, op, row, "resumed");
        return;
    }
    bool waited = row->waiting_kind != NULL;
    move(batch, op, row, waited ? HF_WAITING : HF_PENDING);
    if (waited && waits_for_resume(row))
        row->run_at = batch->now;
    else
        row->run_at = waited ? hf__earlier(row->due_at, hf__row_wake_time(batch, row))
                             : hf__earlier(row->due_at ? row->due_at : batch->now, row->timeout_at);
    row->paused_at = 0;
    hf__wake_lane(batch, row->lane, row->run_at);
}

static void retry(struct hf__batch *batch, struct hf__op *op, struct hf__row *row)
{
    struct hf__row *parent = hf__batch_row(batch, row->parent);
    if (parent)
        parent->has_children = true; /* for its cancel, if that comes later in this flush */
    move(batch, op, row, HF_PENDING);
    row->mask |= HF__ROW_OUTCOME; /* it has none; what went wrong last remains for people */
    row->result = row->error = row->error_code = NULL;
    row->attempt = 0;
    row->run_at = batch->now;
    row->unfit_since = row->unfit_pause = 0;
    row->finished_at = 0;
    if (row->timeout_at && row->timeout_at <= batch->now)
        row->timeout_at = 0;
    if (!hf_id_is_zero(row->active_task))
        hf__reopen_tasks(batch, row);
    hf__wake_lane(batch, row->lane, row->run_at);
}

/* Nobody claims a deleted run, so its parent is told now: it would wait for an end that does not come. */
static void soft_delete(struct hf__batch *batch, struct hf__op *op, struct hf__row *row)
{
    row->revision++;
    row->deleted_at = batch->now;
    row->delete_reason = reason_of(op);
    journal_change(batch, op, row, "deleted");
    if (!hf_status_finished(row->status))
        hf__end_child(batch, row);
}

static void restore(struct hf__batch *batch, struct hf__op *op, struct hf__row *row)
{
    row->revision++;
    row->deleted_at = 0;
    row->delete_reason = NULL;
    journal_change(batch, op, row, "restored");
    if (!hf_status_finished(row->status))
        hf__wake_lane(batch, row->lane, row->run_at);
}

/* Whether the run's status and marks allow the action. */
static bool allowed(const struct hf__row *row, hf_action action)
{
    switch (action) {
    case HF_CANCEL: return hf__lifecycle_find(row->status, HF_CANCELLED) != NULL;
    case HF_PAUSE:
        return !row->pause_requested && hf__lifecycle_find(row->status, HF_PAUSED) != NULL;
    case HF_RESUME: return row->status == HF_PAUSED || row->pause_requested;
    case HF_RETRY_RUN:
        return !row->deleted_at && (row->status == HF_FAILED || row->status == HF_CANCELLED);
    case HF_DELETE: return row->deleted_at == 0;
    case HF_RESTORE: return row->deleted_at != 0;
    }
    return false;
}

/* What the caller has to do instead; NULL: the run may be changed. Schedules and subscriptions have calls of their own, each
 * with its role. The engine's other runs serve the whole store: who cannot open it may bring them back to work, and nothing
 * else. */
static const char *instead(const struct hf__row *row, const struct hf__op *op)
{
    bool brings_back = op->change.action == HF_RESUME || op->change.action == HF_RETRY_RUN ||
                       op->change.action == HF_RESTORE;
    if (!hf__is_chore(row->workflow) || op->change.steers)
        return NULL;
    if (strcmp(row->workflow, HF__CHORE_SCHEDULE) == 0)
        return "change the schedule";
    if (strcmp(row->workflow, HF__CHORE_DISPATCH) == 0)
        return "change the subscription";
    return brings_back || !op->change.from_afar ? NULL : "it is stopped beside the store alone";
}

static void perform(struct hf__batch *batch, struct hf__op *op, struct hf__row *row)
{
    static void (*const actions[])(struct hf__batch *, struct hf__op *, struct hf__row *) = {
        [HF_CANCEL] = cancel,   [HF_PAUSE] = pause,        [HF_RESUME] = resume,
        [HF_RETRY_RUN] = retry, [HF_DELETE] = soft_delete, [HF_RESTORE] = restore,
    };
    actions[op->change.action](batch, op, row);
}

/* One that was retried meanwhile is not cancelled, and there is nothing to tell. */
static void tell(struct hf__batch *batch, struct hf__op *op, const struct hf__row *row)
{
    if (row && row->status == HF_CANCELLED)
        hf__alert_cancelled(batch, row, op->change.had, reason_of(op));
    hf__op_ok(op);
}

void hf__change_decide(struct hf__batch *batch, struct hf__op *op)
{
    const hf_change *change = op->change.change;
    struct hf__row *row = hf__batch_row_of(batch, op);
    op->row = row;
    if (op->change.tells) {
        tell(batch, op, row);
    } else if (!row) {
        hf__op_end(op, HF_NOT_FOUND, "there is no such run in this tenant");
    } else if (is_done(batch, op)) {
        batch->leases_lost |= op->change.action == HF_CANCEL; /* nobody may have been told */
        hf__op_ok(op);
    } else if (instead(row, op)) {
        hf__op_end(op, HF_NOT_ALLOWED, "%s is not possible: the run is the engine's own (%s): %s",
                   hf_action_name(op->change.action), row->workflow, instead(row, op));
    } else if (change && change->expected_revision && change->expected_revision != row->revision) {
        hf__op_end(op, HF_REVISION, "the run is at revision %lld, not %lld: read it again",
                   (long long)row->revision, (long long)change->expected_revision);
    } else if (!allowed(row, op->change.action)) {
        hf__op_end(op, HF_NOT_ALLOWED, "%s is not possible: the run is %s%s",
                   hf_action_name(op->change.action), hf_status_name(row->status),
                   row->deleted_at        ? " and deleted"
                   : row->pause_requested ? " and will be paused"
                                          : "");
    } else {
        perform(batch, op, row);
        hf__op_ok(op);
    }
}
