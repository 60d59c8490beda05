/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

static void answered(struct hf__op *op, void *arg)
{
    struct hf__errand *errand = arg;
    hf_worker *worker = errand->worker;
    if (op->told)
        errand->settle(errand);
    pthread_mutex_lock(&worker->lock);
    errand->answered = true;
    bool left = errand->left;
    pthread_cond_signal(errand->answer);
    pthread_mutex_unlock(&worker->lock);
    if (left)
        errand->dispose(errand);
    hf__worker_unref(worker);
}

void hf__errand_init(struct hf__errand *errand, hf_worker *worker, pthread_cond_t *answer,
                     void (*dispose)(struct hf__errand *))
{
    *errand = (struct hf__errand){
        .worker = worker,
        .answer = answer,
        .dispose = dispose,
        .op = { .actor = worker->name, .error = &errand->error },
    };
}

void hf__errand_send(struct hf__errand *errand)
{
    hf_worker *worker = hf__worker_ref(errand->worker);
    errand->told = errand->answered = false;
    errand->op.done = answered;
    errand->op.done_arg = errand;
    hf__engine_submit(worker->engine, &errand->op);
}

bool hf__errand_await(struct hf__errand *errand, bool told_suffices)
{
    hf_worker *worker = errand->worker;
    pthread_mutex_lock(&worker->lock);
    while (!errand->answered && !(errand->told && told_suffices) && !worker->quit)
        pthread_cond_wait(errand->answer, &worker->lock);
    bool in_hand = errand->answered || (errand->told && told_suffices);
    errand->left = !in_hand;
    pthread_mutex_unlock(&worker->lock);
    return in_hand;
}

bool hf__errand_run(struct hf__errand *errand)
{
    hf__errand_send(errand);
    return hf__errand_await(errand, false);
}
