/* Connections that dribble: each has so much time to bring its next request, however often it sends a byte.
 * SPDX-License-Identifier: Apache-2.0 */
#include "server/inner.h"

#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/thread.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

struct hf__sweep_entry {
    int fd;
    bool busy;     /* its request has arrived: no limit */
    int64_t until; /* monotonic us */
    struct hf__sweep_entry *next, *previous;
};

struct hf__sweep {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct hf__sweep_entry *first;
    int64_t limit;
    bool stop;
    pthread_t thread;
};

/* The connection's own thread closes it when it finds it shut down. */
static void sweep_once(struct hf__sweep *sweep, int64_t now)
{
    for (struct hf__sweep_entry *entry = sweep->first; entry; entry = entry->next)
        if (!entry->busy && entry->until < now) {
            shutdown(entry->fd, SHUT_RDWR);
            entry->until = INT64_MAX;
        }
}

/* Sleeps without a clock while there is no connection. */
static void *sweep_main(void *arg)
{
    struct hf__sweep *sweep = arg;
    pthread_mutex_lock(&sweep->mutex);
    while (!sweep->stop) {
        int64_t next = hf__monotonic_us() + sweep->limit / 4 + 100000;
        struct timespec time = { .tv_sec = next / 1000000, .tv_nsec = next % 1000000 * 1000 };
        if (!sweep->first)
            pthread_cond_wait(&sweep->changed, &sweep->mutex);
        else
            pthread_cond_timedwait(&sweep->changed, &sweep->mutex, &time);
        sweep_once(sweep, hf__monotonic_us());
    }
    pthread_mutex_unlock(&sweep->mutex);
    return NULL;
}

hf_code hf__sweep_new(struct hf__sweep **out, int64_t limit, hf_error *err)
{
    struct hf__sweep *sweep = hf__calloc(1, sizeof *sweep);
    if (!sweep)
        return hf__nomem(err);
    hf__cond_init(&sweep->changed);
    pthread_mutex_init(&sweep->mutex, NULL);
    sweep->limit = limit;
    hf_code code = hf__thread_start(&sweep->thread, sweep_main, sweep, err);
    if (code != HF_OK)
        free(sweep);
    else
        *out = sweep;
    return code;
}

void hf__sweep_free(struct hf__sweep *sweep)
{
    if (!sweep)
        return;
    pthread_mutex_lock(&sweep->mutex);
    sweep->stop = true;
    pthread_cond_signal(&sweep->changed);
    pthread_mutex_unlock(&sweep->mutex);
    pthread_join(sweep->thread, NULL);
    pthread_cond_destroy(&sweep->changed);
    pthread_mutex_destroy(&sweep->mutex);
    free(sweep);
}

struct hf__sweep_entry *hf__sweep_add(struct hf__sweep *sweep, int fd)
{
    struct hf__sweep_entry *entry = hf__calloc(1, sizeof *entry);
    if (!entry)
        return NULL;
    entry->fd = fd;
    entry->until = hf__monotonic_us() + sweep->limit;
    pthread_mutex_lock(&sweep->mutex);
    entry->next = sweep->first;
    if (sweep->first)
        sweep->first->previous = entry;
    else
        pthread_cond_signal(&sweep->changed);
    sweep->first = entry;
    pthread_mutex_unlock(&sweep->mutex);
    return entry;
}

void hf__sweep_remove(struct hf__sweep *sweep, struct hf__sweep_entry *entry)
{
    if (!entry)
        return;
    pthread_mutex_lock(&sweep->mutex);
    if (entry->previous)
        entry->previous->next = entry->next;
    else
        sweep->first = entry->next;
    if (entry->next)
        entry->next->previous = entry->previous;
    pthread_mutex_unlock(&sweep->mutex);
    free(entry);
}

static void set_busy(struct hf__sweep *sweep, struct hf__sweep_entry *entry, bool busy)
{
    if (!entry)
        return;
    pthread_mutex_lock(&sweep->mutex);
    entry->busy = busy;
    entry->until = hf__monotonic_us() + sweep->limit;
    pthread_mutex_unlock(&sweep->mutex);
}

void hf__sweep_busy(struct hf__sweep *sweep, struct hf__sweep_entry *entry)
{
    set_busy(sweep, entry, true);
}

void hf__sweep_idle(struct hf__sweep *sweep, struct hf__sweep_entry *entry)
{
    set_busy(sweep, entry, false);
}

/* What the kernel has taken of a client that does not read counts, once. */
static uint64_t bytes_moved(int fd)
{
    struct tcp_info info = { 0 };
    socklen_t size = sizeof info;
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0
               ? info.tcpi_bytes_acked + info.tcpi_bytes_received
               : 0;
}

uint64_t hf__sweep_moved(struct hf__sweep *sweep)
{
    uint64_t moved = 0;
    pthread_mutex_lock(&sweep->mutex);
    for (const struct hf__sweep_entry *entry = sweep->first; entry; entry = entry->next)
        moved += bytes_moved(entry->fd);
    pthread_mutex_unlock(&sweep->mutex);
    return moved;
}

bool hf__sweep_hung_up(const struct hf__sweep_entry *entry, bool silent)
{
    struct pollfd look = { .fd = entry ? entry->fd : -1 };
    look.events = (short)(POLLRDHUP | (silent ? POLLIN : 0));
    return poll(&look, 1, 0) > 0;
}
