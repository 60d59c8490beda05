/* Debounced triggers: the newest input goes into a run that has not begun, in place of a run of its own. Where there is
 * none, the trigger goes on as every other; the index run_debounce lets one of them in, and the others come again.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernel/batch.h"
#include "util/buffer.h"
#include "util/json.h"

/* lock_debounced's columns behind those of lock_runs */
enum { KEY = 38, INPUT, UNTIL, CREATED };

#define LATELY_ASKED 64 /* questions that are compared with a new one, so that a burst asks once */

/* What tells the trigger's own line from others. */
static const char *data_head(struct hf__batch *batch, const struct hf__op *op)
{
    char id[HF_ID_TEXT];
    hf_id_format(op->trigger.id, id);
    return hf__batch_printf(batch, "{\"trigger\":\"%s\"", id);
}

/* ---- Before the decision ---- */

static bool is_asked(const struct hf__table *in, const struct hf__op *op)
{
    const hf_trigger_spec *spec = op->trigger.spec;
    for (int i = in->nrows - 1; i >= 0 && i >= in->nrows - LATELY_ASKED; i--) {
        const struct hf__cell *c = hf__table_row(in, i);
        if (c[0].number == op->tenant && strcmp(c[2].bytes, spec->debounce_key) == 0 &&
            strcmp(c[1].bytes, spec->workflow) == 0)
            return true;
    }
    return false;
}

void hf__debounce_prepare(struct hf__batch *batch, struct hf__op *op)
{
    struct hf__cell *c;
    if (op->resent && op->trigger.seq) {
        c = hf__batch_add(batch, HF__STMT_FIND_DEBOUNCED);
        c[0] = hf__uuid(&op->trigger.existing);
        c[1] = hf__number(op->trigger.seq);
    }
    if (is_asked(&batch->sheets[HF__STMT_LOCK_DEBOUNCED].in, op))
        return;
    c = hf__batch_add(batch, HF__STMT_LOCK_DEBOUNCED);
    c[0] = hf__number(op->tenant);
    c[1] = hf__text(op->trigger.spec->workflow);
    c[2] = hf__text(op->trigger.spec->debounce_key);
}

void hf__debounce_index(struct hf__batch *batch)
{
    const struct hf__table *out = hf__batch_out(batch, HF__STMT_LOCK_DEBOUNCED);
    for (int i = 0; i < out->nrows; i++) {
        const struct hf__cell *c = hf__table_row(out, i);
        struct hf__row *row = hf__batch_row(batch, hf__as_uuid(c[1]));
        if (!row)
            continue;
        row->input = hf__as_text(c[INPUT]);
        row->debounce_until = hf__as_number(c[UNTIL]);
        row->created_at = hf__as_number(c[CREATED]);
    }
}

/* ---- The decision ---- */

/* Its line is in the journal: it happened, and only the answer was lost. */
static bool is_done(struct hf__batch *batch, const struct hf__op *op)
{
    const struct hf__table *found = hf__batch_out(batch, HF__STMT_FIND_DEBOUNCED);
    const char *head = op->resent && op->trigger.seq ? data_head(batch, op) : NULL;
    for (int i = 0; head && i < found->nrows; i++) {
        const struct hf__cell *c = hf__table_row(found, i);
        const char *data = hf__as_text(c[2]);
        if (hf_id_equal(hf__as_uuid(c[0]), op->trigger.existing) &&
            hf__as_number(c[1]) == op->trigger.seq && data &&
            strncmp(data, head, strlen(head)) == 0)
            return true;
    }
    return false;
}

/* The run that waits under this key, if nothing was done to it, in this flush either. */
static struct hf__row *open_row(struct hf__batch *batch, const struct hf__op *op)
{
    const hf_trigger_spec *spec = op->trigger.spec;
    const struct hf__table *out = hf__batch_out(batch, HF__STMT_LOCK_DEBOUNCED);
    for (int i = 0; i < out->nrows; i++) {
        const struct hf__cell *c = hf__table_row(out, i);
        if (hf__as_number(c[0]) != op->tenant ||
            strcmp(hf__as_text(c[KEY]), spec->debounce_key) != 0 ||
            strcmp(hf__as_text(c[2]), spec->workflow) != 0)
            continue;
        struct hf__row *row = hf__batch_row(batch, hf__as_uuid(c[1]));
        bool open = row && row->status == HF_PENDING && row->version == 1 && !row->deleted_at;
        return open ? row : NULL;
    }
    return NULL;
}

/* Who sent what: the input, and the one that it took the place of. */
static const char *debounce_data(struct hf__batch *batch, const struct hf__op *op,
                                 const struct hf__row *row)
{
    const char *old = row->input ? row->input : "null";
    const char *new = op->trigger.spec->input ? op->trigger.spec->input : "null";
    const char *head = data_head(batch, op);
    struct hf__buffer json = { 0 };
    hf__buffer_add_text(&json, head ? head : "");
    hf__buffer_add_text(&json, ",\"input\":");
    hf__buffer_add_text(&json, new);
    if (!hf__json_equal(old, new)) {
        hf__buffer_add_text(&json, ",\"replaced\":");
        hf__buffer_add_text(&json, old);
    }
    hf__buffer_add_text(&json, "}");
    const char *data = json.failed ? NULL : hf__arena_strdup(batch->arena, json.data);
    batch->failed |= data == NULL;
    hf__buffer_free(&json);
    return data;
}

static void put_off(struct hf__batch *batch, struct hf__row *row, const hf_trigger_spec *spec)
{
    int64_t before = row->run_at;
    if (spec->debounce_at_most)
        row->debounce_until =
            hf__earlier(row->debounce_until, row->created_at + spec->debounce_at_most);
    row->run_at = hf__earlier(batch->now + spec->debounce_for, row->debounce_until);
    row->run_at = hf__earlier(row->run_at, row->timeout_at);
    if (row->run_at < before)
        hf__wake_lane(batch, row->lane, row->run_at);
}

bool hf__debounce_is_done(struct hf__batch *batch, struct hf__op *op)
{
    bool done = is_done(batch, op);
    op->trigger.debounced = done;
    if (done) {
        hf__op_ok(op);
    } else {
        op->trigger.existing = (hf_id){ { 0 } };
        op->trigger.seq = 0;
    }
    return done;
}

void hf__debounce_decide(struct hf__batch *batch, struct hf__op *op)
{
    struct hf__row *row = open_row(batch, op);
    if (!row)
        return;
    const char *data = debounce_data(batch, op, row);
    row->revision++;
    row->input = op->trigger.spec->input;
    row->new_input = true;
    put_off(batch, row, op->trigger.spec);
    hf__journal(batch, row, HF__LIFECYCLE, "debounced", op->actor, NULL, data);
    op->trigger.existing = row->id;
    op->trigger.seq = row->event_seq;
    op->trigger.debounced = true;
    hf__op_ok(op);
}
