/* Compares the journal with the state in a whole store, in one transaction: workers may do chores meanwhile. Prints what does
 * not hold.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/invariants.h"

#include "util/clock.h"

#include <libpq-fe.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

enum { MOST_COLUMNS = 80 };

static bool ask_postgres(void *arg, const char *sql, invariants_row row, void *row_arg)
{
    PGresult *result = PQexec(arg, sql);
    bool good = PQresultStatus(result) == PGRES_TUPLES_OK;
    if (!good)
        fprintf(stderr, "%s\n", PQresultErrorMessage(result));
    for (int i = 0; good && i < PQntuples(result); i++) {
        const char *cells[MOST_COLUMNS] = { NULL };
        for (int n = 0; n < PQnfields(result) && n < MOST_COLUMNS; n++)
            cells[n] = PQgetisnull(result, i, n) ? NULL : PQgetvalue(result, i, n);
        row(cells, row_arg);
    }
    PQclear(result);
    return good;
}

static bool ask_sqlite(void *arg, const char *sql, invariants_row row, void *row_arg)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(arg, sql, -1, &statement, NULL);
    while (statement && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *cells[MOST_COLUMNS] = { NULL };
        for (int n = 0; n < sqlite3_column_count(statement) && n < MOST_COLUMNS; n++)
            cells[n] = (const char *)sqlite3_column_text(statement, n);
        row(cells, row_arg);
    }
    if (rc != SQLITE_DONE)
        fprintf(stderr, "%s\n", sqlite3_errmsg(arg));
    sqlite3_finalize(statement);
    return rc == SQLITE_DONE;
}

static bool audit(struct invariants_source source)
{
    char complaint[1000] = "";
    source.now = hf__clock_now(&hf__system_clock);
    bool good = invariants_hold(&source, complaint, sizeof complaint);
    if (!good)
        printf("%s\n", complaint);
    return good;
}

static bool audit_postgres(const char *url)
{
    PGconn *conn = PQconnectdb(url);
    bool good = PQstatus(conn) == CONNECTION_OK;
    if (good) {
        PQclear(PQexec(conn, "SET search_path = holdfast"));
        PQclear(PQexec(conn, "BEGIN ISOLATION LEVEL REPEATABLE READ"));
        good = audit((struct invariants_source){
            .query = ask_postgres, .arg = conn, .id_format = "CAST(%s AS text)", .rests = true });
    } else {
        printf("%s\n", PQerrorMessage(conn));
    }
    PQfinish(conn);
    return good;
}

static bool audit_sqlite(const char *path)
{
    sqlite3 *handle = NULL;
    bool good = sqlite3_open_v2(path, &handle, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK;
    if (good)
        good = sqlite3_exec(handle, "BEGIN", NULL, NULL, NULL) == SQLITE_OK &&
               audit((struct invariants_source){
                   .query = ask_sqlite, .arg = handle, .id_format = "hex(%s)" });
    else
        printf("%s\n", sqlite3_errmsg(handle));
    sqlite3_close(handle);
    return good;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    bool sqlite = strncmp(argv[1], "sqlite:", 7) == 0;
    return (sqlite ? audit_sqlite(argv[1] + 7) : audit_postgres(argv[1])) ? 0 : 1;
}
