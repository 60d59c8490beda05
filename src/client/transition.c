/* Claim, commit, heartbeat and step for callers that are workers themselves.
 * SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "client/answer.h"
#include "client/ask.h"
#include "client/check.h"
#include "client/client.h"
#include "client/ids.h"
#include "client/read.h"
#include "util/alloc.h"
#include "util/buffer.h"
#include "util/error.h"
#include "util/text.h"

#define MAX_CLAIM 1000

/* ---- Claim ---- */

/* The range of names that a pattern serves: [low, high). */
static hf_code pattern_range(struct hf__arena *arena, const char *pattern, const char **low,
                             const char **high, hf_error *err)
{
    size_t length = strlen(pattern);
    bool family = length > 0 && (pattern[length - 1] == '*' || pattern[length - 1] == '.');
    if (length > 0 && pattern[length - 1] == '*')
        length--;
    *low = hf__arena_strndup(arena, pattern, length);
    *high = family ? hf__prefix_end(arena, *low) : hf__arena_printf(arena, "%s\x01", pattern);
    return *low && *high ? HF_OK : hf__nomem(err);
}

static hf_code find_lanes(hf_client *client, const hf_claim_spec *spec, struct hf__buffer *lanes,
                          hf_error *err)
{
    struct hf__ask ask;
    hf__ask_begin(&ask, client->engine, HF__STMT_SERVED_LANES);
    hf__table_init(&ask.in, &ask.arena, ask.in.ncolumns);
    hf_code code = HF_OK;
    for (size_t i = 0; code == HF_OK && i < spec->pattern_count; i++) {
        const char *low;
        const char *high;
        code = pattern_range(&ask.arena, spec->patterns[i], &low, &high, err);
        struct hf__cell *c = hf__table_add(&ask.in);
        c[0] = hf__number(client->tenant_id);
        c[1] = hf__text(low);
        c[2] = hf__text(high);
    }
    if (code == HF_OK)
        code = hf__ask_send(&ask, err);
    hf__buffer_add_text(lanes, "[");
    for (int i = 0; code == HF_OK && i < ask.out.nrows; i++)
        hf__buffer_addf(lanes, "%s%d", i ? "," : "",
                        (int)hf__as_number(hf__table_row(&ask.out, i)[0]));
    hf__buffer_add_text(lanes, "]");
    hf__ask_end(&ask);
    return code == HF_OK && lanes->failed ? hf__nomem(err) : code;
}

struct head {
    int lane;
    int priority;
};

static int by_priority(const void *left, const void *right)
{
    const struct head *a = left;
    const struct head *b = right;
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    return a->lane < b->lane ? -1 : a->lane > b->lane;
}

/* The heads of the lanes as JSON, most urgent first; *next_due is the earliest run_at that is not due yet. */
static hf_code find_heads(hf_client *client, const char *lanes, struct hf__buffer *json,
                          int64_t *next_due, hf_error *err)
{
    struct hf__ask ask;
    hf__ask_begin(&ask, client->engine, HF__STMT_FIND_HEADS)[0] = hf__text(lanes);
    hf_code code = hf__ask_send(&ask, err);
    struct head *heads =
        code == HF_OK ? hf__arena_calloc(&ask.arena, (size_t)ask.out.nrows + 1, sizeof *heads)
                      : NULL;
    if (code == HF_OK && !heads)
        code = hf__nomem(err);
    for (int i = 0; code == HF_OK && i < ask.out.nrows; i++) {
        const struct hf__cell *c = hf__table_row(&ask.out, i);
        int64_t run_at = hf__as_number(c[2]);
        heads[i] = (struct head){ (int)hf__as_number(c[0]), (int)hf__as_number(c[1]) };
        if (run_at > hf__as_number(c[3]) && (*next_due == 0 || run_at < *next_due))
            *next_due = run_at;
    }
    if (code == HF_OK)
        qsort(heads, (size_t)ask.out.nrows, sizeof *heads, by_priority);
    hf__buffer_add_text(json, "[");
    for (int i = 0; code == HF_OK && i < ask.out.nrows; i++)
        hf__buffer_addf(json, "%s[%d,%d,0]", i ? "," : "", heads[i].lane, heads[i].priority);
    hf__buffer_add_text(json, "]");
    hf__ask_end(&ask);
    return code == HF_OK && json->failed ? hf__nomem(err) : code;
}

