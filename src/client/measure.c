/* SPDX-License-Identifier: Apache-2.0 */
#include "client/measure.h"

#include "client/answer.h"
#include "client/ask.h"
#include "util/error.h"

#include <string.h>

static void read_depth(struct hf__depth *depth, const struct hf__cell *c)
{
    *depth = (struct hf__depth){
        .tenant_id = (int)hf__as_number(c[0]),
        .tenant = hf__as_text(c[1]),
        .workflow = hf__as_text(c[2]),
        .paused = hf__as_number(c[3]) != 0,
        .due = hf__as_number(c[4]),
        .delayed = hf__as_number(c[5]),
        .leased = hf__as_number(c[6]),
        .failed = hf__as_number(c[7]),
        .oldest = hf__as_number(c[8]),
    };
}

static hf_code ask_workflows(struct hf__engine *engine, int tenant, struct hf__measure *measure,
                             hf_error *err)
{
    struct hf__ask ask;
    struct hf__arena *arena = hf__answer_arena(measure);
    struct hf__cell *c = hf__ask_begin(&ask, engine, HF__STMT_MEASURE_WORKFLOWS);
    c[0] = hf__number(tenant);
    c[1] = hf__number(HF__MEASURED_WORKFLOWS);
    c[2] = hf__number(HF__MEASURED_RUNS);
    hf__table_init(&ask.out, arena, ask.out.ncolumns);
    hf_code code = hf__ask_send(&ask, err);
    if (code == HF_OK) {
        measure->items = hf__arena_calloc(arena, (size_t)ask.out.nrows + 1, sizeof *measure->items);
        code = measure->items ? HF_OK : hf__nomem(err);
    }
    for (int i = 0; code == HF_OK && i < ask.out.nrows; i++)
        read_depth(&measure->items[measure->count++], hf__table_row(&ask.out, i));
    hf__ask_end(&ask);
    return code;
}

static hf_code ask_store(struct hf__engine *engine, struct hf__measure *measure, hf_error *err)
{
    struct hf__ask ask;
    hf__ask_begin(&ask, engine, HF__STMT_MEASURE_STORE)[0] = hf__number(HF__MEASURED_RUNS);
    hf_code code = hf__ask_send(&ask, err);
    if (code == HF_OK && ask.out.nrows == 1) {
        const struct hf__cell *c = hf__table_row(&ask.out, 0);
        measure->mail = hf__as_number(c[0]);
        measure->dead_letters = hf__as_number(c[1]);
        measure->undelivered = hf__as_number(c[2]);
        measure->oldest_undelivered = hf__as_number(c[3]);
        measure->workers = hf__as_number(c[4]);
        measure->threads = hf__as_number(c[5]);
        measure->running = hf__as_number(c[6]);
        measure->now = hf__as_number(c[7]);
        measure->stuck = hf__as_number(c[8]);
    }
    hf__ask_end(&ask);
    return code;
}

hf_code hf__measure(struct hf__engine *engine, int tenant, struct hf__measure **out, hf_error *err)
{
    struct hf__measure *measure = hf__answer_new(sizeof *measure);
    hf_code code = measure ? ask_workflows(engine, tenant, measure, err) : hf__nomem(err);
    if (code == HF_OK)
        code = ask_store(engine, measure, err);
    if (code == HF_OK)
        *out = measure;
    else
        hf__answer_free(measure);
    return code;
}

static struct hf__depth *depth_of(struct hf__measure *measure, int tenant, const char *workflow)
{
    for (size_t i = 0; i < measure->count; i++)
        if (measure->items[i].tenant_id == tenant &&
            strcmp(measure->items[i].workflow, workflow) == 0)
            return &measure->items[i];
    return NULL;
}

hf_code hf__measure_mail(struct hf__engine *engine, struct hf__measure *measure, hf_error *err)
{
    struct hf__ask ask;
    hf__ask_begin(&ask, engine, HF__STMT_MEASURE_MAIL)[0] = hf__number(HF__MEASURED_RUNS);
    hf_code code = hf__ask_send(&ask, err);
    for (int i = 0; code == HF_OK && i < ask.out.nrows; i++) {
        const struct hf__cell *c = hf__table_row(&ask.out, i);
        struct hf__depth *depth = depth_of(measure, (int)hf__as_number(c[0]), hf__as_text(c[1]));
        if (depth) {
            depth->mail = hf__as_number(c[2]);
            depth->dead_letters = hf__as_number(c[3]);
        }
    }
    hf__ask_end(&ask);
    return code;
}

void hf__measure_free(struct hf__measure *measure)
{
    hf__answer_free(measure);
}
