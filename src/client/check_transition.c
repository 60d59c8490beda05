/* Checks of what a turn brings.
 * SPDX-License-Identifier: Apache-2.0 */
#include "client/check.h"

#include <string.h>

#include "kernel/batch.h"
#include "kernel/chores.h"
#include "util/error.h"
#include "util/text.h"

static hf_code check_events(const hf_transition *t, size_t max_payload, hf_error *err)
{
    hf_code code = HF_OK;
    for (size_t i = 0; code == HF_OK && i < t->event_count; i++) {
        const hf_new_event *event = &t->events[i];
        int kind = hf__event_kind(event->kind);
        if (kind <= HF__LIFECYCLE)
            code =
                hf__fail(err, HF_INVALID, "an event's kind must be domain, step, task or signal");
        if (code == HF_OK)
            code =
                hf__label_check("event name", event->name ? event->name : "", HF__MAX_LABEL, err);
        if (code == HF_OK)
            code = hf__check_optional_label("step", event->step, err);
        if (code == HF_OK)
            code = hf__check_json("event data", event->data, max_payload, err);
    }
    return code;
}

static hf_code check_timers(const hf_transition *t, size_t max_payload, hf_error *err)
{
    hf_code code = HF_OK;
    for (size_t i = 0; code == HF_OK && i < t->timer_count; i++) {
        const hf_new_timer *timer = &t->timers[i];
        code = hf__label_check("timer key", timer->key ? timer->key : "", HF__MAX_LABEL, err);
        if (code == HF_OK)
            code = hf__check_duration("timer delay", timer->delay, err);
        if (code == HF_OK)
            code = hf__check_time("timer time", timer->at, err);
        if (code == HF_OK)
            code = hf__check_json("timer payload", timer->payload, max_payload, err);
        if (code == HF_OK)
            code = hf__check_optional_label("timer token", timer->token, err);
    }
    return code;
}

/* Roles are looked for in the text, so they are plain names: nothing in it is escaped. */
hf_code hf__check_task_roles(const char *roles, hf_error *err)
{
    static const char space[] = " \t\r\n";
    const char *at = roles ? roles + strspn(roles, space) : "[]";
    bool ok = *at++ == '[';
    at += strspn(at, space);
    while (ok && *at != ']') {
        size_t length = *at == '"' ? strcspn(at + 1, "\"") : 0;
        char name[HF__NAME_MAX + 1];
        ok = length > 0 && length <= HF__NAME_MAX;
        if (!ok)
            break;
        memcpy(name, at + 1, length);
        name[length] = '\0';
        ok = hf__name_check("role", name, NULL) == HF_OK;
        at += length + 2;
        at += strspn(at, space);
        if (*at == ',')
            at += 1 + strspn(at + 1, space);
    }
    return ok ? HF_OK
              : hf__fail(err, HF_INVALID,
                         "task roles must be a JSON array of names: letters, digits and _ . : -");
}

hf_code hf__check_task(const hf_new_task *task, size_t max_payload, hf_error *err)
{
    hf_code code = hf__label_check("task name", task->name ? task->name : "", HF__MAX_LABEL, err);
    if (code == HF_OK)
        code = hf__check_optional_label("assignee", task->assignee, err);
    if (code == HF_OK)
        code = hf__check_json("task roles", task->roles, max_payload, err);
    if (code == HF_OK)
        code = hf__check_task_roles(task->roles, err);
    if (code == HF_OK)
        code = hf__check_json("task payload", task->payload, max_payload, err);
    if (code == HF_OK)
        code = hf__check_json("task form", task->form, max_payload, err);
    if (code == HF_OK)
        code = hf__check_optional_label("task token", task->token, err);
    return code == HF_OK ? hf__check_time("task due_at", task->due_at, err) : code;
}

static hf_code check_outgoing(const hf_transition *t, size_t max_payload, hf_error *err)
{
    hf_code code = HF_OK;
    for (size_t i = 0; code == HF_OK && i < t->outbox_count; i++) {
        const hf_new_outbox *entry = &t->outbox[i];
        code = hf__label_check("outbox type", entry->type ? entry->type : "", HF__MAX_LABEL, err);
        if (code == HF_OK && strncmp(entry->type, HF__CHORE_PREFIX, strlen(HF__CHORE_PREFIX)) == 0)
            code = hf__fail(err, HF_INVALID,
                            "types that begin with \"" HF__CHORE_PREFIX
                            "\" are the engine's own: choose another");
        if (code == HF_OK)
            code = hf__check_json("outbox payload", entry->payload, max_payload, err);
    }
    for (size_t i = 0; code == HF_OK && i < t->task_count; i++)
        code = hf__check_task(&t->tasks[i], max_payload, err);
    return code;
}

/* A run that a turn starts. Whoever starts it waits for it, or names it: it cannot be another one's run. */
static hf_code check_start(const hf_trigger_spec *spec, size_t max_payload, hf_error *err)
{
    hf_code code = hf__check_trigger(spec, max_payload, err);
    if (code == HF_OK && spec->debounce_key)
        code = hf__fail(err, HF_INVALID, "only a trigger of its own can be debounced, not \"%s\"",
                        spec->workflow);
    return code;
}

