/* Many runs at once, and what belongs to a run: steps, children, forks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "server/routes.h"

#include "client/answer.h"
#include "client/read.h"
#include "record/step_lines.h"
#include "server/request.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/json.h"
#include "util/json_members.h"

#include <stdio.h>
#include <string.h>

/* ---- Triggering many ---- */

enum { MOST_TRIGGERS = 10000 };

struct batch {
    const char *runs; /* JSON array */
    hf_trigger_spec *specs;
    hf_triggered *answers;
    size_t count;
};

static const struct hf__member batch_members[] = {
    HF__MEMBER(struct batch, runs, JSON, "up to 10,000 objects as for triggering one",
               .required = true),
    HF__MEMBERS_END,
};

static hf_code read_specs(struct hf__request *request, struct batch *batch, hf_error *err)
{
    static const hf_trigger_spec blank = HF_TRIGGER_INIT;
    const struct hf__array runs = { "runs", batch->runs,  hf__trigger_members,
                                    &blank, sizeof blank, MOST_TRIGGERS };
    hf_code code = hf__request_array(request, &runs, &batch->specs, &batch->count, err);
    if (code == HF_OK)
        batch->answers =
            hf__arena_calloc(&request->arena, batch->count + 1, sizeof *batch->answers);
    return code == HF_OK && !batch->answers ? hf__nomem(err) : code;
}

static void add_triggered(struct hf__buffer *out, const hf_triggered *triggered)
{
    if (triggered->code == HF_OK) {
        hf__record_json(out, hf__triggered_fields, triggered);
        return;
    }
    hf__buffer_addf(out, "{\"code\":\"%s\",\"message\":", hf_code_name(triggered->code));
    hf__json_add_text(out, triggered->error.message);
    hf__buffer_add_text(out, "}");
}

static hf_code trigger_many(struct hf__request *request, hf_error *err)
{
    struct batch batch = { 0 };
    hf_error first = { 0 };
    hf_code code = hf__request_body(request, &batch, NULL, err);
    if (code == HF_OK)
        code = read_specs(request, &batch, err);
    if (code != HF_OK)
        return code;
    code = hf_trigger_many(request->client, batch.answers, batch.specs, batch.count, &first);
    if (code == HF_UNAVAILABLE || code == HF_NOMEM) {
        *err = first;
        return code;
    }
    hf__buffer_add_text(&request->out, "{\"items\":[");
    for (size_t i = 0; i < batch.count; i++) {
        hf__buffer_add_text(&request->out, i > 0 ? "," : "");
        add_triggered(&request->out, &batch.answers[i]);
    }
    hf__buffer_add_text(&request->out, "],\"next\":null}");
    return hf__reply_done(request, 200, err);
}

/* ---- Changing many ---- */

#define LONGEST_BULK HF_SECONDS(20) /* for one request; the caller goes on with another */

struct bulk {
    const char *action;
    const char *filter; /* JSON */
    const char *reason;
    bool dry_run;
    int64_t until; /* monotonic us */
};

static const struct hf__member bulk_members[] = {
    HF__MEMBER(struct bulk, action, TEXT, "cancel, pause, resume, retry, delete or restore",
               .required = true),
    HF__MEMBER(struct bulk, filter, JSON, "an object with the filters of listRuns; not empty",
               .required = true),
    HF__MEMBER(struct bulk, reason, TEXT, "why, for the journals"),
    HF__MEMBER(struct bulk, dry_run, BOOL, "only count"),
    HF__MEMBERS_END,
};

struct bulk_answer {
    hf_bulk_result result;
    bool complete;    /* there is no more to do */
    const char *next; /* where to go on; NULL: complete */
};

static const struct hf__field bulk_fields[] = {
    { "matched", HF__FIELD_INT64, offsetof(struct bulk_answer, result.matched) },
    { "changed", HF__FIELD_INT64, offsetof(struct bulk_answer, result.changed) },
    { "refused", HF__FIELD_INT64, offsetof(struct bulk_answer, result.refused) },
    { "complete", HF__FIELD_BOOL, offsetof(struct bulk_answer, complete) },
    { "next", HF__FIELD_TEXT, offsetof(struct bulk_answer, next) },
    { NULL, HF__FIELD_TEXT, 0 },
};

static hf_code read_action(const char *name, hf_action *out, hf_error *err)
{
    for (int action = HF_CANCEL; action <= HF_RESTORE; action++)
        if (strcmp(hf_action_name((hf_action)action), name) == 0) {
            *out = (hf_action)action;
            return HF_OK;
        }
    return hf__fail(err, HF_INVALID, "there is no action \"%.60s\"", name);
}

static bool go_on(const hf_bulk_result *so_far, void *arg)
{
    const struct bulk *bulk = arg;
    (void)so_far;
    return hf__monotonic_us() <= bulk->until;
}

