/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "kernel/batch.h"

#define KEY_MARK "\n" /* no name has it */

/* False: too long to be remembered. */
static bool full_name(char name[128], const char *workflow, const char *flow_key)
{
    int length =
        snprintf(name, 128, "%s%s%s", workflow, flow_key ? KEY_MARK : "", flow_key ? flow_key : "");
    return length > 0 && length < 128;
}

static size_t slot_of(int tenant, const char *name)
{
    uint64_t hash = UINT64_C(14695981039346656037) ^ (uint64_t)(unsigned)tenant;
    for (const char *p = name; *p; p++)
        hash = (hash ^ (unsigned char)*p) * UINT64_C(1099511628211);
    return (size_t)(hash % HF__LANE_SLOTS);
}

int32_t hf__lane_recall(const struct hf__lane_cache *cache, int tenant, const char *workflow,
                        const char *flow_key)
{
    char name[128];
    if (!full_name(name, workflow, flow_key))
        return 0;
    size_t i = slot_of(tenant, name);
    bool same = cache->slots[i].tenant == tenant && strcmp(cache->slots[i].name, name) == 0;
    return same ? cache->slots[i].lane : 0;
}

void hf__lane_remember(struct hf__lane_cache *cache, int tenant, const char *workflow,
                       const char *flow_key, int32_t lane)
{
    char name[128];
    if (!full_name(name, workflow, flow_key))
        return;
    size_t i = slot_of(tenant, name);
    cache->slots[i].tenant = tenant;
    cache->slots[i].lane = lane;
    strcpy(cache->slots[i].name, name);
}

void hf__lane_forget_all(struct hf__lane_cache *cache)
{
    memset(cache, 0, sizeof *cache);
}
