/* Who works for a tenant.
 * SPDX-License-Identifier: Apache-2.0 */
#include "client/answer.h"
#include "client/ask.h"
#include "client/client.h"
#include "client/coverage.h"
#include "util/error.h"

static void read_worker(hf_worker_info *worker, const struct hf__cell *c)
{
    worker->name = hf__as_text(c[0]);
    worker->tenants = hf__as_text(c[1]);
    worker->serves = hf__as_text(c[2]);
    worker->host = hf__as_text(c[3]);
    worker->pid = (int)hf__as_number(c[4]);
    worker->program = hf__as_text(c[5]);
    worker->threads = (int)hf__as_number(c[6]);
    worker->running = hf__as_number(c[7]);
    worker->idle = hf__as_number(c[8]) != 0;
    worker->draining = hf__as_number(c[9]) != 0;
    worker->started_at = hf__as_number(c[10]);
    worker->seen_at = hf__as_number(c[11]);
    worker->live = hf__as_number(c[12]) != 0;
    worker->stuck = (int)hf__as_number(c[13]);
}

/* A worker may serve tenants whose names are not for this client to know. */
static hf_code hide_others(hf_client *client, hf_worker_info *worker, struct hf__arena *arena,
                           hf_error *err)
{
    if (!hf__tenant_listed(worker->tenants, "*"))
        worker->tenants = hf__arena_printf(arena, "[\"%s\"]", client->tenant);
    return worker->tenants ? HF_OK : hf__nomem(err);
}

hf_code hf_workers(hf_client *client, hf_worker_list **out, hf_error *err)
{
    struct hf__ask ask;
    hf__ask_begin(&ask, client->engine, HF__STMT_LIST_WORKERS)[0] = hf__text(client->tenant);
    hf_worker_list *list = hf__answer_new(sizeof *list);
    hf_code code = hf__ask_into(&ask, list, err);
    if (code == HF_OK) {
        list->items = hf__arena_calloc(hf__answer_arena(list), (size_t)ask.out.nrows + 1,
                                       sizeof *list->items);
        code = list->items ? HF_OK : hf__nomem(err);
    }
    for (int i = 0; code == HF_OK && i < ask.out.nrows; i++) {
        const struct hf__cell *c = hf__table_row(&ask.out, i);
        if (!hf__tenant_listed(hf__as_text(c[1]), client->tenant))
            continue;
        read_worker(&list->items[list->count], c);
        code = hide_others(client, &list->items[list->count++], hf__answer_arena(list), err);
    }
    if (code == HF_OK)
        *out = list;
    else
        hf__answer_free(list);
    hf__ask_end(&ask);
    return code;
}
