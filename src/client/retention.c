/* SPDX-License-Identifier: Apache-2.0 */
#include "client/retention.h"

#include "client/ask.h"
#include "client/purge.h"
#include "util/error.h"

#define BATCH 200

hf_code hf__retention_begin(struct hf__retention *walk, hf_client *client, hf_error *err)
{
    *walk = (struct hf__retention){ .engine = client->engine };
    hf__table_init(&walk->rules, &walk->arena, 2);
    hf_code code = hf_store_now(client, &walk->now, err);
    if (code == HF_OK)
        code = hf__engine_query(walk->engine, HF__STMT_RETENTION_RULES, NULL, &walk->rules, err);
    return code;
}

void hf__retention_end(struct hf__retention *walk)
{
    hf__arena_free(&walk->arena);
}

/* Asks for the next batch of the rule at hand. */
static hf_code find(struct hf__retention *walk, struct hf__ask *ask, hf_error *err)
{
    struct hf__cell *c;
    if (walk->rule < walk->rules.nrows) {
        const struct hf__cell *rule = hf__table_row(&walk->rules, walk->rule);
        c = hf__ask_begin(ask, walk->engine, HF__STMT_FIND_EXPIRED);
        *c++ = rule[0];
        c[1] = hf__number(walk->now - hf__as_number(rule[1]));
    } else {
        c = hf__ask_begin(ask, walk->engine, HF__STMT_FIND_EXPIRED_DELETED);
        c[1] = hf__number(walk->now - HF__DELETED_KEPT);
    }
    c[0] = hf__number(walk->since);
    c[2] = hf__number(BATCH);
    return hf__ask_send(ask, err);
}

static void go_on(struct hf__retention *walk, const struct hf__table *found)
{
    if (found->nrows == BATCH) {
        walk->since = hf__as_number(hf__table_row(found, BATCH - 1)[2]);
    } else if (walk->rule < walk->rules.nrows) {
        walk->rule++;
        walk->since = 0;
    } else {
        walk->done = true;
    }
}

hf_code hf__retention_step(struct hf__retention *walk, hf_error *err)
{
    struct hf__ask ask;
    struct hf__table runs;
    hf_code code = find(walk, &ask, err);
    hf__table_init(&runs, &ask.arena, 2);
    for (int i = 0; code == HF_OK && i < ask.out.nrows; i++) {
        struct hf__cell *run = hf__table_add(&runs);
        run[0] = hf__table_row(&ask.out, i)[0];
        run[1] = hf__table_row(&ask.out, i)[1];
    }
    if (code == HF_OK && runs.failed)
        code = hf__nomem(err);
    if (code == HF_OK && runs.nrows > 0)
        code = hf__purge_rows(walk->engine, &runs, &walk->removed, err);
    if (code == HF_OK)
        go_on(walk, &ask.out);
    hf__ask_end(&ask);
    return code;
}

static int64_t retention_of(const struct hf__retention *walk, int64_t workflow)
{
    for (int i = 0; i < walk->rules.nrows; i++) {
        const struct hf__cell *rule = hf__table_row(&walk->rules, i);
        if (hf__as_number(rule[0]) == workflow)
            return hf__as_number(rule[1]);
    }
    return 0;
}

static hf_code next_end(struct hf__retention *walk, int64_t *at, hf_error *err)
{
    struct hf__arena arena = { 0 };
    struct hf__table in, out;
    hf__table_init(&in, &arena, 2);
    hf__table_init(&out, &arena, 2);
    for (int i = 0; i < walk->rules.nrows; i++) {
        const struct hf__cell *rule = hf__table_row(&walk->rules, i);
        struct hf__cell *c = hf__table_add(&in);
        c[0] = rule[0];
        c[1] = hf__number(walk->now - hf__as_number(rule[1]));
    }
    hf_code code = in.failed ? hf__nomem(err) : HF_OK;
    if (code == HF_OK && in.nrows > 0)
        code = hf__engine_query(walk->engine, HF__STMT_NEXT_ENDS, &in, &out, err);
    for (int i = 0; code == HF_OK && i < out.nrows; i++) {
        const struct hf__cell *row = hf__table_row(&out, i);
        int64_t expires = hf__as_number(row[1]) + retention_of(walk, hf__as_number(row[0]));
        if (expires < *at)
            *at = expires;
    }
    hf__arena_free(&arena);
    return code;
}

static hf_code next_deletion(struct hf__retention *walk, int64_t *at, hf_error *err)
{
    struct hf__ask ask;
    hf__ask_begin(&ask, walk->engine, HF__STMT_NEXT_DELETION)[0] =
        hf__number(walk->now - HF__DELETED_KEPT);
    hf_code code = hf__ask_send(&ask, err);
    if (code == HF_OK && ask.out.nrows > 0) {
        int64_t expires = hf__as_number(hf__table_row(&ask.out, 0)[0]) + HF__DELETED_KEPT;
        if (expires < *at)
            *at = expires;
    }
    hf__ask_end(&ask);
    return code;
}

hf_code hf__retention_next(struct hf__retention *walk, int64_t *at, hf_error *err)
{
    *at = INT64_MAX;
    hf_code code = next_end(walk, at, err);
    return code == HF_OK ? next_deletion(walk, at, err) : code;
}
