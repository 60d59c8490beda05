/* Comparing the journal with its seals. One block is in memory at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <holdfast/audit.h>

#include "audit/block.h"
#include "audit/seal.h"
#include "client/ask.h"
#include "client/check.h"
#include "client/client.h"
#include "util/error.h"

#define GAP_MOST 1000 /* missing seals that are named one by one */

struct audit {
    struct hf__engine *engine;
    const hf_audit_options *options;
    hf_audit_report *report;
    int64_t hi; /* where the last seal ends */
    bool head_seen;
};

static void complain(struct audit *audit, hf_audit_problem_kind kind, int64_t block, hf_id run,
                     int64_t seq)
{
    static const char *const names[] = {
#define NAME(symbol, name, meaning) name,
        HF_AUDIT_PROBLEMS(NAME)
#undef NAME
    };
    static const char *const meanings[] = {
#define MEANING(symbol, name, meaning) meaning,
        HF_AUDIT_PROBLEMS(MEANING)
#undef MEANING
    };
    hf_audit_problem problem = { names[kind], meanings[kind], block, run, seq };
    audit->report->problems++;
    if (audit->options->found)
        audit->options->found(&problem, audit->options->arg);
}

static void complain_of_seal(struct audit *audit, hf_audit_problem_kind kind, int64_t block)
{
    complain(audit, kind, block, (hf_id){ { 0 } }, 0);
}

/* ---- Events ---- */

static void complain_of_all(struct audit *audit, hf_audit_problem_kind kind, int64_t block,
                            const struct hf__block_run *run)
{
    for (size_t i = 0; i < run->count; i++)
        complain(audit, kind, block, run->id, run->events[i].seq);
}

/* Names the events by which a run differs from what was sealed; that it does, is known. */
static void compare_run(struct audit *audit, int64_t block, const struct hf__block_run *sealed,
                        const struct hf__block_run *found)
{
    size_t i = 0, k = 0;
    int64_t before = audit->report->problems;
    while (i < sealed->count || k < found->count) {
        const struct hf__block_event *was = &sealed->events[i], *is = &found->events[k];
        if (k == found->count || (i < sealed->count && was->seq < is->seq)) {
            complain(audit, HF_EVENT_REMOVED, block, sealed->id, was->seq);
            i++;
        } else if (i == sealed->count || is->seq < was->seq) {
            complain(audit, HF_EVENT_INSERTED, block, sealed->id, is->seq);
            k++;
        } else {
            if (strcmp(was->mark, is->mark) != 0)
                complain(audit, HF_EVENT_CHANGED, block, sealed->id, is->seq);
            i++, k++;
        }
    }
    if (audit->report->problems == before)
        complain(audit, HF_EVENT_CHANGED, block, sealed->id, 0);
}

/* A run of which the block does not have what was sealed. */
struct suspect {
    const struct hf__block_run *sealed;
    const struct hf__block_run *found; /* NULL: the block has none of its events */
};

/* The ids of those suspects whose runs are there now. */
static hf_code find_runs(struct audit *audit, struct hf__idmap *there,
                         const struct suspect *suspects, size_t count, struct hf__arena *arena,
                         hf_error *err)
{
    struct hf__table in, out;
    hf_code code = HF_OK;
    hf__table_init(&in, arena, 2);
    hf__table_init(&out, arena, 3);
    for (size_t i = 0; i < count; i++) {
        struct hf__cell *c = hf__table_add(&in);
        c[0] = hf__number(suspects[i].sealed->tenant);
        c[1] = hf__uuid(&suspects[i].sealed->id);
    }
    if (in.failed)
        code = hf__nomem(err);
    if (code == HF_OK && count > 0)
        code = hf__engine_query(audit->engine, HF__STMT_PEEK_RUNS, &in, &out, err);
    for (int i = 0; code == HF_OK && i < out.nrows; i++)
        if (!hf__idmap_put(there, hf__as_uuid(hf__table_row(&out, i)[0]), audit))
            code = hf__nomem(err);
    return code;
}

