/* What became of a function, told by its journal, against what its program says: the plain reading of a program, in which
 * nothing crashes, must come to the same end.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/brood.h"
#include "journal.h"
#include "program.h"
#include "util/id.h"

/* What the journal says of a story so far. */
struct reading {
    struct world *world;
    const struct known *known;
    const struct program *program;
    const char *texts[CALLS_MOST];
    json_t *outputs[CALLS_MOST]; /* of calls that are over */
    int emits;
    int children[CALLS_MOST]; /* that a start has started, by its last line */
    int signals;
    bool ended[CALLS_MOST][GROUP_MOST]; /* by the start and the child */
};

static sqlite3_stmt *ask(sqlite3_stmt *stmt, const hf_id *id)
{
    sqlite3_reset(stmt);
    sqlite3_bind_blob(stmt, 1, id->bytes, sizeof id->bytes, SQLITE_STATIC);
    return stmt;
}

static int64_t number_of(sqlite3_stmt *stmt)
{
    int64_t number = sqlite3_step(stmt) == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
    sqlite3_reset(stmt);
    return number;
}

static int find_call(const struct program *program, const char *full)
{
    for (int i = 0; i < program->count; i++)
        if (is_recorded_call(&program->calls[i]) && strcmp(program->calls[i].full, full) == 0)
            return i;
    return -1;
}

/* ---- The order of the lines ---- */

/* Calls that are over once they have waited have one line; the others need a last one. */
static bool is_settled(const struct program *program, int call, bool final)
{
    if (call < 0)
        return true;
    enum call_kind kind = program->calls[call].kind;
    return final || kind == CALL_SLEEP || kind == CALL_PAUSE;
}

static void next_call(struct replay *r, const struct program *program, int call, const char *full)
{
    if (!is_settled(program, r->call, r->final))
        breach(r->world, "%s of %s was recorded before %s was over", full, r->known->name,
               program->calls[r->call].full);
    for (int i = r->call + 1; i < call; i++)
        if (is_recorded_call(&program->calls[i]))
            breach(r->world, "%s of %s was recorded before %s", full, r->known->name,
                   program->calls[i].full);
    r->progress = 0;
}

static int number_in(const char *data, const char *name)
{
    const char *number = strstr(data, name);
    return number ? atoi(number + strlen(name)) : 0;
}

/* Each line of a step is of the next attempt, each of a start of more children than the last. */
static void check_progress(struct replay *r, const struct call *call, const char *data)
{
    int attempt = number_in(data, "\"attempt\":");
    int started = number_in(data, "\"started\":");
    if (call->kind == CALL_STEP && attempt != r->progress + 1)
        breach(r->world, "%s of %s: attempt %d was recorded after %d", call->full, r->known->name,
               attempt, r->progress);
    if (call->kind == CALL_START && started > 0 && started <= r->progress)
        breach(r->world, "%s of %s: %d children were started after %d", call->full, r->known->name,
               started, r->progress);
    r->progress = call->kind == CALL_START ? started : attempt;
}

void replay_call(struct replay *r, const char *full, const char *status, const char *data)
{
    const struct program *program = r->known->story ? &r->known->story->program : NULL;
    int call = program ? find_call(program, full) : -1;
    bool waiting = strcmp(status, "waiting") == 0;
    if (call < 0)
        breach(r->world, "%s has a line of %s, which it never called", r->known->name, full);
    else if (call < r->call)
        breach(r->world, "%s of %s was recorded after %s", full, r->known->name,
               program->calls[r->call].full);
    else if (call == r->call && r->final && !r->failed)
        breach(r->world, "%s of %s was recorded after it was over", full, r->known->name);
    else if (call == r->call && r->final)
        r->progress =
            0; /* the operator's retry: the check of the claim sees whether there was one */
    if (call < 0)
        return;
    if (call > r->call)
        next_call(r, program, call, full);
    else if (waiting && program->calls[call].kind != CALL_STEP &&
             program->calls[call].kind != CALL_START)
        breach(r->world, "%s of %s began to wait twice", full, r->known->name);
    check_progress(r, &program->calls[call], data);
    r->call = call;
    r->final = !waiting;
    r->failed = strcmp(status, "failed") == 0 && program->calls[call].kind == CALL_STEP;
}

/* ---- The texts ---- */

static const char *dump(struct world *world, json_t *json)
{
    char *text = json ? json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    const char *copy = world_printf(world, "%s", text ? text : "");
    free(text);
    return copy;
}

static const char *ends_text(struct world *world, json_t *output, bool late)
{
    const char *text = late ? "!" : "=";
    size_t i;
    json_t *end;
    json_array_foreach(output, i, end)
    {
        const char *status = json_string_value(json_object_get(end, "status"));
        text = world_printf(world, "%s%s:%s;", text, status ? status : "-",
                            dump(world, json_object_get(end, "result")));
    }
    return text;
}

