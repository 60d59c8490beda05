/* A simulated worker: claims runs, plays their handlers, keeps its leases, crashes, and comes back as a zombie.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "sim.h"
#include "util/buffer.h"

#define HOLDS_MOST 5

/* ---- Reading, without faults ---- */

static bool query(struct world *world, enum hf__stmt stmt, struct hf__table *in,
                  struct hf__table *out)
{
    hf_error err = { 0 };
    hf_code code = hf__sqlite_driver.send(world->conn, stmt, in, out, &err);
    if (code == HF_OK)
        code = hf__sqlite_driver.sync(world->conn, &err);
    if (code != HF_OK)
        breach(world, "a read failed: %s", err.message);
    return code == HF_OK;
}

/* The first workflow may have a limit. */
static bool is_limited(const struct world *world, int32_t lane)
{
    return lane == world->lanes[0] && world->max_running;
}

/* All heads of the store, as the last worker saw them if nothing was written since. */
static const struct hf__table *all_heads(struct world *world)
{
    struct hf__table in;
    struct hf__buffer json = { 0 };
    int64_t changes = sqlite3_total_changes64(world->handle);
    if (world->heads_of == changes)
        return &world->heads;
    hf__table_init(&in, &world->arena, 1);
    hf__table_init(&world->heads, &world->arena, 4);
    for (int i = 0; i <= SIM_WORKFLOWS; i++)
        hf__buffer_addf(&json, "%c%" PRId32, i ? ',' : '[', world->lanes[i]);
    hf__buffer_add_text(&json, "]");
    hf__table_add(&in)[0] = hf__text(json.data);
    if (query(world, HF__STMT_FIND_HEADS, &in, &world->heads))
        world->heads_of = changes;
    hf__buffer_free(&json);
    return &world->heads;
}

/* The heads of all lanes, or of those that no limit closes, most urgent first. NULL: there are none. In the calm end, where
 * time stands still, workers know when there is nothing to claim yet: else most of their claims were in vain. */
static struct hf__claim_head *heads(struct world *world, size_t *count, bool open_only)
{
    const struct hf__table *all = all_heads(world);
    if (all->nrows == 0)
        return NULL;
    struct hf__claim_head *found = world_alloc(world, (size_t)all->nrows * sizeof *found);
    bool full = open_only && limit_left(world) <= 0;
    *count = 0;
    for (int priority = 2; priority >= 0; priority--)
        for (int i = 0; i < all->nrows; i++) {
            const struct hf__cell *c = hf__table_row(all, i);
            bool closed = full && is_limited(world, (int32_t)hf__as_number(c[0]));
            bool early = world->calm && open_only && hf__as_number(c[2]) > world->now;
            if (hf__as_number(c[1]) == priority && !closed && !early)
                found[(*count)++] = (struct hf__claim_head){
                    .lane = (int32_t)hf__as_number(c[0]),
                    .priority = priority,
                    .limited = is_limited(world, (int32_t)hf__as_number(c[0])),
                };
        }
    return *count ? found : NULL;
}

/* ---- Claiming ---- */

static void admit(struct world *world, struct node *node, const hf_claimed *claimed)
{
    struct turn *turn = world_alloc(world, sizeof *turn);
    turn->node = node;
    turn->known = known_of(world, claimed->run.id);
    turn->claimed = claimed;
    turn->steps_left = below(world, 3);
    turn->next = node->turns;
    node->turns = turn;
    node->held++;
    counters_read(claimed->run.state, &turn->turns, &turn->started, &turn->ended);
    check_delivery(world, turn->known, claimed);
    note(world, "  %s holds %s v%" PRId64 " attempt %d, %zu mail%s%s", node->name,
         turn->known->name, claimed->run.version, claimed->run.attempt, claimed->mail_count,
         claimed->suspect ? ", suspect" : "", claimed->exhausted ? ", exhausted" : "");
}

static void claim_answered(struct world *world, struct job *job)
{
    struct node *node = job->node;
    node->claiming = false;
    if (job->op.code != HF_OK) {
        node->adopt = true;
        return;
    }
    const hf_claims *claims = job->op.claim.claims;
    for (size_t i = 0; i < claims->count; i++)
        admit(world, node, &claims->items[i]);
    check_limit(world);
}

