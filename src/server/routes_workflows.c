/* Workflows: definitions, limits, queues.
 * SPDX-License-Identifier: Apache-2.0 */
#include "server/request.h"
#include "server/routes.h"

struct list_query {
    const char *prefix;
};

static const struct hf__member list_members[] = {
    HF__MEMBER(struct list_query, prefix, TEXT, "those whose name begins so"),
    HF__MEMBERS_END,
};

static hf_code list_with(struct hf__request *request, const struct hf__field *fields, hf_error *err)
{
    struct list_query query = { 0 };
    hf_workflows *found = NULL;
    hf_code code = hf__request_query(request, &query, err);
    if (code == HF_OK)
        code = hf_workflow_list(request->client, &found, query.prefix, err);
    if (code == HF_OK)
        code = hf__reply_list(request, fields, found->items, found->count, sizeof *found->items,
                              NULL, err);
    hf_workflows_free(found);
    return code;
}

static hf_code list(struct hf__request *request, hf_error *err)
{
    return list_with(request, hf__workflow_fields, err);
}

/* A queue is a workflow without its settings. */
static const struct hf__field queue_fields[] = {
    { "name", HF__FIELD_TEXT, offsetof(hf_workflow, name) },
    { "paused", HF__FIELD_BOOL, offsetof(hf_workflow, paused) },
    { "due", HF__FIELD_INT64, offsetof(hf_workflow, due) },
    { "delayed", HF__FIELD_INT64, offsetof(hf_workflow, delayed) },
    { "parked", HF__FIELD_INT, offsetof(hf_workflow, parked) },
    { "leased", HF__FIELD_INT64, offsetof(hf_workflow, leased) },
    { "failed", HF__FIELD_INT64, offsetof(hf_workflow, failed) },
    { "workers", HF__FIELD_INT, offsetof(hf_workflow, workers) },
    { "max_running", HF__FIELD_INT, offsetof(hf_workflow, max_running) },
    { NULL, HF__FIELD_TEXT, 0 },
};

static hf_code queues(struct hf__request *request, hf_error *err)
{
    return list_with(request, queue_fields, err);
}

static hf_code show(struct hf__request *request, hf_error *err)
{
    hf_workflow *found = NULL;
    hf_code code = hf_workflow_get(request->client, &found, request->args[0], err);
    if (code == HF_OK)
        code = hf__reply_record(request, hf__workflow_fields, found, err);
    hf_workflow_free(found);
    return code;
}

#define SETTING(name_, field, kind_, bit_, about_)                                                 \
    {                                                                                              \
        .name = name_, .kind = HF__FIELD_##kind_, .offset = offsetof(hf_workflow, field),          \
        .bit = bit_, .about = about_                                                               \
    }

const struct hf__member hf__workflow_setting_members[] = {
    SETTING("paused", paused, BOOL, HF_SET_PAUSED, "no run is begun while it is"),
    SETTING("max_attempts", max_attempts, INT, HF_SET_MAX_ATTEMPTS, "default 3"),
    SETTING("retry_base", retry_base, DURATION, HF_SET_RETRY_BASE,
            "before the second attempt, then doubled; default 1s"),
    SETTING("retry_cap", retry_cap, DURATION, HF_SET_RETRY_CAP, "default 5m"),
    SETTING("lease", lease, DURATION, HF_SET_LEASE, "default 30s"),
    SETTING("timeout", timeout, DURATION, HF_SET_TIMEOUT, "from trigger to deadline; 0: none"),
    SETTING("retention", retention, DURATION, HF_SET_RETENTION,
            "how long finished runs are kept; 0: for ever"),
    SETTING("dead_letter", dead_letter, TEXT, HF_SET_DEAD_LETTER,
            "the workflow started when a run has failed for good"),
    SETTING("fit_within", fit_within, SECONDS, HF_SET_FIT_WITHIN,
            "how long a run waits for a worker whose code fits its history; default 1d, 0: not"),
    SETTING("on_cancel", on_cancel, TEXT, HF_SET_ON_CANCEL,
            "the workflow started when a run is cancelled"),
    SETTING("children", children, TEXT, HF_SET_CHILDREN,
            "what becomes of children at work when their parent ends: leave, cancel or fail"),
    SETTING("max_running", max_running, INT, HF_SET_MAX_RUNNING, "at once; 0: no limit"),
    SETTING("key_max_running", key_max_running, INT, HF_SET_KEY_MAX_RUNNING,
            "at once of each flow key; 0: no limit"),
    SETTING("rate_count", rate.count, INT, HF_SET_RATE, "starts in rate_interval; 0: no limit"),
    SETTING("rate_interval", rate.interval, DURATION, HF_SET_RATE, NULL),
    SETTING("rate_burst", rate.burst, INT, HF_SET_RATE, "how many may start at once"),
    SETTING("key_rate_count", key_rate.count, INT, HF_SET_KEY_RATE, "the same for each flow key"),
    SETTING("key_rate_interval", key_rate.interval, DURATION, HF_SET_KEY_RATE, NULL),
    SETTING("key_rate_burst", key_rate.burst, INT, HF_SET_KEY_RATE, NULL),
    HF__MEMBERS_END,
};

