/* Schedules.
 * SPDX-License-Identifier: Apache-2.0 */
#include "server/request.h"
#include "server/routes.h"

#include "util/error.h"

#include <holdfast/schedule.h>

static hf_code list(struct hf__request *request, hf_error *err)
{
    hf_schedules *found = NULL;
    hf_code code = hf_schedule_list(request->client, &found, err);
    if (code == HF_OK)
        code = hf__reply_list(request, hf__schedule_fields, found->items, found->count,
                              sizeof *found->items, NULL, err);
    hf_schedules_free(found);
    return code;
}

static hf_code show(struct hf__request *request, hf_error *err)
{
    hf_schedule *found = NULL;
    hf_code code = hf_schedule_get(request->client, &found, request->args[0], err);
    if (code == HF_OK)
        code = hf__reply_record(request, hf__schedule_fields, found, err);
    hf_schedule_free(found);
    return code;
}

#define SPEC(field, kind_, about_, ...)                                                            \
    {                                                                                              \
        .name = #field, .kind = HF__FIELD_##kind_,                                                 \
        .offset = offsetof(struct hf__schedule_body, spec.field), .about = about_, __VA_ARGS__     \
    }

const struct hf__member hf__schedule_members[] = {
    SPEC(workflow, TEXT, "what is started", .required = true),
    SPEC(cron, TEXT, "five or six fields, @daily, or every 15m", .required = true),
    SPEC(timezone, TEXT, "an IANA name; default UTC"),
    SPEC(input, JSON, "of the started runs"),
    SPEC(priority, INT, "of the started runs"),
    SPEC(tags, WORDS, "of the started runs",
         .count_offset = offsetof(struct hf__schedule_body, spec.tag_count)),
    HF__MEMBER(struct hf__schedule_body, overlap, TEXT, "skip, allow, queue or cancel"),
    HF__MEMBER(struct hf__schedule_body, catch_up, TEXT, "one, none or all"),
    HF__MEMBERS_END,
};

hf_code hf__schedule_body_check(struct hf__schedule_body *body, const char *name, hf_error *err)
{
    body->spec.name = name;
    if (body->overlap && !hf_overlap_parse(body->overlap, &body->spec.overlap))
        return hf__fail(err, HF_INVALID, "there is no overlap policy \"%.60s\"", body->overlap);
    if (body->catch_up && !hf_catch_up_parse(body->catch_up, &body->spec.catch_up))
        return hf__fail(err, HF_INVALID, "there is no catch-up policy \"%.60s\"", body->catch_up);
    return HF_OK;
}

static hf_code put(struct hf__request *request, hf_error *err)
{
    struct hf__schedule_body body = HF__SCHEDULE_BODY_INIT;
    hf_code code = hf__request_body(request, &body, NULL, err);
    if (code == HF_OK)
        code = hf__schedule_body_check(&body, request->args[0], err);
    if (code == HF_OK)
        code = hf_schedule_set(request->client, &body.spec, err);
    return code == HF_OK ? show(request, err) : code;
}

static hf_code pause_schedule(struct hf__request *request, hf_error *err)
{
    hf_code code = hf_schedule_pause(request->client, request->args[0], err);
    return code == HF_OK ? show(request, err) : code;
}

static hf_code resume(struct hf__request *request, hf_error *err)
{
    hf_code code = hf_schedule_resume(request->client, request->args[0], err);
    return code == HF_OK ? show(request, err) : code;
}

static hf_code delete_schedule(struct hf__request *request, hf_error *err)
{
    hf_code code = hf_schedule_delete(request->client, request->args[0], err);
    return code == HF_OK ? hf__reply_nothing(request) : code;
}

enum { MOST_FIRINGS = 100 };

struct next_query {
    int count;
};

static const struct hf__member next_members[] = {
    HF__MEMBER(struct next_query, count, INT, "1 to 100; default 5"),
    HF__MEMBERS_END,
};

static hf_code next(struct hf__request *request, hf_error *err)
{
    struct next_query query = { .count = 5 };
    int64_t times[MOST_FIRINGS];
    size_t found = 0;
    hf_code code = hf__request_query(request, &query, err);
    if (code == HF_OK && (query.count < 1 || query.count > MOST_FIRINGS))
        code = hf__fail(err, HF_INVALID, "\"count\" must be from 1 to %d", MOST_FIRINGS);
    if (code == HF_OK)
        code = hf_schedule_next(request->client, request->args[0], times, (size_t)query.count,
                                &found, err);
    if (code != HF_OK)
        return code;
    hf__buffer_add_text(&request->out, "{\"items\":[");
    for (size_t i = 0; i < found; i++) {
        hf__buffer_add_text(&request->out, i > 0 ? "," : "");
        hf__json_add_time(&request->out, times[i]);
    }
    hf__buffer_add_text(&request->out, "],\"next\":null}");
    return hf__reply_done(request, 200, err);
}

#define ONE_SCHEDULE HF__ANSWERS(200, ONE, "Schedule", hf__schedule_fields)

const struct hf__route hf__schedule_routes[] = {
    HF__ROUTE("schedules", "GET", "/v1/schedules", "listSchedules", READ, list, "List schedules",
              HF__ANSWERS(200, LIST, "Schedule", hf__schedule_fields)),
    HF__ROUTE("schedules", "GET", "/v1/schedules/{name}", "getSchedule", READ, show,
              "Show a schedule", ONE_SCHEDULE),
    HF__ROUTE("schedules", "PUT", "/v1/schedules/{name}", "putSchedule", OPERATE, put,
              "Create or change a schedule", .body = hf__schedule_members, ONE_SCHEDULE,
              .example = "{\"workflow\":\"billing.charge.v1\",\"cron\":\"0 3 * * *\","
                         "\"timezone\":\"Europe/Berlin\"}"),
    HF__ROUTE("schedules", "DELETE", "/v1/schedules/{name}", "deleteSchedule", OPERATE,
              delete_schedule, "Delete a schedule; runs that it started go on",
              HF__ANSWERS(204, NONE, NULL, NULL)),
    HF__ROUTE("schedules", "POST", "/v1/schedules/{name}/pause", "pauseSchedule", OPERATE,
              pause_schedule, "Pause a schedule", ONE_SCHEDULE),
    HF__ROUTE("schedules", "POST", "/v1/schedules/{name}/resume", "resumeSchedule", OPERATE, resume,
              "Resume a schedule", ONE_SCHEDULE),
    HF__ROUTE("schedules", "GET", "/v1/schedules/{name}/next", "listFirings", READ, next,
              "When it fires next", .query = next_members, HF__ANSWERS(200, LIST, NULL, NULL)),
    HF__ROUTES_END,
};
