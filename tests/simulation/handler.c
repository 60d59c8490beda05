/* What simulated workflows decide: they succeed, fail, try again, wait for signals, timers and children, start children,
 * record steps and choke on poisoned signals. A run counts its turns and its children in its state, so that a lost or
 * doubled end shows.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernel/chores.h"
#include "kernel/retry.h"
#include "sim.h"
#include "util/id.h"

#define CHILDREN_MOST 3
#define TURNS_MOST 6 /* then a run comes to its end */

void counters_read(const char *state, int *turns, int *started, int *ended)
{
    *turns = *started = *ended = 0;
    if (state && sscanf(state, "[%d,%d,%d]", turns, started, ended) != 3)
        *turns = *started = *ended = -1;
}

static void write_counters(struct job *job, int turns, int started, int ended)
{
    snprintf(job->state, sizeof job->state, "[%d,%d,%d]", turns, started, ended);
    job->transition.state = job->state;
}

/* ---- Letting go ---- */

void let_go(struct turn *turn)
{
    play_end(turn);
    struct turn **place = &turn->node->turns;
    while (*place != turn)
        place = &(*place)->next;
    *place = turn->next;
    turn->node->held--;
}

static void remember_eaten(struct world *world, const struct job *job)
{
    for (size_t i = 0; i < job->transition.consumed_count; i++) {
        struct eaten *eaten = world_alloc(world, sizeof *eaten);
        eaten->id = job->transition.consumed[i];
        eaten->next = job->known->eaten;
        job->known->eaten = eaten;
    }
}

static void remember_commit(struct world *world, struct job *job)
{
    struct known *known = job->known;
    remember_eaten(world, job);
    for (size_t i = 0; i < job->transition.child_count; i++)
        known_of(world, job->op.commit.child_ids[i])->accepted = true;
    if (job->transition.start_count && !job->transition.starts->key)
        known_of(world, *job->op.commit.start_ids)->accepted = true;
    if (!job->transition.state || job->transition.run_version < known->state_version)
        return;
    known->state_version = job->transition.run_version;
    known->state_sure = true;
    memcpy(known->state, job->state, sizeof known->state);
}

static void commit_answered(struct world *world, struct job *job)
{
    struct turn *turn = job->turn;
    hf_code code = job->op.code;
    note(world, "  %s on %s: %s%s", job->node->name, job->known->name, hf_code_name(code),
         job->op.resent ? " (sent again)" : "");
    if (code == HF_OK)
        remember_commit(world, job);
    if (!turn)
        return;
    if (code == HF_OK || code == HF_STALE || code == HF_RUN_CANCELLED || code == HF_NOT_ALLOWED) {
        let_go(turn);
        return;
    }
    turn->phase = PLAYING;
    turn->plain = true;
}

struct job *commit_new(struct world *world, struct node *node, struct known *known, int64_t version)
{
    struct job *job = job_new(world, node, HF__OP_COMMIT, known);
    job->transition = (hf_transition){
        .version = HF_TRANSITION_VERSION,
        .run = known->id,
        .run_version = version,
        .worker = node->worker ? job->op.actor : NULL,
    };
    job->op.commit.transition = &job->transition;
    job->answered = commit_answered;
    return job;
}

/* ---- What goes with a turn ---- */

static void add_mark(struct world *world, struct job *job)
{
    hf_new_event *event = world_alloc(world, sizeof *event);
    *event = (hf_new_event){ .kind = "domain", .name = "mark", .data = job->mark };
    job->transition.events = event;
    job->transition.event_count = 1;
    job->marked = true;
}

static void add_timer(struct world *world, struct job *job)
{
    hf_new_timer *timer = world_alloc(world, sizeof *timer);
    *timer = (hf_new_timer){ .key = chance(world, 50) ? "t1" : "t2", .payload = job->mark };
    timer->delay = HF_MILLISECONDS(below(world, 8000));
    job->transition.timers = timer;
    job->transition.timer_count = 1;
}

static void add_outbox(struct world *world, struct job *job)
{
    hf_new_outbox *outbox = world_alloc(world, sizeof *outbox);
    hf_new_task *task = world_alloc(world, sizeof *task);
    *outbox = (hf_new_outbox){ .type = "sim.happened", .payload = job->mark };
    *task = (hf_new_task){ .name = "look", .payload = job->mark };
    job->transition.outbox = outbox;
    job->transition.outbox_count = 1;
    job->transition.tasks = task;
    job->transition.task_count = 1;
}

