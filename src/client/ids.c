/* SPDX-License-Identifier: Apache-2.0 */
#include "client/ids.h"

#include <pthread.h>
#include <string.h>

#include "util/alloc.h"
#include "util/clock.h"
#include "util/id.h"
#include "util/random.h"

static _Thread_local struct hf__random numbers;
static _Thread_local hf_id last; /* made by this thread; zero: none */
static _Thread_local bool seeded;
static _Thread_local const struct hf__clock *source = &hf__system_clock;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A child process must not repeat its parent's ids. */
static void forget_seed(void)
{
    seeded = false;
    last = (hf_id){ { 0 } };
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget_seed);
}

hf_id hf__new_id(void)
{
    int64_t now = hf__clock_now(source);
    pthread_once(&once, watch_forks);
    if (!seeded) {
        if (!hf__random_seed_os(&numbers))
            hf__random_seed(&numbers, (uint64_t)now ^ (uint64_t)(uintptr_t)&numbers);
        seeded = true;
    }
    hf__id_make_after(&last, now, &numbers);
    return last;
}

void hf__new_row_of_ids(hf_id *ids, size_t count)
{
    if (count == 0)
        return;
    do
        ids[0] = hf__new_id();
    while (!hf__id_step(ids[0], count - 1, &last));
    for (size_t i = 1; i < count; i++)
        hf__id_step(ids[0], i, &ids[i]);
}

hf_id *hf__new_ids(size_t count)
{
    hf_id *ids = hf__calloc(count + 1, sizeof *ids);
    for (size_t i = 0; ids && i < count; i++)
        ids[i] = hf__new_id();
    return ids;
}

void hf__new_ids_follow(const struct hf__clock *clock, uint64_t seed)
{
    hf__random_seed(&numbers, seed);
    pthread_once(&once, watch_forks);
    seeded = true;
    source = clock;
    last = (hf_id){ { 0 } };
}

uint64_t hf__shard_of(hf_id id)
{
    uint64_t shard;
    memcpy(&shard, id.bytes + 8, sizeof shard);
    return shard;
}
