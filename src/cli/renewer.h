/* Keeps a host lock by renewing it from a thread of its own.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_RENEWER_H
#define HF_CLI_RENEWER_H

#include <holdfast/client.h>

#include <pthread.h>
#include <stdatomic.h>

struct cli_renewer {
    hf_client *client; /* borrowed */
    hf_lock lock;
    int64_t ttl;                 /* us */
    _Atomic int64_t valid_until; /* monotonic us: the lock is surely ours before it */
    atomic_bool lost;            /* somebody else has it */
    pthread_t main_thread;       /* gets SIGCHLD when the lock is lost, to look at `lost` */
    pthread_t thread;
    pthread_mutex_t mutex; /* guards `stopping` */
    pthread_cond_t wake;
    bool stopping;
};

/* The lock is held and valid until `valid_until` (monotonic us). Renews it at each third of `ttl`. */
hf_code cli_renewer_start(struct cli_renewer *renewer, int64_t valid_until,
                          hf_error *err) HF_MUST_CHECK;
void cli_renewer_stop(struct cli_renewer *renewer);

#endif
