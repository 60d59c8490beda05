/* SPDX-License-Identifier: Apache-2.0 */
#include "client/places.h"

#include "client/ask.h"

#define SLACK HF_SECONDS(10) /* leases that ended may be committed, or unlocked, so much later */

static hf_code ask(struct hf__engine *engine, enum hf__stmt stmt, int64_t since, bool *found,
                   int64_t *now, hf_error *err)
{
    struct hf__ask ask;
    hf__ask_begin(&ask, engine, stmt)[0] = hf__number(since);
    hf_code code = hf__ask_send(&ask, err);
    if (code == HF_OK && found && ask.out.nrows) {
        const struct hf__cell *c = hf__table_row(&ask.out, 0);
        *found = hf__as_number(c[0]) != 0;
        *now = hf__as_number(c[1]);
    }
    hf__ask_end(&ask);
    return code;
}

hf_code hf__places_restore(struct hf__engine *engine, hf_error *err)
{
    atomic_llong *restored_to = hf__engine_restored_to(engine);
    int64_t since = atomic_load(restored_to), now = 0;
    bool found = false;
    hf_code code = ask(engine, HF__STMT_FIND_MISPLACED, since, &found, &now, err);
    if (code == HF_OK && found)
        code = ask(engine, HF__STMT_RESTORE_PLACES, since, NULL, NULL, err);
    if (code == HF_OK)
        atomic_store(restored_to, now - SLACK);
    return code;
}
