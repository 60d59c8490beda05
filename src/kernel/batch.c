/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/batch.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/id.h"

struct hf__cell *hf__batch_add(struct hf__batch *batch, enum hf__stmt stmt)
{
    return hf__table_add(&batch->sheets[stmt].in);
}

struct hf__table *hf__batch_out(struct hf__batch *batch, enum hf__stmt stmt)
{
    return &batch->sheets[stmt].out;
}

hf_code hf__batch_send(struct hf__batch *batch, enum hf__stmt stmt, hf_error *err)
{
    const struct hf__driver *driver = batch->flusher->driver;
    struct hf__sheet *sheet = &batch->sheets[stmt];
    if (sheet->in.failed)
        return hf__nomem(err);
    if (sheet->in.nrows == 0)
        return HF_OK;
    if (stmt == HF__STMT_INSERT_PLAIN_RUNS && hf__inserts_one_run(batch))
        return hf__insert_one_run(batch, err);
    if (stmt == HF__STMT_INSERT_PLAIN_RUNS && hf__inserts_taken_run(batch))
        return hf__insert_taken_run(batch, err);
    return driver->send(batch->flusher->conn, stmt, &sheet->in, &sheet->out, err);
}

hf_code hf__batch_send_all(struct hf__batch *batch, const enum hf__stmt *stmts, size_t count,
                           hf_error *err)
{
    hf_code code = HF_OK;
    for (size_t i = 0; code == HF_OK && i < count; i++)
        code = hf__batch_send(batch, stmts[i], err);
    return code;
}

static int by_tenant_and_id(const void *left, const void *right)
{
    const struct hf__cell *a = left;
    const struct hf__cell *b = right;
    if (a[0].number != b[0].number)
        return a[0].number < b[0].number ? -1 : 1;
    return memcmp(a[1].bytes, b[1].bytes, sizeof(hf_id));
}

void hf__batch_sort(struct hf__batch *batch, enum hf__stmt stmt)
{
    struct hf__table *in = &batch->sheets[stmt].in;
    if (in->nrows > 1)
        qsort(in->cells, (size_t)in->nrows, sizeof *in->cells * (size_t)in->ncolumns,
              by_tenant_and_id);
}

static int by_tenant_and_id_backwards(const void *left, const void *right)
{
    return by_tenant_and_id(right, left);
}

void hf__batch_sort_backwards(struct hf__batch *batch, enum hf__stmt stmt)
{
    struct hf__table *in = &batch->sheets[stmt].in;
    if (in->nrows > 1)
        qsort(in->cells, (size_t)in->nrows, sizeof *in->cells * (size_t)in->ncolumns,
              by_tenant_and_id_backwards);
}

struct hf__row *hf__batch_row(struct hf__batch *batch, hf_id id)
{
    return hf_id_is_zero(id) ? NULL : hf__idmap_get(&batch->rows, id);
}

struct hf__row *hf__batch_row_of(struct hf__batch *batch, const struct hf__op *op)
{
    struct hf__row *row = hf__batch_row(batch, hf__op_run(op));
    return row && row->tenant == op->tenant ? row : NULL;
}

hf_id hf__batch_id(struct hf__batch *batch)
{
    struct hf__flusher *flusher = batch->flusher;
    hf__id_make_after(&flusher->last_id, batch->now, &flusher->random);
    return flusher->last_id;
}

char *hf__batch_printf(struct hf__batch *batch, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int length = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *text = length < 0 ? NULL : hf__arena_alloc(batch->arena, (size_t)length + 1);
    if (!text) {
        batch->failed = true;
        return NULL;
    }
    va_start(args, fmt);
    vsnprintf(text, (size_t)length + 1, fmt, args);
    va_end(args);
    return text;
}

void hf__op_ok(struct hf__op *op)
{
    op->decided = true;
    op->code = HF_OK;
}

void hf__op_end(struct hf__op *op, hf_code code, const char *fmt, ...)
{
    op->decided = true;
    op->code = code;
    if (!op->error || code == HF_OK)
        return;
    char message[sizeof op->error->message];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    hf__fail(op->error, code, "%s", message);
}

