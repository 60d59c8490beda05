/* A driver that is the store's own, but fails when it is told to. One fault at most per flush.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "sim.h"
#include "util/error.h"

/* Drivers have no argument of their own: the one world of this process. */
static struct faults *faults;

static hf_code fail(struct faults *f, hf_error *err)
{
    static const struct {
        hf_code code;
        const char *sqlstate;
        const char *message;
    } errors[] = {
        [ERROR_AWAY] = { HF_UNAVAILABLE, "08006", "simulated: the store is away" },
        [ERROR_DATA] = { HF_STORE, "22000", "simulated: the store refused a value" },
        [ERROR_RACE] = { HF_STORE, "40001", "simulated: lost against another flush" },
    };
    f->struck = true;
    f->times--;
    f->countdown = below(f->world, 6);
    hf_code code = hf__fail(err, errors[f->error].code, "%s", errors[f->error].message);
    if (err)
        snprintf(err->sqlstate, sizeof err->sqlstate, "%s", errors[f->error].sqlstate);
    note(f->world, "     ! %s %s the commit", errors[f->error].sqlstate,
         f->kind == FAULT_BEFORE  ? "before"
         : f->kind == FAULT_AFTER ? "after"
                                  : "at");
    return code;
}

/* Time passes at every call. Whether this one fails. */
static bool strikes(struct faults *f)
{
    if (chance(f->world, 10))
        f->world->now += below(f->world, 3000);
    bool here = f->committed ? f->kind == FAULT_AFTER : f->kind == FAULT_BEFORE;
    return here && f->times > 0 && f->countdown-- <= 0;
}

static hf_code begin(struct hf__conn *conn, hf_error *err)
{
    faults->committed = false;
    return strikes(faults) ? fail(faults, err) : hf__sqlite_driver.begin(conn, err);
}

static hf_code send(struct hf__conn *conn, enum hf__stmt stmt, const struct hf__table *params,
                    struct hf__table *result, hf_error *err)
{
    return strikes(faults) ? fail(faults, err)
                           : hf__sqlite_driver.send(conn, stmt, params, result, err);
}

static hf_code sync_sent(struct hf__conn *conn, hf_error *err)
{
    return strikes(faults) ? fail(faults, err) : hf__sqlite_driver.sync(conn, err);
}

static hf_code commit(struct hf__conn *conn, const struct hf__wake *wake, bool *unknown,
                      hf_error *err)
{
    struct faults *f = faults;
    bool now = f->times > 0 && f->countdown-- <= 0;
    if (now && (f->kind == FAULT_REFUSED || f->kind == FAULT_LOST_UNDONE)) {
        hf__sqlite_driver.rollback(conn);
        *unknown = f->kind == FAULT_LOST_UNDONE;
        return fail(f, err);
    }
    hf_code code = hf__sqlite_driver.commit(conn, wake, unknown, err);
    f->committed = code == HF_OK;
    if (code == HF_OK && now && f->kind == FAULT_LOST) {
        *unknown = true;
        return fail(f, err);
    }
    return code;
}

void faults_install(struct world *world)
{
    world->driver = hf__sqlite_driver;
    world->driver.begin = begin;
    world->driver.send = send;
    world->driver.sync = sync_sent;
    world->driver.commit = commit;
    world->faults.world = world;
    faults = &world->faults;
}

void faults_disarm(struct world *world)
{
    world->faults = (struct faults){ .world = world };
}

void faults_arm(struct world *world)
{
    struct faults *f = &world->faults;
    faults_disarm(world);
    if (world->calm || !chance(world, 25))
        return;
    f->kind = (enum fault_kind)(1 + below(world, FAULT_AFTER));
    f->times = 1 + (chance(world, 30) ? below(world, 4) : 0);
    if (f->kind == FAULT_BEFORE)
        f->countdown = below(world, 20);
    else if (f->kind == FAULT_AFTER)
        f->countdown = below(world, 3);
    if ((f->kind == FAULT_BEFORE || f->kind == FAULT_REFUSED) && chance(world, 50))
        f->error = chance(world, 60) ? ERROR_DATA : ERROR_RACE;
}
