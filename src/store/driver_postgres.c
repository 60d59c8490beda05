/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres.h"

#include "util/alloc.h"
#include "util/error.h"

#include <stdlib.h>

/* Two flushers keep the server busy while one waits for its disk; more only share the same flushes. */
enum { FLUSHERS = 2 };

extern const struct hf__statement hf__postgres_statements[];
extern const struct hf__migration hf__postgres_migrations[];

static void close_database(struct hf__database *db)
{
    if (!db)
        return;
    hf__postgres_url_free(&db->url);
    free(db);
}

hf_code hf__postgres_open_with(struct hf__database **out, const struct hf__statement *statements,
                               const char *url, const struct hf__clock *clock, hf_error *err)
{
    (void)clock; /* the time is holdfast.now() in the database, which tests replace there */
    *out = NULL;
    struct hf__database *db = hf__calloc(1, sizeof *db);
    if (!db)
        return hf__nomem(err);

    hf_code code = hf__postgres_url_parse(&db->url, url, err);
    if (code != HF_OK) {
        free(db);
        return code;
    }
    db->statements = statements;
    atomic_init(&db->unprepared, db->url.unprepared);
    *out = db;
    return HF_OK;
}

static hf_code open_database(struct hf__database **out, const char *url,
                             const struct hf__clock *clock, hf_error *err)
{
    return hf__postgres_open_with(out, hf__postgres_statements, url, clock, err);
}

static int flushers(const struct hf__database *db)
{
    (void)db;
    return FLUSHERS;
}

static const struct hf__conn_limits *limits(const struct hf__database *db)
{
    return &db->url.limits;
}

const struct hf__driver hf__postgres_driver = {
    .name = "postgres",
    .statements = hf__postgres_statements,
    .migrations = hf__postgres_migrations,
    .migration_count = HF__POSTGRES_MIGRATION_COUNT,
    .min_writer = 24,
    .shares_mail = 23,
    .defers = 24,
    .open = open_database,
    .close = close_database,
    .flushers = flushers,
    .limits = limits,
    .connect = hf__postgres_connect,
    .disconnect = hf__postgres_disconnect,
    .lost = hf__postgres_lost,
    .begin = hf__postgres_begin,
    .send = hf__postgres_send,
    .sync = hf__postgres_sync,
    .may_defer = hf__postgres_may_defer,
    .foretell = hf__postgres_foretell,
    .commit = hf__postgres_commit,
    .rollback = hf__postgres_rollback,
    .script = hf__postgres_script,
    .migrate_lock = hf__postgres_migrate_lock,
    .migrate_unlock = hf__postgres_migrate_unlock,
    .watch = hf__postgres_watch,
    .watch_wait = hf__postgres_watch_wait,
    .watch_conn = hf__postgres_watch_conn,
    .watch_stop = hf__postgres_watch_stop,
    .unwatch = hf__postgres_unwatch,
    .ring = hf__postgres_ring,
};
