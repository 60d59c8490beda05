/* Triggering runs.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "client/check.h"
#include "client/client.h"
#include "client/coverage.h"
#include "client/ids.h"
#include "client/trigger.h"
#include "kernel/chores.h"
#include "util/alloc.h"
#include "util/error.h"

/* What a run can begin with: it cannot have ended, nor have mail before it exists. */
static hf_code check_initial(const hf_transition *initial, size_t max_payload, hf_error *err)
{
    hf_code code = hf__check_transition(initial, max_payload, err);
    if (code == HF_OK && initial->turn != HF_TURN_WAIT && initial->turn != HF_TURN_RETRY)
        code =
            hf__fail(err, HF_INVALID, "a first transition can only wait or leave the run pending");
    return code;
}

/* Checks one trigger and makes an operation of it. */
static hf_code prepare(hf_client *client, const hf_trigger_spec *spec, const hf_transition *initial,
                       struct hf__op *op, bool *no_worker, hf_error *err)
{
    hf_code code = hf__check_trigger(spec, hf__engine_max_payload(client->engine), err);
    if (code == HF_OK && initial)
        code = check_initial(initial, hf__engine_max_payload(client->engine), err);
    if (code == HF_OK && initial && spec->debounce_key)
        code = hf__fail(err, HF_INVALID, "a debounced trigger has no first transition");
    if (code == HF_OK)
        code = hf__covered(client, spec->workflow, no_worker, err);
    if (code == HF_OK && *no_worker && spec->require_worker)
        code = hf__fail(err, HF_NO_WORKER,
                        "no live worker serves \"%s\": start one, or trigger without "
                        "require_worker to have it wait",
                        spec->workflow);
    if (code != HF_OK)
        return code;
    *op = (struct hf__op){
        .kind = HF__OP_TRIGGER,
        .tenant = client->tenant_id,
        .actor = client->actor,
        .trigger = { .id = hf__new_id(), .spec = spec, .initial = initial },
        .error = err,
    };
    return HF_OK;
}

/* The operation's error is the answer's. */
static hf_code answer(const struct hf__op *op, hf_triggered *out)
{
    out->existed = op->trigger.existed;
    out->debounced = op->trigger.debounced;
    out->id = hf_id_is_zero(op->trigger.existing) ? op->trigger.id : op->trigger.existing;
    return op->code;
}

/* Applies an operation with its first transition, which may start other runs. */
static hf_code apply_with(hf_client *client, struct hf__op *op, hf_triggered *out)
{
    const hf_transition *initial = op->trigger.initial;
    hf_id *children = hf__new_ids(initial ? initial->child_count : 0);
    hf_id *starts = hf__new_ids(initial ? initial->start_count : 0);
    hf_code code;
    if (children && starts) {
        op->trigger.child_ids = children;
        op->trigger.start_ids = starts;
        hf__engine_apply(client->engine, op, 1);
        code = answer(op, out);
    } else {
        code = hf__nomem(&out->error);
    }
    free(children);
    free(starts);
    return code;
}

hf_code hf_trigger_with(hf_client *client, hf_triggered *out, const hf_trigger_spec *spec,
                        const hf_transition *initial, hf_error *err)
{
    struct hf__op op;
    *out = (hf_triggered){ 0 };
    out->code = prepare(client, spec, initial, &op, &out->no_worker, &out->error);
    if (out->code == HF_OK)
        out->code = apply_with(client, &op, out);
    if (out->code != HF_OK && err)
        *err = out->error;
    return out->code;
}

hf_code hf_trigger(hf_client *client, hf_triggered *out, const hf_trigger_spec *spec, hf_error *err)
{
    return hf_trigger_with(client, out, spec, NULL, err);
}

/* What users cannot name is not checked as what they send. */
hf_code hf__chore_start(hf_client *client, hf_triggered *out, hf_trigger_spec *spec,
                        const hf_transition *initial, hf_error *err)
{
    struct hf__op op = {
        .kind = HF__OP_TRIGGER,
        .tenant = client->tenant_id,
        .actor = client->actor,
        .trigger = { .id = hf__new_id(), .spec = spec, .initial = initial },
        .error = err,
    };
    *out = (hf_triggered){ 0 };
    spec->max_attempts = HF__CHORE_ATTEMPTS;
    out->code = hf__workflow_ensure(client, spec->workflow, err);
    if (out->code != HF_OK)
        return out->code;
    hf__engine_apply(client->engine, &op, 1);
    out->code = answer(&op, out);
    return out->code;
}

static void submitted_done(struct hf__op *op, void *arg)
{
    struct hf__trigger_call *call = arg;
    call->out.code = answer(op, &call->out);
    call->done(call, call->arg);
}

hf_code hf__trigger_submit(hf_client *client, struct hf__trigger_call *call,
                           const hf_trigger_spec *spec)
{
    call->out = (hf_triggered){ 0 };
    hf_code code = prepare(client, spec, NULL, &call->op, &call->out.no_worker, &call->err);
    if (code != HF_OK)
        return code;
    call->op.done = submitted_done;
    call->op.done_arg = call;
    hf__engine_submit(client->engine, &call->op);
    return HF_OK;
}

/* ---- Many ---- */

/* Operations share flushes best when neighbours go to the same flusher. */
#define RUNS_PER_SHARD 1000

/* `places` tells whose each operation is. */
static void trigger_all(hf_client *client, hf_triggered *out, const hf_trigger_spec *specs,
                        size_t count, struct hf__op *ops, size_t *places)
{
    size_t accepted = 0;
    for (size_t i = 0; i < count; i++) {
        struct hf__op *op = &ops[accepted];
        out[i].code = prepare(client, &specs[i], NULL, op, &out[i].no_worker, &out[i].error);
        if (out[i].code != HF_OK)
            continue;
        op->shard = accepted / RUNS_PER_SHARD;
        places[accepted++] = i;
    }
    hf__engine_apply(client->engine, ops, accepted);
    for (size_t i = 0; i < accepted; i++)
        out[places[i]].code = answer(&ops[i], &out[places[i]]);
}

static hf_code first_failure(const hf_triggered *out, const hf_trigger_spec *specs, size_t count,
                             hf_error *err)
{
    for (size_t i = 0; i < count; i++)
        if (out[i].code != HF_OK)
            return hf__fail(err, out[i].code, "run %zu of %zu (\"%.100s\"): %s", i + 1, count,
                            specs[i].workflow ? specs[i].workflow : "", out[i].error.message);
    return HF_OK;
}

hf_code hf_trigger_many(hf_client *client, hf_triggered *out, const hf_trigger_spec *specs,
                        size_t count, hf_error *err)
{
    if (count == 0)
        return HF_OK;
    struct hf__op *ops = hf__calloc(count, sizeof *ops);
    size_t *places = hf__calloc(count, sizeof *places);
    memset(out, 0, count * sizeof *out);
    if (ops && places)
        trigger_all(client, out, specs, count, ops, places);
    for (size_t i = 0; !(ops && places) && i < count; i++)
        out[i].code = hf__nomem(&out[i].error);
    free(ops);
    free(places);
    return first_failure(out, specs, count, err);
}
