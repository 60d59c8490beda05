/* What follows from the end of a run, in the same transaction: a run of the workflow that is told of cancels, the end of
 * children that are still at work, or a failure because of them.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernel/batch.h"
#include "kernel/chores.h"
#include "util/buffer.h"

#define BESIDE_STEPS 8192 /* bytes that a key, a subject and the names of members may take */

void hf__ask_what_follows(struct hf__batch *batch, int tenant, const hf_id *run)
{
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_WHAT_FOLLOWS);
    c[0] = hf__number(tenant);
    c[1] = hf__uuid(run);
}

void hf__follow_index(struct hf__batch *batch)
{
    const struct hf__table *out = hf__batch_out(batch, HF__STMT_WHAT_FOLLOWS);
    for (int i = 0; i < out->nrows; i++) {
        const struct hf__cell *c = hf__table_row(out, i);
        struct hf__row *row = hf__batch_row(batch, hf__as_uuid(c[0]));
        if (!row)
            continue;
        row->children_left = hf__as_number(c[1]);
        row->children_policy = hf__as_text(c[2]);
        row->on_cancel = hf__as_text(c[3]);
        row->dead_letter = hf__as_text(c[4]);
    }
}

int64_t hf__told_room(const struct hf__batch *batch, const char *head)
{
    int64_t room = batch->flusher->max_payload - (head ? (int64_t)strlen(head) : 0) - BESIDE_STEPS;
    return room > 0 ? room : 0;
}

void hf__mark_parent(struct hf__batch *batch, int tenant, const hf_id *run)
{
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_MARK_PARENTS);
    c[0] = hf__number(tenant);
    c[1] = hf__uuid(run);
}

static void tell_start(struct hf__batch *batch, int tenant, const hf_id *started, const char *head,
                       const hf_id *told)
{
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_TELL_STARTS);
    c[0] = hf__number(tenant);
    c[1] = hf__uuid(started);
    c[2] = hf__uuid(told);
    c[3] = hf__number(hf__told_room(batch, head));
}

/* A new run, which the run at hand has no tie to. Its spec is in the batch's memory; NULL: there is none. */
static const hf_id *start(struct hf__batch *batch, int tenant, const char *actor,
                          const hf_trigger_spec *spec)
{
    hf_trigger_spec *kept = hf__arena_alloc(batch->arena, sizeof *kept);
    hf_id *id = hf__arena_alloc(batch->arena, sizeof *id);
    if (!kept || !id || !spec->input) {
        batch->failed = true;
        return NULL;
    }
    *kept = *spec;
    *id = hf__batch_id(batch);
    hf__insert_run(batch, &(struct hf__new_run){
                              .tenant = tenant,
                              .id = id,
                              .spec = kept,
                              .actor = actor,
                              .always = true,
                          });
    return id;
}

static void add_text(struct hf__buffer *json, const char *name, const char *text)
{
    hf__buffer_addf(json, ",\"%s\":", name);
    if (text)
        hf__buffer_add_json_string(json, text, strlen(text));
    else
        hf__buffer_add_text(json, "null");
}

static char *end_object(struct hf__batch *batch, struct hf__buffer *json)
{
    hf__buffer_add_text(json, "}");
    char *text = json->failed ? NULL : hf__arena_strdup(batch->arena, json->data);
    hf__buffer_free(json);
    return text;
}

static void begin_object(struct hf__buffer *json, const struct hf__row *row)
{
    char id[HF_ID_TEXT];
    hf_id_format(row->id, id);
    hf__buffer_addf(json, "{\"run\":\"%s\"", id);
}

/* ---- Children ---- */

void hf__cancel_children(struct hf__batch *batch, const char *actor, const struct hf__row *row,
                         const char *reason)
{
    struct hf__buffer json = { 0 };
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    begin_object(&json, row);
    if (reason)
        add_text(&json, "reason", reason);
    spec.workflow = HF__CHORE_CANCEL_CHILDREN;
    spec.max_attempts = HF__CHORE_ATTEMPTS;
    spec.input = end_object(batch, &json);
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_CREATE_WORKFLOW);
    c[0] = hf__number(row->tenant);
    c[1] = hf__text(spec.workflow);
    start(batch, row->tenant, actor, &spec);
}

static bool policy_is(const struct hf__row *row, const char *policy)
{
    return row->children_policy && strcmp(row->children_policy, policy) == 0;
}

int64_t hf__children_left(const struct hf__row *row, const hf_transition *t)
{
    return row->children_left + (int64_t)t->child_count;
}

