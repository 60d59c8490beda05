/* What must hold whatever happened: the journal equals the state, nothing that was accepted is lost, nothing that was
 * refused is there, no wake-up is missing. A1.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "journal.h"
#include "program.h"
#include "sim.h"

/* ---- Statements ---- */

static sqlite3_stmt *prepare(struct world *world, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v3(world->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL) ==
        SQLITE_OK)
        return stmt;
    fprintf(stderr, "simulate: %s\n", sqlite3_errmsg(world->handle));
    exit(2);
}

void check_open(struct world *world)
{
    struct check_statements *sql = &world->sql;
    sql->row =
        prepare(world, "SELECT status, version, event_seq, attempt, wait_count, run_at, leased_by, "
                       "waiting_kind, waiting_until, timeout_at, deleted_at, finished_at, parent, "
                       "wake_on_failure, has_mail, has_steps, pause_requested, state "
                       "FROM run WHERE tenant_id = 1 AND id = ?1");
    sql->events = prepare(world, "SELECT seq, version, kind, name, actor, data, position, "
                                 "step "
                                 "FROM event WHERE run_id = ?1 AND seq > ?2 ORDER BY seq");
    sql->mail =
        prepare(world, "SELECT coalesce(sum(coalesce(ends, 1)) FILTER (WHERE type = 'child'), 0), "
                       "min(visible_at) FILTER (WHERE type <> 'child'), max(failed_child) "
                       "FROM signal WHERE run_id = ?1 AND consumed_at IS NULL");
    sql->marks =
        prepare(world, "SELECT count(*) FROM event WHERE run_id = ?1 AND kind = 1 AND data = ?2");
    sql->changes =
        prepare(world, "SELECT count(*) FROM event WHERE run_id = ?1 AND kind = 0 AND data = ?2");
    sql->steps =
        prepare(world, "SELECT max(n) FROM (SELECT count(*) AS n FROM event WHERE run_id = ?1 AND "
                       "kind = 2 AND name = 'succeeded' GROUP BY step)");
    /* Of what the last wait of a function did not know. */
    sql->unseen = prepare(world, "SELECT min(visible_at) FROM signal WHERE run_id = ?1 AND "
                                 "consumed_at IS NULL AND type <> 'child' AND NOT (position <= ?2 "
                                 "AND visible_at <= ?3)");
    sql->unseen_failure = prepare(world, "SELECT max(failed_child) FROM signal WHERE run_id = ?1 "
                                         "AND consumed_at IS NULL AND position > ?2");
    sql->lines = prepare(world, "SELECT count(*) FROM event WHERE run_id = ?1 AND kind = 2 AND "
                                "step = ?2 AND version <= ?3 AND name = ?4");
    sql->saved = prepare(world, "SELECT count(*) FROM event WHERE run_id = ?1 AND kind = 2 AND "
                                "step = ?2 AND version = ?3 AND CASE WHEN ?4 IS NULL THEN name <> "
                                "'waiting' ELSE data = ?4 END");
    sql->steps_told = prepare(world, "SELECT step, name, data FROM event WHERE run_id = ?1 AND "
                                     "kind = 2 ORDER BY seq");
    sql->results =
        prepare(world, "SELECT result, (SELECT count(*) FROM event WHERE run_id = ?1 AND kind = 0 "
                       "AND name = ?2) FROM run WHERE tenant_id = 1 AND id = ?1");
    sql->totals = prepare(
        world, "SELECT (SELECT count(*) FROM outbox WHERE run_id = ?1), "
               "(SELECT count(*) FROM run WHERE tenant_id = 1 AND parent = ?1), "
               "(SELECT count(DISTINCT input) FROM run WHERE tenant_id = 1 AND parent = ?1), "
               "(SELECT count(*) FROM signal WHERE run_id = ?1 AND type = 'external' AND "
               "consumed_at IS NOT NULL), (SELECT count(*) FROM signal WHERE run_id = ?1 AND "
               "type = 'child' AND consumed_at IS NOT NULL)");
    sql->consumed = prepare(world, "SELECT count(*) FROM signal WHERE run_id = ?1 AND name = ?2 "
                                   "AND payload = ?3 AND consumed_at IS NOT NULL");
    sql->outbox = prepare(world, "SELECT count(*) FROM outbox WHERE run_id = ?1 AND payload = ?2");
    /* A child that was retried may have been so after the cancel, in the same flush. */
    sql->orphans = prepare(
        world, "SELECT count(*) FROM run c WHERE tenant_id = 1 AND parent = ?1 AND status <= 3 AND "
               "NOT EXISTS (SELECT 1 FROM run WHERE input = ?2) AND NOT EXISTS "
               "(SELECT 1 FROM event WHERE run_id = c.id AND kind = 0 AND name "
               "IN ('failed', 'cancelled'))");
    sql->commits = prepare(world, "SELECT count(*) FROM event WHERE run_id = ?1 AND kind = 0 AND "
                                  "actor = ?2 AND version = ?3 AND name IN ('succeeded', 'failed', "
                                  "'retried', 'given_back', 'waiting')");
    sql->debounces = prepare(world, "SELECT (SELECT count(*) FROM run WHERE tenant_id = 1 AND id = "
                                    "?1) + (SELECT count(*) FROM event WHERE name || '' = "
                                    "'debounced' AND data BETWEEN ?2 AND ?2 || '~')");
    sql->arrivals =
        prepare(world, "SELECT count(*) FROM event WHERE run_id = ?1 AND kind = 4 AND data = ?2");
    sql->signal = prepare(world, "SELECT count(*) FROM signal WHERE run_id = ?1 AND id = ?2");
    sql->made =
        prepare(world, "SELECT (SELECT count(*) FROM outbox WHERE run_id = ?1 AND payload = ?2), "
                       "(SELECT count(*) FROM task WHERE run_id = ?1 AND payload = ?2), "
                       "(SELECT count(*) FROM signal WHERE run_id = ?1 AND type = 'timer' AND "
                       "payload = ?2)");
    sql->held = prepare(world, "SELECT count(*) FROM run WHERE lane = ?1 AND status = 1 AND "
                               "(deleted_at IS NULL OR ?3) AND run_at > ?2");
    sql->due = prepare(world, "SELECT min(run_at) FROM run WHERE status <= 3 AND "
                              "(deleted_at IS NULL AND (lane <> ?1 OR status = 1) "
                              "OR lane = ?1 AND status = 1 AND run_at > ?2)");
}

