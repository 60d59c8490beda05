/* Simulated clients and operators: they trigger, signal, cancel, pause, resume, retry, delete and restore.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "program.h"
#include "sim.h"
#include "util/id.h"

#define TRIGGERS_MOST 14
#define KEYS 6

/* ---- Triggers ---- */

static void trigger_answered(struct world *world, struct job *job)
{
    struct hf__op *op = &job->op;
    bool others = op->trigger.existed || op->trigger.debounced;
    note(world, "  %s trigger of %s: %s%s%s", job->node->name, job->known->name,
         hf_code_name(op->code), op->trigger.existed ? ", existed" : "",
         op->trigger.debounced ? ", debounced" : "");
    if (op->code == HF_OK && !others)
        job->known->accepted = true;
    else if (op->code == HF_OK)
        known_of(world, op->trigger.existing)->accepted = true;
    if (((op->code != HF_OK || others) && !op->resent) || op->trigger.debounced)
        job->known->refused = true;
}

/* A run that begins with a turn already taken. */
static void add_initial(struct world *world, struct job *job)
{
    hf_new_event *event = world_alloc(world, sizeof *event);
    hf_new_outbox *outbox = world_alloc(world, sizeof *outbox);
    hf_new_timer *timer = world_alloc(world, sizeof *timer);
    *event = (hf_new_event){ .kind = "domain", .name = "mark", .data = job->mark };
    *outbox = (hf_new_outbox){ .type = "sim.begun", .payload = job->mark };
    *timer = (hf_new_timer){ .key = "t1",
                             .delay = HF_MILLISECONDS(below(world, 3000)),
                             .payload = job->mark };
    job->transition = (hf_transition){
        .version = HF_TRANSITION_VERSION,
        .turn = chance(world, 70) ? HF_TURN_WAIT : HF_TURN_RETRY,
        .state = "[0,0,0]",
        .events = event,
        .event_count = 1,
        .outbox = outbox,
        .outbox_count = 1,
        .timers = timer,
    };
    job->transition.waiting_kind = chance(world, 50) ? "signal" : NULL;
    job->transition.timer_count = chance(world, 70);
    job->marked = true;
    job->op.trigger.initial = &job->transition;
}

/* Seeds are of three kinds: plain runs, functions, and both. */
static bool draws_function(struct world *world)
{
    return world->seed % 3 == 1 || (world->seed % 3 == 2 && chance(world, 50));
}

static void make_function(struct world *world, struct job *job)
{
    job->known->function = true;
    job->trigger.workflow = workflow_name(SIM_FUNCTION);
    job->trigger.input = program_input(world, hf__random_u64(&world->random), 0);
    job->trigger.key = NULL;
    job->trigger.max_attempts *= SIM_FUNCTION_ATTEMPTS;
}

static void make_debounced(struct world *world, struct job *job)
{
    job->trigger.workflow = workflow_name(below(world, 2)); /* few, so that they meet */
    job->trigger.debounce_key = "d";
    job->trigger.debounce_for = HF_MILLISECONDS(1 + below(world, 8000));
    job->trigger.debounce_at_most = chance(world, 30) ? job->trigger.debounce_for * 2 : 0;
    job->trigger.input = job->mark;
    job->trigger.key = chance(world, 80) ? NULL : job->trigger.key;
    job->trigger.delay = 0;
}

static void trigger(struct world *world, struct node *node)
{
    hf_id id;
    hf__id_make(&id, world->now, &world->random);
    struct job *job = job_new(world, node, HF__OP_TRIGGER, known_of(world, id));
    hf_trigger_spec *spec = &job->trigger;
    *spec = (hf_trigger_spec)HF_TRIGGER_INIT;
    spec->workflow = chance(world, 2) ? "sim.nobody" : workflow_name(below(world, SIM_PLAIN));
    spec->input = chance(world, 80) ? "1" : "2";
    spec->priority = below(world, 3);
    spec->key = chance(world, 40) ? world_printf(world, "k%d", below(world, KEYS)) : NULL;
    spec->delay = chance(world, 20) ? HF_MILLISECONDS(below(world, 10000)) : 0;
    spec->timeout = chance(world, 10) ? HF_SECONDS(1 + below(world, 60)) : 0;
    spec->max_attempts = chance(world, 20) ? 1 + below(world, 3) : 0;
    job->op.trigger.id = id;
    job->op.trigger.spec = spec;
    job->answered = trigger_answered;
    if (draws_function(world))
        make_function(world, job);
    else if (chance(world, 20))
        add_initial(world, job);
    else if (chance(world, 40))
        make_debounced(world, job);
    world->triggered++;
    note(world, "%s triggers %s of %s key %s", node->name, job->known->name, spec->workflow,
         spec->key ? spec->key : "-");
    job_submit(world, job);
}

