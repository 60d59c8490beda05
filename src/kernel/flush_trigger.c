/* Triggers: new runs, and why some were refused.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernel/batch.h"
#include "util/buffer.h"
#include "util/error.h"
#include "util/json.h"

static void first_event(struct hf__batch *batch, const struct hf__new_run *run, int64_t seq,
                        int kind, const hf_new_event *event)
{
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_INSERT_FIRST_EVENTS);
    c[0] = hf__number(run->tenant);
    c[1] = hf__uuid(run->id);
    c[2] = hf__number(seq);
    c[3] = hf__number(kind);
    c[4] = hf__text(event->name);
    c[5] = hf__text(run->actor);
    c[6] = hf__text(event->step);
    c[7] = hf__text(event->data);
}

/* Journal lines of the first transition; `created` is number 1. Returns how many there are. */
static int64_t first_events(struct hf__batch *batch, const struct hf__new_run *run)
{
    static const hf_new_event waiting = { .name = "waiting" };
    const hf_transition *initial = run->initial;
    int64_t count = (int64_t)initial->event_count;
    for (int64_t i = 0; i < count; i++)
        first_event(batch, run, i + 2, hf__event_kind(initial->events[i].kind),
                    &initial->events[i]);
    if (initial->turn == HF_TURN_WAIT) {
        first_event(batch, run, count + 2, HF__LIFECYCLE, &waiting);
        count++;
    }
    return count;
}

/* The tags as they are stored: a JSON array. NULL when there are none. */
static const char *tags_json(struct hf__batch *batch, const hf_trigger_spec *spec)
{
    struct hf__buffer json = { 0 };
    if (spec->tag_count == 0)
        return NULL;
    for (size_t i = 0; i < spec->tag_count; i++) {
        hf__buffer_add_text(&json, i ? "," : "[");
        hf__buffer_add_json_string(&json, spec->tags[i], strlen(spec->tags[i]));
    }
    hf__buffer_add_text(&json, "]");
    const char *text = json.failed ? NULL : hf__arena_strdup(batch->arena, json.data);
    batch->failed |= text == NULL;
    hf__buffer_free(&json);
    return text;
}

static void tag_rows(struct hf__batch *batch, const struct hf__new_run *run)
{
    for (size_t i = 0; i < run->spec->tag_count; i++) {
        struct hf__cell *c = hf__batch_add(batch, HF__STMT_INSERT_TAGS);
        c[0] = hf__number(run->tenant);
        c[1] = hf__text(run->spec->tags[i]);
        c[2] = hf__uuid(run->id);
    }
}

/* The columns that a first transition sets; without one the run is simply pending. */
static void first_state(struct hf__batch *batch, const struct hf__new_run *run, struct hf__cell *c)
{
    const hf_transition *initial = run->initial;
    c[4] = hf__number(HF_PENDING);
    c[24] = hf__number(0);
    c[25] = hf__number(0);
    c[26] = hf__number(0);
    c[27] = hf__number(0);
    c[29] = hf__number(0);
    if (!initial)
        return;

    int64_t wake = 0;
    hf__transition_timers(batch, run->tenant, run->id, initial, &wake);
    hf__transition_outbox(batch, run->tenant, run->id, 1, initial);
    hf__transition_tasks(batch, run->tenant, run->id, initial);
    c[26] = hf__number(first_events(batch, run));
    c[12] = hf__text(initial->state);
    c[25] = hf__number(initial->timer_count > 0);
    if (initial->turn != HF_TURN_WAIT)
        return;
    c[4] = hf__number(HF_WAITING);
    c[6] = hf__number_or_null(hf__earlier(wake, initial->waiting_until));
    c[21] = hf__text(hf__waiting_kind(initial));
    c[22] = hf__text(initial->waiting_token);
    c[23] = hf__number_or_null(initial->waiting_until);
    c[24] = hf__number(initial->wait_children);
    c[27] = hf__number(1);
    c[29] = hf__number(initial->wake_on_child_failure);
}

/* The lane of a flow key is made with its first run, and goes after its last. One that is remembered may be gone: then the
 * run is not inserted, and comes again when all lanes are forgotten. What is inserted for granted is not left to that. */
static void ask_lane(struct hf__batch *batch, const struct hf__new_run *run)
{
    const hf_trigger_spec *spec = run->spec;
    bool granted = run->always || run->initial;
    if (!spec->flow_key || (!granted && hf__lane_recall(&batch->flusher->lanes, run->tenant,
                                                        spec->workflow, spec->flow_key)))
        return;
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_ENSURE_LANES);
    c[0] = hf__number(run->tenant);
    c[1] = hf__text(spec->workflow);
    c[2] = hf__text(spec->flow_key);
}

