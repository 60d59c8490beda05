/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/ears.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/thread.h"

#define LISTEN_FOR HF_SECONDS(60)
#define FIRST_BACKOFF HF_MILLISECONDS(50)
#define LAST_BACKOFF HF_SECONDS(2)

struct hf__ear {
    struct hf__ears *ears;
    hf__hear hear;
    hf__stand_by claim; /* NULL: it waits for no runs */
    void *arg;
    struct hf__ear *next;
};

struct hf__ears {
    struct hf__ears_options options;
    struct hf__flusher flusher; /* of claims that are made while listening */
    pthread_t thread;
    pthread_mutex_t mutex; /* guards the list and the thread's state; held while ears are called */
    pthread_cond_t changed;
    struct hf__ear *list;
    struct hf__watch *watch; /* NULL while not connected */
    bool started;
    bool closing;
};

static void tell_own(const struct hf__wake *wake, void *arg)
{
    hf__ears_tell(arg, wake);
}

hf_code hf__ears_new(struct hf__ears **out, const struct hf__ears_options *options, hf_error *err)
{
    struct hf__ears *ears = hf__calloc(1, sizeof *ears);
    if (!ears)
        return hf__nomem(err);
    ears->options = *options;
    hf__flusher_init(&ears->flusher, options->driver, NULL);
    ears->flusher.woke = tell_own;
    ears->flusher.woke_arg = ears;
    ears->flusher.metrics = options->metrics;
    pthread_mutex_init(&ears->mutex, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&ears->changed, &attr);
    pthread_condattr_destroy(&attr);
    *out = ears;
    return HF_OK;
}

static void tell_all(struct hf__ears *ears, const struct hf__heard *heard)
{
    for (struct hf__ear *ear = ears->list; ear; ear = ear->next)
        ear->hear(heard, ear->arg);
}

void hf__ears_tell(struct hf__ears *ears, const struct hf__wake *wake)
{
    pthread_mutex_lock(&ears->mutex);
    if (ears->list) {
        for (int i = 0; i < wake->lane_count; i++)
            tell_all(ears, &(struct hf__heard){
                               .lanes = true, .lane = wake->lanes[i], .earliest = wake->earliest });
        for (int i = 0; i < wake->watched_count; i++)
            tell_all(ears, &(struct hf__heard){ .run = true, .run_id = wake->watched[i] });
        if (wake->workflows_changed)
            tell_all(ears, &(struct hf__heard){ .workflows_changed = true });
        if (wake->leases_lost)
            tell_all(ears, &(struct hf__heard){ .leases_lost = true });
    }
    pthread_mutex_unlock(&ears->mutex);
}

struct hf__op *hf__ears_ask(struct hf__ears *ears, int32_t lane, const int *priority)
{
    struct hf__op *claim = NULL;
    pthread_mutex_lock(&ears->mutex);
    for (struct hf__ear *ear = ears->list; ear && !claim; ear = ear->next)
        if (ear->claim)
            claim = ear->claim(lane, priority, ear->arg);
    pthread_mutex_unlock(&ears->mutex);
    return claim;
}

/* ---- Claims while listening ---- */

static void fail(struct hf__op *op, const hf_error *err)
{
    op->decided = true;
    op->code = err->code;
    if (op->error)
        *op->error = *err;
}

/* A claim of which nobody knows whether it happened is not repeated. All others are left to a flusher. */
static void flush_claim(struct hf__ears *ears, struct hf__op *claim)
{
    hf_error err = { 0 };
    bool unknown = false;
    int64_t began = hf__monotonic_us();
    hf__op_begin(claim, began);
    claim->flushed_at = began;
    hf_code code = hf__flush(&ears->flusher, &claim, 1, &unknown, &err);
    hf__metrics_flush(ears->options.metrics, 1, hf__monotonic_us() - began);
    if (code != HF_OK && unknown)
        fail(claim, &err);
    if (claim->decided)
        claim->done(claim, claim->done_arg);
    else
        ears->options.submit(claim, ears->options.arg);
}

/* The session that was woken is awake, and so is this thread: a claim from here spares the way through two more of each. True:
 * it was made. */
static bool claim_at_once(struct hf__ears *ears, const struct hf__heard *heard)
{
    if (!heard->lanes || heard->lane <= 0 || !ears->options.driver->watch_conn)
        return false;
    ears->flusher.conn = ears->options.driver->watch_conn(ears->watch);
    if (!ears->flusher.conn)
        return false;
    struct hf__op *claim = hf__ears_ask(ears, heard->lane, NULL);
    if (claim) {
        claim->claim.run = heard->fresh;
        claim->claim.place = heard->place;
        flush_claim(ears, claim);
    }
    return claim != NULL;
}

static void hear_one(const struct hf__heard *heard, void *arg)
{
    struct hf__ears *ears = arg;
    struct hf__heard rest = *heard;
    rest.taken = claim_at_once(ears, heard);
    pthread_mutex_lock(&ears->mutex);
    tell_all(ears, &rest);
    pthread_mutex_unlock(&ears->mutex);
}

/* ---- Listening ---- */

