/* SPDX-License-Identifier: Apache-2.0 */
#include "server/park.h"

#include "client/client.h"
#include "server/inner.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/thread.h"

#include <stdlib.h>
#include <string.h>

struct hf__park {
    struct hf__hands *hands;
    struct hf__ear *ear;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct hf__request *soonest, *latest; /* asleep, by `until` */
    int asleep;                           /* how many */
    struct hf__idmap runs;                /* run -> the first of its listeners */
    struct hf__request *workers;          /* listen to lanes */
    bool stop;
    pthread_t thread;
};

/* ---- The list of sleepers ---- */

static void sleeper_remove(struct hf__park *park, struct hf__request *request)
{
    struct hf__parking *p = &request->parking;
    if (p->previous_asleep)
        p->previous_asleep->parking.next_asleep = p->next_asleep;
    else
        park->soonest = p->next_asleep;
    if (p->next_asleep)
        p->next_asleep->parking.previous_asleep = p->previous_asleep;
    else
        park->latest = p->previous_asleep;
    p->next_asleep = p->previous_asleep = NULL;
    p->asleep = false;
    park->asleep--;
}

/* From the end, since most wait equally long. */
static void sleeper_add(struct hf__park *park, struct hf__request *request)
{
    struct hf__parking *p = &request->parking;
    struct hf__request *before = park->latest;
    while (before && before->parking.until > p->until)
        before = before->parking.previous_asleep;
    p->previous_asleep = before;
    p->next_asleep = before ? before->parking.next_asleep : park->soonest;
    if (p->next_asleep)
        p->next_asleep->parking.previous_asleep = request;
    else
        park->latest = request;
    if (before)
        before->parking.next_asleep = request;
    else
        park->soonest = request;
    p->asleep = true;
    park->asleep++;
}

/* To a hand, with the park's hold on it. */
static void wake(struct hf__park *park, struct hf__request *request)
{
    sleeper_remove(park, request);
    hf__hands_give(park->hands, request);
}

static void tell(struct hf__park *park, struct hf__request *request)
{
    if (request->parking.asleep)
        wake(park, request);
    else
        request->parking.news = true;
}

/* ---- Hearing ---- */

static void tell_listeners(struct hf__park *park, struct hf__request *first)
{
    while (first) {
        struct hf__request *next = first->parking.next_listener;
        tell(park, first);
        first = next;
    }
}

static void tell_all_runs(struct hf__park *park)
{
    size_t cursor = 0;
    void *first;
    while (hf__idmap_next(&park->runs, &cursor, NULL, &first))
        tell_listeners(park, first);
}

static void hear(const struct hf__heard *heard, void *arg)
{
    struct hf__park *park = arg;
    pthread_mutex_lock(&park->mutex);
    if (heard->run && hf_id_is_zero(heard->run_id))
        tell_all_runs(park);
    else if (heard->run)
        tell_listeners(park, hf__idmap_get(&park->runs, heard->run_id));
    if (heard->lanes || heard->workflows_changed)
        tell_listeners(park, park->workers);
    pthread_mutex_unlock(&park->mutex);
}

/* ---- The clock ---- */

static void wait_until(struct hf__park *park, int64_t until)
{
    struct timespec time = { .tv_sec = until / 1000000, .tv_nsec = until % 1000000 * 1000 };
    pthread_cond_timedwait(&park->changed, &park->mutex, &time);
}

static void *clock_main(void *arg)
{
    struct hf__park *park = arg;
    pthread_mutex_lock(&park->mutex);
    while (!park->stop) {
        struct hf__request *next = park->soonest;
        if (!next)
            pthread_cond_wait(&park->changed, &park->mutex);
        else if (next->parking.until <= hf__monotonic_us())
            wake(park, next);
        else
            wait_until(park, next->parking.until);
    }
    pthread_mutex_unlock(&park->mutex);
    return NULL;
}

hf_code hf__park_new(struct hf__park **out, hf_client *client, struct hf__hands *hands,
                     hf_error *err)
{
    struct hf__park *park = hf__calloc(1, sizeof *park);
    if (!park)
        return hf__nomem(err);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&park->changed, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&park->mutex, NULL);
    park->hands = hands;
    hf__idmap_init(&park->runs);
    hf_code code = hf__thread_start(&park->thread, clock_main, park, err);
    if (code != HF_OK) {
        free(park);
        return code;
    }
    code = hf__engine_listen(client->engine, &park->ear, hear, park, err);
    if (code != HF_OK)
        hf__park_free(park);
    else
        *out = park;
    return code;
}

