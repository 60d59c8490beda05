/* Families: a turn that starts children, and the end of a child, which is mail for its parent.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "kernel/batch.h"
#include "util/buffer.h"

void hf__ask_parent(struct hf__batch *batch, int tenant, const hf_id *run)
{
    const enum hf__stmt asked[] = {
        HF__STMT_LOCK_PARENTS,
        HF__STMT_PEEK_PARENTS,
    };
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        struct hf__cell *c = hf__batch_add(batch, asked[i]);
        c[0] = hf__number(tenant);
        c[1] = hf__uuid(run);
    }
}

static void ask_new_run(struct hf__batch *batch, int tenant, const hf_id *id,
                        const hf_trigger_spec *spec)
{
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_EXPLAIN_REFUSED);
    c[0] = hf__number(tenant);
    c[1] = hf__uuid(id);
    c[2] = hf__text(spec->workflow);
    c[3] = hf__text(spec->key);
}

/* The runs that an operation starts: a turn's, or a first transition's. */
struct brood {
    const hf_transition *turn;
    const hf_id *child_ids;
    const hf_id *start_ids;
};

static struct brood brood_of(const struct hf__op *op)
{
    if (op->kind == HF__OP_TRIGGER)
        return (struct brood){ op->trigger.initial, op->trigger.child_ids, op->trigger.start_ids };
    return (struct brood){ op->commit.transition, op->commit.child_ids, op->commit.start_ids };
}

/* Of children without keys only the workflow is asked for, and siblings of one workflow come in rows: the first of a row
 * asks for all. */
static bool asks_like_the_one_before(const hf_transition *turn, size_t child)
{
    const hf_trigger_spec *spec = &turn->children[child];
    return child && !spec->key && !spec[-1].key && strcmp(spec->workflow, spec[-1].workflow) == 0;
}

void hf__ask_started(struct hf__batch *batch, const struct hf__op *op)
{
    struct brood brood = brood_of(op);
    for (size_t i = 0; i < brood.turn->child_count; i++)
        if (!asks_like_the_one_before(brood.turn, i))
            ask_new_run(batch, op->tenant, &brood.child_ids[i], &brood.turn->children[i]);
    for (size_t i = 0; i < brood.turn->start_count; i++)
        ask_new_run(batch, op->tenant, &brood.start_ids[i], &brood.turn->starts[i]);
}

/* The answer about a run to be started: its workflow must exist and its key be free. */
static hf_code check_new_run(struct hf__batch *batch, hf_id id)
{
    const struct hf__cell *c = hf__idmap_get(&batch->explained, id);
    if (!c)
        return HF_INTERNAL;
    if (hf__is_null(c[1]))
        return HF_UNKNOWN_WORKFLOW;
    return hf__is_null(c[3]) ? HF_OK : HF_CONFLICT;
}

static int by_workflow_and_key(const void *left, const void *right)
{
    const hf_trigger_spec *a = *(const hf_trigger_spec *const *)left;
    const hf_trigger_spec *b = *(const hf_trigger_spec *const *)right;
    int order = strcmp(a->workflow, b->workflow);
    return order ? order : strcmp(a->key, b->key);
}

/* Two children of one turn cannot have one key: the one that has a sibling's, or NULL. */
static const hf_trigger_spec *find_twin(struct hf__batch *batch, const hf_transition *t)
{
    const hf_trigger_spec **keyed =
        hf__arena_alloc(batch->arena, (t->child_count + 1) * sizeof *keyed);
    size_t count = 0;
    if (!keyed) {
        batch->failed = true;
        return NULL;
    }
    for (size_t i = 0; i < t->child_count; i++)
        if (t->children[i].key)
            keyed[count++] = &t->children[i];
    qsort(keyed, count, sizeof *keyed, by_workflow_and_key);
    for (size_t i = 1; i < count; i++)
        if (by_workflow_and_key(&keyed[i - 1], &keyed[i]) == 0)
            return keyed[i];
    return NULL;
}

