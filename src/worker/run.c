/* A worker's working life: from its registration to its end.
 * SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

#include "client/client.h"
#include "util/error.h"
#include "util/thread.h"

#include <string.h>
#include <time.h>

#define ENROL_PAUSE_NS 100000000 /* between tries while the store is away */

static hf_code put_workflows(hf_worker *worker, const struct hf__master *master, hf_error *err)
{
    hf_code code = HF_OK;
    for (size_t i = 0; code == HF_OK && i < worker->registry.count; i++) {
        const struct hf__served *route = &worker->registry.routes[i];
        hf_workflow workflow = { .name = route->pattern };
        if (!route->family)
            code = hf_workflow_put(master->client, &workflow, 0, err);
    }
    return code;
}

/* What a former worker of this name held is due at once. Not of one whose name is made anew each time. */
static hf_code end_former_leases(hf_worker *worker, hf_error *err)
{
    hf_code code = HF_OK;
    if (worker->named && worker->all_tenants)
        return hf__leases_end(worker->engine, 0, worker->name, err);
    for (size_t i = 0; worker->named && code == HF_OK && i < worker->master_count; i++)
        code = hf__leases_end(worker->engine, worker->masters[i]->id, worker->name, err);
    return code;
}

/* May be done again: what is there already is left as it is. */
static hf_code enrol(hf_worker *worker, hf_error *err)
{
    hf_code code = hf__masters_resolve(worker, err);
    for (size_t i = 0; code == HF_OK && i < worker->master_count; i++)
        code = put_workflows(worker, worker->masters[i], err);
    if (code == HF_OK)
        code = hf__chores_prepare(worker, err);
    if (code == HF_OK)
        code = hf__identity_describe(worker, err);
    if (code == HF_OK)
        code = hf__identity_register(worker, err);
    if (code == HF_OK)
        code = end_former_leases(worker, err);
    return code;
}

static bool is_stopped(hf_worker *worker)
{
    return atomic_load(&worker->stop_calls) > 0;
}

/* The store was there when it was opened. If it has gone since, a worker waits for it, as it does later in its life. */
static hf_code prepare(hf_worker *worker, hf_error *err)
{
    hf_code code;
    while ((code = enrol(worker, err)) == HF_UNAVAILABLE && !is_stopped(worker)) {
        hf__worker_heard_from_store(worker, code, err);
        nanosleep(&(struct timespec){ .tv_nsec = ENROL_PAUSE_NS }, NULL);
    }
    hf__worker_heard_from_store(worker, code, err);
    if (code == HF_OK)
        code = hf__engine_listen(worker->engine, &worker->ear, hf__claimer_hear, worker, err);
    if (code == HF_OK)
        hf__engine_stand_by(worker->ear, hf__standby_lend);
    return code;
}

/* What a start has brought to life. */
struct crew {
    bool claimer;
    bool beat;
};

static hf_code start(hf_worker *worker, struct crew *crew, hf_error *err)
{
    int hands = 0;
    while (hands < worker->threads && hf__hand_start(worker))
        hands++;
    hf_code code = HF_OK;
    if (hands < worker->threads)
        code = hf__fail(err, HF_UNAVAILABLE,
                        "the system gave no more threads; ask for less than %d", worker->threads);
    if (code == HF_OK)
        code = hf__thread_start(&worker->beat_thread, hf__beat_main, worker, err);
    crew->beat = code == HF_OK;
    if (code == HF_OK)
        code = hf__thread_start(&worker->claimer_thread, hf__claimer_main, worker, err);
    crew->claimer = code == HF_OK;
    return code;
}

static void end(hf_worker *worker, const struct crew *crew)
{
    if (!crew->claimer) {
        pthread_mutex_lock(&worker->lock);
        worker->claimer_ended = true;
        pthread_mutex_unlock(&worker->lock);
        hf_worker_stop(worker);
    }
    hf__drain(worker);
    if (crew->claimer)
        pthread_join(worker->claimer_thread, NULL);
    if (crew->beat)
        pthread_join(worker->beat_thread, NULL);
    hf__hands_part(worker);
}

hf_code hf_worker_run(hf_worker *worker, hf_error *err)
{
    struct crew crew = { false, false };
    if (worker->has_run)
        return hf__fail(err, HF_INVALID, "a worker runs once; make a new one");
    if (worker->registry.count == 0 && !worker->chores_only)
        return hf__fail(err, HF_INVALID,
                        "the worker has no handlers; register one before running it");
    hf_code code = hf__fitting_choose(worker, err);
    if (code != HF_OK)
        return code;
    worker->has_run = true;

    code = prepare(worker, err);
    if (code == HF_OK) {
        code = start(worker, &crew, err);
        if (code == HF_OK)
            hf__worker_say(worker, HF_WORKER_STARTED, worker->name);
        end(worker, &crew);
    } else if (code == HF_UNAVAILABLE && is_stopped(worker)) {
        code = HF_OK; /* nothing was begun */
    }
    if (worker->ear)
        hf__engine_unlisten(worker->ear);
    hf__identity_remove(worker);
    hf__masters_leave(worker);
    hf__worker_say(worker, HF_WORKER_STOPPED, NULL);
    atomic_store(&worker->silent, true);
    if (code == HF_OK && worker->end_code != HF_OK)
        code = hf__fail(err, worker->end_code, "the worker ended by itself: %s",
                        hf_code_meaning(worker->end_code));
    return code;
}
