/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres.h"

#include "util/alloc.h"
#include "util/error.h"

#include <stdlib.h>
#include <string.h>

enum { OLDEST_SERVER = 150000 };

static void ignore_notice(void *arg, const PGresult *notice)
{
    (void)arg;
    (void)notice;
}

/* libpq tells no SQLSTATE when it cannot connect. */
static hf_code refuse_connection(PGconn *pg, hf_error *err)
{
    const char *said = PQerrorMessage(pg);
    size_t length = strlen(said);
    while (length > 0 && said[length - 1] == '\n')
        length--;
    return hf__postgres_fail_as(err, HF_UNAVAILABLE, "08001", "cannot connect to PostgreSQL: %.*s",
                                length > 400 ? 400 : (int)length, said);
}

hf_code hf__postgres_dial_anyway(PGconn **out, const struct hf__postgres_url *url, hf_error *err)
{
    *out = NULL;
    PGconn *pg =
        PQconnectdbParams((const char *const *)url->keywords, (const char *const *)url->values, 0);
    if (!pg)
        return hf__nomem(err);
    hf_code code = HF_OK;
    if (PQstatus(pg) != CONNECTION_OK)
        code = refuse_connection(pg, err);
    else if (PQserverVersion(pg) < OLDEST_SERVER)
        code = hf__fail(err, HF_INVALID,
                        "the server is PostgreSQL %d, but version %d or newer is needed",
                        PQserverVersion(pg) / 10000, OLDEST_SERVER / 10000);
    if (code != HF_OK) {
        PQfinish(pg);
        return code;
    }
    PQsetNoticeReceiver(pg, ignore_notice, NULL);
    *out = pg;
    return HF_OK;
}

static hf_code set_up_session(struct hf__conn *conn, hf_error *err)
{
    if (PQsetnonblocking(conn->pg, 1) != 0 || !PQenterPipelineMode(conn->pg))
        return hf__postgres_fail(err, NULL, conn->pg, "pipeline mode");
    if (conn->unprepared)
        return HF_OK;
    hf_code code = hf__postgres_queue_settings(conn, false, err);
    return code == HF_OK ? hf__postgres_sync(conn, err) : code;
}

hf_code hf__postgres_connect(struct hf__conn **out, struct hf__database *db, hf_error *err)
{
    *out = NULL;
    struct hf__conn *conn = hf__calloc(1, sizeof *conn);
    if (!conn)
        return hf__nomem(err);
    conn->db = db;
    conn->unprepared = atomic_load(&db->unprepared);
    conn->silences = atomic_load(&db->silences);
    hf_code code = hf__postgres_dial(&conn->pg, db, err);
    if (code == HF_OK)
        code = set_up_session(conn, err);
    if (code != HF_OK) {
        hf__postgres_disconnect(conn);
        return code;
    }
    *out = conn;
    return HF_OK;
}

void hf__postgres_disconnect(struct hf__conn *conn)
{
    if (!conn)
        return;
    hf__postgres_migrate_unlock(conn);
    PQfinish(conn->pg);
    hf__postgres_params_free(&conn->params);
    free(conn->owed);
    free(conn);
}

bool hf__postgres_lost(const struct hf__conn *conn)
{
    return conn->lost || PQstatus(conn->pg) != CONNECTION_OK ||
           conn->silences != atomic_load(&conn->db->silences);
}
