/* Waiting: for a run's end, for its next events. Woken by the commit that brings it, not by polling.
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/ask.h"
#include "client/client.h"
#include "client/watch.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/thread.h"

#define SAFETY_LOOK HF_SECONDS(5) /* for wake-ups that got lost, and behind poolers */
#define FIRST_PAUSE HF_MILLISECONDS(5)
#define LAST_PAUSE HF_MILLISECONDS(640)

struct waiter {
    hf_id run;
    pthread_mutex_t mutex;
    pthread_cond_t heard;
    bool news;
    struct hf__ear *ear;
};

static void hear(const struct hf__heard *heard, void *arg)
{
    struct waiter *waiter = arg;
    if (!heard->run || !(hf_id_is_zero(heard->run_id) || hf_id_equal(heard->run_id, waiter->run)))
        return;
    pthread_mutex_lock(&waiter->mutex);
    waiter->news = true;
    pthread_cond_signal(&waiter->heard);
    pthread_mutex_unlock(&waiter->mutex);
}

static hf_code waiter_start(struct waiter *waiter, hf_client *client, hf_id run, hf_error *err)
{
    *waiter = (struct waiter){ .run = run, .mutex = PTHREAD_MUTEX_INITIALIZER };
    hf__cond_init(&waiter->heard);
    return hf__engine_listen(client->engine, &waiter->ear, hear, waiter, err);
}

static void waiter_stop(struct waiter *waiter)
{
    hf__engine_unlisten(waiter->ear);
    pthread_cond_destroy(&waiter->heard);
    pthread_mutex_destroy(&waiter->mutex);
}

/* Sleeps until there is news, or until `until` (monotonic us), or for the safety look. */
static void waiter_sleep(struct waiter *waiter, int64_t until)
{
    int64_t look = hf__monotonic_us() + SAFETY_LOOK;
    int64_t wake = look < until ? look : until;
    struct timespec time = { .tv_sec = wake / 1000000, .tv_nsec = wake % 1000000 * 1000 };
    pthread_mutex_lock(&waiter->mutex);
    while (!waiter->news &&
           pthread_cond_timedwait(&waiter->heard, &waiter->mutex, &time) != ETIMEDOUT)
        ;
    waiter->news = false;
    pthread_mutex_unlock(&waiter->mutex);
}

hf_code hf__watch_try(hf_client *client, hf_id run, enum hf__watch_level level, bool *locked,
                      hf_error *err)
{
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_WATCH_RUN);
    c[0] = hf__number(client->tenant_id);
    c[1] = hf__uuid(&run);
    c[2] = hf__number((int)level);
    hf_code code = hf__ask_send(&ask, err);
    *locked = code == HF_OK && ask.out.nrows > 0 && hf__as_number(hf__table_row(&ask.out, 0)[0]);
    hf__ask_end(&ask);
    return code;
}

/* By an eighth of the time so far, for a row that many write is seldom free: a fan-out's parent is locked most of the time, and
 * whoever waits for it would be told long after its end. */
int64_t hf__watch_pause(int tries)
{
    int64_t pause = FIRST_PAUSE;
    for (int i = 0; i < tries && pause < LAST_PAUSE; i++)
        pause += pause / 8;
    return pause < LAST_PAUSE ? pause : LAST_PAUSE;
}

/* A commit that is under way is waited for: what it brings may be the news. */
static hf_code watch(hf_client *client, hf_id run, enum hf__watch_level level, int64_t until,
                     hf_error *err)
{
    bool locked = true;
    hf_code code = HF_OK;
    for (int tries = 0; code == HF_OK && locked; tries++) {
        int64_t left = until - hf__monotonic_us();
        int64_t pause = tries > 0 ? hf__watch_pause(tries - 1) : 0;
        if (tries > 0 && left <= 0)
            return hf__fail(err, HF_TIMEOUT, "somebody works on the run's row in the store");
        if (tries > 0)
            usleep((useconds_t)(pause < left ? pause : left));
        code = hf__watch_try(client, run, level, &locked, err);
    }
    return code;
}

static int64_t deadline(int64_t timeout)
{
    return timeout < 0 ? INT64_MAX : hf__monotonic_us() + timeout;
}

/* A store that is away for a moment does not end the waiting. */
static bool worth_waiting(hf_code code)
{
    return code == HF_OK || code == HF_UNAVAILABLE;
}

hf_code hf_wait(hf_client *client, hf_run **out, hf_id id, int64_t timeout, hf_error *err)
{
    int64_t until = deadline(timeout);
    hf_run *run = NULL;
    hf_code code = hf_get(client, &run, id, err);
    if (code != HF_OK || hf_status_finished(run->status)) {
        *out = run;
        return code;
    }
    struct waiter waiter;
    code = waiter_start(&waiter, client, id, err);
    while (worth_waiting(code)) {
        code = watch(client, id, HF__WATCH_END, until, err);
        if (code == HF_OK) {
            hf_run_free(run);
            run = NULL;
            code = hf_get(client, &run, id, err);
        }
        if (code == HF_OK && hf_status_finished(run->status))
            break;
        if (worth_waiting(code) && hf__monotonic_us() >= until)
            code = hf__fail(err, HF_TIMEOUT, "the run is still %s",
                            run ? hf_status_name(run->status) : "unfinished");
        if (worth_waiting(code))
            waiter_sleep(&waiter, until);
    }
    waiter_stop(&waiter);
    if (code == HF_OK)
        *out = run;
    else
        hf_run_free(run);
    return code;
}

hf_code hf_events_follow(hf_client *client, hf_events **out, hf_id id, int64_t after_seq, int limit,
                         int64_t timeout, hf_error *err)
{
    int64_t until = deadline(timeout);
    struct waiter waiter;
    hf_code code = waiter_start(&waiter, client, id, err);
    while (worth_waiting(code)) {
        hf_events *events = NULL;
        code = watch(client, id, HF__WATCH_EVENTS, until, err);
        if (code == HF_OK)
            code = hf_events_list(client, &events, id, after_seq, limit, err);
        if (code == HF_OK && events->count > 0) {
            *out = events;
            break;
        }
        hf_events_free(events);
        if (worth_waiting(code) && hf__monotonic_us() >= until)
            code = hf__fail(err, HF_TIMEOUT, "nothing happened to the run meanwhile");
        if (worth_waiting(code))
            waiter_sleep(&waiter, until);
    }
    waiter_stop(&waiter);
    return code;
}
