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

/* From the columns of get_run and list_runs. */
void hf__run_read(hf_run *run, const struct hf__cell *cells);

#endif
