/* libpq, loaded at its first use. It brings two dozen libraries with it, which cost a process four milliseconds: too much for
 * `holdfast step`, and for everybody whose store is a file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/late.h"

#include <libpq-fe.h>

#define LIBRARY "libpq.so.5"
#define NEEDED "a PostgreSQL store needs " LIBRARY

#define FUNCTIONS(X)                                                                               \
    X(int, PQbackendPID, (const PGconn *c), (c))                                                   \
    X(char *, PQcmdStatus, (PGresult * r), (r))                                                    \
    X(PGconn *, PQconnectdbParams, (const char *const *k, const char *const *v, int e), (k, v, e)) \
    X(PQconninfoOption *, PQconninfoParse, (const char *c, char **e), (c, e))                      \
    X(int, PQconsumeInput, (PGconn * c), (c))                                                      \
    X(int, PQenterPipelineMode, (PGconn * c), (c))                                                 \
    X(char *, PQerrorMessage, (const PGconn *c), (c))                                              \
    X(int, PQexitPipelineMode, (PGconn * c), (c))                                                  \
    X(int, PQflush, (PGconn * c), (c))                                                             \
    X(Oid, PQftype, (const PGresult *r, int n), (r, n))                                            \
    X(PGresult *, PQgetResult, (PGconn * c), (c))                                                  \
    X(int, PQgetisnull, (const PGresult *r, int t, int f), (r, t, f))                              \
    X(int, PQgetlength, (const PGresult *r, int t, int f), (r, t, f))                              \
    X(char *, PQgetvalue, (const PGresult *r, int t, int f), (r, t, f))                            \
    X(int, PQisBusy, (PGconn * c), (c))                                                            \
    X(int, PQnfields, (const PGresult *r), (r))                                                    \
    X(PGnotify *, PQnotifies, (PGconn * c), (c))                                                   \
    X(int, PQntuples, (const PGresult *r), (r))                                                    \
    X(int, PQpipelineSync, (PGconn * c), (c))                                                      \
    X(char *, PQresStatus, (ExecStatusType s), (s))                                                \
    X(char *, PQresultErrorField, (const PGresult *r, int f), (r, f))                              \
    X(char *, PQresultErrorMessage, (const PGresult *r), (r))                                      \
    X(ExecStatusType, PQresultStatus, (const PGresult *r), (r))                                    \
    X(int, PQsendFlushRequest, (PGconn * c), (c))                                                  \
    X(int, PQsendPrepare, (PGconn * c, const char *s, const char *q, int n, const Oid *t),         \
      (c, s, q, n, t))                                                                             \
    X(int, PQsendQuery, (PGconn * c, const char *q), (c, q))                                       \
    X(int, PQsendQueryParams,                                                                      \
      (PGconn * c, const char *q, int n, const Oid *t, const char *const *v, const int *l,         \
       const int *f, int r),                                                                       \
      (c, q, n, t, v, l, f, r))                                                                    \
    X(int, PQsendQueryPrepared,                                                                    \
      (PGconn * c, const char *s, int n, const char *const *v, const int *l, const int *f, int r), \
      (c, s, n, v, l, f, r))                                                                       \
    X(int, PQserverVersion, (const PGconn *c), (c))                                                \
    X(PQnoticeReceiver, PQsetNoticeReceiver, (PGconn * c, PQnoticeReceiver p, void *a), (c, p, a)) \
    X(int, PQsetnonblocking, (PGconn * c, int a), (c, a))                                          \
    X(int, PQsocket, (const PGconn *c), (c))                                                       \
    X(int, PQsslInUse, (PGconn * c), (c))                                                          \
    X(ConnStatusType, PQstatus, (const PGconn *c), (c))                                            \
    X(PGTransactionStatusType, PQtransactionStatus, (const PGconn *c), (c))

/* The same for those that return nothing. */
#define PROCEDURES(X)                                                                              \
    X(void, PQclear, (PGresult * r), (r))                                                          \
    X(void, PQconninfoFree, (PQconninfoOption * o), (o))                                           \
    X(void, PQfinish, (PGconn * c), (c))                                                           \
    X(void, PQfreemem, (void *p), (p))

static struct {
    FUNCTIONS(CLI_LATE_MEMBER) PROCEDURES(CLI_LATE_MEMBER)
} real;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    FUNCTIONS(CLI_LATE_FIND)
    PROCEDURES(CLI_LATE_FIND)
}

FUNCTIONS(CLI_LATE_FUNCTION)
PROCEDURES(CLI_LATE_PROCEDURE)
