/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/engine.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/ears.h"
#include "kernel/group.h"
#include "kernel/migrate.h"
#include "kernel/pool.h"
#include "util/alloc.h"
#include "util/error.h"

#define MAX_GROUPS 8
#define DEFAULT_MAX_OPEN 8
#define DEFAULT_MAX_IDLE 4
#define DEFAULT_CONNECT_LIMIT HF_SECONDS(5)
#define DEFAULT_MAX_PAYLOAD (1024 * 1024)

struct hf__engine {
    atomic_int refs;
    const struct hf__driver *driver;
    struct hf__database *db;
    struct hf__engine_options options;
    struct hf__pool *pool;
    struct hf__ears *ears;
    struct hf__group *groups[MAX_GROUPS];
    int group_count;
    struct hf__metrics *metrics;
    atomic_llong restored_to;
    bool shares_mail; /* the store has no program at work that could not read it */
    bool defers;      /* nor one that would begin with what may not be on disk */
};

/* ---- Opening and closing ---- */

static void engine_free(struct hf__engine *engine)
{
    hf__ears_stop(engine->ears); /* it may hand something to a group */
    for (int i = 0; i < engine->group_count; i++)
        hf__group_stop(engine->groups[i]);
    hf__ears_free(engine->ears);
    hf__pool_free(engine->pool);
    if (engine->db)
        engine->driver->close(engine->db);
    hf__metrics_free(engine->metrics);
    free(engine);
}

static const struct hf__driver *driver_for(const char *url)
{
    if (strncmp(url, "sqlite:", 7) == 0)
        return &hf__sqlite_driver;
    if (strncmp(url, "postgres://", 11) == 0 || strncmp(url, "postgresql://", 13) == 0)
        return &hf__postgres_driver;
    return NULL;
}

static void fill_defaults(struct hf__engine_options *options, const struct hf__driver *driver)
{
    int newest = driver->migrations[driver->migration_count - 1].version;
    if (options->max_schema == 0)
        options->max_schema = newest;
    if (options->connect_limit == 0)
        options->connect_limit = DEFAULT_CONNECT_LIMIT;
    if (options->max_payload == 0)
        options->max_payload = DEFAULT_MAX_PAYLOAD;
}

/* What the options leave open, the URL says. */
static void fill_limits(struct hf__engine *engine)
{
    static const struct hf__conn_limits nothing = { -1, -1, -1 };
    struct hf__engine_options *options = &engine->options;
    const struct hf__conn_limits *said =
        engine->driver->limits ? engine->driver->limits(engine->db) : &nothing;
    if (options->max_open == 0)
        options->max_open = said->max_open >= 0 ? said->max_open : DEFAULT_MAX_OPEN;
    if (options->max_idle == 0)
        options->max_idle = said->max_idle >= 0 ? said->max_idle : DEFAULT_MAX_IDLE;
    if (options->max_lifetime == 0 && said->max_lifetime >= 0)
        options->max_lifetime = said->max_lifetime;
}

static void tell_ears(const struct hf__wake *wake, void *arg)
{
    struct hf__engine *engine = arg;
    hf__ears_tell(engine->ears, wake);
}

static struct hf__op *ask_ears(int32_t lane, const int *priority, void *arg)
{
    struct hf__engine *engine = arg;
    return hf__ears_ask(engine->ears, lane, priority);
}

/* max_open counts all: the flushers' connections, the listener's and the pool's. */
static hf_code open_pool(struct hf__engine *engine, int groups, hf_error *err)
{
    struct hf__pool_options options = {
        .driver = engine->driver,
        .db = engine->db,
        .max_open = engine->options.max_open - groups - 1,
        .max_idle = engine->options.max_idle,
        .max_lifetime = engine->options.max_lifetime,
        .connect_limit = engine->options.connect_limit,
    };
    if (options.max_open < 1)
        return hf__fail(err, HF_INVALID, "max_open is %d; it must be at least %d",
                        engine->options.max_open, groups + 2);
    return hf__pool_new(&engine->pool, &options, err);
}

static hf_code start_groups(struct hf__engine *engine, int groups, hf_error *err)
{
    struct hf__group_options options = {
        .driver = engine->driver,
        .db = engine->db,
        .connect_limit = engine->options.connect_limit,
        .max_lifetime = engine->options.max_lifetime,
        .woke = tell_ears,
        .claim = ask_ears,
        .arg = engine,
        .metrics = engine->metrics,
        .shares_mail = engine->shares_mail,
        .max_payload = (int64_t)engine->options.max_payload,
        .defers = engine->defers,
    };
    hf_code code = HF_OK;
    while (code == HF_OK && engine->group_count < groups) {
        code = hf__group_start(&engine->groups[engine->group_count], &options, err);
        if (code == HF_OK)
            engine->group_count++;
    }
    return code;
}

