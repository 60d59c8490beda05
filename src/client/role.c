/* The roles of tokens: their names, and what each includes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "client/role.h"

#include <string.h>

#include "util/error.h"

static const struct role {
    hf_role role;
    const char *name;
    unsigned includes;
} roles_known[] = {
#define ROW(symbol, bit, name, includes, meaning) { symbol, name, includes },
    HF_ROLES(ROW)
#undef ROW
};

enum { ROLE_COUNT = sizeof roles_known / sizeof *roles_known };

const char *hf_role_name(hf_role role)
{
    for (int i = 0; i < ROLE_COUNT; i++)
        if (roles_known[i].role == role)
            return roles_known[i].name;
    return NULL;
}

bool hf_role_allows(unsigned roles, unsigned needed)
{
    unsigned has = roles;
    for (int i = 0; i < ROLE_COUNT; i++)
        if (roles & roles_known[i].role)
            has |= roles_known[i].includes;
    return (needed & ~has) == 0;
}

bool hf__roles_known(unsigned roles)
{
    for (int i = 0; i < ROLE_COUNT; i++)
        roles &= ~(unsigned)roles_known[i].role;
    return roles == 0;
}

void hf__roles_format(unsigned roles, const char *quote, char out[HF__ROLES_TEXT])
{
    char *end = out;
    *end = '\0';
    for (int i = 0; i < ROLE_COUNT; i++) {
        if (!(roles & roles_known[i].role))
            continue;
        end = stpcpy(end, end == out ? "" : ",");
        end = stpcpy(stpcpy(stpcpy(end, quote), roles_known[i].name), quote);
    }
}

static unsigned find(const char *name, size_t length)
{
    for (int i = 0; i < ROLE_COUNT; i++)
        if (strlen(roles_known[i].name) == length && memcmp(roles_known[i].name, name, length) == 0)
            return roles_known[i].role;
    return 0;
}

hf_code hf_roles_parse(const char *names, unsigned *out, hf_error *err)
{
    unsigned roles = 0;
    for (const char *at = names ? names : "";; at++) {
        size_t length = strcspn(at, ",");
        unsigned role = find(at, length);
        if (!role) {
            char all[HF__ROLES_TEXT];
            hf__roles_format(~0u, "", all);
            return hf__fail(err, HF_INVALID, "no role is named \"%.*s\"; there are %s",
                            (int)(length < 60 ? length : 60), at, all);
        }
        roles |= role;
        at += length;
        if (!*at)
            break;
    }
    *out = roles;
    return HF_OK;
}
