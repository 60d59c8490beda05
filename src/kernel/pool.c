/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"

struct hf__slot {
    struct hf__conn *conn;
    int64_t opened_at; /* monotonic us */
    bool busy;
};

struct hf__pool {
    struct hf__pool_options options;
    pthread_mutex_t mutex; /* guards the slots and both counters */
    pthread_cond_t freed;
    int waiting;            /* takers that wait for a slot */
    int64_t waited;         /* how many have had to, since the start */
    struct hf__slot *slots; /* max_open of them; conn NULL: not open */
};

hf_code hf__pool_new(struct hf__pool **out, const struct hf__pool_options *options, hf_error *err)
{
    struct hf__pool *pool = hf__calloc(1, sizeof *pool);
    struct hf__slot *slots = hf__calloc((size_t)options->max_open, sizeof *slots);
    if (!pool || !slots) {
        free(pool);
        free(slots);
        return hf__nomem(err);
    }
    pool->options = *options;
    pool->slots = slots;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->freed, &attr);
    pthread_condattr_destroy(&attr);
    *out = pool;
    return HF_OK;
}

void hf__pool_free(struct hf__pool *pool)
{
    if (!pool)
        return;
    for (int i = 0; i < pool->options.max_open; i++)
        if (pool->slots[i].conn)
            pool->options.driver->disconnect(pool->slots[i].conn);
    pthread_cond_destroy(&pool->freed);
    pthread_mutex_destroy(&pool->mutex);
    free(pool->slots);
    free(pool);
}

static bool is_old(const struct hf__pool *pool, const struct hf__slot *slot)
{
    int64_t lifetime = pool->options.max_lifetime;
    return lifetime > 0 && hf__monotonic_us() - slot->opened_at > lifetime;
}

static bool is_idle(const struct hf__slot *slot)
{
    return slot->conn && !slot->busy;
}

static int idle_count(const struct hf__pool *pool)
{
    int idle = 0;
    for (int i = 0; i < pool->options.max_open; i++)
        idle += is_idle(&pool->slots[i]);
    return idle;
}

/* ---- Slots ---- */

/* A free slot; with or without a connection, if there is the choice. Called with the mutex held. */
static struct hf__slot *find_free(struct hf__pool *pool, bool open)
{
    struct hf__slot *other = NULL;
    for (int i = 0; i < pool->options.max_open; i++) {
        struct hf__slot *slot = &pool->slots[i];
        if (slot->busy)
            continue;
        if ((slot->conn != NULL) == open)
            return slot;
        if (!other)
            other = slot;
    }
    return other;
}

static bool wait_until(struct hf__pool *pool, int64_t deadline)
{
    struct timespec time = { .tv_sec = deadline / 1000000, .tv_nsec = deadline % 1000000 * 1000 };
    return pthread_cond_timedwait(&pool->freed, &pool->mutex, &time) == 0;
}

/* A slot for the caller alone; waits for it. */
static hf_code occupy(struct hf__pool *pool, bool open, struct hf__slot **out, hf_error *err)
{
    int64_t deadline = hf__monotonic_us() + pool->options.connect_limit;
    pthread_mutex_lock(&pool->mutex);
    struct hf__slot *slot = find_free(pool, open);
    bool waits = !slot;
    pool->waiting += waits;
    pool->waited += waits;
    while (!slot && wait_until(pool, deadline))
        slot = find_free(pool, open);
    pool->waiting -= waits;
    if (slot)
        slot->busy = true;
    pthread_mutex_unlock(&pool->mutex);
    *out = slot;
    if (slot)
        return HF_OK;
    return hf__fail(
        err, HF_UNAVAILABLE,
        "all %d connections for reading are in use: raise max_open or use fewer threads",
        pool->options.max_open);
}

/* Called with the mutex held. */
static void vacate(struct hf__pool *pool, struct hf__slot *slot)
{
    slot->busy = false;
    pthread_cond_signal(&pool->freed);
}

void hf__pool_release(struct hf__pool *pool, struct hf__slot *slot)
{
    pthread_mutex_lock(&pool->mutex);
    vacate(pool, slot);
    pthread_mutex_unlock(&pool->mutex);
}