static void submit(struct hf__op *op, void *arg)
{
    hf__engine_submit(arg, op);
}

static hf_code open_ears(struct hf__engine *engine, hf_error *err)
{
    struct hf__ears_options options = {
        .driver = engine->driver,
        .db = engine->db,
        .pool = engine->pool,
        .max_lifetime = engine->options.max_lifetime,
        .submit = submit,
        .arg = engine,
        .metrics = engine->metrics,
    };
    return hf__ears_new(&engine->ears, &options, err);
}

static hf_code prepare_schema_once(struct hf__engine *engine, bool *lost, hf_error *err)
{
    int version;
    int min_writer;
    struct hf__conn *conn;
    *lost = false;
    hf_code code = hf__pool_take(engine->pool, &conn, err);
    if (code != HF_OK)
        return code;
    code = hf__schema_read(engine->driver, conn, &version, &min_writer, err);
    if (code == HF_OK && version < engine->options.max_schema && !engine->options.no_migrate) {
        code = hf__migrate(engine->driver, conn, engine->options.max_schema, err);
        if (code == HF_OK)
            code = hf__schema_read(engine->driver, conn, &version, &min_writer, err);
    }
    if (code == HF_OK)
        code = hf__schema_check(version, min_writer, engine->options.max_schema, err);
    engine->shares_mail = code == HF_OK && min_writer >= engine->driver->shares_mail;
    engine->defers =
        code == HF_OK && engine->driver->defers && min_writer >= engine->driver->defers;
    *lost = code != HF_OK && engine->driver->lost(conn);
    hf__pool_give(engine->pool, conn);
    return code;
}

/* Once more on a new connection: behind a pooler the first one is lost when its prepared statements are not found. */
static hf_code prepare_schema(struct hf__engine *engine, hf_error *err)
{
    bool lost;
    hf_code code = prepare_schema_once(engine, &lost, err);
    return lost ? prepare_schema_once(engine, &lost, err) : code;
}

hf_code hf__engine_open(struct hf__engine **out, const char *url,
                        const struct hf__engine_options *options, hf_error *err)
{
    const struct hf__driver *driver = options->driver ? options->driver : driver_for(url);
    if (!driver)
        return hf__fail(err, HF_INVALID,
                        "\"%.100s\" is not a store: use sqlite:FILE, sqlite::memory: or "
                        "postgres://USER@HOST/DB",
                        url);
    struct hf__engine *engine = hf__calloc(1, sizeof *engine);
    if (!engine)
        return hf__nomem(err);
    atomic_init(&engine->refs, 1);
    engine->driver = driver;
    engine->options = *options;
    fill_defaults(&engine->options, driver);

    int groups = 0;
    hf_code code = hf__metrics_new(&engine->metrics, err);
    if (code == HF_OK)
        code = driver->open(&engine->db, url, options->clock, err);
    if (code == HF_OK) {
        fill_limits(engine);
        groups = driver->flushers(engine->db);
        groups = groups > MAX_GROUPS ? MAX_GROUPS : groups;
        code = open_pool(engine, groups, err);
    }
    if (code == HF_OK)
        code = prepare_schema(engine, err);
    if (code == HF_OK)
        code = open_ears(engine, err);
    if (code == HF_OK)
        code = start_groups(engine, groups, err);
    if (code == HF_OK)
        *out = engine;
    else
        engine_free(engine);
    return code;
}

struct hf__engine *hf__engine_ref(struct hf__engine *engine)
{
    atomic_fetch_add(&engine->refs, 1);
    return engine;
}

void hf__engine_unref(struct hf__engine *engine)
{
    if (engine && atomic_fetch_sub(&engine->refs, 1) == 1)
        engine_free(engine);
}

const struct hf__driver *hf__engine_driver(const struct hf__engine *engine)
{
    return engine->driver;
}

size_t hf__engine_max_payload(const struct hf__engine *engine)
{
    return engine->options.max_payload;
}

int hf__engine_schema(const struct hf__engine *engine)
{
    return engine->options.max_schema;
}

atomic_llong *hf__engine_restored_to(struct hf__engine *engine)
{
    return &engine->restored_to;
}

struct hf__metrics *hf__engine_metrics(const struct hf__engine *engine)
{
    return engine->metrics;
}

