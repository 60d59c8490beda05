/* Runs: trigger, read, change.
 * SPDX-License-Identifier: Apache-2.0 */
#include "server/park.h"
#include "server/routes.h"
#include "server/wait.h"

#include "client/answer.h"
#include "client/check.h"
#include "client/coverage.h"
#include "client/read.h"
#include "client/trigger.h"

#include "util/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- Triggering ---- */

const struct hf__field hf__triggered_fields[] = {
    { "id", HF__FIELD_ID, offsetof(hf_triggered, id) },
    { "existed", HF__FIELD_BOOL, offsetof(hf_triggered, existed) },
    { "no_worker", HF__FIELD_BOOL, offsetof(hf_triggered, no_worker) },
    { "debounced", HF__FIELD_BOOL, offsetof(hf_triggered, debounced) },
    { NULL, HF__FIELD_TEXT, 0 },
};

/* The header of the same purpose as the key. */
static hf_code take_idempotency_key(const struct hf__request *request, hf_trigger_spec *spec,
                                    hf_error *err)
{
    const char *key = hf__request_header(request, "Idempotency-Key");
    if (key && spec->key && strcmp(key, spec->key) != 0)
        return hf__fail(err, HF_INVALID, "the key and the Idempotency-Key differ");
    spec->key = spec->key ? spec->key : key;
    return HF_OK;
}

struct triggering {
    struct hf__trigger_call call;
    hf_trigger_spec spec;
};

static hf_code reply_triggered(struct hf__request *request, const hf_triggered *triggered,
                               hf_error *err)
{
    char place[60] = "/v1/runs/";
    hf_id_format(triggered->id, place + strlen(place));
    hf__reply_header(request, "Location", place);
    hf__record_json(&request->out, hf__triggered_fields, triggered);
    return hf__reply_done(request, triggered->existed ? 200 : 201, err);
}

static void triggered_done(struct hf__trigger_call *call, void *arg)
{
    struct hf__request *request = arg;
    hf_code code = call->out.code;
    if (code == HF_OK)
        code = reply_triggered(request, &call->out, &call->err);
    if (code != HF_OK)
        hf__reply_problem(request, &call->err);
    hf__request_answered(request);
}

static hf_code read_trigger(struct hf__request *request, struct triggering **out, hf_error *err)
{
    struct triggering *new = hf__arena_calloc(&request->arena, 1, sizeof *new);
    if (!new)
        return hf__nomem(err);
    new->spec = (hf_trigger_spec)HF_TRIGGER_INIT;
    /* Proxies and tracers add it: one that is not well-formed is no reason to refuse the run. */
    const char *trace = hf__request_header(request, "traceparent");
    new->spec.trace = trace &&hf__trace_valid(trace) ? trace : NULL;
    hf_code code = hf__request_body(request, &new->spec, NULL, err);
    if (code == HF_OK)
        code = take_idempotency_key(request, &new->spec, err);
    new->call.done = triggered_done;
    new->call.arg = request;
    *out = request->kept = new;
    return code;
}

/* Nobody waits for the store: the flush that makes it durable answers. */
static hf_code trigger(struct hf__request *request, hf_error *err)
{
    struct triggering *new = request->kept;
    hf_code code = new ? HF_OK : read_trigger(request, &new, err);
    if (code != HF_OK)
        return code;
    if (request->at_once && new->spec.workflow &&
        !hf__covered_known(request->client, new->spec.workflow)) {
        request->to_hand = true;
        return HF_OK;
    }
    request->later = true;
    code = hf__trigger_submit(request->client, &new->call, &new->spec);
    if (code != HF_OK) {
        request->later = false;
        *err = new->call.err;
    }
    return code;
}

/* ---- Reading ---- */

static hf_code list(struct hf__request *request, hf_error *err)
{
    hf_filter filter = HF_FILTER_INIT;
    hf_runs *runs = NULL;
    hf_code code = hf__request_query(request, &filter, err);
    if (code == HF_OK)
        code = hf__list(request->client, &runs, &filter, hf__request_wants_little(request), err);
    if (code == HF_OK)
        code = hf__reply_list(request, hf__run_fields, runs->items, runs->count,
                              sizeof runs->items[0], runs->next, err);
    hf_runs_free(runs);
    return code;
}

struct get_query {
    int64_t wait;
};

static const struct hf__member get_members[] = {
    HF__MEMBER(struct get_query, wait, DURATION,
               "answer when the run has ended, or after this long at the latest; at most 60s"),
    HF__MEMBERS_END,
};

