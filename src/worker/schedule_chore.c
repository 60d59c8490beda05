/* One turn of a schedule: it starts what is due and waits for the next due time, in one commit. So a due time fires
 * once, whichever worker gets to it, and the schedule needs no clock of its own.
 * SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

#include "client/check.h"
#include "client/ids.h"
#include "schedule/spec.h"
#include "util/buffer.h"
#include "util/duration.h"
#include "util/error.h"

#include <string.h>

#define TURN_MOST 1000       /* due times that one turn handles; the next goes on */
#define GRACE HF_SECONDS(60) /* what is no later than that is late, not missed */

enum busy { BUSY_UNKNOWN, BUSY, IDLE };

struct play {
    hf_ctx *ctx;
    struct hf__arena *arena;
    struct hf__schedule_state state;
    struct hf__cron cron;
    struct hf__zone zone;
    int64_t now;
    int64_t strict; /* what was due until then was missed, however short ago */
    enum busy busy; /* whether the run started last has not finished */
    int handled;    /* due times of this turn */
    bool more;      /* there are more than one turn handles */

    hf_trigger_spec *starts; /* room for TURN_MOST */
    hf_id *start_ids;
    size_t start_count;
    hf_trigger_spec child; /* of the overlap policy queue: its end wakes the schedule */
    hf_id child_id;
    bool has_child;
    hf_new_event *events; /* room for all that a turn can say */
    size_t event_count;
    size_t last_fired; /* the event of starts[start_count - 1] */
    const char **consumed;
    size_t consumed_count;
};

/* ---- The journal ---- */

static const char *time_text(struct play *play, int64_t time)
{
    char text[HF__TIME_TEXT];
    hf__time_format(time, text);
    return hf__arena_strdup(play->arena, text);
}

static hf_code say(struct play *play, const char *name, const char *data, hf_error *err)
{
    if (!data)
        return hf__nomem(err);
    play->events[play->event_count++] = (hf_new_event){
        .kind = "domain",
        .name = name,
        .data = data,
    };
    return HF_OK;
}

static char *skipped_data(struct play *play, int64_t due, const char *reason)
{
    return hf__arena_printf(play->arena, "{\"due\":\"%s\",\"reason\":\"%s\"}", time_text(play, due),
                            reason);
}

static hf_code skip(struct play *play, int64_t due, const char *reason, hf_error *err)
{
    play->state.skipped++;
    return say(play, "skipped", skipped_data(play, due, reason), err);
}

static hf_code say_missed(struct play *play, int64_t first, int64_t last, hf_error *err)
{
    return say(play, "missed",
               hf__arena_printf(play->arena, "{\"first\":\"%s\",\"last\":\"%s\"}",
                                time_text(play, first), time_text(play, last)),
               err);
}

/* ---- Starting ---- */

static hf_code look_at_last(struct play *play, hf_error *err)
{
    hf_run *run = NULL;
    if (play->busy != BUSY_UNKNOWN)
        return HF_OK;
    play->busy = IDLE;
    if (hf_id_is_zero(play->state.last_run))
        return HF_OK;
    hf_code code = hf_get(hf_ctx_client(play->ctx), &run, play->state.last_run, err);
    if (code == HF_OK && !hf_status_finished(run->status) && !run->deleted_at)
        play->busy = BUSY;
    hf_run_free(run);
    return code == HF_NOT_FOUND ? HF_OK : code;
}

/* What a due time starts. The key makes it one run. */
static hf_code describe(struct play *play, int64_t due, hf_trigger_spec *out, hf_error *err)
{
    const hf_schedule_spec *spec = &play->state.spec;
    const char *name = hf_ctx_key(play->ctx);
    *out = (hf_trigger_spec)HF_TRIGGER_INIT;
    out->workflow = spec->workflow;
    out->input = spec->input;
    out->priority = spec->priority;
    out->tags = spec->tags;
    out->tag_count = spec->tag_count;
    out->key = hf__arena_printf(play->arena, "schedule:%s:%s", name, time_text(play, due));
    out->reference = hf__arena_printf(play->arena, "schedule:%s", name);
    return out->key && out->reference ? HF_OK : hf__nomem(err);
}

