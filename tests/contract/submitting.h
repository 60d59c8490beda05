/* Operations as the engine takes them, waited for or not.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_TEST_CONTRACT_SUBMITTING_H
#define HF_TEST_CONTRACT_SUBMITTING_H

#include <stdatomic.h>

#include "contract/fixture.h"

struct answers {
    atomic_int count;
};

struct hf__op op_of(enum hf__op_kind kind);
/* Returns when all are answered. */
void apply(struct hf__op *ops, size_t count);
/* Counted in `answers` when it is. */
void submit_to(hf_client *client, struct hf__op *op, struct answers *answers);
void await(struct answers *answers, int count);
void sleep_for(int64_t us);

#endif