static hf_code check_started(const hf_transition *t, size_t max_payload, hf_error *err)
{
    hf_code code = HF_OK;
    for (size_t i = 0; code == HF_OK && i < t->child_count; i++)
        code = check_start(&t->children[i], max_payload, err);
    for (size_t i = 0; code == HF_OK && i < t->start_count; i++)
        code = check_start(&t->starts[i], max_payload, err);
    return code;
}

static hf_code check_ids(const char *what, const char *const *ids, size_t count, hf_error *err)
{
    hf_code code = HF_OK;
    for (size_t i = 0; code == HF_OK && i < count; i++)
        code = hf__label_check(what, ids[i] ? ids[i] : "", HF__MAX_LABEL, err);
    return code;
}

static hf_code check_waiting_kind(const char *kind, hf_error *err)
{
    if (kind && strcmp(kind, HF__WAITING_WORKER) == 0)
        return hf__fail(err, HF_INVALID,
                        "the waiting_kind \"" HF__WAITING_WORKER "\" is the engine's own: choose "
                        "another");
    return hf__check_optional_label("waiting_kind", kind, err);
}

static hf_code check_outcome(const hf_transition *t, size_t max_payload, hf_error *err)
{
    hf_code code = hf__check_range("turn", (int64_t)t->turn, HF_TURN_SUCCEED, HF_TURN_UNFIT, err);
    if (code == HF_OK)
        code = hf__check_json("state", t->state, max_payload, err);
    if (code == HF_OK)
        code = hf__check_json("result", t->result, max_payload, err);
    if (code == HF_OK)
        code = hf__check_json("error", t->error, max_payload, err);
    if (code == HF_OK)
        code = hf__check_optional_label("error_code", t->error_code, err);
    if (code == HF_OK)
        code = hf__check_optional_label("current_step", t->current_step, err);
    if (code == HF_OK)
        code = check_waiting_kind(t->waiting_kind, err);
    if (code == HF_OK)
        code = hf__check_optional_label("waiting_token", t->waiting_token, err);
    if (code == HF_OK)
        code = hf__check_duration("retry_delay", t->retry_delay, err);
    if (code == HF_OK)
        code = hf__check_time("waiting_until", t->waiting_until, err);
    if (code == HF_OK)
        code = hf__check_range("wait_children", t->wait_children, 0, 10000000, err);
    if (code == HF_OK && t->last_error && !hf__utf8_valid(t->last_error, strlen(t->last_error)))
        code = hf__fail(err, HF_INVALID, "last_error is not valid UTF-8");
    return code;
}

hf_code hf__check_request(const char *request, hf_error *err)
{
    return request ? hf__label_check("request", request, HF__MAX_REQUEST, err) : HF_OK;
}

/* Any other turn moves the run's version: sent again it is refused as stale, which tells that it has happened. */
static hf_code check_request(const hf_transition *t, hf_error *err)
{
    const char *request = hf__transition_request(t);
    if (request && (t->turn != HF_TURN_GO_ON || t->unleased))
        return hf__fail(err, HF_INVALID, "only a holder's turn that goes on takes a request");
    return hf__check_request(request, err);
}

hf_code hf__check_transition(const hf_transition *t, size_t max_payload, hf_error *err)
{
    hf_code code = hf__check_version("hf_transition", t->version, HF_TRANSITION_VERSION, err);
    if (code == HF_OK)
        code = check_outcome(t, max_payload, err);
    if (code == HF_OK)
        code = check_request(t, err);
    if (code == HF_OK)
        code = check_events(t, max_payload, err);
    if (code == HF_OK)
        code = check_timers(t, max_payload, err);
    if (code == HF_OK)
        code = check_outgoing(t, max_payload, err);
    if (code == HF_OK)
        code = check_started(t, max_payload, err);
    if (code == HF_OK)
        code = check_ids("consumed signal", t->consumed, t->consumed_count, err);
    if (code == HF_OK)
        code = check_ids("blamed signal", t->blamed, t->blamed_count, err);
    if (code == HF_OK)
        code = check_ids("timer key", t->cancelled_timers, t->cancelled_timer_count, err);
    if (code == HF_OK)
        code = check_ids("task token", t->withdrawn_tasks, t->withdrawn_task_count, err);
    return code;
}

hf_code hf__check_step(const hf_step_record *step, size_t max_payload, hf_error *err)
{
    hf_code code = hf__label_check("step name", step->name ? step->name : "", HF__MAX_LABEL, err);
    const char *status = step->status ? step->status : "";
    if (code == HF_OK && strcmp(status, "succeeded") != 0 && strcmp(status, "failed") != 0)
        code = hf__fail(err, HF_INVALID, "a step's status is \"succeeded\" or \"failed\"");
    return code == HF_OK ? hf__check_json("step data", step->data, max_payload, err) : code;
}