void hf__op_begin(struct hf__op *op, int64_t give_up_at)
{
    op->decided = op->again = op->passed_over = op->long_way = op->resent = op->told = false;
    op->tries = 0;
    op->give_up_at = give_up_at;
}

void hf__op_pass_over(struct hf__op *op)
{
    op->again = op->passed_over = true;
    op->tries++;
}

hf_id hf__op_run(const struct hf__op *op)
{
    switch (op->kind) {
    case HF__OP_COMMIT: return op->commit.transition->run;
    case HF__OP_STEP: return op->step.record->run;
    case HF__OP_SIGNAL: return op->signal.run;
    case HF__OP_CHANGE: return op->change.run;
    case HF__OP_TASK: return op->task.run;
    case HF__OP_TRIGGER:
    case HF__OP_CLAIM:
    case HF__OP_HEARTBEAT: break;
    }
    return (hf_id){ { 0 } };
}

static const char *const event_kinds[] = { "lifecycle", "domain", "step", "task", "signal" };

int hf__event_kind(const char *name)
{
    for (int i = 0; name && i < (int)(sizeof event_kinds / sizeof *event_kinds); i++)
        if (strcmp(name, event_kinds[i]) == 0)
            return i;
    return -1;
}

const char *hf__event_kind_name(int kind)
{
    return kind >= 0 && kind < (int)(sizeof event_kinds / sizeof *event_kinds) ? event_kinds[kind]
                                                                               : "unknown";
}

void hf__journal(struct hf__batch *batch, struct hf__row *row, int kind, const char *name,
                 const char *actor, const char *step, const char *data)
{
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_INSERT_EVENTS);
    row->event_seq++;
    row->dirty = true;
    c[0] = hf__number(row->tenant);
    c[1] = hf__uuid(&row->id);
    c[2] = hf__number(row->event_seq);
    c[3] = hf__number(row->version);
    c[4] = hf__number(kind);
    c[5] = hf__text(name);
    c[6] = hf__text(actor);
    c[7] = hf__text(step);
    c[8] = hf__text(data);
    c[9] = c[10] = hf__null();
    hf__wake_watchers(batch, row, false);
}

/* Room for one more element of an arena array, or NULL. */
static void *grow(struct hf__batch *batch, void *items, size_t size, int count, int *capacity)
{
    if (count < *capacity)
        return items;
    int wanted = *capacity ? *capacity * 2 : 16;
    void *bigger = hf__arena_alloc(batch->arena, size * (size_t)wanted);
    if (!bigger) {
        batch->failed = true;
        return NULL;
    }
    if (count)
        memcpy(bigger, items, size * (size_t)count);
    *capacity = wanted;
    return bigger;
}

void hf__wake_lane(struct hf__batch *batch, int lane, int64_t run_at)
{
    if (run_at == 0)
        return;
    if (batch->lane_count == 0 || run_at < batch->earliest)
        batch->earliest = run_at;
    for (int i = batch->lane_count - 1; i >= 0 && i >= batch->lane_count - 64; i--)
        if (batch->lanes[i] == lane)
            return;
    int32_t *lanes =
        grow(batch, batch->lanes, sizeof *lanes, batch->lane_count, &batch->lane_capacity);
    if (!lanes)
        return;
    batch->lanes = lanes;
    batch->lanes[batch->lane_count++] = lane;
}

/* The number of a lane, negative: only those who wait for a slot of its workflow need to hear. */
void hf__wake_slot(struct hf__batch *batch, int lane)
{
    hf__wake_lane(batch, -lane, 1);
}

void hf__wake_watcher_of(struct hf__batch *batch, hf_id run)
{
    hf_id *watched = grow(batch, batch->watched, sizeof *watched, batch->watched_count,
                          &batch->watched_capacity);
    if (!watched)
        return;
    batch->watched = watched;
    batch->watched[batch->watched_count++] = run;
}

void hf__wake_watchers(struct hf__batch *batch, struct hf__row *row, bool finished)
{
    if (row->told || row->watched == 0 || (row->watched < 2 && !finished))
        return;
    row->told = true;
    hf__wake_watcher_of(batch, row->id);
}