static hf_code note_start(struct play *play, int64_t due, hf_id id, hf_error *err)
{
    char text[HF_ID_TEXT];
    hf_id_format(id, text);
    play->state.last_at = due;
    play->state.last_run = id;
    play->state.fired++;
    play->busy = BUSY;
    play->last_fired = play->event_count;
    return say(play, "fired",
               hf__arena_printf(play->arena, "{\"due\":\"%s\",\"run\":\"%s\"}",
                                time_text(play, due), text),
               err);
}

static hf_code start(struct play *play, int64_t due, hf_error *err)
{
    hf_code code = describe(play, due, &play->starts[play->start_count], err);
    if (code != HF_OK)
        return code;
    hf_id id = play->start_ids[play->start_count++] = hf__new_id();
    return note_start(play, due, id, err);
}

/* A child's key must be free, or the whole turn would be refused. It is taken only when clocks were set back. */
static hf_code start_child(struct play *play, int64_t due, hf_error *err)
{
    hf_run *there = NULL;
    hf_code code = describe(play, due, &play->child, err);
    if (code == HF_OK)
        code = hf_get_by_key(hf_ctx_client(play->ctx), &there, play->child.workflow,
                             play->child.key, err);
    hf_run_free(there);
    if (code == HF_OK)
        return skip(play, due, "it was started before", err);
    if (code != HF_NOT_FOUND)
        return code;
    play->has_child = true;
    play->child_id = hf__new_id();
    return note_start(play, due, play->child_id, err);
}

/* ---- Overlap ---- */

static hf_code enqueue(struct play *play, int64_t due, hf_error *err)
{
    struct hf__schedule_state *state = &play->state;
    if (play->busy == IDLE && state->queued == 0 && !play->has_child)
        return start_child(play, due, err);
    if (state->queued == HF__SCHEDULE_QUEUE)
        return skip(play, due, "the queue is full", err);
    state->queue[state->queued++] = due;
    return HF_OK;
}

/* The oldest that waits starts once the run before it has ended. */
static hf_code drain_queue(struct play *play, hf_error *err)
{
    struct hf__schedule_state *state = &play->state;
    hf_code code = state->queued ? look_at_last(play, err) : HF_OK;
    while (code == HF_OK && state->queued && play->busy == IDLE) {
        int64_t due = state->queue[0];
        memmove(state->queue, state->queue + 1, (size_t)(--state->queued) * sizeof *state->queue);
        code = start_child(play, due, err);
    }
    return code;
}

/* The last one gives way: cancelled, or not started at all if this very turn was about to. */
static hf_code make_way(struct play *play, hf_error *err)
{
    struct hf__schedule_state *state = &play->state;
    if (play->start_count && hf_id_equal(play->start_ids[play->start_count - 1], state->last_run)) {
        const char *data =
            skipped_data(play, state->last_at, "a later one was due at the same time");
        play->start_count--;
        state->fired--;
        state->skipped++;
        play->events[play->last_fired].name = "skipped";
        play->events[play->last_fired].data = data;
        return data ? HF_OK : hf__nomem(err);
    }
    hf_change change = HF_CHANGE_INIT;
    change.reason = "its schedule started the next run";
    hf_code code =
        hf_change_run(hf_ctx_client(play->ctx), state->last_run, HF_CANCEL, &change, err);
    return code == HF_NOT_ALLOWED || code == HF_NOT_FOUND ? HF_OK : code;
}