/* Was it purged, perhaps while the block was read, or tampered with? */
static void judge(struct audit *audit, int64_t block, const struct suspect *suspect, bool there)
{
    const struct hf__block_run *sealed = suspect->sealed, *found = suspect->found;
    if (!there && (!found || found->live))
        audit->report->purged_events += (int64_t)sealed->count;
    else if (found)
        compare_run(audit, block, sealed, found);
    else
        complain_of_all(audit, HF_EVENT_REMOVED, block, sealed);
}

static hf_code judge_all(struct audit *audit, int64_t block, const struct suspect *suspects,
                         size_t count, struct hf__arena *arena, hf_error *err)
{
    struct hf__idmap there;
    hf__idmap_init(&there);
    hf_code code = find_runs(audit, &there, suspects, count, arena, err);
    for (size_t i = 0; code == HF_OK && i < count; i++)
        judge(audit, block, &suspects[i], hf__idmap_get(&there, suspects[i].sealed->id));
    hf__idmap_free(&there);
    return code;
}

static hf_code compare_blocks(struct audit *audit, int64_t number, const struct hf__block *sealed,
                              const struct hf__block *found, hf_error *err)
{
    size_t count = 0;
    struct suspect *suspects =
        hf__arena_calloc(sealed->arena, sealed->run_count + 1, sizeof *suspects);
    if (!suspects)
        return hf__nomem(err);
    for (size_t i = 0; i < sealed->run_count; i++) {
        struct hf__block_run *run = hf__idmap_get(&found->by_id, sealed->runs[i]->id);
        if (!run || strcmp(run->hash, sealed->runs[i]->hash) != 0)
            suspects[count++] = (struct suspect){ sealed->runs[i], run };
    }
    for (size_t i = 0; i < found->run_count; i++) {
        if (!hf__idmap_get(&sealed->by_id, found->runs[i]->id))
            complain_of_all(audit, HF_EVENT_INSERTED, number, found->runs[i]);
        else if (!found->runs[i]->live)
            complain_of_all(audit, HF_EVENT_ORPHANED, number, found->runs[i]);
    }
    return judge_all(audit, number, suspects, count, sealed->arena, err);
}

static hf_code check_events(struct audit *audit, const struct hf__seal *seal, hf_error *err)
{
    struct hf__arena arena = { 0 };
    struct hf__block sealed, found;
    bool good = false;
    hf__block_init(&sealed, &arena);
    hf__block_init(&found, &arena);
    hf_code code = hf__block_parse(&sealed, seal->runs, &good, err);
    if (code == HF_OK && !good)
        complain_of_seal(audit, HF_SEAL_CHANGED, seal->block);
    if (code == HF_OK && good)
        code = hf__block_read(&found, audit->engine, seal->block == 1 ? INT64_MIN : seal->lo,
                              seal->hi, true, err);
    if (code == HF_OK && good)
        code = compare_blocks(audit, seal->block, &sealed, &found, err);
    if (code == HF_OK)
        audit->report->events += found.events;
    hf__block_free(&sealed);
    hf__block_free(&found);
    hf__arena_free(&arena);
    return code;
}

/* ---- Seals ---- */

static hf_code is_genuine(const struct hf__seal *seal, const char *hash, bool *out, hf_error *err)
{
    struct hf__digest digest = { 0 };
    char text[HF__DIGEST_TEXT];
    hf_code code = hf__digest_seal(&digest, seal, err);
    hf__digest_text(&digest, text);
    *out = code == HF_OK && strcmp(text, hash) == 0;
    return code;
}

static void check_chain(struct audit *audit, const struct hf__seal *seal)
{
    const hf_audit_head *head = &audit->report->head;
    if (seal->block != head->block + 1) {
        for (int64_t gone = head->block + 1; gone < seal->block && gone <= head->block + GAP_MOST;
             gone++)
            complain_of_seal(audit, HF_SEAL_REMOVED, gone);
    } else if (strcmp(seal->previous, head->hash) != 0 || seal->lo != audit->hi) {
        complain_of_seal(audit, HF_CHAIN_BROKEN, seal->block);
    }
}

