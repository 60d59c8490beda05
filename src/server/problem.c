/* SPDX-License-Identifier: Apache-2.0 */
#include "server/problem.h"

#include "server/request.h"
#include "store/driver.h"

static const struct {
    int status;
    const char *type;
} problems[] = {
#define PROBLEM_ROW(symbol, status, type) { status, type },
    HF__PROBLEMS(PROBLEM_ROW)
#undef PROBLEM_ROW
};

const char *hf__problem_type(enum hf__problem problem)
{
    return problems[problem].type;
}

/* What a handler of runs says is no answer to a request: it is a bug if one comes. A table that somebody has locked is no
 * failure: it is free again later. */
static enum hf__problem problem_of(const hf_error *err)
{
    if (hf__error_is_lock(err))
        return HF__PROBLEM_LOCKED;
    switch (err->code) {
    case HF_INVALID: return HF__PROBLEM_INVALID;
    case HF_TOO_LARGE: return HF__PROBLEM_TOO_LARGE;
    case HF_NOT_FOUND: return HF__PROBLEM_NOT_FOUND;
    case HF_CONFLICT: return HF__PROBLEM_CONFLICT;
    case HF_UNKNOWN_WORKFLOW: return HF__PROBLEM_UNKNOWN_WORKFLOW;
    case HF_NO_WORKER: return HF__PROBLEM_NO_WORKER;
    case HF_NOT_ALLOWED: return HF__PROBLEM_NOT_ALLOWED;
    case HF_STALE: return HF__PROBLEM_STALE;
    case HF_REVISION: return HF__PROBLEM_REVISION;
    case HF_RUN_CANCELLED: return HF__PROBLEM_CANCELLED;
    case HF_TIMEOUT: return HF__PROBLEM_TIMEOUT;
    case HF_DISABLED: return HF__PROBLEM_DISABLED;
    case HF_LOCKED: return HF__PROBLEM_LOCKED; /* of runs: locks by name are not served here */
    case HF_UNAVAILABLE: return HF__PROBLEM_UNAVAILABLE;
    case HF_STORE_FULL: return HF__PROBLEM_STORE_FULL;
    case HF_READ_ONLY: return HF__PROBLEM_READ_ONLY;
    case HF_SCHEMA_NEWER: return HF__PROBLEM_SCHEMA_NEWER;
    case HF_SCHEMA_OLDER: return HF__PROBLEM_SCHEMA_OLDER;
    case HF_STORE: return HF__PROBLEM_STORE;
    case HF_CLOSED: return HF__PROBLEM_CLOSED;
    case HF_NOMEM: return HF__PROBLEM_NOMEM;
    case HF_UNAUTHORIZED: return HF__PROBLEM_UNAUTHORIZED;
    case HF_OK:
    case HF_RETRY:
    case HF_PERMANENT:
    case HF_HANDLER_FAILED:
    case HF_SUSPENDED:
    case HF_INTERNAL: break;
    }
    return HF__PROBLEM_INTERNAL;
}

void hf__reply_problem_as(struct hf__request *request, enum hf__problem problem, const char *title,
                          const char *detail)
{
    struct hf__buffer *out = &request->out;
    int status = problems[problem].status;
    hf__buffer_clear(out);
    hf__buffer_addf(out,
                    "{\"type\":\"" HF__PROBLEM_PREFIX "%s\",\"title\":", problems[problem].type);
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
static bool is_inner(const hf_error *err)
{
    return problems[problem_of(err)].status == 500 || err->code == HF_UNAVAILABLE ||
           err->code == HF_STORE_FULL || err->code == HF_STORE || err->code == HF_NOMEM;
}

void hf__reply_problem(struct hf__request *request, const hf_error *err)
{
    enum hf__problem problem = problem_of(err);
    if (problems[problem].status >= 500)
        request->failure = hf__arena_strdup(&request->arena, err->message);
    hf__reply_problem_as(request, problem, hf_code_meaning(err->code),
                         is_inner(err) ? NULL : err->message);
}