void hf__park_free(struct hf__park *park)
{
    if (!park)
        return;
    if (park->ear)
        hf__engine_unlisten(park->ear);
    pthread_mutex_lock(&park->mutex);
    park->stop = true;
    pthread_cond_signal(&park->changed);
    pthread_mutex_unlock(&park->mutex);
    pthread_join(park->thread, NULL);
    hf__idmap_free(&park->runs);
    pthread_cond_destroy(&park->changed);
    pthread_mutex_destroy(&park->mutex);
    free(park);
}

/* ---- Coming and going ---- */

/* False: no memory; it is then called again by the clock alone. */
static bool listener_add(struct hf__park *park, struct hf__request *request)
{
    struct hf__parking *p = &request->parking;
    struct hf__request *first = p->any ? park->workers : hf__idmap_get(&park->runs, p->run);
    if (p->any)
        park->workers = request;
    else if (!hf__idmap_put(&park->runs, p->run, request))
        return false;
    p->previous_listener = NULL;
    p->next_listener = first;
    if (first)
        first->parking.previous_listener = request;
    return true;
}

static void listener_remove(struct hf__park *park, struct hf__request *request)
{
    struct hf__parking *p = &request->parking;
    struct hf__request *next = p->next_listener;
    if (p->previous_listener)
        p->previous_listener->parking.next_listener = next;
    else if (p->any)
        park->workers = next;
    else if (!next)
        hf__idmap_remove(&park->runs, p->run);
    else if (!hf__idmap_put(&park->runs, p->run, next))
        abort(); /* replacing a value takes no memory */
    if (next)
        next->parking.previous_listener = p->previous_listener;
    p->next_listener = p->previous_listener = NULL;
    p->listening = false;
}

void hf__park_listen(struct hf__request *request, hf_id run)
{
    struct hf__park *park = request->server->park;
    pthread_mutex_lock(&park->mutex);
    request->parking.news = false;
    if (!request->parking.listening) {
        request->parking.run = run;
        request->parking.any = hf_id_is_zero(run);
        request->parking.listening = listener_add(park, request);
    }
    pthread_mutex_unlock(&park->mutex);
}

void hf__park_sleep(struct hf__request *request, int64_t until)
{
    request->parking.until = until;
    request->parked = true;
}

void hf__park_enter(struct hf__request *request)
{
    struct hf__park *park = request->server->park;
    hf__request_hold(request);
    pthread_mutex_lock(&park->mutex);
    request->parked = false;
    if (request->parking.news || atomic_load(&request->server->stopping)) {
        request->parking.news = false;
        hf__hands_give(park->hands, request);
    } else {
        sleeper_add(park, request);
        pthread_cond_signal(&park->changed);
    }
    pthread_mutex_unlock(&park->mutex);
}

void hf__park_leave(struct hf__request *request)
{
    struct hf__park *park = request->server->park;
    if (!park)
        return;
    pthread_mutex_lock(&park->mutex);
    if (request->parking.listening)
        listener_remove(park, request);
    pthread_mutex_unlock(&park->mutex);
}

void hf__park_wake(struct hf__request *request)
{
    struct hf__park *park = request->server->park;
    pthread_mutex_lock(&park->mutex);
    tell(park, request);
    pthread_mutex_unlock(&park->mutex);
}

void hf__park_tell(struct hf__park *park, hf_id channel)
{
    pthread_mutex_lock(&park->mutex);
    tell_listeners(park, hf__idmap_get(&park->runs, channel));
    pthread_mutex_unlock(&park->mutex);
}

bool hf__park_has_listeners(struct hf__park *park, hf_id channel)
{
    pthread_mutex_lock(&park->mutex);
    bool found = hf__idmap_get(&park->runs, channel) != NULL;
    pthread_mutex_unlock(&park->mutex);
    return found;
}

void hf__park_wake_all(struct hf__park *park)
{
    pthread_mutex_lock(&park->mutex);
    while (park->soonest)
        wake(park, park->soonest);
    pthread_mutex_unlock(&park->mutex);
}

int hf__park_count(struct hf__park *park)
{
    pthread_mutex_lock(&park->mutex);
    int asleep = park->asleep;
    pthread_mutex_unlock(&park->mutex);
    return asleep;
}
