/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"

struct slot {
    struct hf__conn *conn;
    int64_t opened_at; /* monotonic us */
    bool busy;
};

struct hf__pool {
    struct hf__pool_options options;
    pthread_mutex_t mutex; /* guards the slots and `waited` */
    pthread_cond_t freed;
    int64_t waited;     /* takers that found no free slot */
    struct slot *slots; /* max_open of them; conn NULL: not open */
};

hf_code hf__pool_new(struct hf__pool **out, const struct hf__pool_options *options, hf_error *err)
{
    struct hf__pool *pool = hf__calloc(1, sizeof *pool);
    struct slot *slots = hf__calloc((size_t)options->max_open, sizeof *slots);
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

static bool is_old(const struct hf__pool *pool, const struct slot *slot)
{
    int64_t lifetime = pool->options.max_lifetime;
    return lifetime > 0 && hf__monotonic_us() - slot->opened_at > lifetime;
}

/* A free slot, an open one if there is any. Called with the mutex held. */
static struct slot *find_free(struct hf__pool *pool)
{
    struct slot *unopened = NULL;
    for (int i = 0; i < pool->options.max_open; i++) {
        struct slot *slot = &pool->slots[i];
        if (!slot->busy && slot->conn)
            return slot;
        if (!slot->busy && !unopened)
            unopened = slot;
    }
    return unopened;
}

static bool wait_until(struct hf__pool *pool, int64_t deadline)
{
    struct timespec time = { .tv_sec = deadline / 1000000, .tv_nsec = deadline % 1000000 * 1000 };
    return pthread_cond_timedwait(&pool->freed, &pool->mutex, &time) == 0;
}

static void release(struct hf__pool *pool, struct slot *slot)
{
    pthread_mutex_lock(&pool->mutex);
    slot->busy = false;
    pthread_cond_signal(&pool->freed);
    pthread_mutex_unlock(&pool->mutex);
}

/* A busy slot is its taker's, but for its connection, which others look at. */
static void set_conn(struct hf__pool *pool, struct slot *slot, struct hf__conn *conn)
{
    pthread_mutex_lock(&pool->mutex);
    slot->conn = conn;
    pthread_mutex_unlock(&pool->mutex);
}

hf_code hf__pool_take(struct hf__pool *pool, struct hf__conn **out, hf_error *err)
{
    int64_t deadline = hf__monotonic_us() + pool->options.connect_limit;
    struct slot *slot = NULL;
    pthread_mutex_lock(&pool->mutex);
    slot = find_free(pool);
    pool->waited += !slot;
    while (!slot && wait_until(pool, deadline))
        slot = find_free(pool);
    if (slot)
        slot->busy = true;
    struct hf__conn *conn = slot ? slot->conn : NULL;
    pthread_mutex_unlock(&pool->mutex);
    if (!slot)
        return hf__fail(err, HF_UNAVAILABLE,
                        "all %d connections are in use: raise max_open or use fewer threads",
                        pool->options.max_open);

    if (conn && (is_old(pool, slot) || pool->options.driver->lost(conn))) {
        set_conn(pool, slot, NULL);
        pool->options.driver->disconnect(conn);
        conn = NULL;
    }
    if (!conn) {
        slot->opened_at = hf__monotonic_us();
        hf_code code = pool->options.driver->connect(&conn, pool->options.db, err);
        if (code != HF_OK) {
            release(pool, slot);
            return code;
        }
        set_conn(pool, slot, conn);
    }
    *out = conn;
    return HF_OK;
}

static int idle_count(const struct hf__pool *pool)
{
    int idle = 0;
    for (int i = 0; i < pool->options.max_open; i++)
        idle += pool->slots[i].conn && !pool->slots[i].busy;
    return idle;
}

void hf__pool_give(struct hf__pool *pool, struct hf__conn *conn)
{
    struct hf__conn *close = NULL;
    pthread_mutex_lock(&pool->mutex);
    for (int i = 0; i < pool->options.max_open; i++) {
        struct slot *slot = &pool->slots[i];
        if (slot->conn != conn)
            continue;
        if (pool->options.driver->lost(conn) || idle_count(pool) >= pool->options.max_idle) {
            close = conn;
            slot->conn = NULL;
        }
        slot->busy = false;
    }
    pthread_cond_signal(&pool->freed);
    pthread_mutex_unlock(&pool->mutex);
    if (close)
        pool->options.driver->disconnect(close);
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
