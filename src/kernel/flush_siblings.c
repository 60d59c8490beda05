/* The short way for children that are alike: one statement reads what they share once, and checks nothing.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernel/batch.h"

/* Differs from its siblings in nothing but what insert_children has a column for. */
static bool is_plain(const hf_trigger_spec *spec, const char *workflow)
{
    return !spec->key && !spec->flow_key && spec->run_at == 0 && spec->delay == 0 &&
           spec->timeout_at == 0 && spec->timeout == 0 && spec->max_attempts == 0 &&
           !spec->subject && !spec->reference && spec->tag_count == 0 && !spec->partition &&
           strcmp(spec->workflow, workflow) == 0;
}

bool hf__children_are_alike(const hf_trigger_spec *children, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!is_plain(&children[i], children[0].workflow))
            return false;
    return true;
}

/* One that may have happened goes the way that bears with what is there. So does a second family in a flush: the rows of the
 * statement share their parent. */
static bool are_new_siblings(const struct hf__batch *batch, const struct hf__op *op)
{
    const hf_transition *t = op->commit.transition;
    return op->commit.new_ids && !op->resent && t->child_count > 0 &&
           batch->sheets[HF__STMT_INSERT_CHILDREN].in.nrows == 0 &&
           hf__children_are_alike(t->children, t->child_count);
}

bool hf__insert_siblings(struct hf__batch *batch, const struct hf__op *op,
                         const struct hf__row *parent)
{
    const hf_transition *t = op->commit.transition;
    if (!are_new_siblings(batch, op))
        return false;
    const hf_id *root = hf_id_is_zero(parent->root) ? &parent->id : &parent->root;
    for (size_t i = 0; i < t->child_count; i++) {
        const hf_trigger_spec *spec = &t->children[i];
        struct hf__cell *c = hf__batch_add(batch, HF__STMT_INSERT_CHILDREN);
        c[0] = hf__number(op->tenant);
        c[1] = hf__uuid(&op->commit.child_ids[i]);
        if (i == 0) { /* what they share */
            c[2] = hf__uuid(&parent->id);
            c[3] = hf__uuid(root);
            c[4] = hf__text(spec->workflow);
            c[5] = hf__text(hf__commit_actor(op));
        }
        c[6] = hf__number(spec->priority);
        c[7] = hf__text(spec->trace ? spec->trace : parent->trace);
        c[8] = hf__text(spec->input);
    }
    const struct hf__cell *asked = hf__idmap_get(&batch->explained, op->commit.child_ids[0]);
    hf__wake_lane(batch, (int)hf__as_number(asked[6]), batch->now);
    return true;
}
