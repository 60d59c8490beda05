/* Claim, commit, heartbeat and step for callers that are workers themselves.
 * SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "client/answer.h"
#include "client/ask.h"
#include "client/check.h"
#include "client/client.h"
#include "client/ids.h"
#include "client/places.h"
#include "client/read.h"
#include "kernel/chores.h"
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

static void add_range(hf_client *client, struct hf__ask *ask, const char *low, const char *high)
{
    struct hf__cell *c = hf__table_add(&ask->in);
    c[0] = hf__number(client->tenant_id);
    c[1] = hf__text(low);
    c[2] = hf__text(high);
}

/* The engine's own workflows are claimed only by who names them: whoever serves all others has no handlers for them. */
static void add_ranges(hf_client *client, struct hf__ask *ask, const char *low, const char *high)
{
    if (strcmp(low, HF__CHORE_PREFIX) < 0 && strcmp(high, HF__CHORE_PREFIX) > 0) {
        add_range(client, ask, low, HF__CHORE_PREFIX);
        low = HF__CHORE_PREFIX_END;
    }
    add_range(client, ask, low, high);
}

/* The lanes that the patterns serve, as served_lanes gives them, into `lanes`. */
static hf_code find_lanes(hf_client *client, const hf_claim_spec *spec, struct hf__table *lanes,
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
        if (code == HF_OK)
            add_ranges(client, &ask, low, high);
    }
    hf__table_init(&ask.out, lanes->arena, ask.out.ncolumns);
    if (code == HF_OK)
        code = hf__ask_send(&ask, err);
    *lanes = ask.out;
    hf__ask_end(&ask);
    return code;
}

/* A head that is due, and what its lane's share goes by. */
struct head {
    int lane;
    int priority;
    int workflow;
    int weight;
    bool limited;
};

static int by_lane(const void *left, const void *right)
{
    const struct hf__cell *a = left;
    const struct hf__cell *b = right;
    return a->number < b->number ? -1 : a->number > b->number;
}

static int by_priority(const void *left, const void *right)
{
    const struct head *a = left;
    const struct head *b = right;
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    if (a->workflow != b->workflow)
        return a->workflow < b->workflow ? -1 : 1;
    return a->lane < b->lane ? -1 : a->lane > b->lane;
}

static char *lanes_json(struct hf__arena *arena, const struct hf__table *lanes)
{
    struct hf__buffer json = { 0 };
    for (int i = 0; i < lanes->nrows; i++)
        hf__buffer_addf(&json, "%c%d", i ? ',' : '[', (int)hf__table_row(lanes, i)[0].number);
    hf__buffer_add_text(&json, lanes->nrows ? "]" : "[]");
    char *text = json.failed ? NULL : hf__arena_strdup(arena, json.data);
    hf__buffer_free(&json);
    return text;
}

static struct head read_head(const struct hf__cell *c, const struct hf__table *lanes)
{
    struct head head = { (int)hf__as_number(c[0]), (int)hf__as_number(c[1]), 0, 1, false };
    const struct hf__cell *lane = bsearch(&c[0], lanes->cells, (size_t)lanes->nrows,
                                          sizeof *lanes->cells * (size_t)lanes->ncolumns, by_lane);
    if (lane) {
        head.workflow = (int)hf__as_number(lane[4]);
        head.weight = (int)hf__as_number(lane[5]);
        head.limited = hf__as_number(lane[6]) != 0;
    }
    return head;
}

/* What is due was due for a while: then the order matters, and a lease that ended meanwhile must not lie behind it. */
static hf_code keep_order(hf_client *client, int64_t oldest, int64_t now, hf_error *err)
{
    return now - oldest > HF__BACKLOG ? hf__places_restore(client->engine, err) : HF_OK;
}

