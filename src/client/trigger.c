/* Triggering runs.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "client/check.h"
#include "client/client.h"
#include "client/coverage.h"
#include "client/ids.h"
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
    hf_code code = hf__check_trigger(spec, hf__engine_max_payload(client->engine), false, err);
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

static void answer(const struct hf__op *op, hf_triggered *out)
{
    out->code = op->code;
    out->existed = op->trigger.existed;
    out->debounced = op->trigger.debounced;
    out->id = hf_id_is_zero(op->trigger.existing) ? op->trigger.id : op->trigger.existing;
}

hf_code hf_trigger_with(hf_client *client, hf_triggered *out, const hf_trigger_spec *spec,
                        const hf_transition *initial, hf_error *err)
{
    struct hf__op op;
    *out = (hf_triggered){ 0 };
    hf_code code = prepare(client, spec, initial, &op, &out->no_worker, err);
    if (code != HF_OK)
        return out->code = code;
    hf_id *children = hf__new_ids(initial ? initial->child_count : 0);
    hf_id *starts = hf__new_ids(initial ? initial->start_count : 0);
    if (children && starts) {
        op.trigger.child_ids = children;
        op.trigger.start_ids = starts;
        hf__engine_apply(client->engine, &op, 1);
        answer(&op, out);
    } else {
        out->code = hf__nomem(err);
    }
    free(children);
    free(starts);
    return out->code;
}

hf_code hf_trigger(hf_client *client, hf_triggered *out, const hf_trigger_spec *spec, hf_error *err)
{
    return hf_trigger_with(client, out, spec, NULL, err);
}

/* Operations share flushes best when neighbours go to the same flusher. */
#define RUNS_PER_SHARD 1000

hf_code hf_trigger_many(hf_client *client, hf_triggered *out, const hf_trigger_spec *specs,
                        size_t count, hf_error *err)
{
    if (count == 0)
        return HF_OK;
    struct hf__op *ops = hf__calloc(count, sizeof *ops);
    size_t *places = hf__calloc(count, sizeof *places);
    hf_code first = HF_OK;
    size_t accepted = 0;
    if (!ops || !places) {
        first = hf__nomem(err);
        goto done;
    }
    for (size_t i = 0; i < count; i++) {
        hf_error *report = first == HF_OK ? err : NULL;
        out[i] = (hf_triggered){ 0 };
        out[i].code = prepare(client, &specs[i], NULL, &ops[accepted], &out[i].no_worker, report);
        if (out[i].code != HF_OK) {
            first = first == HF_OK ? out[i].code : first;
            continue;
        }
        ops[accepted].error = NULL;
        ops[accepted].shard = accepted / RUNS_PER_SHARD;
        places[accepted++] = i;
    }
    hf__engine_apply(client->engine, ops, accepted);
    for (size_t i = 0; i < accepted; i++) {
        answer(&ops[i], &out[places[i]]);
        if (ops[i].code != HF_OK && first == HF_OK)
            first = hf__fail(err, ops[i].code, "run %zu of %zu (\"%s\"): %s", places[i] + 1, count,
                             specs[places[i]].workflow, hf_code_meaning(ops[i].code));
    }
done:
    free(ops);
    free(places);
    return first;
}
