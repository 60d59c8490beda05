/* The children that a program starts and waits for.
 * SPDX-License-Identifier: Apache-2.0 */
#include "worker/script_call.h"

#include <string.h>

#include "function/function.h"
#include "util/duration.h"
#include "util/error.h"

#define CHILDREN_MOST 10000 /* of one wait */

void hf__script_start(struct hf__call *call)
{
    hf_id id;
    char text[HF_ID_TEXT];
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    const char *name = hf__call_name(call, "name", "name of the child");
    if (!name)
        return;
    spec.workflow = hf__call_text(call, "workflow");
    spec.input = hf__call_text(call, "input");
    spec.key = hf__call_text(call, "key");
    if (!spec.workflow) {
        hf__call_refuse(call, HF_INVALID, "which workflow?");
        return;
    }
    hf_code code = hf_child_start(call->ctx, name, &spec, &id);
    if (code == HF_UNKNOWN_WORKFLOW)
        hf__fail(&call->error, code, "no workflow is called \"%.100s\"", spec.workflow);
    if (!hf__call_went_well(call, code))
        return;
    hf_id_format(id, text);
    hf__call_answer(call, "id", text);
}

/* The ids of the request in *out, in the turn's memory. False: the peer was told. */
static bool read_ids(struct hf__call *call, hf_id **out, size_t *count)
{
    const json_t *list = json_object_get(call->request, "ids");
    *count = json_array_size(list);
    if (!json_is_array(list) || *count > CHILDREN_MOST)
        return hf__call_went_well(call, hf__fail(&call->error, HF_INVALID,
                                                 "a wait is for a list of at most %d children",
                                                 CHILDREN_MOST));
    *out = hf__arena_calloc(&call->ctx->arena, *count + 1, sizeof **out);
    for (size_t i = 0; *out && i < *count; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (text && hf_id_parse(text, &(*out)[i]))
            continue;
        return hf__call_went_well(call, hf__fail(&call->error, HF_INVALID,
                                                 "\"%.100s\" is not the id of a child",
                                                 text ? text : ""));
    }
    if (!*out)
        hf__call_refuse(call, HF_NOMEM, NULL);
    return *out != NULL;
}

static void answer_ends(const struct hf__call *call, hf_code code, const hf_child_end *ends,
                        size_t count)
{
    struct hf__buffer *out = &call->peer->out;
    call->ctx->function->met_failure |= code == HF_TIMEOUT;
    hf__call_begin(call);
    hf__buffer_addf(out, ",\"late\":%s,\"ends\":[", code == HF_TIMEOUT ? "true" : "false");
    for (size_t i = 0; i < count; i++) {
        char id[HF_ID_TEXT];
        hf_id_format(ends[i].run, id);
        hf__buffer_addf(out, "%s{\"id\":\"%s\"", i ? "," : "", id);
        if (ends[i].ended) {
            call->ctx->function->met_failure |= ends[i].status != HF_SUCCEEDED;
            hf__buffer_addf(out, ",\"status\":\"%s\"", hf_status_name(ends[i].status));
            hf__call_member(out, "result", ends[i].result);
            hf__call_member(out, "error", ends[i].error);
        }
        hf__buffer_add_text(out, "}");
    }
    hf__buffer_add_text(out, "]");
    hf__call_end(call);
}

void hf__script_children(struct hf__call *call)
{
    hf_id *ids = NULL;
    size_t count;
    int64_t timeout;
    const char *name = hf__call_name(call, "name", "name of the wait");
    const char *what = hf__call_text(call, "for");
    hf_wait_for until = HF_WAIT_ALL;
    if (!name || !hf__call_number(call, "timeout", HF__DURATION_MAX, &timeout) ||
        !read_ids(call, &ids, &count))
        return;
    if (what && strcmp(what, "any") == 0)
        until = HF_WAIT_ANY;
    else if (what && strcmp(what, "all_or_failure") == 0)
        until = HF_WAIT_ALL_OR_FAILURE;
    hf_child_end *ends = hf__arena_calloc(&call->ctx->arena, count + 1, sizeof *ends);
    hf_code code = HF_NOMEM;
    if (ends && count)
        code = hf_children_wait(call->ctx, name, ids, count, until, timeout, ends);
    else if (ends)
        code = hf__own_children_wait(call->ctx, name, until, timeout, &ends, &count);
    if (code == HF_TIMEOUT || hf__call_went_well(call, code))
        answer_ends(call, code, ends, count);
}