static void add_start(struct world *world, struct job *job)
{
    hf_trigger_spec *spec = world_alloc(world, sizeof *spec);
    hf_id *id = world_alloc(world, sizeof *id);
    *spec = (hf_trigger_spec)HF_TRIGGER_INIT;
    spec->workflow = workflow_name(below(world, SIM_PLAIN));
    spec->input = "\"child\"";
    spec->key = chance(world, 30) ? "k1" : NULL;
    hf__id_make(id, world->now, &world->random);
    job->transition.starts = spec;
    job->transition.start_count = 1;
    job->op.commit.start_ids = id;
}

static void cancel_timer(struct world *world, struct job *job)
{
    const char **keys = world_alloc(world, sizeof *keys);
    *keys = chance(world, 50) ? "t1" : "t2";
    job->transition.cancelled_timers = keys;
    job->transition.cancelled_timer_count = 1;
}

static void add_extras(struct world *world, struct job *job)
{
    if (chance(world, 50))
        add_mark(world, job);
    if (chance(world, 10))
        add_outbox(world, job);
    if (chance(world, 10))
        cancel_timer(world, job);
    if (chance(world, 5))
        add_start(world, job);
}

/* All mail is consumed, whatever it says; its children's ends are counted. */
static void consume(struct world *world, struct turn *turn, struct job *job)
{
    const hf_claimed *claimed = turn->claimed;
    const char **ids = world_alloc(world, sizeof *ids * (claimed->mail_count + 1));
    int ended = turn->ended;
    for (size_t i = 0; i < claimed->mail_count; i++) {
        ids[i] = claimed->mail[i].id;
        ended += strcmp(claimed->mail[i].type, "child") == 0;
    }
    job->transition.consumed = ids;
    job->transition.consumed_count = claimed->mail_count;
    write_counters(job, turn->turns + 1, turn->started, ended);
}

static int ends_in_mail(const hf_claimed *claimed)
{
    int ends = 0;
    for (size_t i = 0; i < claimed->mail_count; i++)
        ends += strcmp(claimed->mail[i].type, "child") == 0;
    return ends;
}

/* Few keys at a time, so that children meet each other's, most of all in one flush; new ones later, since the old are
 * taken. */
static const char *child_key(struct world *world, const struct node *node)
{
    int whose = chance(world, 70) ? node->index : SIM_MAX_NODES;
    return world_printf(world, "c%d-%d", whose, world->step / 40);
}

static void add_children(struct world *world, struct turn *turn, struct job *job, int ended)
{
    int count = 1 + below(world, CHILDREN_MOST);
    hf_trigger_spec *specs = world_alloc(world, sizeof *specs * (size_t)count);
    hf_id *ids = world_alloc(world, sizeof *ids * (size_t)count);
    for (int i = 0; i < count; i++) {
        specs[i] = (hf_trigger_spec)HF_TRIGGER_INIT;
        bool keyed = chance(world, 40);
        specs[i].workflow = workflow_name(keyed ? 0 : below(world, SIM_PLAIN));
        specs[i].input = "\"child\"";
        specs[i].priority = below(world, 3);
        specs[i].key = keyed ? child_key(world, turn->node) : NULL;
        hf__id_make(&ids[i], world->now, &world->random);
    }
    job->transition.children = specs;
    job->transition.child_count = (size_t)count;
    job->op.commit.child_ids = ids;
    job->transition.wait_children = turn->started + count - ended;
    job->transition.wake_on_child_failure = chance(world, 40);
    write_counters(job, turn->turns + 1, turn->started + count, ended);
}

/* ---- The turns ---- */

static void wait_for_signal(struct world *world, struct job *job)
{
    job->transition.turn = HF_TURN_WAIT;
    job->transition.waiting_kind = chance(world, 50) ? "signal" : NULL;
    job->transition.waiting_token = chance(world, 40) ? (chance(world, 50) ? "A" : "B") : NULL;
    if (chance(world, 30))
        job->transition.waiting_until = world->now + HF_MILLISECONDS(below(world, 20000));
    if (chance(world, 30))
        add_timer(world, job);
}

static void wait_for_children(struct world *world, struct job *job, int outstanding)
{
    job->transition.turn = HF_TURN_WAIT;
    job->transition.wait_children = outstanding;
    job->transition.wake_on_child_failure = chance(world, 40);
}

