/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/outcome.h"

#include "cli/field.h"
#include "cli/run_ref.h"
#include "cli/terminal.h"
#include "cli/workflow_name.h"

#include <string.h>

static void show_failure(const hf_run *run)
{
    char id[HF_ID_TEXT];
    hf_id_format(run->id, id);
    fflush(stdout);
    fprintf(stderr, "holdfast: run %s %s", id,
            run->status == HF_CANCELLED ? "was cancelled" : hf_status_name(run->status));
    const char *why = run->last_error ? run->last_error : run->error;
    if (why && strcmp(why, hf_status_name(run->status)) != 0) {
        fputs(": ", stderr);
        cli_put_clean(stderr, why);
    }
    fputc('\n', stderr);
}

int cli_attempts_made(const hf_run *run)
{
    return run->attempt < run->max_attempts ? run->attempt : run->max_attempts;
}

int cli_show_outcome(const struct cli_session *session, const hf_run *run)
{
    bool succeeded = run->status == HF_SUCCEEDED;
    if (session->json)
        cli_record_json(stdout, hf__run_fields, run);
    else if (succeeded)
        printf("%s\n", run->result ? run->result : "null");
    if (!succeeded && !session->json)
        show_failure(run);
    return succeeded ? CLI_OK : CLI_RUN_FAILED;
}

/* A run that is held back may be waited for in vain. */
static void warn_held_back(struct cli_session *session, hf_id id)
{
    hf_run *run = NULL;
    if (hf_get(session->client, &run, id, NULL) == HF_OK && run->status == HF_PENDING)
        cli_warn_paused(session, run->workflow);
    hf_run_free(run);
}

int cli_wait_for(struct cli_session *session, const char *name, hf_id id, int64_t timeout)
{
    hf_run *run = NULL;
    hf_error err = { 0 };
    warn_held_back(session, id);
    if (hf_wait(session->client, &run, id, timeout, &err) != HF_OK)
        return cli_run_fail(session, name, &err);
    int status = cli_show_outcome(session, run);
    hf_run_free(run);
    return status;
}

const char *cli_waits_for(const hf_run *run)
{
    if (!run->waiting_kind)
        return "a signal";
    return strcmp(run->waiting_kind, "worker") == 0 ? "a worker whose code fits"
                                                    : run->waiting_kind;
}