static hf_code check_claim(const hf_claim_spec *spec, hf_error *err)
{
    hf_code code = hf__check_version("hf_claim_spec", spec->version, HF_CLAIM_VERSION, err);
    if (code == HF_OK)
        code = hf__label_check("worker", spec->worker ? spec->worker : "", HF__MAX_LABEL, err);
    if (code == HF_OK && (spec->limit < 1 || spec->limit > MAX_CLAIM))
        code = hf__fail(err, HF_INVALID, "a claim's limit must be from 1 to %d", MAX_CLAIM);
    if (code == HF_OK && (spec->lease < 0 || spec->lease > HF_DAYS(1)))
        code = hf__fail(err, HF_INVALID, "a lease must be at most a day");
    for (size_t i = 0; code == HF_OK && i < spec->pattern_count; i++)
        code = hf__check_pattern(spec->patterns[i], err);
    return code;
}

hf_code hf_claim(hf_client *client, hf_claims **out, const hf_claim_spec *spec, hf_error *err)
{
    struct hf__buffer lanes = { 0 };
    struct hf__buffer heads = { 0 };
    int64_t next_due = 0;
    hf_claims *claims = NULL;
    hf_code code = check_claim(spec, err);
    if (code == HF_OK)
        code = find_lanes(client, spec, &lanes, err);
    if (code == HF_OK)
        code = find_heads(client, lanes.data, &heads, &next_due, err);
    if (code == HF_OK && !(claims = hf__answer_new(sizeof *claims)))
        code = hf__nomem(err);
    if (code == HF_OK) {
        struct hf__op op = {
            .kind = HF__OP_CLAIM,
            .claim = { .heads = heads.data,
                       .most = spec->limit,
                       .worker = spec->worker,
                       .lease = spec->lease,
                       .suspect_attempts = spec->fresh_only ? 0 : INT_MAX,
                       .arena = hf__answer_arena(claims) },
            .error = err,
        };
        hf__engine_apply(client->engine, &op, 1);
        code = op.code;
        if (code == HF_OK) {
            *claims = *op.claim.claims;
            claims->next_due = next_due;
        }
    }
    if (code == HF_OK)
        *out = claims;
    else
        hf__answer_free(claims);
    hf__buffer_free(&lanes);
    hf__buffer_free(&heads);
    return code;
}

/* ---- Commit ---- */

hf_code hf_commit(hf_client *client, const hf_transition *transition, hf_id *child_ids,
                  hf_error *err)
{
    hf_code code = hf__check_transition(transition, hf__engine_max_payload(client->engine), err);
    if (code != HF_OK)
        return code;
    hf_id *children = hf__new_ids(transition->child_count);
    hf_id *starts = hf__new_ids(transition->start_count);
    if (children && starts) {
        struct hf__op op = {
            .kind = HF__OP_COMMIT,
            .tenant = client->tenant_id,
            .actor = client->actor,
            .commit = { .transition = transition, .child_ids = children, .start_ids = starts },
            .error = err,
            .shard = hf__shard_of(transition->run),
        };
        hf__engine_apply(client->engine, &op, 1);
        code = op.code;
    } else {
        code = hf__nomem(err);
    }
    if (code == HF_OK && child_ids)
        memcpy(child_ids, children, transition->child_count * sizeof *children);
    free(children);
    free(starts);
    return code;
}

hf_code hf_heartbeat(hf_client *client, hf_held *held, size_t count, hf_error *err)
{
    for (size_t i = 0; i < count; i++)
        if (held[i].lease < HF_MILLISECONDS(100) || held[i].lease > HF_DAYS(1))
            return hf__fail(err, HF_INVALID, "a lease must be between 100 ms and a day");
    struct hf__op op = {
        .kind = HF__OP_HEARTBEAT,
        .tenant = client->tenant_id,
        .actor = client->actor,
        .heartbeat = { .held = held, .count = count },
        .error = err,
    };
    hf__engine_apply(client->engine, &op, 1);
    return op.code;
}

hf_code hf_step_save(hf_client *client, const hf_step_record *step, hf_error *err)
{
    hf_code code = hf__check_step(step, hf__engine_max_payload(client->engine), err);
    if (code != HF_OK)
        return code;
    struct hf__op op = {
        .kind = HF__OP_STEP,
        .tenant = client->tenant_id,
        .actor = client->actor,
        .step = { .record = step },
        .error = err,
        .shard = hf__shard_of(step->run),
    };
    hf__engine_apply(client->engine, &op, 1);
    return op.code;
}
