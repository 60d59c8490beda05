/* Ids, statuses and the records that are read from a store.
 * Times are microseconds since the epoch on the store's clock; 0 means "not set".
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HOLDFAST_TYPES_H
#define HOLDFAST_TYPES_H

#include <holdfast/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HF_MILLISECONDS(n) ((int64_t)(n)*INT64_C(1000))
#define HF_SECONDS(n) ((int64_t)(n)*INT64_C(1000000))
#define HF_MINUTES(n) HF_SECONDS((int64_t)(n)*60)
#define HF_HOURS(n) HF_MINUTES((int64_t)(n)*60)
#define HF_DAYS(n) HF_HOURS((int64_t)(n)*24)

/* A UUID of version 7. All zero: no id. */
typedef struct hf_id {
    uint8_t bytes[16];
} hf_id;

#define HF_ID_TEXT 37 /* bytes that hf_id_format writes, with the final NUL */

HF_PUBLIC void hf_id_format(hf_id id, char out[HF_ID_TEXT]);
HF_PUBLIC bool hf_id_parse(const char *text, hf_id *out) HF_MUST_CHECK;
HF_PUBLIC bool hf_id_is_zero(hf_id id);
HF_PUBLIC bool hf_id_equal(hf_id a, hf_id b);

/* Pending: until a worker takes it. Leased: a worker holds it. Waiting: for a signal, a time, children or a person. Paused:
 * until somebody resumes it. The others are ends. docs/lifecycle.md has all changes from one to another.
 * symbol, number in the store, name */
#define HF_STATUSES(X)                                                                             \
    X(HF_PENDING, 0, "pending")                                                                    \
    X(HF_LEASED, 1, "leased")                                                                      \
    X(HF_WAITING, 2, "waiting")                                                                    \
    X(HF_PAUSED, 3, "paused")                                                                      \
    X(HF_SUCCEEDED, 4, "succeeded")                                                                \
    X(HF_FAILED, 5, "failed")                                                                      \
    X(HF_CANCELLED, 6, "cancelled")

typedef enum hf_status {
#define HF_STATUS_ENUM(symbol, number, name) symbol = number,
    HF_STATUSES(HF_STATUS_ENUM)
#undef HF_STATUS_ENUM
} hf_status;

#define HF_STATUS_COUNT 7 /* their numbers are 0 to 6 */

HF_PUBLIC const char *hf_status_name(hf_status status);
HF_PUBLIC bool hf_status_parse(const char *name, hf_status *out) HF_MUST_CHECK;
HF_PUBLIC bool hf_status_finished(hf_status status);

/* One durable instance of a workflow. Strings are owned by the record; NULL where there is nothing. */
typedef struct hf_run {
    hf_id id;
    const char *tenant;
    const char *workflow;
    const char *key; /* the caller's identity for it */
    hf_status status;
    int priority;     /* higher is more urgent */
    int attempt;      /* counted at the claim */
    int max_attempts; /* in force: the run's own or the workflow's */
    int64_t version;  /* the fence */
    int64_t revision; /* the optimistic lock that clients see */
    /* When it wants attention next; while leased, the end of the lease; 0: only a signal wakes it. */
    int64_t run_at;
    int64_t lease_until; /* 0 unless leased */
    const char *leased_by;
    bool pause_requested; /* becomes paused at its next commit that does not finish it */
    const char *input;    /* JSON */
    const char *state;    /* JSON */
    const char *result;   /* JSON */
    const char *error;    /* JSON */
    const char *error_code;
    const char *last_error; /* one line for people */
    const char *current_step;
    const char *waiting_kind;  /* what for: signal, sleep, children, step... */
    const char *waiting_token; /* signals that name another are ignored; NULL: all are taken */
    int64_t waiting_until;     /* woken at this time at the latest */
    int wait_count;            /* ends of children that it still waits for */
    const char *last_worker;   /* that held it */
    const char *subject;       /* whom or what it is about */
    const char *reference;     /* the caller's business reference */
    const char *tags;          /* JSON array of strings */
    const char *partition;     /* the caller's own shard key */
    const char *trace;         /* W3C traceparent */
    const char *actor;         /* who triggered it */
    hf_id parent;
    hf_id root;         /* the first of its ancestors; zero: it has no parent */
    int64_t timeout_at; /* its deadline */
    int64_t created_at;
    int64_t started_at; /* first claim */
    int64_t updated_at;
    int64_t paused_at;
    int64_t finished_at;
    int64_t deleted_at;
    const char *delete_reason;
    const char *flow_key;     /* whose limits and share it counts against; not told by a claim */
    const char *debounce_key; /* it was triggered with; not told by a claim */
} hf_run;

