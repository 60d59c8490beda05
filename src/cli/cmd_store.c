/* holdfast migrate, holdfast purge
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/field.h"
#include "cli/terminal.h"

#include <inttypes.h>

static bool check_only;

static const struct cli_option migrate_options[] = {
    CLI_OPT(SWITCH, 0, "check", NULL,
            "change nothing; exit code 5 if the schema is too old or too new for this program",
            .value = &check_only),
    CLI_OPTIONS_END,
};

struct schema {
    const char *store;
    int schema;
    int newest;
};

static const struct hf__field schema_fields[] = {
    { "store", HF__FIELD_TEXT, offsetof(struct schema, store) },
    { "schema", HF__FIELD_INT, offsetof(struct schema, schema) },
    { "newest", HF__FIELD_INT, offsetof(struct schema, newest) },
    { NULL, HF__FIELD_TEXT, 0 },
};

/* A newer schema that this program must not use was refused when the store was opened. */
static void tell(const struct schema *schema)
{
    if (schema->schema > schema->newest)
        printf(
            "%s has schema version %d, newer than %d, the newest that this program knows; it can "
            "go on using it\n",
            schema->store, schema->schema, schema->newest);
    else
        printf("%s has schema version %d, which is up to date\n", schema->store, schema->schema);
}

static int migrate(struct cli_session *session, int count, char **operands)
{
    (void)count, (void)operands;
    int status = CLI_OK;
    hf_error err = { 0 };
    struct schema schema = { .store = cli_store_name(session) };
    if (!(check_only ? cli_open_unmigrated(session, &status) : cli_open(session, &status)))
        return status;
    if (hf_schema(session->client, &schema.schema, &schema.newest, &err) != HF_OK)
        return cli_fail(session, &err);
    if (session->json)
        cli_record_json(stdout, schema_fields, &schema);
    else if (!session->quiet)
        tell(&schema);
    return CLI_OK;
}

const struct cli_command cli_command_migrate = {
    .name = "migrate",
    .summary = "Create the store or bring its schema up to date",
    .operands = "",
    .details = "Every command that opens a store does this by itself; this one does nothing else. "
               "Running workers of the version before go on meanwhile.",
    .examples = "holdfast --store sqlite:orders.db migrate\nholdfast migrate --check",
    .options = migrate_options,
    .creates = true,
    .run = migrate,
};

static struct {
    int64_t older_than;
    unsigned given;
    const char *workflow;
    bool yes, dry_run;
} purge_args;

static const struct cli_option purge_options[] = {
    CLI_OPT(DURATION, 0, "older-than", "DURATION",
            "ended or deleted so long ago, with its unit; required",
            .value = &purge_args.older_than, .unit = true, .mask = &purge_args.given, .bit = 1),
    CLI_OPT(TEXT, 'w', "workflow", "NAME", "of this workflow only", .value = &purge_args.workflow),
    CLI_OPT(SWITCH, 'n', "dry-run", NULL, "remove nothing: count the runs that would go",
            .value = &purge_args.dry_run),
    CLI_OPT(SWITCH, 'y', "yes", NULL, "do not ask before removing them", .value = &purge_args.yes),
    CLI_OPTIONS_END,
};

struct purged {
    bool dry_run;
    int64_t
        matched; /* before it began; with --yes nobody counts them before, and these are the removed */
    int64_t removed;
};

static const struct hf__field purged_fields[] = {
    { "dry_run", HF__FIELD_BOOL, offsetof(struct purged, dry_run) },
    { "matched", HF__FIELD_INT64, offsetof(struct purged, matched) },
    { "removed", HF__FIELD_INT64, offsetof(struct purged, removed) },
    { NULL, HF__FIELD_TEXT, 0 },
};

static bool is_confirmed(int64_t count)
{
    char question[100];
    if (count == 0)
        return true;
    snprintf(question, sizeof question, "remove %" PRId64 " run%s for good?", count,
             count == 1 ? "" : "s");
    return cli_ask(question);
}

static void show_purged(const struct cli_session *session, const struct purged *purged)
{
    const char *s = (purged->dry_run ? purged->matched : purged->removed) == 1 ? "" : "s";
    if (session->json)
        cli_record_json(stdout, purged_fields, purged);
    else if (session->quiet)
        return;
    else if (purged->dry_run)
        printf("%" PRId64 " run%s would be removed; nothing was changed\n", purged->matched, s);
    else
        printf("%" PRId64 " run%s removed\n", purged->removed, s);
}

static int purge_runs(struct cli_session *session)
{
    int status = CLI_OK;
    hf_error err = { 0 };
    struct purged purged = { .dry_run = purge_args.dry_run };
    if (!cli_open(session, &status))
        return status;
    int64_t before = cli_now(session) - purge_args.older_than;
    before = before > 0 ? before : 1;
    hf_code code = HF_OK;
    if (purged.dry_run || !purge_args.yes)
        code = hf_purge_count(session->client, &purged.matched, purge_args.workflow, before, &err);
    if (code == HF_OK && !purged.dry_run) {
        if (!purge_args.yes && !is_confirmed(purged.matched))
            return CLI_FAILED;
        code = hf_purge(session->client, &purged.removed, purge_args.workflow, before, &err);
        purged.matched = purge_args.yes ? purged.removed : purged.matched;
    }
    if (code == HF_OK || purged.removed > 0)
        show_purged(session, &purged);
    return code == HF_OK ? CLI_OK : cli_fail(session, &err);
}

static int purge(struct cli_session *session, int count, char **operands)
{
    (void)count, (void)operands;
    if (!purge_args.given)
        return cli_usage(session, "how old? give --older-than, as in --older-than 30d");
    if (!purge_args.yes && !purge_args.dry_run && !cli_can_ask())
        return cli_usage(session,
                         "this would remove runs for good: add --yes, or --dry-run to count");
    return purge_runs(session);
}

const struct cli_command cli_command_purge = {
    .name = "purge",
    .summary = "Remove old ended or deleted runs for good",
    .operands = "",
    .details =
        "Removes them with their journal and all that belongs to them, in small batches. "
        "Runs that have not ended are never touched. It tells how many there are and asks, or "
        "wants --yes; --dry-run only counts them.",
    .examples = "holdfast purge --older-than 30d --dry-run\n"
                "holdfast purge --older-than 7d --workflow billing.charge.v1 --yes",
    .options = purge_options,
    .run = purge,
};