bool hf__children_fail(const struct hf__row *row, const hf_transition *t)
{
    return t->turn == HF_TURN_SUCCEED && hf__children_left(row, t) > 0 && policy_is(row, "fail");
}

static const char *children_words(struct hf__batch *batch, int64_t left)
{
    return hf__batch_printf(batch, "%" PRId64 "%s %s still at work", left,
                            left >= 10000 ? " or more children"
                                          : (left == 1 ? " child" : " children"),
                            left == 1 ? "is" : "are");
}

void hf__fail_for_children(struct hf__batch *batch, const struct hf__row *row, hf_transition *t)
{
    struct hf__buffer json = { 0 };
    const char *words = children_words(batch, hf__children_left(row, t));
    t->turn = HF_TURN_FAIL;
    t->result = NULL;
    t->error_code = "children_left";
    t->last_error = hf__batch_printf(
        batch, "the handler returned, but %s: wait for them, or set the workflow's `children`",
        words ? words : "");
    hf__buffer_addf(&json, "{\"attempt\":%d", row->attempt);
    add_text(&json, "code", t->error_code);
    add_text(&json, "message", t->last_error);
    t->error = end_object(batch, &json);
    batch->failed |= !t->error;
}

/* The dead letter of a run that the kernel itself fails: its holder has made none. */
static void send_letter(struct hf__batch *batch, const char *actor, const struct hf__row *row,
                        const hf_transition *t)
{
    struct hf__buffer json = { 0 };
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    char *key = hf__arena_alloc(batch->arena, HF__LETTER_KEY);
    if (!row->dead_letter || strcmp(row->dead_letter, row->workflow) == 0)
        return;
    if (!key) {
        batch->failed = true;
        return;
    }
    begin_object(&json, row);
    add_text(&json, "error_code", t->error_code);
    add_text(&json, "last_error", t->last_error);
    hf__letter_key(key, row->id, t->run_version);
    spec.workflow = row->dead_letter;
    spec.key = key;
    spec.trace = row->trace;
    spec.input = end_object(batch, &json);
    const hf_id *id = start(batch, row->tenant, actor, &spec);
    if (id)
        tell_start(batch, row->tenant, id, spec.input, &row->id);
}

void hf__follow_turn(struct hf__batch *batch, const struct hf__op *op, struct hf__row *row)
{
    const hf_transition *t = op->commit.transition;
    int64_t left = hf__children_left(row, t);
    bool failed = t->turn == HF_TURN_FAIL;
    bool cancels = policy_is(row, "cancel");
    if (left == 0 || (failed && !cancels && !op->commit.children_fail))
        return;
    if (cancels)
        hf__cancel_children(batch, hf__commit_actor(op), row,
                            failed ? "parent failed" : "parent succeeded");
    if (op->commit.children_fail)
        send_letter(batch, hf__commit_actor(op), row, t);
}

/* ---- Cancels ---- */

void hf__start_on_cancel(struct hf__batch *batch, const char *actor, const struct hf__row *row,
                         hf_status had, const char *reason)
{
    struct hf__buffer json = { 0 };
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    char id[HF_ID_TEXT];
    if (!row->on_cancel || strcmp(row->on_cancel, row->workflow) == 0)
        return;
    hf_id_format(row->id, id);
    begin_object(&json, row);
    add_text(&json, "status", hf_status_name(had));
    add_text(&json, "reason", reason);
    spec.workflow = row->on_cancel;
    spec.key = hf__batch_printf(batch, "on-cancel:%s:%" PRId64, id, row->version);
    spec.trace = row->trace;
    spec.input = end_object(batch, &json);
    const hf_id *started = start(batch, row->tenant, actor, &spec);
    if (started)
        tell_start(batch, row->tenant, started, spec.input, &row->id);
}

/* ---- Dead letters ---- */

void hf__letter_key(char *out, hf_id run, int64_t version)
{
    char id[HF_ID_TEXT];
    hf_id_format(run, id);
    snprintf(out, HF__LETTER_KEY, "dead-letter:%s:%" PRId64, id, version);
}

void hf__tell_letter(struct hf__batch *batch, const struct hf__op *op, const hf_id *id,
                     const hf_trigger_spec *spec)
{
    char key[HF__LETTER_KEY];
    const hf_transition *t = op->commit.transition;
    if (op->kind != HF__OP_COMMIT || t->turn != HF_TURN_FAIL || !spec->key || !spec->input)
        return;
    hf__letter_key(key, t->run, t->run_version);
    if (strcmp(spec->key, key) == 0 && strncmp(spec->input, "{\"run\":", 7) == 0)
        tell_start(batch, op->tenant, id, spec->input, &t->run);
}
