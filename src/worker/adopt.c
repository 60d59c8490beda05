/* Claims whose answer was lost: the store says that this worker holds them, but nobody works on
 * them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

#include "client/ids.h"
#include "util/error.h"

static bool holds(hf_worker *worker, hf_id run)
{
    bool found = false;
    pthread_mutex_lock(&worker->lock);
    for (hf_ctx *turn = worker->held; turn && !found; turn = turn->older)
        found = turn->haul->standing != HF__CLAIM_LOST && hf_id_equal(turn->claimed->run.id, run);
    pthread_mutex_unlock(&worker->lock);
    return found;
}

static void give_back(hf_worker *worker, const struct hf__cell *row)
{
    hf_transition transition = {
        .version = HF_TRANSITION_VERSION,
        .run = hf__as_uuid(row[0]),
        .run_version = hf__as_number(row[2]),
        .worker = worker->name,
        .turn = HF_TURN_GIVE_BACK,
    };
    struct hf__op op = {
        .kind = HF__OP_COMMIT,
        .tenant = (int)hf__as_number(row[1]),
        .actor = worker->name,
        .commit = { .transition = &transition },
        .shard = hf__shard_of(transition.run),
    };
    hf__engine_apply(worker->engine, &op, 1);
}

void hf__adopt(hf_worker *worker)
{
    struct hf__arena arena = { 0 };
    struct hf__table params, found;
    hf__table_init(&params, &arena, 2);
    hf__table_init(&found, &arena, 3);
    hf_code code = hf__lanes_learn(worker, false, NULL);
    if (code == HF_OK)
        code = hf__heads_look(worker, NULL);
    struct hf__cell *row = hf__table_add(&params);
    const char *heads = hf__heads_json_all(&worker->heads, &arena);
    row[0] = hf__text(heads);
    row[1] = hf__text(worker->name);
    if (code == HF_OK && heads && !params.failed)
        code = hf__worker_query(worker, HF__STMT_ADOPT_RUNS, &params, &found, NULL);
    else
        code = HF_UNAVAILABLE;
    for (int i = 0; code == HF_OK && i < found.nrows; i++)
        if (!holds(worker, hf__as_uuid(hf__table_row(&found, i)[0])))
            give_back(worker, hf__table_row(&found, i));
    if (code != HF_OK)
        atomic_store(&worker->adopt, true);
    hf__arena_free(&arena);
}