/* A busy slot is its taker's, but for its connection, which others look at. */
static void set_conn(struct hf__pool *pool, struct hf__slot *slot, struct hf__conn *conn)
{
    pthread_mutex_lock(&pool->mutex);
    slot->conn = conn;
    pthread_mutex_unlock(&pool->mutex);
}

/* The slot is the caller's still, so that nobody opens another connection before this one is closed. */
static void close_conn(struct hf__pool *pool, struct hf__slot *slot)
{
    struct hf__conn *conn = slot->conn;
    set_conn(pool, slot, NULL);
    if (conn)
        pool->options.driver->disconnect(conn);
}

hf_code hf__pool_reserve(struct hf__pool *pool, struct hf__slot **out, hf_error *err)
{
    hf_code code = occupy(pool, false, out, err);
    if (code == HF_OK)
        close_conn(pool, *out);
    return code;
}

/* ---- Connections ---- */

static hf_code open_conn(struct hf__pool *pool, struct hf__slot *slot, hf_error *err)
{
    struct hf__conn *conn = NULL;
    slot->opened_at = hf__monotonic_us();
    hf_code code = pool->options.driver->connect(&conn, pool->options.db, err);
    if (code == HF_OK)
        set_conn(pool, slot, conn);
    return code;
}

hf_code hf__pool_take(struct hf__pool *pool, struct hf__conn **out, hf_error *err)
{
    struct hf__slot *slot;
    hf_code code = occupy(pool, true, &slot, err);
    if (code != HF_OK)
        return code;
    if (slot->conn && (is_old(pool, slot) || pool->options.driver->lost(slot->conn)))
        close_conn(pool, slot);
    if (!slot->conn)
        code = open_conn(pool, slot, err);
    if (code == HF_OK)
        *out = slot->conn;
    else
        hf__pool_release(pool, slot);
    return code;
}

/* Called with the mutex held. */
static struct hf__slot *slot_of(struct hf__pool *pool, const struct hf__conn *conn)
{
    struct hf__slot *slot = pool->slots;
    while (slot->conn != conn)
        slot++;
    return slot;
}

/* Whoever waits takes it over, however few may be kept. Called with the mutex held. */
static bool is_wanted(const struct hf__pool *pool)
{
    int idle = idle_count(pool);
    return idle < pool->options.max_idle || idle < pool->waiting;
}

/* An unused connection that is too old, for the caller to close. */
static struct hf__slot *occupy_old(struct hf__pool *pool)
{
    struct hf__slot *old = NULL;
    pthread_mutex_lock(&pool->mutex);
    for (int i = 0; i < pool->options.max_open && !old; i++)
        if (is_idle(&pool->slots[i]) && is_old(pool, &pool->slots[i]))
            old = &pool->slots[i];
    if (old)
        old->busy = true;
    pthread_mutex_unlock(&pool->mutex);
    return old;
}

static void close_and_release(struct hf__pool *pool, struct hf__slot *slot)
{
    close_conn(pool, slot);
    hf__pool_release(pool, slot);
}

static void close_old(struct hf__pool *pool)
{
    struct hf__slot *old;
    while (pool->options.max_lifetime > 0 && (old = occupy_old(pool)) != NULL)
        close_and_release(pool, old);
}

void hf__pool_give(struct hf__pool *pool, struct hf__conn *conn)
{
    pthread_mutex_lock(&pool->mutex);
    struct hf__slot *slot = slot_of(pool, conn);
    bool stays = !pool->options.driver->lost(conn) && is_wanted(pool);
    if (stays)
        vacate(pool, slot);
    pthread_mutex_unlock(&pool->mutex);
    if (!stays)
        close_and_release(pool, slot);
    close_old(pool);
}

struct hf__pool_use hf__pool_use(struct hf__pool *pool)
{
    struct hf__pool_use use = { 0 };
    pthread_mutex_lock(&pool->mutex);
    for (int i = 0; i < pool->options.max_open; i++)
        use.open += pool->slots[i].conn != NULL;
    use.idle = idle_count(pool);
    use.waited = pool->waited;
    pthread_mutex_unlock(&pool->mutex);
    return use;
}