static const char *text_of(struct world *world, const struct call *call, bool failed, json_t *data)
{
    json_t *output = json_object_get(data, "output");
    switch (call->kind) {
    case CALL_STEP:
        return failed ? world_printf(world, "failed: %s",
                                     json_string_value(json_object_get(data, "error")))
                      : dump(world, output);
    case CALL_SIGNAL: return failed ? "timeout" : dump(world, output);
    case CALL_CHILDREN: return ends_text(world, output, failed);
    case CALL_SLEEP:
    case CALL_PAUSE:
    case CALL_EMIT:
    case CALL_PROGRESS:
    case CALL_PUBLISH: return "done";
    default: return dump(world, output);
    }
}

/* ---- What a call has done ---- */

static void check_emitted(struct reading *r, const struct call *call)
{
    char payload[24];
    snprintf(payload, sizeof payload, "\"%s\"", call->full);
    sqlite3_stmt *stmt = ask(r->world->sql.outbox, &r->known->id);
    sqlite3_bind_text(stmt, 2, payload, -1, SQLITE_TRANSIENT);
    int64_t count = number_of(stmt);
    if (count != 1)
        breach(r->world, "%s of %s is in the outbox %" PRId64 " times", call->full, r->known->name,
               count);
    r->emits++;
}

static void check_received(struct reading *r, int index)
{
    const struct call *call = &r->program->calls[index];
    sqlite3_stmt *stmt = ask(r->world->sql.consumed, &r->known->id);
    sqlite3_bind_text(stmt, 2, call->name, -1, SQLITE_STATIC);
    sqlite3_bind_text(stmt, 3, r->texts[index], -1, SQLITE_STATIC);
    if (number_of(stmt) != 1)
        breach(r->world, "%s of %s got %s, which is not among its consumed signals", call->full,
               r->known->name, r->texts[index]);
    for (int i = 0; i < index; i++)
        if (r->program->calls[i].kind == CALL_SIGNAL && r->texts[i] &&
            strcmp(r->texts[i], r->texts[index]) == 0)
            breach(r->world, "%s of %s got %s, which %s got before", call->full, r->known->name,
                   r->texts[index], r->program->calls[i].full);
    r->signals++;
}

/* A child that is deleted before it has ended counts as failed. */
static bool was_deleted(struct reading *r, hf_id child)
{
    sqlite3_stmt *stmt = ask(r->world->sql.results, &child);
    sqlite3_bind_text(stmt, 2, "deleted", -1, SQLITE_STATIC);
    bool deleted = sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_int(stmt, 1) > 0;
    sqlite3_reset(stmt);
    return deleted;
}

/* The child ended so: its own journal and row say the same. */
static void check_end(struct reading *r, hf_id child, json_t *end)
{
    const char *status = json_string_value(json_object_get(end, "status"));
    const char *result = dump(r->world, json_object_get(end, "result"));
    if (status && strcmp(status, "failed") == 0 && was_deleted(r, child))
        return;
    sqlite3_stmt *stmt = ask(r->world->sql.results, &child);
    sqlite3_bind_text(stmt, 2, status, -1, SQLITE_STATIC);
    bool found = sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_int(stmt, 1) > 0;
    const unsigned char *own = found ? sqlite3_column_text(stmt, 0) : NULL;
    if (!found)
        breach(r->world, "%s was told that its child %s has %s; the child never did",
               r->known->name, known_of(r->world, child)->name, status);
    if (found && strcmp(status, "succeeded") == 0 &&
        strcmp(own ? (const char *)own : "", result) != 0)
        breach(r->world, "%s was told that its child %s ended with %s; it was %s", r->known->name,
               known_of(r->world, child)->name, result, own ? (const char *)own : "nothing");
    sqlite3_reset(stmt);
}

static void check_ends(struct reading *r, int index)
{
    const struct call *call = &r->program->calls[index];
    for (int i = 0; i < call->count; i++) {
        json_t *end = json_array_get(r->outputs[index], (size_t)i);
        const char *text = json_string_value(json_array_get(r->outputs[call->group], (size_t)i));
        hf_id child;
        if (!json_is_object(end) || !text || !hf_id_parse(text, &child))
            continue;
        r->ended[call->group][i] = true;
        check_end(r, child, end);
    }
}

