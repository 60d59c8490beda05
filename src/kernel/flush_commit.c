/* Commits that go the long way: the run is locked and read, the turn decided on it, then written with all that follows.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernel/batch.h"
#include "kernel/lifecycle.h"
#include "kernel/retry.h"
#include "util/buffer.h"

static bool ends(const hf_transition *t)
{
    return t->turn == HF_TURN_SUCCEED || t->turn == HF_TURN_FAIL;
}

const char *hf__commit_actor(const struct hf__op *op)
{
    const char *worker = op->commit.transition->worker;
    return worker ? worker : op->actor;
}

/* The journal's name for what a turn does. */
static const char *turn_event(hf_turn turn)
{
    static const char *const names[] = {
        [HF_TURN_SUCCEED] = "succeeded",    [HF_TURN_FAIL] = "failed",
        [HF_TURN_RETRY] = "retried",        [HF_TURN_WAIT] = "waiting",
        [HF_TURN_GIVE_BACK] = "given_back", [HF_TURN_UNFIT] = "waiting",
    };
    return names[turn];
}

/* The step by which the journal knows a turn that went on; NULL: it has none, and is written again. */
static const hf_new_event *step_of(const hf_transition *t)
{
    for (size_t i = 0; i < t->event_count; i++)
        if (t->events[i].step)
            return &t->events[i];
    return NULL;
}

static void ask_gone_on(struct hf__batch *batch, const struct hf__op *op)
{
    const hf_transition *t = op->commit.transition;
    const hf_new_event *step = step_of(t);
    if (!step)
        return;
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_FIND_COMMITTED);
    c[0] = hf__number(op->tenant);
    c[1] = hf__uuid(&t->run);
    c[2] = hf__number(t->run_version);
    c[3] = hf__text(hf__commit_actor(op));
    c[4] = hf__text(step->name);
    c[5] = hf__number(HF__STEP);
    c[6] = hf__text(step->step);
    c[7] = hf__null();
}

static void ask_committed(struct hf__batch *batch, const struct hf__op *op)
{
    const hf_transition *t = op->commit.transition;
    if (t->turn == HF_TURN_GO_ON) {
        ask_gone_on(batch, op);
        return;
    }
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_FIND_COMMITTED);
    c[0] = hf__number(op->tenant);
    c[1] = hf__uuid(&t->run);
    c[2] = hf__number(t->run_version + 1);
    c[3] = hf__text(hf__commit_actor(op));
    c[4] = hf__text(turn_event(op->commit.children_fail ? HF_TURN_FAIL : t->turn));
    c[5] = hf__number(HF__LIFECYCLE);
    c[6] = hf__null();
    c[7] = hf__number_or_null(op->commit.seq);
}

/* Adds names to a JSON array. */
static void add_names(struct hf__buffer *json, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        hf__buffer_add_text(json, json->length ? "," : "[");
        hf__buffer_add_json_string(json, names[i], strlen(names[i]));
    }
}

/* The array's text in the batch's memory; NULL when nothing was added. */
static const char *end_names(struct hf__batch *batch, struct hf__buffer *json)
{
    const char *text = NULL;
    if (json->length || json->failed) {
        hf__buffer_add_text(json, "]");
        text = json->failed ? NULL : hf__arena_strdup(batch->arena, json->data);
        batch->failed |= text == NULL;
    }
    hf__buffer_free(json);
    return text;
}

/* The mailbox as it will be when this turn has taken out what it is done with. */
static void ask_mailbox(struct hf__batch *batch, int tenant, const hf_transition *t)
{
    struct hf__buffer done = { 0 };
    struct hf__buffer timers = { 0 };
    add_names(&done, t->consumed, t->consumed_count);
    add_names(&timers, t->cancelled_timers, t->cancelled_timer_count);
    for (size_t i = 0; i < t->timer_count; i++)
        add_names(&timers, &t->timers[i].key, 1);
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_MAILBOX_SUMMARY);
    c[0] = hf__number(tenant);
    c[1] = hf__uuid(&t->run);
    c[2] = hf__number(t->seen_position);
    c[3] = hf__number(t->seen_at);
    c[4] = hf__text(end_names(batch, &done));
    c[5] = hf__text(end_names(batch, &timers));
}

