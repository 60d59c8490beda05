/* The statuses of a run and the changes between them. Checks, docs and drawings come from this one table.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_KERNEL_LIFECYCLE_H
#define HF_KERNEL_LIFECYCLE_H

#include <holdfast/types.h>

struct hf__lifecycle_row {
    hf_status from;
    hf_status to;
    const char *event;    /* the journal's name for it */
    const char *sentence; /* who does it, and when */
};

extern const struct hf__lifecycle_row hf__lifecycle[];
extern const int hf__lifecycle_count;

/* The first row for a change, or NULL when it is not allowed. Two rows may differ in their event alone. */
const struct hf__lifecycle_row *hf__lifecycle_find(hf_status from, hf_status to);

#endif