static hf_code fire(struct play *play, int64_t due, hf_error *err)
{
    hf_overlap overlap = play->state.spec.overlap;
    hf_code code = overlap == HF_OVERLAP_ALLOW ? HF_OK : look_at_last(play, err);
    if (code != HF_OK)
        return code;
    if (overlap == HF_OVERLAP_QUEUE)
        return enqueue(play, due, err);
    if (overlap == HF_OVERLAP_SKIP && play->busy == BUSY)
        return skip(play, due, "the last run has not finished", err);
    if (overlap == HF_OVERLAP_CANCEL && play->busy == BUSY)
        code = make_way(play, err);
    return code == HF_OK ? start(play, due, err) : code;
}

/* ---- What is due ---- */

static hf_code fire_all(struct play *play, int64_t until, hf_error *err)
{
    hf_code code = HF_OK;
    int64_t *from = &play->state.from;
    for (int64_t due = hf__cron_next(&play->cron, &play->zone, *from);
         code == HF_OK && due && due <= until;
         due = hf__cron_next(&play->cron, &play->zone, *from)) {
        if (play->handled == TURN_MOST) {
            play->more = true;
            break;
        }
        play->handled++;
        *from = due;
        code = fire(play, due, err);
    }
    return code;
}

static hf_code fire_latest(struct play *play, int64_t until, hf_error *err)
{
    struct hf__schedule_state *state = &play->state;
    int64_t first = hf__cron_next(&play->cron, &play->zone, state->from);
    int64_t last = hf__cron_last(&play->cron, &play->zone, state->from, until);
    if (!last)
        return HF_OK;
    if (play->handled == TURN_MOST) {
        play->more = true;
        return HF_OK;
    }
    play->handled++;
    state->from = last;
    bool fires = state->spec.catch_up != HF_CATCH_UP_NONE ||
                 (last > play->strict && play->now - last <= GRACE);
    hf_code code = HF_OK;
    if (first < last || !fires)
        code = say_missed(play, first, last, err);
    return code == HF_OK && fires ? fire(play, last, err) : code;
}

/* Handles what became due until a time; `more` if that was not all. */
static hf_code settle(struct play *play, int64_t until, hf_error *err)
{
    if (play->state.spec.catch_up == HF_CATCH_UP_ALL)
        return fire_all(play, until, err);
    return fire_latest(play, until, err);
}

/* ---- Mail ---- */

/* The sender checked it, but anybody may send a signal. */
static hf_code check_settings(struct play *play, const hf_schedule_spec *spec, hf_error *err)
{
    struct hf__cron cron;
    hf_trigger_spec started = HF_TRIGGER_INIT;
    started.workflow = spec->workflow;
    started.input = spec->input;
    started.priority = spec->priority;
    started.tags = spec->tags;
    started.tag_count = spec->tag_count;
    hf_code code = hf__cron_parse(&cron, spec->cron, err);
    if (code == HF_OK)
        code = hf__check_trigger(&started, hf__engine_max_payload(play->ctx->worker->engine), err);
    return code;
}

static hf_code refuse(struct play *play, const hf_error *why, hf_error *err)
{
    struct hf__buffer json = { 0 };
    hf__buffer_add_text(&json, "{\"reason\":");
    hf__buffer_add_json_string(&json, why->message, strlen(why->message));
    hf__buffer_add_text(&json, "}");
    char *data = json.failed ? NULL : hf__arena_strdup(play->arena, json.data);
    hf__buffer_free(&json);
    return say(play, "refused", data, err);
}

static hf_code wind(struct play *play, hf_error *err)
{
    hf__zone_free(&play->zone);
    return hf__schedule_clock(&play->state.spec, &play->cron, &play->zone, err);
}

/* What was due before the settings came is due by the old ones. */
static hf_code change_settings(struct play *play, const hf_mail *mail, hf_error *err)
{
    hf_schedule_spec spec;
    hf_error why;
    hf_code code = hf__schedule_spec_read(&spec, mail->payload, play->arena, &why);
    if (code == HF_OK)
        code = check_settings(play, &spec, &why);
    if (code != HF_OK)
        return refuse(play, &why, err);
    int64_t at = mail->occurred_at < play->now ? mail->occurred_at : play->now;
    code = settle(play, at, err);
    if (code != HF_OK || play->more)
        return code;
    play->state.spec = spec;
    if (play->state.from < at)
        play->state.from = at;
    return wind(play, err);
}

