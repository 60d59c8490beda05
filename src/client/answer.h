/* Answers: a public record together with the memory it points to, freed as a whole.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLIENT_ANSWER_H
#define HF_CLIENT_ANSWER_H

#include <holdfast/transition.h>

#include "store/table.h"
#include "util/arena.h"

/* A zeroed record of `size` bytes with an arena of its own; NULL when memory is out. */
void *hf__answer_new(size_t size);
struct hf__arena *hf__answer_arena(void *answer);
void hf__answer_free(void *answer);

/* What a page of a list may hold of what users sent, unless one row alone holds more. */
#define HF__PAGE_BYTES (INT64_C(16) << 20)

/* Of rows whose last column is what they hold so far, asked for with one more than `limit`: those that a page of `bytes` has
 * room for, at least one. *more: there is a next page; where one row alone is too much for this one, it may be empty. */
size_t hf__page_rows(const struct hf__table *rows, int limit, int64_t bytes, bool *more);

/* From the columns of get_run and list_runs. */
void hf__run_read(hf_run *run, const struct hf__cell *cells);

#endif