/* ---- Signals ---- */

/* Functions wait for names; each payload is there once. In the end they get what they wait for. */
static void address(struct world *world, struct job *job)
{
    const struct known *known = job->known;
    job->signal.token = NULL;
    job->signal.payload = job->mark;
    job->signal.name = world->calm ? story_waits_for(world, known) : signal_name(below(world, 2));
}

static void signal_run(struct world *world, struct node *node, struct known *known)
{
    struct job *job = job_new(world, node, HF__OP_SIGNAL, known);
    hf_signal_spec *spec = &job->signal;
    *spec = (hf_signal_spec)HF_SIGNAL_INIT;
    spec->id = world_printf(world, "s%d", chance(world, 70) ? world->job_count : below(world, 5));
    spec->type = "external";
    spec->name = "go";
    spec->payload = chance(world, 85) ? job->mark : "\"poison\"";
    spec->token = chance(world, 30) ? (chance(world, 50) ? "A" : "B") : NULL;
    spec->delay = chance(world, 20) ? HF_MILLISECONDS(below(world, 5000)) : 0;
    spec->expected_revision = chance(world, 5) ? 1 + below(world, 4) : 0;
    if (world->calm)
        *spec = (hf_signal_spec){ .version = HF_SIGNAL_VERSION,
                                  .id = world_printf(world, "s%d", world->job_count),
                                  .type = "external",
                                  .name = "go",
                                  .payload = job->mark };
    if (known->function)
        address(world, job);
    job->op.signal.run = known->id;
    job->op.signal.spec = spec;
    note(world, "%s signals %s with %s %s", node->name, known->name, spec->name, spec->id);
    job_submit(world, job);
    if (!world->calm && chance(world, 15)) {
        struct job *twin = job_new(world, node, HF__OP_SIGNAL, known);
        twin->signal = *spec;
        twin->op.signal.run = known->id;
        twin->op.signal.spec = &twin->signal;
        job_submit(world, twin);
    }
}

/* ---- Changes ---- */

static void change_answered(struct world *world, struct job *job)
{
    note(world, "  %s %s %s: %s", job->node->name, hf_action_name(job->op.change.action),
         job->known->name, hf_code_name(job->op.code));
}

void client_change(struct world *world, struct node *node, struct known *known, hf_action action)
{
    struct job *job = job_new(world, node, HF__OP_CHANGE, known);
    job->change = (hf_change)HF_CHANGE_INIT;
    job->change.reason = job->mark;
    job->op.change.run = known->id;
    job->op.change.action = action;
    job->op.change.change = &job->change;
    job->answered = change_answered;
    note(world, "%s wants to %s %s", node->name, hf_action_name(action), known->name);
    job_submit(world, job);
}

/* One that can be retried, children as well as parents. */
static struct known *some_failed(struct world *world, struct known *otherwise)
{
    sqlite3_stmt *stmt = NULL;
    struct known *found = otherwise;
    int seen = 0;
    sqlite3_prepare_v2(
        world->handle,
        "SELECT id FROM run WHERE status IN (5, 6) AND deleted_at IS NULL ORDER BY id", -1, &stmt,
        NULL);
    while (sqlite3_step(stmt) == SQLITE_ROW)
        if (below(world, ++seen) == 0) {
            hf_id id;
            memcpy(id.bytes, sqlite3_column_blob(stmt, 0), sizeof id.bytes);
            found = known_of(world, id);
        }
    sqlite3_finalize(stmt);
    return found;
}

