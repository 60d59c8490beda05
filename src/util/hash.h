/* A map from ids to pointers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_UTIL_HASH_H
#define HF_UTIL_HASH_H

#include <holdfast/types.h>

#include <stdbool.h>
#include <stddef.h>

struct hf__idmap_slot {
    hf_id id;
    void *value; /* borrowed; NULL: the slot is empty */
};

/* Open addressing. Its order depends only on the puts and removes, so a simulation repeats
 * exactly. */
struct hf__idmap {
    struct hf__idmap_slot *slots;
    size_t capacity; /* a power of two, or 0 before the first put */
    size_t count;    /* ids in the map */
};

/* Allocates nothing yet. */
void hf__idmap_init(struct hf__idmap *map);
/* NULL if it is not there. */
void *hf__idmap_get(const struct hf__idmap *map, hf_id id);
/* Adds or replaces; value must not be NULL. False: no memory, and the map is unchanged. */
bool hf__idmap_put(struct hf__idmap *map, hf_id id, void *value)
    __attribute__((warn_unused_result));
/* Returns the value that was there, or NULL. */
void *hf__idmap_remove(struct hf__idmap *map, hf_id id);
/* Walks all entries: start with *cursor = 0, go on until it returns false. id and value may be
 * NULL. The map must not change during the walk, except that values may be replaced. */
bool hf__idmap_next(const struct hf__idmap *map, size_t *cursor, hf_id *id, void **value);
/* Gives the memory back, not the values; the map may be used again. */
void hf__idmap_free(struct hf__idmap *map);

#endif
