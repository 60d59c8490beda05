/* SPDX-License-Identifier: Apache-2.0 */
#include "server/work.h"

#include "client/client.h"
#include "client/fit.h"
#include "util/error.h"
#include "util/json_members.h"
#include "util/random.h"
#include "worker/failure.h"

#include <holdfast/transition.h>

#include <string.h>

/* ---- A transition as JSON ---- */

struct committing {
    const char *worker;
    const char *turn;
    hf_transition t;
    const char *timers, *children, *starts, *events, *outbox, *tasks; /* JSON arrays */
    struct hf__chosen_ids ids;                                        /* of the children */
};

#define T(field, kind_, about_, ...)                                                               \
    {                                                                                              \
        .name = #field, .kind = HF__FIELD_##kind_, .offset = offsetof(struct committing, t.field), \
        .about = about_, __VA_ARGS__                                                               \
    }
#define LIST(field, about_) HF__MEMBER(struct committing, field, JSON, about_)

const struct hf__member hf__work_commit_members[] = {
    HF__MEMBER(struct committing, worker, TEXT, "who holds the run", .required = true),
    { .name = "version",
      .kind = HF__FIELD_INT64,
      .offset = offsetof(struct committing, t.run_version),
      .required = true,
      .about = "of the claim" },
    HF__MEMBER(struct committing, turn, TEXT, "succeed, wait, give_back or go_on",
               .required = true),
    T(request, TEXT,
      "go_on: unique within the claim; sent again, nothing changes and the first answer comes"),
    T(result, JSON, "succeed: the run's result"),
    T(state, JSON, "what the run publishes"),
    T(current_step, TEXT, "where it is"),
    T(waiting_kind, TEXT, "wait: for what"),
    T(waiting_token, TEXT, "wait: signals with another token are stale"),
    { .name = "waiting_until_us",
      .kind = HF__FIELD_INT64,
      .offset = offsetof(struct committing, t.waiting_until),
      .about = "wait: until then at the latest, us since the epoch; 0: no limit" },
    T(wait_children, INT, "wait: wake when so many ends of children are in the mailbox"),
    T(wake_on_child_failure, BOOL, "wait: and when one of them failed"),
    T(pause, BOOL, "wait: paused, until somebody resumes the run or the time is up"),
    T(seen_position, INT64, "wait: as the claim said"),
    { .name = "seen_us",
      .kind = HF__FIELD_INT64,
      .offset = offsetof(struct committing, t.seen_at),
      .about = "wait: as the claim said" },
    T(consumed, WORDS, "ids of mail that is done with",
      .count_offset = offsetof(struct committing, t.consumed_count)),
    T(cancelled_timers, WORDS, "keys",
      .count_offset = offsetof(struct committing, t.cancelled_timer_count)),
    LIST(timers, "objects with key, delay or at, payload, token"),
    LIST(children, "runs to start, as for triggering one; their ends come back as mail"),
    { .name = "child_ids",
      .kind = HF__FIELD_WORDS,
      .offset = offsetof(struct committing, ids.texts),
      .count_offset = offsetof(struct committing, ids.count),
      .about = "ids for them, new UUIDs; default: made here" },
    LIST(starts, "runs to start without a tie to this one"),
    LIST(events, "lines for the journal: objects with kind (step or domain), name, step, data"),
    LIST(outbox, "objects with type and payload"),
    LIST(tasks,
         "questions to people: objects with name, assignee, roles, payload, form, token, due_at"),
    T(withdrawn_tasks, WORDS, "tokens of open tasks that need no answer any more",
      .count_offset = offsetof(struct committing, t.withdrawn_task_count)),
    HF__MEMBERS_END,
};

static const struct hf__member timer_members[] = {
    HF__MEMBER(hf_new_timer, key, TEXT, NULL, .required = true),
    HF__MEMBER(hf_new_timer, delay, DURATION, NULL),
    HF__MEMBER(hf_new_timer, at, TIME, NULL),
    HF__MEMBER(hf_new_timer, payload, JSON, NULL),
    HF__MEMBER(hf_new_timer, token, TEXT, NULL),
    HF__MEMBERS_END,
};

static const struct hf__member event_members[] = {
    HF__MEMBER(hf_new_event, kind, TEXT, NULL, .required = true),
    HF__MEMBER(hf_new_event, name, TEXT, NULL, .required = true),
    HF__MEMBER(hf_new_event, step, TEXT, NULL),
    HF__MEMBER(hf_new_event, data, JSON, NULL),
    HF__MEMBERS_END,
};

static const struct hf__member outbox_members[] = {
    HF__MEMBER(hf_new_outbox, type, TEXT, NULL, .required = true),
    HF__MEMBER(hf_new_outbox, payload, JSON, NULL),
    HF__MEMBERS_END,
};

static const struct hf__member task_members[] = {
    HF__MEMBER(hf_new_task, name, TEXT, NULL, .required = true),
    HF__MEMBER(hf_new_task, assignee, TEXT, NULL),
    HF__MEMBER(hf_new_task, roles, JSON, NULL),
    HF__MEMBER(hf_new_task, payload, JSON, NULL),
    HF__MEMBER(hf_new_task, form, JSON, NULL),
    HF__MEMBER(hf_new_task, token, TEXT, NULL),
    HF__MEMBER(hf_new_task, due_at, TIME, NULL),
    HF__MEMBERS_END,
};