void check_close(struct world *world)
{
    struct check_statements *sql = &world->sql;
    sqlite3_stmt *all[] = { sql->commits,        sql->arrivals, sql->orphans,  sql->row,
                            sql->events,         sql->mail,     sql->marks,    sql->changes,
                            sql->steps,          sql->signal,   sql->made,     sql->unseen,
                            sql->unseen_failure, sql->lines,    sql->saved,    sql->steps_told,
                            sql->results,        sql->totals,   sql->consumed, sql->outbox,
                            sql->held,           sql->due,      sql->debounces };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        sqlite3_finalize(all[i]);
}

static sqlite3_stmt *ask(sqlite3_stmt *stmt, const hf_id *id, const char *text)
{
    sqlite3_reset(stmt);
    sqlite3_bind_blob(stmt, 1, id->bytes, sizeof id->bytes, SQLITE_STATIC);
    if (text)
        sqlite3_bind_text(stmt, 2, text, -1, SQLITE_STATIC);
    return stmt;
}

static int64_t first_number(sqlite3_stmt *stmt)
{
    int64_t number = sqlite3_step(stmt) == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
    sqlite3_reset(stmt);
    return number;
}

static const char *text_at(sqlite3_stmt *stmt, int column)
{
    const unsigned char *text = sqlite3_column_text(stmt, column);
    return text ? (const char *)text : "";
}

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* ---- The row ---- */

