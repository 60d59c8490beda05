/* Parents and children, and ends as a worker's commits bring them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_TEST_CONTRACT_FAMILY_H
#define HF_TEST_CONTRACT_FAMILY_H

#include "contract/fixture.h"

#define CHILD "child"

/* A parent that waits for all of so many children. */
hf_id waiting_parent(size_t count, bool wake_on_failure, hf_id *children);
/* The one parent that is due; NULL: none is. */
const hf_claimed *claim_parent(void);
/* Ends of children together, and known to be that. The first may end otherwise than the rest. Those that succeed have the
 * result. */
void end_mixed(const hf_claims *children, hf_turn first, hf_turn rest, const char *result);
void end_together(const hf_claims *children, hf_turn turn);
/* All ends between the first and the last piece of mail, as a function's wait takes them. */
void take_ends(const hf_claimed *held);
/* Pieces of mail that a run has got and that are still there, taken or not. */
int64_t mail_of(hf_id run);
/* The rows in which those lie. */
int64_t rows_of(hf_id run);

#endif
