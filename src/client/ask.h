/* One question to the store: a statement with its parameters and answer, and the memory for both.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLIENT_ASK_H
#define HF_CLIENT_ASK_H

#include "kernel/engine.h"

struct hf__ask {
    struct hf__engine *engine;
    enum hf__stmt stmt;
    struct hf__arena
        arena; /* of the parameters, and of the answer unless `out.arena` is set elsewhere */
    struct hf__table in;
    struct hf__table out;
};

/* The first row of parameters, to be filled in; NULL if the statement takes nothing. */
struct hf__cell *hf__ask_begin(struct hf__ask *ask, struct hf__engine *engine, enum hf__stmt stmt);
hf_code hf__ask_send(struct hf__ask *ask, hf_error *err);
/* The same; what the store says lives as long as `answer` (see answer.h), which may be NULL for lack of memory. */
hf_code hf__ask_into(struct hf__ask *ask, void *answer, hf_error *err);
void hf__ask_end(struct hf__ask *ask);

#endif