static hf_code put(struct hf__request *request, hf_error *err)
{
    hf_workflow workflow = { .name = request->args[0] };
    unsigned given = 0;
    hf_code code = hf__request_body(request, &workflow, &given, err);
    if (code == HF_OK)
        code = hf_workflow_put(request->client, &workflow, given, err);
    return code == HF_OK ? show(request, err) : code;
}

static hf_code set_paused(struct hf__request *request, bool paused, hf_error *err)
{
    hf_workflow workflow = { .name = request->args[0], .paused = paused };
    hf_code code = hf_workflow_set(request->client, &workflow, HF_SET_PAUSED, err);
    return code == HF_OK ? show(request, err) : code;
}

static hf_code pause_workflow(struct hf__request *request, hf_error *err)
{
    return set_paused(request, true, err);
}

static hf_code resume(struct hf__request *request, hf_error *err)
{
    return set_paused(request, false, err);
}

struct weight_body {
    const char *flow_key;
    int weight;
};

static const struct hf__member weight_members[] = {
    HF__MEMBER(struct weight_body, flow_key, TEXT, "none: the runs without a flow key"),
    HF__MEMBER(struct weight_body, weight, INT, "1 to 1000", .required = true),
    HF__MEMBERS_END,
};

static hf_code weigh(struct hf__request *request, hf_error *err)
{
    struct weight_body body = { .flow_key = "" };
    hf_code code = hf__request_body(request, &body, NULL, err);
    if (code == HF_OK)
        code =
            hf_workflow_weight(request->client, request->args[0], body.flow_key, body.weight, err);
    return code == HF_OK ? hf__reply_nothing(request) : code;
}

#define ONE_WORKFLOW HF__ANSWERS(200, ONE, "Workflow", hf__workflow_fields)

const struct hf__route hf__workflow_routes[] = {
    HF__ROUTE("workflows", "GET", "/v1/workflows", "listWorkflows", READ, list, "List workflows",
              .query = list_members, HF__ANSWERS(200, LIST, "Workflow", hf__workflow_fields)),
    HF__ROUTE("workflows", "GET", "/v1/workflows/{name}", "getWorkflow", READ, show,
              "Show a workflow with its queue", ONE_WORKFLOW),
    HF__ROUTE("workflows", "PUT", "/v1/workflows/{name}", "putWorkflow", OPERATE, put,
              "Create a workflow, or change what is given of it",
              .body = hf__workflow_setting_members, ONE_WORKFLOW,
              .example = "{\"max_attempts\":5,\"max_running\":10,\"rate_count\":100,"
                         "\"rate_interval\":\"1m\"}"),
    HF__ROUTE("workflows", "POST", "/v1/workflows/{name}/pause", "pauseWorkflow", OPERATE,
              pause_workflow, "Begin no more runs of a workflow", ONE_WORKFLOW),
    HF__ROUTE("workflows", "POST", "/v1/workflows/{name}/resume", "resumeWorkflow", OPERATE, resume,
              "Begin runs of a workflow again", ONE_WORKFLOW),
    HF__ROUTE("workflows", "PUT", "/v1/workflows/{name}/weight", "weighFlowKey", OPERATE, weigh,
              "Set the share of a flow key", .body = weight_members,
              HF__ANSWERS(204, NONE, NULL, NULL),
              .example = "{\"flow_key\":\"acme\",\"weight\":5}"),
    HF__ROUTE("workflows", "GET", "/v1/queues", "listQueues", READ, queues,
              "How much waits in each workflow's queue", .query = list_members,
              HF__ANSWERS(200, LIST, "Queue", queue_fields)),
    HF__ROUTES_END,
};