void fail_turn(struct world *world, struct turn *turn, struct job *job, bool permanent)
{
    const hf_claimed *claimed = turn->claimed;
    struct hf__retry_policy policy = {
        .max_attempts = claimed->run.max_attempts,
        .base = claimed->retry_base,
        .cap = claimed->retry_cap,
    };
    struct hf__failure failure = {
        .permanent = permanent,
        .retry_after = chance(world, 20) ? HF_MILLISECONDS(1 + below(world, 3000)) : 0,
    };
    struct hf__verdict verdict =
        hf__retry_decide(&policy, &failure, claimed->run.attempt, hf__random_unit(&world->random));
    job->transition.turn = verdict.turn;
    job->transition.retry_delay = verdict.delay;
    job->transition.error_code = "simulated";
    job->transition.last_error = "simulated failure";
    job->transition.error = job->mark;
}

static void blame(struct world *world, struct turn *turn, struct job *job, const char *id)
{
    const char **ids = world_alloc(world, sizeof *ids);
    *ids = id;
    job->transition.blamed = ids;
    job->transition.blamed_count = 1;
    fail_turn(world, turn, job, false);
}

static const char *poison(const hf_claimed *claimed)
{
    for (size_t i = 0; i < claimed->mail_count; i++)
        if (claimed->mail[i].payload && strcmp(claimed->mail[i].payload, "\"poison\"") == 0)
            return claimed->mail[i].id;
    return NULL;
}

static void succeed(struct world *world, struct turn *turn, struct job *job, int ended)
{
    if (turn->started > ended) {
        wait_for_children(world, job, turn->started - ended);
        return;
    }
    job->transition.turn = HF_TURN_SUCCEED;
    job->transition.result = job->mark;
}

/* A turn that has understood its mail. */
static void go_on(struct world *world, struct turn *turn, struct job *job)
{
    int ended = turn->ended + ends_in_mail(turn->claimed);
    bool child = !hf_id_is_zero(turn->claimed->run.parent);
    bool tired = world->calm || turn->plain || turn->turns >= TURNS_MOST;
    int dice = below(world, 100);
    consume(world, turn, job);
    if (tired || dice < 25) {
        succeed(world, turn, job, ended);
    } else if (dice < 50) {
        wait_for_signal(world, job);
    } else if (dice < 60) {
        wait_for_signal(world, job);
        add_timer(world, job);
    } else if (dice < 85 && (!child || dice < 68)) {
        wait_for_children(world, job, 0);
        add_children(world, turn, job, ended);
    } else {
        fail_turn(world, turn, job, chance(world, 25));
    }
    if (!tired)
        add_extras(world, job);
}

static void decide(struct world *world, struct turn *turn, struct job *job)
{
    const hf_claimed *claimed = turn->claimed;
    const char *bad = poison(claimed);
    bool clean_failure = !world->calm && chance(world, 15);
    if (claimed->exhausted || claimed->overdue) {
        fail_turn(world, turn, job, true);
    } else if (bad) {
        blame(world, turn, job, bad);
    } else if (!turn->begun && !world->calm && chance(world, 5)) {
        job->transition.turn = HF_TURN_GIVE_BACK;
    } else if (clean_failure) {
        fail_turn(world, turn, job, chance(world, 20));
    } else {
        go_on(world, turn, job);
    }
}

static void commit(struct world *world, struct turn *turn)
{
    const hf_claimed *claimed = turn->claimed;
    struct job *job = commit_new(world, turn->node, turn->known, claimed->run.version);
    job->turn = turn;
    job->transition.seen_position = claimed->seen_position;
    job->transition.seen_at = claimed->seen_at;
    job->op.commit.parentless = hf_id_is_zero(claimed->run.parent);
    job->op.commit.child = hf_id_is_zero(claimed->run.parent) ? NULL : &claimed->run;
    decide(world, turn, job);
    turn->phase = ASKING;
    note(world, "%s decides %s v%" PRId64 " turn %d consumed %zu children %zu state %s",
         turn->node->name, turn->known->name, claimed->run.version, (int)job->transition.turn,
         job->transition.consumed_count, job->transition.child_count,
         job->transition.state ? job->transition.state : "as it is");
    job_submit(world, job);
    if (!world->calm && chance(world, 15))
        worker_beat(world, turn->node);
}

/* ---- Steps ---- */

static void step_answered(struct world *world, struct job *job)
{
    struct turn *turn = job->turn;
    hf_code code = job->op.code;
    note(world, "  %s step of %s: %s", job->node->name, job->known->name, hf_code_name(code));
    if (code == HF_STALE || code == HF_RUN_CANCELLED)
        let_go(turn);
    else
        turn->phase = PLAYING;
}

static bool is_recorded(const hf_claimed *claimed, const char *name)
{
    for (size_t i = 0; i < claimed->step_count; i++)
        if (strcmp(claimed->steps[i].step, name) == 0)
            return true;
    return false;
}