static void change_some(struct world *world, struct node *node, struct known *known)
{
    static const hf_action actions[] = {
        HF_CANCEL,    HF_PAUSE,     HF_PAUSE,  HF_RESUME,  HF_RESUME,  HF_RESUME,
        HF_RETRY_RUN, HF_RETRY_RUN, HF_DELETE, HF_RESTORE, HF_RESTORE,
    };
    hf_action action = actions[below(world, (int)(sizeof actions / sizeof *actions))];
    if (action == HF_RETRY_RUN)
        known = some_failed(world, known);
    client_change(world, node, known, action);
}

/* ---- Acting ---- */

static struct known *some_run(struct world *world)
{
    struct known *known = world->runs;
    int skip = world->run_count ? below(world, world->run_count) : 0;
    while (known && skip-- > 0)
        known = known->next;
    return known;
}

void client_act(struct world *world, struct node *node)
{
    struct known *known = some_run(world);
    int dice = below(world, 100);
    if (chance(world, 2)) {
        note(world, "%s crashes", node->name);
        node_crash(world, node);
    } else if (node->queued && chance(world, 45)) {
        node_flush(world, node);
    } else if ((!known || dice < 40) && world->triggered < TRIGGERS_MOST) {
        trigger(world, node);
    } else if (known && dice < 70) {
        signal_run(world, node, known);
    } else if (known && dice < 82 && !known->function) {
        handler_execute(world, node, known);
        if (chance(world, 30))
            handler_execute(world, node, known);
    } else if (dice < 85) {
        int index = below(world, SIM_WORKFLOWS);
        workflow_pause(world, index, !world->paused[index]);
        note(world, "%s %s %s", node->name, world->paused[index] ? "pauses" : "resumes",
             workflow_name(index));
    } else if (known) {
        change_some(world, node, known);
    }
}

/* ---- In the end ---- */

/* What an operator has to do for a run that cannot go on by itself; -1: nothing, -2: send it a signal. */
static int remedy(sqlite3_stmt *stmt)
{
    int status = sqlite3_column_int(stmt, 1);
    bool deleted = sqlite3_column_type(stmt, 2) != SQLITE_NULL;
    if (deleted)
        return sqlite3_column_int(stmt, 5) ? HF_CANCEL : HF_RESTORE;
    if (status == HF_PAUSED)
        return HF_RESUME;
    bool waits = status == HF_WAITING && sqlite3_column_type(stmt, 3) == SQLITE_NULL;
    const char *kind = (const char *)sqlite3_column_text(stmt, 4);
    return waits && kind && strcmp(kind, "children") != 0 ? -2 : -1;
}

bool client_drive(struct world *world, struct node *node)
{
    bool acted = false;
    sqlite3_stmt *stmt = NULL;
    sqlite3_prepare_v2(
        world->handle,
        "SELECT id, status, deleted_at, run_at, waiting_kind, key IS NOT NULL AND EXISTS (SELECT 1 "
        "FROM "
        "run k WHERE k.workflow_id = r.workflow_id AND k.key = r.key AND k.deleted_at IS NULL) "
        "OR debounce_key IS NOT NULL AND version = 1 AND EXISTS (SELECT 1 FROM run d WHERE "
        "d.workflow_id = r.workflow_id AND d.debounce_key = r.debounce_key AND d.status = 0 AND "
        "d.version = 1 AND d.deleted_at IS NULL) "
        "FROM run r WHERE status <= 3 ORDER BY id",
        -1, &stmt, NULL);
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        hf_id id;
        memcpy(id.bytes, sqlite3_column_blob(stmt, 0), sizeof id.bytes);
        int what = remedy(stmt);
        if (what == -2)
            signal_run(world, node, known_of(world, id));
        else if (what >= 0)
            client_change(world, node, known_of(world, id), (hf_action)what);
        acted |= what != -1;
    }
    sqlite3_finalize(stmt);
    while (node->first && !world->broken)
        node_flush(world, node);
    return acted;
}
