/* SPDX-License-Identifier: Apache-2.0 */
#include "util/thread.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#include "util/error.h"

hf_code hf__thread_start(pthread_t *thread, void *(*body)(void *arg), void *arg, hf_error *err)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failure = pthread_create(thread, NULL, body, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failure)
        return hf__fail(err, HF_UNAVAILABLE,
                        "no thread could be started: %s; raise the limit on processes",
                        strerror(failure));
    return HF_OK;
}

void hf__cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
}