/* Records the next step, unless an earlier claim or this one has recorded it. */
static bool record_step(struct world *world, struct turn *turn)
{
    const hf_claimed *claimed = turn->claimed;
    const char *name = world_printf(world, "step-%d-%d", turn->turns, --turn->steps_left);
    turn->begun = true;
    if (is_recorded(claimed, name))
        return false;
    struct job *job = job_new(world, turn->node, HF__OP_STEP, turn->known);
    job->step = (hf_step_record){
        .run = turn->known->id,
        .run_version = claimed->run.version,
        .worker = job->op.actor,
        .name = name,
        .status = "succeeded",
        .data = job->mark,
    };
    job->op.step.record = &job->step;
    job->turn = turn;
    job->answered = step_answered;
    turn->phase = ASKING;
    job_submit(world, job);
    return true;
}

/* ---- The engine's own chore ---- */

static void child_cancelled(struct world *world, struct job *job)
{
    (void)world;
    job->turn->changes_out--;
    if (job->turn->changes_out == 0)
        job->turn->phase = PLAYING;
}

static void cancel_child(struct world *world, struct turn *turn, hf_id child)
{
    struct job *job = job_new(world, turn->node, HF__OP_CHANGE, known_of(world, child));
    job->change = (hf_change)HF_CHANGE_INIT;
    job->change.reason = job->mark;
    job->op.change.run = child;
    job->op.change.action = HF_CANCEL;
    job->op.change.change = &job->change;
    job->turn = turn;
    job->answered = child_cancelled;
    turn->changes_out++;
    turn->phase = ASKING;
    job_submit(world, job);
}

/* Returns whether there is nothing left to cancel. */
static bool cancel_children(struct world *world, struct turn *turn)
{
    char parent[HF_ID_TEXT];
    hf_id id;
    sqlite3_stmt *stmt = NULL;
    if (sscanf(turn->claimed->run.input, "{\"run\":\"%36[^\"]\"}", parent) != 1 ||
        !hf_id_parse(parent, &id)) {
        breach(world, "the chore's input names no run: %s", turn->claimed->run.input);
        return true;
    }
    sqlite3_prepare_v2(world->handle, "SELECT id FROM run WHERE parent = ?1 AND status <= 3", -1,
                       &stmt, NULL);
    sqlite3_bind_blob(stmt, 1, id.bytes, sizeof id.bytes, SQLITE_STATIC);
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        hf_id child;
        memcpy(child.bytes, sqlite3_column_blob(stmt, 0), sizeof child.bytes);
        cancel_child(world, turn, child);
    }
    sqlite3_finalize(stmt);
    return turn->changes_out == 0;
}

/* ---- Playing ---- */

void handler_play(struct world *world, struct turn *turn)
{
    const hf_claimed *claimed = turn->claimed;
    bool doomed = claimed->exhausted || claimed->overdue;
    if (!doomed && strcmp(claimed->run.workflow, HF__CHORE_CANCEL_CHILDREN) == 0) {
        turn->plain = true;
        if (cancel_children(world, turn))
            commit(world, turn);
        return;
    }
    if (!doomed && turn->known->function) {
        play_on(world, turn);
        return;
    }
    while (!doomed && turn->steps_left > 0)
        if (record_step(world, turn))
            return;
    commit(world, turn);
}

/* ---- Without a claim ---- */

void handler_execute(struct world *world, struct node *node, struct known *known)
{
    sqlite3_stmt *stmt = NULL;
    int turns, started, ended;
    sqlite3_prepare_v2(world->handle, "SELECT version, state, status FROM run WHERE id = ?1", -1,
                       &stmt, NULL);
    sqlite3_bind_blob(stmt, 1, known->id.bytes, sizeof known->id.bytes, SQLITE_STATIC);
    if (sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_int(stmt, 2) == HF_WAITING) {
        struct job *job = commit_new(world, node, known, sqlite3_column_int64(stmt, 0));
        job->transition.unleased = true;
        counters_read((const char *)sqlite3_column_text(stmt, 1), &turns, &started, &ended);
        if (chance(world, 20) && started == ended)
            job->transition.turn = HF_TURN_SUCCEED;
        else if (started > ended)
            wait_for_children(world, job, started - ended);
        else
            wait_for_signal(world, job);
        write_counters(job, turns + 1, started, ended);
        add_mark(world, job);
        note(world, "%s executes on %s v%" PRId64, node->name, known->name,
             job->transition.run_version);
        job_submit(world, job);
    }
    sqlite3_finalize(stmt);
}
