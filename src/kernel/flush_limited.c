/* The part of a claim that comes from lanes with limits: counted under a lock, and asked why it gave no more.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "kernel/claim.h"
#include "util/error.h"

static bool has_limited(const struct hf__op *op)
{
    for (size_t i = 0; i < op->claim.head_count; i++)
        if (op->claim.heads[i].limited)
            return true;
    return false;
}

bool hf__claim_waits(struct hf__batch *batch, const struct hf__op *op)
{
    if (!has_limited(op))
        return false;
    if (batch->limited)
        return true;
    batch->limited = hf__arena_calloc(batch->arena, 1, sizeof *batch->limited);
    batch->failed |= batch->limited == NULL;
    return false;
}

hf_code hf__limited_charge(struct hf__batch *batch, int32_t lane, int starts, hf_error *err)
{
    struct hf__sheet sheet;
    hf__sheet_init(batch, &sheet, HF__STMT_CHARGE_STARTS, batch->arena);
    struct hf__cell *c = hf__table_add(&sheet.in);
    c[0] = hf__number(lane);
    c[1] = hf__number(starts);
    return starts ? hf__sheet_send(batch, HF__STMT_CHARGE_STARTS, &sheet, err) : HF_OK;
}

static int by_lane(const void *left, const void *right)
{
    const struct hf__cell *a = left;
    const struct hf__cell *b = right;
    return (a->number > b->number) - (a->number < b->number);
}

/* What the workflow of a lane has free, by flow_state, sorted. */
static int64_t free_of(const struct hf__table *state, int32_t lane)
{
    struct hf__cell wanted = hf__number(lane);
    const struct hf__cell *found =
        state->nrows ? bsearch(&wanted, state->cells, (size_t)state->nrows,
                               sizeof *state->cells * (size_t)state->ncolumns, by_lane)
                     : NULL;
    return found ? hf__as_number(found[4]) : INT32_MAX;
}

hf_code hf__limited_scale(struct hf__batch *batch, struct hf__kind *kind, int most, hf_error *err)
{
    struct hf__sheet state;
    if (!hf__has_shares(kind))
        return HF_OK;
    hf__sheet_init(batch, &state, HF__STMT_FLOW_STATE, batch->arena);
    hf__table_add(&state.in)[0] = hf__text(hf__heads_json(batch, kind));
    hf_code code = hf__sheet_send(batch, HF__STMT_FLOW_STATE, &state, err);
    struct hf__claim_head *scaled = hf__arena_calloc(batch->arena, kind->count + 1, sizeof *scaled);
    if (code == HF_OK && !scaled)
        code = hf__nomem(err);
    if (code == HF_OK && state.out.nrows)
        qsort(state.out.cells, (size_t)state.out.nrows,
              sizeof *state.out.cells * (size_t)state.out.ncolumns, by_lane);
    for (size_t i = 0; code == HF_OK && i < kind->count; i++) {
        int64_t places = free_of(&state.out, kind->items[i]->lane);
        scaled[i] = *kind->items[i];
        if (places < most && scaled[i].share) {
            int64_t share = (scaled[i].share * places + most - 1) / most;
            scaled[i].share = share ? (int)share : 1;
        }
        kind->items[i] = &scaled[i];
    }
    return code;
}

/* The lock comes first, in a statement of its own: what is counted after it is up to date. */
static hf_code lock_flow(struct hf__batch *batch, hf_error *err)
{
    const struct hf__driver *driver = batch->flusher->driver;
    struct hf__sheet *lock = &batch->limited->lock;
    if (!driver->statements[HF__STMT_LOCK_FLOW].sql)
        return HF_OK;
    hf__sheet_init(batch, lock, HF__STMT_LOCK_FLOW, batch->arena);
    hf__table_add(&lock->in)[0] = hf__text(batch->limited->heads);
    if (batch->failed || lock->in.failed)
        return hf__nomem(err);
    return driver->send(batch->flusher->conn, HF__STMT_LOCK_FLOW, &lock->in, NULL, err);
}

/* What is less urgent than all of the other kind. */
static struct hf__kind split_off(struct hf__kind *kind, int priority)
{
    size_t urgent = kind->count;
    while (urgent && kind->items[urgent - 1]->priority < priority)
        urgent--;
    struct hf__kind rest = { kind->items + urgent, kind->count - urgent };
    kind->count = urgent;
    return rest;
}

static int all_shares(const struct hf__kind *kind, int most)
{
    int64_t sum = 0;
    for (size_t i = 0; i < kind->count && sum < most; i++)
        sum += kind->items[i]->share ? kind->items[i]->share : most;
    return sum < most ? (int)sum : most;
}

