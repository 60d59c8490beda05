/* A remote worker that starts: the workflows it serves with their settings, and its schedules, are there before it claims.
 * SPDX-License-Identifier: Apache-2.0 */
#include "server/work.h"

#include "client/check.h"
#include "client/client.h"
#include "server/routes.h"
#include "util/error.h"
#include "util/json.h"
#include "util/json_members.h"

#include <holdfast/schedule.h>

#include <string.h>

enum { MOST_SCHEDULES = 1000 };

struct joining {
    struct hf__crew crew;
    const char *settings;  /* JSON: by workflow, as for putWorkflow */
    const char *schedules; /* JSON: by name, as for putSchedule */
};

const struct hf__member hf__work_join_members[] = {
    HF__CREW_MEMBERS(struct joining, crew),
    HF__CREW_MEMBER(struct joining, crew, stuck, INT, "threads that it has given up; default 0"),
    HF__MEMBER(struct joining, settings, JSON,
               "settings of workflows by their names, as for putWorkflow"),
    HF__MEMBER(struct joining, schedules, JSON, "schedules by their names, as for putSchedule"),
    HF__MEMBERS_END,
};

/* ---- Objects by name ---- */

struct named {
    const char *name;
    const char *json;
    size_t length;
};

static hf_code read_named(struct hf__request *request, const char *member, const char *json,
                          size_t most, struct named **out, size_t *count, hf_error *err)
{
    struct hf__json_member each;
    hf_code code = HF_OK;
    *count = 0;
    if (json && !hf__json_is_object(json))
        return hf__fail(err, HF_INVALID, "\"%s\" must be an object of objects by name", member);
    for (size_t at = 0; json && hf__json_member_next(json, &at, &each);)
        ++*count;
    if (*count > most)
        return hf__fail(err, HF_TOO_LARGE, "\"%s\" names more than %zu", member, most);
    struct named *items = *out = hf__arena_calloc(&request->arena, *count + 1, sizeof *items);
    if (!items)
        return hf__nomem(err);
    size_t i = 0;
    for (size_t at = 0; code == HF_OK && json && hf__json_member_next(json, &at, &each); i++) {
        items[i].json = each.value;
        items[i].length = each.value_length;
        /* What has escapes is not the name of anything, and refused with the rest. */
        items[i].name = hf__arena_strndup(&request->arena, each.name, each.name_length);
        code = items[i].name ? HF_OK : hf__nomem(err);
    }
    return code;
}

/* `member` and `name`: where what is wrong stands. */
static hf_code explain(hf_code code, const char *member, const char *name, hf_error *err)
{
    return code == HF_OK || !err
               ? code
               : hf__fail(err, code, "\"%s\", \"%.100s\": %s", member, name, err->message);
}

/* ---- Settings of workflows ---- */

struct settings {
    hf_workflow *items;
    unsigned *given;
    size_t count;
};

static bool serves(const struct hf__crew *crew, const char *workflow)
{
    for (size_t i = 0; i < crew->workflow_count; i++)
        if (strcmp(crew->workflows[i], workflow) == 0)
            return true;
    return false;
}

static hf_code check_served(const struct hf__crew *crew, const char *workflow, hf_error *err)
{
    return serves(crew, workflow)
               ? HF_OK
               : hf__fail(err, HF_INVALID, "\"workflows\" does not name \"%.100s\"", workflow);
}

static hf_code read_setting(struct hf__request *request, const struct hf__crew *crew,
                            const struct named *named, hf_workflow *out, unsigned *given,
                            hf_error *err)
{
    out->name = named->name;
    hf_code code = check_served(crew, named->name, err);
    if (code == HF_OK)
        code = hf__members_read(out, hf__workflow_setting_members, &request->arena, named->json,
                                named->length, given, err);
    return code == HF_OK ? hf__check_workflow(out, *given, err) : code;
}

static hf_code read_settings(struct hf__request *request, const struct joining *joining,
                             struct settings *out, hf_error *err)
{
    struct named *named = NULL;
    hf_code code = read_named(request, "settings", joining->settings, HF__MOST_SERVED, &named,
                              &out->count, err);
    out->items = hf__arena_calloc(&request->arena, out->count + 1, sizeof *out->items);
    out->given = hf__arena_calloc(&request->arena, out->count + 1, sizeof *out->given);
    if (code == HF_OK && (!out->items || !out->given))
        code = hf__nomem(err);
    for (size_t i = 0; code == HF_OK && i < out->count; i++)
        code = explain(
            read_setting(request, &joining->crew, &named[i], &out->items[i], &out->given[i], err),
            "settings", named[i].name, err);
    return code;
}

static hf_code put_settings(struct hf__request *request, const struct settings *settings,
                            hf_error *err)
{
    hf_code code = HF_OK;
    for (size_t i = 0; code == HF_OK && i < settings->count; i++)
        code =
            explain(hf_workflow_put(request->client, &settings->items[i], settings->given[i], err),
                    "settings", settings->items[i].name, err);
    return code;
}

/* ---- Schedules ---- */

struct schedules {
    hf_schedule_spec *items;
    size_t count;
};

