/* SPDX-License-Identifier: Apache-2.0 */
#include "server/inner.h"

#include "util/alloc.h"
#include "util/error.h"
#include "util/thread.h"

#include <stdlib.h>

struct hf__hands {
    pthread_mutex_t mutex;
    pthread_cond_t work;
    struct hf__request *first, *last; /* waiting for a hand */
    bool stop;
    int count;
    pthread_t threads[];
};

static struct hf__request *take(struct hf__hands *hands)
{
    pthread_mutex_lock(&hands->mutex);
    while (!hands->first && !hands->stop)
        pthread_cond_wait(&hands->work, &hands->mutex);
    struct hf__request *request = hands->first;
    if (request) {
        hands->first = request->next;
        request->next = NULL;
    }
    pthread_mutex_unlock(&hands->mutex);
    return request;
}

static void *hand_main(void *arg)
{
    struct hf__request *request;
    while ((request = take(arg))) {
        hf__request_work(request);
        hf__request_release(request);
    }
    return NULL;
}

hf_code hf__hands_new(struct hf__hands **out, int count, hf_error *err)
{
    struct hf__hands *hands =
        hf__calloc(1, sizeof *hands + (size_t)count * sizeof hands->threads[0]);
    if (!hands)
        return hf__nomem(err);
    pthread_mutex_init(&hands->mutex, NULL);
    pthread_cond_init(&hands->work, NULL);
    hf_code code = HF_OK;
    for (; code == HF_OK && hands->count < count; hands->count += code == HF_OK)
        code = hf__thread_start(&hands->threads[hands->count], hand_main, hands, err);
    if (code != HF_OK)
        hf__hands_free(hands);
    else
        *out = hands;
    return code;
}

void hf__hands_give(struct hf__hands *hands, struct hf__request *request)
{
    pthread_mutex_lock(&hands->mutex);
    request->next = NULL;
    if (hands->first)
        hands->last->next = request;
    else
        hands->first = request;
    hands->last = request;
    pthread_cond_signal(&hands->work);
    pthread_mutex_unlock(&hands->mutex);
}

void hf__hands_stop(struct hf__hands *hands)
{
    pthread_mutex_lock(&hands->mutex);
    hands->stop = true;
    pthread_cond_broadcast(&hands->work);
    pthread_mutex_unlock(&hands->mutex);
    for (; hands->count > 0; hands->count--)
        pthread_join(hands->threads[hands->count - 1], NULL);
}

void hf__hands_free(struct hf__hands *hands)
{
    if (!hands)
        return;
    hf__hands_stop(hands);
    pthread_cond_destroy(&hands->work);
    pthread_mutex_destroy(&hands->mutex);
    free(hands);
}
