/* Tenants.
 * SPDX-License-Identifier: Apache-2.0 */
#include "client/answer.h"
#include "client/ask.h"
#include "client/client.h"
#include "client/coverage.h"
#include "util/error.h"
#include "util/text.h"

hf_code hf_tenant_create(hf_client *client, const char *name, hf_error *err)
{
    hf_code code = hf__name_check("tenant", name ? name : "", err);
    if (code != HF_OK)
        return code;
    struct hf__ask ask;
    hf__ask_begin(&ask, client->engine, HF__STMT_PUT_TENANT)[0] = hf__text(name);
    code = hf__ask_send(&ask, err);
    hf__ask_end(&ask);
    return code;
}

hf_code hf_tenant_disable(hf_client *client, const char *name, bool disabled, hf_error *err)
{
    hf_code code = hf__name_check("tenant", name ? name : "", err);
    if (code != HF_OK)
        return code;
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_SET_TENANT_DISABLED);
    c[0] = hf__text(name);
    c[1] = hf__number(disabled);
    code = hf__ask_send(&ask, err);
    if (code == HF_OK && ask.out.nrows == 0)
        code = hf__fail(err, HF_NOT_FOUND, "there is no tenant \"%s\"", name);
    hf__ask_end(&ask);
    return code == HF_OK ? hf__tell_workers(client, err) : code;
}

hf_code hf_tenant_list(hf_client *client, hf_tenants **out, hf_error *err)
{
    struct hf__ask ask;
    hf__ask_begin(&ask, client->engine, HF__STMT_LIST_TENANTS);
    hf_tenants *list = hf__answer_new(sizeof *list);
    hf_code code = hf__ask_into(&ask, list, err);
    if (code == HF_OK) {
        list->count = (size_t)ask.out.nrows;
        list->items =
            hf__arena_calloc(hf__answer_arena(list), list->count + 1, sizeof *list->items);
        code = list->items ? HF_OK : hf__nomem(err);
    }
    for (size_t i = 0; code == HF_OK && i < list->count; i++) {
        const struct hf__cell *c = hf__table_row(&ask.out, (int)i);
        list->items[i] =
            (hf_tenant){ hf__as_text(c[0]), hf__as_number(c[1]) != 0, hf__as_number(c[2]) };
    }
    if (code == HF_OK)
        *out = list;
    else
        hf__answer_free(list);
    hf__ask_end(&ask);
    return code;
}