enum { MOST_ITEMS = 100000 }; /* of one array, which bounds the memory of a request */

static hf_code read_arrays(struct hf__request *request, struct committing *c, hf_error *err)
{
    static const hf_new_timer timer;
    static const hf_new_event event;
    static const hf_new_outbox entry;
    static const hf_new_task task;
    static const hf_trigger_spec run = HF_TRIGGER_INIT;
    hf_transition *t = &c->t;
    hf_code code = hf__request_array(
        request,
        &(struct hf__array){ "timers", c->timers, timer_members, &timer, sizeof timer, MOST_ITEMS },
        &t->timers, &t->timer_count, err);
    if (code == HF_OK)
        code = hf__request_array(request,
                                 &(struct hf__array){ "events", c->events, event_members, &event,
                                                      sizeof event, MOST_ITEMS },
                                 &t->events, &t->event_count, err);
    if (code == HF_OK)
        code = hf__request_array(request,
                                 &(struct hf__array){ "outbox", c->outbox, outbox_members, &entry,
                                                      sizeof entry, MOST_ITEMS },
                                 &t->outbox, &t->outbox_count, err);
    if (code == HF_OK)
        code = hf__request_array(
            request,
            &(struct hf__array){ "tasks", c->tasks, task_members, &task, sizeof task, MOST_ITEMS },
            &t->tasks, &t->task_count, err);
    if (code == HF_OK)
        code = hf__request_array(request,
                                 &(struct hf__array){ "children", c->children, hf__trigger_members,
                                                      &run, sizeof run, MOST_ITEMS },
                                 &t->children, &t->child_count, err);
    if (code == HF_OK)
        code = hf__request_array(request,
                                 &(struct hf__array){ "starts", c->starts, hf__trigger_members,
                                                      &run, sizeof run, MOST_ITEMS },
                                 &t->starts, &t->start_count, err);
    return code;
}

static hf_code read_turn(const char *name, hf_turn *out, hf_error *err)
{
    static const struct {
        const char *name;
        hf_turn turn;
    } turns[] = {
        { "succeed", HF_TURN_SUCCEED },
        { "wait", HF_TURN_WAIT },
        { "give_back", HF_TURN_GIVE_BACK },
        { "go_on", HF_TURN_GO_ON },
    };
    for (size_t i = 0; i < sizeof turns / sizeof turns[0]; i++)
        if (strcmp(turns[i].name, name) == 0) {
            *out = turns[i].turn;
            return HF_OK;
        }
    return hf__fail(err, HF_INVALID, "there is no turn \"%.60s\"", name);
}

/* ---- Committing ---- */

static hf_code begin(struct hf__request *request, hf_transition *t, const char *worker,
                     hf_error *err)
{
    hf_code code = hf__request_id(request, 0, &t->run, err);
    t->version = HF_TRANSITION_VERSION;
    t->worker = code == HF_OK ? hf__work_name(request, worker) : NULL;
    return code == HF_OK && !t->worker ? hf__nomem(err) : code;
}

struct committed {
    const char *children; /* JSON: their ids */
};

const struct hf__field hf__committed_fields[] = {
    { "children", HF__FIELD_WORDS, offsetof(struct committed, children) },
    { NULL, HF__FIELD_TEXT, 0 },
};

static hf_code answer(struct hf__request *request, const hf_id *children, size_t count,
                      hf_error *err)
{
    struct hf__buffer ids = { 0 };
    hf__buffer_add_text(&ids, "[");
    for (size_t i = 0; i < count; i++) {
        hf__buffer_add_text(&ids, i ? "," : "");
        hf__json_add_id(&ids, children[i]);
    }
    hf__buffer_add_text(&ids, "]");
    hf_code code = ids.failed ? hf__nomem(err)
                              : hf__reply_record(request, hf__committed_fields,
                                                 &(struct committed){ ids.data }, err);
    hf__buffer_free(&ids);
    return code;
}

hf_code hf__work_commit(struct hf__request *request, hf_error *err)
{
    struct committing c = { 0 };
    hf_code code = hf__request_body(request, &c, NULL, err);
    if (code == HF_OK)
        code = read_turn(c.turn, &c.t.turn, err);
    if (code == HF_OK)
        code = read_arrays(request, &c, err);
    if (code == HF_OK)
        code = begin(request, &c.t, c.worker, err);
    if (code != HF_OK)
        return code;
    if (c.t.turn == HF_TURN_SUCCEED && !c.t.result)
        c.t.result = "null";
    hf_id *ids = NULL;
    code = hf__work_child_ids(request, &c.ids, c.t.run, c.t.child_count, &ids, err);
    if (code == HF_OK)
        code = hf__commit_with_ids(request->client, &c.t, ids, err);
    return code == HF_OK ? answer(request, ids, c.t.child_count, err) : code;
}