static void refuse_child(struct hf__batch *batch, struct hf__op *op, hf_code code,
                         const hf_trigger_spec *child, hf_id id)
{
    const struct hf__cell *explained = hf__idmap_get(&batch->explained, id);
    char other[HF_ID_TEXT];
    if (code != HF_CONFLICT) {
        hf__op_end(op, code, "the child run of \"%s\" cannot be started: %s", child->workflow,
                   hf_code_meaning(code));
        return;
    }
    hf_id_format(hf__as_uuid(explained[3]), other);
    hf__op_end(op, code, "the child run of \"%s\" cannot be started: run %s has its key \"%s\"",
               child->workflow, other, child->key);
}

bool hf__children_possible(struct hf__batch *batch, struct hf__op *op)
{
    struct brood brood = brood_of(op);
    const hf_trigger_spec *twin = find_twin(batch, brood.turn);
    if (twin) {
        hf__op_end(op, HF_CONFLICT, "two children of \"%s\" have the key \"%s\"", twin->workflow,
                   twin->key);
        return false;
    }
    for (size_t i = 0; i < brood.turn->child_count; i++) {
        hf_code code = asks_like_the_one_before(brood.turn, i)
                           ? HF_OK
                           : check_new_run(batch, brood.child_ids[i]);
        if (code == HF_OK)
            continue;
        refuse_child(batch, op, code, &brood.turn->children[i], brood.child_ids[i]);
        return false;
    }
    return true;
}

static void insert_children(struct hf__batch *batch, const struct hf__op *op, const char *actor,
                            const hf_id *parent, const hf_id *root, const char *trace)
{
    struct brood brood = brood_of(op);
    for (size_t i = 0; i < brood.turn->child_count; i++)
        hf__insert_run(batch, &(struct hf__new_run){
                                  .tenant = op->tenant,
                                  .id = &brood.child_ids[i],
                                  .spec = &brood.turn->children[i],
                                  .actor = actor,
                                  .parent = parent,
                                  .root = root,
                                  .trace = trace,
                                  .always = true,
                              });
}

static void insert_starts(struct hf__batch *batch, const struct hf__op *op, const char *actor,
                          const char *trace)
{
    struct brood brood = brood_of(op);
    for (size_t i = 0; i < brood.turn->start_count; i++) {
        if (check_new_run(batch, brood.start_ids[i]) != HF_OK)
            continue;
        hf__insert_run(batch, &(struct hf__new_run){
                                  .tenant = op->tenant,
                                  .id = &brood.start_ids[i],
                                  .spec = &brood.turn->starts[i],
                                  .actor = actor,
                                  .trace = trace,
                                  .always = true,
                              });
        hf__tell_letter(batch, op, &brood.start_ids[i], &brood.turn->starts[i]);
    }
}

void hf__insert_started(struct hf__batch *batch, struct hf__op *op, struct hf__row *row)
{
    if (!hf__insert_siblings(batch, op, row))
        insert_children(batch, op, hf__commit_actor(op), &row->id,
                        hf_id_is_zero(row->root) ? &row->id : &row->root, row->trace);
    insert_starts(batch, op, hf__commit_actor(op), row->trace);
    if (op->commit.transition->child_count)
        hf__mark_parent(batch, op->tenant, &row->id);
}

void hf__insert_first_started(struct hf__batch *batch, struct hf__op *op)
{
    insert_children(batch, op, op->actor, &op->trigger.id, &op->trigger.id,
                    op->trigger.spec->trace);
    insert_starts(batch, op, op->actor, op->trigger.spec->trace);
    if (op->trigger.initial->child_count)
        hf__mark_parent(batch, op->tenant, &op->trigger.id);
}

bool hf__misses_a_child(const struct hf__op *op, const struct hf__idmap *made)
{
    struct brood brood = brood_of(op);
    for (size_t i = 0; i < brood.turn->child_count; i++)
        if (brood.turn->children[i].key && !hf__idmap_get(made, brood.child_ids[i]))
            return true;
    return false;
}

