/* How many children a run has, in words.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_CHILDREN_H
#define HF_CLI_CHILDREN_H

#include "util/buffer.h"

#include <holdfast/client.h>

int64_t cli_counts_total(const int64_t counts[HF_STATUS_COUNT]);
/* "9,000 succeeded, 50 failed" */
void cli_counts_add(struct hf__buffer *out, const int64_t counts[HF_STATUS_COUNT]);

#endif