/* Sleeps unless the ears are closed meanwhile. Called with the mutex held. */
static void pause_for(struct hf__ears *ears, int64_t us)
{
    int64_t until = hf__monotonic_us() + us;
    struct timespec time = { .tv_sec = until / 1000000, .tv_nsec = until % 1000000 * 1000 };
    while (!ears->closing &&
           pthread_cond_timedwait(&ears->changed, &ears->mutex, &time) != ETIMEDOUT)
        ;
}

/* To test its hearing, it may open a second connection for a moment. */
static hf_code open_watch(struct hf__ears *ears, struct hf__watch **out)
{
    hf_error err;
    struct hf__slot *slot;
    hf_code code = hf__pool_reserve(ears->options.pool, &slot, &err);
    if (code != HF_OK)
        return code;
    code = ears->options.driver->watch(out, ears->options.db, &err);
    hf__pool_release(ears->options.pool, slot);
    return code;
}

/* us for which to listen on; not positive: the connection is too old. */
static int64_t time_to_listen(const struct hf__ears *ears, int64_t began)
{
    int64_t lifetime = ears->options.max_lifetime;
    int64_t left = lifetime > 0 ? began + lifetime - hf__monotonic_us() : LISTEN_FOR;
    return left < LISTEN_FOR ? left : LISTEN_FOR;
}

/* One connection's life; what may have been missed before it counts as heard. */
static void listen_once(struct hf__ears *ears, struct hf__watch *watch)
{
    hf_code code = HF_OK;
    int64_t began = hf__monotonic_us(), left;
    ears->flusher.conn = NULL;
    hear_one(
        &(struct hf__heard){
            .lanes = true, .run = true, .workflows_changed = true, .leases_lost = true },
        ears);
    while (code == HF_OK && (left = time_to_listen(ears, began)) > 0) {
        hf_error err;
        code = ears->options.driver->watch_wait(watch, left, hear_one, ears, &err);
        if (ears->flusher.conn && ears->options.driver->lost(ears->flusher.conn))
            code = HF_UNAVAILABLE;
        pthread_mutex_lock(&ears->mutex);
        if (ears->closing)
            code = HF_CLOSED;
        pthread_mutex_unlock(&ears->mutex);
    }
}

static void *ears_thread(void *arg)
{
    struct hf__ears *ears = arg;
    int64_t backoff = FIRST_BACKOFF;
    pthread_mutex_lock(&ears->mutex);
    while (!ears->closing) {
        struct hf__watch *watch = NULL;
        pthread_mutex_unlock(&ears->mutex);
        hf_code code = open_watch(ears, &watch);
        pthread_mutex_lock(&ears->mutex);
        if (code != HF_OK) {
            pause_for(ears, backoff);
            backoff = backoff * 2 < LAST_BACKOFF ? backoff * 2 : LAST_BACKOFF;
            continue;
        }
        backoff = FIRST_BACKOFF;
        ears->watch = watch;
        bool closing = ears->closing;
        pthread_mutex_unlock(&ears->mutex);
        if (!closing)
            listen_once(ears, watch);
        pthread_mutex_lock(&ears->mutex);
        ears->watch = NULL;
        ears->options.driver->unwatch(watch);
    }
    pthread_mutex_unlock(&ears->mutex);
    return NULL;
}

hf_code hf__ears_add(struct hf__ears *ears, struct hf__ear **out, hf__hear hear, void *arg,
                     hf_error *err)
{
    struct hf__ear *ear = hf__calloc(1, sizeof *ear);
    if (!ear)
        return hf__nomem(err);
    ear->ears = ears;
    ear->hear = hear;
    ear->arg = arg;
    hf_code code = HF_OK;
    pthread_mutex_lock(&ears->mutex);
    if (!ears->started)
        code = hf__thread_start(&ears->thread, ears_thread, ears, err);
    if (code == HF_OK) {
        ears->started = true;
        ear->next = ears->list;
        ears->list = ear;
    }
    pthread_mutex_unlock(&ears->mutex);
    if (code != HF_OK)
        free(ear);
    else
        *out = ear;
    return code;
}

void hf__ear_stand_by(struct hf__ear *ear, hf__stand_by claim)
{
    pthread_mutex_lock(&ear->ears->mutex);
    ear->claim = claim;
    pthread_mutex_unlock(&ear->ears->mutex);
}

void hf__ears_remove(struct hf__ear *ear)
{
    if (!ear)
        return;
    struct hf__ears *ears = ear->ears;
    pthread_mutex_lock(&ears->mutex);
    for (struct hf__ear **at = &ears->list; *at; at = &(*at)->next)
        if (*at == ear) {
            *at = ear->next;
            break;
        }
    pthread_mutex_unlock(&ears->mutex);
    free(ear);
}

void hf__ears_stop(struct hf__ears *ears)
{
    if (!ears)
        return;
    pthread_mutex_lock(&ears->mutex);
    ears->closing = true;
    if (ears->watch)
        ears->options.driver->watch_stop(ears->watch);
    pthread_cond_broadcast(&ears->changed);
    pthread_mutex_unlock(&ears->mutex);
    if (ears->started)
        pthread_join(ears->thread, NULL);
    ears->started = false;
}

void hf__ears_free(struct hf__ears *ears)
{
    if (!ears)
        return;
    hf__ears_stop(ears);
    hf__flusher_free(&ears->flusher);
    pthread_cond_destroy(&ears->changed);
    pthread_mutex_destroy(&ears->mutex);
    free(ears);
}
