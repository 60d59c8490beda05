/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/workflow_name.h"

#include "util/suggest.h"

int cli_unknown_workflow(struct cli_session *session, const char *name, hf_code code)
{
    struct hf__suggestion suggestion;
    hf_workflows *known = NULL;
    hf__suggest_start(&suggestion, name);
    if (hf_workflow_list(session->client, &known, NULL, NULL) == HF_OK)
        for (size_t i = 0; i < known->count; i++)
            hf__suggest_offer(&suggestion, known->items[i].name);
    int status = cli_failf(session, code,
                           "no workflow named %.100s: create it with `holdfast workflow create "
                           "%.100s`, or start a worker that serves it%s%.100s%s",
                           name, name, suggestion.best ? "; did you mean " : "",
                           suggestion.best ? suggestion.best : "", suggestion.best ? "?" : "");
    hf_workflows_free(known);
    return status;
}

bool cli_workflow_paused(struct cli_session *session, const char *name)
{
    hf_workflow *workflow = NULL;
    bool paused =
        hf_workflow_get(session->client, &workflow, name, NULL) == HF_OK && workflow->paused;
    hf_workflow_free(workflow);
    return paused;
}

void cli_warn_paused(struct cli_session *session, const char *name)
{
    if (cli_workflow_paused(session, name))
        cli_notice(session,
                   "warning: %s is paused; its runs begin after `holdfast workflow resume %s`",
                   name, name);
}
