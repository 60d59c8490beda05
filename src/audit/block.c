/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/block.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"

#define PAGE 4000            /* events */
#define PAGE_BYTES (4 << 20) /* of their data, which may be large; SQLite does not count them */

void hf__block_init(struct hf__block *block, struct hf__arena *arena)
{
    *block = (struct hf__block){ .arena = arena };
    hf__idmap_init(&block->by_id);
}

void hf__block_free(struct hf__block *block)
{
    hf__idmap_free(&block->by_id);
}

/* An array of the arena with room for one more; NULL without memory. */
static void *grow(struct hf__arena *arena, void *items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return items;
    size_t wanted = *capacity ? *capacity * 2 : 4;
    void *larger = hf__arena_calloc(arena, wanted, size);
    if (larger && count)
        memcpy(larger, items, count * size);
    if (larger)
        *capacity = wanted;
    return larger;
}

static struct hf__block_run *add_run(struct hf__block *block, int tenant, hf_id id)
{
    struct hf__block_run *run = hf__arena_calloc(block->arena, 1, sizeof *run);
    struct hf__block_run **runs =
        grow(block->arena, block->runs, block->run_count, &block->run_capacity, sizeof *runs);
    if (!run || !runs)
        return NULL;
    run->tenant = tenant;
    run->id = id;
    block->runs = runs;
    if (!hf__idmap_put(&block->by_id, id, run))
        return NULL;
    block->runs[block->run_count++] = run;
    return run;
}

static struct hf__block_event *add_event(struct hf__block *block, struct hf__block_run *run)
{
    struct hf__block_event *events =
        grow(block->arena, run->events, run->count, &run->capacity, sizeof *events);
    if (!events)
        return NULL;
    run->events = events;
    block->events++;
    return &events[run->count++];
}

/* ---- From the journal ---- */

static hf_code take(struct hf__block *block, const struct hf__cell *row, hf_error *err)
{
    hf_id id = hf__as_uuid(row[HF__BLOCK_RUN]);
    struct hf__block_run *run = hf__idmap_get(&block->by_id, id);
    if (!run)
        run = add_run(block, (int)hf__as_number(row[HF__BLOCK_TENANT]), id);
    struct hf__block_event *event = run ? add_event(block, run) : NULL;
    hf_code code = event ? hf__digest_event(&event->digest, row, err) : hf__nomem(err);
    if (code != HF_OK)
        return code;
    char text[HF__DIGEST_TEXT];
    hf__digest_text(&event->digest, text);
    memcpy(event->mark, text, HF__MARK);
    event->seq = hf__as_number(row[HF__BLOCK_SEQ]);
    run->live = hf__as_number(row[HF__BLOCK_LIVE]) != 0;
    return HF_OK;
}

static int by_seq(const void *left, const void *right)
{
    const struct hf__block_event *a = left, *b = right;
    return (a->seq > b->seq) - (a->seq < b->seq);
}

static int by_id(const void *left, const void *right)
{
    const struct hf__block_run *const *a = left, *const *b = right;
    return memcmp(&(*a)->id, &(*b)->id, sizeof(hf_id));
}

static hf_code hash_run(struct hf__block_run *run, hf_error *err)
{
    struct hf__buffer digests = { 0 };
    struct hf__digest hash;
    qsort(run->events, run->count, sizeof *run->events, by_seq);
    for (size_t i = 0; i < run->count; i++)
        hf__buffer_add(&digests, run->events[i].digest.bytes, HF__DIGEST);
    hf_code code =
        digests.failed ? hf__nomem(err) : hf__digest_of(&hash, digests.data, digests.length, err);
    hf__buffer_free(&digests);
    if (code == HF_OK)
        hf__digest_text(&hash, run->hash);
    return code;
}

static hf_code close_block(struct hf__block *block, hf_error *err)
{
    hf_code code = HF_OK;
    if (block->run_count)
        qsort(block->runs, block->run_count, sizeof *block->runs, by_id);
    for (size_t i = 0; code == HF_OK && i < block->run_count; i++)
        code = hash_run(block->runs[i], err);
    return code;
}

/* Where a read has come to. */
struct reading {
    int64_t lo, hi; /* places */
    int64_t after;  /* a position at `lo` */
    bool asks_live;
    bool done;
};