/* Whether it leaves any run out; where a list begins and how long it is does not count. */
static bool chooses(const hf_filter *filter)
{
    return filter->statuses || filter->workflow || (filter->prefix && *filter->prefix) ||
           filter->key || filter->flow_key || filter->subject || filter->reference || filter->tag ||
           filter->current_step || !hf_id_is_zero(filter->parent) || filter->created_after ||
           filter->created_before || filter->overdue || filter->deleted;
}

static hf_code bulk(struct hf__request *request, hf_error *err)
{
    struct bulk bulk = { .until = hf__monotonic_us() + LONGEST_BULK };
    hf_filter filter = HF_FILTER_INIT;
    hf_change change = HF_CHANGE_INIT;
    struct bulk_answer answer = { 0 };
    char next[HF_ID_TEXT] = "";
    hf_action action = HF_CANCEL;
    hf_code code = hf__request_body(request, &bulk, NULL, err);
    if (code == HF_OK)
        code = read_action(bulk.action, &action, err);
    if (code == HF_OK)
        code = hf__members_read(&filter, hf__filter_members, &request->arena, bulk.filter,
                                strlen(bulk.filter), NULL, err);
    if (code == HF_OK && !chooses(&filter))
        code = hf__fail(err, HF_INVALID, "\"filter\" must choose something");
    change.reason = bulk.reason;
    if (code == HF_OK && bulk.dry_run)
        code = hf_bulk(request->client, &answer.result, &filter, action, &change, true, NULL, NULL,
                       err);
    else if (code == HF_OK)
        code = hf_bulk_part(request->client, &answer.result, next, &filter, action, &change, go_on,
                            &bulk, err);
    if (code != HF_OK)
        return code;
    answer.complete = next[0] == '\0';
    answer.next = answer.complete ? NULL : next;
    return hf__reply_record(request, bulk_fields, &answer, err);
}

/* ---- Steps ---- */

struct steps_query {
    int64_t cursor; /* how many steps are before the page */
};

static const struct hf__member steps_members[] = {
    HF__MEMBER(struct steps_query, cursor, INT64, "`next` of the page before"),
    HF__MEMBERS_END,
};

static hf_code reply_steps(struct hf__request *request, const struct hf__step_lines *lines,
                           hf_error *err)
{
    char next[24];
    size_t first = lines->first < lines->count ? lines->first : lines->count;
    size_t end = lines->end < lines->count ? lines->end : lines->count;
    snprintf(next, sizeof next, "%zu", end);
    return hf__reply_list(request, hf__step_fields, end > first ? &lines->items[first] : NULL,
                          end - first, sizeof *lines->items, end < lines->count ? next : NULL, err);
}

static hf_code steps(struct hf__request *request, hf_error *err)
{
    struct hf__step_lines lines = HF__STEP_LINES_INIT;
    struct steps_query query = { 0 };
    int64_t seq = 0;
    hf_id id;
    hf_code code = hf__request_run(request, &id, err);
    if (code == HF_OK)
        code = hf__request_query(request, &query, err);
    if (code == HF_OK && query.cursor < 0)
        code = hf__fail(err, HF_INVALID, "a cursor is the `next` of the page before");
    lines.first = (size_t)query.cursor;
    lines.room = HF__PAGE_BYTES;
    if (code == HF_OK)
        code = hf__step_lines_read(request->client, &lines, id, &seq, err);
    if (code == HF_OK && lines.failed)
        code = hf__nomem(err);
    if (code == HF_OK)
        code = reply_steps(request, &lines, err);
    hf__step_lines_free(&lines);
    return code;
}

/* ---- Children ---- */

/* A number for each status, in the order of an array of them. */
static const struct hf__field count_fields[] = {
#define COUNT_FIELD(symbol, number, name) { name, HF__FIELD_INT64, (number) * sizeof(int64_t) },
    HF_STATUSES(COUNT_FIELD)
#undef COUNT_FIELD
        { NULL, HF__FIELD_TEXT, 0 },
};

/* A page as hf__reply_list makes it, and the counts. */
static const struct hf__field page_fields[] = {
    { "next", HF__FIELD_TEXT, offsetof(hf_runs, next) },
    { NULL, HF__FIELD_TEXT, 0 },
};

static const struct hf__part page_parts[] = {
    { .name = "items", .schema = "Run", .fields = hf__run_fields, .many = true },
    { .name = "counts", .schema = "ChildCounts", .fields = count_fields },
    { .name = NULL },
};

static hf_code add_counts(struct hf__request *request, const int64_t counts[HF_STATUS_COUNT],
                          hf_error *err)
{
    /* In place of the brace that ends the list. */
    request->out.length--;
    hf__buffer_add_text(&request->out, ",\"counts\":");
    hf__record_json(&request->out, count_fields, counts);
    hf__buffer_add_text(&request->out, "}");
    return hf__reply_done(request, 200, err);
}

