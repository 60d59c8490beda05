/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/renewer.h"

#include "util/clock.h"
#include "util/error.h"
#include "util/thread.h"

#include <signal.h>
#include <string.h>
#include <time.h>

/* Sleeps so many us; false when it is time to stop. */
static bool sleep_a_while(struct cli_renewer *renewer, int64_t us)
{
    int64_t until = hf__monotonic_us() + us;
    struct timespec deadline = { .tv_sec = until / 1000000, .tv_nsec = until % 1000000 * 1000 };
    pthread_mutex_lock(&renewer->mutex);
    int waited = 0;
    while (!renewer->stopping && waited == 0)
        waited = pthread_cond_timedwait(&renewer->wake, &renewer->mutex, &deadline);
    bool go_on = !renewer->stopping;
    pthread_mutex_unlock(&renewer->mutex);
    return go_on;
}

/* False when the lock is somebody else's. A store that does not answer is asked again, sooner than usual; the waiting
 * process gives up by `valid_until`. */
static bool renew(struct cli_renewer *renewer, int64_t *pause)
{
    int64_t asked_at = hf__monotonic_us();
    hf_code code = hf_lock_renew(renewer->client, &renewer->lock, renewer->ttl, NULL);
    if (code == HF_OK)
        atomic_store(&renewer->valid_until, asked_at + renewer->ttl);
    *pause = code == HF_OK ? renewer->ttl / 3 : renewer->ttl / 10;
    return code != HF_STALE && code != HF_LOCKED && code != HF_NOT_FOUND;
}

static void *keep_renewing(void *arg)
{
    struct cli_renewer *renewer = arg;
    int64_t pause = renewer->ttl / 3;
    while (sleep_a_while(renewer, pause)) {
        if (!renew(renewer, &pause)) {
            atomic_store(&renewer->lost, true);
            pthread_kill(renewer->main_thread, SIGCHLD);
            break;
        }
    }
    return NULL;
}

hf_code cli_renewer_start(struct cli_renewer *renewer, int64_t valid_until, hf_error *err)
{
    hf__cond_init(&renewer->wake);
    pthread_mutex_init(&renewer->mutex, NULL);
    renewer->main_thread = pthread_self();
    renewer->stopping = false;
    atomic_store(&renewer->lost, false);
    atomic_store(&renewer->valid_until, valid_until);
    int failure = pthread_create(&renewer->thread, NULL, keep_renewing, renewer);
    if (failure == 0)
        return HF_OK;
    return hf__fail(err, HF_INTERNAL, "cannot start a thread: %s", strerror(failure));
}

void cli_renewer_stop(struct cli_renewer *renewer)
{
    pthread_mutex_lock(&renewer->mutex);
    renewer->stopping = true;
    pthread_cond_signal(&renewer->wake);
    pthread_mutex_unlock(&renewer->mutex);
    pthread_join(renewer->thread, NULL);
    pthread_cond_destroy(&renewer->wake);
    pthread_mutex_destroy(&renewer->mutex);
}