static hf_code read_schedules(struct hf__request *request, const struct joining *joining,
                              struct schedules *out, hf_error *err)
{
    struct named *named = NULL;
    hf_code code = read_named(request, "schedules", joining->schedules, MOST_SCHEDULES, &named,
                              &out->count, err);
    out->items = hf__arena_calloc(&request->arena, out->count + 1, sizeof *out->items);
    if (code == HF_OK && !out->items)
        code = hf__nomem(err);
    for (size_t i = 0; code == HF_OK && i < out->count; i++) {
        struct hf__schedule_body body = HF__SCHEDULE_BODY_INIT;
        code = hf__members_read(&body, hf__schedule_members, &request->arena, named[i].json,
                                named[i].length, NULL, err);
        if (code == HF_OK)
            code = hf__schedule_body_check(&body, named[i].name, err);
        if (code == HF_OK)
            code = check_served(&joining->crew, body.spec.workflow, err);
        if (code == HF_OK)
            code = hf__schedule_check(request->client, &body.spec, err);
        code = explain(code, "schedules", named[i].name, err);
        out->items[i] = body.spec;
    }
    return code;
}

static bool same_text(const char *a, const char *b, const char *none)
{
    return strcmp(a ? a : none, b ? b : none) == 0;
}

static bool same_json(const char *a, const char *b, const char *none)
{
    return hf__json_equal(a ? a : none, b ? b : none);
}

static bool same_tags(const hf_schedule *set, const hf_schedule_spec *wanted)
{
    struct hf__buffer json = { 0 };
    hf__buffer_add_json_strings(&json, wanted->tags, wanted->tag_count);
    bool same = !json.failed && same_json(set->tags, json.data, "[]");
    hf__buffer_free(&json);
    return same;
}

/* To set it again would forget what was missed: due times would count from now on. */
static bool is_set(const hf_schedule *set, const hf_schedule_spec *wanted)
{
    return !hf_status_finished(set->status) && same_text(set->cron, wanted->cron, "") &&
           same_text(set->workflow, wanted->workflow, "") &&
           same_text(set->timezone, wanted->timezone, "UTC") &&
           same_json(set->input, wanted->input, "null") &&
           same_text(set->overlap, hf_overlap_name(wanted->overlap), "") &&
           same_text(set->catch_up, hf_catch_up_name(wanted->catch_up), "") &&
           set->priority == wanted->priority && same_tags(set, wanted);
}

/* A worker may not take over the schedule of a workflow that it does not serve. */
static hf_code set_schedule(struct hf__request *request, const struct hf__crew *crew,
                            const hf_schedule_spec *wanted, hf_error *err)
{
    hf_schedule *set = NULL;
    hf_code code = hf_schedule_get(request->client, &set, wanted->name, err);
    if (code == HF_OK && !hf_status_finished(set->status) && !serves(crew, set->workflow))
        code = hf__fail(err, HF_CONFLICT,
                        "it is one of \"%.100s\", which this worker does not serve: give it "
                        "another name",
                        set->workflow);
    else if (code == HF_NOT_FOUND || (code == HF_OK && !is_set(set, wanted)))
        code = hf_schedule_set(request->client, wanted, err);
    hf_schedule_free(set);
    return explain(code, "schedules", wanted->name, err);
}

static hf_code set_schedules(struct hf__request *request, const struct hf__crew *crew,
                             const struct schedules *schedules, hf_error *err)
{
    hf_code code = HF_OK;
    for (size_t i = 0; code == HF_OK && i < schedules->count; i++)
        code = set_schedule(request, crew, &schedules->items[i], err);
    return code;
}

/* ---- Joining ---- */

static bool is_family(const char *pattern)
{
    size_t length = strlen(pattern);
    return length == 0 || pattern[length - 1] == '*' || pattern[length - 1] == '.';
}

/* Those that are named in full, where they are new. */
static hf_code create_named(struct hf__request *request, const struct hf__crew *crew, hf_error *err)
{
    size_t count = 0;
    const char **names = hf__arena_calloc(&request->arena, crew->workflow_count, sizeof *names);
    if (!names)
        return hf__nomem(err);
    for (size_t i = 0; i < crew->workflow_count; i++)
        if (!is_family(crew->workflows[i]))
            names[count++] = crew->workflows[i];
    return hf__workflows_ensure(request->client, names, count, err);
}

hf_code hf__work_join(struct hf__request *request, hf_error *err)
{
    struct joining joining = { 0 };
    struct settings settings;
    struct schedules schedules;
    const struct hf__crew *crew = &joining.crew;
    hf_code code = hf__request_body(request, &joining, NULL, err);
    if (code == HF_OK)
        code = hf__crew_check(request, &joining.crew, 1, err);
    if (code == HF_OK)
        code = hf__crew_check_stuck(crew->stuck, err);
    if (code == HF_OK)
        code = read_settings(request, &joining, &settings, err);
    if (code == HF_OK)
        code = read_schedules(request, &joining, &schedules, err);
    if (code == HF_OK)
        code = create_named(request, crew, err);
    if (code == HF_OK)
        code = put_settings(request, &settings, err);
    if (code == HF_OK)
        code = set_schedules(request, crew, &schedules, err);
    if (code == HF_OK)
        code = hf__crew_put(request, crew, 0, err);
    if (code == HF_OK)
        code = hf__leases_end(request->client->engine, request->client->tenant_id, crew->name, err);
    return code == HF_OK ? hf__reply_nothing(request) : code;
}
