/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres.h"

#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/random.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { HEARING_TEST_US = 2000000, LONGEST_NAP_US = 2000000 };

struct hf__watch {
    struct hf__database *db;
    struct hf__conn *conn; /* NULL: deaf */
    int stop;              /* an eventfd; readable for good once it was told to stop */
};

/* True when the stop came; *broken when the connection ended. Returns early with neither when something is to be read. */
static bool nap(struct hf__watch *watch, int64_t us, bool *broken)
{
    struct pollfd ready[2] = { { .fd = watch->stop, .events = POLLIN },
                               { .fd = watch->conn ? PQsocket(watch->conn->pg) : -1,
                                 .events = POLLIN } };
    us = us < LONGEST_NAP_US ? us : LONGEST_NAP_US;
    struct timespec limit = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };
    int count = ppoll(ready, 2, &limit, NULL);
    if (count < 0 && errno != EINTR)
        *broken = true;
    if (count > 0 && ready[1].revents && !PQconsumeInput(watch->conn->pg))
        *broken = true;
    return count > 0 && ready[0].revents;
}

static int64_t time_left(int64_t deadline)
{
    int64_t left = deadline - hf__monotonic_us();
    return left > 0 ? left : 0;
}

static int hear_all(struct hf__watch *watch, hf__hear hear, void *arg)
{
    int heard = 0;
    PGnotify *notify;
    while (watch->conn && (notify = PQnotifies(watch->conn->pg)) != NULL) {
        heard += hf__postgres_hear(notify->relname, notify->extra, hear, arg);
        PQfreemem(notify);
    }
    return heard;
}

/* What the pipeline cannot do: a command by itself. */
static PGresult *ask_plainly(struct hf__conn *conn, int times, const char *command)
{
    if (hf__postgres_sync(conn, NULL) != HF_OK || !PQexitPipelineMode(conn->pg))
        return NULL;
    PGresult *result = hf__postgres_ask(conn->pg, conn->db, times, command, 0, NULL);
    if (!PQenterPipelineMode(conn->pg))
        conn->lost = true;
    return result;
}

/* Others may have noticed meanwhile that the server is silent; and a line may be dead though nobody has hung up. */
static bool is_silent(struct hf__watch *watch, bool time_is_up)
{
    if (!watch->conn)
        return false;
    if (atomic_load(&watch->db->silences) != watch->conn->silences)
        return true;
    if (!time_is_up)
        return false;
    PGresult *result = ask_plainly(watch->conn, HF__PATIENCE_NONE, "");
    bool answered = PQresultStatus(result) == PGRES_EMPTY_QUERY;
    PQclear(result);
    return !answered;
}

hf_code hf__postgres_watch_wait(struct hf__watch *watch, int64_t timeout, hf__hear hear, void *arg,
                                hf_error *err)
{
    int64_t deadline;
    if (__builtin_add_overflow(hf__monotonic_us(), timeout, &deadline))
        deadline = INT64_MAX;
    bool broken = false, stopped = false;
    int64_t left = 1;
    while (hear_all(watch, hear, arg) == 0 && !stopped && left > 0) {
        if (broken || (watch->conn && watch->conn->lost))
            return hf__postgres_fail(err, NULL, watch->conn->pg, "LISTEN");
        left = time_left(deadline);
        stopped = nap(watch, left, &broken);
        if (!stopped && !broken && is_silent(watch, left == 0))
            return hf__postgres_fail_silent(watch->db, err);
    }
    return HF_OK;
}

void hf__postgres_watch_stop(struct hf__watch *watch)
{
    uint64_t one = 1;
    while (write(watch->stop, &one, sizeof one) < 0 && errno == EINTR)
        continue;
}

void hf__postgres_unwatch(struct hf__watch *watch)
{
    if (!watch)
        return;
    hf__postgres_disconnect(watch->conn);
    if (watch->stop >= 0)
        close(watch->stop);
    free(watch);
}

bool hf__postgres_watch_hears(const struct hf__watch *watch)
{
    return watch->conn != NULL;
}