/* Events are compared only with a seal that is what it was. */
static hf_code check_seal(struct audit *audit, const struct hf__seal *seal, const char *hash,
                          hf_error *err)
{
    hf_audit_head *head = &audit->report->head;
    bool genuine;
    hf_code code = is_genuine(seal, hash, &genuine, err);
    check_chain(audit, seal);
    if (genuine)
        code = check_events(audit, seal, err);
    else if (code == HF_OK)
        complain_of_seal(audit, HF_SEAL_CHANGED, seal->block);
    *head = (hf_audit_head){ .block = seal->block, .sealed_at = seal->created_at };
    memcpy(head->hash, hash, strnlen(hash, sizeof head->hash - 1));
    audit->hi = seal->hi;
    audit->report->checked++;
    if (audit->options->head && strcmp(audit->options->head, head->hash) == 0)
        audit->head_seen = true;
    return code;
}

static const char *text_or_nothing(struct hf__cell cell)
{
    return hf__is_null(cell) ? "" : hf__as_text(cell);
}

static hf_code check_next(struct audit *audit, bool *more, hf_error *err)
{
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, audit->engine, HF__STMT_NEXT_SEAL);
    c[0] = hf__number(audit->report->head.block);
    hf_code code = hf__ask_send(&ask, err);
    *more = code == HF_OK && ask.out.nrows > 0;
    if (*more) {
        const struct hf__cell *row = hf__table_row(&ask.out, 0);
        struct hf__seal seal = {
            .block = hf__as_number(row[0]),
            .lo = hf__as_number(row[1]),
            .hi = hf__as_number(row[2]),
            .events = hf__as_number(row[3]),
            .previous = text_or_nothing(row[5]),
            .runs = text_or_nothing(row[6]),
            .created_at = hf__as_number(row[7]),
        };
        code = check_seal(audit, &seal, text_or_nothing(row[4]), err);
    }
    hf__ask_end(&ask);
    return code;
}

static hf_code count_unsealed(struct audit *audit, hf_error *err)
{
    struct hf__ask ask;
    hf__ask_begin(&ask, audit->engine, HF__STMT_COUNT_UNSEALED)[0] = hf__number(audit->hi);
    hf_code code = hf__ask_send(&ask, err);
    if (code == HF_OK)
        audit->report->unsealed = hf__as_number(hf__table_row(&ask.out, 0)[0]);
    hf__ask_end(&ask);
    return code;
}

hf_code hf_audit_head_get(hf_client *client, hf_audit_head *out, hf_error *err)
{
    struct hf__seal_head head;
    hf_code code = hf__seal_head(client->engine, &head, err);
    *out = (hf_audit_head){ .block = head.block, .sealed_at = head.created_at };
    memcpy(out->hash, head.hash, sizeof out->hash);
    return code;
}

hf_code hf_audit_verify(hf_client *client, hf_audit_report *out, const hf_audit_options *options,
                        hf_error *err)
{
    static const hf_audit_options defaults = HF_AUDIT_INIT;
    struct audit audit = {
        .engine = client->engine,
        .options = options ? options : &defaults,
        .report = out,
    };
    hf_audit_head head;
    bool more = true;
    *out = (hf_audit_report){ 0 };
    hf_code code =
        hf__check_version("hf_audit_options", audit.options->version, HF_AUDIT_VERSION, err);
    if (code == HF_OK)
        code = hf_audit_head_get(client, &head, err);
    if (code == HF_OK)
        out->blocks = head.block;
    while (code == HF_OK && more) {
        code = check_next(&audit, &more, err);
        if (code == HF_OK && more && audit.options->progress &&
            !audit.options->progress(out, audit.options->arg))
            code = hf__fail(err, HF_CLOSED, "the audit was stopped");
    }
    if (code == HF_OK)
        code = count_unsealed(&audit, err);
    if (code == HF_OK && audit.options->head && !audit.head_seen)
        complain_of_seal(&audit, HF_HEAD_MISSING, 0);
    return code;
}
