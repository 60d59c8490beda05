/* Retention: one run for the whole store, of the default tenant, that sleeps until the next run expires.
 * SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

#include "client/idle_lanes.h"
#include "client/outbox.h"
#include "client/purge.h"
#include "client/retention.h"
#include "kernel/chores.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define KEY "store"
#define TURN_MOST 2000           /* runs that one turn removes; then others may have the thread */
#define OUTBOX_BATCH 500         /* published events that one statement removes */
#define LANE_STEPS 10            /* pages of lanes that one turn looks at; the next goes on there */
#define WAIT_LEAST HF_MINUTES(1) /* what expires within that goes together */
#define WAIT_MOST HF_HOURS(1)    /* settings may have changed, and work under way may have ended */

static hf_code remove_expired(hf_ctx *ctx, struct hf__retention *walk, hf_error *err)
{
    hf_code code = HF_OK;
    while (code == HF_OK && !walk->done && walk->removed < TURN_MOST) {
        code = hf_check(ctx);
        if (code == HF_OK)
            code = hf__retention_step(walk, err);
    }
    return code;
}

static hf_code expire_outbox(hf_ctx *ctx, const char *tenant, int64_t older_than, hf_error *err)
{
    hf_client *client = NULL;
    int64_t removed = OUTBOX_BATCH;
    hf_code code = hf_open_as(&client, hf_ctx_client(ctx), tenant, NULL, err);
    while (code == HF_OK && removed == OUTBOX_BATCH) {
        code = hf_check(ctx);
        if (code == HF_OK)
            code = hf__outbox_expire(client, older_than, OUTBOX_BATCH, &removed, err);
    }
    hf_close(client);
    return code;
}

/* Published events of all tenants. */
static hf_code expire_outboxes(hf_ctx *ctx, int64_t now, hf_error *err)
{
    hf_tenants *tenants = NULL;
    hf_code code = hf_tenant_list(hf_ctx_client(ctx), &tenants, err);
    for (size_t i = 0; code == HF_OK && i < tenants->count; i++)
        code = expire_outbox(ctx, tenants->items[i].name, now - HF__OUTBOX_RETENTION, err);
    hf_tenants_free(tenants);
    return code;
}

/* Goes on after a lane, and gives the one at which the next turn goes on; 0: at the beginning. */
static hf_code remove_lanes(hf_ctx *ctx, int32_t *after, hf_error *err)
{
    hf_code code = HF_OK;
    for (int i = 0; code == HF_OK && i < LANE_STEPS && (*after || i == 0); i++) {
        code = hf_check(ctx);
        if (code == HF_OK)
            code = hf__idle_lanes_step(hf_ctx_client(ctx)->engine, after, err);
    }
    return code;
}

static hf_code next_time(struct hf__retention *walk, bool more_lanes, int64_t *at, hf_error *err)
{
    hf_code code = hf__retention_next(walk, at, err);
    if (*at > walk->now + WAIT_MOST)
        *at = walk->now + WAIT_MOST;
    if (*at < walk->now + WAIT_LEAST || more_lanes)
        *at = walk->now + WAIT_LEAST;
    return code;
}

/* What is done once all expired runs are gone. */
static hf_code tidy_up(hf_ctx *ctx, struct hf__retention *walk, int32_t *lane, int64_t *at,
                       hf_error *err)
{
    hf_code code = expire_outboxes(ctx, walk->now, err);
    if (code == HF_OK)
        code = hf__forget_workers(hf_ctx_client(ctx), err);
    if (code == HF_OK)
        code = remove_lanes(ctx, lane, err);
    if (code == HF_OK)
        code = next_time(walk, *lane != 0, at, err);
    return code;
}

static hf_code sleep_until(hf_ctx *ctx, int64_t at, int32_t lane, hf_error *err)
{
    char number[16];
    snprintf(number, sizeof number, "%" PRId32, lane);
    const char *state = hf__arena_strdup(&ctx->arena, number);
    if (!state)
        return hf__nomem(err);
    hf_code code = hf__chore_wait(ctx, "retention", at);
    ctx->transition.state = state;
    return code;
}

hf_code hf__retention_chore(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    struct hf__retention walk;
    const char *state = ctx->claimed->run.state;
    int64_t at = ctx->claimed->seen_at;
    int32_t lane = state ? (int32_t)strtol(state, NULL, 10) : 0;
    (void)input;
    (void)arg;
    hf_code code = hf__retention_begin(&walk, hf_ctx_client(ctx), err);
    if (code == HF_OK)
        code = remove_expired(ctx, &walk, err);
    if (code == HF_OK && walk.done)
        code = tidy_up(ctx, &walk, &lane, &at, err);
    hf__retention_end(&walk);
    return code == HF_OK ? sleep_until(ctx, at, lane, err) : code;
}

/* Idempotent by its key: the store has one such run. */
hf_code hf__retention_start(hf_client *client, hf_error *err)
{
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    hf_triggered started;
    spec.workflow = HF__CHORE_RETENTION;
    spec.key = KEY;
    return hf__chore_start(client, &started, &spec, NULL, err);
}

bool hf__retention_call(hf_worker *worker)
{
    return hf__chore_call(worker, HF__CHORE_RETENTION, KEY, NULL);
}
