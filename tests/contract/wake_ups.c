/* Whom a commit wakes on PostgreSQL. NOTIFY makes commits wait for each other, so it is left out unless some worker says that
 * it sleeps. B6.
 * SPDX-License-Identifier: Apache-2.0 */
#include <libpq-fe.h>
#include <poll.h>

#include "contract/fixture.h"

enum { TRIGGERS = 4, PATIENCE_MS = 120 * 1000 };

static PGconn *listen_for_wake_ups(void)
{
    PGconn *listener = PQconnectdb(fx.url);
    PGresult *result = PQexec(listener, "LISTEN holdfast_wake");
    assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK);
    PQclear(result);
    return listener;
}

/* The worker as it registers itself, the last time that it said something of itself. */
static void put_worker(bool idle)
{
    sql("INSERT INTO worker (name, tenants, serves, host, pid, program, threads, idle, started_at, "
        "seen_at, expires_at) VALUES ('asleep', '[\"*\"]', '[\"*\"]', 'here', 1, 'test', 1, %s, "
        "%lld, %lld, %lld) ON CONFLICT (name) DO UPDATE SET idle = EXCLUDED.idle",
        idle ? "true" : "false", (long long)now(), (long long)now(),
        (long long)(now() + HF_HOURS(1)));
}

/* Takes what has come; true: the marker was among it. */
static bool take_wake_ups(PGconn *listener, const char *marker, int *count)
{
    bool marked = false;
    PGnotify *notify;
    if (!PQconsumeInput(listener))
        fail_msg("%s", PQerrorMessage(listener));
    while (!marked && (notify = PQnotifies(listener)) != NULL) {
        marked = strcmp(notify->extra, marker) == 0;
        *count += !marked;
        PQfreemem(notify);
    }
    return marked;
}

/* Nobody waits for the wake-up of the last trigger to be carried out. But what one session is asked for is done in order: who
 * is answered after it by either flusher, here that there is no such run, knows that it is. */
static void await_wake_ups(void)
{
    for (int flusher = 0; flusher < 2; flusher++) {
        hf_id nobody = { .bytes = { [0] = 1, [8] = (unsigned char)flusher } };
        assert_code(hf_change_run(fx.client, nobody, HF_CANCEL, NULL, &fx.error), HF_NOT_FOUND);
    }
}

/* How many wake-ups a few triggers send. */
static int wake_ups_of_triggers(PGconn *listener)
{
    static int number;
    const char *marker = text_of("marker-%d", ++number);
    struct pollfd ready = { .fd = PQsocket(listener), .events = POLLIN };
    int count = 0;
    for (int i = 0; i < TRIGGERS; i++)
        trigger(WORK);
    await_wake_ups();
    sql("SELECT pg_notify('holdfast_wake', '%s')", marker);
    while (!take_wake_ups(listener, marker, &count))
        if (poll(&ready, 1, PATIENCE_MS) == 0)
            fail_msg("the marker does not come");
    return count;
}

/* In this order: for a second after an idle worker was seen, nobody looks again whether there is one. */
static void wake_ups_are_sent_only_if_a_worker_says_that_it_is_idle(void **state)
{
    PGconn *listener = listen_for_wake_ups();
    (void)state;
    int without = wake_ups_of_triggers(listener);
    put_worker(false);
    int with_busy = wake_ups_of_triggers(listener);
    put_worker(true);
    int with_idle = wake_ups_of_triggers(listener);
    PQfinish(listener);
    assert_int_equal(without, 0);
    assert_int_equal(with_busy, 0);
    assert_int_equal(with_idle, TRIGGERS);
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(wake_ups_are_sent_only_if_a_worker_says_that_it_is_idle),
};

CONTRACT("wake_ups", tests)