void hf__commit_prepare(struct hf__batch *batch, struct hf__op *op)
{
    const hf_transition *t = op->commit.transition;
    if (ends(t)) {
        hf__ask_parent(batch, op->tenant, &t->run);
        hf__ask_what_follows(batch, op->tenant, &t->run);
    }
    if (t->turn == HF_TURN_WAIT || t->unleased)
        ask_mailbox(batch, op->tenant, t);
    if (t->turn == HF_TURN_WAIT)
        hf__ask_deliveries(batch, op);
    hf__ask_started(batch, op);
    if (op->commit.request)
        hf__ask_request(batch, op);
    else if (op->resent && (op->commit.seq || !t->unleased))
        ask_committed(batch, op);
}

/* ---- Refusals ---- */

/* A holder is known by its version. But it may go on several times at one, and a run that nobody holds may be committed on by
 * two callers of one name: there the line itself must tell whose it is. */
static bool is_its_line(const struct hf__op *op, const char *data)
{
    const hf_transition *t = op->commit.transition;
    const hf_new_event *step = t->turn == HF_TURN_GO_ON ? step_of(t) : NULL;
    char mark[HF_ID_TEXT];
    if (step)
        return strcmp(data, step->data ? step->data : "") == 0;
    hf_id_format(op->commit.mark, mark);
    return !t->unleased || strstr(data, mark);
}

static bool journal_has_it(struct hf__batch *batch, const struct hf__op *op)
{
    const struct hf__table *found = hf__batch_out(batch, HF__STMT_FIND_COMMITTED);
    for (int i = 0; i < found->nrows; i++) {
        const struct hf__cell *c = hf__table_row(found, i);
        if (hf_id_equal(hf__as_uuid(c[0]), op->commit.transition->run) &&
            is_its_line(op, hf__is_null(c[1]) ? "" : hf__as_text(c[1])))
            return true;
    }
    return false;
}

static void refuse(struct hf__batch *batch, struct hf__op *op, const struct hf__row *row)
{
    const hf_transition *t = op->commit.transition;
    const struct hf__cell *found = op->resent ? hf__find_request(batch, op) : NULL;
    if (found)
        hf__answer_again(op, found);
    else if (op->resent && journal_has_it(batch, op))
        hf__op_ok(op);
    else if (row && row->status == HF_CANCELLED)
        hf__op_end(op, HF_RUN_CANCELLED, "the run was cancelled; its holder's commit is refused");
    else
        hf__op_end(op, HF_STALE,
                   "the run is at version %lld, not %lld: somebody else holds it or changed it; "
                   "nothing was written",
                   row ? (long long)row->version : 0LL, (long long)t->run_version);
}

static bool fence_holds(const struct hf__batch *batch, const struct hf__row *row,
                        const hf_transition *t)
{
    if (row->version != t->run_version)
        return false;
    if (!t->unleased)
        return row->status == HF_LEASED;
    return row->status == HF_WAITING && !row->deleted_at && !row->unseen &&
           (row->run_at == 0 || row->run_at > batch->now);
}

/* ---- The row ---- */

int64_t hf__row_wake_time(const struct hf__batch *batch, const struct hf__row *row)
{
    bool children_in = row->waiting_kind && strcmp(row->waiting_kind, "children") == 0 &&
                       (row->wait_count == 0 || (row->wake_on_failure && row->failed_child));
    if (row->unseen || children_in)
        return batch->now;
    return hf__earlier(hf__earlier(row->next_visible, row->waiting_until), row->timeout_at);
}

/* Lets go of the lease and of what the run waited for. */
static void release(struct hf__row *row)
{
    if (row->leased_by)
        row->last_worker = row->leased_by;
    row->leased_by = NULL;
    row->waiting_kind = NULL;
    row->waiting_token = NULL;
    row->waiting_until = 0;
    row->wait_count = 0;
    row->wake_on_failure = false;
}