static hf_code get(struct hf__request *request, hf_error *err)
{
    struct get_query query = { 0 };
    hf_run *run = NULL;
    hf_id id;
    hf_code code = hf__request_run(request, &id, err);
    if (code == HF_OK)
        code = hf__request_query(request, &query, err);
    if (code == HF_OK && query.wait > 0)
        return hf__wait_for_end(request, id, query.wait, err);
    if (code == HF_OK)
        code = hf_get(request->client, &run, id, err);
    if (code == HF_OK)
        code = hf__reply_run(request, run, err);
    hf_run_free(run);
    return code;
}

static hf_code get_by_key(struct hf__request *request, hf_error *err)
{
    hf_run *run = NULL;
    hf_code code = hf_get_by_key(request->client, &run, request->args[0], request->args[1], err);
    if (code == HF_OK)
        code = hf__reply_run(request, run, err);
    hf_run_free(run);
    return code;
}

struct events_query {
    int64_t after;
    int limit;
};

static const struct hf__member events_members[] = {
    HF__MEMBER(struct events_query, after, INT64,
               "only those after this sequence number; `next` of the page before"),
    HF__MEMBER(struct events_query, limit, INT, "1 to 1000; default 100"),
    HF__MEMBERS_END,
};

static hf_code events(struct hf__request *request, hf_error *err)
{
    struct events_query query = { .limit = 100 };
    hf_events *found = NULL;
    bool more = false;
    hf_id id;
    hf_code code = hf__request_run(request, &id, err);
    if (code == HF_OK)
        code = hf__request_query(request, &query, err);
    const char *accepted = hf__request_header(request, "Accept");
    if (code == HF_OK && accepted && strstr(accepted, "text/event-stream"))
        return hf__follow_events(request, id, query.after, err);
    if (code == HF_OK)
        code = hf__events_list(request->client, &found, id, query.after, query.limit,
                               HF__PAGE_BYTES, &more, err);
    char next[24] = "";
    if (code == HF_OK && more)
        snprintf(next, sizeof next, "%" PRId64, found->items[found->count - 1].seq);
    if (code == HF_OK)
        code = hf__reply_list(request, hf__event_fields, found->items, found->count,
                              sizeof found->items[0], *next ? next : NULL, err);
    hf_events_free(found);
    return code;
}

/* ---- Changing ---- */

static const struct hf__member change_members[] = {
    HF__MEMBER(hf_change, reason, TEXT, "why, for the journal"),
    HF__MEMBERS_END,
};

/* Answers with the run as it is afterwards. */
static hf_code change(struct hf__request *request, hf_action action, hf_error *err)
{
    hf_change change = HF_CHANGE_INIT;
    hf_run *run = NULL;
    hf_id id;
    hf_code code = hf__request_run(request, &id, err);
    if (code == HF_OK)
        code = hf__request_body(request, &change, NULL, err);
    if (code == HF_OK)
        code = hf__request_if_match(request, &change.expected_revision, err);
    if (code == HF_OK)
        code = hf_change_run(request->client, id, action, &change, err);
    if (code == HF_OK)
        code = hf_get(request->client, &run, id, err);
    if (code == HF_OK)
        code = hf__reply_run(request, run, err);
    hf_run_free(run);
    return code;
}

#define CHANGE(name, action)                                                                       \
    static hf_code name(struct hf__request *request, hf_error *err)                                \
    {                                                                                              \
        return change(request, action, err);                                                       \
    }
CHANGE(cancel, HF_CANCEL)
CHANGE(pause_run, HF_PAUSE)
CHANGE(resume, HF_RESUME)
CHANGE(retry, HF_RETRY_RUN)
CHANGE(delete_run, HF_DELETE)
CHANGE(restore, HF_RESTORE)

static const struct hf__member signal_members[] = {
    HF__MEMBER(hf_signal_spec, name, TEXT, "what the run waits for", .required = true),
    HF__MEMBER(hf_signal_spec, id, TEXT, "a signal with an id that was seen before is dropped"),
    HF__MEMBER(hf_signal_spec, payload, JSON, "any JSON"),
    HF__MEMBER(hf_signal_spec, token, TEXT, "ignored unless the run waits with this token"),
    HF__MEMBER(hf_signal_spec, delay, DURATION, "the run sees it after this long"),
    HF__MEMBERS_END,
};

struct signalled {
    bool duplicate; /* its id was seen before */
};

static const struct hf__field signalled_fields[] = {
    { "duplicate", HF__FIELD_BOOL, offsetof(struct signalled, duplicate) },
    { NULL, HF__FIELD_TEXT, 0 },
};

