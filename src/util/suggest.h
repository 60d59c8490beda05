/* What somebody who mistyped a word probably meant.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_UTIL_SUGGEST_H
#define HF_UTIL_SUGGEST_H

#include <stddef.h>

/* Collects candidates one by one; `best` is borrowed from the nearest. */
struct hf__suggestion {
    const char *typed;
    const char *best; /* NULL: nothing is near enough */
    size_t distance;
};

void hf__suggest_start(struct hf__suggestion *suggestion, const char *typed);
void hf__suggest_offer(struct hf__suggestion *suggestion, const char *candidate);

#endif