struct row {
    hf_status status;
    int64_t version;
    int64_t event_seq;
    int attempt;
    int wait_count;
    int64_t run_at; /* 0: null */
    bool leased_by;
    char waiting_kind[16];
    int64_t waiting_until;
    int64_t timeout_at;
    bool deleted;
    bool finished_at;
    bool wake_on_failure;
    bool has_mail;
    bool has_steps;
    bool has_parent;
    hf_id parent;
    char state[48];
    int child_ends; /* in the mailbox */
    int64_t next_mail;
    bool failed_child;
};

static bool read_row(struct world *world, const hf_id *id, struct row *row)
{
    sqlite3_stmt *stmt = ask(world->sql.row, id, NULL);
    *row = (struct row){ 0 };
    bool found = sqlite3_step(stmt) == SQLITE_ROW;
    if (found) {
        row->status = (hf_status)sqlite3_column_int(stmt, 0);
        row->version = sqlite3_column_int64(stmt, 1);
        row->event_seq = sqlite3_column_int64(stmt, 2);
        row->attempt = sqlite3_column_int(stmt, 3);
        row->wait_count = sqlite3_column_int(stmt, 4);
        row->run_at = sqlite3_column_int64(stmt, 5);
        row->leased_by = sqlite3_column_type(stmt, 6) != SQLITE_NULL;
        snprintf(row->waiting_kind, sizeof row->waiting_kind, "%s", text_at(stmt, 7));
        row->waiting_until = sqlite3_column_int64(stmt, 8);
        row->timeout_at = sqlite3_column_int64(stmt, 9);
        row->deleted = sqlite3_column_type(stmt, 10) != SQLITE_NULL;
        row->finished_at = sqlite3_column_type(stmt, 11) != SQLITE_NULL;
        row->has_parent = sqlite3_column_type(stmt, 12) != SQLITE_NULL;
        if (row->has_parent)
            memcpy(row->parent.bytes, sqlite3_column_blob(stmt, 12), sizeof row->parent.bytes);
        row->wake_on_failure = sqlite3_column_int(stmt, 13) != 0;
        row->has_mail = sqlite3_column_int(stmt, 14) != 0;
        row->has_steps = sqlite3_column_int(stmt, 15) != 0;
        snprintf(row->state, sizeof row->state, "%s", text_at(stmt, 17));
    }
    sqlite3_reset(stmt);
    stmt = ask(world->sql.mail, id, NULL);
    if (sqlite3_step(stmt) == SQLITE_ROW) {
        row->child_ends = sqlite3_column_int(stmt, 0);
        row->next_mail = sqlite3_column_int64(stmt, 1);
        row->failed_child = sqlite3_column_int(stmt, 2) != 0;
    }
    sqlite3_reset(stmt);
    return found;
}

static void check_against_journal(struct world *world, const struct known *known,
                                  const struct row *row, const struct replay *journal)
{
    struct replay r = *journal;
    if (r.status != row->status)
        breach(world, "%s is %s, but its journal says %s", known->name, hf_status_name(row->status),
               hf_status_name(r.status));
    if (r.version != row->version)
        breach(world, "%s has version %" PRId64 ", its journal %" PRId64, known->name, row->version,
               r.version);
    if (r.seq != row->event_seq)
        breach(world, "%s counts %" PRId64 " events, its journal has %" PRId64, known->name,
               row->event_seq, r.seq);
    if (r.attempt != row->attempt)
        breach(world, "%s is at attempt %d, its journal says %d", known->name, row->attempt,
               r.attempt);
    bool waits = row->status == HF_WAITING || row->status == HF_PAUSED;
    int expected = r.wait_children > row->child_ends ? r.wait_children - row->child_ends : 0;
    if (waits && is(row->waiting_kind, "children") && row->wait_count != expected)
        breach(world, "%s waits for %d more ends; it asked for %d and has %d", known->name,
               row->wait_count, r.wait_children, row->child_ends);
}

