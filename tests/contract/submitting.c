/* SPDX-License-Identifier: Apache-2.0 */
#include "contract/submitting.h"

#include <time.h>

#include "client/client.h"

struct hf__op op_of(enum hf__op_kind kind)
{
    return (struct hf__op){ .kind = kind, .tenant = fx.client->tenant_id, .actor = "tester" };
}

void apply(struct hf__op *ops, size_t count)
{
    hf__engine_apply(fx.client->engine, ops, count);
}

void sleep_for(int64_t us)
{
    struct timespec time = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };
    nanosleep(&time, NULL);
}

static void count_answer(struct hf__op *op, void *arg)
{
    struct answers *answers = arg;
    (void)op;
    atomic_fetch_add(&answers->count, 1);
}

void submit_to(hf_client *client, struct hf__op *op, struct answers *answers)
{
    op->done = count_answer;
    op->done_arg = answers;
    hf__engine_submit(client->engine, op);
}

void await(struct answers *answers, int count)
{
    while (atomic_load(&answers->count) < count)
        sleep_for(HF_MILLISECONDS(1));
}