static hf_code children(struct hf__request *request, hf_error *err)
{
    hf_filter filter = HF_FILTER_INIT;
    hf_runs *runs = NULL;
    hf_run *parent = NULL;
    int64_t counts[HF_STATUS_COUNT];
    hf_id id;
    hf_code code = hf__request_run(request, &id, err);
    if (code == HF_OK)
        code = hf_get(request->client, &parent, id, err);
    if (code == HF_OK)
        code = hf__request_query(request, &filter, err);
    filter.parent = id;
    if (code == HF_OK)
        code = hf__list(request->client, &runs, &filter, hf__request_wants_little(request), err);
    if (code == HF_OK)
        code = hf_child_counts(request->client, counts, id, err);
    if (code == HF_OK)
        code = hf__reply_list(request, hf__run_fields, runs->items, runs->count,
                              sizeof runs->items[0], runs->next, err);
    if (code == HF_OK)
        code = add_counts(request, counts, err);
    hf_runs_free(runs);
    hf_run_free(parent);
    return code;
}

/* ---- Forks ---- */

struct fork_body {
    const char *step;
    hf_fork_options options;
};

static const struct hf__member fork_members[] = {
    HF__MEMBER(struct fork_body, step, TEXT, "steps before it are kept; none: start afresh"),
    { .name = "input",
      .kind = HF__FIELD_JSON,
      .offset = offsetof(struct fork_body, options.input),
      .about = "in place of the old run's" },
    { .name = "key",
      .kind = HF__FIELD_TEXT,
      .offset = offsetof(struct fork_body, options.key),
      .about = "of the new run" },
    { .name = "reason",
      .kind = HF__FIELD_TEXT,
      .offset = offsetof(struct fork_body, options.reason),
      .about = "why, for the journal" },
    HF__MEMBERS_END,
};

static hf_code fork_run(struct hf__request *request, hf_error *err)
{
    struct fork_body body = { .options = HF_FORK_INIT };
    hf_triggered triggered;
    hf_id id;
    hf_code code = hf__request_run(request, &id, err);
    if (code == HF_OK)
        code = hf__request_body(request, &body, NULL, err);
    if (code == HF_OK)
        code = hf_fork(request->client, &triggered, id, body.step, &body.options, err);
    return code == HF_OK ? hf__reply_record(request, hf__triggered_fields, &triggered, err) : code;
}

const struct hf__route hf__many_routes[] = {
    HF__ROUTE("runs", "POST", "/v1/runs/batch", "triggerRuns", TRIGGER, trigger_many,
              "Trigger many runs",
              .details = "Each is accepted or refused by itself: an item of the answer has an id, "
                         "or a code and a "
                         "message.",
              .body = batch_members, .refusals = true,
              HF__ANSWERS(200, LIST, "Triggered", hf__triggered_fields),
              .example = "{\"runs\":[{\"workflow\":\"billing.charge.v1\",\"input\":1},"
                         "{\"workflow\":\"billing.charge.v1\",\"input\":2}]}"),
    HF__ROUTE(
        "runs", "POST", "/v1/runs/bulk", "changeRuns", OPERATE, bulk,
        "Cancel, pause, resume, retry, delete or restore all runs that match",
        .details =
            "Works for 20 s at most. When there is more to do, `complete` is false, and `next` the "
            "`cursor` to be put into `filter`: send it again with that, and it goes on where it "
            "was. `matched` counts all that match before anything is changed; of a request with a "
            "cursor, those that it came by.",
        .pace = HF__PACE_SLOW, .body = bulk_members, HF__ANSWERS(200, ONE, "Bulk", bulk_fields),
        .example = "{\"action\":\"retry\",\"filter\":{\"status\":[\"failed\"],"
                   "\"workflow\":\"billing.charge.v1\"},\"dry_run\":true}"),
    HF__ROUTE("runs", "GET", "/v1/runs/{id}/steps", "listSteps", READ, steps,
              "What the run remembers of its work",
              .details = "A page ends early where its steps hold more than 16 MiB.",
              .query = steps_members, HF__ANSWERS(200, LIST, "Step", hf__step_fields)),
    HF__ROUTE("runs", "GET", "/v1/runs/{id}/children", "listChildren", READ, children,
              "The run's children, newest first",
              .details = "`counts` tells how many there are in each status.",
              .query = hf__filter_members, .headers = HF__HEADER_PREFER,
              HF__ANSWERS(200, ONE, "Children", page_fields), .parts = page_parts),
    HF__ROUTE("runs", "POST", "/v1/runs/{id}/fork", "forkRun", OPERATE, fork_run,
              "Start a new run that keeps the steps before a chosen one", .body = fork_members,
              HF__ANSWERS(201, ONE, "Triggered", hf__triggered_fields),
              .example = "{\"reason\":\"the card was replaced\"}"),
    HF__ROUTES_END,
};