static void check_done(struct reading *r, int index, bool failed)
{
    const struct call *call = &r->program->calls[index];
    const char *expected = expected_text(r->world, call);
    const char *seen = r->known->story->seen[index];
    const char *text = r->texts[index];
    if (expected && strcmp(expected, text) != 0)
        breach(r->world, "%s of %s is recorded as %s instead of %s", call->full, r->known->name,
               text, expected);
    if (seen && strcmp(seen, text) != 0)
        breach(r->world, "%s of %s answered %s, but %s is recorded", call->full, r->known->name,
               seen, text);
    if (call->kind == CALL_EMIT)
        check_emitted(r, call);
    else if (call->kind == CALL_SIGNAL && !failed)
        check_received(r, index);
    else if (call->kind == CALL_CHILDREN)
        check_ends(r, index);
}

/* Children that were started in portions, as those that were started at once: the list of their ids. */
static json_t *list_children(const json_t *row)
{
    struct hf__brood brood;
    char text[HF_ID_TEXT];
    hf_id id;
    json_t *list = json_array();
    for (size_t i = 0; hf__brood_read(row, &brood) && i < brood.started; i++)
        if (hf__id_step(brood.first, i, &id)) {
            hf_id_format(id, text);
            json_array_append_new(list, json_string(text));
        }
    return list;
}

static void read_start(struct reading *r, int index, json_t *data)
{
    const json_t *output = json_object_get(data, "output");
    if (json_is_object(output))
        json_object_set_new(data, "output", list_children(output));
    r->children[index] = (int)json_array_size(json_object_get(data, "output"));
}

static void read_line(struct reading *r, sqlite3_stmt *stmt)
{
    int index = find_call(r->program, (const char *)sqlite3_column_text(stmt, 0));
    const char *status = (const char *)sqlite3_column_text(stmt, 1);
    json_t *data = json_loads((const char *)sqlite3_column_text(stmt, 2), JSON_DECODE_ANY, NULL);
    bool final = strcmp(status, "waiting") != 0;
    if (index >= 0 && r->program->calls[index].kind == CALL_START)
        read_start(r, index, data);
    if (index >= 0 && is_settled(r->program, index, final)) {
        bool failed = strcmp(status, "failed") == 0;
        json_decref(r->outputs[index]);
        r->outputs[index] = json_incref(json_object_get(data, "output"));
        r->texts[index] = text_of(r->world, &r->program->calls[index], failed, data);
        check_done(r, index, failed);
    }
    json_decref(data);
}

/* ---- All of it ---- */

static void check_totals(struct reading *r)
{
    int ends = 0;
    int children = 0;
    for (int i = 0; i < CALLS_MOST; i++) {
        children += r->children[i];
        for (int n = 0; n < GROUP_MOST; n++)
            ends += r->ended[i][n];
    }
    const struct {
        const char *what;
        int expected;
    } totals[] = {
        { "outbox entries", r->emits },        { "children", children },
        { "different children", children },    { "consumed signals", r->signals },
        { "consumed ends of children", ends },
    };
    sqlite3_stmt *stmt = ask(r->world->sql.totals, &r->known->id);
    bool found = sqlite3_step(stmt) == SQLITE_ROW;
    for (int i = 0; found && i < (int)(sizeof totals / sizeof *totals); i++)
        if (sqlite3_column_int(stmt, i) != totals[i].expected)
            breach(r->world, "%s has %d %s; its journal tells of %d", r->known->name,
                   sqlite3_column_int(stmt, i), totals[i].what, totals[i].expected);
    sqlite3_reset(stmt);
}

static void check_result(struct reading *r)
{
    char expected[24];
    for (int i = 0; i < r->program->count; i++)
        if (!is_recorded_call(&r->program->calls[i]))
            r->texts[i] = "done";
    snprintf(expected, sizeof expected, "%" PRIu64, result_of(r->texts, r->program->count));
    sqlite3_stmt *stmt = ask(r->world->sql.results, &r->known->id);
    sqlite3_bind_text(stmt, 2, "succeeded", -1, SQLITE_STATIC);
    const unsigned char *result =
        sqlite3_step(stmt) == SQLITE_ROW ? sqlite3_column_text(stmt, 0) : NULL;
    if (!result || strcmp((const char *)result, expected) != 0)
        breach(r->world, "%s came to the result %s; its program says %s", r->known->name,
               result ? (const char *)result : "nothing", expected);
    sqlite3_reset(stmt);
}

void check_story(struct world *world, const struct known *known, hf_status status)
{
    if (!known->story)
        return;
    struct reading r = { .world = world, .known = known, .program = &known->story->program };
    sqlite3_stmt *stmt = ask(world->sql.steps_told, &known->id);
    while (sqlite3_step(stmt) == SQLITE_ROW)
        read_line(&r, stmt);
    sqlite3_reset(stmt);
    check_totals(&r);
    if (status == HF_SUCCEEDED)
        check_result(&r);
    for (int i = 0; i < CALLS_MOST; i++)
        json_decref(r.outputs[i]);
}
