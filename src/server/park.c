/* SPDX-License-Identifier: Apache-2.0 */
#include "server/park.h"

#include "client/client.h"
#include "server/inner.h"
#include "server/sleepers.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/thread.h"

#include <stdlib.h>
#include <string.h>

/* News that names no run wakes everybody who listens to one, no more often than they can be served. */
enum { PACE = 300 }; /* us for each of them */

const hf_id hf__lost_leases = { { 0xff, 'l', 'e', 'a', 's', 'e', 's' } };

struct hf__park {
    struct hf__hands *hands;
    struct hf__ear *ear;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct hf__sleepers sleepers;
    int asleep;            /* how many they are */
    struct hf__idmap runs; /* run -> the first of its listeners */
    int64_t listeners;     /* of all runs */
    int64_t tell_all_at;   /* monotonic us; 0: nothing is to be told to all */
    int64_t told_all_at;
    struct hf__request *workers; /* listen to lanes */
    bool stop;
    pthread_t thread;
};

/* To a hand, with the park's hold on it. */
static void wake(struct hf__park *park, struct hf__request *request)
{
    hf__sleepers_remove(&park->sleepers, request);
    park->asleep--;
    request->parking.asleep = false;
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
    park->told_all_at = hf__monotonic_us();
    park->tell_all_at = 0;
    while (hf__idmap_next(&park->runs, &cursor, NULL, &first))
        tell_listeners(park, first);
}

static void plan_to_tell_all(struct hf__park *park)
{
    int64_t now = hf__monotonic_us();
    int64_t soonest = park->told_all_at + park->listeners * PACE;
    if (park->tell_all_at || park->listeners == 0)
        return;
    park->tell_all_at = soonest > now ? soonest : now;
    pthread_cond_signal(&park->changed);
}

static void hear(const struct hf__heard *heard, void *arg)
{
    struct hf__park *park = arg;
    pthread_mutex_lock(&park->mutex);
    if (heard->run && hf_id_is_zero(heard->run_id))
        plan_to_tell_all(park);
    else if (heard->run)
        tell_listeners(park, hf__idmap_get(&park->runs, heard->run_id));
    if (heard->lanes || heard->workflows_changed)
        tell_listeners(park, park->workers);
    if (heard->leases_lost)
        tell_listeners(park, hf__idmap_get(&park->runs, hf__lost_leases));
    pthread_mutex_unlock(&park->mutex);
}

/* ---- The clock ---- */

static void wait_until(struct hf__park *park, int64_t until)
{
    struct timespec time = { .tv_sec = until / 1000000, .tv_nsec = until % 1000000 * 1000 };
    pthread_cond_timedwait(&park->changed, &park->mutex, &time);
}

/* Of two times of which one may be 0: none. */
static int64_t sooner(int64_t a, int64_t b)
{
    return !a || (b && b < a) ? b : a;
}

static void *clock_main(void *arg)
{
    struct hf__park *park = arg;
    pthread_mutex_lock(&park->mutex);
    while (!park->stop) {
        struct hf__request *next = park->sleepers.soonest;
        int64_t now = hf__monotonic_us();
        if (next && next->parking.until <= now)
            wake(park, next);
        else if (park->tell_all_at && park->tell_all_at <= now)
            tell_all_runs(park);
        else if (next || park->tell_all_at)
            wait_until(park, sooner(next ? next->parking.until : 0, park->tell_all_at));
        else
            pthread_cond_wait(&park->changed, &park->mutex);
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
    hf__cond_init(&park->changed);
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
    park->listeners += !p->any;
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
    park->listeners -= !p->any;
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
        request->parking.asleep = true;
        hf__sleepers_add(&park->sleepers, request);
        park->asleep++;
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
    while (park->sleepers.soonest)
        wake(park, park->sleepers.soonest);
    pthread_mutex_unlock(&park->mutex);
}

void hf__park_tell_workers(struct hf__park *park, bool (*meant)(struct hf__request *, void *arg),
                           void *arg)
{
    pthread_mutex_lock(&park->mutex);
    for (struct hf__request *next, *request = park->workers; request; request = next) {
        next = request->parking.next_listener;
        if (meant(request, arg))
            tell(park, request);
    }
    pthread_mutex_unlock(&park->mutex);
}

int hf__park_count(struct hf__park *park)
{
    pthread_mutex_lock(&park->mutex);
    int asleep = park->asleep;
    pthread_mutex_unlock(&park->mutex);
    return asleep;
}