/* ---- Failing ---- */

struct failing {
    const char *worker;
    int64_t version;
    const char *message;
    const char *code;
    const char *error;
    bool permanent;
    int64_t retry_after;
};

const struct hf__member hf__work_fail_members[] = {
    HF__MEMBER(struct failing, worker, TEXT, "who holds the run", .required = true),
    HF__MEMBER(struct failing, version, INT64, "of the claim", .required = true),
    HF__MEMBER(struct failing, message, TEXT, "one line for people", .required = true),
    HF__MEMBER(struct failing, code, TEXT, "for programs; default failed"),
    HF__MEMBER(struct failing, error, JSON, "whatever else there is to know"),
    HF__MEMBER(struct failing, permanent, BOOL, "do not try again"),
    HF__MEMBER(struct failing, retry_after, DURATION, "in place of the policy's delay"),
    HF__MEMBERS_END,
};

struct attempt {
    bool retried;
};

const struct hf__field hf__attempt_fields[] = {
    { "retried", HF__FIELD_BOOL, offsetof(struct attempt, retried) },
    { NULL, HF__FIELD_TEXT, 0 },
};

/* The run and its workflow's policy, as the claim gave them to the worker. */
static hf_code recall(struct hf__request *request, hf_id id, hf_run **run, hf_workflow **workflow,
                      hf_claimed *out, hf_error *err)
{
    hf_code code = hf_get(request->client, run, id, err);
    if (code == HF_OK)
        code = hf_workflow_get(request->client, workflow, (*run)->workflow, err);
    if (code == HF_OK)
        *out = (hf_claimed){
            .run = **run,
            .retry_base = (*workflow)->retry_base,
            .retry_cap = (*workflow)->retry_cap,
            .dead_letter = (*workflow)->dead_letter,
        };
    return code;
}

hf_code hf__work_fail(struct hf__request *request, hf_error *err)
{
    struct failing failing = { .code = "failed" };
    struct hf__letter letter;
    struct hf__random random;
    hf_transition t = { 0 };
    hf_claimed claimed;
    hf_run *run = NULL;
    hf_workflow *workflow = NULL;
    hf_code code = hf__request_body(request, &failing, NULL, err);
    if (code == HF_OK)
        code = begin(request, &t, failing.worker, err);
    if (code == HF_OK)
        code = recall(request, t.run, &run, &workflow, &claimed, err);
    if (code == HF_OK && !hf__random_seed_os(&random))
        code = hf__fail(err, HF_INTERNAL, "the system has no random numbers to give");
    if (code == HF_OK) {
        struct hf__failure failure = { failing.permanent, failing.retry_after };
        t.run_version = failing.version;
        t.error = failing.error;
        hf__fail_or_retry(&t, &claimed, &letter, &request->arena, &failure, failing.code,
                          failing.message, hf__random_unit(&random));
        code = hf_commit(request->client, &t, NULL, err);
    }
    if (code == HF_OK)
        code = hf__reply_record(request, hf__attempt_fields,
                                &(struct attempt){ t.turn == HF_TURN_RETRY }, err);
    hf_workflow_free(workflow);
    hf_run_free(run);
    return code;
}

/* ---- Code that does not fit ---- */

struct misfit {
    const char *worker;
    int64_t version;
    const char *message;
};

const struct hf__member hf__work_unfit_members[] = {
    HF__MEMBER(struct misfit, worker, TEXT, "who holds the run", .required = true),
    HF__MEMBER(struct misfit, version, INT64, "of the claim", .required = true),
    HF__MEMBER(struct misfit, message, TEXT, "what is remembered, and what the code did instead",
               .required = true),
    HF__MEMBERS_END,
};

struct left {
    bool failed;
};

const struct hf__field hf__unfit_fields[] = {
    { "failed", HF__FIELD_BOOL, offsetof(struct left, failed) },
    { NULL, HF__FIELD_TEXT, 0 },
};

hf_code hf__work_unfit(struct hf__request *request, hf_error *err)
{
    struct misfit misfit = { 0 };
    struct hf__letter letter;
    hf_transition t = { 0 };
    hf_claimed claimed;
    hf_run *run = NULL;
    hf_workflow *workflow = NULL;
    bool over = false;
    hf_code code = hf__request_body(request, &misfit, NULL, err);
    if (code == HF_OK)
        code = begin(request, &t, misfit.worker, err);
    if (code == HF_OK)
        code = recall(request, t.run, &run, &workflow, &claimed, err);
    if (code == HF_OK)
        code =
            hf__fit_is_over(request->client->engine, request->client->tenant_id, t.run, &over, err);
    if (code == HF_OK) {
        t.run_version = misfit.version;
        hf__leave_to_others(&t, &claimed, &letter, &request->arena, misfit.message, over);
        code = hf_commit(request->client, &t, NULL, err);
    }
    if (code == HF_OK)
        code = hf__reply_record(request, hf__unfit_fields, &(struct left){ t.turn == HF_TURN_FAIL },
                                err);
    hf_workflow_free(workflow);
    hf_run_free(run);
    return code;
}