void hf__insert_run(struct hf__batch *batch, const struct hf__new_run *run)
{
    const hf_trigger_spec *spec = run->spec;
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_INSERT_RUNS);
    c[0] = hf__number(run->tenant);
    c[1] = hf__uuid(run->id);
    c[2] = hf__text(spec->workflow);
    c[3] = hf__text(spec->key);
    c[5] = hf__number(spec->priority);
    c[6] = hf__number_or_null(spec->run_at);
    c[7] = hf__number(spec->delay);
    c[8] = hf__number_or_null(spec->timeout_at);
    c[9] = hf__number_or_null(spec->timeout);
    c[10] = hf__number_or_null(spec->max_attempts);
    c[11] = hf__text(spec->input);
    c[13] = hf__text(spec->subject);
    c[14] = hf__text(spec->reference);
    c[15] = hf__text(tags_json(batch, spec));
    c[16] = hf__text(spec->partition);
    c[17] = hf__text(spec->trace ? spec->trace : run->trace);
    c[18] = hf__text(run->actor);
    c[19] = run->parent ? hf__uuid_or_null(run->parent) : hf__null();
    c[20] = run->root ? hf__uuid_or_null(run->root) : hf__null();
    c[28] = hf__number(run->always);
    c[HF__RUN_FLOW_KEY] = hf__text(spec->flow_key);
    first_state(batch, run, c);
    tag_rows(batch, run);
    ask_lane(batch, run);
}

/* The short way of a run that begins as others do and can meet with no other. */
static void insert_plain(struct hf__batch *batch, const struct hf__new_run *run)
{
    const hf_trigger_spec *spec = run->spec;
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_INSERT_PLAIN_RUNS);
    c[0] = hf__number(run->tenant);
    c[1] = hf__uuid(run->id);
    c[2] = hf__text(spec->workflow);
    c[3] = hf__number(spec->priority);
    c[4] = hf__number_or_null(spec->run_at);
    c[5] = hf__number(spec->delay);
    c[6] = hf__number_or_null(spec->timeout_at);
    c[7] = hf__number_or_null(spec->timeout);
    c[8] = hf__number_or_null(spec->max_attempts);
    c[9] = hf__text(spec->input);
    c[10] = hf__text(spec->subject);
    c[11] = hf__text(spec->reference);
    c[12] = hf__text(tags_json(batch, spec));
    c[13] = hf__text(spec->partition);
    c[14] = hf__text(spec->trace);
    c[15] = hf__text(run->actor);
    c[HF__PLAIN_FLOW_KEY] = hf__text(spec->flow_key);
    tag_rows(batch, run);
    ask_lane(batch, run);
}

/* By a statement of its own: others need not pay for what only a debounce has. */
static void insert_debounced(struct hf__batch *batch, const struct hf__new_run *run)
{
    const hf_trigger_spec *spec = run->spec;
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_INSERT_DEBOUNCED);
    c[0] = hf__number(run->tenant);
    c[1] = hf__uuid(run->id);
    c[2] = hf__text(spec->workflow);
    c[3] = hf__text(spec->key);
    c[4] = hf__number(spec->priority);
    c[5] = hf__number(spec->debounce_for);
    c[6] = hf__number_or_null(spec->debounce_at_most);
    c[7] = hf__number_or_null(spec->timeout_at);
    c[8] = hf__number_or_null(spec->timeout);
    c[9] = hf__number_or_null(spec->max_attempts);
    c[10] = hf__text(spec->input);
    c[11] = hf__text(spec->subject);
    c[12] = hf__text(spec->reference);
    c[13] = hf__text(tags_json(batch, spec));
    c[14] = hf__text(spec->partition);
    c[15] = hf__text(spec->trace);
    c[16] = hf__text(run->actor);
    c[17] = hf__text(spec->flow_key);
    c[18] = hf__text(spec->debounce_key);
    tag_rows(batch, run);
    ask_lane(batch, run);
}

void hf__trigger_fill(struct hf__batch *batch, struct hf__op *op)
{
    struct hf__new_run run = {
        .tenant = op->tenant,
        .id = &op->trigger.id,
        .spec = op->trigger.spec,
        .actor = op->actor,
        .initial = op->trigger.initial,
    };
    if (run.spec->debounce_key)
        insert_debounced(batch, &run);
    else if (!run.spec->key && !run.initial && !op->resent)
        insert_plain(batch, &run);
    else
        hf__insert_run(batch, &run);
    if (run.initial)
        hf__insert_first_started(batch, op);
}

static void note_made(struct hf__batch *batch, enum hf__stmt stmt)
{
    const struct hf__table *made = hf__batch_out(batch, stmt);
    for (int i = 0; i < made->nrows; i++)
        if (!hf__idmap_put(&batch->decided, hf__as_uuid(hf__table_row(made, i)[0]), batch))
            batch->failed = true;
}

/* They are made with their flush or not at all. */
static void note_siblings(struct hf__batch *batch)
{
    const struct hf__table *in = &batch->sheets[HF__STMT_INSERT_CHILDREN].in;
    for (int i = 0; i < in->nrows; i++)
        if (!hf__idmap_put(&batch->decided, hf__as_uuid(hf__table_row(in, i)[1]), batch))
            batch->failed = true;
}

