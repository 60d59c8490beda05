/* What a program tells others of itself, and values that are the same every time it asks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "worker/script_call.h"

#include <inttypes.h>
#include <stdio.h>

#include "function/function.h"
#include "util/duration.h"

/* What a step's command tells is told each time that it runs, since no later pass runs it. */
static void note_step(const struct hf__call *call)
{
    call->ctx->function->in_step = json_is_true(json_object_get(call->request, "in_step"));
}

void hf__script_progress(struct hf__call *call)
{
    int64_t percent;
    note_step(call);
    if (hf__call_number(call, "percent", 100, &percent))
        hf__call_finish(call, hf_progress(call->ctx, (int)percent, hf__call_text(call, "text")));
}

void hf__script_state(struct hf__call *call)
{
    const char *json = hf__call_text(call, "json");
    note_step(call);
    hf__call_finish(call, hf_publish(call->ctx, json ? json : "null"));
}

void hf__script_emit(struct hf__call *call)
{
    const char *type = hf__call_name(call, "type", "type of the event");
    if (type)
        hf__call_finish(call, hf_emit(call->ctx, type, hf__call_text(call, "json")));
}

void hf__script_now(struct hf__call *call)
{
    int64_t us;
    char text[HF__TIME_TEXT];
    if (!hf__call_went_well(call, hf_now(call->ctx, &us)))
        return;
    hf__time_format(us, text);
    hf__call_answer(call, "text", text);
}

void hf__script_uuid(struct hf__call *call)
{
    hf_id id;
    char text[HF_ID_TEXT];
    if (!hf__call_went_well(call, hf_uuid(call->ctx, &id)))
        return;
    hf_id_format(id, text);
    hf__call_answer(call, "text", text);
}

void hf__script_random(struct hf__call *call)
{
    uint64_t number;
    char text[24];
    if (!hf__call_went_well(call, hf_random(call->ctx, &number)))
        return;
    snprintf(text, sizeof text, "%" PRIu64, number);
    hf__call_answer(call, "text", text);
}
