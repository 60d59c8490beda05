/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run_ref.h"

#include "util/alloc.h"
#include "util/error.h"

#include <stdlib.h>
#include <string.h>

int cli_run_fail(struct cli_session *session, const char *operand, const hf_error *err)
{
    if (err->code == HF_NOT_FOUND || err->code == HF_UNKNOWN_WORKFLOW)
        return cli_failf(session, err->code,
                         "no run \"%.100s\" in tenant %.60s; see `holdfast list`", operand,
                         cli_tenant(session));
    if (err->code == HF_INVALID || strstr(err->message, operand))
        return cli_fail(session, err);
    return cli_failf(session, err->code, "run %.100s: %s", operand,
                     err->message[0] ? err->message : hf_code_meaning(err->code));
}

/* Workflow names have no slash, so the first one separates. */
static hf_code get_by_key(struct cli_session *session, const char *operand, hf_run **out,
                          hf_error *err)
{
    const char *slash = strchr(operand, '/');
    if (!slash || slash == operand || !slash[1])
        return hf__fail(err, HF_INVALID, "\"%.100s\" names no run; give its id or WORKFLOW/KEY",
                        operand);
    char *workflow = hf__strndup(operand, (size_t)(slash - operand));
    if (!workflow)
        return hf__nomem(err);
    hf_code code = hf_get_by_key(session->client, out, workflow, slash + 1, err);
    free(workflow);
    return code;
}

bool cli_run_get(struct cli_session *session, const char *operand, hf_run **out, int *status)
{
    hf_id id;
    hf_error err = { 0 };
    hf_code code;
    if (!cli_open(session, status))
        return false;
    if (hf_id_parse(operand, &id))
        code = hf_get(session->client, out, id, &err);
    else
        code = get_by_key(session, operand, out, &err);
    if (code != HF_OK)
        *status = cli_run_fail(session, operand, &err);
    return code == HF_OK;
}

bool cli_run_id(struct cli_session *session, const char *operand, hf_id *out, int *status)
{
    if (hf_id_parse(operand, out))
        return cli_open(session, status);
    hf_run *run;
    if (!cli_run_get(session, operand, &run, status))
        return false;
    *out = run->id;
    hf_run_free(run);
    return true;
}
