/* Asking a person: a task, and the wait for its answer.
 * SPDX-License-Identifier: Apache-2.0 */
#include "function/function.h"

#include <string.h>

#include "client/check.h"
#include "worker/gate.h"

#define LATE "no answer came in time"

/* Answers bear the name of the call as their token. -1: it has not come. */
static int find_answer(const hf_ctx *ctx, const char *full)
{
    const hf_claimed *claimed = ctx->claimed;
    for (size_t i = 0; i < claimed->mail_count; i++) {
        const hf_mail *mail = &claimed->mail[i];
        if (!ctx->function->taken[i] && strcmp(mail->type, "task") == 0 && mail->token &&
            strcmp(mail->token, full) == 0)
            return (int)i;
    }
    return -1;
}

/* Nobody is asked any more. */
static hf_code give_up(hf_ctx *ctx, const char *full)
{
    hf_transition extra = { .withdrawn_tasks = &full, .withdrawn_task_count = 1 };
    const struct hf__record record = {
        .op = "ask",
        .name = full,
        .status = HF__ENTRY_FAILED,
        .started = hf__function_now(ctx),
        .error = LATE,
    };
    hf_code code = hf__function_record(ctx, &record, &extra, NULL, NULL);
    return code == HF_OK ? hf__function_late(ctx, LATE) : code;
}

static bool copy_text(hf_ctx *ctx, const char **text)
{
    if (*text)
        *text = hf__arena_strdup(&ctx->arena, *text);
    return *text != NULL;
}

/* The turn is committed after the handler has returned, so what it points to must last. NULL: no memory. */
static const hf_new_task *copy_task(hf_ctx *ctx, const hf_new_task *task)
{
    hf_new_task *copy = hf__arena_alloc(&ctx->arena, sizeof *copy);
    if (!copy)
        return NULL;
    *copy = *task;
    const char **texts[] = { &copy->name,    &copy->assignee, &copy->roles,
                             &copy->payload, &copy->form,     &copy->token };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (*texts[i] && !copy_text(ctx, texts[i]))
            return NULL;
    return copy;
}

static hf_code ask(hf_ctx *ctx, const hf_new_task *task, int64_t until)
{
    const hf_new_task *copy = copy_task(ctx, task);
    if (!copy)
        return hf__function_end(ctx, HF_NOMEM, "%s", hf_code_meaning(HF_NOMEM));
    const struct hf__record record = {
        .op = "ask",
        .name = copy->token,
        .status = HF__ENTRY_WAITING,
        .started = hf__function_now(ctx),
        .until = until,
    };
    return hf__function_suspend(ctx, &record,
                                &(hf_transition){ .waiting_kind = "task",
                                                  .waiting_token = copy->token,
                                                  .waiting_until = until,
                                                  .tasks = copy,
                                                  .task_count = 1 });
}

/* What is asked, as the store takes it. */
static hf_code prepare(hf_ctx *ctx, const char *name, const char *full, const hf_new_task *asked,
                       hf_new_task *task)
{
    *task = asked ? *asked : (hf_new_task){ .name = NULL };
    task->name = task->name ? task->name : name;
    task->token = full;
    return hf__check_task(task, hf__function_max_payload(ctx), &ctx->function->error);
}

static hf_code ask_person(hf_ctx *ctx, const char *name, const hf_new_task *asked, int64_t timeout,
                          const char **answer)
{
    const char *full;
    const char *unwanted;
    struct hf__entry *entry;
    hf_new_task task;
    answer = answer ? answer : &unwanted;
    *answer = NULL;
    hf_code code = hf__function_call(ctx, "ask", name, &full, &entry);
    if (code != HF_OK)
        return code;
    if (entry && entry->status == HF__ENTRY_FAILED)
        return hf__function_late(ctx, entry->error);
    if (entry && entry->status == HF__ENTRY_SUCCEEDED) {
        *answer = entry->output;
        return HF_OK;
    }
    int found = find_answer(ctx, full);
    if (found >= 0)
        return hf__function_receive(ctx, "ask", full, found, answer);
    int64_t now = hf__function_now(ctx);
    int64_t until = entry ? entry->until : hf__function_limit(now, timeout);
    if (until && until <= now)
        return give_up(ctx, full);
    if (!entry) {
        code = prepare(ctx, name, full, asked, &task);
        return code == HF_OK ? ask(ctx, &task, until) : code;
    }
    return hf__function_suspend(
        ctx, NULL,
        &(hf_transition){ .waiting_kind = "task", .waiting_token = full, .waiting_until = until });
}

hf_code hf_ask_person(hf_ctx *ctx, const char *name, const hf_new_task *asked, int64_t timeout,
                      const char **answer)
{
    return hf__inside(ctx, ask_person(ctx, name, asked, timeout, answer));
}