/* A list of records with everything they point to; free it as a whole. */
typedef struct hf_runs {
    hf_run *items;
    size_t count;
    const char *next; /* cursor of the next page; NULL on the last */
} hf_runs;

typedef struct hf_event {
    hf_id run;
    int64_t seq;      /* 1, 2, 3... within its run */
    int64_t position; /* place among all events of the store */
    int64_t version;  /* the run's version after the change */
    const char *kind; /* lifecycle, domain, step, task, signal */
    const char *name;
    const char *actor;
    const char *step;
    const char *data; /* JSON */
    int64_t at;
} hf_event;

typedef struct hf_events {
    hf_event *items;
    size_t count;
} hf_events;

/* So many starts per interval. After a time of fewer starts, `burst` of them may come at once. */
typedef struct hf_rate {
    int count;        /* 0: no limit */
    int64_t interval; /* us */
    int burst;        /* 0: what the rate gives in a second, at least 1 */
} hf_rate;

typedef struct hf_workflow {
    const char *name;
    bool paused;
    int max_attempts;        /* default 3 */
    int64_t retry_base;      /* us; default 1 s */
    int64_t retry_cap;       /* us; default 5 min */
    int64_t lease;           /* us; default 30 s */
    int64_t timeout;         /* us from the trigger to the deadline; 0: none */
    int64_t retention;       /* us to keep finished runs; 0: forever */
    const char *dead_letter; /* the workflow started when a run has failed for good */
    const char *definition;  /* JSON or text of a declared model; NULL for code */
    int max_running;         /* runs held by workers at once, of all flow keys; 0: no limit */
    int fit_within; /* s that a run waits for a worker whose code fits its history before it fails; default
                       a day, 0: it fails at once */
    hf_rate rate;        /* starts, of all flow keys */
    int key_max_running; /* the same for each flow key by itself */
    hf_rate key_rate;
    int64_t created_at;
    int64_t updated_at;
    int64_t due; /* runs: these counts are filled by hf_workflow_get and hf_workflow_list, and end
                    at 10,000 */
    int64_t delayed; /* due later, or waiting with a time */
    int64_t leased;
    int64_t failed;
    int workers; /* live workers that serve it */
    int parked;  /* runs that wait without a time, for a signal, a child or a person, or are paused;
                    counted like those above */
    const char *weights; /* JSON: {"acme":3,"":2}, flow keys whose weight is not 1, the largest 100;
                            filled by hf_workflow_get */
    const char *on_cancel; /* the workflow started when a run is cancelled */
    /* What becomes of children that are at work when their parent ends: "leave" (NULL, the default) lets them go on, "cancel"
     * cancels them, with "fail" the run fails with the code children_left where it would have succeeded. */
    const char *children;
} hf_workflow;

typedef struct hf_workflows {
    hf_workflow *items;
    size_t count;
} hf_workflows;

typedef struct hf_worker_info {
    const char *name;
    const char *host;
    int pid;
    int stuck;           /* threads whose runs are gone and that do not come back */
    const char *program; /* version of the program */
    /* JSON array: ["*"] for all, else the one that asks; others are not named. */
    const char *tenants;
    const char *serves; /* JSON array of patterns */
    int threads;
    bool live; /* its heartbeat is not overdue */
    bool idle;
    bool draining;
    int64_t running; /* runs it holds */
    int64_t started_at;
    int64_t seen_at;
} hf_worker_info;

typedef struct hf_worker_list {
    hf_worker_info *items;
    size_t count;
} hf_worker_list;

typedef struct hf_tenant {
    const char *name;
    bool disabled;
    int64_t created_at;
} hf_tenant;

typedef struct hf_tenants {
    hf_tenant *items;
    size_t count;
} hf_tenants;

/* Each frees one answer and all it points to; NULL is accepted. */
HF_PUBLIC void hf_run_free(hf_run *run);
HF_PUBLIC void hf_runs_free(hf_runs *runs);
HF_PUBLIC void hf_events_free(hf_events *events);
HF_PUBLIC void hf_workflow_free(hf_workflow *workflow);
HF_PUBLIC void hf_workflows_free(hf_workflows *workflows);
HF_PUBLIC void hf_worker_list_free(hf_worker_list *workers);
HF_PUBLIC void hf_tenants_free(hf_tenants *tenants);

#ifdef __cplusplus
}
#endif
#endif
