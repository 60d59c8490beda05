/* SPDX-License-Identifier: Apache-2.0 */
#include "support/invariants.h"

#include <holdfast/types.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ID_SIZE = 40 };

/* A run's row, beside what its journal says. */
struct subject {
    char id[ID_SIZE];
    int status;
    int64_t version;
    int64_t event_seq;
    int64_t deleted_at;
    bool leased_by;
    bool run_at; /* there is one */
    bool waits_for_nothing_more;
    bool pause_requested;
    bool finished_at_null;
};

struct check {
    struct subject *runs;
    size_t count;
    size_t capacity;
    size_t at; /* the run whose events are read */
    /* the replay of its journal */
    int status;
    int before_pause;
    bool deleted;
    int64_t seq;
    int64_t version;
    char *complaint;
    size_t size;
};

static void complain(struct check *check, const char *id, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void complain(struct check *check, const char *id, const char *fmt, ...)
{
    va_list args;
    if (check->complaint[0])
        return;
    int length = snprintf(check->complaint, check->size, "run %s: ", id);
    va_start(args, fmt);
    vsnprintf(check->complaint + length, check->size - (size_t)length, fmt, args);
    va_end(args);
}

static int64_t number(const char *cell)
{
    return cell ? strtoll(cell, NULL, 10) : 0;
}

/* ---- The rows ---- */

static void check_row(struct check *check, const struct subject *run)
{
    bool finished = hf_status_finished((hf_status)run->status);
    if (finished == run->finished_at_null)
        complain(check, run->id, "is %s, yet finished_at is %s",
                 hf_status_name((hf_status)run->status), run->finished_at_null ? "null" : "set");
    if ((run->status == HF_LEASED) != run->leased_by)
        complain(check, run->id, "is %s, yet leased_by is %s",
                 hf_status_name((hf_status)run->status), run->leased_by ? "set" : "null");
    if (finished && run->run_at)
        complain(check, run->id, "is finished, yet wants attention");
    if ((run->status == HF_PENDING || run->status == HF_LEASED) && !run->run_at)
        complain(check, run->id, "is %s, yet will never want attention",
                 hf_status_name((hf_status)run->status));
    if (run->waits_for_nothing_more && !run->run_at)
        complain(check, run->id, "has all the child ends it waits for, yet sleeps");
    if (run->pause_requested && run->status != HF_LEASED)
        complain(check, run->id, "is %s, yet has a pause to come",
                 hf_status_name((hf_status)run->status));
}

static void add_run(const char *const *cells, void *arg)
{
    struct check *check = arg;
    if (check->count == check->capacity) {
        check->capacity = check->capacity ? check->capacity * 2 : 64;
        check->runs = realloc(check->runs, check->capacity * sizeof *check->runs);
        if (!check->runs)
            abort();
    }
    struct subject *run = &check->runs[check->count++];
    *run = (struct subject){
        .status = (int)number(cells[1]),
        .version = number(cells[2]),
        .event_seq = number(cells[3]),
        .finished_at_null = cells[4] == NULL,
        .deleted_at = number(cells[5]),
        .leased_by = cells[6] != NULL,
        .run_at = cells[7] != NULL,
        .waits_for_nothing_more = number(cells[8]) != 0,
        .pause_requested = number(cells[9]) != 0,
    };
    snprintf(run->id, sizeof run->id, "%s", cells[0]);
    check_row(check, run);
}

/* ---- The journal ---- */

/* What a lifecycle line makes of the status before it, or -1 when it cannot follow. */
static int next_status(struct check *check, const char *name)
{
    static const struct {
        const char *name;
        int from; /* bits of the statuses it can follow */
        int to;
    } moves[] = {
        { "started", 1 << HF_PENDING | 1 << HF_LEASED | 1 << HF_WAITING | 1 << HF_PAUSED,
          HF_LEASED },
        { "succeeded", 1 << HF_LEASED | 1 << HF_WAITING, HF_SUCCEEDED },
        { "failed", 1 << HF_LEASED | 1 << HF_WAITING, HF_FAILED },
        { "retried", 1 << HF_LEASED | 1 << HF_FAILED | 1 << HF_CANCELLED, HF_PENDING },
        { "given_back", 1 << HF_LEASED, HF_PENDING },
        { "waiting", 1 << HF_LEASED | 1 << HF_WAITING | 1 << HF_PENDING, HF_WAITING },
        { "paused", 1 << HF_PENDING | 1 << HF_WAITING, HF_PAUSED },
        { "cancelled", 1 << HF_PENDING | 1 << HF_LEASED | 1 << HF_WAITING | 1 << HF_PAUSED,
          HF_CANCELLED },
        { "pause_requested", 1 << HF_LEASED, HF_LEASED },
        { "gone_on", 1 << HF_LEASED, HF_LEASED },
        { "debounced", 1 << HF_PENDING, HF_PENDING },
    };
    if (strcmp(name, "created") == 0)
        return check->seq == 1 ? HF_PENDING : -1;
    if (strcmp(name, "deleted") == 0 || strcmp(name, "restored") == 0)
        return check->status;
    if (strcmp(name, "resumed") == 0) /* a held run's resume only takes the pause back */
        return check->status == HF_PAUSED   ? check->before_pause
               : check->status == HF_LEASED ? HF_LEASED
                                            : -1;
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
        if (strcmp(moves[i].name, name) == 0)
            return moves[i].from & 1 << check->status ? moves[i].to : -1;
    return -1;
}

static void replay(struct check *check, const char *id, const char *name)
{
    int to = next_status(check, name);
    if (to < 0)
        complain(check, id, "the journal's line %lld, \"%s\", cannot follow %s",
                 (long long)check->seq, name, hf_status_name((hf_status)check->status));
    if (to == HF_PAUSED)
        check->before_pause = check->status;
    if (strcmp(name, "deleted") == 0 || strcmp(name, "restored") == 0) {
        bool deleted = name[0] == 'd';
        if (deleted == check->deleted)
            complain(check, id, "is %s twice in a row", name);
        check->deleted = deleted;
    }
    check->status = to < 0 ? check->status : to;
}

static void compare_with_row(struct check *check)
{
    const struct subject *run = &check->runs[check->at];
    if (check->seq != run->event_seq)
        complain(check, run->id, "its journal ends with %lld, its event_seq is %lld",
                 (long long)check->seq, (long long)run->event_seq);
    if (check->status != run->status)
        complain(check, run->id, "its journal says %s, its row says %s",
                 hf_status_name((hf_status)check->status), hf_status_name((hf_status)run->status));
    if (check->deleted != (run->deleted_at != 0))
        complain(check, run->id, "its journal says %s, its row does not",
                 check->deleted ? "deleted" : "not deleted");
    if (check->version > run->version)
        complain(check, run->id, "its journal is at version %lld, its row at %lld",
                 (long long)check->version, (long long)run->version);
}

static void next_run(struct check *check)
{
    compare_with_row(check);
    check->at++;
    check->seq = check->version = 0;
    check->deleted = false;
    check->status = HF_PENDING;
}

static void add_event(const char *const *cells, void *arg)
{
    struct check *check = arg;
    while (check->at < check->count && strcmp(check->runs[check->at].id, cells[0]) != 0) {
        if (check->seq == 0) {
            complain(check, cells[0], "has a journal that belongs to no run, or to none here");
            return;
        }
        next_run(check);
    }
    if (check->at == check->count) {
        complain(check, cells[0], "has a journal, but no row");
        return;
    }
    if (number(cells[1]) != ++check->seq)
        complain(check, cells[0], "its journal has %s where %lld should be", cells[1],
                 (long long)check->seq);
    if (number(cells[2]) < check->version)
        complain(check, cells[0], "its version falls at line %s", cells[1]);
    check->version = number(cells[2]);
    if (number(cells[3]) == 0)
        replay(check, cells[0], cells[4]);
}

/* ---- The mailboxes ---- */

static void add_sleeper(const char *const *cells, void *arg)
{
    complain(arg, cells[0], "sleeps past the %s \"%s\" at %s", cells[1], cells[2], cells[3]);
}

static void add_misplaced(const char *const *cells, void *arg)
{
    complain(arg, cells[0], "rests at the step \"%s\", yet is listed at \"%s\"",
             cells[1] ? cells[1] : "", cells[2] ? cells[2] : "");
}

static bool read_rests(struct check *check, const struct invariants_source *source, const char *id,
                       const char *mine)
{
    char sql[600];
    snprintf(sql, sizeof sql,
             "SELECT %s, r.current_step, r.rest_step FROM run r WHERE r.%s AND r.status <> 1 "
             "AND coalesce(r.current_step, '') <> coalesce(r.rest_step, '') COLLATE \"C\"",
             id, mine);
    return !source->rests || source->query(source->arg, sql, add_misplaced, check);
}

static bool read_all(struct check *check, const struct invariants_source *source)
{
    char id[64];
    char run_id[64];
    char mine[200] = "tenant_id > 0";
    char sql[1200];
    snprintf(id, sizeof id, source->id_format, "r.id");
    snprintf(run_id, sizeof run_id, source->id_format, "e.run_id");
    if (source->tenants)
        snprintf(mine, sizeof mine, "tenant_id IN (SELECT id FROM tenant WHERE name IN (%s))",
                 source->tenants);
    snprintf(sql, sizeof sql,
             "SELECT %s, r.status, r.version, r.event_seq, r.finished_at, r.deleted_at, "
             "r.leased_by, r.run_at, CASE WHEN r.status = 2 AND r.waiting_kind = 'children' AND "
             "r.wait_count = 0 THEN 1 ELSE 0 END, CAST(r.pause_requested AS int) FROM run r "
             "WHERE r.%s ORDER BY r.id",
             id, mine);
    if (!source->query(source->arg, sql, add_run, check))
        return false;
    snprintf(sql, sizeof sql,
             "SELECT %s, e.seq, e.version, e.kind, e.name FROM event e WHERE e.%s "
             "ORDER BY e.run_id, e.seq",
             run_id, mine);
    if (!source->query(source->arg, sql, add_event, check))
        return false;
    snprintf(sql, sizeof sql,
             "SELECT %s, s.type, s.name, s.visible_at FROM run r JOIN signal s ON s.run_id = r.id "
             "WHERE r.%s AND r.status = 2 AND s.consumed_at IS NULL AND s.visible_at > %lld "
             "AND (r.run_at IS NULL OR r.run_at > s.visible_at)",
             id, mine, (long long)source->now);
    return source->query(source->arg, sql, add_sleeper, check) &&
           read_rests(check, source, id, mine);
}

bool invariants_hold(const struct invariants_source *source, char *complaint, size_t size)
{
    struct check check = { .complaint = complaint, .size = size };
    complaint[0] = '\0';
    if (!read_all(&check, source))
        snprintf(complaint, size, "the tables could not be read");
    while (!complaint[0] && check.at < check.count)
        next_run(&check);
    free(check.runs);
    return complaint[0] == '\0';
}
