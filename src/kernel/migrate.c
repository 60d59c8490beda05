/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/migrate.h"

#include <string.h>
#include <time.h>

#include "util/error.h"

enum { LOCKED_PAUSE_NS = 100000000 };

/* Programs of the version before go on in a store that was there before. A new one keeps them out, from its first migration on:
 * `version` and `min_writer` are what it says before the one at hand. */
static bool keeps_older_out(const struct hf__driver *driver, int version, int min_writer,
                            int newest)
{
    return (version == 0 ? newest : min_writer) >= driver->min_writer;
}

static hf_code read_one(const struct hf__driver *driver, struct hf__conn *conn, enum hf__stmt stmt,
                        struct hf__table *out, hf_error *err)
{
    hf__table_init(out, out->arena, driver->statements[stmt].ncolumns);
    hf_code code = driver->send(conn, stmt, NULL, out, err);
    return code == HF_OK ? driver->sync(conn, err) : code;
}

hf_code hf__schema_read(const struct hf__driver *driver, struct hf__conn *conn, int *version,
                        int *min_writer, hf_error *err)
{
    struct hf__arena arena;
    hf__arena_init(&arena, 1024);
    struct hf__table out = { .arena = &arena };
    *version = *min_writer = 0;
    hf_code code = read_one(driver, conn, HF__STMT_SCHEMA_EXISTS, &out, err);
    if (code == HF_OK && out.nrows > 0 && hf__as_number(hf__table_row(&out, 0)[0])) {
        code = read_one(driver, conn, HF__STMT_GET_SCHEMA_VERSION, &out, err);
        if (code == HF_OK && out.nrows > 0) {
            *version = (int)hf__as_number(hf__table_row(&out, 0)[0]);
            *min_writer = (int)hf__as_number(hf__table_row(&out, 0)[1]);
        }
    }
    hf__arena_free(&arena);
    return code;
}

/* Without what is behind the mark, where programs of the version before may be at work. */
static const char *script_of(const struct hf__migration *migration, bool fresh,
                             struct hf__arena *arena)
{
    const char *mark = strstr(migration->sql, "-- holdfast: new stores only");
    return fresh || !mark
               ? migration->sql
               : hf__arena_strndup(arena, migration->sql, (size_t)(mark - migration->sql));
}

static hf_code record(const struct hf__driver *driver, struct hf__conn *conn,
                      const struct hf__migration *migration, int min_writer,
                      struct hf__arena *arena, hf_error *err)
{
    struct hf__table in;
    hf__table_init(&in, arena, driver->statements[HF__STMT_SET_SCHEMA_VERSION].nparams);
    struct hf__cell *c = hf__table_add(&in);
    c[0] = hf__number(migration->version);
    c[1] = hf__text(migration->name);
    c[2] = hf__number(min_writer);
    if (in.failed)
        return hf__nomem(err);
    hf_code code = driver->send(conn, HF__STMT_SET_SCHEMA_VERSION, &in, NULL, err);
    return code == HF_OK ? driver->sync(conn, err) : code;
}

/* One migration and its record, in one transaction where the script allows it. */
static hf_code try_once(const struct hf__driver *driver, struct hf__conn *conn,
                        const struct hf__migration *migration, int newest, hf_error *err)
{
    bool transaction = !strstr(migration->sql, "-- holdfast: no transaction");
    struct hf__arena arena;
    hf__arena_init(&arena, 1024);
    bool unknown = false;
    int version = 0;
    int min_writer = 0;
    hf_code code = transaction ? driver->begin(conn, err) : HF_OK;
    if (code == HF_OK)
        code = hf__schema_read(driver, conn, &version, &min_writer, err);
    if (code == HF_OK && version >= migration->version)
        goto done; /* somebody else was faster */
    bool fresh = keeps_older_out(driver, version, min_writer, newest);
    const char *script = script_of(migration, fresh, &arena);
    if (min_writer < (fresh ? driver->min_writer : 1))
        min_writer = fresh ? driver->min_writer : 1;
    if (code == HF_OK)
        code = script ? driver->script(conn, script, err) : hf__nomem(err);
    if (code == HF_OK)
        code = record(driver, conn, migration, min_writer, &arena, err);
    if (code == HF_OK && transaction)
        code = driver->commit(conn, NULL, &unknown, err);
done:
    if ((code != HF_OK || version >= migration->version) && transaction)
        driver->rollback(conn);
    hf__arena_free(&arena);
    return code;
}

/* While others have a table locked, it stands aside for a moment and tries again: they come before it. */
static hf_code apply(const struct hf__driver *driver, struct hf__conn *conn,
                     const struct hf__migration *migration, int newest, hf_error *err)
{
    hf_error failure = { 0 };
    hf_code code;
    while ((code = try_once(driver, conn, migration, newest, &failure)) != HF_OK &&
           hf__error_is_lock(&failure))
        nanosleep(&(struct timespec){ .tv_nsec = LOCKED_PAUSE_NS }, NULL);
    if (err && code != HF_OK)
        *err = failure;
    return code;
}

/* Where nothing is yet there is nothing to lock: of several that begin, one makes the first tables, and the others find them. */
static hf_code begin_store(const struct hf__driver *driver, struct hf__conn *conn, int newest,
                           hf_error *err)
{
    int version;
    int min_writer;
    hf_error failure = { 0 };
    hf_code code = hf__schema_read(driver, conn, &version, &min_writer, err);
    if (code != HF_OK || version > 0)
        return code;
    code = apply(driver, conn, &driver->migrations[0], newest, &failure);
    if (code != HF_OK && hf__schema_read(driver, conn, &version, &min_writer, NULL) == HF_OK &&
        version > 0)
        return HF_OK;
    if (code != HF_OK && err)
        *err = failure;
    return code;
}

hf_code hf__migrate(const struct hf__driver *driver, struct hf__conn *conn, int newest,
                    hf_error *err)
{
    int version;
    int min_writer;
    hf_code code = begin_store(driver, conn, newest, err);
    if (code == HF_OK)
        code = driver->migrate_lock(conn, err);
    if (code != HF_OK)
        return code;
    code = hf__schema_read(driver, conn, &version, &min_writer, err);
    for (int i = 0; code == HF_OK && i < driver->migration_count; i++) {
        const struct hf__migration *migration = &driver->migrations[i];
        if (migration->version > version && migration->version <= newest)
            code = apply(driver, conn, migration, newest, err);
    }
    driver->migrate_unlock(conn);
    return code;
}

hf_code hf__schema_check(int version, int min_writer, int known, hf_error *err)
{
    if (min_writer > known)
        return hf__fail(err, HF_SCHEMA_NEWER,
                        "the store's schema is version %d and needs a program that knows version "
                        "%d; this one knows %d: install a newer holdfast",
                        version, min_writer, known);
    if (version < known)
        return hf__fail(err, HF_SCHEMA_OLDER,
                        "the store's schema is version %d, this program needs %d: run `holdfast "
                        "migrate`",
                        version, known);
    return HF_OK;
}
