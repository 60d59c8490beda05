/* Which handler serves which workflow.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_WORKER_REGISTRY_H
#define HF_WORKER_REGISTRY_H

#include <holdfast/worker.h>

struct hf__served {
    char *pattern;
    size_t length; /* of the pattern without its star */
    bool family;   /* the pattern ends with a star */
    hf_handler handler;
    void *arg;
    void (*release)(void *arg); /* NULL: the argument is the caller's */
};

struct hf__registry {
    struct hf__served *routes;
    size_t count;
};

/* "billing.charge.v1", "billing.*" or "*"; each once, none of the engine's own "holdfast."
 * names. Takes over `arg` only if it returns HF_OK. */
hf_code hf__registry_add(struct hf__registry *registry, const char *pattern, hf_handler handler,
                         void *arg, void (*release)(void *arg), hf_error *err);
/* The exact name, else the longest family; NULL: none. */
const struct hf__served *hf__registry_find(const struct hf__registry *registry,
                                           const char *workflow);
void hf__registry_free(struct hf__registry *registry);

#endif
