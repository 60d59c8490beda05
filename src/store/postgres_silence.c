/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres.h"

#include "util/clock.h"
#include "util/duration.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

/* A session says that it is idle a moment before its answer is on its way. */
enum { GRACE_MS = 10 };

/* TLS may hold bytes that it read but did not hand out, which poll() does not see: with it, look again after this. */
enum { TLS_RECHECK_MS = 20 };

/* Between two tries to reach a silent server; and the longest that one of them is thought to take. */
#define PAUSE HF_SECONDS(1)
#define LONGEST_TRY HF_SECONDS(30)

/* ---- A server that is silent as a whole ---- */

static void pause_dialling(struct hf__database *db)
{
    atomic_store(&db->ask_again_at, hf__monotonic_us() + PAUSE);
}

/* Neither an old connection nor a new one was answered. */
static void note_silence(struct hf__database *db)
{
    atomic_fetch_add(&db->silences, 1);
    pause_dialling(db);
}

/* Whether a connection that failed was not answered, rather than refused by somebody. libpq counts whole seconds, two at
 * least. */
static bool timed_out(const struct hf__database *db, int64_t began)
{
    const char *text = hf__postgres_url_value(&db->url, "connect_timeout");
    int limit = text ? atoi(text) : 0;
    return hf__monotonic_us() - began >= HF_SECONDS(limit > 2 ? limit - 1 : 1);
}

/* Whether the server answers, as far as is known, or it is this caller's turn to try. */
static bool may_dial(struct hf__database *db)
{
    int64_t at = atomic_load(&db->ask_again_at);
    int64_t now = hf__monotonic_us();
    return at == 0 ||
           (now >= at && atomic_compare_exchange_strong(&db->ask_again_at, &at, now + LONGEST_TRY));
}

hf_code hf__postgres_dial(PGconn **out, struct hf__database *db, hf_error *err)
{
    *out = NULL;
    if (!may_dial(db))
        return hf__postgres_fail_as(err, HF_UNAVAILABLE, "08001",
                                    "PostgreSQL does not answer; it is tried again every second");
    int64_t began = hf__monotonic_us();
    hf_code code = hf__postgres_dial_anyway(out, &db->url, err);
    if (code == HF_UNAVAILABLE && timed_out(db, began))
        pause_dialling(db);
    else
        atomic_store(&db->ask_again_at, 0);
    return code;
}

/* Asks something about a session on a connection of its own. False: the server is silent. One that refuses the connection
 * answers, and is given the benefit of the doubt. */
static bool ask_about(struct hf__database *db, int pid, enum hf__stmt stmt, bool *yes)
{
    PGconn *pg = NULL;
    int64_t began = hf__monotonic_us();
    *yes = true;
    if (hf__postgres_dial_anyway(&pg, &db->url, NULL) != HF_OK)
        return !timed_out(db, began);
    char pids[2][16];
    snprintf(pids[0], sizeof pids[0], "%d", pid);
    snprintf(pids[1], sizeof pids[1], "%d", PQbackendPID(pg));
    const char *values[] = { pids[0], pids[1] };
    PGresult *result =
        hf__postgres_ask(pg, db, HF__PATIENCE_NONE, db->statements[stmt].sql, 2, values);
    bool answered = PQntuples(result) == 1;
    *yes = answered && PQgetvalue(result, 0, 0)[0] == 't';
    PQclear(result);
    PQfinish(pg);
    return answered;
}

/* ---- Waiting for an answer ---- */

void hf__postgres_patience(struct hf__postgres_patience *patience, struct hf__database *db,
                           PGconn *pg, int times)
{
    int64_t now = hf__monotonic_us();
    *patience = (struct hf__postgres_patience){
        .db = db,
        .pid = PQbackendPID(pg),
        .began = now,
        .heard_at = now,
        .asks = times != HF__PATIENCE_NONE,
    };
    if (__builtin_mul_overflow(db->url.answer_limit, (int64_t)times, &patience->most))
        patience->most = INT64_MAX;
}

