/* holdfast tenant grant, revoke
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"

#include "cli/field.h"

#include <stddef.h>

static struct {
    bool read_only;
} args;

static const struct cli_option options[] = {
    CLI_OPT(SWITCH, 0, "read-only", NULL, "it may look, but not trigger, signal and cancel",
            .value = &args.read_only),
    CLI_OPTIONS_END,
};

struct answer {
    const char *tenant;
    const char *role;
    bool granted;
};

static const struct hf__field answer_fields[] = {
    { "tenant", HF__FIELD_TEXT, offsetof(struct answer, tenant) },
    { "role", HF__FIELD_TEXT, offsetof(struct answer, role) },
    { "granted", HF__FIELD_BOOL, offsetof(struct answer, granted) },
    { NULL, HF__FIELD_TEXT, 0 },
};

static int answer_with(const struct cli_session *session, char **operands, bool granted)
{
    struct answer answer = { operands[0], operands[1], granted };
    if (session->json)
        cli_record_json(stdout, answer_fields, &answer);
    return CLI_OK;
}

static int grant(struct cli_session *session, int count, char **operands)
{
    (void)count;
    int status = CLI_OK;
    hf_error err = { 0 };
    if (!cli_open(session, &status))
        return status;
    if (hf_tenant_grant(session->client, operands[0], operands[1], args.read_only, &err) != HF_OK)
        return cli_fail(session, &err);
    return answer_with(session, operands, true);
}

static int revoke(struct cli_session *session, int count, char **operands)
{
    (void)count;
    int status = CLI_OK;
    hf_error err = { 0 };
    if (!cli_open(session, &status))
        return status;
    if (hf_tenant_revoke(session->client, operands[0], operands[1], &err) != HF_OK)
        return cli_fail(session, &err);
    return answer_with(session, operands, false);
}

const struct cli_command cli_command_tenant_grant = {
    .name = "tenant grant",
    .summary = "Make a PostgreSQL role a client of a tenant",
    .operands = "TENANT ROLE",
    .details =
        "In plain SQL the role can then read what is the tenant's, and trigger, signal and cancel "
        "there. Row-level security keeps it from everything else. TENANT * means all.",
    .examples =
        "holdfast tenant grant acme acme_app\nholdfast tenant grant '*' analyst --read-only",
    .min_operands = 2,
    .max_operands = 2,
    .options = options,
    .run = grant,
};

const struct cli_command cli_command_tenant_revoke = {
    .name = "tenant revoke",
    .summary = "Take a tenant away from a PostgreSQL role",
    .operands = "TENANT ROLE",
    .details = "The role loses every right in the schema holdfast.",
    .min_operands = 2,
    .max_operands = 2,
    .run = revoke,
};