/* Whether it will be looked at by `time`, or by now if that is past. */
static bool wakes_by(const struct world *world, const struct row *row, int64_t time)
{
    return row->run_at != 0 && row->run_at <= (time > world->latest ? time : world->latest);
}

static void check_wake_up(struct world *world, const struct known *known, const struct row *row)
{
    bool children = is(row->waiting_kind, "children");
    bool all_in = row->wait_count == 0 || (row->wake_on_failure && row->failed_child);
    if (row->status == HF_WAITING && row->next_mail && !wakes_by(world, row, row->next_mail))
        breach(world, "%s sleeps although there is mail for it", known->name);
    if (row->status == HF_WAITING && children && all_in && !wakes_by(world, row, 0))
        breach(world, "%s sleeps although the children it waits for have ended", known->name);
    if (row->status == HF_WAITING && row->waiting_until &&
        !wakes_by(world, row, row->waiting_until))
        breach(world, "%s sleeps beyond the end of its wait", known->name);
    if (row->status != HF_LEASED && row->timeout_at && !wakes_by(world, row, row->timeout_at))
        breach(world, "%s sleeps beyond its deadline", known->name);
    if (row->status == HF_WAITING && !row->waiting_kind[0])
        breach(world, "%s waits, but not for anything", known->name);
    if ((row->status == HF_PENDING || row->status == HF_LEASED) && row->run_at == 0)
        breach(world, "%s is %s and will never be claimed", known->name,
               hf_status_name(row->status));
}

/* A function leaves mail of other names and ends of other children where they are: only what its wait did not know must
 * wake it. */
static void leave_out_seen(struct world *world, const struct known *known, int64_t wait_version,
                           struct row *row)
{
    const struct look *look = known->story->looks;
    while (look && look->version != wait_version)
        look = look->next;
    sqlite3_stmt *mail = ask(world->sql.unseen, &known->id, NULL);
    sqlite3_bind_int64(mail, 2, look ? look->seen_position : 0);
    sqlite3_bind_int64(mail, 3, look ? look->seen_at : 0);
    row->next_mail = first_number(mail);
    sqlite3_stmt *failure = ask(world->sql.unseen_failure, &known->id, NULL);
    sqlite3_bind_int64(failure, 2, look ? look->seen_position : 0);
    row->failed_child = first_number(failure) != 0;
}

static void check_row(struct world *world, struct known *known, const struct row *row, bool anew)
{
    bool finished = hf_status_finished(row->status);
    if ((row->status == HF_LEASED) != row->leased_by)
        breach(world, "%s is %s with%s a holder", known->name, hf_status_name(row->status),
               row->leased_by ? "" : "out");
    if (finished != row->finished_at || (finished && row->run_at))
        breach(world, "%s is %s, but its times say otherwise", known->name,
               hf_status_name(row->status));
    if ((row->next_mail || row->child_ends) && !row->has_mail)
        breach(world, "%s has mail that no claim would load", known->name);
    struct replay journal = replay_journal(world, known, anew);
    int64_t most =
        journal.steps > 1 ? first_number(ask(world->sql.steps, &known->id, NULL)) : journal.steps;
    if (most > 1)
        breach(world, "a step of %s was recorded %" PRId64 " times", known->name, most);
    if (most && !row->has_steps)
        breach(world, "%s has steps that no claim would load", known->name);
    struct row awaited = *row;
    if (known->story)
        leave_out_seen(world, known, journal.wait_version, &awaited);
    if (!finished)
        check_wake_up(world, known, &awaited);
    check_against_journal(world, known, row, &journal);
}

static bool check_one(struct world *world, struct known *known, struct row *row, bool anew)
{
    bool found = read_row(world, &known->id, row);
    if (!found && known->accepted)
        breach(world, "%s was accepted and is lost", known->name);
    if (found && known->refused)
        breach(world, "%s was refused and exists", known->name);
    if (found)
        check_row(world, known, row, anew);
    return found;
}

void check_run(struct world *world, hf_id id)
{
    struct row row, parent;
    if (check_one(world, known_of(world, id), &row, false) && row.has_parent)
        check_one(world, known_of(world, row.parent), &parent, false);
}

