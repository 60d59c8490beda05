/* Tasks: questions to people. A transition makes them; what people do with them locks the run that asked, so that an answer
 * and what the run does meanwhile come one after the other. An answer is mail to the run, with the task's token.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernel/batch.h"
#include "util/buffer.h"
#include "util/json.h"

/* Numbers in the store. */
enum { OPEN = 0, CLAIMED = 1, COMPLETED = 2, CANCELLED = 3 };

/* ---- What runs do ---- */

void hf__transition_tasks(struct hf__batch *batch, int tenant, const hf_id *run,
                          const hf_transition *t)
{
    for (size_t i = 0; i < t->task_count; i++) {
        const hf_new_task *task = &t->tasks[i];
        hf_id *id = hf__arena_alloc(batch->arena, sizeof *id);
        if (!id) {
            batch->failed = true;
            return;
        }
        *id = hf_id_is_zero(task->id) ? hf__batch_id(batch) : task->id;
        struct hf__cell *c = hf__batch_add(batch, HF__STMT_INSERT_TASKS);
        c[0] = hf__number(tenant);
        c[1] = hf__uuid(id);
        c[2] = hf__uuid(run);
        c[3] = hf__text(task->name);
        c[4] = hf__text(task->assignee);
        c[5] = hf__text(task->roles);
        c[6] = hf__text(task->payload);
        c[7] = hf__text(task->form);
        c[8] = hf__text(task->token);
        c[9] = hf__number_or_null(task->due_at);
    }
    for (size_t i = 0; i < t->withdrawn_task_count; i++) {
        struct hf__cell *c = hf__batch_add(batch, HF__STMT_WITHDRAW_TASKS);
        c[0] = hf__number(tenant);
        c[1] = hf__uuid(run);
        c[2] = hf__text(t->withdrawn_tasks[i]);
    }
}

static void add_run(struct hf__batch *batch, enum hf__stmt stmt, const struct hf__row *row)
{
    struct hf__cell *c = hf__batch_add(batch, stmt);
    c[0] = hf__number(row->tenant);
    c[1] = hf__uuid(&row->id);
}

void hf__cancel_tasks(struct hf__batch *batch, const struct hf__row *row)
{
    add_run(batch, HF__STMT_CANCEL_TASKS, row);
}

void hf__reopen_tasks(struct hf__batch *batch, const struct hf__row *row)
{
    add_run(batch, HF__STMT_REOPEN_TASKS, row);
}

/* ---- What people do ---- */

/* A task as it is under its run's lock. */
struct task {
    const char *name;
    int status;
    int64_t version;
    const char *assignee;
    const char *token;
    const char *outcome;
    const char *result;
};

/* What it shall become. */
struct answer {
    const char *event;
    int status;
    const char *assignee;
};

/* Whether the journal holds the line that this operation wrote before its answer was lost. */
static void ask_done(struct hf__batch *batch, const struct hf__op *op)
{
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_FIND_COMMITTED);
    c[0] = hf__number(op->tenant);
    c[1] = hf__uuid(&op->task.run);
    c[2] = hf__number(op->task.version);
    c[3] = hf__text(op->actor);
    c[4] = hf__text(op->task.event);
    c[5] = hf__number(HF__TASK);
    c[6] = hf__null();
    c[7] = hf__number(op->task.seq);
}

static bool is_done(struct hf__batch *batch, const struct hf__op *op)
{
    const struct hf__table *found = hf__batch_out(batch, HF__STMT_FIND_COMMITTED);
    for (int i = 0; op->resent && i < found->nrows; i++)
        if (hf_id_equal(hf__as_uuid(hf__table_row(found, i)[0]), op->task.run))
            return true;
    return false;
}

void hf__task_prepare(struct hf__batch *batch, struct hf__op *op)
{
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_FIND_TASKS);
    c[0] = hf__number(op->tenant);
    c[1] = hf__uuid(&op->task.id);
    if (op->resent && op->task.event)
        ask_done(batch, op);
}

static bool find_task(struct hf__batch *batch, const struct hf__op *op, struct task *out)
{
    const struct hf__table *found = hf__batch_out(batch, HF__STMT_FIND_TASKS);
    for (int i = 0; i < found->nrows; i++) {
        const struct hf__cell *c = hf__table_row(found, i);
        if (!hf_id_equal(hf__as_uuid(c[0]), op->task.id) ||
            !hf_id_equal(hf__as_uuid(c[1]), op->task.run))
            continue;
        *out = (struct task){
            .name = hf__as_text(c[2]),
            .status = (int)hf__as_number(c[3]),
            .version = hf__as_number(c[4]),
            .assignee = hf__as_text(c[5]),
            .token = hf__as_text(c[6]),
            .outcome = hf__as_text(c[7]),
            .result = hf__as_text(c[8]),
        };
        return true;
    }
    return false;
}

static bool is_mine(const struct hf__op *op, const struct task *task)
{
    return task->assignee && strcmp(task->assignee, op->actor) == 0;
}

/* The same person has given the same answer before. */
static bool is_repeated(const struct hf__op *op, const struct task *task)
{
    return op->task.action == HF__TASK_COMPLETE && task->status == COMPLETED && is_mine(op, task) &&
           strcmp(task->outcome, op->task.outcome) == 0 &&
           hf__json_equal(task->result, op->task.result);
}

