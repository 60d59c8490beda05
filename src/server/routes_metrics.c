/* GET /metrics: what this process has done, and what waits in the store.
 * SPDX-License-Identifier: Apache-2.0 */
#include "client/client.h"
#include "server/access.h"
#include "server/exposition.h"
#include "server/inner.h"
#include "server/park.h"
#include "server/routes.h"
#include "server/survey.h"

#include <stdio.h>
#include <string.h>

/* Its name cannot be that of a workflow. */
static const char others[] = "(other)";

struct view {
    struct hf__buffer *out;
    struct hf__server *server;
    int tenant; /* the only one that is shown; 0: all, and what belongs to none */
    const struct hf__measure *measure; /* NULL: the store has never answered */
    bool up;
    char tenant_text[32]; /* for a tenant whose name is not known */
};

static bool is_shown(const struct view *view, int tenant)
{
    return view->tenant == 0 || view->tenant == tenant;
}

static const char *tenant_name(struct view *view, int tenant)
{
    const hf_client *client = view->server->client;
    for (size_t i = 0; view->measure && i < view->measure->count; i++)
        if (view->measure->items[i].tenant_id == tenant)
            return view->measure->items[i].tenant;
    if (tenant == client->tenant_id)
        return client->tenant;
    if (tenant == 0)
        return "";
    snprintf(view->tenant_text, sizeof view->tenant_text, "#%d", tenant);
    return view->tenant_text;
}

/* ---- This process ---- */

static const struct counter {
    const char *name;
    const char *help;
    size_t offset;
    const char *status; /* a family whose members differ by it; they follow each other */
} counters[] = {
    { "holdfast_runs_triggered_total", "Runs that this process made, children among them.",
      offsetof(struct hf__workflow_counts, triggered), NULL },
    { "holdfast_runs_started_total", "Turns of runs that were claimed through this process.",
      offsetof(struct hf__workflow_counts, started), NULL },
    { "holdfast_runs_finished_total", "Runs whose end was committed by this process.",
      offsetof(struct hf__workflow_counts, succeeded), "succeeded" },
    { "holdfast_runs_finished_total", NULL, offsetof(struct hf__workflow_counts, failed),
      "failed" },
    { "holdfast_runs_finished_total", NULL, offsetof(struct hf__workflow_counts, cancelled),
      "cancelled" },
    { "holdfast_runs_retried_total", "Attempts that failed and are followed by another.",
      offsetof(struct hf__workflow_counts, retried), NULL },
    { "holdfast_leases_lost_total", "Turns whose holder here had lost its lease.",
      offsetof(struct hf__workflow_counts, lost), NULL },
    { "holdfast_leases_expired_total",
      "Runs taken over from a holder that did not prolong its lease.",
      offsetof(struct hf__workflow_counts, expired), NULL },
};

static int64_t count_at(const struct hf__workflow_counts *counts, size_t offset)
{
    const atomic_uint_fast64_t *counter =
        (const atomic_uint_fast64_t *)(const void *)((const char *)counts + offset);
    return (int64_t)atomic_load_explicit(counter, memory_order_relaxed);
}

static void add_labels(struct view *view, const struct hf__workflow_counts *counts,
                       struct hf__label labels[4], const char *status)
{
    labels[0] = (struct hf__label){ "tenant", tenant_name(view, counts->tenant) };
    labels[1] = (struct hf__label){ "workflow", counts->tenant ? counts->name : others };
    labels[2] = (struct hf__label){ status ? "status" : NULL, status };
    labels[3] = (struct hf__label){ NULL, NULL };
}

static void show_counter(struct view *view, const struct counter *counter)
{
    const struct hf__workflow_counts *counts;
    size_t cursor = 0;
    struct hf__label labels[4];
    if (counter->help)
        hf__expose_family(view->out, counter->name, "counter", counter->help);
    while ((counts = hf__metrics_next(hf__engine_metrics(view->server->client->engine), &cursor)))
        if (is_shown(view, counts->tenant)) {
            add_labels(view, counts, labels, counter->status);
            hf__expose(view->out, counter->name, labels, count_at(counts, counter->offset));
        }
}

static void show_span(struct view *view, const char *name, const char *help, size_t offset)
{
    const struct hf__workflow_counts *counts;
    size_t cursor = 0;
    struct hf__label labels[4];
    hf__expose_family(view->out, name, "histogram", help);
    while ((counts = hf__metrics_next(hf__engine_metrics(view->server->client->engine), &cursor)))
        if (is_shown(view, counts->tenant)) {
            add_labels(view, counts, labels, NULL);
            hf__expose_histogram(
                view->out, name, labels,
                (const struct hf__histogram *)(const void *)((const char *)counts + offset),
                hf__time_bounds);
        }
}