/* ---- Answers ---- */

/* What it wrote must be there once if it was told so, and not at all if it was refused. */
static void check_count(struct world *world, const struct job *job, const char *what, int64_t count)
{
    bool no_answer = job->op.code == HF_UNAVAILABLE || job->op.code == HF_STORE;
    bool maybe = job->dropped || (job->op.resent && no_answer);
    if (count > 1)
        breach(world, "the %s of %s's operation %s on %s is there %" PRId64 " times", what,
               job->node->name, job->mark, job->known->name, count);
    else if (!maybe && job->told && job->op.code == HF_OK && count == 0)
        breach(world, "%s was told that operation %s on %s is done, but its %s is not there",
               job->node->name, job->mark, job->known->name, what);
    else if (!maybe && job->told && job->op.code != HF_OK && count == 1)
        breach(world, "%s was told that operation %s on %s failed (%s), but its %s is there",
               job->node->name, job->mark, job->known->name, hf_code_name(job->op.code), what);
}

/* A commit that was told to be done has its line in the journal, whichever way it went. */
static void check_committed(struct world *world, const struct job *job)
{
    sqlite3_stmt *stmt = ask(world->sql.commits, &job->known->id, job->op.actor);
    sqlite3_bind_int64(stmt, 3, job->transition.run_version + 1);
    if (first_number(stmt) == 0)
        breach(world, "%s was told that operation %s on %s is done, but the journal does not know",
               job->node->name, job->mark, job->known->name);
}

static void check_transition(struct world *world, const struct job *job)
{
    const hf_transition *t = &job->transition;
    const hf_id *run = &job->known->id;
    if (job->op.kind == HF__OP_COMMIT && job->told && job->op.code == HF_OK)
        check_committed(world, job);
    if (job->marked)
        check_count(world, job, "event", first_number(ask(world->sql.marks, run, job->mark)));
    sqlite3_stmt *stmt = ask(world->sql.made, run, job->mark);
    if (sqlite3_step(stmt) == SQLITE_ROW) {
        if (t->outbox_count)
            check_count(world, job, "outbox entry", sqlite3_column_int64(stmt, 0));
        if (t->task_count)
            check_count(world, job, "task", sqlite3_column_int64(stmt, 1));
        if (sqlite3_column_int64(stmt, 2) > 1)
            check_count(world, job, "timer", sqlite3_column_int64(stmt, 2));
    }
    sqlite3_reset(stmt);
}

static void check_signal(struct world *world, const struct job *job)
{
    bool must = job->told && job->op.code == HF_OK && !job->signal.token;
    char data[64];
    snprintf(data, sizeof data, "{\"id\":\"%s\",\"type\":\"external\"}", job->signal.id);
    int64_t arrivals = first_number(ask(world->sql.arrivals, &job->known->id, data));
    if (arrivals > 1)
        breach(world, "signal %s arrived at %s %" PRId64 " times", job->signal.id, job->known->name,
               arrivals);
    if (must && first_number(ask(world->sql.signal, &job->known->id, job->signal.id)) == 0)
        breach(world, "signal %s to %s was accepted and is lost", job->signal.id, job->known->name);
}

/* An operator's change carries its mark as the reason. Sent again, it may be done twice, or found as it was asked for. */
static void check_change(struct world *world, const struct job *job)
{
    char data[48];
    snprintf(data, sizeof data, "{\"reason\":\"%s\"}", job->mark);
    int64_t count = first_number(ask(world->sql.changes, &job->known->id, data));
    if (job->op.resent && job->op.code == HF_OK)
        return;
    check_count(world, job, "change", count);
}

/* An input was handled at once: only possible if no other was due. */
void check_execution(struct world *world, const struct job *job)
{
    struct row row;
    if (job->op.kind != HF__OP_COMMIT || !job->transition.unleased || job->op.code != HF_OK ||
        job->op.resent || !read_row(world, &job->known->id, &row))
        return;
    if (row.next_mail && row.next_mail < world->flush_began)
        breach(world, "%s overtook the mail of %s", job->node->name, job->known->name);
}

