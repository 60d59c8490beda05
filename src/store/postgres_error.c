/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres.h"

#include "util/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct meaning {
    const char *prefix; /* of the SQLSTATE */
    hf_code code;
};

/* The first match holds. */
static const struct meaning meanings[] = {
    { "08", HF_UNAVAILABLE },     /* connection exceptions */
    { "57P01", HF_UNAVAILABLE },  /* admin_shutdown, pg_terminate_backend */
    { "57P02", HF_UNAVAILABLE },  /* crash_shutdown */
    { "57P03", HF_UNAVAILABLE },  /* cannot_connect_now */
    { "57P04", HF_UNAVAILABLE },  /* database_dropped */
    { "57P05", HF_UNAVAILABLE },  /* idle_session_timeout */
    { "25P03", HF_UNAVAILABLE },  /* idle_in_transaction_session_timeout */
    { "26000", HF_UNAVAILABLE },  /* a pooler gave us another session: no such prepared statement */
    { "42P05", HF_UNAVAILABLE },  /* the same: a prepared statement that we did not prepare */
    { "53100", HF_STORE_FULL },   /* disk_full */
    { "25006", HF_READ_ONLY },    /* read_only_sql_transaction */
    { "3F000", HF_SCHEMA_OLDER }, /* no such schema */
    { "42P01", HF_SCHEMA_OLDER }, /* no such table */
};

hf_code hf__postgres_code(const char *sqlstate)
{
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (strncmp(sqlstate, meanings[i].prefix, strlen(meanings[i].prefix)) == 0)
            return meanings[i].code;
    return HF_STORE;
}

static const char *advice(hf_code code, const char *sqlstate)
{
    if (strcmp(sqlstate, "26000") == 0 || strcmp(sqlstate, "42P05") == 0)
        return "; this is a pooler in transaction mode: add prepare=off to the URL";
    switch (code) {
    case HF_STORE_FULL: return "; free space on the database server";
    case HF_READ_ONLY: return "; connect to the primary server";
    case HF_SCHEMA_OLDER: return "; migrate the schema first";
    default: return "";
    }
}

static void set_sqlstate(hf_error *err, const char *sqlstate)
{
    if (err)
        snprintf(err->sqlstate, sizeof err->sqlstate, "%s", sqlstate);
}

hf_code hf__postgres_fail_as(hf_error *err, hf_code code, const char *sqlstate, const char *fmt,
                             ...)
{
    char message[sizeof err->message];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    hf__fail(err, code, "%s", message);
    set_sqlstate(err, sqlstate);
    return code;
}

/* libpq ends its messages with a newline. */
static int printed_length(const char *message)
{
    size_t length = strlen(message);
    while (length > 0 && (message[length - 1] == '\n' || message[length - 1] == ' '))
        length--;
    return length > 400 ? 400 : (int)length;
}

hf_code hf__postgres_fail(hf_error *err, const PGresult *result, const PGconn *pg, const char *what)
{
    const char *sqlstate = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    if (!sqlstate) {
        const char *said = result ? PQresultErrorMessage(result) : PQerrorMessage(pg);
        return hf__postgres_fail_as(err, HF_UNAVAILABLE, "08006",
                                    "the connection to PostgreSQL broke: %.*s",
                                    printed_length(said), said);
    }
    const char *said = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (!said)
        said = "no message";
    hf_code code = hf__postgres_code(sqlstate);
    return hf__postgres_fail_as(err, code, sqlstate, "PostgreSQL refused %s: %.*s%s", what,
                                printed_length(said), said, advice(code, sqlstate));
}
