/* SPDX-License-Identifier: Apache-2.0 */
#include "client/idle_lanes.h"

#include "client/ask.h"
#include "util/error.h"

#define PAGE 1000

/* Gives those of the lanes that it could lock. SQLite's transaction keeps all others from writing already. */
static hf_code lock(const struct hf__driver *driver, struct hf__conn *conn,
                    const struct hf__table *lanes, struct hf__table *locked, hf_error *err)
{
    if (!driver->statements[HF__STMT_LOCK_LANES].sql) {
        *locked = *lanes;
        return HF_OK;
    }
    hf_code code = driver->send(conn, HF__STMT_LOCK_LANES, lanes, locked, err);
    return code == HF_OK ? driver->sync(conn, err) : code;
}

hf_code hf__idle_lanes_remove(const struct hf__driver *driver, struct hf__conn *conn, void *arg,
                              hf_error *err)
{
    const struct hf__table *lanes = arg;
    struct hf__table locked;
    hf__table_init(&locked, lanes->arena, 1);
    hf_code code = lock(driver, conn, lanes, &locked, err);
    if (code == HF_OK && locked.nrows > 0)
        code = driver->send(conn, HF__STMT_REMOVE_LANES, &locked, NULL, err);
    return code == HF_OK ? driver->sync(conn, err) : code;
}

hf_code hf__idle_lanes_step(struct hf__engine *engine, int32_t *after, hf_error *err)
{
    struct hf__ask ask;
    struct hf__table idle;
    struct hf__cell *c = hf__ask_begin(&ask, engine, HF__STMT_LOOK_AT_LANES);
    c[0] = hf__number(*after);
    c[1] = hf__number(PAGE);
    hf__table_init(&idle, &ask.arena, 1);
    hf_code code = hf__ask_send(&ask, err);
    for (int i = 0; code == HF_OK && i < ask.out.nrows; i++) {
        const struct hf__cell *lane = hf__table_row(&ask.out, i);
        if (hf__as_number(lane[1]))
            *hf__table_add(&idle) = lane[0];
    }
    if (code == HF_OK && idle.failed)
        code = hf__nomem(err);
    if (code == HF_OK && idle.nrows > 0)
        code = hf__engine_transact(engine, hf__idle_lanes_remove, &idle, NULL, err);
    if (code == HF_OK)
        *after =
            ask.out.nrows < PAGE ? 0 : (int32_t)hf__as_number(hf__table_row(&ask.out, PAGE - 1)[0]);
    hf__ask_end(&ask);
    return code;
}