struct hf__pool_use hf__engine_pool_use(const struct hf__engine *engine)
{
    return hf__pool_use(engine->pool);
}

/* ---- Group commit ---- */

static struct hf__group *group_of(const struct hf__engine *engine, const struct hf__op *op)
{
    return engine->groups[op->shard % (uint64_t)engine->group_count];
}

void hf__engine_submit(struct hf__engine *engine, struct hf__op *op)
{
    hf__group_submit(group_of(engine, op), op);
}

/* Counts operations that are not decided yet. A semaphore, since the waiter may free it as soon as it wakes, and since one
 * answer is one call of the system. */
struct latch {
    atomic_size_t left;
    sem_t done;
};

static void latch_down(struct hf__op *op, void *arg)
{
    (void)op;
    struct latch *latch = arg;
    if (atomic_fetch_sub(&latch->left, 1) == 1)
        sem_post(&latch->done);
}

void hf__engine_apply(struct hf__engine *engine, struct hf__op *ops, size_t count)
{
    struct latch latch;
    if (count == 0)
        return;
    atomic_init(&latch.left, count);
    sem_init(&latch.done, 0, 0);
    for (size_t i = 0; i < count; i++) {
        ops[i].done = latch_down;
        ops[i].done_arg = &latch;
        if (count == 1)
            hf__group_apply(group_of(engine, &ops[i]), &ops[i]);
        else
            hf__engine_submit(engine, &ops[i]);
    }
    while (sem_wait(&latch.done) != 0)
        ; /* a signal came in between */
    sem_destroy(&latch.done);
}

/* ---- Reading, and small writes ---- */

static hf_code query_once(struct hf__engine *engine, enum hf__stmt stmt,
                          const struct hf__table *params, struct hf__table *result, bool *lost,
                          hf_error *err)
{
    struct hf__conn *conn;
    hf_code code = hf__pool_take(engine->pool, &conn, err);
    if (code != HF_OK)
        return code;
    code = engine->driver->send(conn, stmt, params, result, err);
    if (code == HF_OK)
        code = engine->driver->sync(conn, err);
    if (code != HF_OK)
        engine->driver->rollback(conn);
    *lost = code != HF_OK && engine->driver->lost(conn);
    hf__pool_give(engine->pool, conn);
    return code;
}

hf_code hf__engine_query(struct hf__engine *engine, enum hf__stmt stmt,
                         const struct hf__table *params, struct hf__table *result, hf_error *err)
{
    bool lost = false;
    if (params && params->failed)
        return hf__nomem(err);
    hf_code code = query_once(engine, stmt, params, result, &lost, err);
    if (lost) {
        if (result)
            hf__table_init(result, result->arena, result->ncolumns);
        code = query_once(engine, stmt, params, result, &lost, err);
    }
    return code;
}

static hf_code transact_once(struct hf__engine *engine, hf__work body, void *arg,
                             const struct hf__wake *wake, bool *again, hf_error *err)
{
    const struct hf__driver *driver = engine->driver;
    struct hf__conn *conn;
    bool unknown = false;
    *again = false;
    hf_code code = hf__pool_take(engine->pool, &conn, err);
    if (code != HF_OK)
        return code;
    code = driver->begin(conn, err);
    if (code == HF_OK)
        code = body(driver, conn, arg, err);
    if (code == HF_OK)
        code = driver->commit(conn, wake, &unknown, err);
    if (code != HF_OK)
        driver->rollback(conn);
    else if (wake)
        hf__ears_tell(engine->ears, wake);
    *again = code != HF_OK && !unknown && driver->lost(conn);
    hf__pool_give(engine->pool, conn);
    return code;
}

hf_code hf__engine_transact(struct hf__engine *engine, hf__work body, void *arg,
                            const struct hf__wake *wake, hf_error *err)
{
    bool again;
    hf_code code = transact_once(engine, body, arg, wake, &again, err);
    return again ? transact_once(engine, body, arg, wake, &again, err) : code;
}

/* ---- Ears ---- */

hf_code hf__engine_listen(struct hf__engine *engine, struct hf__ear **out, hf__hear hear, void *arg,
                          hf_error *err)
{
    return hf__ears_add(engine->ears, out, hear, arg, err);
}

void hf__engine_stand_by(struct hf__ear *ear, hf__stand_by claim)
{
    hf__ear_stand_by(ear, claim);
}

void hf__engine_unlisten(struct hf__ear *ear)
{
    hf__ears_remove(ear);
}