/* How a child ended, for its parent: one that was deleted unfinished is not waited for either. */
static const char *end_name(const struct hf__row *row)
{
    return hf_status_finished(row->status) ? hf_status_name(row->status) : "deleted";
}

static void add_member(struct hf__buffer *json, const char *name, const char *value)
{
    hf__buffer_add_text(json, name);
    hf__buffer_add_text(json, value);
}

/* Thousands of these come at a time. */
const char *hf__end_payload(struct hf__batch *batch, const struct hf__end *end)
{
    char id[HF_ID_TEXT];
    hf_id_format(*end->run, id);
    struct hf__buffer json = { 0 };
    add_member(&json, "{\"run\":\"", id);
    add_member(&json, "\",\"workflow\":\"", end->workflow);
    add_member(&json, "\",\"status\":\"", end->status);
    if (end->key) {
        hf__buffer_add_text(&json, "\",\"key\":");
        hf__buffer_add_json_string(&json, end->key, strlen(end->key));
    } else {
        hf__buffer_add_text(&json, "\",\"key\":null");
    }
    add_member(&json, ",\"result\":", end->result ? end->result : "null");
    add_member(&json, ",\"error\":", end->error ? end->error : "null");
    hf__buffer_add_text(&json, "}");
    char *payload = json.failed ? NULL : hf__arena_strdup(batch->arena, json.data);
    hf__buffer_free(&json);
    if (!payload)
        batch->failed = true;
    return payload;
}

const char *hf__end_mail_id(struct hf__batch *batch, hf_id run)
{
    const size_t prefix = strlen(HF__END_MAIL);
    char *id = hf__arena_alloc(batch->arena, prefix + HF_ID_TEXT);
    if (!id) {
        batch->failed = true;
        return NULL;
    }
    memcpy(id, HF__END_MAIL, prefix);
    hf_id_format(run, id + prefix);
    return id;
}

static void mail_parent(struct hf__batch *batch, const struct hf__row *row,
                        const struct hf__row *parent)
{
    const struct hf__end end = {
        .run = &row->id,
        .workflow = row->workflow,
        .key = row->key,
        .status = end_name(row),
        .result = row->result,
        .error = row->error,
    };
    const char *id = hf__end_mail_id(batch, row->id);
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_INSERT_SIGNALS);
    c[0] = hf__number(parent->tenant);
    c[1] = hf__uuid(&parent->id);
    c[2] = hf__text(id);
    c[3] = hf__text("child");
    c[4] = hf__text(row->key ? row->key : row->workflow);
    c[5] = hf__text(hf__end_payload(batch, &end));
    c[7] = hf__text(id ? id + strlen(HF__END_MAIL) : NULL);
    c[9] = hf__number(row->status != HF_SUCCEEDED);
    c[10] = hf__number(0);
}

/* Ten thousand ends are not ten thousand turns: the parent wakes when the last one it waits for is in. */
void hf__children_told(struct hf__batch *batch, struct hf__row *parent, int count, bool failed)
{
    int missing = parent->wait_count;
    parent->dirty = true;
    parent->has_mail = true;
    parent->child_ends += count;
    parent->failed_child |= failed;
    parent->wait_count = missing > count ? missing - count : 0;
    if (missing == 0 || (parent->wait_count > 0 && !(parent->wake_on_failure && failed)))
        return;
    if (parent->status == HF_WAITING) {
        parent->run_at = batch->now;
        hf__wake_lane(batch, parent->lane, parent->run_at);
    } else if (parent->status == HF_PAUSED) {
        parent->due_at = batch->now;
    }
}

/* One that failed or was cancelled gets its mail too: it may be retried. */
void hf__end_child(struct hf__batch *batch, const struct hf__row *row)
{
    struct hf__row *parent = hf__batch_row(batch, row->parent);
    if (!parent || parent->status == HF_SUCCEEDED || row->end_is_told)
        return;
    mail_parent(batch, row, parent);
    hf__children_told(batch, parent, 1, row->status != HF_SUCCEEDED);
}
