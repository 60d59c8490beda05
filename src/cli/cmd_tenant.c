/* holdfast tenant create, disable, enable, list
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/table.h"
#include "util/alloc.h"

static int tenant_fail(struct cli_session *session, const char *name, const hf_error *err)
{
    if (err->code == HF_NOT_FOUND)
        return cli_failf(session, err->code,
                         "no tenant named %.100s: create it with `holdfast tenant create %.100s`",
                         name, name);
    return cli_fail(session, err);
}

struct answer {
    const char *name;
    bool disabled;
};

static const struct hf__field answer_fields[] = {
    { "name", HF__FIELD_TEXT, offsetof(struct answer, name) },
    { "disabled", HF__FIELD_BOOL, offsetof(struct answer, disabled) },
    { NULL, HF__FIELD_TEXT, 0 },
};

static int answer_with(const struct cli_session *session, const char *name, bool disabled)
{
    struct answer answer = { name, disabled };
    if (session->json)
        cli_record_json(stdout, answer_fields, &answer);
    return CLI_OK;
}

static int create(struct cli_session *session, int count, char **operands)
{
    (void)count;
    int status = CLI_OK;
    hf_error err = { 0 };
    if (!cli_open(session, &status))
        return status;
    if (hf_tenant_create(session->client, operands[0], &err) != HF_OK)
        return tenant_fail(session, operands[0], &err);
    return answer_with(session, operands[0], false);
}

static int set_disabled(struct cli_session *session, const char *name, bool disabled)
{
    int status = CLI_OK;
    hf_error err = { 0 };
    if (!cli_open(session, &status))
        return status;
    if (hf_tenant_disable(session->client, name, disabled, &err) != HF_OK)
        return tenant_fail(session, name, &err);
    return answer_with(session, name, disabled);
}

static int disable(struct cli_session *session, int count, char **operands)
{
    (void)count;
    return set_disabled(session, operands[0], true);
}

static int enable(struct cli_session *session, int count, char **operands)
{
    (void)count;
    return set_disabled(session, operands[0], false);
}

static char *state_text(struct cli_session *session, const void *record)
{
    (void)session;
    return hf__strdup(((const hf_tenant *)record)->disabled ? "disabled" : "enabled");
}

static const struct cli_column columns[] = {
    { .header = "NAME", .field = "name", .shrinks = true },
    { .header = "STATUS", .make = state_text },
    { .header = "CREATED", .field = "created_at" },
    { .header = NULL },
};

static int list(struct cli_session *session, int count, char **operands)
{
    (void)count, (void)operands;
    int status = CLI_OK;
    hf_error err = { 0 };
    hf_tenants *tenants = NULL;
    if (!cli_open(session, &status))
        return status;
    if (hf_tenant_list(session->client, &tenants, &err) != HF_OK)
        return cli_fail(session, &err);
    cli_table_print(session, columns, hf__tenant_fields, tenants->items, sizeof *tenants->items,
                    tenants->count, true);
    hf_tenants_free(tenants);
    return CLI_OK;
}

const struct cli_command cli_command_tenant_create = {
    .name = "tenant create",
    .summary = "Create a tenant",
    .operands = "NAME",
    .details = "Tenants share a store and never see each other. Choose one with --tenant.",
    .examples = "holdfast tenant create acme\nholdfast --tenant acme list",
    .min_operands = 1,
    .max_operands = 1,
    .creates = true,
    .run = create,
};

const struct cli_command cli_command_tenant_disable = {
    .name = "tenant disable",
    .summary = "Refuse all work of a tenant",
    .operands = "NAME",
    .details = "Nothing is lost; `tenant enable` lets it go on.",
    .min_operands = 1,
    .max_operands = 1,
    .run = disable,
};

const struct cli_command cli_command_tenant_enable = {
    .name = "tenant enable",
    .summary = "Let a disabled tenant work again",
    .operands = "NAME",
    .min_operands = 1,
    .max_operands = 1,
    .run = enable,
};

const struct cli_command cli_command_tenant_list = {
    .name = "tenant list",
    .summary = "List tenants",
    .operands = "",
    .run = list,
};
