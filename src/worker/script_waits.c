/* What a program waits for: time, signals, answers of people.
 * SPDX-License-Identifier: Apache-2.0 */
#include "worker/script_call.h"

#include "function/function.h"
#include "util/duration.h"
#include "util/error.h"

void hf__script_sleep(struct hf__call *call)
{
    int64_t us, at;
    const char *name = hf__call_name(call, "name", "name of the sleep");
    if (!name || !hf__call_number(call, "us", HF__DURATION_MAX, &us) ||
        !hf__call_number(call, "at", HF__TIME_MAX, &at))
        return;
    hf__call_finish(call, at ? hf_sleep_until(call->ctx, name, at) : hf_sleep(call->ctx, name, us));
}

void hf__script_pause(struct hf__call *call)
{
    int64_t us;
    const char *name = hf__call_name(call, "name", "name of the pause");
    if (name && hf__call_number(call, "us", HF__DURATION_MAX, &us))
        hf__call_finish(call, hf_pause_here(call->ctx, name, us));
}

void hf__script_wait(struct hf__call *call)
{
    int64_t timeout;
    const char *payload = NULL;
    const char *name = hf__call_name(call, "name", "signal name");
    if (!name || !hf__call_number(call, "timeout", HF__DURATION_MAX, &timeout))
        return;
    hf_code code = hf_wait_signal(call->ctx, name, timeout, &payload);
    if (code == HF_TIMEOUT) {
        call->ctx->function->met_failure = true;
        hf__fail(&call->error, code, "no signal \"%s\" came in time", name);
    }
    if (hf__call_went_well(call, code))
        hf__call_answer(call, "payload", payload);
}

void hf__script_ask(struct hf__call *call)
{
    int64_t timeout, due;
    const char *answer = NULL;
    const char *name = hf__call_name(call, "name", "name of the question");
    if (!name || !hf__call_number(call, "timeout", HF__DURATION_MAX, &timeout) ||
        !hf__call_number(call, "due", HF__DURATION_MAX, &due))
        return;
    const hf_new_task task = {
        .name = hf__call_text(call, "title"),
        .assignee = hf__call_text(call, "assignee"),
        .roles = hf__call_text(call, "roles"),
        .payload = hf__call_text(call, "payload"),
        .form = hf__call_text(call, "form"),
        .due_at = due ? hf__function_later(hf__function_now(call->ctx), due) : 0,
    };
    hf_code code = hf_ask_person(call->ctx, name, &task, timeout, &answer);
    if (code == HF_TIMEOUT) {
        call->ctx->function->met_failure = true;
        hf__fail(&call->error, code, "nobody answered \"%s\" in time", name);
    }
    if (hf__call_went_well(call, code))
        hf__call_answer(call, "answer", answer);
}
