/* SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *program_input(struct world *world, uint64_t number, int depth)
{
    return world_printf(world, "{\"program\":%" PRIu64 ",\"depth\":%d}", number, depth);
}

const char *signal_name(int index)
{
    static const char *const names[] = { "a", "b" };
    return names[index];
}

bool is_recorded_call(const struct call *call)
{
    return call->kind != CALL_PROGRESS && call->kind != CALL_PUBLISH;
}

/* ---- Drawing ---- */

struct pen {
    struct hf__random random;
    struct program *program;
    int starts; /* so far */
};

static int draw(struct pen *pen, int limit)
{
    return (int)hf__random_below(&pen->random, (uint64_t)limit);
}

static int64_t draw_time(struct pen *pen)
{
    return draw(pen, 10) == 0 ? 0 : HF_MILLISECONDS(draw(pen, 6000));
}

static void draw_step(struct pen *pen, struct call *call)
{
    static const char *const names[] = { "s", "s", "t", "u" };
    call->kind = CALL_STEP;
    call->name = names[draw(pen, 4)];
    call->fails = draw(pen, 3) == 0 ? 1 + draw(pen, 3) : 0;
    call->max_attempts = draw(pen, 3) ? 1 + draw(pen, 4) : 1;
    call->permanent = draw(pen, 8) == 0;
    call->in_one = draw(pen, 2) == 0;
    if (draw(pen, 5) == 0) { /* as often as the run, which is tried often enough */
        call->max_attempts = 0;
        call->fails %= SIM_FUNCTION_ATTEMPTS;
        call->permanent = false;
    }
}

static void draw_children(struct pen *pen, struct call *call)
{
    struct program *program = pen->program;
    if (pen->starts == 0 || draw(pen, 4) == 0) {
        call->kind = CALL_START;
        call->name = "c";
        call->count = 1 + draw(pen, GROUP_MOST);
        pen->starts++;
        return;
    }
    int which = draw(pen, pen->starts);
    call->kind = CALL_CHILDREN;
    call->name = draw(pen, 2) ? "w" : "v";
    call->what = (hf_wait_for)draw(pen, 3);
    call->us = draw(pen, 3) == 0 ? draw_time(pen) : 0;
    while (program->calls[call->group].kind != CALL_START || which-- > 0)
        call->group++;
    call->count = program->calls[call->group].count;
}

static void draw_small(struct pen *pen, struct call *call)
{
    static const struct {
        enum call_kind kind;
        const char *name;
    } smalls[] = {
        { CALL_NOW, "now" },           { CALL_RANDOM, "random" },     { CALL_UUID, "uuid" },
        { CALL_VERSION, "change" },    { CALL_EMIT, "sim.emitted" },  { CALL_EMIT, "sim.emitted" },
        { CALL_PROGRESS, "progress" }, { CALL_PUBLISH, "published" },
    };
    int which = draw(pen, (int)(sizeof smalls / sizeof *smalls));
    call->kind = smalls[which].kind;
    call->name = smalls[which].name;
    call->count = draw(pen, 90);
}

static void draw_call(struct pen *pen, struct call *call)
{
    int dice = draw(pen, 100);
    if (dice < 35) {
        draw_step(pen, call);
    } else if (dice < 43) {
        call->kind = CALL_SLEEP;
        call->name = "z";
        call->us = draw_time(pen);
    } else if (dice < 46) {
        call->kind = CALL_PAUSE;
        call->name = "p";
        call->us = draw_time(pen);
    } else if (dice < 62) {
        call->kind = CALL_SIGNAL;
        call->name = signal_name(draw(pen, 2));
        call->us = draw(pen, 2) ? draw_time(pen) : 0;
    } else if (dice < 80 && pen->program->depth == 0) {
        draw_children(pen, call);
    } else {
        draw_small(pen, call);
    }
}

/* A version is asked for once under one name: later ones would be answered without a line of their own. */
static void name_call(const struct program *program, struct call *call)
{
    static const char *const changes[] = { "change",   "change-b", "change-c", "change-d",
                                           "change-e", "change-f", "change-g", "change-h",
                                           "change-i", "change-j", "change-k", "change-l" };
    int uses = 1, versions = 0;
    for (const struct call *other = program->calls; other != call; other++)
        versions += other->kind == CALL_VERSION;
    if (call->kind == CALL_VERSION)
        call->name = changes[versions];
    for (const struct call *other = program->calls; other != call; other++)
        uses += strcmp(other->name, call->name) == 0;
    snprintf(call->full, sizeof call->full, uses == 1 ? "%s" : "%s#%d", call->name, uses);
}

static void draw_program(struct program *program)
{
    struct pen pen = { .program = program };
    hf__random_seed(&pen.random, program->number);
    program->count = program->depth ? 1 + draw(&pen, 4) : 2 + draw(&pen, CALLS_MOST - 1);
    for (int i = 0; i < program->count; i++) {
        draw_call(&pen, &program->calls[i]);
        name_call(program, &program->calls[i]);
    }
}

const char *child_input(struct world *world, const struct program *program, int call, int child)
{
    uint64_t number = program->number * 31 + (uint64_t)(call * GROUP_MOST + child + 1);
    return program_input(world, number, program->depth + 1);
}

/* ---- The story ---- */

struct story *story_of(struct world *world, struct known *known, const char *input)
{
    if (known->story)
        return known->story;
    struct story *story = world_alloc(world, sizeof *story);
    struct program *program = &story->program;
    if (sscanf(input, "{\"program\":%" SCNu64 ",\"depth\":%d}", &program->number,
               &program->depth) != 2)
        breach(world, "%s has an input that nobody gave it: %s", known->name, input);
    else
        draw_program(program);
    known->story = story;
    return story;
}

static const char *expected_step(struct world *world, const struct call *call)
{
    int tried = call->max_attempts ? call->max_attempts : SIM_FUNCTION_ATTEMPTS;
    int most = call->permanent && call->fails > 0 ? 1 : tried;
    if (call->fails < most)
        return world_printf(world, "{\"step\":\"%s\",\"attempt\":%d}", call->full, call->fails + 1);
    return world_printf(world, "failed: %s, attempt %d", call->full, most);
}

const char *expected_text(struct world *world, const struct call *call)
{
    switch (call->kind) {
    case CALL_STEP: return expected_step(world, call);
    case CALL_VERSION: return world_printf(world, "%d", call->count);
    case CALL_SLEEP:
    case CALL_PAUSE:
    case CALL_EMIT:
    case CALL_PROGRESS:
    case CALL_PUBLISH: return "done";
    case CALL_SIGNAL:
    case CALL_START:
    case CALL_CHILDREN:
    case CALL_NOW:
    case CALL_RANDOM:
    case CALL_UUID: break;
    }
    return NULL;
}

uint64_t result_of(const char *const *texts, int count)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (int i = 0; i < count; i++)
        hash = hash_more(hash_more(hash, texts[i] ? texts[i] : "?"), ";");
    return hash >> 1;
}

const char *story_waits_for(struct world *world, const struct known *known)
{
    sqlite3_stmt *stmt = NULL;
    const char *name = signal_name(0);
    sqlite3_prepare_v2(world->handle, "SELECT current_step FROM run WHERE id = ?1", -1, &stmt,
                       NULL);
    sqlite3_bind_blob(stmt, 1, known->id.bytes, sizeof known->id.bytes, SQLITE_STATIC);
    if (sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_text(stmt, 0))
        name = signal_name(sqlite3_column_text(stmt, 0)[0] == 'b');
    sqlite3_finalize(stmt);
    return name;
}
