/* Waiting for a time, a person or a signal.
 * SPDX-License-Identifier: Apache-2.0 */
#include "function/function.h"

#include "worker/gate.h"

#include <string.h>

#define LATE "no signal came in time"

/* ---- Time ---- */

static hf_code sleep_until(hf_ctx *ctx, const char *name, int64_t at, bool relative)
{
    const char *full;
    struct hf__entry *entry;
    hf_code code = hf__function_call(ctx, "sleep", name, &full, &entry);
    if (code != HF_OK)
        return code;
    int64_t now = hf__function_now(ctx);
    if (entry && entry->until <= now)
        return HF_OK;
    hf_transition wait = { .waiting_kind = "sleep" };
    if (entry) {
        wait.waiting_until = entry->until;
        return hf__function_suspend(ctx, NULL, &wait);
    }
    struct hf__record record = {
        .op = "sleep",
        .name = full,
        .status = HF__ENTRY_WAITING,
        .started = now,
        .until = relative ? hf__function_later(now, at) : hf__function_later(0, at),
    };
    if (record.until <= now) {
        record.status = HF__ENTRY_SUCCEEDED;
        return hf__function_record(ctx, &record, NULL, NULL, NULL);
    }
    wait.waiting_until = record.until;
    return hf__function_suspend(ctx, &record, &wait);
}

hf_code hf_sleep(hf_ctx *ctx, const char *name, int64_t us)
{
    return hf__inside(ctx, sleep_until(ctx, name, us, true));
}

hf_code hf_sleep_until(hf_ctx *ctx, const char *name, int64_t at)
{
    return hf__inside(ctx, sleep_until(ctx, name, at, false));
}

/* A paused run is claimed only after it was resumed or its time is up: being here again means just that. */
static hf_code pause_here(hf_ctx *ctx, const char *name, int64_t us)
{
    const char *full;
    struct hf__entry *entry;
    hf_code code = hf__function_call(ctx, "pause", name, &full, &entry);
    if (code != HF_OK || entry)
        return code;
    int64_t now = hf__function_now(ctx);
    const struct hf__record record = {
        .op = "pause",
        .name = full,
        .status = HF__ENTRY_WAITING,
        .started = now,
        .until = hf__function_limit(now, us),
    };
    return hf__function_suspend(ctx, &record,
                                &(hf_transition){ .pause = true, .waiting_until = record.until });
}

hf_code hf_pause_here(hf_ctx *ctx, const char *name, int64_t us)
{
    return hf__inside(ctx, pause_here(ctx, name, us));
}

/* ---- Signals ---- */

/* The oldest of this name that no call has taken; -1: none. */
static int find_signal(const hf_ctx *ctx, const char *name)
{
    const hf_claimed *claimed = ctx->claimed;
    for (size_t i = 0; i < claimed->mail_count; i++) {
        const hf_mail *mail = &claimed->mail[i];
        if (!ctx->function->taken[i] && strcmp(mail->type, "external") == 0 && mail->name &&
            strcmp(mail->name, name) == 0)
            return (int)i;
    }
    return -1;
}

hf_code hf__function_receive(hf_ctx *ctx, const char *op, const char *full, int found,
                             const char **payload)
{
    const hf_mail *mail = &ctx->claimed->mail[found];
    const char *text = mail->payload ? mail->payload : "null";
    hf_transition extra = { .consumed = &mail->id, .consumed_count = 1 };
    const struct hf__record record = {
        .op = op,
        .name = full,
        .status = HF__ENTRY_SUCCEEDED,
        .started = hf__function_now(ctx),
        .output = text,
    };
    hf_code code = hf__function_record(ctx, &record, &extra, NULL, NULL);
    ctx->function->taken[found] |= code == HF_OK;
    *payload = code == HF_OK ? text : NULL;
    return code;
}

static hf_code give_up(hf_ctx *ctx, const char *full)
{
    hf_code code = hf__function_record(ctx,
                                       &(struct hf__record){
                                           .op = "wait",
                                           .name = full,
                                           .status = HF__ENTRY_FAILED,
                                           .started = hf__function_now(ctx),
                                           .error = LATE,
                                       },
                                       NULL, NULL, NULL);
    return code == HF_OK ? hf__function_late(ctx, LATE) : code;
}

static hf_code wait_signal(hf_ctx *ctx, const char *name, int64_t timeout, const char **payload)
{
    const char *full;
    const char *unwanted;
    struct hf__entry *entry;
    payload = payload ? payload : &unwanted;
    *payload = NULL;
    hf_code code = hf__function_call(ctx, "wait", name, &full, &entry);
    if (code != HF_OK)
        return code;
    if (entry && entry->status == HF__ENTRY_FAILED)
        return hf__function_late(ctx, entry->error);
    if (entry && entry->status == HF__ENTRY_SUCCEEDED) {
        *payload = entry->output;
        return HF_OK;
    }
    int found = find_signal(ctx, name);
    if (found >= 0)
        return hf__function_receive(ctx, "wait", full, found, payload);
    int64_t now = hf__function_now(ctx);
    int64_t until = entry ? entry->until : hf__function_limit(now, timeout);
    if (until && until <= now)
        return give_up(ctx, full);
    const struct hf__record record = {
        .op = "wait",
        .name = full,
        .status = HF__ENTRY_WAITING,
        .started = now,
        .until = until,
    };
    const hf_transition wait = { .waiting_kind = "signal", .waiting_until = until };
    return hf__function_suspend(ctx, entry ? NULL : &record, &wait);
}

hf_code hf_wait_signal(hf_ctx *ctx, const char *name, int64_t timeout, const char **payload)
{
    return hf__inside(ctx, wait_signal(ctx, name, timeout, payload));
}
