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
    void *arg;
    struct hf__ear *next;
};

struct hf__ears {
    const struct hf__driver *driver;
    struct hf__database *db;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards the list and the thread's state; held while ears are called */
    pthread_cond_t changed;
    struct hf__ear *list;
    struct hf__watch *watch; /* NULL while not connected */
    bool started;
    bool closing;
};

hf_code hf__ears_new(struct hf__ears **out, const struct hf__driver *driver,
                     struct hf__database *db, hf_error *err)
{
    struct hf__ears *ears = hf__calloc(1, sizeof *ears);
    if (!ears)
        return hf__nomem(err);
    ears->driver = driver;
    ears->db = db;
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

static void hear_one(const struct hf__heard *heard, void *arg)
{
    struct hf__ears *ears = arg;
    pthread_mutex_lock(&ears->mutex);
    tell_all(ears, heard);
    pthread_mutex_unlock(&ears->mutex);
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
    }
    pthread_mutex_unlock(&ears->mutex);
}

/* Sleeps unless the ears are closed meanwhile. Called with the mutex held. */
static void pause_for(struct hf__ears *ears, int64_t us)
{
    int64_t until = hf__monotonic_us() + us;
    struct timespec time = { .tv_sec = until / 1000000, .tv_nsec = until % 1000000 * 1000 };
    while (!ears->closing &&
           pthread_cond_timedwait(&ears->changed, &ears->mutex, &time) != ETIMEDOUT)
        ;
}

/* One connection's life; what may have been missed before it counts as heard. */
static void listen_once(struct hf__ears *ears, struct hf__watch *watch)
{
    hf_code code = HF_OK;
    hear_one(&(struct hf__heard){ .lanes = true, .run = true, .workflows_changed = true }, ears);
    while (code == HF_OK) {
        hf_error err;
        code = ears->driver->watch_wait(watch, LISTEN_FOR, hear_one, ears, &err);
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
        hf_error err;
        pthread_mutex_unlock(&ears->mutex);
        hf_code code = ears->driver->watch(&watch, ears->db, &err);
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
        ears->driver->unwatch(watch);
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

void hf__ears_free(struct hf__ears *ears)
{
    if (!ears)
        return;
    pthread_mutex_lock(&ears->mutex);
    ears->closing = true;
    if (ears->watch)
        ears->driver->watch_stop(ears->watch);
    pthread_cond_broadcast(&ears->changed);
    pthread_mutex_unlock(&ears->mutex);
    if (ears->started)
        pthread_join(ears->thread, NULL);
    pthread_cond_destroy(&ears->changed);
    pthread_mutex_destroy(&ears->mutex);
    free(ears);
}
