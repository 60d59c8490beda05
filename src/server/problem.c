/* Errors as problem documents (RFC 9457). The type of each is stable.
 * SPDX-License-Identifier: Apache-2.0 */
#include "server/request.h"

#include <string.h>

#define TYPE_PREFIX "urn:holdfast:problem:"

/* Which status a code is answered with. */
static int status_of(hf_code code)
{
    switch (code) {
    case HF_INVALID: return 400;
    case HF_TOO_LARGE: return 413;
    case HF_NOT_FOUND:
    case HF_UNKNOWN_WORKFLOW: return 404;
    case HF_CONFLICT:
    case HF_NOT_ALLOWED:
    case HF_STALE:
    case HF_RUN_CANCELLED: return 409;
    case HF_REVISION: return 412;
    case HF_UNAUTHORIZED: return 401;
    case HF_DISABLED: return 403;
    case HF_TIMEOUT: return 504;
    case HF_NO_WORKER:
    case HF_UNAVAILABLE:
    case HF_LOCKED: /* of runs: locks that are asked for by name are not served here */
    case HF_CLOSED: return 503;
    case HF_STORE_FULL: return 507;
    default: return 500;
    }
}

void hf__reply_problem_as(struct hf__request *request, int status, const char *name,
                          const char *title, const char *detail)
{
    struct hf__buffer *out = &request->out;
    hf__buffer_clear(out);
    hf__buffer_addf(out, "{\"type\":\"" TYPE_PREFIX "%s\",\"title\":", name);
    hf__json_add_text(out, title);
    hf__buffer_addf(out, ",\"status\":%d,\"detail\":", status);
    hf__json_add_text(out, detail);
    hf__buffer_add_text(out, "}");
    request->type = "application/problem+json";
    request->fixed = NULL;
    request->status = status;
    request->answered = true;
    request->parked = false;
    if (status == 503 || status == 507)
        hf__reply_header(request, "Retry-After", "1");
}

/* What went wrong inside is for the one who runs the server, not for who asked: it may name hosts, files and tables. */
static bool is_inner(hf_code code)
{
    return status_of(code) == 500 || code == HF_UNAVAILABLE || code == HF_STORE_FULL;
}

void hf__reply_problem(struct hf__request *request, const hf_error *err)
{
    int status = status_of(err->code);
    if (status >= 500)
        request->failure = hf__arena_strdup(&request->arena, err->message);
    hf__reply_problem_as(request, status, hf_code_name(err->code), hf_code_meaning(err->code),
                         is_inner(err->code) ? NULL : err->message);
}
