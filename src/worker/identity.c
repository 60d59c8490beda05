/* Who the worker is, and what it says of itself.
 * SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

#include "client/fit.h"
#include "util/alloc.h"
#include "util/buffer.h"
#include "util/error.h"
#include "util/random.h"
#include "util/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_TTL HF_SECONDS(40) /* until the first heartbeat says more */
#define NAME_MOST 255

static hf_code make_name(hf_worker *worker, hf_error *err)
{
    struct hf__random random;
    struct hf__buffer name = { 0 };
    if (!hf__random_seed_os(&random))
        return hf__fail(err, HF_INTERNAL, "the system has no random numbers to give");
    hf__buffer_addf(&name, "%s:%ld:%08" PRIx32, worker->host, (long)getpid(),
                    (uint32_t)hf__random_u64(&random));
    worker->name = hf__buffer_take(&name);
    return worker->name ? HF_OK : hf__nomem(err);
}

hf_code hf__identity_choose(hf_worker *worker, const char *name, hf_error *err)
{
    char host[256] = "localhost";
    if (gethostname(host, sizeof host - 1) != 0 || !hf__utf8_valid(host, strlen(host)))
        strcpy(host, "localhost");
    if (!(worker->host = hf__strdup(host)))
        return hf__nomem(err);
    if (!name)
        return make_name(worker, err);
    worker->named = true;
    hf_code code = hf__label_check("worker name", name, NAME_MOST, err);
    if (code == HF_OK && !(worker->name = hf__strdup(name)))
        code = hf__nomem(err);
    return code;
}

static char *tenants_json(const hf_worker *worker)
{
    struct hf__buffer json = { 0 };
    if (worker->all_tenants) {
        hf__buffer_add_text(&json, "[\"*\"]");
        return hf__buffer_take(&json);
    }
    hf__buffer_add_text(&json, "[");
    for (size_t i = 0; i < worker->master_count; i++) {
        const char *name = worker->masters[i]->name;
        hf__buffer_add_text(&json, i ? "," : "");
        hf__buffer_add_json_string(&json, name, strlen(name));
    }
    hf__buffer_add_text(&json, "]");
    return hf__buffer_take(&json);
}

hf_code hf__identity_register(hf_worker *worker, hf_error *err)
{
    struct hf__arena arena = { 0 };
    struct hf__table params;
    hf__table_init(&params, &arena, 9);
    struct hf__cell *row = hf__table_add(&params);
    row[0] = hf__text(worker->name);
    row[1] = hf__text(worker->tenants_json);
    row[2] = hf__text(worker->serves_json);
    row[3] = hf__text(worker->host);
    row[4] = hf__number(getpid());
    row[5] = hf__text(hf_library_version());
    row[6] = hf__number(worker->threads);
    row[7] = hf__number(FIRST_TTL + 3 * worker->heartbeat);
    row[8] = hf__number(0);
    hf_code code = params.failed ? hf__nomem(err) : HF_OK;
    if (code == HF_OK)
        code = hf__worker_query(worker, HF__STMT_PUT_WORKER, &params, NULL, err);
    hf__arena_free(&arena);
    return code == HF_OK
               ? hf__fit_try_again(worker->engine, worker->tenants_json, worker->serves_json, err)
               : code;
}

hf_code hf__identity_describe(hf_worker *worker, hf_error *err)
{
    free(worker->tenants_json);
    free(worker->serves_json);
    worker->tenants_json = tenants_json(worker);
    worker->serves_json = hf__lanes_patterns_json(worker);
    return worker->tenants_json && worker->serves_json ? HF_OK : hf__nomem(err);
}

void hf__identity_remove(hf_worker *worker)
{
    struct hf__arena arena = { 0 };
    struct hf__table params;
    hf__table_init(&params, &arena, 1);
    hf__table_add(&params)[0] = hf__text(worker->name);
    if (!params.failed)
        (void)!hf__worker_query(worker, HF__STMT_REMOVE_WORKER, &params, NULL, NULL);
    hf__arena_free(&arena);
}
