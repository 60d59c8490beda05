/* Tasks: questions to people, and their answers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "server/request.h"
#include "server/routes.h"

#include <holdfast/task.h>

#include <inttypes.h>
#include <stdio.h>

static const struct hf__member filter_members[] = {
    HF__MEMBER(hf_task_filter, status, TEXT,
               "open, claimed, completed, cancelled, with commas between, or all; default "
               "open,claimed"),
    HF__MEMBER(hf_task_filter, assignee, TEXT, "who has it"),
    HF__MEMBER(hf_task_filter, role, TEXT, "one of its roles"),
    HF__MEMBER(hf_task_filter, run, ID, "of this run"),
    HF__MEMBER(hf_task_filter, name, TEXT, "of this name"),
    HF__MEMBER(hf_task_filter, overdue, BOOL, "only those past their due time"),
    HF__MEMBER(hf_task_filter, by_due, BOOL,
               "by due time instead of newest first; only for open and claimed ones"),
    HF__MEMBER(hf_task_filter, limit, INT, "1 to 1000; default 50"),
    HF__MEMBER(hf_task_filter, cursor, TEXT, "`next` of the page before"),
    HF__MEMBERS_END,
};

static hf_code list(struct hf__request *request, hf_error *err)
{
    hf_task_filter filter = HF_TASK_FILTER_INIT;
    hf_task_page *page = NULL;
    hf_code code = hf__request_query(request, &filter, err);
    if (code == HF_OK)
        code = hf_task_list(request->client, &page, &filter, err);
    if (code == HF_OK)
        code = hf__reply_list(request, hf__task_fields, page->items, page->count,
                              sizeof *page->items, page->next, err);
    hf_task_page_free(page);
    return code;
}

static hf_code reply_task(struct hf__request *request, hf_id id, hf_error *err)
{
    hf_task *task = NULL;
    char etag[32];
    hf_code code = hf_task_get(request->client, &task, id, err);
    if (code == HF_OK) {
        snprintf(etag, sizeof etag, "\"%" PRId64 "\"", task->version);
        hf__reply_header(request, "ETag", etag);
        code = hf__reply_record(request, hf__task_fields, task, err);
    }
    hf_task_free(task);
    return code;
}

static hf_code show(struct hf__request *request, hf_error *err)
{
    hf_id id;
    hf_code code = hf__request_id(request, 0, &id, err);
    return code == HF_OK ? reply_task(request, id, err) : code;
}

/* Which task, and the version of it that the caller has seen. */
static hf_code read_target(struct hf__request *request, hf_id *id, int64_t *version, hf_error *err)
{
    hf_code code = hf__request_id(request, 0, id, err);
    return code == HF_OK ? hf__request_if_match(request, version, err) : code;
}

/* Whether the caller's token goes for the task's roles, which never change. Otherwise the request is answered. */
static hf_code check_roles(struct hf__request *request, hf_id id, bool *allowed, hf_error *err)
{
    hf_task *task = NULL;
    *allowed = !*request->caller->task_roles;
    if (*allowed)
        return HF_OK;
    hf_code code = hf_task_get(request->client, &task, id, err);
    if (code == HF_OK)
        *allowed = hf_task_allows(task, request->caller->task_roles);
    if (code == HF_OK && !*allowed)
        hf__reply_problem_as(
            request, HF__PROBLEM_FORBIDDEN, "the token is not for tasks of these roles",
            hf__arena_printf(&request->arena, "it is for %s, the task for %s",
                             request->caller->task_roles, task->roles ? task->roles : "[]"));
    hf_task_free(task);
    return code;
}

static hf_code change(struct hf__request *request,
                      hf_code (*function)(hf_client *client, hf_id id, int64_t version,
                                          hf_error *err),
                      hf_error *err)
{
    hf_id id;
    int64_t version;
    bool allowed = false;
    hf_code code = read_target(request, &id, &version, err);
    if (code == HF_OK)
        code = check_roles(request, id, &allowed, err);
    if (code != HF_OK || !allowed)
        return code;
    code = function(request->client, id, version, err);
    return code == HF_OK ? reply_task(request, id, err) : code;
}

