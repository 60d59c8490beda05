/* Signals: one more input in a run's mailbox, and the run woken for it.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernel/batch.h"
#include "kernel/chores.h"
#include "util/buffer.h"

static const char *signal_data(struct hf__batch *batch, const hf_signal_spec *spec, bool stale)
{
    struct hf__buffer json = { 0 };
    hf__buffer_add_text(&json, "{\"id\":");
    hf__buffer_add_json_string(&json, spec->id, strlen(spec->id));
    hf__buffer_addf(&json, ",\"type\":\"%s\"%s}", spec->type, stale ? ",\"stale\":true" : "");
    char *data = json.failed ? NULL : hf__arena_strdup(batch->arena, json.data);
    hf__buffer_free(&json);
    if (!data)
        batch->failed = true;
    return data;
}

void hf__signal_prepare(struct hf__batch *batch, struct hf__op *op)
{
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_FIND_SIGNALS);
    c[0] = hf__number(op->tenant);
    c[1] = hf__uuid(&op->signal.run);
    c[2] = hf__text(op->signal.spec->id);
    if (!op->signal.spec->token)
        return;
    c = hf__batch_add(batch, HF__STMT_FIND_STALE_SIGNALS);
    c[0] = hf__number(op->tenant);
    c[1] = hf__uuid(&op->signal.run);
    c[2] = hf__text(signal_data(batch, op->signal.spec, true));
    c[3] = hf__text(op->signal.spec->token);
}

static bool same_signal(const struct hf__cell *run_and_id, const struct hf__op *op)
{
    return hf_id_equal(hf__as_uuid(run_and_id[0]), op->signal.run) &&
           strcmp(hf__as_text(run_and_id[1]), op->signal.spec->id) == 0;
}

/* It came before: in an earlier flush, or earlier in this one. */
static bool is_duplicate(struct hf__batch *batch, const struct hf__op *op)
{
    const struct hf__table *found = hf__batch_out(batch, HF__STMT_FIND_SIGNALS);
    if (!hf__idmap_get(&batch->mailed, op->signal.run))
        return false;
    for (int i = 0; i < found->nrows; i++)
        if (same_signal(hf__table_row(found, i), op))
            return true;
    const struct hf__table *new_mail = &batch->sheets[HF__STMT_INSERT_SIGNALS].in;
    for (int i = 0; i < new_mail->nrows; i++)
        if (same_signal(hf__table_row(new_mail, i) + 1, op))
            return true;
    return false;
}

static bool same_line(struct hf__cell run, struct hf__cell text, const struct hf__op *op,
                      const char *data)
{
    return !hf__is_null(text) && hf_id_equal(hf__as_uuid(run), op->signal.run) &&
           strcmp(hf__as_text(text), data) == 0;
}

/* The journal has this stale signal: from an earlier flush, or from earlier in this one. */
static bool is_journalled(struct hf__batch *batch, const struct hf__op *op, const char *data)
{
    const struct hf__table *found = hf__batch_out(batch, HF__STMT_FIND_STALE_SIGNALS);
    for (int i = 0; data && i < found->nrows; i++) {
        const struct hf__cell *c = hf__table_row(found, i);
        if (same_line(c[0], c[1], op, data))
            return true;
    }
    const struct hf__table *lines = &batch->sheets[HF__STMT_INSERT_EVENTS].in;
    for (int i = 0; data && i < lines->nrows; i++) {
        const struct hf__cell *c = hf__table_row(lines, i);
        if (hf__as_number(c[4]) == HF__SIGNAL && same_line(c[1], c[8], op, data))
            return true;
    }
    return false;
}

