/* The leases of a worker that is gone for certain: its name has come back.
 * SPDX-License-Identifier: Apache-2.0 */
#include "client/ask.h"
#include "client/client.h"
#include "util/error.h"

struct ending {
    struct hf__ask *ask;
    struct hf__wake wake;
};

static hf_code add_lanes(struct ending *ending, hf_error *err)
{
    const struct hf__table *found = &ending->ask->out;
    int32_t *lanes = hf__arena_calloc(&ending->ask->arena, (size_t)found->nrows + 1, sizeof *lanes);
    if (!lanes)
        return hf__nomem(err);
    ending->wake.lane_count = 0;
    for (int i = 0; i < found->nrows; i++) {
        int32_t lane = (int32_t)hf__as_number(hf__table_row(found, i)[0]);
        if (i == 0 || lane != lanes[ending->wake.lane_count - 1])
            lanes[ending->wake.lane_count++] = lane;
    }
    ending->wake.lanes = lanes;
    return HF_OK;
}

static hf_code end_all(const struct hf__driver *driver, struct hf__conn *conn, void *arg,
                       hf_error *err)
{
    struct ending *ending = arg;
    struct hf__ask *ask = ending->ask;
    hf__table_init(&ask->out, &ask->arena, ask->out.ncolumns);
    hf_code code = driver->send(conn, HF__STMT_END_LEASES, &ask->in, &ask->out, err);
    if (code == HF_OK)
        code = driver->sync(conn, err);
    return code == HF_OK ? add_lanes(ending, err) : code;
}

hf_code hf__leases_end(struct hf__engine *engine, int tenant, const char *worker, hf_error *err)
{
    struct hf__ask ask;
    struct ending ending = { .ask = &ask };
    struct hf__cell *c = hf__ask_begin(&ask, engine, HF__STMT_END_LEASES);
    c[0] = hf__number_or_null(tenant);
    c[1] = hf__text(worker);
    hf_code code = ask.in.failed ? hf__nomem(err)
                                 : hf__engine_transact(engine, end_all, &ending, &ending.wake, err);
    hf__ask_end(&ask);
    return code;
}
