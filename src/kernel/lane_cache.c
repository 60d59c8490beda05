/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernel/batch.h"

static size_t slot_of(int tenant, const char *workflow)
{
    uint64_t hash = UINT64_C(14695981039346656037) ^ (uint64_t)(unsigned)tenant;
    for (const char *p = workflow; *p; p++)
        hash = (hash ^ (unsigned char)*p) * UINT64_C(1099511628211);
    return (size_t)(hash % HF__LANE_SLOTS);
}

int32_t hf__lane_recall(const struct hf__lane_cache *cache, int tenant, const char *workflow)
{
    size_t i = slot_of(tenant, workflow);
    bool same = cache->slots[i].tenant == tenant && strcmp(cache->slots[i].name, workflow) == 0;
    return same ? cache->slots[i].lane : 0;
}

void hf__lane_remember(struct hf__lane_cache *cache, int tenant, const char *workflow, int32_t lane)
{
    size_t i = slot_of(tenant, workflow);
    if (strlen(workflow) >= sizeof cache->slots[i].name)
        return;
    cache->slots[i].tenant = tenant;
    cache->slots[i].lane = lane;
    strcpy(cache->slots[i].name, workflow);
}
