/* A node's operations on their way to the store: gathered, flushed, answered or sent again, by the contract of
 * kernel/group.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "sim.h"

#define PATIENT_TRIES 3   /* as in kernel/group.c */
#define FRUITLESS_MOST 20 /* flushes in a row that decide nothing, although the store works */

static void op_done(struct hf__op *op, void *arg)
{
    struct job *job = op->done_arg;
    struct world *world = arg;
    job->told = true;
    check_job(world, job);
    check_execution(world, job);
    check_cascade(world, job);
    if (job->answered)
        job->answered(world, job);
}

struct job *job_new(struct world *world, struct node *node, enum hf__op_kind kind,
                    struct known *known)
{
    struct job *job = world_alloc(world, sizeof *job);
    job->node = node;
    job->known = known;
    job->nonce = world->job_count;
    job->patient = node->worker;
    snprintf(job->mark, sizeof job->mark, "%d", world->job_count);
    job->op = (struct hf__op){
        .kind = kind,
        .tenant = SIM_TENANT,
        .actor = world_printf(world, "%s", node->name),
        .error = &job->error,
        .done = op_done,
        .done_arg = job,
    };
    if (world->job_count == SIM_MAX_JOBS)
        breach(world, "more than %d operations: something does not end", SIM_MAX_JOBS);
    else
        world->jobs[world->job_count++] = job;
    return job;
}

void job_submit(struct world *world, struct job *job)
{
    struct node *node = job->node;
    (void)world;
    job->next = NULL;
    if (node->last)
        node->last->next = job;
    else
        node->first = job;
    node->last = job;
    node->queued++;
}

static struct job *job_of(struct hf__op *op)
{
    return op->done_arg;
}

static size_t take(struct world *world, struct node *node, struct hf__op **ops)
{
    size_t most = world->calm ? SIM_MAX_BATCH : (size_t)(1 + below(world, SIM_MAX_BATCH));
    size_t count = 0;
    while (node->first && count < most) {
        struct job *job = node->first;
        bool alone = job->op.tries >= PATIENT_TRIES;
        if (alone && count > 0)
            break;
        node->first = job->next;
        if (!node->first)
            node->last = NULL;
        node->queued--;
        ops[count++] = &job->op;
        if (alone)
            break;
    }
    return count;
}

static void put_back(struct node *node, struct hf__op **ops, size_t count)
{
    for (size_t i = count; i > 0; i--) {
        struct job *job = job_of(ops[i - 1]);
        job->next = node->first;
        node->first = job;
        if (!node->last)
            node->last = job;
        node->queued++;
    }
}

/* Hands out what is decided; what is not stays at the front of `ops`. Claims come last: they saw what the others wrote. */
static size_t hand_out(struct world *world, struct hf__op **ops, size_t count)
{
    size_t left = 0;
    for (int claims = 0; claims < 2; claims++)
        for (size_t i = 0; i < count; i++)
            if (ops[i]->decided && (ops[i]->kind == HF__OP_CLAIM) == claims)
                ops[i]->done(ops[i], world);
    for (size_t i = 0; i < count; i++)
        if (!ops[i]->decided)
            ops[left++] = ops[i];
    return left;
}

static bool worth_trying_again(struct world *world, const struct job *job, hf_code code)
{
    if (job->patient)
        return true;
    return code == HF_UNAVAILABLE && (world->calm || !chance(world, 25));
}

/* Nobody knows what the run's state is now, until this commit or a later one is answered. */
static void note_unsure(struct job *job)
{
    struct known *known = job->known;
    if (job->op.kind != HF__OP_COMMIT)
        return;
    known->state_sure = false;
    if (job->transition.run_version > known->state_version)
        known->state_version = job->transition.run_version;
}

static size_t give_up(struct world *world, struct hf__op **ops, size_t count, bool unknown,
                      const hf_error *err)
{
    for (size_t i = 0; i < count; i++) {
        struct hf__op *op = ops[i];
        if (op->decided)
            continue;
        if (unknown)
            note_unsure(job_of(op));
        op->resent |= unknown;
        op->again = false;
        bool lost_claim = op->kind == HF__OP_CLAIM && unknown;
        if (lost_claim || !worth_trying_again(world, job_of(op), err->code)) {
            op->decided = true;
            op->code = err->code;
        }
    }
    return hand_out(world, ops, count);
}

static void drop(struct hf__op **ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct job *job = job_of(ops[i]);
        if (job->told)
            continue;
        job->dropped = true;
        note_unsure(job);
    }
}

/* The runs that a batch may have changed. */
static void check_batch(struct world *world, struct hf__op **ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct hf__op *op = ops[i];
        hf_id run = op->kind == HF__OP_TRIGGER ? op->trigger.id : hf__op_run(op);
        if (!hf_id_is_zero(run))
            check_run(world, run);
        if (op->kind == HF__OP_TRIGGER && op->trigger.debounced)
            check_run(world, op->trigger.existing);
        if (op->kind == HF__OP_CLAIM && op->claim.claims)
            for (size_t n = 0; n < op->claim.claims->count; n++)
                check_run(world, op->claim.claims->items[n].run.id);
    }
}

void node_flush(struct world *world, struct node *node)
{
    struct hf__op *ops[SIM_MAX_BATCH];
    struct hf__op *all[SIM_MAX_BATCH];
    size_t count = take(world, node, ops);
    if (count == 0)
        return;
    memcpy(all, ops, sizeof ops);
    hf_error err = { 0 };
    bool unknown = false;
    faults_arm(world);
    world->flush_began = world->now;
    hf_code code = hf__flush(&node->flusher, ops, count, &unknown, &err);
    bool crashes = !world->calm && chance(world, world->faults.struck ? 25 : 2);
    faults_disarm(world);
    if (world->now > world->latest)
        world->latest = world->now;
    note(world, "%s flushes %zu: %s%s%s", node->name, count, hf_code_name(code),
         unknown ? ", unknown" : "", crashes ? ", and crashes" : "");
    check_batch(world, all, count);
    if (crashes) {
        drop(ops, count);
        node_crash(world, node);
        return;
    }
    size_t left =
        code == HF_OK ? hand_out(world, ops, count) : give_up(world, ops, count, unknown, &err);
    for (size_t i = 0; i < left; i++)
        ops[i]->again = false;
    put_back(node, ops, left);
    node->fruitless = code == HF_OK && left == count ? node->fruitless + 1 : 0;
    if (node->fruitless > FRUITLESS_MOST)
        breach(world, "%s flushes the same %zu operations for ever", node->name, count);
}

void node_begin(struct world *world, struct node *node, int index, bool worker)
{
    int generation = node->generation + 1;
    hf__flusher_free(&node->flusher);
    *node = (struct node){ .index = index, .worker = worker, .generation = generation };
    bool same_name = index % 2 == 0;
    snprintf(node->name, sizeof node->name, "%c%d%c", worker ? 'w' : 'c', index,
             same_name ? '\0' : 'a' + generation % 26);
    hf__flusher_init(&node->flusher, &world->driver, world->conn);
    hf__random_seed(&node->flusher.random, hf__random_u64(&world->random));
    node->flusher.max_poison = 1 + (int)(world->seed % 4);
    node->flusher.shares_mail = world->seed % 3 != 0;
}

void node_crash(struct world *world, struct node *node)
{
    for (struct turn *turn = node->turns; turn; turn = turn->next)
        play_end(turn);
    for (struct job *job = node->first; job; job = job->next) {
        struct hf__op *op = &job->op;
        drop(&op, 1);
    }
    node_begin(world, node, node->index, node->worker);
    node->adopt = node->worker;
}