/* Takes mail in order until more is due than one turn handles. */
static hf_code read_mail(struct play *play, hf_error *err)
{
    const hf_claimed *claimed = play->ctx->claimed;
    hf_code code = HF_OK;
    for (size_t i = 0; code == HF_OK && i < claimed->mail_count; i++) {
        const hf_mail *mail = &claimed->mail[i];
        bool external = strcmp(mail->type, "external") == 0;
        if (external && strcmp(mail->name, HF__SCHEDULE_SET) == 0)
            code = change_settings(play, mail, err);
        else if (external && strcmp(mail->name, HF__SCHEDULE_RESUMED) == 0 &&
                 mail->occurred_at > play->strict)
            play->strict = mail->occurred_at;
        if (play->more)
            break;
        play->consumed[play->consumed_count++] = mail->id;
    }
    return code;
}

/* ---- The turn ---- */

/* No failure is for good: a schedule goes on once its trouble is over, be it memory or a missing zone file. */
static hf_code prepare(struct play *play, hf_error *err)
{
    size_t mail = play->ctx->claimed->mail_count;
    play->starts = hf__arena_calloc(play->arena, TURN_MOST, sizeof *play->starts);
    play->start_ids = hf__arena_calloc(play->arena, TURN_MOST, sizeof *play->start_ids);
    /* Each due time says one thing and each set of missed ones another; each mail may be refused; each that waited may
     * start. */
    play->events = hf__arena_calloc(play->arena, 2 * TURN_MOST + mail + HF__SCHEDULE_QUEUE,
                                    sizeof *play->events);
    play->consumed = hf__arena_calloc(play->arena, mail + 1, sizeof *play->consumed);
    if (!play->starts || !play->start_ids || !play->events || !play->consumed)
        return hf__nomem(err);
    hf_code code =
        hf__schedule_state_read(&play->state, play->ctx->claimed->run.state, play->arena, err);
    return code == HF_OK ? wind(play, err) : code;
}

static hf_code suspend(struct play *play, hf_error *err)
{
    hf_ctx *ctx = play->ctx;
    hf_trigger_spec *child = hf__arena_alloc(play->arena, sizeof *child);
    hf_id *child_id = hf__arena_alloc(play->arena, sizeof *child_id);
    char *state = hf__schedule_state_json(&play->state, play->arena);
    if (!child || !child_id || !state)
        return hf__nomem(err);
    *child = play->child;
    *child_id = play->child_id;
    ctx->transition = (hf_transition){
        .turn = HF_TURN_WAIT,
        .state = state,
        .waiting_kind = "schedule",
        .waiting_until =
            play->more ? play->now : hf__cron_next(&play->cron, &play->zone, play->state.from),
        .wait_children = play->state.queued ? 1 : 0,
        .seen_position = ctx->claimed->seen_position,
        .seen_at = ctx->claimed->seen_at,
        .consumed = play->consumed,
        .consumed_count = play->consumed_count,
        .children = child,
        .child_count = play->has_child,
        .starts = play->starts,
        .start_count = play->start_count,
        .events = play->events,
        .event_count = play->event_count,
    };
    ctx->start_ids = play->start_ids;
    ctx->child_ids = child_id;
    ctx->suspended = true;
    return HF_SUSPENDED;
}

hf_code hf__schedule_chore(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    struct play play = {
        .ctx = ctx,
        .arena = &ctx->arena,
        .now = ctx->claimed->seen_at,
    };
    (void)input;
    (void)arg;
    hf_code code = prepare(&play, err);
    if (code == HF_OK)
        code = read_mail(&play, err);
    if (code == HF_OK && !play.more)
        code = settle(&play, play.now, err);
    if (code == HF_OK)
        code = drain_queue(&play, err);
    if (code == HF_OK)
        code = suspend(&play, err);
    hf__zone_free(&play.zone);
    return code;
}
