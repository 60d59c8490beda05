/* holdfast audit verify, head
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/table.h"
#include "cli/terminal.h"

#include <holdfast/audit.h>

#include <inttypes.h>
#include <string.h>

static struct {
    const char *head;
} args;

static const struct cli_option options[] = {
    CLI_OPT(TEXT, 0, "head", "HASH", "a hash noted before, that must be in the chain",
            .value = &args.head),
    CLI_OPTIONS_END,
};

/* ---- verify ---- */

struct answer {
    hf_audit_report report;
    const char *head;
};

static const struct hf__field answer_fields[] = {
    { "problems", HF__FIELD_INT64, offsetof(struct answer, report.problems) },
    { "blocks", HF__FIELD_INT64, offsetof(struct answer, report.checked) },
    { "events", HF__FIELD_INT64, offsetof(struct answer, report.events) },
    { "purged_events", HF__FIELD_INT64, offsetof(struct answer, report.purged_events) },
    { "unsealed", HF__FIELD_INT64, offsetof(struct answer, report.unsealed) },
    { "block", HF__FIELD_INT64, offsetof(struct answer, report.head.block) },
    { "head", HF__FIELD_TEXT, offsetof(struct answer, head) },
    { "sealed_at", HF__FIELD_TIME, offsetof(struct answer, report.head.sealed_at) },
    { NULL, HF__FIELD_TEXT, 0 },
};

static void show_problem(const hf_audit_problem *problem, void *arg)
{
    struct cli_session *session = arg;
    char run[HF_ID_TEXT];
    cli_progress_end(session);
    if (session->json) {
        cli_record_json(stdout, hf__audit_problem_fields, problem);
        return;
    }
    printf("%s: %s", problem->problem, problem->meaning);
    if (problem->block)
        printf("; block %" PRId64, problem->block);
    if (!hf_id_is_zero(problem->run)) {
        hf_id_format(problem->run, run);
        printf(", run %s", run);
    }
    if (problem->seq)
        printf(", event %" PRId64, problem->seq);
    putchar('\n');
}

static bool show_progress(const hf_audit_report *so_far, void *arg)
{
    cli_progress_show(arg, "blocks", so_far->checked, so_far->blocks);
    return true;
}

static void show_report(const struct cli_session *session, const hf_audit_report *report)
{
    struct answer answer = { *report, report->head.block ? report->head.hash : NULL };
    if (session->json)
        cli_record_json(stdout, answer_fields, &answer);
    else if (!session->quiet || report->problems)
        printf("%s: %" PRId64 " problem%s in %" PRId64 " blocks; %" PRId64
               " events were compared with their seals, %" PRId64
               " were purged with their runs, %" PRId64 " are not sealed yet\n",
               report->problems ? "NOT GOOD" : "good", report->problems,
               report->problems == 1 ? "" : "s", report->checked, report->events,
               report->purged_events, report->unsealed);
}

static int verify(struct cli_session *session, int count, char **operands)
{
    (void)count, (void)operands;
    int status = CLI_OK;
    hf_error err = { 0 };
    hf_audit_report report;
    hf_audit_options choice = HF_AUDIT_INIT;
    if (args.head && strlen(args.head) != HF_HASH_TEXT - 1)
        return cli_usage(session, "--head is %d hexadecimal digits, as `holdfast audit head` shows",
                         HF_HASH_TEXT - 1);
    if (!cli_open(session, &status))
        return status;
    choice.head = args.head;
    choice.found = show_problem;
    choice.progress = show_progress;
    choice.arg = session;
    hf_code code = hf_audit_verify(session->client, &report, &choice, &err);
    cli_progress_end(session);
    if (code != HF_OK)
        return cli_fail(session, &err);
    show_report(session, &report);
    return report.problems ? CLI_TAMPERED : CLI_OK;
}

const struct cli_command cli_command_audit_verify = {
    .name = "audit verify",
    .summary = "Compare the journal with its seals",
    .operands = "",
    .details =
        "Reads the whole journal of the store, of all tenants, and names every event that was "
        "changed, removed or inserted after it was sealed, and every seal that is not what it "
        "was. Runs that were purged do no harm. Exit code 9 when something was found.\n"
        "Whoever may write to the database can make all seals anew, or cut the last ones off. "
        "Note `holdfast audit head` elsewhere now and then, and give it with --head.",
    .examples = "holdfast audit verify\n"
                "holdfast audit verify --head \"$(cat /mnt/elsewhere/head)\" --json",
    .options = options,
    .run = verify,
};

/* ---- head ---- */

struct head {
    int64_t block, sealed_at;
    const char *hash;
};

static const struct hf__field head_fields[] = {
    { "block", HF__FIELD_INT64, offsetof(struct head, block) },
    { "hash", HF__FIELD_TEXT, offsetof(struct head, hash) },
    { "sealed_at", HF__FIELD_TIME, offsetof(struct head, sealed_at) },
    { NULL, HF__FIELD_TEXT, 0 },
};

static int show_head(struct cli_session *session, int count, char **operands)
{
    (void)count, (void)operands;
    int status = CLI_OK;
    hf_error err = { 0 };
    hf_audit_head head;
    if (!cli_open(session, &status))
        return status;
    if (hf_audit_head_get(session->client, &head, &err) != HF_OK)
        return cli_fail(session, &err);
    if (!head.block)
        return cli_failf(session, HF_NOT_FOUND,
                         "nothing is sealed yet: a worker of the default tenant does it");
    struct head answer = { head.block, head.sealed_at, head.hash };
    if (session->json)
        cli_record_json(stdout, head_fields, &answer);
    else
        puts(head.hash);
    return CLI_OK;
}

const struct cli_command cli_command_audit_head = {
    .name = "audit head",
    .summary = "Show the hash of the last seal",
    .operands = "",
    .details = "Noted elsewhere, it proves later that the chain was not cut off or made anew: see "
               "`audit verify --head`.",
    .run = show_head,
};