/* Without prepared statements it would be slower than what it is to save. */
struct hf__conn *hf__postgres_watch_conn(struct hf__watch *watch)
{
    return watch->conn && !watch->conn->unprepared && !watch->conn->lost ? watch->conn : NULL;
}

static hf_code check_done(PGconn *pg, PGresult *result, hf_error *err)
{
    ExecStatusType status = PQresultStatus(result);
    hf_code code = HF_OK;
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        code = hf__postgres_fail(err, result, pg, "LISTEN");
    PQclear(result);
    return code;
}

/* From a second connection: a pooler may well deliver what one client sent to itself, and nothing else. */
static hf_code call_out(struct hf__database *db, const char *nonce, hf_error *err)
{
    PGconn *pg = NULL;
    hf_code code = hf__postgres_dial(&pg, db, err);
    if (code != HF_OK)
        return code;
    const char *values[] = { HF__POSTGRES_WAKE_CHANNEL, nonce };
    const char *sql = db->statements[HF__STMT_NOTIFY_RUNS].sql;
    code = check_done(pg, hf__postgres_ask(pg, db, HF__PATIENCE_WORK, sql, 2, values), err);
    PQfinish(pg);
    return code;
}

static bool take_nonce(PGconn *pg, const char *nonce)
{
    bool found = false;
    PGnotify *notify;
    while ((notify = PQnotifies(pg)) != NULL) {
        found = found || strcmp(notify->extra, nonce) == 0;
        PQfreemem(notify);
    }
    return found;
}

/* What else arrives meanwhile is dropped: a worker looks for work after it began to watch. */
static hf_code test_hearing(struct hf__watch *watch, struct hf__database *db, bool *hears,
                            hf_error *err)
{
    struct hf__random random;
    if (!hf__random_seed_os(&random))
        return hf__fail(err, HF_UNAVAILABLE, "the system has no random numbers to give");
    char nonce[32];
    snprintf(nonce, sizeof nonce, "?%" PRIx64, hf__random_u64(&random));
    hf_code code = call_out(db, nonce, err);
    if (code != HF_OK)
        return code;

    int64_t deadline = hf__monotonic_us() + HEARING_TEST_US;
    bool broken = false;
    while (!(*hears = take_nonce(watch->conn->pg, nonce)) && !broken && time_left(deadline) > 0)
        nap(watch, time_left(deadline), &broken);
    return broken && !*hears ? hf__postgres_fail(err, NULL, watch->conn->pg, "LISTEN") : HF_OK;
}

static hf_code listen_on(struct hf__conn *conn, const char *command, hf_error *err)
{
    return check_done(conn->pg, ask_plainly(conn, HF__PATIENCE_WORK, command), err);
}

static hf_code start_listening(struct hf__watch *watch, struct hf__database *db, hf_error *err)
{
    bool hears = false;
    watch->db = db;
    hf_code code = hf__postgres_connect(&watch->conn, db, err);
    if (code == HF_OK)
        code = listen_on(watch->conn, "LISTEN " HF__POSTGRES_WAKE_CHANNEL, err);
    if (code == HF_OK)
        code = listen_on(watch->conn, "LISTEN " HF__POSTGRES_RUN_CHANNEL, err);
    if (code == HF_OK)
        code = test_hearing(watch, db, &hears, err);
    if (code == HF_OK && !hears) {
        hf__postgres_disconnect(watch->conn);
        watch->conn = NULL;
    }
    return code;
}

hf_code hf__postgres_watch(struct hf__watch **out, struct hf__database *db, hf_error *err)
{
    *out = NULL;
    struct hf__watch *watch = hf__calloc(1, sizeof *watch);
    if (!watch)
        return hf__nomem(err);
    watch->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    hf_code code = HF_OK;
    if (watch->stop < 0)
        code = hf__fail(err, HF_UNAVAILABLE, "cannot make an eventfd: %s", strerror(errno));
    else
        code = start_listening(watch, db, err);
    if (code != HF_OK) {
        hf__postgres_unwatch(watch);
        return code;
    }
    *out = watch;
    return HF_OK;
}