/* The due heads of the lanes, most urgent first; *next_due is the earliest run_at that is not due yet. */
static hf_code find_heads(hf_client *client, struct hf__arena *arena, struct hf__table *lanes,
                          struct head **heads, size_t *count, int64_t *next_due, hf_error *err)
{
    struct hf__ask ask;
    int64_t now = 0, oldest = INT64_MAX;
    char *json = lanes_json(arena, lanes);
    if (!json)
        return hf__nomem(err);
    if (lanes->nrows)
        qsort(lanes->cells, (size_t)lanes->nrows, sizeof *lanes->cells * (size_t)lanes->ncolumns,
              by_lane);
    hf__ask_begin(&ask, client->engine, HF__STMT_FIND_HEADS)[0] = hf__text(json);
    hf_code code = hf__ask_send(&ask, err);
    *heads =
        code == HF_OK ? hf__arena_calloc(arena, (size_t)ask.out.nrows + 1, sizeof **heads) : NULL;
    if (code == HF_OK && !*heads)
        code = hf__nomem(err);
    for (int i = 0; code == HF_OK && i < ask.out.nrows; i++) {
        const struct hf__cell *c = hf__table_row(&ask.out, i);
        int64_t run_at = hf__as_number(c[2]);
        now = hf__as_number(c[3]);
        oldest = run_at < oldest ? run_at : oldest;
        if (run_at <= now)
            (*heads)[(*count)++] = read_head(c, lanes);
        else if (*next_due == 0 || run_at < *next_due)
            *next_due = run_at;
    }
    if (code == HF_OK)
        qsort(*heads, *count, sizeof **heads, by_priority);
    hf__ask_end(&ask);
    return code == HF_OK && *count ? keep_order(client, oldest, now, err) : code;
}

/* The heads of one priority, each with its share. Callers keep no account of what they took, so it changes from claim to
 * claim who comes first. */
static void share_out(const struct head *heads, size_t count, int most, unsigned turn,
                      struct hf__claim_head *out)
{
    size_t workflows = 0;
    for (size_t i = 0; i < count; i++)
        workflows += i == 0 || heads[i].workflow != heads[i - 1].workflow;
    for (size_t from = 0, end; from < count; from = end) {
        int64_t weights = 0;
        for (end = from; end < count && heads[end].workflow == heads[from].workflow; end++)
            weights += heads[end].weight;
        for (size_t i = from; i < end; i++)
            out[(i + turn) % count] = (struct hf__claim_head){
                .lane = heads[i].lane,
                .priority = heads[i].priority,
                .share = count > 1 ? hf__fair_share(most, heads[i].weight, weights, workflows) : 0,
                .limited = heads[i].limited,
            };
    }
}

