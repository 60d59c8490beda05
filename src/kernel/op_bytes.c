/* How much an operation brings along, so that a flush takes no more than it should.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernel/op.h"

enum { ROW = 64, RUN = 256 }; /* what a line and a run take without their texts */

static size_t text(const char *text)
{
    return text ? strlen(text) : 0;
}

static size_t runs(const hf_trigger_spec *specs, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += RUN + text(specs[i].input);
    return bytes;
}

static size_t transition(const hf_transition *t)
{
    size_t bytes = text(t->state) + text(t->result) + text(t->error) + text(t->last_error) +
                   runs(t->children, t->child_count) + runs(t->starts, t->start_count) +
                   (t->consumed_count + t->timer_count) * ROW;
    for (size_t i = 0; i < t->event_count; i++)
        bytes += ROW + text(t->events[i].data);
    for (size_t i = 0; i < t->outbox_count; i++)
        bytes += ROW + text(t->outbox[i].payload);
    for (size_t i = 0; i < t->task_count; i++)
        bytes += ROW + text(t->tasks[i].payload) + text(t->tasks[i].form);
    return bytes;
}

size_t hf__op_bytes(const struct hf__op *op)
{
    switch (op->kind) {
    case HF__OP_TRIGGER:
        return ROW + text(op->trigger.spec->input) +
               (op->trigger.initial ? transition(op->trigger.initial) : 0);
    case HF__OP_COMMIT: return ROW + transition(op->commit.transition);
    case HF__OP_STEP: return ROW + text(op->step.record->data);
    case HF__OP_SIGNAL: return ROW + text(op->signal.spec->payload);
    case HF__OP_TASK: return ROW + text(op->task.result);
    case HF__OP_HEARTBEAT: return op->heartbeat.count * ROW;
    default: return ROW;
    }
}
