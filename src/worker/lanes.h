/* The lanes that a worker may claim from: those of the workflows it serves, in the tenants it
 * works for. Used by one thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_WORKER_LANES_H
#define HF_WORKER_LANES_H

#include <holdfast/worker.h>

struct hf__lane {
    int32_t id;
    int32_t workflow; /* the store's number for it */
    int tenant;       /* the same */
    int weight;       /* its share among the lanes of its workflow */
    bool limited;     /* its workflow has limits */
    bool served;      /* false: somebody else's, remembered so as not to ask again */
};

struct hf__lanes {
    struct hf__lane *items; /* by id */
    size_t count;
    int64_t learned_at; /* monotonic us; 0: never */
    int64_t updated_at; /* monotonic us of the last time that new ones were asked for */
};

/* Reads them from the store. Foreign lanes are remembered unless `afresh`. */
hf_code hf__lanes_learn(hf_worker *worker, bool afresh, hf_error *err);
/* Adds those that were made since: new flow keys. Ids that were given out but not committed at the last time are asked for
 * again. */
hf_code hf__lanes_learn_new(hf_worker *worker, hf_error *err);
/* Whether hf__lanes_learn_new would find this one. */
bool hf__lanes_is_new(const struct hf__lanes *lanes, int32_t id);
/* NULL: never heard of. */
const struct hf__lane *hf__lanes_find(const struct hf__lanes *lanes, int32_t id);
hf_code hf__lanes_add_foreign(struct hf__lanes *lanes, const int32_t *ids, size_t count,
                              hf_error *err);
void hf__lanes_free(struct hf__lanes *lanes);

/* Patterns as the store keeps them: a JSON array of "name" and "family.*". The caller frees it;
 * NULL: no memory. */
char *hf__lanes_patterns_json(const hf_worker *worker);

#endif
