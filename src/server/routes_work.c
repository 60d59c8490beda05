/* The protocol of remote workers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "server/routes.h"
#include "server/work.h"

#include "util/error.h"
#include "util/json_members.h"

#include <holdfast/transition.h>

/* ---- Heartbeat ---- */

enum { MOST_HELD = 1000, HAS_STUCK = 1 };

struct beating {
    const char *worker;
    const char *runs; /* JSON */
    int stuck;
};

static const struct hf__member beat_members[] = {
    HF__MEMBER(struct beating, worker, TEXT, "who holds the runs", .required = true),
    HF__MEMBER(struct beating, runs, JSON, "objects with id, version and lease_us",
               .required = true),
    HF__MEMBER(struct beating, stuck, INT, "threads that the worker has given up",
               .bit = HAS_STUCK),
    HF__MEMBERS_END,
};

static const struct hf__member held_members[] = {
    { .name = "id", .kind = HF__FIELD_ID, .offset = offsetof(hf_held, run), .required = true },
    { .name = "version",
      .kind = HF__FIELD_INT64,
      .offset = offsetof(hf_held, run_version),
      .required = true },
    { .name = "lease_us",
      .kind = HF__FIELD_INT64,
      .offset = offsetof(hf_held, lease),
      .required = true },
    HF__MEMBERS_END,
};

/* Whether a run is still held: a code's name. */
struct still {
    hf_id id;
    const char *code;
};

static const struct hf__field still_fields[] = {
    { "id", HF__FIELD_ID, offsetof(struct still, id) },
    { "code", HF__FIELD_TEXT, offsetof(struct still, code) },
    { NULL, HF__FIELD_TEXT, 0 },
};

static hf_code beat(struct hf__request *request, hf_error *err)
{
    struct beating beating = { 0 };
    static const hf_held blank;
    hf_held *held = NULL;
    size_t count = 0;
    unsigned given = 0;
    hf_code code = hf__request_body(request, &beating, &given, err);
    if (code == HF_OK)
        code = hf__crew_check_stuck(beating.stuck, err);
    const struct hf__array runs = { "runs", beating.runs, held_members,
                                    &blank, sizeof blank, MOST_HELD };
    if (code == HF_OK)
        code = hf__request_array(request, &runs, &held, &count, err);
    if (code == HF_OK && count > 0)
        code = hf_heartbeat(request->client, held, count, err);
    if (code == HF_OK)
        code = hf__crew_seen(request, beating.worker, count,
                             given & HAS_STUCK ? &beating.stuck : NULL, err);
    if (code != HF_OK)
        return code;
    hf__buffer_add_text(&request->out, "{\"items\":[");
    for (size_t i = 0; i < count; i++) {
        const struct still still = { held[i].run, hf_code_name(held[i].code) };
        hf__buffer_add_text(&request->out, i ? "," : "");
        hf__record_json(&request->out, still_fields, &still);
    }
    hf__buffer_add_text(&request->out, "]}");
    return hf__reply_done(request, 200, err);
}

/* ---- Steps ---- */

struct saving {
    hf_step_record record;
    const char *request;
};

#define STEP(field, name_, kind_, about_, ...)                                                     \
    {                                                                                              \
        .name = name_, .kind = HF__FIELD_##kind_, .offset = offsetof(struct saving, record.field), \
        .about = about_, __VA_ARGS__                                                               \
    }

static const struct hf__member step_members[] = {
    STEP(worker, "worker", TEXT, "who holds the run", .required = true),
    STEP(run_version, "version", INT64, "of the claim", .required = true),
    STEP(name, "name", TEXT, "of the step", .required = true),
    STEP(status, "status", TEXT, "succeeded or failed", .required = true),
    STEP(data, "data", JSON, "what is remembered of it"),
    HF__MEMBER(struct saving, request, TEXT,
               "unique within the claim; sent again, nothing is recorded"),
    HF__MEMBERS_END,
};