static void show_workflows(struct view *view)
{
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        show_counter(view, &counters[i]);
    show_span(view, "holdfast_run_wait_seconds",
              "From the time a run was due until it was claimed.",
              offsetof(struct hf__workflow_counts, wait));
    show_span(view, "holdfast_run_duration_seconds", "Time in handlers of this process, per turn.",
              offsetof(struct hf__workflow_counts, run));
}

static void show_one(struct view *view, const char *name, const char *type, const char *help,
                     int64_t value)
{
    hf__expose_family(view->out, name, type, help);
    hf__expose(view->out, name, NULL, value);
}

static void show_engine(struct view *view)
{
    const struct hf__engine *engine = view->server->client->engine;
    const struct hf__metrics *metrics = hf__engine_metrics(engine);
    struct hf__pool_use use = hf__engine_pool_use(engine);
    hf__expose_family(view->out, "holdfast_flush_duration_seconds", "histogram",
                      "Time of one transaction that applies what has gathered.");
    hf__expose_histogram(view->out, "holdfast_flush_duration_seconds", NULL, &metrics->flush_time,
                         hf__time_bounds);
    hf__expose_family(view->out, "holdfast_flush_operations", "histogram",
                      "Operations that one transaction applied.");
    hf__expose_histogram(view->out, "holdfast_flush_operations", NULL, &metrics->flush_size,
                         hf__size_bounds);
    show_one(view, "holdfast_pool_connections_open", "gauge",
             "Connections for reading that are open.", use.open);
    show_one(view, "holdfast_pool_connections_idle", "gauge", "Those that nobody uses.", use.idle);
    show_one(view, "holdfast_pool_waits_total", "counter",
             "How often all connections for reading were in use.", use.waited);
}

static void show_server(struct view *view)
{
    static const char *const classes[HF__STATUS_CLASSES] = { "1xx", "2xx", "3xx", "4xx", "5xx" };
    struct hf__server *server = view->server;
    const char *name = "holdfast_http_requests_total";
    hf__expose_family(view->out, name, "counter", "Requests that were answered.");
    for (size_t i = 0; i <= server->route_count; i++)
        for (int class = 0; class < HF__STATUS_CLASSES; class ++) {
            const struct hf__route *route = hf__route_at(i);
            uint64_t count =
                atomic_load(&server->requests[i * HF__STATUS_CLASSES + (size_t) class]);
            const struct hf__label labels[] = {
                { "method", route->method ? route->method : "" },
                { "route", route->method ? route->path : "(none)" },
                { "status", classes[class] },
                { NULL, NULL },
            };
            if (count)
                hf__expose(view->out, name, labels, (int64_t)count);
        }
    show_one(view, "holdfast_http_requests_parked", "gauge",
             "Requests that wait for something to happen.", hf__park_count(server->park));
    show_one(view, "holdfast_http_streams_open", "gauge", "Streams of events that are being sent.",
             atomic_load(&server->streams));
    hf__expose_family(view->out, "process_start_time_seconds", "gauge",
                      "When the process was started, since the epoch.");
    hf__expose_seconds(view->out, "process_start_time_seconds", NULL, server->started_at);
}

/* ---- The store ---- */

static const struct gauge {
    const char *name;
    const char *help;
    size_t offset;
} gauges[] = {
    { "holdfast_runs_due", "Runs that could be started now.", offsetof(struct hf__depth, due) },
    { "holdfast_runs_delayed", "Runs that start later, or wait with a time limit.",
      offsetof(struct hf__depth, delayed) },
    { "holdfast_runs_leased", "Runs that somebody works on.", offsetof(struct hf__depth, leased) },
    { "holdfast_runs_failed", "Runs that have failed and were not purged.",
      offsetof(struct hf__depth, failed) },
    { "holdfast_mail_unconsumed", "Signals, timers and ends of children that no run has taken.",
      offsetof(struct hf__depth, mail) },
    { "holdfast_dead_letters", "Signals that no run could handle.",
      offsetof(struct hf__depth, dead_letters) },
};

static int64_t depth_at(const struct hf__depth *depth, size_t offset)
{
    return *(const int64_t *)(const void *)((const char *)depth + offset);
}

