/* The ids of children that a remote worker starts. One that remembers them with the commit that starts them has to choose
 * them; what it chose is not trusted to be new.
 * SPDX-License-Identifier: Apache-2.0 */
#include "server/work.h"

#include "client/ask.h"
#include "client/client.h"
#include "client/ids.h"
#include "util/error.h"

#include <stdlib.h>
#include <string.h>

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(hf_id));
}

static hf_code check_distinct(struct hf__request *request, const hf_id *ids, size_t count,
                              hf_error *err)
{
    hf_id *sorted = hf__arena_calloc(&request->arena, count + 1, sizeof *sorted);
    if (!sorted)
        return hf__nomem(err);
    memcpy(sorted, ids, count * sizeof *ids);
    qsort(sorted, count, sizeof *sorted, by_bytes);
    for (size_t i = 1; i < count; i++)
        if (hf_id_equal(sorted[i - 1], sorted[i]))
            return hf__fail(err, HF_INVALID, "\"child_ids\" has an id twice");
    return HF_OK;
}

/* Runs with one id would share their journal and their mail, also where they are of different tenants. A commit that is sent
 * again finds its own children, and is refused for its version. */
static hf_code check_free(struct hf__request *request, hf_id run, const hf_id *ids, size_t count,
                          hf_error *err)
{
    struct hf__ask ask;
    struct hf__cell *row = hf__ask_begin(&ask, request->client->engine, HF__STMT_TAKEN_IDS);
    for (size_t i = 0; i < count; i++, row = i < count ? hf__table_add(&ask.in) : row) {
        row[0] = hf__uuid(&ids[i]);
        row[1] = hf__number(request->client->tenant_id);
        row[2] = hf__uuid(&run);
    }
    hf_code code = ask.in.failed ? hf__nomem(err) : hf__ask_send(&ask, err);
    if (code == HF_OK && ask.out.nrows > 0)
        code = hf__fail(err, HF_CONFLICT,
                        "\"child_ids\" has the id of a run that is there; make "
                        "new ones");
    hf__ask_end(&ask);
    return code;
}

static hf_code read_ids(const struct hf__chosen_ids *chosen, hf_id *ids, hf_error *err)
{
    for (size_t i = 0; i < chosen->count; i++)
        if (!hf_id_parse(chosen->texts[i], &ids[i]))
            return hf__fail(err, HF_INVALID, "\"child_ids\", item %zu: not a UUID", i + 1);
    return HF_OK;
}

hf_code hf__work_child_ids(struct hf__request *request, const struct hf__chosen_ids *chosen,
                           hf_id run, size_t children, hf_id **out, hf_error *err)
{
    hf_id *ids = *out = hf__arena_calloc(&request->arena, children + 1, sizeof *ids);
    if (!ids)
        return hf__nomem(err);
    for (size_t i = 0; !chosen->texts && i < children; i++)
        ids[i] = hf__new_id();
    if (!chosen->texts)
        return HF_OK;
    if (chosen->count != children)
        return hf__fail(err, HF_INVALID, "\"child_ids\" has %zu ids for %zu children",
                        chosen->count, children);
    hf_code code = read_ids(chosen, ids, err);
    if (code == HF_OK)
        code = check_distinct(request, ids, children, err);
    if (code == HF_OK && children > 0)
        code = check_free(request, run, ids, children, err);
    return code;
}
