/* What a transition brings besides the row: timers, mail that is done with, events.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernel/batch.h"

/* Of one key twice in a turn the last one counts. */
static bool is_replaced(const hf_transition *t, size_t timer)
{
    for (size_t i = timer + 1; i < t->timer_count; i++)
        if (strcmp(t->timers[i].key, t->timers[timer].key) == 0)
            return true;
    return false;
}

void hf__transition_timers(struct hf__batch *batch, int tenant, const hf_id *run,
                           const hf_transition *t, int64_t *earliest)
{
    for (size_t i = 0; i < t->timer_count; i++) {
        const hf_new_timer *timer = &t->timers[i];
        if (is_replaced(t, i))
            continue;
        int64_t at = timer->at ? timer->at : batch->now + timer->delay;
        hf_id id = hf__batch_id(batch);
        char text[HF_ID_TEXT];
        hf_id_format(id, text);
        struct hf__cell *c = hf__batch_add(batch, HF__STMT_PUT_TIMERS);
        c[0] = hf__number(tenant);
        c[1] = hf__uuid(run);
        c[2] = hf__text(hf__batch_printf(batch, "timer:%s", text));
        c[3] = hf__text(timer->key);
        c[4] = hf__text(timer->payload);
        c[5] = hf__text(timer->token);
        c[6] = hf__number(at);
        *earliest = hf__earlier(*earliest, at);
    }
}

static void consume_ends(struct hf__batch *batch, const struct hf__op *op,
                         const struct hf__row *row)
{
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_CONSUME_ENDS);
    c[0] = hf__number(op->tenant);
    c[1] = hf__uuid(&row->id);
    c[2] = hf__number(op->commit.ends_from);
    c[3] = hf__number(op->commit.ends_to);
}

static bool names_an_end(const char *const *ids, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp(ids[i], HF__END_MAIL, strlen(HF__END_MAIL)) == 0)
            return true;
    return false;
}

/* Ends that are spoken of one by one must have rows of their own. */
static void split_ends(struct hf__batch *batch, const struct hf__op *op, const struct hf__row *row)
{
    const hf_transition *t = op->commit.transition;
    bool consumed = !op->commit.ends_to && names_an_end(t->consumed, t->consumed_count);
    if (!consumed && !names_an_end(t->blamed, t->blamed_count))
        return;
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_SPLIT_ENDS);
    c[0] = hf__number(op->tenant);
    c[1] = hf__uuid(&row->id);
}

void hf__transition_done_mail(struct hf__batch *batch, struct hf__op *op, struct hf__row *row)
{
    const hf_transition *t = op->commit.transition;
    if (t->consumed_count)
        row->last_signal = t->consumed[t->consumed_count - 1];
    split_ends(batch, op, row);
    if (op->commit.ends_to)
        consume_ends(batch, op, row);
    for (size_t i = 0; !op->commit.ends_to && i < t->consumed_count; i++) {
        struct hf__cell *c = hf__batch_add(batch, HF__STMT_CONSUME_SIGNALS);
        c[0] = hf__number(op->tenant);
        c[1] = hf__uuid(&row->id);
        c[2] = hf__text(t->consumed[i]);
    }
    for (size_t i = 0; i < t->cancelled_timer_count; i++) {
        struct hf__cell *c = hf__batch_add(batch, HF__STMT_CANCEL_TIMERS);
        c[0] = hf__number(op->tenant);
        c[1] = hf__uuid(&row->id);
        c[2] = hf__text(t->cancelled_timers[i]);
    }
}

void hf__transition_blame(struct hf__batch *batch, struct hf__op *op, struct hf__row *row)
{
    const hf_transition *t = op->commit.transition;
    for (size_t i = 0; i < t->blamed_count; i++) {
        hf_id *letter = hf__arena_alloc(batch->arena, sizeof *letter);
        if (!letter) {
            batch->failed = true;
            return;
        }
        *letter = hf__batch_id(batch);
        struct hf__cell *c = hf__batch_add(batch, HF__STMT_BLAME_SIGNALS);
        c[0] = hf__number(op->tenant);
        c[1] = hf__uuid(&row->id);
        c[2] = hf__text(t->blamed[i]);
        c[3] = hf__text(hf__commit_actor(op));
        c[4] = hf__uuid(letter);
        c[5] = hf__number(batch->flusher->max_poison);
        hf__alert_letter(batch, op->tenant, &row->id, letter, t->blamed[i]);
    }
}

void hf__transition_events(struct hf__batch *batch, struct hf__op *op, struct hf__row *row)
{
    const hf_transition *t = op->commit.transition;
    for (size_t i = 0; i < t->event_count; i++) {
        const hf_new_event *event = &t->events[i];
        int kind = hf__event_kind(event->kind);
        hf__journal(batch, row, kind, event->name, hf__commit_actor(op), event->step, event->data);
        row->has_steps |= kind == HF__STEP;
    }
}