static void put_mail(struct hf__batch *batch, const struct hf__row *row, const hf_signal_spec *spec,
                     const char *sender)
{
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_INSERT_SIGNALS);
    if (!hf__idmap_put(&batch->mailed, row->id, c))
        batch->failed = true;
    c[0] = hf__number(row->tenant);
    c[1] = hf__uuid(&row->id);
    c[2] = hf__text(spec->id);
    c[3] = hf__text(spec->type);
    c[4] = hf__text(spec->name);
    c[5] = hf__text(spec->payload);
    c[6] = hf__text(spec->token);
    c[7] = hf__text(sender);
    c[8] = hf__number_or_null(spec->expected_revision);
    c[9] = hf__number(0);
    c[10] = hf__number(spec->delay);
}

/* A held run is not touched: its holder looks at the mailbox when it commits. One that waits for a fitting worker is not brought
 * forward: its code would not fit any better. */
static void wake_for_mail(struct hf__batch *batch, struct hf__row *row, int64_t visible_at)
{
    bool now = visible_at <= batch->now;
    row->has_mail = true;
    row->dirty = true;
    if (now)
        row->unseen = true;
    else if (row->next_visible == 0 || visible_at < row->next_visible)
        row->next_visible = visible_at;
    if (hf__awaits_worker(row))
        return;

    bool asleep = row->status == HF_PENDING || row->status == HF_WAITING;
    if (asleep && (row->run_at == 0 || visible_at < row->run_at)) {
        row->run_at = visible_at;
        hf__wake_lane(batch, row->lane, visible_at);
    } else if (row->status == HF_PAUSED && (row->due_at == 0 || visible_at < row->due_at)) {
        row->due_at = visible_at;
    }
}

void hf__deliver_mail(struct hf__batch *batch, struct hf__row *row, const hf_signal_spec *spec,
                      const char *sender)
{
    put_mail(batch, row, spec, sender);
    wake_for_mail(batch, row, batch->now + spec->delay);
}

/* Whether something keeps the signal out; the operation is ended then. */
static bool refused(struct hf__op *op, const struct hf__row *row)
{
    const hf_signal_spec *spec = op->signal.spec;
    if (!row || row->deleted_at) {
        hf__op_end(op, HF_NOT_FOUND, "there is no such run: it does not exist or was deleted");
        return true;
    }
    /* Schedules and subscriptions are steered by signals: whoever could send these could do what they may not. */
    if (!op->signal.steers && hf__is_chore(row->workflow)) {
        hf__op_end(op, HF_NOT_ALLOWED,
                   "the run is the engine's own (%s) and takes no signals: change the schedule or "
                   "the subscription instead",
                   row->workflow);
        return true;
    }
    if (spec->expected_revision && spec->expected_revision != row->revision) {
        hf__op_end(op, HF_REVISION, "the run is at revision %lld, not %lld: read it again",
                   (long long)row->revision, (long long)spec->expected_revision);
        return true;
    }
    if (hf_status_finished(row->status)) {
        hf__op_end(op, HF_NOT_ALLOWED, "the run has finished (%s): it takes no more signals",
                   hf_status_name(row->status));
        return true;
    }
    return false;
}

void hf__signal_decide(struct hf__batch *batch, struct hf__op *op)
{
    const hf_signal_spec *spec = op->signal.spec;
    struct hf__row *row = hf__batch_row_of(batch, op);
    if (row && !row->deleted_at && is_duplicate(batch, op)) {
        op->signal.duplicate = !op->resent;
        hf__op_ok(op);
        return;
    }
    if (refused(op, row))
        return;
    bool waits = (row->status == HF_WAITING || (row->status == HF_PAUSED && row->waiting_kind)) &&
                 !hf__awaits_worker(row); /* then nobody knows which tokens it waits for */
    bool stale = spec->token && waits &&
                 (!row->waiting_token || strcmp(spec->token, row->waiting_token) != 0);
    const char *data = signal_data(batch, spec, stale);
    if (stale && is_journalled(batch, op, data)) {
        op->signal.duplicate = !op->resent;
        hf__op_ok(op);
        return;
    }
    hf__journal(batch, row, HF__SIGNAL, spec->name, op->actor, NULL, data);
    if (!stale)
        hf__deliver_mail(batch, row, spec, op->actor);
    hf__op_ok(op);
}
