/* Roles of a PostgreSQL database as clients of a tenant.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "client/ask.h"
#include "client/client.h"
#include "util/error.h"
#include "util/text.h"

#define ALL_TENANTS "*"

enum { MAX_ROLE = 63 }; /* bytes of a role's name that PostgreSQL keeps */

static hf_code check(hf_client *client, const char *tenant, const char *role, hf_error *err)
{
    if (!hf__engine_driver(client->engine)->statements[HF__STMT_GRANT_TENANT].sql)
        return hf__fail(err, HF_INVALID,
                        "roles are PostgreSQL's: whoever can open a SQLite file can read all of "
                        "it; let its clients go through a server, with tokens");
    hf_code code = tenant && strcmp(tenant, ALL_TENANTS) == 0
                       ? HF_OK
                       : hf__name_check("tenant", tenant ? tenant : "", err);
    return code == HF_OK ? hf__label_check("role", role ? role : "", MAX_ROLE, err) : code;
}

/* What holdfast.tenant_grant and holdfast.tenant_revoke give. */
static hf_code read_outcome(const struct hf__ask *ask, const char *tenant, const char *role,
                            hf_error *err)
{
    const char *outcome = ask->out.nrows > 0 ? hf__as_text(hf__table_row(&ask->out, 0)[0]) : NULL;
    if (!outcome)
        return hf__fail(err, HF_INTERNAL, "the store did not say what became of the role");
    if (strcmp(outcome, "granted") == 0 || strcmp(outcome, "revoked") == 0)
        return HF_OK;
    if (strcmp(outcome, "no_role") == 0)
        return hf__fail(err, HF_NOT_FOUND, "the database has no role \"%s\": create it first",
                        role);
    if (strcmp(outcome, "no_tenant") == 0)
        return hf__fail(err, HF_NOT_FOUND, "there is no tenant \"%s\"", tenant);
    if (strcmp(outcome, "not_granted") == 0)
        return hf__fail(err, HF_NOT_FOUND, "the role \"%s\" is no client of \"%s\"", role, tenant);
    if (strcmp(outcome, "taken") == 0)
        return hf__fail(err, HF_CONFLICT,
                        "the role \"%s\" is a client of another tenant: revoke that first", role);
    if (strcmp(outcome, "not_held_back") == 0)
        return hf__fail(err, HF_INVALID,
                        "row-level security does not hold for \"%s\": it is, or is a member of, a "
                        "superuser, the schema's owner, a role with BYPASSRLS, or one that "
                        "may write to holdfast.run",
                        role);
    return hf__fail(err, HF_INVALID, "only the owner of the schema can grant and revoke tenants");
}

hf_code hf_tenant_grant(hf_client *client, const char *tenant, const char *role, bool read_only,
                        hf_error *err)
{
    struct hf__ask ask;
    hf_code code = check(client, tenant, role, err);
    if (code != HF_OK)
        return code;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_GRANT_TENANT);
    c[0] = hf__text(tenant);
    c[1] = hf__text(role);
    c[2] = hf__number(read_only);
    c[3] = hf__text(client->actor);
    code = hf__ask_send(&ask, err);
    if (code == HF_OK)
        code = read_outcome(&ask, tenant, role, err);
    hf__ask_end(&ask);
    return code;
}

hf_code hf_tenant_revoke(hf_client *client, const char *tenant, const char *role, hf_error *err)
{
    struct hf__ask ask;
    hf_code code = check(client, tenant, role, err);
    if (code != HF_OK)
        return code;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_REVOKE_TENANT);
    c[0] = hf__text(tenant);
    c[1] = hf__text(role);
    code = hf__ask_send(&ask, err);
    if (code == HF_OK)
        code = read_outcome(&ask, tenant, role, err);
    hf__ask_end(&ask);
    return code;
}
