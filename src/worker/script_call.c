/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/script_call.h"

#include <inttypes.h>
#include <string.h>

#include "function/function.h"
#include "util/error.h"
#include "util/text.h"

/* ---- Answers ---- */

void hf__call_member(struct hf__buffer *out, const char *name, const char *text)
{
    hf__buffer_addf(out, ",\"%s\":", name);
    if (text)
        hf__buffer_add_json_string(out, text, strlen(text));
    else
        hf__buffer_add_text(out, "null");
}

void hf__call_begin(const struct hf__call *call)
{
    hf__buffer_add_text(&call->peer->out, "{\"ok\":true");
}

void hf__call_end(const struct hf__call *call)
{
    hf__buffer_add_text(&call->peer->out, "}\n");
}

void hf__call_answer(const struct hf__call *call, const char *name, const char *text)
{
    hf__call_begin(call);
    hf__call_member(&call->peer->out, name, text);
    hf__call_end(call);
}

void hf__call_refuse(const struct hf__call *call, hf_code code, const char *message)
{
    struct hf__buffer *out = &call->peer->out;
    hf__buffer_addf(out, "{\"error\":\"%s\"", hf_code_name(code));
    hf__call_member(out, "message", message && *message ? message : hf_code_meaning(code));
    hf__call_end(call);
}

void hf__call_hold(const struct hf__call *call)
{
    call->script->suspending = true;
    call->peer->held = true;
}

bool hf__call_went_well(struct hf__call *call, hf_code code)
{
    const struct hf__function *function = call->ctx->function;
    if (code == HF_OK)
        return true;
    if (code == HF_SUSPENDED)
        hf__call_hold(call);
    else if (call->error.message[0])
        hf__call_refuse(call, code, call->error.message);
    else
        hf__call_refuse(call, code,
                        function && function->error.code == code ? function->error.message : NULL);
    return false;
}

void hf__call_finish(struct hf__call *call, hf_code code)
{
    if (!hf__call_went_well(call, code))
        return;
    hf__call_begin(call);
    hf__call_end(call);
}

/* ---- Requests ---- */

const char *hf__call_text(const struct hf__call *call, const char *member)
{
    return json_string_value(json_object_get(call->request, member));
}

bool hf__call_number(struct hf__call *call, const char *member, int64_t most, int64_t *out)
{
    const json_t *value = json_object_get(call->request, member);
    *out = json_integer_value(value);
    if (!value || (json_is_integer(value) && *out >= 0 && *out <= most))
        return true;
    return hf__call_went_well(call, hf__fail(&call->error, HF_INVALID,
                                             "\"%s\" must be a whole number within 0 and %" PRId64,
                                             member, most));
}

const char *hf__call_name(struct hf__call *call, const char *member, const char *what)
{
    const char *name = hf__call_text(call, member);
    hf_code code = hf__label_check(what, name ? name : "", HF__NAME_MAX, &call->error);
    return hf__call_went_well(call, code) ? name : NULL;
}