static struct hf__claim_head *claim_heads(struct hf__arena *arena, const struct head *heads,
                                          size_t count, int most)
{
    static atomic_uint turns;
    unsigned turn = atomic_fetch_add(&turns, 1);
    struct hf__claim_head *out = hf__arena_calloc(arena, count + 1, sizeof *out);
    for (size_t from = 0, end; out && from < count; from = end) {
        for (end = from; end < count && heads[end].priority == heads[from].priority; end++)
            continue;
        share_out(heads + from, end - from, most, turn, out + from);
    }
    return out;
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

static void claim_once(hf_client *client, const hf_claim_spec *spec, struct hf__op *op,
                       struct hf__arena *arena, const struct hf__claim_head *heads, size_t count,
                       int most, hf_error *err)
{
    *op = (struct hf__op){
        .kind = HF__OP_CLAIM,
        .claim = { .heads = heads,
                   .head_count = count,
                   .most = most,
                   .hands = most,
                   .worker = spec->worker,
                   .lease = spec->lease,
                   .suspect_attempts = spec->fresh_only ? 0 : INT_MAX,
                   .arena = arena },
        .error = err,
    };
    hf__engine_apply(client->engine, op, 1);
}

/* Adds what a claim brought to what there is. */
static hf_code add_claims(hf_claims *claims, const struct hf__op *op, hf_error *err)
{
    const hf_claims *more = op->claim.claims;
    hf_claimed *items =
        hf__arena_calloc(op->claim.arena, claims->count + more->count + 1, sizeof *items);
    if (!items)
        return hf__nomem(err);
    if (claims->count)
        memcpy(items, claims->items, claims->count * sizeof *items);
    if (more->count)
        memcpy(items + claims->count, more->items, more->count * sizeof *items);
    claims->items = items;
    claims->count += more->count;
    for (size_t i = 0; i < op->claim.closed_count; i++)
        if (claims->next_due == 0 || op->claim.closed[i].until < claims->next_due)
            claims->next_due = op->claim.closed[i].until;
    return HF_OK;
}

/* What the shares left over is claimed in a second try, from whoever has more. That it fails is no reason to lose what
 * the first one brought. */
static hf_code claim_all(hf_client *client, const hf_claim_spec *spec, struct hf__arena *arena,
                         const struct head *heads, size_t count, hf_claims *claims, hf_error *err)
{
    struct hf__op op;
    struct hf__claim_head *places = claim_heads(arena, heads, count, spec->limit);
    if (!places)
        return hf__nomem(err);
    claim_once(client, spec, &op, arena, places, count, spec->limit, err);
    hf_code code = op.code == HF_OK ? add_claims(claims, &op, err) : op.code;
    bool shared = false;
    for (size_t i = 0; i < count; i++) {
        shared |= places[i].share != 0;
        places[i].share = 0;
    }
    int left = spec->limit - (int)claims->count;
    if (code != HF_OK || !shared || left == 0)
        return code;
    claim_once(client, spec, &op, arena, places, count, left, NULL);
    return op.code == HF_OK && op.claim.claims->count ? add_claims(claims, &op, err) : HF_OK;
}

hf_code hf_claim(hf_client *client, hf_claims **out, const hf_claim_spec *spec, hf_error *err)
{
    hf_claims *claims = NULL;
    struct head *heads = NULL;
    size_t count = 0;
    hf_code code = check_claim(spec, err);
    if (code == HF_OK && !(claims = hf__answer_new(sizeof *claims)))
        code = hf__nomem(err);
    struct hf__table lanes = { .arena = claims ? hf__answer_arena(claims) : NULL };
    if (code == HF_OK)
        code = find_lanes(client, spec, &lanes, err);
    if (code == HF_OK)
        code = find_heads(client, lanes.arena, &lanes, &heads, &count, &claims->next_due, err);
    if (code == HF_OK)
        code = claim_all(client, spec, lanes.arena, heads, count, claims, err);
    if (code == HF_OK)
        *out = claims;
    else
        hf__answer_free(claims);
    return code;
}

/* ---- Commit ---- */

/* `new_ids`: no run can have the children's ids yet. Those of a repeated request are replaced by those that it had. */
static hf_code commit(hf_client *client, const hf_transition *transition, hf_id *child_ids,
                      bool new_ids, hf_error *err)
{
    hf_code code = hf__check_transition(transition, hf__engine_max_payload(client->engine), err);
    if (code != HF_OK)
        return code;
    const char *request = hf__transition_request(transition);
    hf_id *starts = hf__new_ids(transition->start_count);
    hf_id *answered = hf__new_ids(request ? transition->child_count : 0);
    if (!starts || !answered) {
        code = hf__nomem(err);
        goto done;
    }
    struct hf__op op = {
        .kind = HF__OP_COMMIT,
        .tenant = client->tenant_id,
        .actor = client->actor,
        .commit = { .transition = transition,
                    .child_ids = child_ids,
                    .new_ids = new_ids,
                    .start_ids = starts,
                    .request = request,
                    .answered = answered },
        .error = err,
        .shard = hf__shard_of(transition->run),
    };
    hf__engine_apply(client->engine, &op, 1);
    code = op.code;
    if (code == HF_OK && op.commit.repeated && transition->child_count)
        memcpy(child_ids, answered, transition->child_count * sizeof *answered);
done:
    free(answered);
    free(starts);
    return code;
}

hf_code hf__commit_with_ids(hf_client *client, const hf_transition *transition, hf_id *child_ids,
                            hf_error *err)
{
    return commit(client, transition, child_ids, false, err);
}

hf_code hf_commit(hf_client *client, const hf_transition *transition, hf_id *child_ids,
                  hf_error *err)
{
    hf_id *children = hf__new_ids(transition->child_count);
    hf_code code = children ? commit(client, transition, children, true, err) : hf__nomem(err);
    if (code == HF_OK && child_ids)
        memcpy(child_ids, children, transition->child_count * sizeof *children);
    free(children);
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
    return hf_step_save_once(client, step, NULL, err);
}

hf_code hf_step_save_once(hf_client *client, const hf_step_record *step, const char *request,
                          hf_error *err)
{
    hf_code code = hf__check_step(step, hf__engine_max_payload(client->engine), err);
    if (code == HF_OK)
        code = hf__check_request(request, err);
    if (code != HF_OK)
        return code;
    struct hf__op op = {
        .kind = HF__OP_STEP,
        .tenant = client->tenant_id,
        .actor = client->actor,
        .step = { .record = step, .request = request },
        .error = err,
        .shard = hf__shard_of(step->run),
    };
    hf__engine_apply(client->engine, &op, 1);
    return op.code;
}
