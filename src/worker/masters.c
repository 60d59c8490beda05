/* The tenants a worker works for.
 * SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

#include "util/alloc.h"
#include "util/error.h"

#include <stdlib.h>
#include <string.h>

static void free_master(struct hf__master *master)
{
    if (!master)
        return;
    hf_close(master->client);
    free(master->name);
    free(master);
}

static hf_code look_up(hf_worker *worker, const char *tenant, int *id, hf_error *err)
{
    struct hf__arena arena = { 0 };
    struct hf__table params, found;
    hf__table_init(&params, &arena, 1);
    hf__table_init(&found, &arena, 2);
    hf__table_add(&params)[0] = hf__text(tenant);
    hf_code code = params.failed ? hf__nomem(err) : HF_OK;
    if (code == HF_OK)
        code = hf__worker_query(worker, HF__STMT_GET_TENANT, &params, &found, err);
    if (code == HF_OK && found.nrows == 0)
        code = hf__fail(err, HF_NOT_FOUND, "there is no tenant \"%s\"; create it first", tenant);
    if (code == HF_OK)
        *id = (int)hf__as_number(hf__table_row(&found, 0)[0]);
    hf__arena_free(&arena);
    return code;
}

static hf_code make_master(struct hf__master **out, hf_worker *worker, const char *tenant,
                           hf_error *err)
{
    struct hf__master *master = hf__calloc(1, sizeof *master);
    if (!master)
        return hf__nomem(err);
    hf_code code = look_up(worker, tenant, &master->id, err);
    if (code == HF_OK && !(master->name = hf__strdup(tenant)))
        code = hf__nomem(err);
    if (code == HF_OK)
        code =
            hf__client_for(&master->client, worker->engine, master->id, tenant, worker->name, err);
    if (code == HF_OK)
        *out = master;
    else
        free_master(master);
    return code;
}

static struct hf__master *find(const hf_worker *worker, const char *tenant)
{
    for (size_t i = 0; i < worker->master_count; i++)
        if (strcmp(worker->masters[i]->name, tenant) == 0)
            return worker->masters[i];
    return NULL;
}

static hf_code add_master(hf_worker *worker, const char *tenant, hf_error *err)
{
    if (find(worker, tenant))
        return HF_OK;
    struct hf__master **masters =
        hf__realloc(worker->masters, (worker->master_count + 1) * sizeof(struct hf__master *));
    if (!masters)
        return hf__nomem(err);
    worker->masters = masters;
    hf_code code = make_master(&masters[worker->master_count], worker, tenant, err);
    if (code == HF_OK)
        worker->master_count++;
    return code;
}

static hf_code add_all(hf_worker *worker, hf_error *err)
{
    hf_tenants *tenants = NULL;
    hf_code code = hf_tenant_list(worker->client, &tenants, err);
    for (size_t i = 0; code == HF_OK && i < tenants->count; i++)
        if (!tenants->items[i].disabled)
            code = add_master(worker, tenants->items[i].name, err);
    hf_tenants_free(tenants);
    return code;
}

hf_code hf__masters_resolve(hf_worker *worker, hf_error *err)
{
    if (worker->tenant_count == 0)
        return add_master(worker, worker->client->tenant, err);
    hf_code code = HF_OK;
    for (size_t i = 0; code == HF_OK && i < worker->tenant_count; i++) {
        if (strcmp(worker->tenants[i], "*") == 0) {
            worker->all_tenants = true;
            code = add_all(worker, err);
        } else {
            code = add_master(worker, worker->tenants[i], err);
        }
    }
    return code;
}

const struct hf__master *hf__master_known(const hf_worker *worker, int id)
{
    for (size_t i = 0; i < worker->master_count; i++)
        if (worker->masters[i]->id == id)
            return worker->masters[i];
    return NULL;
}

const struct hf__master *hf__master_add(hf_worker *worker, const char *tenant)
{
    return add_master(worker, tenant, NULL) == HF_OK ? find(worker, tenant) : NULL;
}

void hf__masters_leave(hf_worker *worker)
{
    if (atomic_fetch_sub(&worker->master_users, 1) != 1)
        return;
    for (size_t i = 0; i < worker->master_count; i++)
        free_master(worker->masters[i]);
    free(worker->masters);
    worker->masters = NULL;
    worker->master_count = 0;
}
