/* The lanes that a worker may claim from: those of the workflows it serves, in the tenants it
 * works for. Used by one thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_WORKER_LANES_H
#define HF_WORKER_LANES_H

#include <holdfast/worker.h>

struct hf__lane {
    int32_t id;
    bool served; /* false: somebody else's, remembered so as not to ask again */
};

struct hf__lanes {
    struct hf__lane *items; /* by id */
    size_t count;
    int64_t learned_at; /* monotonic us; 0: never */
};

/* Reads them from the store. Foreign lanes are remembered unless `afresh`. */
hf_code hf__lanes_learn(hf_worker *worker, bool afresh, hf_error *err);
/* NULL: never heard of. */
const struct hf__lane *hf__lanes_find(const struct hf__lanes *lanes, int32_t id);
hf_code hf__lanes_add_foreign(struct hf__lanes *lanes, int32_t id, hf_error *err);
void hf__lanes_free(struct hf__lanes *lanes);

/* Patterns as the store keeps them: a JSON array of "name" and "family.*". The caller frees it;
 * NULL: no memory. */
char *hf__lanes_patterns_json(const hf_worker *worker);

#endif
