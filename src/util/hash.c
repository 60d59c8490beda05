/* SPDX-License-Identifier: Apache-2.0 */
#include "util/hash.h"

#include "util/alloc.h"

#include <stdlib.h>
#include <string.h>

enum { SMALLEST_CAPACITY = 16 };

/* Ids come from clients too and may be badly spread, so both halves are mixed well. */
static uint64_t hash_of(hf_id id)
{
    uint64_t high, low;
    memcpy(&high, id.bytes, 8);
    memcpy(&low, id.bytes + 8, 8);
    uint64_t x = high * UINT64_C(0x9e3779b97f4a7c15) ^ low;
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static size_t home_of(const struct hf__idmap *map, hf_id id)
{
    return (size_t)hash_of(id) & (map->capacity - 1);
}

/* The slot of this id, or the empty one where it would go. The map is never full. */
static size_t find_slot(const struct hf__idmap *map, hf_id id)
{
    size_t at = home_of(map, id);
    while (map->slots[at].value && !hf_id_equal(map->slots[at].id, id))
        at = (at + 1) & (map->capacity - 1);
    return at;
}

void hf__idmap_init(struct hf__idmap *map)
{
    *map = (struct hf__idmap){ 0 };
}

void *hf__idmap_get(const struct hf__idmap *map, hf_id id)
{
    return map->count ? map->slots[find_slot(map, id)].value : NULL;
}

static bool grow(struct hf__idmap *map)
{
    struct hf__idmap larger = { .count = map->count };
    larger.capacity = map->capacity ? map->capacity * 2 : SMALLEST_CAPACITY;
    larger.slots = hf__calloc(larger.capacity, sizeof *larger.slots);
    if (!larger.slots)
        return false;
    for (size_t i = 0; i < map->capacity; i++)
        if (map->slots[i].value)
            larger.slots[find_slot(&larger, map->slots[i].id)] = map->slots[i];
    free(map->slots);
    *map = larger;
    return true;
}

bool hf__idmap_put(struct hf__idmap *map, hf_id id, void *value)
{
    size_t at = map->capacity ? find_slot(map, id) : 0;
    if (map->capacity && map->slots[at].value) {
        map->slots[at].value = value;
        return true;
    }
    if ((map->count + 1) * 4 > map->capacity * 3) {
        if (!grow(map))
            return false;
        at = find_slot(map, id);
    }
    map->slots[at] = (struct hf__idmap_slot){ .id = id, .value = value };
    map->count++;
    return true;
}

/* Moves later entries of the same chain into the hole, so that no search stops short at it. */
static void close_hole(struct hf__idmap *map, size_t hole)
{
    size_t mask = map->capacity - 1;
    for (size_t at = (hole + 1) & mask; map->slots[at].value; at = (at + 1) & mask) {
        size_t home = home_of(map, map->slots[at].id);
        if (((at - home) & mask) < ((at - hole) & mask))
            continue;
        map->slots[hole] = map->slots[at];
        hole = at;
    }
    map->slots[hole] = (struct hf__idmap_slot){ 0 };
}

void *hf__idmap_remove(struct hf__idmap *map, hf_id id)
{
    if (!map->count)
        return NULL;
    size_t at = find_slot(map, id);
    void *value = map->slots[at].value;
    if (value) {
        close_hole(map, at);
        map->count--;
    }
    return value;
}

bool hf__idmap_next(const struct hf__idmap *map, size_t *cursor, hf_id *id, void **value)
{
    while (*cursor < map->capacity) {
        const struct hf__idmap_slot *slot = &map->slots[(*cursor)++];
        if (!slot->value)
            continue;
        if (id)
            *id = slot->id;
        if (value)
            *value = slot->value;
        return true;
    }
    return false;
}

void hf__idmap_free(struct hf__idmap *map)
{
    free(map->slots);
    *map = (struct hf__idmap){ 0 };
}
