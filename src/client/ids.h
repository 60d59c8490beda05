/* New ids for what clients create.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLIENT_IDS_H
#define HF_CLIENT_IDS_H

#include <holdfast/types.h>

#include <stddef.h>

#include "util/clock.h"

/* Unique across machines and ordered by time; those of one thread come in the order in which they were made. */
hf_id hf__new_id(void);
/* So many that follow each other without a gap: hf__id_step leads from the first to all others. */
void hf__new_row_of_ids(hf_id *ids, size_t count);
/* From here on this thread's ids follow from a clock and a seed: for the simulator. */
void hf__new_ids_follow(const struct hf__clock *clock, uint64_t seed);
/* So many, to be freed; never NULL for none, NULL: no memory. */
hf_id *hf__new_ids(size_t count);
/* The flusher that operations on a run go to. */
uint64_t hf__shard_of(hf_id id);

#endif
