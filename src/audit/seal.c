/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/seal.h"

#include <limits.h>
#include <string.h>

#include "audit/block.h"
#include "client/ask.h"
#include "util/error.h"

hf_code hf__seal_head(struct hf__engine *engine, struct hf__seal_head *out, hf_error *err)
{
    struct hf__ask ask;
    *out = (struct hf__seal_head){ 0 };
    hf__ask_begin(&ask, engine, HF__STMT_SEAL_HEAD);
    hf_code code = hf__ask_send(&ask, err);
    if (code == HF_OK && ask.out.nrows > 0) {
        const struct hf__cell *row = hf__table_row(&ask.out, 0);
        out->block = hf__as_number(row[0]);
        out->hi = hf__as_number(row[1]);
        out->created_at = hf__as_number(row[3]);
        const char *hash = hf__as_text(row[2]);
        memcpy(out->hash, hash, strnlen(hash, sizeof out->hash - 1));
    }
    hf__ask_end(&ask);
    return code;
}

struct horizon {
    int64_t first; /* place of the first event */
    int64_t hi;    /* where a block could end */
    bool anything; /* worth a block */
    bool cut;      /* there is more behind `hi` */
    int64_t now;
};

static hf_code look(struct hf__engine *engine, struct horizon *out, int64_t lo, int most,
                    hf_id sealer, hf_error *err)
{
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, engine, HF__STMT_SEAL_HORIZON);
    c[0] = hf__number(lo);
    c[1] = hf__number(most);
    c[2] = hf__uuid_or_null(&sealer);
    hf_code code = hf__ask_send(&ask, err);
    if (code == HF_OK) {
        const struct hf__cell *row = hf__table_row(&ask.out, 0);
        out->first = hf__as_number(row[0]);
        out->anything = hf__as_number(row[1]) != 0;
        out->cut = !hf__is_null(row[2]);
        out->hi = hf__as_number(row[out->cut ? 2 : 3]);
        out->now = hf__as_number(row[5]);
        if (hf__as_number(row[4]))
            code = hf__fail(err, HF_NOT_ALLOWED,
                            "the server's transaction ids are behind those that were sealed: the "
                            "store was moved here from another server; see docs/audit.md");
    }
    hf__ask_end(&ask);
    return code;
}

/* Lowers the end until each run's events follow its own order from block to block. */
static hf_code put_in_order(struct hf__engine *engine, int64_t lo, int64_t *hi, hf_error *err)
{
    hf_code code = HF_OK;
    int64_t before = INT64_MAX;
    while (code == HF_OK && *hi<before && * hi> lo) {
        struct hf__ask ask;
        struct hf__cell *c = hf__ask_begin(&ask, engine, HF__STMT_SEAL_ORDER);
        c[0] = hf__number(lo);
        c[1] = hf__number(*hi);
        before = *hi;
        code = hf__ask_send(&ask, err);
        if (code == HF_OK)
            *hi = hf__as_number(hf__table_row(&ask.out, 0)[0]);
        hf__ask_end(&ask);
    }
    return code;
}

/* A block must have at least one event; where the first few cannot be parted from what follows, it grows. */
static hf_code choose_end(struct hf__engine *engine, struct horizon *horizon, int64_t lo, int most,
                          hf_id sealer, hf_error *err)
{
    hf_code code;
    for (;; most = most > INT_MAX / 2 ? INT_MAX : most * 2) {
        code = look(engine, horizon, lo, most, sealer, err);
        if (code != HF_OK || !horizon->anything)
            return code;
        code = put_in_order(engine, lo, &horizon->hi, err);
        if (code != HF_OK || horizon->hi > horizon->first || !horizon->cut)
            break;
    }
    if (horizon->hi <= horizon->first)
        horizon->anything = false;
    return code;
}

/* *written stays false if somebody else closed this block first. */
static hf_code write(struct hf__engine *engine, const struct hf__seal *seal, bool *written,
                     hf_error *err)
{
    struct hf__digest digest;
    char hash[HF__DIGEST_TEXT];
    struct hf__ask ask;
    hf_code code = hf__digest_seal(&digest, seal, err);
    if (code != HF_OK)
        return code;
    hf__digest_text(&digest, hash);
    struct hf__cell *c = hf__ask_begin(&ask, engine, HF__STMT_INSERT_SEAL);
    c[0] = hf__number(seal->block);
    c[1] = hf__number(seal->lo);
    c[2] = hf__number(seal->hi);
    c[3] = hf__number(seal->events);
    c[4] = hf__text(hash);
    c[5] = *seal->previous ? hf__text(seal->previous) : hf__null();
    c[6] = hf__text(seal->runs);
    c[7] = hf__number(seal->created_at);
    code = hf__ask_send(&ask, err);
    *written = code == HF_OK && ask.out.nrows > 0;
    hf__ask_end(&ask);
    return code;
}

/* What the first block holds has no lower bound: nothing can be slipped in before it. */
static hf_code close_at(struct hf__engine *engine, const struct hf__seal_head *head,
                        const struct horizon *horizon, int64_t *events, hf_error *err)
{
    struct hf__arena arena = { 0 };
    struct hf__block block;
    struct hf__buffer runs = { 0 };
    bool written = false;
    hf__block_init(&block, &arena);
    hf_code code =
        hf__block_read(&block, engine, head->block ? head->hi : INT64_MIN, horizon->hi, false, err);
    if (code == HF_OK) {
        hf__buffer_add_text(&runs, "");
        hf__block_text(&block, &runs);
        code = runs.failed ? hf__nomem(err) : HF_OK;
    }
    struct hf__seal seal = {
        .block = head->block + 1,
        .lo = head->hi,
        .hi = horizon->hi,
        .events = block.events,
        .created_at = horizon->now,
        .previous = head->hash,
        .runs = runs.data,
    };
    if (code == HF_OK)
        code = write(engine, &seal, &written, err);
    if (written)
        *events = block.events;
    hf__buffer_free(&runs);
    hf__block_free(&block);
    hf__arena_free(&arena);
    return code;
}

hf_code hf__seal_next(struct hf__engine *engine, hf_id sealer, int most, struct hf__sealed *out,
                      hf_error *err)
{
    struct hf__seal_head head;
    struct horizon horizon = { 0 };
    *out = (struct hf__sealed){ 0 };
    hf_code code = hf__seal_head(engine, &head, err);
    if (code == HF_OK)
        code = choose_end(engine, &horizon, head.hi, most, sealer, err);
    if (code == HF_OK && horizon.anything)
        code = close_at(engine, &head, &horizon, &out->events, err);
    out->more = code == HF_OK && horizon.anything && horizon.cut;
    out->at = horizon.now;
    return code;
}
