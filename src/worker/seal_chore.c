/* Sealing the journal: a run for each time that there is something to seal, started by workers with their heartbeat. So
 * nothing wakes up while nothing is written, and the key, the number of the block, makes it one at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

#include "audit/seal.h"
#include "client/ids.h"
#include "kernel/chores.h"
#include "util/alloc.h"
#include "util/error.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define AGAIN HF_SECONDS(10) /* when transactions under way hold it up */

/* ---- The run ---- */

static hf_code read_block(const char *input, int64_t *block, hf_error *err)
{
    json_t *json = json_loads(input, JSON_DECODE_ANY, NULL);
    *block = json_integer_value(json_object_get(json, "block"));
    json_decref(json);
    return *block > 0 ? HF_OK : hf__fail(err, HF_PERMANENT, "the input names no block");
}

/* One block a turn, so that others may have the thread. After a small one it rests: more would only follow those who
 * write. */
hf_code hf__seal_chore(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    struct hf__engine *engine = ctx->worker->engine;
    struct hf__seal_head head = { 0 };
    int64_t wanted = 0, events = 0;
    (void)arg;
    hf_code code = read_block(input, &wanted, err);
    if (code == HF_OK)
        code = hf__seal_next(engine, ctx->claimed->run.id, HF__SEAL_EVENTS, &events, err);
    if (code == HF_OK)
        code = hf__seal_head(engine, &head, err);
    if (code != HF_OK)
        return code;
    if (events > HF__SEAL_EVENTS / 2)
        return hf__chore_wait(ctx, "seal", ctx->claimed->seen_at);
    if (head.block < wanted)
        return hf__chore_wait(ctx, "seal", ctx->claimed->seen_at + AGAIN);
    return HF_OK;
}

/* ---- Starting it ---- */

struct call {
    struct hf__errand errand; /* first: disposed of through it */
    hf_trigger_spec spec;
    char key[40];
    char input[40];
};

static void free_call(struct hf__errand *errand)
{
    free((struct call *)errand);
}

static struct call *new_call(hf_worker *worker, int64_t block)
{
    struct call *call = hf__calloc(1, sizeof *call);
    if (!call)
        return NULL;
    hf__errand_init(&call->errand, worker, &worker->beat, free_call);
    snprintf(call->key, sizeof call->key, "block-%" PRId64, block);
    snprintf(call->input, sizeof call->input, "{\"block\":%" PRId64 "}", block);
    call->spec = (hf_trigger_spec)HF_TRIGGER_INIT;
    call->spec.workflow = HF__CHORE_SEAL;
    call->spec.key = call->key;
    call->spec.input = call->input;
    call->spec.max_attempts = HF__CHORE_ATTEMPTS;
    call->errand.op.kind = HF__OP_TRIGGER;
    call->errand.op.tenant = worker->house;
    call->errand.op.trigger.id = hf__new_id();
    call->errand.op.trigger.spec = &call->spec;
    return call;
}

/* The block that wants to be closed; 0: none, or it could not be asked for. */
static int64_t wanted_block(hf_worker *worker)
{
    struct hf__arena arena = { 0 };
    struct hf__table found;
    int64_t block = 0;
    hf__table_init(&found, &arena, 1);
    if (hf__worker_query(worker, HF__STMT_SEAL_WANTED, NULL, &found, NULL) == HF_OK && found.nrows)
        block = hf__as_number(hf__table_row(&found, 0)[0]);
    hf__arena_free(&arena);
    return block;
}

bool hf__seal_call(hf_worker *worker)
{
    int64_t block = worker->house ? wanted_block(worker) : 0;
    struct call *call = block ? new_call(worker, block) : NULL;
    if (!call)
        return true;
    if (!hf__errand_run(&call->errand))
        return false;
    free_call(&call->errand);
    return true;
}