static hf_code save_step(struct hf__request *request, hf_error *err)
{
    struct saving saving = { .request = NULL };
    hf_step_record *record = &saving.record;
    hf_code code = hf__request_id(request, 0, &record->run, err);
    if (code == HF_OK)
        code = hf__request_body(request, &saving, NULL, err);
    if (code == HF_OK && !(record->worker = hf__work_name(request, record->worker)))
        code = hf__nomem(err);
    if (code == HF_OK)
        code = hf_step_save_once(request->client, record, saving.request, err);
    return code == HF_OK ? hf__reply_nothing(request) : code;
}

#define WORK(path_, name_, handle_, summary_, ...)                                                 \
    HF__ROUTE("work", "POST", path_, name_, WORK, handle_, summary_, __VA_ARGS__)

const struct hf__route hf__work_routes[] = {
    WORK("/v1/work/join", "joinWork", hf__work_join, "Say that a worker has started",
         .details = "Workflows that are named in full are created if they are new.",
         .body = hf__work_join_members, HF__ANSWERS(204, NONE, NULL, NULL),
         .example = "{\"worker\":\"w1\",\"workflows\":[\"remote.v1\"],\"threads\":4}"),
    WORK("/v1/work/claim", "claimWork", hf__work_claim, "Claim due runs, or wait for some",
         .body = hf__work_claim_members, .parts = hf__claimed_parts,
         HF__ANSWERS(200, ITEMS, "ClaimedRun", hf__claimed_fields),
         .example = "{\"worker\":\"w1\",\"workflows\":[\"remote.*\"],\"limit\":10}"),
    WORK("/v1/work/heartbeat", "beatWork", beat, "Prolong the leases of held runs",
         .details =
             "Each is answered for itself: ok, or stale or cancelled for one that is held no more.",
         .body = beat_members, HF__ANSWERS(200, ITEMS, "StillHeld", still_fields),
         .example = "{\"worker\":\"w1\",\"runs\":[]}"),
    WORK("/v1/work/watch", "watchWork", hf__work_watch,
         "Hear which runs of a worker were cancelled, or wait for one",
         .details = "A hint: a heartbeat for these runs tells whether they are still held.",
         .body = hf__work_watch_members,
         HF__ANSWERS(200, ITEMS, "CancelledRun", hf__work_watch_fields),
         .example = "{\"worker\":\"w1\"}"),
    WORK("/v1/work/runs/{id}/step", "saveStep", save_step, "Record a step of a held run, durably",
         .body = step_members, HF__ANSWERS(204, NONE, NULL, NULL)),
    WORK("/v1/work/runs/{id}/commit", "commitTurn", hf__work_commit,
         "Say how a turn of a held run ended",
         .details = "All that it brings is written in one transaction. go_on keeps the run.",
         .body = hf__work_commit_members,
         HF__ANSWERS(200, ONE, "CommittedTurn", hf__committed_fields)),
    WORK("/v1/work/runs/{id}/fail", "failTurn", hf__work_fail,
         "Say that an attempt failed; the workflow's policy decides what follows",
         .body = hf__work_fail_members, HF__ANSWERS(200, ONE, "FailedAttempt", hf__attempt_fields)),
    WORK("/v1/work/runs/{id}/unfit", "leaveToOthers", hf__work_unfit,
         "Say that the worker's code does not fit the run's history",
         .details = "The run waits for a worker whose code fits, with growing pauses, and this "
                    "attempt does not count. It fails with history_mismatch once it has waited "
                    "for longer than its workflow's fit_within.",
         .body = hf__work_unfit_members, HF__ANSWERS(200, ONE, "LeftToOthers", hf__unfit_fields)),
    WORK("/v1/work/leave", "leaveWork", hf__work_leave, "Say that a worker has stopped",
         .body = hf__work_leave_members, HF__ANSWERS(204, NONE, NULL, NULL),
         .example = "{\"worker\":\"w1\"}"),
    HF__ROUTES_END,
};
