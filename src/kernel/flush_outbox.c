/* Events that leave the system: those that a transition brings, the engine's own alerts, and the sleep of the runs that
 * deliver them.
 *
 * A run of holdfast.dispatch waits with the kind "outbox" and no time. insert_outbox makes it due where it waits. Where it
 * is held, its own commit must see the new events: on PostgreSQL it may sleep only if nobody is writing events
 * (try_quiet against announce_outbox), and only then looks for them (pending_deliveries). A flush that has asked for such a quiet
 * and writes events, too, does not wait for others: it is undone, and in the end the run goes to sleep alone.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernel/batch.h"
#include "kernel/chores.h"
#include "util/buffer.h"

static bool has_statement(const struct hf__batch *batch, enum hf__stmt stmt)
{
    return batch->flusher->driver->statements[stmt].sql != NULL;
}

/* Tenants come in groups, so that comparing with the last is enough. */
static void announce(struct hf__batch *batch, int tenant)
{
    const struct hf__table *in = &batch->sheets[HF__STMT_ANNOUNCE_OUTBOX].in;
    if (!has_statement(batch, HF__STMT_ANNOUNCE_OUTBOX) ||
        (in->nrows > 0 && hf__table_row(in, in->nrows - 1)[0].number == tenant))
        return;
    hf__batch_add(batch, HF__STMT_ANNOUNCE_OUTBOX)[0] = hf__number(tenant);
}

static struct hf__cell *add_event(struct hf__batch *batch, int tenant, const hf_id *run,
                                  const hf_id *id, const char *type, const char *payload)
{
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_INSERT_OUTBOX);
    c[0] = hf__uuid(id);
    c[1] = hf__number(tenant);
    c[2] = hf__uuid(run);
    c[4] = hf__text(type);
    c[5] = hf__text(payload);
    announce(batch, tenant);
    return c;
}

void hf__transition_outbox(struct hf__batch *batch, int tenant, const hf_id *run, int64_t seq,
                           const hf_transition *t)
{
    for (size_t i = 0; i < t->outbox_count; i++) {
        hf_id *id = hf__arena_alloc(batch->arena, sizeof *id);
        if (!id) {
            batch->failed = true;
            return;
        }
        *id = hf__batch_id(batch);
        add_event(batch, tenant, run, id, t->outbox[i].type, t->outbox[i].payload)[3] =
            hf__number(seq);
    }
}

/* ---- Alerts ---- */

/* An id that follows from the failure: the short way knows no time to make one of, and the same failure is one event
 * however often it is sent. */
static const hf_id *alert_id(struct hf__batch *batch, const hf_id *run, int64_t version, int which)
{
    hf_id *id = hf__arena_alloc(batch->arena, sizeof *id);
    if (!id) {
        batch->failed = true;
        return run;
    }
    struct hf__random mix;
    uint64_t seed;
    memcpy(&seed, run->bytes + 8, sizeof seed);
    hf__random_seed(&mix, seed ^ ((uint64_t)version * 4 + (uint64_t)which));
    uint64_t tail = hf__random_u64(&mix);
    *id = *run;
    memcpy(id->bytes + 9, &tail, 7);
    return id;
}

static void add_member(struct hf__buffer *json, const char *name, const char *text)
{
    hf__buffer_addf(json, "%s\"%s\":", json->length ? "," : "{", name);
    if (text)
        hf__buffer_add_json_string(json, text, strlen(text));
    else
        hf__buffer_add_text(json, "null");
}

static const char *end_payload(struct hf__batch *batch, struct hf__buffer *json)
{
    hf__buffer_add_text(json, "}");
    const char *text = json->failed ? NULL : hf__arena_strdup(batch->arena, json->data);
    hf__buffer_free(json);
    batch->failed |= text == NULL;
    return text;
}

/* An event that the run has ended with this version, to which is added what it was and did. */
static void add_end(struct hf__batch *batch, int tenant, const hf_id *run, int64_t version,
                    const char *type, const char *payload)
{
    static const char *const types[] = { HF__ALERT_FAILED, HF__ALERT_NO_HANDLER,
                                         HF__ALERT_CANCELLED };
    int which = 0;
    while (types[which] != type)
        which++;
    struct hf__cell *c =
        add_event(batch, tenant, run, alert_id(batch, run, version - 1, which), type, payload);
    c[6] = hf__number(version);
    c[8] = hf__number(hf__told_room(batch, payload));
}

void hf__alert_failed(struct hf__batch *batch, const struct hf__op *op)
{
    const hf_transition *t = op->commit.transition;
    bool no_handler = t->error_code && strcmp(t->error_code, "no_handler_registered") == 0;
    struct hf__buffer json = { 0 };
    char run[HF_ID_TEXT];
    if (t->turn != HF_TURN_FAIL)
        return;
    hf_id_format(t->run, run);
    add_member(&json, "run", run);
    add_member(&json, "error_code", t->error_code);
    add_member(&json, "error", t->last_error);
    const char *payload = end_payload(batch, &json);
    add_end(batch, op->tenant, &t->run, t->run_version + 1, HF__ALERT_FAILED, payload);
    if (no_handler)
        add_end(batch, op->tenant, &t->run, t->run_version + 1, HF__ALERT_NO_HANDLER, payload);
}

