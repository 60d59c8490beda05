/* holdfast token create, list, revoke
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/table.h"
#include "util/alloc.h"
#include "util/buffer.h"
#include "util/error.h"

#include <holdfast/token.h>

#include <string.h>

static struct {
    struct cli_texts roles;
    struct cli_texts task_roles;
    int64_t lifetime;
    int64_t expires_at;
} args;

static const struct cli_option options[] = {
    CLI_OPT(TEXTS, 0, "role", "ROLE",
            "read, trigger, work, operate, admin or root; several times or with commas",
            .value = &args.roles),
    CLI_OPT(TEXTS, 0, "task-role", "ROLE",
            "only tasks with this role can be claimed and answered with it; may be repeated",
            .value = &args.task_roles),
    CLI_OPT(DURATION, 0, "expires", "DURATION", "good for so long, as in 90d; default for ever",
            .value = &args.lifetime),
    CLI_OPT(TIME, 0, "expires-at", "TIME", "good until then, instead of --expires",
            .value = &args.expires_at),
    CLI_OPTIONS_END,
};

/* ---- create ---- */

struct answer {
    hf_id id;
    const char *name;
    const char *secret;
    int64_t expires_at;
};

static const struct hf__field answer_fields[] = {
    { "id", HF__FIELD_ID, offsetof(struct answer, id) },
    { "name", HF__FIELD_TEXT, offsetof(struct answer, name) },
    { "secret", HF__FIELD_TEXT, offsetof(struct answer, secret) },
    { "expires_at", HF__FIELD_TIME, offsetof(struct answer, expires_at) },
    { NULL, HF__FIELD_TEXT, 0 },
};

/* False: the mistake was shown. */
static bool spec_from_options(struct cli_session *session, hf_token_spec *spec, int *status)
{
    hf_error err = { 0 };
    if (args.roles.count == 0)
        *status = cli_usage(session, "say what it may do: --role read, for example");
    else if (args.lifetime && args.expires_at)
        *status = cli_usage(session, "give --expires or --expires-at, not both");
    for (size_t i = 0; *status == CLI_OK && i < args.roles.count; i++) {
        unsigned roles = 0;
        if (hf_roles_parse(args.roles.items[i], &roles, &err) != HF_OK)
            *status = cli_usage(session, "%s", err.message);
        spec->roles |= roles;
    }
    spec->lifetime = args.lifetime;
    spec->expires_at = args.expires_at;
    return *status == CLI_OK;
}

static void show_secret(const struct cli_session *session, const char *name,
                        const hf_token_made *made)
{
    struct answer answer = { made->id, name, made->secret, made->expires_at };
    if (session->json)
        cli_record_json(stdout, answer_fields, &answer);
    else
        printf("%s\n", made->secret);
    cli_notice(session, "this is the only time that the secret is shown: keep it where its user "
                        "finds it, and nowhere else");
}

static int create(struct cli_session *session, int count, char **operands)
{
    (void)count;
    int status = CLI_OK;
    hf_error err = { 0 };
    hf_token_made made;
    hf_token_spec spec = HF_TOKEN_INIT;
    spec.name = operands[0];
    struct hf__buffer task_roles = { 0 };
    if (!spec_from_options(session, &spec, &status) || !cli_open(session, &status))
        return status;
    if (args.task_roles.count > 0)
        hf__buffer_add_json_strings(&task_roles, args.task_roles.items, args.task_roles.count);
    spec.task_roles = task_roles.data;
    hf_code code =
        task_roles.failed ? hf__nomem(&err) : hf_token_create(session->client, &made, &spec, &err);
    hf__buffer_free(&task_roles);
    if (code != HF_OK)
        return cli_fail(session, &err);
    show_secret(session, operands[0], &made);
    explicit_bzero(&made, sizeof made);
    return CLI_OK;
}

/* ---- list ---- */

static char *state_text(struct cli_session *session, const void *record)
{
    const hf_token *token = record;
    if (token->revoked_at)
        return hf__strdup("revoked");
    bool expired = token->expires_at && token->expires_at <= cli_now(session);
    return hf__strdup(expired ? "expired" : "good");
}

static const struct cli_column columns[] = {
    { .header = "ID", .field = "id" },
    { .header = "NAME", .field = "name", .shrinks = true },
    { .header = "ROLES", .field = "roles" },
    { .header = "TASK ROLES", .field = "task_roles" },
    { .header = "STATE", .make = state_text },
    { .header = "EXPIRES", .field = "expires_at" },
    { .header = "CREATED", .field = "created_at" },
    { .header = "BY", .field = "created_by", .shrinks = true },
    { .header = NULL },
};

static int list(struct cli_session *session, int count, char **operands)
{
    (void)count, (void)operands;
    int status = CLI_OK;
    hf_error err = { 0 };
    hf_tokens *tokens = NULL;
    if (!cli_open(session, &status))
        return status;
    if (hf_token_list(session->client, &tokens, &err) != HF_OK)
        return cli_fail(session, &err);
    cli_table_print(session, columns, hf__token_fields, tokens->items, sizeof *tokens->items,
                    tokens->count, true);
    if (tokens->count == 0)
        cli_notice(session, "no tokens in %s (tenant %s); make one with `holdfast token create`",
                   cli_store_name(session), cli_tenant(session));
    hf_tokens_free(tokens);
    return CLI_OK;
}

/* ---- revoke ---- */

struct revoked {
    hf_id id;
    bool revoked;
};

static const struct hf__field revoked_fields[] = {
    { "id", HF__FIELD_ID, offsetof(struct revoked, id) },
    { "revoked", HF__FIELD_BOOL, offsetof(struct revoked, revoked) },
    { NULL, HF__FIELD_TEXT, 0 },
};

static int revoke(struct cli_session *session, int count, char **operands)
{
    (void)count;
    int status = CLI_OK;
    hf_error err = { 0 };
    struct revoked answer = { .revoked = true };
    if (!hf_id_parse(operands[0], &answer.id))
        return cli_usage(session, "\"%.60s\" is no id of a token; see `holdfast token list`",
                         operands[0]);
    if (!cli_open(session, &status))
        return status;
    if (hf_token_revoke(session->client, answer.id, &err) != HF_OK)
        return cli_fail(session, &err);
    if (session->json)
        cli_record_json(stdout, revoked_fields, &answer);
    return CLI_OK;
}

const struct cli_command cli_command_token_create = {
    .name = "token create",
    .summary = "Make an API token for the tenant",
    .operands = "NAME",
    .details =
        "NAME says who uses it, and is the actor in the journal. The secret is printed once; the "
        "store keeps a hash of it.\n"
        "Roles: read sees; trigger starts and signals; work is for remote workers; operate "
        "cancels, pauses, retries, deletes and sets limits. Each of them includes read, and admin "
        "all of them. Root manages tenants, and is included in no other role.",
    .examples = "holdfast --tenant acme token create web --role trigger --expires 90d",
    .min_operands = 1,
    .max_operands = 1,
    .options = options,
    .run = create,
    .creates = true,
};

const struct cli_command cli_command_token_list = {
    .name = "token list",
    .summary = "List the tenant's API tokens",
    .operands = "",
    .run = list,
};

const struct cli_command cli_command_token_revoke = {
    .name = "token revoke",
    .summary = "Revoke an API token at once",
    .operands = "ID",
    .min_operands = 1,
    .max_operands = 1,
    .run = revoke,
};