void hf__note_inserted(struct hf__batch *batch)
{
    note_made(batch, HF__STMT_INSERT_RUNS);
    note_made(batch, HF__STMT_INSERT_PLAIN_RUNS);
    note_made(batch, HF__STMT_INSERT_DEBOUNCED);
    note_siblings(batch);
}

static void refused_verdict(struct hf__batch *batch, struct hf__op *op, const struct hf__cell *c)
{
    const hf_trigger_spec *spec = op->trigger.spec;
    bool same_id = hf__as_number(c[2]) != 0;
    if (hf__as_number(c[5]) && !same_id) {
        hf__op_end(op, HF_DISABLED, "the tenant is disabled: it triggers nothing");
    } else if (hf__is_null(c[1])) {
        hf__op_end(op, HF_UNKNOWN_WORKFLOW,
                   "no workflow is named \"%s\": create it (holdfast workflow create %s) or start "
                   "a worker that registers it",
                   spec->workflow, spec->workflow);
    } else if (same_id) {
        hf__op_ok(op);
    } else if (hf__is_null(c[3])) {
        op->again = true;
        if (spec->flow_key) /* its lane may be gone */
            hf__lane_forget_all(&batch->flusher->lanes);
        if (spec->debounce_key) /* somebody may keep the run locked that it would go into */
            hf__op_pass_over(op);
    } else if (hf__json_equal(hf__as_text(c[4]) ? hf__as_text(c[4]) : "null",
                              spec->input ? spec->input : "null")) {
        op->trigger.existing = hf__as_uuid(c[3]);
        op->trigger.existed = true;
        hf__op_ok(op);
    } else {
        char id[HF_ID_TEXT];
        op->trigger.existing = hf__as_uuid(c[3]);
        hf_id_format(op->trigger.existing, id);
        hf__op_end(op, HF_CONFLICT,
                   "the key \"%s\" belongs to run %s, which has another input: use another key, or "
                   "delete that run first",
                   spec->key, id);
    }
}

static void ask_why(struct hf__batch *batch, const struct hf__op *op)
{
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_EXPLAIN_REFUSED);
    c[0] = hf__number(op->tenant);
    c[1] = hf__uuid(&op->trigger.id);
    c[2] = hf__text(op->trigger.spec->workflow);
    c[3] = hf__text(op->trigger.spec->key);
}

void hf__trigger_prepare(struct hf__batch *batch, struct hf__op *op)
{
    ask_why(batch, op);
    if (op->trigger.spec->debounce_key)
        hf__debounce_prepare(batch, op);
    else
        hf__ask_started(batch, op);
}

/* What goes with a first transition has no id that would make a repetition harmless: it is written only with its run. */
void hf__trigger_decide(struct hf__batch *batch, struct hf__op *op)
{
    const struct hf__cell *c = hf__idmap_get(&batch->explained, op->trigger.id);
    if (!c) {
        batch->failed = true;
        return;
    }
    bool debounce = op->trigger.spec->debounce_key != NULL;
    if (debounce && hf__debounce_is_done(batch, op))
        return;
    bool possible = !hf__is_null(c[1]) && hf__as_number(c[2]) == 0 && hf__is_null(c[3]) &&
                    hf__as_number(c[5]) == 0;
    if (!possible)
        refused_verdict(batch, op, c);
    else if (debounce)
        hf__debounce_decide(batch, op);
    else
        hf__children_possible(batch, op);
}

/* Asks about the triggers that are not among the inserted. */
static size_t ask_refused(struct hf__batch *batch)
{
    size_t asked = 0;
    for (size_t i = 0; i < batch->count; i++) {
        struct hf__op *op = batch->ops[i];
        if (op->kind != HF__OP_TRIGGER || op->decided)
            continue;
        if (hf__idmap_get(&batch->decided, op->trigger.id)) {
            hf__op_ok(op);
            continue;
        }
        ask_why(batch, op);
        if (!hf__idmap_put(&batch->fenced, op->trigger.id, op))
            batch->failed = true;
        asked++;
    }
    return asked;
}

hf_code hf__trigger_verdicts(struct hf__batch *batch, hf_error *err)
{
    struct hf__sheet *sheet = &batch->sheets[HF__STMT_EXPLAIN_REFUSED];
    hf__table_init(&sheet->in, batch->arena, sheet->in.ncolumns);
    hf__table_init(&sheet->out, batch->arena, sheet->out.ncolumns);
    hf__note_inserted(batch);
    if (ask_refused(batch) == 0)
        return HF_OK;

    hf_code code = hf__batch_send(batch, HF__STMT_EXPLAIN_REFUSED, err);
    if (code == HF_OK)
        code = batch->flusher->driver->sync(batch->flusher->conn, err);
    if (code != HF_OK)
        return code;
    for (int i = 0; i < sheet->out.nrows; i++) {
        const struct hf__cell *c = hf__table_row(&sheet->out, i);
        struct hf__op *op = hf__idmap_get(&batch->fenced, hf__as_uuid(c[0]));
        if (op && !op->decided)
            refused_verdict(batch, op, c);
    }
    return HF_OK;
}