/* Sends and waits for the answer; `most` is lowered by it. */
static hf_code send_and_wait(struct hf__batch *batch, const struct hf__op *op, bool limited,
                             struct hf__sheet *sheet, struct hf__kind *kind, int shares, int *most,
                             hf_error *err)
{
    if (!kind->count || *most <= 0)
        return HF_OK;
    hf_code code =
        hf__claim_kind(batch, op, limited, sheet, kind, shares < *most ? shares : *most, err);
    if (code == HF_OK)
        code = batch->flusher->driver->sync(batch->flusher->conn, err);
    if (code == HF_OK)
        *most -= hf__claim_runs(&sheet->out);
    return code;
}

/* Limited and other lanes are claimed from by two statements. The one with the more urgent head comes first, as far as it
 * is not less urgent than all of the other; then that; then the rest. */
static hf_code send_both(struct hf__batch *batch, size_t index, struct hf__kind kinds[2],
                         hf_error *err)
{
    const struct hf__op *op = batch->ops[index];
    struct hf__sheet *sheets[2] = { &batch->claims[index], &batch->limited->claim };
    int most = op->claim.most;
    bool first = op->claim.heads[0].limited;
    struct hf__kind rest = split_off(&kinds[first], kinds[!first].items[0]->priority);
    batch->limited->rest_is_limited = first;
    hf_code code = send_and_wait(batch, op, first, sheets[first], &kinds[first],
                                 all_shares(&kinds[first], most), &most, err);
    if (code == HF_OK)
        code = send_and_wait(batch, op, !first, sheets[!first], &kinds[!first], most, &most, err);
    if (code == HF_OK)
        code = send_and_wait(batch, op, first, &batch->limited->rest, &rest, most, &most, err);
    kinds[first].count += rest.count;
    return code;
}

hf_code hf__limited_send(struct hf__batch *batch, size_t index, struct hf__kind kinds[2],
                         hf_error *err)
{
    const struct hf__op *op = batch->ops[index];
    batch->limited->index = index;
    batch->limited->heads = hf__heads_json(batch, &kinds[1]);
    hf_code code = lock_flow(batch, err);
    if (code == HF_OK && kinds[0].count)
        code = send_both(batch, index, kinds, err);
    else if (code == HF_OK)
        code =
            hf__claim_kind(batch, op, true, &batch->limited->claim, &kinds[1], op->claim.most, err);
    return code;
}

/* Until when the lane gives nothing, by its slots and its rate; 0: it might. A slot whose holder's lease has expired is
 * there for whoever takes that run over. */
static int64_t closed_until(const struct hf__cell *c)
{
    int64_t now = hf__as_number(c[5]), until = 0;
    if (hf__as_number(c[1]) <= 0)
        until = hf__is_null(c[2]) ? INT64_MAX : hf__as_number(c[2]);
    if (hf__as_number(c[3]) > until)
        until = hf__as_number(c[3]);
    return until > now ? until : 0;
}

static void gather_closed(struct hf__batch *batch, struct hf__op *op, const struct hf__table *state)
{
    op->claim.closed =
        hf__arena_calloc(op->claim.arena, (size_t)state->nrows + 1, sizeof *op->claim.closed);
    if (!op->claim.closed) {
        batch->failed = true;
        return;
    }
    for (int i = 0; i < state->nrows; i++) {
        const struct hf__cell *c = hf__table_row(state, i);
        int64_t until = closed_until(c);
        if (until)
            op->claim.closed[op->claim.closed_count++] =
                (struct hf__closed_lane){ (int32_t)hf__as_number(c[0]), until };
    }
}

hf_code hf__limited_ask_closed(struct hf__batch *batch, size_t index, hf_error *err)
{
    struct hf__op *op = batch->ops[index];
    struct hf__limited_claim *limited = batch->limited;
    if (!limited || limited->index != index || !limited->heads ||
        op->claim.claims->count >= (size_t)op->claim.most)
        return HF_OK;
    hf__sheet_init(batch, &limited->state, HF__STMT_FLOW_STATE, batch->arena);
    hf__table_add(&limited->state.in)[0] = hf__text(limited->heads);
    hf_code code = hf__sheet_send(batch, HF__STMT_FLOW_STATE, &limited->state, err);
    if (code == HF_OK)
        code = batch->flusher->driver->sync(batch->flusher->conn, err);
    if (code == HF_OK)
        gather_closed(batch, op, &limited->state.out);
    return code;
}