/* Who cancels a run with unfinished children leaves the engine a chore. */
void check_cascade(struct world *world, const struct job *job)
{
    char id[HF_ID_TEXT];
    char input[HF_ID_TEXT + 16];
    if (job->op.kind != HF__OP_CHANGE || job->op.change.action != HF_CANCEL ||
        job->op.code != HF_OK || job->op.resent)
        return;
    hf_id_format(job->known->id, id);
    snprintf(input, sizeof input, "{\"run\":\"%s\"}", id);
    if (first_number(ask(world->sql.orphans, &job->known->id, input)) > 0)
        breach(world, "%s was cancelled and nobody will cancel its children", job->known->name);
}

/* What a function's call recorded. */
static void check_saved(struct world *world, const struct job *job)
{
    bool step = job->op.kind == HF__OP_STEP;
    if (!job->step.name)
        return;
    sqlite3_stmt *stmt = ask(world->sql.saved, &job->known->id, job->step.name);
    sqlite3_bind_int64(stmt, 3, step ? job->step.run_version : job->transition.run_version);
    sqlite3_bind_text(stmt, 4, job->portion, -1, SQLITE_STATIC);
    check_count(world, job, "line", first_number(stmt));
}

/* It made a run or gave its input to one, never both and never twice; told so, it did. */
static void check_debounce(struct world *world, const struct job *job)
{
    char id[HF_ID_TEXT];
    char line[HF_ID_TEXT + 32];
    hf_id_format(job->op.trigger.id, id);
    snprintf(line, sizeof line, "{\"trigger\":\"%s\",", id);
    int64_t times = first_number(ask(world->sql.debounces, &job->op.trigger.id, line));
    bool told = job->told && job->op.code == HF_OK && !job->op.trigger.existed;
    if (times > 1 || (told && times != 1))
        breach(world, "the debounced trigger of %s happened %" PRId64 " times", job->known->name,
               times);
}

/* The input of a run is that of the last trigger that went into it. */
static void check_inputs(struct world *world)
{
    int64_t wrong = ask_number(
        world, "SELECT count(*) FROM run r WHERE CAST(r.input AS INTEGER) <> (SELECT "
               "json_extract(e.data, '$.input') FROM event e WHERE e.run_id = r.id AND e.name = "
               "'debounced' ORDER BY e.seq DESC LIMIT 1)");
    if (wrong)
        breach(world, "%" PRId64 " runs do not have the input of the last debounce", wrong);
}

void check_job(struct world *world, const struct job *job)
{
    if (job->op.kind == HF__OP_TRIGGER && job->trigger.debounce_key)
        check_debounce(world, job);
    bool goes_on = job->op.kind == HF__OP_COMMIT && job->transition.turn == HF_TURN_GO_ON;
    if (goes_on || job->op.kind == HF__OP_STEP)
        check_saved(world, job);
    else if (job->op.kind == HF__OP_COMMIT || (job->op.kind == HF__OP_TRIGGER &&
                                               job->op.trigger.initial && !job->op.trigger.existed))
        check_transition(world, job);
    else if (job->op.kind == HF__OP_SIGNAL)
        check_signal(world, job);
    else if (job->op.kind == HF__OP_CHANGE)
        check_change(world, job);
}

/* ---- What a claim brings ---- */

/* One that was deleted counts until its lease ends; a holder who comes back after that is one too many. */
static int left_of_limit(struct world *world, bool beside_deleted)
{
    sqlite3_stmt *stmt = world->sql.held;
    if (!world->max_running)
        return INT_MAX;
    sqlite3_bind_int(stmt, 1, world->lanes[0]);
    sqlite3_bind_int64(stmt, 2, world->now);
    sqlite3_bind_int(stmt, 3, beside_deleted);
    return world->max_running - (int)first_number(stmt);
}

