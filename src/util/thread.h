/* Threads of the library. Signals are the program's business: these threads take none.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_UTIL_THREAD_H
#define HF_UTIL_THREAD_H

#include <holdfast/error.h>

#include <pthread.h>

hf_code hf__thread_start(pthread_t *thread, void *(*body)(void *arg), void *arg, hf_error *err)
    __attribute__((warn_unused_result));
/* A condition whose time limits are on the monotonic clock. */
void hf__cond_init(pthread_cond_t *cond);

#endif