static hf_code claim(struct hf__request *request, hf_error *err)
{
    return change(request, hf_task_claim, err);
}

static hf_code release(struct hf__request *request, hf_error *err)
{
    return change(request, hf_task_release, err);
}

struct reassignment {
    const char *assignee;
};

static const struct hf__member reassign_members[] = {
    HF__MEMBER(struct reassignment, assignee, TEXT, "who has it from now on; none: nobody"),
    HF__MEMBERS_END,
};

static hf_code reassign(struct hf__request *request, hf_error *err)
{
    struct reassignment body = { 0 };
    hf_id id;
    int64_t version;
    hf_code code = read_target(request, &id, &version, err);
    if (code == HF_OK)
        code = hf__request_body(request, &body, NULL, err);
    if (code == HF_OK)
        code = hf_task_reassign(request->client, id, body.assignee, version, err);
    return code == HF_OK ? reply_task(request, id, err) : code;
}

struct completion {
    const char *outcome;
    const char *result;
};

static const struct hf__member complete_members[] = {
    { .name = "outcome",
      .kind = HF__FIELD_TEXT,
      .offset = offsetof(struct completion, outcome),
      .about = "in a word, as \"approved\"",
      .required = true },
    HF__MEMBER(struct completion, result, JSON, "what else there is to say"),
    HF__MEMBERS_END,
};

static hf_code complete(struct hf__request *request, hf_error *err)
{
    struct completion body = { 0 };
    hf_id id;
    int64_t version;
    bool allowed = false;
    hf_code code = read_target(request, &id, &version, err);
    if (code == HF_OK)
        code = hf__request_body(request, &body, NULL, err);
    if (code == HF_OK)
        code = check_roles(request, id, &allowed, err);
    if (code != HF_OK || !allowed)
        return code;
    code = hf_task_complete(request->client, id, body.outcome, body.result, version, err);
    return code == HF_OK ? reply_task(request, id, err) : code;
}

#define PATH "/v1/tasks/{id}"
#define ONE HF__ANSWERS(200, ONE, "Task", hf__task_fields)
#define CHANGED .headers = HF__HEADER_IF_MATCH | HF__HEADER_ETAG, ONE

const struct hf__route hf__task_routes[] = {
    HF__ROUTE("tasks", "GET", "/v1/tasks", "listTasks", READ, list,
              "List questions to people, newest first or by due time", .query = filter_members,
              HF__ANSWERS(200, LIST, "Task", hf__task_fields)),
    HF__ROUTE("tasks", "GET", PATH, "getTask", READ, show, "Show a task",
              .details = "Its ETag is its version: If-Match with it refuses a change of a task "
                         "that is another by now.",
              .headers = HF__HEADER_ETAG, ONE),
    HF__ROUTE("tasks", "POST", PATH "/claim", "claimTask", TRIGGER, claim,
              "Take a task; nobody else can do anything with it then", CHANGED),
    HF__ROUTE("tasks", "POST", PATH "/release", "releaseTask", TRIGGER, release,
              "Give a task back to everybody", CHANGED),
    HF__ROUTE("tasks", "POST", PATH "/reassign", "reassignTask", OPERATE, reassign,
              "Give a task to somebody else, whoever has it", .body = reassign_members, CHANGED,
              .example = "{\"assignee\":\"kim\"}"),
    HF__ROUTE("tasks", "POST", PATH "/complete", "completeTask", TRIGGER, complete,
              "Answer a task; its run gets the answer in the same transaction",
              .details = "The same answer by the same actor once more changes nothing.",
              .body = complete_members, CHANGED,
              .example = "{\"outcome\":\"approved\",\"result\":{\"note\":\"fine\"}}"),
    HF__ROUTES_END,
};