/* One that was deleted while it was held counts until its lease ends. */
int limit_left(struct world *world)
{
    return left_of_limit(world, true);
}

int64_t next_due(struct world *world)
{
    sqlite3_bind_int(world->sql.due, 1, limit_left(world) <= 0 ? world->lanes[0] : 0);
    sqlite3_bind_int64(world->sql.due, 2, world->now);
    return first_number(world->sql.due);
}

/* Where the clock is set back, the lease of one that was deleted may have ended before. */
void check_limit(struct world *world)
{
    int left = left_of_limit(world, false);
    if (left < 0)
        breach(world, "%d runs are held at once; the limit is %d", world->max_running - left,
               world->max_running);
}

void check_delivery(struct world *world, struct known *known, const hf_claimed *claimed)
{
    const char *state = claimed->run.state ? claimed->run.state : "";
    for (int i = 0; i < SIM_WORKFLOWS; i++)
        if (world->paused[i] && claimed->lane == world->lanes[i])
            breach(world, "%s was claimed although its workflow is paused", known->name);
    if (known->state_sure && !is(state, known->state))
        breach(world, "%s was claimed with state %s; the last accepted commit wrote %s",
               known->name, state, known->state);
    for (size_t i = 0; i < claimed->mail_count; i++) {
        const hf_mail *mail = &claimed->mail[i];
        for (const struct eaten *eaten = known->eaten; eaten; eaten = eaten->next)
            if (is(eaten->id, mail->id))
                breach(world, "signal %s was consumed by %s and delivered again", mail->id,
                       known->name);
        if (i && mail->visible_at < claimed->mail[i - 1].visible_at)
            breach(world, "the mail of %s is out of order", known->name);
    }
    for (size_t i = 1; i < claimed->step_count; i++)
        if (claimed->steps[i].seq <= claimed->steps[i - 1].seq)
            breach(world, "the steps of %s are out of order", known->name);
}

/* ---- All of it ---- */

void check_everything(struct world *world)
{
    struct row row;
    for (struct known *known = world->runs; known; known = known->next)
        if (check_one(world, known, &row, true) && known->function)
            check_story(world, known, row.status);
    for (int i = 0; i < world->job_count; i++)
        check_job(world, world->jobs[i]);
    check_inputs(world);
}

/* The end of a run that succeeded: it has seen every child that it started. */
static void check_family(struct world *world, const struct known *known, const struct row *row)
{
    char sql[300];
    char hex[2 * sizeof known->id.bytes + 1];
    int turns, started, ended;
    for (size_t i = 0; i < sizeof known->id.bytes; i++)
        snprintf(hex + 2 * i, 3, "%02x", known->id.bytes[i]);
    counters_read(row->state[0] ? row->state : NULL, &turns, &started, &ended);
    snprintf(sql, sizeof sql, "SELECT count(*) FROM run WHERE tenant_id = 1 AND parent = x'%s'",
             hex);
    int64_t children = ask_number(world, sql);
    snprintf(
        sql, sizeof sql,
        "SELECT count(*) FROM signal WHERE run_id = x'%s' AND type = 'child' AND consumed_at IS "
        "NOT NULL",
        hex);
    int64_t consumed = ask_number(world, sql);
    if (started != ended || children != started || consumed != ended)
        breach(world,
               "%s succeeded: it says it started %d children and saw %d end; the store has %" PRId64
               " children and %" PRId64 " consumed ends",
               known->name, started, ended, children, consumed);
}

void check_ended(struct world *world)
{
    struct row row;
    for (struct known *known = world->runs; known && !world->broken; known = known->next) {
        if (!read_row(world, &known->id, &row))
            continue;
        note(world, "%s ended %s at version %" PRId64 " with %" PRId64 " events", known->name,
             hf_status_name(row.status), row.version, row.event_seq);
        if (!hf_status_finished(row.status))
            breach(world, "%s has not ended", known->name);
        if (row.status == HF_SUCCEEDED && !known->function)
            check_family(world, known, &row);
    }
}