static bool claim(struct world *world, struct node *node)
{
    static const int suspects[] = { 0, 1, INT_MAX };
    size_t count = 0;
    const struct hf__claim_head *found = heads(world, &count, true);
    if (!found)
        return false;
    struct job *job = job_new(world, node, HF__OP_CLAIM, NULL);
    job->op.claim.heads = found;
    job->op.claim.head_count = count;
    job->op.claim.hands = 1 + below(world, 3);
    job->op.claim.most = world->calm ? HOLDS_MOST : 1 + below(world, 3);
    job->op.claim.worker = job->op.actor;
    job->op.claim.lease = chance(world, 20) ? HF_SECONDS(1 + below(world, 5)) : 0;
    job->op.claim.suspect_attempts = world->calm ? INT_MAX : suspects[below(world, 3)];
    job->op.claim.arena = &world->arena;
    job->answered = claim_answered;
    node->claiming = true;
    job_submit(world, job);
    return true;
}

static bool holds(const struct node *node, hf_id run)
{
    for (const struct turn *turn = node->turns; turn; turn = turn->next)
        if (hf_id_equal(turn->known->id, run))
            return true;
    return false;
}

/* What the store says this worker holds, although nobody works on it: given back. */
static void adopt(struct world *world, struct node *node)
{
    struct hf__table in, out;
    size_t count = 0;
    const struct hf__claim_head *found = heads(world, &count, false);
    node->adopt = false;
    if (!found)
        return;
    const char *json = "[";
    for (size_t i = 0; i < count; i++)
        json = world_printf(world, "%s%s[%d,%d,0]", json, i ? "," : "", (int)found[i].lane,
                            found[i].priority);
    json = world_printf(world, "%s]", json);
    hf__table_init(&in, &world->arena, 2);
    hf__table_init(&out, &world->arena, 3);
    struct hf__cell *row = hf__table_add(&in);
    row[0] = hf__text(json);
    row[1] = hf__text(node->name);
    if (!query(world, HF__STMT_ADOPT_RUNS, &in, &out))
        return;
    for (int i = 0; i < out.nrows; i++) {
        const struct hf__cell *c = hf__table_row(&out, i);
        struct known *known = known_of(world, hf__as_uuid(c[0]));
        if (holds(node, known->id))
            continue;
        struct job *job = commit_new(world, node, known, hf__as_number(c[2]));
        job->transition.turn = HF_TURN_GIVE_BACK;
        note(world, "%s gives back %s, whose claim it never heard of", node->name, known->name);
        job_submit(world, job);
    }
}

/* ---- Holding ---- */

void worker_beat(struct world *world, struct node *node)
{
    struct job *job = job_new(world, node, HF__OP_HEARTBEAT, NULL);
    hf_held *held = world_alloc(world, sizeof *held * (size_t)node->held);
    size_t count = 0;
    for (const struct turn *turn = node->turns; turn; turn = turn->next)
        held[count++] = (hf_held){
            .run = turn->known->id,
            .run_version = turn->claimed->run.version,
            .lease = turn->claimed->lease,
        };
    job->op.heartbeat.held = held;
    job->op.heartbeat.count = count;
    job_submit(world, job);
    note(world, "%s beats for %zu", node->name, count);
}

static struct turn *playable(struct world *world, struct node *node)
{
    struct turn *chosen = NULL;
    int seen = 0;
    for (struct turn *turn = node->turns; turn; turn = turn->next)
        if (turn->phase == PLAYING && below(world, ++seen) == 0)
            chosen = turn;
    return chosen;
}

void worker_act(struct world *world, struct node *node)
{
    struct turn *turn = playable(world, node);
    if (chance(world, 2)) {
        note(world, "%s crashes with %d runs in hand", node->name, node->held);
        node_crash(world, node);
    } else if (chance(world, 3)) {
        node->asleep = 3 + below(world, 20);
        note(world, "%s falls asleep for %d steps", node->name, node->asleep);
    } else if (node->queued && chance(world, 45)) {
        node_flush(world, node);
    } else if (node->adopt && chance(world, 40)) {
        adopt(world, node);
    } else if (node->held && chance(world, 12)) {
        worker_beat(world, node);
    } else if (turn && chance(world, 75)) {
        handler_play(world, turn);
    } else if (!node->claiming && node->held < HOLDS_MOST && claim(world, node)) {
        node_flush(world, node);
    }
}

bool worker_exhaust(struct world *world, struct node *node)
{
    bool busy = node->turns || node->first;
    node->asleep = 0;
    if (node->adopt)
        adopt(world, node);
    for (struct turn *turn = playable(world, node); turn && !world->broken;
         turn = playable(world, node))
        handler_play(world, turn);
    while (node->first && !world->broken) {
        int before = world->job_count;
        node_flush(world, node);
        if (world->job_count == before && node->queued > 64)
            breach(world, "the queue of %s does not drain", node->name);
    }
    if (!node->claiming && node->held < HOLDS_MOST && claim(world, node))
        node_flush(world, node);
    return busy || node->turns || node->first;
}