static struct hf__label *depth_labels(const struct hf__depth *depth, struct hf__label labels[3])
{
    labels[0] = (struct hf__label){ "tenant", depth ? depth->tenant : "" };
    labels[1] = (struct hf__label){ "workflow", depth ? depth->workflow : others };
    labels[2] = (struct hf__label){ NULL, NULL };
    return labels;
}

/* Those that are too many are added up; of ages the greatest stands for all. */
static void show_depths(struct view *view, const struct gauge *gauge)
{
    struct hf__label labels[3];
    int64_t rest = 0;
    size_t shown = 0;
    hf__expose_family(view->out, gauge->name, "gauge", gauge->help);
    for (size_t i = 0; i < view->measure->count; i++) {
        const struct hf__depth *depth = &view->measure->items[i];
        if (!is_shown(view, depth->tenant_id))
            continue;
        if (shown++ < HF__METRIC_WORKFLOWS)
            hf__expose(view->out, gauge->name, depth_labels(depth, labels),
                       depth_at(depth, gauge->offset));
        else
            rest += depth_at(depth, gauge->offset);
    }
    if (shown > HF__METRIC_WORKFLOWS)
        hf__expose(view->out, gauge->name, depth_labels(NULL, labels), rest);
}

static void show_ages(struct view *view)
{
    const char *name = "holdfast_oldest_due_seconds";
    struct hf__label labels[3];
    int64_t greatest = 0;
    size_t shown = 0;
    hf__expose_family(view->out, name, "gauge",
                      "For how long the oldest run that nobody works on has been due.");
    for (size_t i = 0; i < view->measure->count; i++) {
        const struct hf__depth *depth = &view->measure->items[i];
        int64_t age = depth->oldest ? view->measure->now - depth->oldest : 0;
        if (!is_shown(view, depth->tenant_id))
            continue;
        if (shown++ < HF__METRIC_WORKFLOWS)
            hf__expose_seconds(view->out, name, depth_labels(depth, labels), age);
        else
            greatest = age > greatest ? age : greatest;
    }
    if (shown > HF__METRIC_WORKFLOWS)
        hf__expose_seconds(view->out, name, depth_labels(NULL, labels), greatest);
}

static void show_totals(struct view *view)
{
    const struct hf__measure *measure = view->measure;
    show_one(view, "holdfast_outbox_undelivered", "gauge", "Events that were not delivered yet.",
             measure->undelivered);
    hf__expose_family(view->out, "holdfast_outbox_oldest_seconds", "gauge",
                      "For how long the oldest of them has been waiting.");
    hf__expose_seconds(view->out, "holdfast_outbox_oldest_seconds", NULL,
                       measure->oldest_undelivered ? measure->now - measure->oldest_undelivered
                                                   : 0);
    show_one(view, "holdfast_workers_live", "gauge", "Workers that are heard of.",
             measure->workers);
    show_one(view, "holdfast_worker_threads", "gauge", "Runs that they can work on at once.",
             measure->threads);
    show_one(view, "holdfast_worker_threads_stuck", "gauge",
             "Threads whose run is gone and that do not come back.", measure->stuck);
}

static void show_store(struct view *view)
{
    show_one(view, "holdfast_store_up", "gauge", "Whether the store answered, 1, or not, 0.",
             view->up);
    if (!view->up)
        return;
    for (size_t i = 0; i < sizeof gauges / sizeof *gauges; i++)
        show_depths(view, &gauges[i]);
    show_ages(view);
    if (view->tenant == 0)
        show_totals(view);
}

static hf_code metrics(struct hf__request *request, hf_error *err)
{
    struct hf__server *server = request->server;
    bool all = request->caller->may & HF__MAY_ROOT;
    struct view view = {
        .out = &request->out,
        .server = server,
        .tenant = all ? 0 : request->client->tenant_id,
    };
    view.measure = hf__survey_look(server->survey, &view.up);
    show_workflows(&view);
    show_engine(&view);
    show_server(&view);
    show_store(&view);
    hf__survey_done(server->survey);
    request->type = HF__EXPOSITION_TYPE;
    return hf__reply_done(request, 200, err);
}

const struct hf__route hf__metrics_routes[] = {
    HF__ROUTE("system", "GET", "/metrics", "getMetrics", READ, metrics,
              "Metrics for Prometheus, in its text format 0.0.4",
              HF__ANSWERS(200, TEXT, NULL, NULL),
              .details = "Counters of this process and gauges of the store; who may not see all "
                         "tenants sees their own."),
    HF__ROUTES_END,
};