static void fits_again(struct hf__row *row)
{
    row->unfit_since = row->unfit_pause = 0;
}

bool hf__awaits_worker(const struct hf__row *row)
{
    return row->waiting_kind && strcmp(row->waiting_kind, HF__WAITING_WORKER) == 0;
}

const char *hf__waiting_kind(const hf_transition *t)
{
    if (t->pause)
        return "pause";
    if (t->wait_children > 0)
        return "children";
    return t->waiting_kind ? t->waiting_kind : "signal";
}

static void wait_row(struct hf__batch *batch, const hf_transition *t, struct hf__row *row)
{
    int64_t timer = 0;
    release(row);
    fits_again(row);
    row->status = HF_WAITING;
    row->attempt = 0;
    row->waiting_kind = hf__waiting_kind(t);
    row->waiting_token = t->waiting_token;
    row->waiting_until = t->waiting_until;
    row->wake_on_failure = t->wake_on_child_failure;
    row->wait_count = t->wait_children > row->child_ends ? t->wait_children - row->child_ends : 0;
    hf__transition_timers(batch, row->tenant, &row->id, t, &timer);
    row->has_mail |= t->timer_count > 0;
    row->run_at = hf__earlier(hf__row_wake_time(batch, row), timer);
}

/* The code of its holder did not fit: another worker replays it, and then it waits for what it waited for. What is in its mailbox
 * lies there until then. The attempt does not count. */
static void unfit_row(struct hf__batch *batch, struct hf__row *row)
{
    release(row);
    row->status = HF_WAITING;
    row->waiting_kind = HF__WAITING_WORKER;
    row->attempt -= row->attempt > 0;
    row->unfit_since = row->unfit_since ? row->unfit_since : batch->now;
    row->unfit_pause = hf__unfit_pause(row->unfit_pause);
    row->waiting_until = row->unfit_since + row->fit_within; /* when it fails */
    row->run_at = hf__earlier(batch->now + row->unfit_pause,
                              hf__earlier(row->waiting_until, row->timeout_at));
}

/* Who gives a run back takes nothing from its place in the order. */
static int64_t place_of(const struct hf__batch *batch, const struct hf__row *row)
{
    return row->due_at && row->due_at < batch->now ? row->due_at : batch->now;
}

static void pending_row(struct hf__batch *batch, const hf_transition *t, struct hf__row *row)
{
    int64_t timer = 0;
    bool retry = t->turn == HF_TURN_RETRY;
    release(row);
    if (retry)
        fits_again(row);
    row->status = HF_PENDING;
    row->run_at =
        hf__earlier(retry ? batch->now + t->retry_delay : place_of(batch, row), row->timeout_at);
    if (!retry)
        row->attempt = 0;
    hf__transition_timers(batch, row->tenant, &row->id, t, &timer);
    row->has_mail |= t->timer_count > 0;
}

/* A pause that was asked for while the run was held, or that its holder wants, takes effect now. */
static void pause_row(struct hf__batch *batch, const hf_transition *t, struct hf__row *row)
{
    row->pause_requested = false;
    row->status = HF_PAUSED;
    row->paused_at = batch->now;
    row->due_at = row->run_at;
    row->run_at = t->pause ? hf__earlier(t->waiting_until, row->timeout_at) : row->timeout_at;
}

/* What told why no worker fitted holds no longer. */
static void forget_misfit(struct hf__row *row)
{
    row->mask |= HF__ROW_OUTCOME | HF__ROW_LAST_ERROR;
    row->result = row->error = row->error_code = row->last_error = NULL;
}

static void outcome(const hf_transition *t, struct hf__row *row)
{
    bool goes_on = t->turn == HF_TURN_WAIT || t->turn == HF_TURN_GO_ON;
    if (t->state) {
        row->mask |= HF__ROW_STATE;
        row->state = t->state;
    }
    if (t->current_step) {
        row->mask |= HF__ROW_STEP;
        row->current_step = t->current_step;
    }
    if (goes_on && hf__awaits_worker(row))
        forget_misfit(row);
    if (goes_on || t->turn == HF_TURN_GIVE_BACK)
        return;
    row->mask |= HF__ROW_OUTCOME | HF__ROW_LAST_ERROR;
    row->result = t->turn == HF_TURN_SUCCEED ? t->result : NULL;
    row->error = t->turn == HF_TURN_SUCCEED ? NULL : t->error;
    row->error_code = t->turn == HF_TURN_SUCCEED ? NULL : t->error_code;
    row->last_error = t->turn == HF_TURN_SUCCEED ? NULL : t->last_error;
}