/* Of the engine's own runs nobody is told: they come and go with what they are for. */
void hf__alert_cancelled(struct hf__batch *batch, const struct hf__row *row, hf_status had,
                         const char *reason)
{
    struct hf__buffer json = { 0 };
    char run[HF_ID_TEXT];
    if (hf__is_chore(row->workflow))
        return;
    hf_id_format(row->id, run);
    add_member(&json, "run", run);
    add_member(&json, "status", hf_status_name(had));
    add_member(&json, "reason", reason);
    add_end(batch, row->tenant, &row->id, row->version, HF__ALERT_CANCELLED,
            end_payload(batch, &json));
}

void hf__alert_letter(struct hf__batch *batch, int tenant, const hf_id *run, const hf_id *letter,
                      const char *signal)
{
    struct hf__buffer json = { 0 };
    char text[HF_ID_TEXT];
    hf_id_format(*letter, text);
    add_member(&json, "letter", text);
    hf_id_format(*run, text);
    add_member(&json, "run", text);
    add_member(&json, "signal", signal);
    add_event(batch, tenant, run, letter, HF__ALERT_DEAD_LETTER, end_payload(batch, &json))[7] =
        hf__uuid(letter);
}

/* ---- The sleep of those who deliver ---- */

void hf__ask_deliveries(struct hf__batch *batch, const struct hf__op *op)
{
    const hf_transition *t = op->commit.transition;
    if (!t->waiting_kind || strcmp(t->waiting_kind, HF__WAITING_OUTBOX) != 0)
        return;
    if (has_statement(batch, HF__STMT_TRY_QUIET)) {
        struct hf__cell *c = hf__batch_add(batch, HF__STMT_TRY_QUIET);
        c[0] = hf__number(op->tenant);
        c[1] = hf__uuid(&t->run);
    }
    hf__batch_add(batch, HF__STMT_PENDING_DELIVERIES)[0] = hf__uuid(&t->run);
}

void hf__note_deliveries(struct hf__batch *batch)
{
    const struct hf__table *quiet = hf__batch_out(batch, HF__STMT_TRY_QUIET);
    for (int i = 0; i < quiet->nrows; i++) {
        const struct hf__cell *c = hf__table_row(quiet, i);
        struct hf__row *row = hf__batch_row(batch, hf__as_uuid(c[0]));
        if (row && !hf__as_number(c[1]))
            row->unseen = true;
    }
    const struct hf__table *pending = hf__batch_out(batch, HF__STMT_PENDING_DELIVERIES);
    for (int i = 0; i < pending->nrows; i++) {
        struct hf__row *row = hf__batch_row(batch, hf__as_uuid(hf__table_row(pending, i)[0]));
        if (row)
            row->unseen = true;
    }
}

/* ---- Quiet, and events of others ---- */

/* Also where it got only some of the seats: it keeps these. */
static bool asked_for_quiet(struct hf__batch *batch)
{
    return hf__batch_out(batch, HF__STMT_TRY_QUIET)->nrows > 0;
}

void hf__announce_gently(struct hf__batch *batch)
{
    struct hf__table *in = &batch->sheets[HF__STMT_ANNOUNCE_OUTBOX].in;
    if (in->nrows == 0 || !asked_for_quiet(batch))
        return;
    for (int i = 0; i < in->nrows; i++)
        hf__batch_add(batch, HF__STMT_TRY_ANNOUNCE)[0] = hf__table_row(in, i)[0];
    in->nrows = 0;
}

/* Those that want to sleep are to blame. */
static void blame_sleepers(struct hf__batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        struct hf__op *op = batch->ops[i];
        const hf_transition *t = op->kind == HF__OP_COMMIT ? op->commit.transition : NULL;
        if (t && t->waiting_kind && strcmp(t->waiting_kind, HF__WAITING_OUTBOX) == 0)
            op->tries++;
    }
}

hf_code hf__check_announced(struct hf__batch *batch, hf_error *err)
{
    if (batch->sheets[HF__STMT_TRY_ANNOUNCE].in.nrows == 0)
        return HF_OK;
    hf_code code = batch->flusher->driver->sync(batch->flusher->conn, err);
    const struct hf__table *out = hf__batch_out(batch, HF__STMT_TRY_ANNOUNCE);
    for (int i = 0; code == HF_OK && i < out->nrows; i++)
        batch->redo |= !hf__as_number(hf__table_row(out, i)[0]);
    if (batch->redo)
        blame_sleepers(batch);
    return code;
}