static int64_t time_left(const struct hf__postgres_patience *patience)
{
    int64_t left = patience->heard_at + patience->db->url.answer_limit - hf__monotonic_us();
    return left > 0 ? left : 0;
}

static bool has_arrived(PGconn *pg)
{
    struct pollfd ready = { .fd = PQsocket(pg), .events = POLLIN };
    return poll(&ready, 1, GRACE_MS) > 0;
}

/* False: it is given up. libpq then finds the end of the connection where it would wait for ever. A session that works on
 * is ended, so that its locks do not stand in the way of who tries again. An answer that comes while it is asked about is
 * one: who gave it is idle since. */
static bool wait_on(PGconn *pg, struct hf__postgres_patience *patience)
{
    bool works = false, ended;
    bool silent =
        patience->asks && !ask_about(patience->db, patience->pid, HF__STMT_IS_AT_WORK, &works);
    bool may = patience->most == 0 || hf__monotonic_us() - patience->began < patience->most;
    if (has_arrived(pg)) {
        patience->heard_at = hf__monotonic_us();
        return PQconsumeInput(pg) == 1;
    }
    if (silent)
        note_silence(patience->db);
    if (works && !silent && may) {
        patience->heard_at = hf__monotonic_us();
        return true;
    }
    if (works && !silent)
        (void)ask_about(patience->db, patience->pid, HF__STMT_END_SESSION, &ended);
    patience->over = true;
    shutdown(PQsocket(pg), SHUT_RDWR);
    return PQconsumeInput(pg) == 1;
}

static int poll_limit(PGconn *pg, int64_t left)
{
    int64_t ms = left / 1000 + 1;
    if (PQsslInUse(pg) && ms > TLS_RECHECK_MS)
        return TLS_RECHECK_MS;
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

/* Writes and reads whatever is possible: both, since a server that blocks on writing its answers reads nothing more.
 * False: the connection broke, or was silent for too long. */
static bool wait_for_server(PGconn *pg, struct hf__postgres_patience *patience)
{
    int unsent = PQflush(pg);
    struct pollfd ready = { .fd = PQsocket(pg), .events = POLLIN };
    if (ready.fd < 0)
        return false;
    if (unsent > 0)
        ready.events |= POLLOUT;
    int count = poll(&ready, 1, poll_limit(pg, time_left(patience)));
    if (count < 0)
        return errno == EINTR;
    if (count > 0)
        patience->heard_at = hf__monotonic_us();
    else if (time_left(patience) == 0)
        return wait_on(pg, patience);
    if (count > 0 && ready.revents == POLLOUT)
        return true;
    return PQconsumeInput(pg) == 1;
}

PGresult *hf__postgres_next(PGconn *pg, struct hf__postgres_patience *patience)
{
    while (PQisBusy(pg))
        if (!wait_for_server(pg, patience))
            break;
    return PQgetResult(pg);
}

PGresult *hf__postgres_ask(PGconn *pg, struct hf__database *db, int times, const char *sql,
                           int count, const char *const *values)
{
    struct hf__postgres_patience patience;
    PGresult *last = NULL;
    int sent = count ? PQsendQueryParams(pg, sql, count, NULL, values, NULL, NULL, 0)
                     : PQsendQuery(pg, sql);
    if (!sent)
        return NULL;
    hf__postgres_patience(&patience, db, pg, times);
    for (PGresult *next; (next = hf__postgres_next(pg, &patience)) != NULL; last = next)
        PQclear(last);
    return last;
}

hf_code hf__postgres_fail_silent(const struct hf__database *db, hf_error *err)
{
    char limit[HF__DURATION_TEXT];
    hf__duration_format(db->url.answer_limit, limit);
    return hf__postgres_fail_as(
        err, HF_UNAVAILABLE, "08006",
        "PostgreSQL did not answer within %s, and does not say that it is at "
        "work on it, or was at work for too long (answer_timeout)",
        limit);
}
