/* SPDX-License-Identifier: Apache-2.0 */
#include "journal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/lifecycle.h"

static const char *text_at(sqlite3_stmt *stmt, int column)
{
    const unsigned char *text = sqlite3_column_text(stmt, column);
    return text ? (const char *)text : "";
}

static void broken_journal(struct replay *r, const char *what, const char *event)
{
    breach(r->world, "the journal of %s, event %" PRId64 " (%s): %s", r->known->name, r->seq, event,
           what);
}

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* The status that a lifecycle event leads to; the present one where it changes none. */
static hf_status status_after(const struct replay *r, const char *name)
{
    static const struct {
        const char *name;
        hf_status status;
    } changes[] = {
        { "started", HF_LEASED },  { "succeeded", HF_SUCCEEDED }, { "failed", HF_FAILED },
        { "retried", HF_PENDING }, { "given_back", HF_PENDING },  { "waiting", HF_WAITING },
        { "paused", HF_PAUSED },   { "cancelled", HF_CANCELLED },
    };
    if (is(name, "resumed"))
        return r->status == HF_PAUSED ? r->before_pause : r->status;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        if (is(name, changes[i].name))
            return changes[i].status;
    return r->status;
}

static bool changes_nothing(const struct replay *r, const char *name)
{
    return is(name, "deleted") || is(name, "restored") || is(name, "pause_requested") ||
           (is(name, "resumed") && r->status == HF_LEASED) || is(name, "debounced");
}

static bool is_commit(const char *name)
{
    return is(name, "succeeded") || is(name, "failed") || is(name, "retried") ||
           is(name, "given_back") || is(name, "waiting");
}

static void count_attempt(struct replay *r, const char *name)
{
    bool operators = is(name, "retried") && hf_status_finished(r->status);
    if (is(name, "started"))
        r->attempt++;
    else if (is(name, "waiting") || is(name, "given_back") || operators)
        r->attempt = 0;
}

static void check_holder(struct replay *r, const char *name, const char *actor)
{
    if (is(name, "started"))
        snprintf(r->holder, sizeof r->holder, "%s", actor);
    else if (is_commit(name) && r->status == HF_LEASED && !is(actor, r->holder))
        broken_journal(r, "it was committed by somebody who did not hold the run", name);
}

static void replay_lifecycle(struct replay *r, int64_t version, const char *name, const char *actor,
                             const char *data)
{
    if (is(name, "created")) {
        r->version = version;
        r->status = HF_PENDING;
        return;
    }
    if (is(name, "waiting") && version == 1 && r->status == HF_PENDING) {
        r->status = HF_WAITING; /* it began with a turn already taken */
        return;
    }
    if (changes_nothing(r, name)) {
        if (version != r->version)
            broken_journal(r, "its version is not the run's", name);
        if (is(name, "debounced") && (r->status != HF_PENDING || version != 1))
            broken_journal(r, "it had begun", name);
        return;
    }
    bool paused_by_commit = is(name, "paused") && version == r->version;
    if (version != r->version + 1 && !paused_by_commit)
        broken_journal(r, "one claim was committed twice, or a version is missing", name);
    hf_status to = status_after(r, name);
    if (!paused_by_commit && !hf__lifecycle_find(r->status, to))
        broken_journal(r, "the lifecycle does not allow this change", name);
    check_holder(r, name, actor);
    count_attempt(r, name);
    if (to == HF_PAUSED)
        r->before_pause = r->status;
    if (is(name, "waiting")) {
        r->wait_children = 0;
        r->wait_version = version;
    }
    const char *children = is(name, "waiting") ? strstr(data, "\"children\":") : NULL;
    if (children && strstr(data, "\"for\":\"children\""))
        r->wait_children = atoi(children + strlen("\"children\":"));
    r->status = to;
    r->version = version;
}

/* One that begins to wait is written by the commit that lets go of the run; but one that starts children in portions goes on. */
static void replay_step(struct replay *r, sqlite3_stmt *stmt)
{
    int64_t version = sqlite3_column_int64(stmt, 1);
    const char *status = text_at(stmt, 3);
    bool lets_go = is(status, "waiting") && !strstr(text_at(stmt, 5), "\"op\":\"children\"");
    if (version != r->version + lets_go || r->status != HF_LEASED ||
        !is(text_at(stmt, 4), r->holder))
        broken_journal(r, "a step was recorded by somebody who did not hold the run", status);
    r->steps += is(status, "succeeded");
    if (r->known->function)
        replay_call(r, text_at(stmt, 7), status, text_at(stmt, 5));
}

static void replay_event(struct replay *r, sqlite3_stmt *stmt)
{
    int64_t seq = sqlite3_column_int64(stmt, 0);
    int64_t version = sqlite3_column_int64(stmt, 1);
    int kind = sqlite3_column_int(stmt, 2);
    const char *name = text_at(stmt, 3);
    const char *actor = text_at(stmt, 4);
    if (seq != r->seq + 1)
        broken_journal(r, "the one before it is missing", name);
    if (sqlite3_column_int64(stmt, 6) <= r->position)
        broken_journal(r, "the order of all events contradicts the run's own", name);
    r->seq = seq;
    r->position = sqlite3_column_int64(stmt, 6);
    if (kind == 0)
        replay_lifecycle(r, version, name, actor, text_at(stmt, 5));
    else if (kind == 2)
        replay_step(r, stmt);
    else if (version != r->version && version != r->version + 1)
        broken_journal(r, "its version is not the run's", name);
}

struct replay replay_journal(struct world *world, struct known *known, bool anew)
{
    sqlite3_stmt *stmt = world->sql.events;
    if (!known->journal)
        known->journal = world_alloc(world, sizeof *known->journal);
    if (anew || !known->journal->known)
        *known->journal = (struct replay){ .world = world, .known = known, .call = -1 };
    sqlite3_reset(stmt);
    sqlite3_bind_blob(stmt, 1, known->id.bytes, sizeof known->id.bytes, SQLITE_STATIC);
    sqlite3_bind_int64(stmt, 2, known->journal->seq);
    while (sqlite3_step(stmt) == SQLITE_ROW)
        replay_event(known->journal, stmt);
    sqlite3_reset(stmt);
    return *known->journal;
}