static bool refused(struct hf__op *op, const struct hf__row *row, const struct task *task)
{
    if (op->task.expected_version && op->task.expected_version != task->version)
        hf__op_end(op, HF_REVISION, "the task is at version %lld, not %lld: read it again",
                   (long long)task->version, (long long)op->task.expected_version);
    else if (task->status >= COMPLETED)
        hf__op_end(op, HF_NOT_ALLOWED, "the task is %s: nothing can be done with it any more",
                   task->status == COMPLETED ? "completed" : "cancelled");
    else if (row->deleted_at || hf_status_finished(row->status))
        hf__op_end(op, HF_NOT_ALLOWED, "the run that asked %s%s: it takes no answer",
                   row->deleted_at ? "was deleted" : "has finished",
                   row->deleted_at ? "; restore it first" : "");
    else if (op->task.action != HF__TASK_REASSIGN && task->assignee && !is_mine(op, task))
        hf__op_end(op, HF_CONFLICT, "the task is %.200s's: it must be reassigned first",
                   task->assignee);
    else
        return false;
    return true;
}

static struct answer answer_of(const struct hf__op *op)
{
    switch (op->task.action) {
    case HF__TASK_CLAIM: return (struct answer){ "claimed", CLAIMED, op->actor };
    case HF__TASK_RELEASE: return (struct answer){ "released", OPEN, NULL };
    case HF__TASK_REASSIGN: return (struct answer){ "reassigned", OPEN, op->task.assignee };
    case HF__TASK_COMPLETE: break;
    }
    return (struct answer){ "completed", COMPLETED, op->actor };
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static void add_text(struct hf__buffer *json, const char *member, const char *text)
{
    hf__buffer_addf(json, ",\"%s\":", member);
    if (text)
        hf__buffer_add_json_string(json, text, strlen(text));
    else
        hf__buffer_add_text(json, "null");
}

static const char *end_object(struct hf__batch *batch, struct hf__buffer *json)
{
    hf__buffer_add_text(json, "}");
    const char *text = json->failed ? NULL : hf__arena_strdup(batch->arena, json->data);
    hf__buffer_free(json);
    batch->failed |= text == NULL;
    return text;
}

static void begin_object(struct hf__buffer *json, const struct hf__op *op)
{
    char id[HF_ID_TEXT];
    hf_id_format(op->task.id, id);
    hf__buffer_addf(json, "{\"task\":\"%s\"", id);
}

/* The line in the run's journal: which task, and what became of it. Its actor tells by whom. */
static const char *journal_data(struct hf__batch *batch, const struct hf__op *op,
                                const struct task *task, const struct answer *answer)
{
    struct hf__buffer json = { 0 };
    begin_object(&json, op);
    add_text(&json, "name", task->name);
    if (op->task.action == HF__TASK_COMPLETE)
        add_text(&json, "outcome", op->task.outcome);
    else
        add_text(&json, "assignee", answer->assignee);
    return end_object(batch, &json);
}

/* Its id is new, so that nobody can have sent mail of that id before. A task has one answer all the same: it is completed
 * under the lock that its mail is written under. */
static void mail_answer(struct hf__batch *batch, struct hf__op *op, struct hf__row *row,
                        const struct task *task)
{
    char id[HF_ID_TEXT];
    struct hf__buffer json = { 0 };
    hf_signal_spec *spec = hf__arena_alloc(batch->arena, sizeof *spec);
    begin_object(&json, op);
    add_text(&json, "outcome", op->task.outcome);
    hf__buffer_addf(&json, ",\"result\":%s", op->task.result ? op->task.result : "null");
    add_text(&json, "by", op->actor);
    const char *payload = end_object(batch, &json);
    if (!spec || !payload) {
        batch->failed = true;
        return;
    }
    hf_id_format(hf__batch_id(batch), id);
    *spec = (hf_signal_spec)HF_SIGNAL_INIT;
    spec->id = hf__batch_printf(batch, "task:%s", id);
    spec->type = "task";
    spec->name = task->name;
    spec->payload = payload;
    spec->token = task->token;
    hf__deliver_mail(batch, row, spec, op->actor);
}

static void write_task(struct hf__batch *batch, const struct hf__op *op,
                       const struct answer *answer)
{
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_UPDATE_TASKS);
    c[0] = hf__number(op->tenant);
    c[1] = hf__uuid(&op->task.id);
    c[2] = hf__number(answer->status);
    c[3] = hf__text(answer->assignee);
    c[4] = hf__text(answer->status == COMPLETED ? op->task.outcome : NULL);
    c[5] = hf__text(answer->status == COMPLETED ? op->task.result : NULL);
}

static void apply(struct hf__batch *batch, struct hf__op *op, struct hf__row *row,
                  const struct task *task)
{
    struct answer answer = answer_of(op);
    if (answer.status == task->status && same_text(answer.assignee, task->assignee))
        return;
    write_task(batch, op, &answer);
    hf__journal(batch, row, HF__TASK, answer.event, op->actor, NULL,
                journal_data(batch, op, task, &answer));
    op->task.event = answer.event;
    op->task.version = row->version;
    op->task.seq = row->event_seq;
    if (answer.status == COMPLETED)
        mail_answer(batch, op, row, task);
}

void hf__task_decide(struct hf__batch *batch, struct hf__op *op)
{
    struct task task;
    struct hf__row *row = hf__batch_row_of(batch, op);
    if (!row || !find_task(batch, op, &task)) {
        hf__op_end(op, HF_NOT_FOUND, "there is no such task in this tenant");
    } else if (is_done(batch, op) || is_repeated(op, &task)) {
        hf__op_ok(op);
    } else if (!refused(op, row, &task)) {
        apply(batch, op, row, &task);
        hf__op_ok(op);
    }
}
