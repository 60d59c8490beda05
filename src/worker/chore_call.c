/* Starting the engine's own work for the whole store, from the beat's thread. The key makes it one run, however many
 * workers start it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

#include "client/ids.h"
#include "kernel/chores.h"
#include "util/alloc.h"

#include <stdio.h>
#include <stdlib.h>

struct call {
    struct hf__errand errand; /* first: disposed of through it */
    hf_trigger_spec spec;
    hf_change change;
    char key[40];
    char input[40];
};

static void free_call(struct hf__errand *errand)
{
    free((struct call *)errand);
}

static struct call *new_call(hf_worker *worker)
{
    struct call *call = hf__calloc(1, sizeof *call);
    if (!call)
        return NULL;
    hf__errand_init(&call->errand, worker, &worker->beat, free_call);
    call->errand.op.tenant = worker->house;
    return call;
}

static void start(struct call *call, const char *workflow, const char *key, const char *input)
{
    struct hf__op *op = &call->errand.op;
    snprintf(call->key, sizeof call->key, "%s", key);
    snprintf(call->input, sizeof call->input, "%s", input ? input : "");
    call->spec = (hf_trigger_spec)HF_TRIGGER_INIT;
    call->spec.workflow = workflow;
    call->spec.key = call->key;
    call->spec.input = input ? call->input : NULL;
    call->spec.max_attempts = HF__CHORE_ATTEMPTS;
    op->kind = HF__OP_TRIGGER;
    op->trigger.id = hf__new_id();
    op->trigger.spec = &call->spec;
}

static void start_again(struct call *call, hf_id run)
{
    struct hf__op *op = &call->errand.op;
    call->change = (hf_change)HF_CHANGE_INIT;
    call->change.reason = "the store needs it";
    op->kind = HF__OP_CHANGE;
    op->change.run = run;
    op->change.action = HF_RETRY_RUN;
    op->change.steers = true;
    op->change.change = &call->change;
}

/* What has failed for good stays so, since it would fail again: its error says what to do. */
static bool find_cancelled(hf_worker *worker, const char *workflow, const char *key, hf_id *run)
{
    struct hf__arena arena = { 0 };
    struct hf__table in, out;
    bool found = false;
    hf__table_init(&in, &arena, 3);
    hf__table_init(&out, &arena, 1);
    struct hf__cell *c = hf__table_add(&in);
    c[0] = hf__number(worker->house);
    c[1] = hf__text(workflow);
    c[2] = hf__text(key);
    if (!in.failed && hf__worker_query(worker, HF__STMT_CANCELLED_CHORE, &in, &out, NULL) == HF_OK)
        found = out.nrows > 0;
    if (found)
        *run = hf__as_uuid(hf__table_row(&out, 0)[0]);
    hf__arena_free(&arena);
    return found;
}

bool hf__chore_call(hf_worker *worker, const char *workflow, const char *key, const char *input)
{
    hf_id cancelled;
    struct call *call = new_call(worker);
    if (!call)
        return true;
    if (find_cancelled(worker, workflow, key, &cancelled))
        start_again(call, cancelled);
    else
        start(call, workflow, key, input);
    if (!hf__errand_run(&call->errand))
        return false;
    free_call(&call->errand);
    return true;
}