void hf__row_finish(struct hf__batch *batch, struct hf__row *row, hf_status status)
{
    release(row);
    fits_again(row);
    row->status = status;
    row->run_at = 0;
    row->pause_requested = false;
    row->finished_at = batch->now;
    hf__end_child(batch, row);
    if (!hf_id_is_zero(row->active_task))
        hf__cancel_tasks(batch, row);
    hf__wake_watchers(batch, row, true);
}

static void add_text(struct hf__buffer *json, const char *text)
{
    if (text)
        hf__buffer_add_json_string(json, text, strlen(text));
    else
        hf__buffer_add_text(json, "null");
}

/* The detail of a journal line: why it failed, until when it waits. */
static const char *turn_data(struct hf__batch *batch, const struct hf__op *op,
                             const struct hf__row *row)
{
    const hf_transition *t = op->commit.transition;
    struct hf__buffer json = { 0 };
    char mark[HF_ID_TEXT];
    hf_id_format(op->commit.mark, mark);
    if (t->turn == HF_TURN_FAIL || t->turn == HF_TURN_RETRY) {
        hf__buffer_addf(&json, ",\"attempt\":%d", row->attempt);
        if (t->turn == HF_TURN_RETRY)
            hf__buffer_addf(&json, ",\"delay_us\":%lld", (long long)t->retry_delay);
        hf__buffer_add_text(&json, ",\"error\":");
        add_text(&json, t->last_error);
    } else if (t->turn == HF_TURN_WAIT) {
        hf__buffer_add_text(&json, ",\"for\":");
        hf__buffer_add_json_string(&json, row->waiting_kind, strlen(row->waiting_kind));
        hf__buffer_addf(&json, ",\"children\":%d", t->wait_children);
    } else if (t->turn == HF_TURN_UNFIT) {
        hf__buffer_add_text(&json, ",\"for\":\"" HF__WAITING_WORKER "\",\"error\":");
        add_text(&json, t->last_error);
    }
    if (op->commit.children_left)
        hf__buffer_addf(&json, ",\"children_left\":%lld", (long long)op->commit.children_left);
    if (t->unleased)
        hf__buffer_addf(&json, ",\"commit\":\"%s\"", mark);
    if (json.length == 0 && !json.failed)
        return NULL;
    char *data = json.failed ? NULL : hf__arena_printf(batch->arena, "{%s}", json.data + 1);
    hf__buffer_free(&json);
    if (!data)
        batch->failed = true;
    return data;
}

static void apply_turn(struct hf__batch *batch, struct hf__op *op, struct hf__row *row)
{
    const hf_transition *t = op->commit.transition;
    outcome(t, row);
    if (ends(t)) {
        hf__row_finish(batch, row, t->turn == HF_TURN_SUCCEED ? HF_SUCCEEDED : HF_FAILED);
    } else if (t->turn == HF_TURN_WAIT) {
        wait_row(batch, t, row);
    } else if (t->turn == HF_TURN_UNFIT) {
        unfit_row(batch, row);
    } else {
        pending_row(batch, t, row);
    }
    hf__journal(batch, row, HF__LIFECYCLE, turn_event(t->turn), hf__commit_actor(op), NULL,
                turn_data(batch, op, row));
    op->commit.seq = row->event_seq;
    if ((row->pause_requested || t->pause) && !hf_status_finished(row->status)) {
        pause_row(batch, t, row);
        hf__journal(batch, row, HF__LIFECYCLE, "paused", hf__commit_actor(op), NULL, NULL);
    }
    if (row->status == HF_PENDING || row->status == HF_WAITING || t->pause)
        hf__wake_lane(batch, row->lane, row->run_at);
}

