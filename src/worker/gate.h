/* Who may touch what a handler and its worker share. A handler's calls take the gate one at a time; a worker that leaves a
 * handler behind (its step, its run or its lease is over, and it does not come back) takes it for good. From then on the
 * handler's thread reads what does not change, and nothing else of it counts.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_WORKER_GATE_H
#define HF_WORKER_GATE_H

#include "worker/worker.h"

enum hf__gate { HF__GATE_FREE, HF__GATE_INSIDE, HF__GATE_LEFT };

/* False: the handler was left behind, or another thread of it is inside a call. */
static inline bool hf__gate_enter(hf_ctx *ctx)
{
    int free = HF__GATE_FREE;
    if (atomic_compare_exchange_strong(&ctx->gate, &free, HF__GATE_INSIDE))
        return true;
    if (free == HF__GATE_INSIDE)
        atomic_store(&ctx->overlapped, true);
    return false;
}

static inline hf_code hf__gate_leave(hf_ctx *ctx, hf_code code)
{
    atomic_store(&ctx->gate, HF__GATE_FREE);
    return code;
}

/* What a call that may not enter answers. */
static inline hf_code hf__gate_refusal(const hf_ctx *ctx)
{
    if (atomic_load(&ctx->gate) != HF__GATE_LEFT)
        return HF_PERMANENT;
    hf_code lost = (hf_code)atomic_load(&ctx->lost);
    return lost == HF_OK ? HF_STALE : lost;
}

/* Makes a call of a handler's. Calls that are made this way are not made within one another. */
#define hf__inside(ctx, call)                                                                      \
    (hf__gate_enter(ctx) ? hf__gate_leave((ctx), (call)) : hf__gate_refusal(ctx))

/* The worker takes it for good; false: a call is under way. */
static inline bool hf__gate_shut(hf_ctx *ctx)
{
    int free = HF__GATE_FREE;
    return atomic_compare_exchange_strong(&ctx->gate, &free, HF__GATE_LEFT);
}

#endif
