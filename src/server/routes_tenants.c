/* Tenants.
 * SPDX-License-Identifier: Apache-2.0 */
#include "server/inner.h"
#include "server/routes.h"

static hf_code list(struct hf__request *request, hf_error *err)
{
    hf_tenants *found = NULL;
    hf_code code = hf_tenant_list(request->client, &found, err);
    if (code == HF_OK)
        code = hf__reply_list(request, hf__tenant_fields, found->items, found->count,
                              sizeof *found->items, NULL, err);
    hf_tenants_free(found);
    return code;
}

static hf_code put(struct hf__request *request, hf_error *err)
{
    hf_code code = hf_tenant_create(request->client, request->args[0], err);
    return code == HF_OK ? hf__reply_nothing(request) : code;
}

/* What is known of the tenant's tokens is looked up again: from now on they are worth nothing, or something. */
static hf_code set_disabled(struct hf__request *request, bool disabled, hf_error *err)
{
    hf_code code = hf_tenant_disable(request->client, request->args[0], disabled, err);
    if (code != HF_OK)
        return code;
    hf__access_forget(request->server->access);
    return hf__reply_nothing(request);
}

static hf_code disable(struct hf__request *request, hf_error *err)
{
    return set_disabled(request, true, err);
}

static hf_code enable(struct hf__request *request, hf_error *err)
{
    return set_disabled(request, false, err);
}

#define NOTHING HF__ANSWERS(204, NONE, NULL, NULL)

const struct hf__route hf__tenant_routes[] = {
    HF__ROUTE("tenants", "GET", "/v1/tenants", "listTenants", ROOT, list, "List tenants",
              HF__ANSWERS(200, LIST, "Tenant", hf__tenant_fields)),
    HF__ROUTE("tenants", "PUT", "/v1/tenants/{name}", "putTenant", ROOT, put,
              "Create a tenant; one that is there stays as it is", NOTHING),
    HF__ROUTE("tenants", "POST", "/v1/tenants/{name}/disable", "disableTenant", ROOT, disable,
              "Refuse a tenant's triggers and begin no more of its runs", NOTHING),
    HF__ROUTE("tenants", "POST", "/v1/tenants/{name}/enable", "enableTenant", ROOT, enable,
              "Undo it", NOTHING),
    HF__ROUTES_END,
};