static hf_code read_page(struct hf__block *block, struct hf__engine *engine,
                         struct reading *reading, hf_error *err)
{
    struct hf__arena arena = { 0 };
    struct hf__table in, out;
    hf__table_init(&in, &arena, 6);
    hf__table_init(&out, &arena, HF__BLOCK_COLUMNS);
    struct hf__cell *c = hf__table_add(&in);
    c[0] = hf__number(reading->lo);
    c[1] = hf__number(reading->hi);
    c[2] = hf__number(reading->after);
    c[3] = hf__number(PAGE);
    c[4] = hf__number(PAGE_BYTES);
    c[5] = hf__number(reading->asks_live);
    hf_code code = in.failed ? hf__nomem(err)
                             : hf__engine_query(engine, HF__STMT_BLOCK_EVENTS, &in, &out, err);
    for (int i = 0; code == HF_OK && i < out.nrows; i++)
        code = take(block, hf__table_row(&out, i), err);
    const struct hf__cell *last =
        code == HF_OK && out.nrows ? hf__table_row(&out, out.nrows - 1) : NULL;
    reading->done = !last || hf__as_number(last[HF__BLOCK_LAST]);
    if (last) {
        reading->lo = hf__as_number(last[HF__BLOCK_PLACE]);
        reading->after = hf__as_number(last[HF__BLOCK_POSITION]);
    }
    hf__arena_free(&arena);
    return code;
}

hf_code hf__block_read(struct hf__block *block, struct hf__engine *engine, int64_t lo, int64_t hi,
                       bool asks_live, hf_error *err)
{
    struct reading reading = { .lo = lo, .hi = hi, .after = INT64_MIN, .asks_live = asks_live };
    hf_code code = HF_OK;
    while (code == HF_OK && !reading.done)
        code = read_page(block, engine, &reading, err);
    return code == HF_OK ? close_block(block, err) : code;
}

/* ---- As text ---- */

void hf__block_text(const struct hf__block *block, struct hf__buffer *out)
{
    for (size_t i = 0; i < block->run_count; i++) {
        const struct hf__block_run *run = block->runs[i];
        char id[HF_ID_TEXT];
        hf_id_format(run->id, id);
        hf__buffer_addf(out, "%d %s %s", run->tenant, id, run->hash);
        for (size_t k = 0; k < run->count; k++)
            hf__buffer_addf(out, " %" PRId64 ":%s", run->events[k].seq, run->events[k].mark);
        hf__buffer_add_text(out, "\n");
    }
}

/* The word up to `end`, at most size - 1 bytes of it. False: there is none, or it is longer. */
static bool read_word(const char **text, char end, char *out, size_t size)
{
    size_t length = strcspn(*text, " :\n");
    if (length == 0 || length >= size || (*text)[length] != end)
        return false;
    memcpy(out, *text, length);
    out[length] = '\0';
    *text += length + 1;
    return true;
}

static hf_code parse_event(struct hf__block *block, struct hf__block_run *run, const char **text,
                           bool *good, hf_error *err)
{
    char seq[24], mark[HF__MARK + 1];
    char end = (*text)[strcspn(*text, " \n")];
    *good = end && read_word(text, ':', seq, sizeof seq) && read_word(text, end, mark, sizeof mark);
    if (!*good)
        return HF_OK;
    struct hf__block_event *event = add_event(block, run);
    if (!event)
        return hf__nomem(err);
    event->seq = strtoll(seq, NULL, 10);
    memcpy(event->mark, mark, sizeof mark);
    return HF_OK;
}

static hf_code parse_line(struct hf__block *block, const char **text, bool *good, hf_error *err)
{
    char tenant[16], id_text[HF_ID_TEXT], hash[HF__DIGEST_TEXT];
    hf_id id;
    *good = read_word(text, ' ', tenant, sizeof tenant) &&
            read_word(text, ' ', id_text, sizeof id_text) && hf_id_parse(id_text, &id) &&
            read_word(text, ' ', hash, sizeof hash);
    if (!*good)
        return HF_OK;
    struct hf__block_run *run = add_run(block, atoi(tenant), id);
    if (!run)
        return hf__nomem(err);
    memcpy(run->hash, hash, sizeof hash);
    hf_code code = HF_OK;
    do
        code = parse_event(block, run, text, good, err);
    while (code == HF_OK && *good && (*text)[-1] == ' ');
    return code;
}

hf_code hf__block_parse(struct hf__block *block, const char *runs, bool *good, hf_error *err)
{
    hf_code code = HF_OK;
    *good = true;
    while (code == HF_OK && *good && *runs)
        code = parse_line(block, &runs, good, err);
    return code;
}