/* The holder keeps the run; nothing that others see of it moves. */
static void go_on(struct hf__batch *batch, const hf_transition *t, struct hf__row *row)
{
    int64_t timer = 0;
    outcome(t, row);
    fits_again(row);
    hf__transition_timers(batch, row->tenant, &row->id, t, &timer);
    row->has_mail |= t->timer_count > 0;
}

static hf_status target(const hf_transition *t)
{
    switch (t->turn) {
    case HF_TURN_SUCCEED: return HF_SUCCEEDED;
    case HF_TURN_FAIL: return HF_FAILED;
    case HF_TURN_UNFIT:
    case HF_TURN_WAIT: return HF_WAITING;
    case HF_TURN_GO_ON: return HF_LEASED;
    case HF_TURN_RETRY:
    case HF_TURN_GIVE_BACK: break;
    }
    return HF_PENDING;
}

/* All that the turn brings, with its run's next state. */
static void write_as_is(struct hf__batch *batch, struct hf__op *op, struct hf__row *row)
{
    const hf_transition *t = op->commit.transition;
    bool moves = t->turn != HF_TURN_GO_ON;
    row->version += moves;
    row->revision += moves;
    row->dirty = true;
    int lines = batch->sheets[HF__STMT_INSERT_EVENTS].in.nrows;
    hf__transition_events(batch, op, row);
    hf__note_request(batch, op, row, lines);
    hf__transition_done_mail(batch, op, row);
    hf__transition_blame(batch, op, row);
    hf__insert_started(batch, op, row);
    if (ends(t))
        hf__follow_turn(batch, op, row);
    if (moves)
        apply_turn(batch, op, row);
    else
        go_on(batch, t, row);
    hf__transition_outbox(batch, op->tenant, &row->id, row->event_seq, t);
    hf__alert_failed(batch, op);
    hf__transition_tasks(batch, op->tenant, &row->id, t);
    if (t->task_count && hf_status_finished(row->status))
        hf__cancel_tasks(batch, row);
}

/* A run may not leave children at work where its workflow says so: what its holder sent is written as a failure. */
static void write_turn(struct hf__batch *batch, struct hf__op *op, struct hf__row *row)
{
    const hf_transition *sent = op->commit.transition;
    hf_transition *failure = NULL;
    op->commit.children_left = ends(sent) ? hf__children_left(row, sent) : 0;
    op->commit.children_fail = hf__children_fail(row, sent);
    if (op->commit.children_fail) {
        failure = hf__arena_alloc(batch->arena, sizeof *failure);
        if (!failure) {
            batch->failed = true;
            return;
        }
        *failure = *sent;
        hf__fail_for_children(batch, row, failure);
        op->commit.transition = failure;
    }
    write_as_is(batch, op, row);
    op->commit.transition = sent;
}

void hf__commit_decide(struct hf__batch *batch, struct hf__op *op)
{
    const hf_transition *t = op->commit.transition;
    struct hf__row *row = hf__batch_row_of(batch, op);
    op->commit.written = op->commit.repeated = false;
    op->row = row;
    if (!row || !fence_holds(batch, row, t)) {
        refuse(batch, op, row);
        return;
    }
    const struct hf__cell *found = hf__find_request(batch, op);
    if (found) {
        hf__answer_again(op, found);
        return;
    }
    if (t->turn == HF_TURN_GO_ON && op->resent && journal_has_it(batch, op)) {
        hf__op_ok(op);
        return;
    }
    if (!hf__lifecycle_find(row->status, target(t))) {
        hf__op_end(op, HF_NOT_ALLOWED, "a %s run cannot become %s", hf_status_name(row->status),
                   hf_status_name(target(t)));
        return;
    }
    if (!hf__children_possible(batch, op))
        return;
    if (t->unleased && hf_id_is_zero(op->commit.mark))
        op->commit.mark = hf__batch_id(batch);
    write_turn(batch, op, row);
    op->commit.written = true;
    hf__op_ok(op);
}
