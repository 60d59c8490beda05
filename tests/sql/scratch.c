/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEPT = 16, SQL_MAX = 16384 };

const char *scratch_server(void)
{
    const char *url = getenv("HOLDFAST_TEST_POSTGRES");
    return url && *url ? url : NULL;
}

void scratch_url_with(char out[SCRATCH_URL], const char *url, const char *parameter)
{
    int length = snprintf(out, SCRATCH_URL, "%s%s%s", url, strchr(url, '?') ? "&" : "?", parameter);
    assert_in_range(length, 1, SCRATCH_URL - 1);
}

PGconn *pg_connect(const char *url)
{
    PGconn *pg = PQconnectdb(url);
    if (PQstatus(pg) != CONNECTION_OK)
        fail_msg("%s", PQerrorMessage(pg));
    return pg;
}

static void create_like(struct scratch *scratch, const char *template)
{
    static int counter;
    char parameter[80];
    PGconn *pg = pg_connect(scratch_server());
    snprintf(scratch->database, sizeof scratch->database, "holdfast_sql_%ld_%d", (long)getpid(),
             counter++);
    pg_do(pg, "CREATE DATABASE %s TEMPLATE %s STRATEGY file_copy", scratch->database, template);
    PQfinish(pg);
    snprintf(parameter, sizeof parameter, "dbname=%s", scratch->database);
    scratch_url_with(scratch->url, scratch_server(), parameter);
    scratch->pg = pg_connect(scratch->url);
}

void scratch_create(struct scratch *scratch)
{
    const char *pristine = getenv("HOLDFAST_TEST_PRISTINE");
    create_like(scratch, pristine && *pristine ? pristine : "template1");
}

void scratch_create_empty(struct scratch *scratch)
{
    create_like(scratch, "template1");
}

void scratch_drop(struct scratch *scratch)
{
    PQfinish(scratch->pg);
    PGconn *pg = pg_connect(scratch_server());
    pg_do(pg, "DROP DATABASE %s WITH (FORCE)", scratch->database);
    PQfinish(pg);
}

static PGresult *execute(PGconn *pg, const char *format, va_list args)
{
    static char sql[SQL_MAX];
    int length = vsnprintf(sql, sizeof sql, format, args);
    assert_in_range(length, 1, SQL_MAX - 1);
    return PQexec(pg, sql);
}

static bool worked(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

static void must_work(PGconn *pg, const PGresult *result)
{
    if (!worked(result))
        fail_msg("%s", PQerrorMessage(pg));
}

static const char *keep(const char *text)
{
    static char *kept[KEPT];
    static int next;
    free(kept[next % KEPT]);
    kept[next % KEPT] = strdup(text);
    return kept[next++ % KEPT];
}

void pg_do(PGconn *pg, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    PGresult *result = execute(pg, format, args);
    va_end(args);
    must_work(pg, result);
    PQclear(result);
}

static const char *first_value(PGconn *pg, const PGresult *result)
{
    must_work(pg, result);
    return PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "";
}

/* Keeps no text: whoever asks for a number again and again must not push out what others still read. */
int64_t pg_number(PGconn *pg, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    PGresult *result = execute(pg, format, args);
    va_end(args);
    int64_t number = atoll(first_value(pg, result));
    PQclear(result);
    return number;
}

const char *pg_text(PGconn *pg, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    PGresult *result = execute(pg, format, args);
    va_end(args);
    const char *value = keep(first_value(pg, result));
    PQclear(result);
    return value;
}

const char *pg_refusal(PGconn *pg, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    PGresult *result = execute(pg, format, args);
    va_end(args);
    const char *state = worked(result) ? "" : PQresultErrorField(result, PG_DIAG_SQLSTATE);
    state = keep(state ? state : "?");
    PQclear(result);
    return state;
}

const char *pg_rows(PGconn *pg, const char *table, const char *except, const char *where,
                    const char *order)
{
    return pg_text(pg,
                   "SELECT coalesce(string_agg((to_jsonb(r) - '{%s}'::text[])::text, E'\\n' "
                   "ORDER BY %s), '(none)') FROM holdfast.%s r WHERE %s",
                   except, order, table, where);
}

hf_client *scratch_open(const char *url)
{
    hf_client *client = NULL;
    hf_error err = { 0 };
    if (hf_open(&client, url, NULL, &err) != HF_OK)
        fail_msg("%s: %s", url, err.message);
    return client;
}
