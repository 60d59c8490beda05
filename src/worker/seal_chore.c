/* Sealing the journal: a run for each time that there is something to seal, started by workers with their heartbeat if there
 * is none. So nothing wakes up while nothing is written, and the key, the number of the block, makes it one of those who
 * start it at once.
 * SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

#include "audit/seal.h"
#include "kernel/chores.h"
#include "util/clock.h"
#include "util/error.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

/* Bounds of its waits while transactions under way hold it up. */
#define WAIT_LEAST HF_SECONDS(1)
#define WAIT_MOST HF_MINUTES(5)
/* How many times as long as a block took it rests before the next. Other work comes first, but not for ever. */
#define REST_IDLE 1
#define REST_BUSY 20
#define REST_MOST HF_SECONDS(10)
#define PATIENCE HF_MINUTES(1) /* after that, it is busy itself */

/* ---- The run ---- */

static hf_code read_block(const char *input, int64_t *block, hf_error *err)
{
    json_t *json = json_loads(input, JSON_DECODE_ANY, NULL);
    *block = json_integer_value(json_object_get(json, "block"));
    json_decref(json);
    return *block > 0 ? HF_OK : hf__fail(err, HF_PERMANENT, "the input names no block");
}

/* As long again as it has waited so far: every wait leaves lines in the journal, and a transaction may be open for hours. */
static int64_t next_look(const hf_claimed *claimed)
{
    int64_t wait = claimed->seen_at - claimed->run.created_at;
    wait = wait < WAIT_LEAST ? WAIT_LEAST : wait > WAIT_MOST ? WAIT_MOST : wait;
    return claimed->seen_at + wait;
}

static int64_t rest_after(const hf_ctx *ctx, int64_t took)
{
    hf_worker *worker = ctx->worker;
    pthread_mutex_lock(&worker->lock);
    bool busy = worker->held_count > 1; /* more than this one */
    pthread_mutex_unlock(&worker->lock);
    bool patient = ctx->claimed->seen_at - ctx->claimed->run.created_at < PATIENCE;
    int64_t rest = took * (busy && patient ? REST_BUSY : REST_IDLE);
    return rest < REST_MOST ? rest : REST_MOST;
}

/* One block a turn, so that others may have the thread. When all is sealed up to those who write, it rests: more would
 * only follow them. */
hf_code hf__seal_chore(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    struct hf__engine *engine = ctx->worker->engine;
    struct hf__seal_head head = { 0 };
    struct hf__sealed sealed = { 0 };
    int64_t wanted = 0, began = hf__monotonic_us();
    (void)arg;
    hf_code code = read_block(input, &wanted, err);
    if (code == HF_OK)
        code = hf__seal_next(engine, ctx->claimed->run.id, HF__SEAL_EVENTS, &sealed, err);
    if (code == HF_OK)
        code = hf__seal_head(engine, &head, err);
    if (code != HF_OK)
        return code;
    if (sealed.more) {
        int64_t took = hf__monotonic_us() - began;
        return hf__chore_wait(ctx, "seal", sealed.at + took + rest_after(ctx, took));
    }
    if (head.block < wanted)
        return hf__chore_wait(ctx, "seal", next_look(ctx->claimed));
    return HF_OK;
}

/* ---- Starting it ---- */

/* The block that wants to be closed; 0: none, or it could not be asked for. */
static int64_t wanted_block(hf_worker *worker)
{
    struct hf__arena arena = { 0 };
    struct hf__table in, found;
    int64_t block = 0;
    hf__table_init(&in, &arena, 1);
    hf__table_init(&found, &arena, 1);
    hf__table_add(&in)[0] = hf__number(worker->house);
    if (!in.failed && hf__worker_query(worker, HF__STMT_SEAL_WANTED, &in, &found, NULL) == HF_OK &&
        found.nrows)
        block = hf__as_number(hf__table_row(&found, 0)[0]);
    hf__arena_free(&arena);
    return block;
}

bool hf__seal_call(hf_worker *worker)
{
    int64_t block = wanted_block(worker);
    char key[40], input[40];
    if (!block)
        return true;
    snprintf(key, sizeof key, "block-%" PRId64, block);
    snprintf(input, sizeof input, "{\"block\":%" PRId64 "}", block);
    return hf__chore_call(worker, HF__CHORE_SEAL, key, input);
}