static hf_code signal_run(struct hf__request *request, hf_error *err)
{
    hf_signal_spec spec = HF_SIGNAL_INIT;
    struct signalled signalled = { 0 };
    hf_id id;
    hf_code code = hf__request_run(request, &id, err);
    if (code == HF_OK)
        code = hf__request_body(request, &spec, NULL, err);
    if (code == HF_OK)
        code = hf__request_if_match(request, &spec.expected_revision, err);
    spec.id = spec.id ? spec.id : hf__request_header(request, "Idempotency-Key");
    if (code == HF_OK)
        code = hf_signal(request->client, id, &spec, &signalled.duplicate, err);
    return code == HF_OK ? hf__reply_record(request, signalled_fields, &signalled, err) : code;
}

#define ONE_RUN HF__ANSWERS(200, ONE, "Run", hf__run_fields)
#define SHOWN .headers = HF__HEADER_PREFER | HF__HEADER_ETAG
#define ACTION(word, handle_, summary_)                                                            \
    HF__ROUTE("runs", "POST", "/v1/runs/{id}/" word, word "Run", OPERATE, handle_, summary_,       \
              .details = "With If-Match it is refused (412) when the run was changed meanwhile.",  \
              .body = change_members,                                                              \
              .headers = HF__HEADER_IF_MATCH | HF__HEADER_PREFER | HF__HEADER_ETAG, ONE_RUN,       \
              .example = "{\"reason\":\"asked for by the customer\"}")

const struct hf__route hf__run_routes[] = {
    HF__ROUTE(
        "runs", "POST", "/v1/runs", "triggerRun", TRIGGER, trigger, "Trigger a run",
        .details =
            "The header Idempotency-Key is the same as `key`: 201 for a new run, 200 for one that "
            "was there. A header traceparent is kept with the run.",
        .quick = true, .body = hf__trigger_members, .also = 200,
        .headers = HF__HEADER_IDEMPOTENCY_KEY | HF__HEADER_TRACEPARENT | HF__HEADER_LOCATION,
        HF__ANSWERS(201, ONE, "Triggered", hf__triggered_fields),
        .example =
            "{\"workflow\":\"billing.charge.v1\",\"input\":{\"invoice\":42},\"tags\":[\"eu\"]}"),
    HF__ROUTE("runs", "GET", "/v1/runs", "listRuns", READ, list, "List runs, newest first",
              .details =
                  "Pages are stable while others write. A page whose runs hold more than 16 MiB of "
                  "input, state, result and error ends early; `next` goes on. With Prefer: "
                  "return=minimal these four are left out (null), and do not count.",
              .query = hf__filter_members, .headers = HF__HEADER_PREFER,
              HF__ANSWERS(200, LIST, "Run", hf__run_fields)),
    HF__ROUTE("runs", "GET", "/v1/runs/{id}", "getRun", READ, get,
              "Show a run, or wait for its end", .query = get_members, SHOWN, ONE_RUN),
    HF__ROUTE("runs", "GET", "/v1/workflows/{name}/runs/{key}", "getRunByKey", READ, get_by_key,
              "Show the run with a key", SHOWN, ONE_RUN),
    HF__ROUTE(
        "runs", "GET", "/v1/runs/{id}/events", "listEvents", READ, events,
        "The run's journal, or a stream of it",
        .details =
            "Lines that hold more than 16 MiB together are left to the next page; `next` is its "
            "`after`. With Accept: text/event-stream, what is there and then what comes, until the "
            "run has "
            "ended; the header Last-Event-ID goes on after that sequence number.",
        .query = events_members, .streams = true, .headers = HF__HEADER_LAST_EVENT_ID,
        HF__ANSWERS(200, LIST, "Event", hf__event_fields)),
    HF__ROUTE("runs", "POST", "/v1/runs/{id}/signals", "signalRun", TRIGGER, signal_run,
              "Send a signal to a run",
              .details = "202: it is durable. The header Idempotency-Key is the same as `id`.",
              .body = signal_members, .headers = HF__HEADER_IDEMPOTENCY_KEY | HF__HEADER_IF_MATCH,
              HF__ANSWERS(202, ONE, "Signalled", signalled_fields),
              .example = "{\"name\":\"approved\",\"payload\":{\"by\":\"ada\"}}"),
    ACTION("cancel", cancel, "Cancel a run and its children"),
    ACTION("pause", pause_run, "Pause a run"),
    ACTION("resume", resume, "Resume a paused run"),
    ACTION("retry", retry, "Try a failed or cancelled run again"),
    ACTION("delete", delete_run, "Delete a run softly"),
    ACTION("restore", restore, "Undo the delete"),
    HF__ROUTES_END,
};
