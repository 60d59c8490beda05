/* SPDX-License-Identifier: Apache-2.0 */
#include "client/ask.h"

#include "client/answer.h"
#include "util/error.h"

struct hf__cell *hf__ask_begin(struct hf__ask *ask, struct hf__engine *engine, enum hf__stmt stmt)
{
    const struct hf__statement *statement = &hf__engine_driver(engine)->statements[stmt];
    ask->engine = engine;
    ask->stmt = stmt;
    hf__arena_init(&ask->arena, 1024);
    hf__table_init(&ask->in, &ask->arena, statement->nparams);
    hf__table_init(&ask->out, &ask->arena, statement->ncolumns);
    return statement->nparams > 0 ? hf__table_add(&ask->in) : NULL;
}

hf_code hf__ask_send(struct hf__ask *ask, hf_error *err)
{
    return hf__engine_query(ask->engine, ask->stmt, ask->in.ncolumns > 0 ? &ask->in : NULL,
                            &ask->out, err);
}

hf_code hf__ask_into(struct hf__ask *ask, void *answer, hf_error *err)
{
    if (!answer)
        return hf__nomem(err);
    hf__table_init(&ask->out, hf__answer_arena(answer), ask->out.ncolumns);
    return hf__ask_send(ask, err);
}

void hf__ask_end(struct hf__ask *ask)
{
    hf__arena_free(&ask->arena);
}
