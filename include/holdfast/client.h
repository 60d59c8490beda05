/* A client: triggers runs, reads them, changes them. Bound to one tenant and one actor.
 *
 * Ownership: `T **out` comes first and is yours to free; `const` is borrowed for the call; `x_free(NULL)` is safe.
 * A handle may be used by many threads at once. Nothing is answered HF_OK before it is durable.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HOLDFAST_CLIENT_H
#define HOLDFAST_CLIENT_H

#include <holdfast/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hf_client hf_client;

typedef struct hf_options {
    int version;           /* HF_OPTIONS_VERSION */
    const char *tenant;    /* default "default"; must exist */
    const char *actor;     /* who acts, for the journal; default the user's name */
    bool no_migrate;       /* refuse an older schema instead of bringing it up to date */
    int max_open;          /* connections, PostgreSQL; at least 4; 0: the URL's, or 8 */
    int max_idle;          /* kept open when unused; 0: the URL's, or 4 */
    int64_t max_lifetime;  /* us until one is replaced, at least 1 s; 0: the URL's, or never */
    size_t max_payload;    /* bytes of one input, state, result or signal; default 1 MiB */
    int64_t connect_limit; /* us to wait for a store that is away, or a locked run; default 5 s */
} hf_options;

#define HF_OPTIONS_VERSION 1
#define HF_OPTIONS_INIT                                                                            \
    {                                                                                              \
        HF_OPTIONS_VERSION, NULL, NULL, false, 0, 0, 0, 0, 0                                       \
    }

/* Opens a store: "sqlite:orders.db", "sqlite::memory:", "postgres://user@host/db",
 * "postgres:///db?host=/run/postgresql". Creates or migrates its schema unless told not to. */
HF_PUBLIC hf_code hf_open(hf_client **out, const char *url, const hf_options *options,
                          hf_error *err) HF_MUST_CHECK;
/* Another client of the same store and connections, for another tenant or actor (NULL: as in `base`). */
HF_PUBLIC hf_code hf_open_as(hf_client **out, hf_client *base, const char *tenant,
                             const char *actor, hf_error *err) HF_MUST_CHECK;
/* Waits for operations under way. The store closes with its last client. */
HF_PUBLIC void hf_close(hf_client *client);

/* The library's version, "0.1.0". */
HF_PUBLIC const char *hf_library_version(void);
/* The schema's version in the store and the newest one this library knows. */
HF_PUBLIC hf_code hf_schema(hf_client *client, int *in_store, int *newest,
                            hf_error *err) HF_MUST_CHECK;
/* The store's clock, us since the epoch. */
HF_PUBLIC hf_code hf_store_now(hf_client *client, int64_t *out, hf_error *err) HF_MUST_CHECK;

/* ---- Triggering ---- */

typedef struct hf_trigger_spec {
    int version;          /* HF_TRIGGER_VERSION */
    const char *workflow; /* required */
    const char *input;    /* JSON; NULL means null */
    const char *key;      /* identity among the workflow's runs that are not deleted; NULL: none */
    int priority;         /* -1000..1000, higher is more urgent */
    int64_t run_at;       /* not before; 0: now */
    int64_t delay;        /* us from now; used when run_at is 0 */
    int64_t timeout_at;   /* deadline; 0: by `timeout`, else the workflow's */
    int64_t timeout;      /* us from now */
    int max_attempts;     /* 0: the workflow's */
    const char *subject;
    const char *reference; /* business reference */
    const char *const *tags;
    size_t tag_count;
    const char *partition; /* the caller's own shard key */
    const char *trace;     /* W3C traceparent */
    bool require_worker;   /* refuse with HF_NO_WORKER when nobody live could run it */
    const char *flow_key;  /* limits and fair shares go by it, such as a customer; NULL: none */
    /* Debounce: while a run of the workflow with this key has not begun, a further trigger with it starts none, but gives
     * that run its own input and puts its start off to debounce_for us from now. NULL: none. Excludes run_at and delay;
     * not for children and schedules. */
    const char *debounce_key;
    int64_t debounce_for;     /* us */
    int64_t debounce_at_most; /* us from the first trigger: put off no longer; 0: without limit */
} hf_trigger_spec;

#define HF_TRIGGER_VERSION 1
#define HF_TRIGGER_INIT                                                                            \
    {                                                                                              \
        HF_TRIGGER_VERSION, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, 0, NULL, NULL,   \
            false, NULL, NULL, 0, 0                                                                \
    }

typedef struct hf_triggered {
    hf_id id;
    hf_code code;   /* how this one ended; HF_OK: accepted */
    bool existed;   /* a run with this key and input was there already; `id` is its id */
    bool no_worker; /* accepted, but no live worker could run it now */
    bool debounced; /* a run that had not begun has this input now; `id` is its id */
    hf_error error; /* why this one was refused; filled unless code is HF_OK */
} hf_triggered;

/* Starts a run, or finds the one with the same key and input. HF_CONFLICT: the key is taken with another input. */
HF_PUBLIC hf_code hf_trigger(hf_client *client, hf_triggered *out, const hf_trigger_spec *spec,
                             hf_error *err) HF_MUST_CHECK;
/* Each is accepted or refused by itself: see out[i].code and out[i].error. Returns the failure of the first that was
 * refused; `err` tells which one it was. */
HF_PUBLIC hf_code hf_trigger_many(hf_client *client, hf_triggered *out,
                                  const hf_trigger_spec *specs, size_t count,
                                  hf_error *err) HF_MUST_CHECK;

/* ---- Reading ---- */

/* HF_NOT_FOUND: no such run in this tenant. A deleted run is found by its id, not by its key. */
HF_PUBLIC hf_code hf_get(hf_client *client, hf_run **out, hf_id id, hf_error *err) HF_MUST_CHECK;
HF_PUBLIC hf_code hf_get_by_key(hf_client *client, hf_run **out, const char *workflow,
                                const char *key, hf_error *err) HF_MUST_CHECK;

typedef struct hf_filter {
    int version;          /* HF_FILTER_VERSION */
    unsigned statuses;    /* bit (1u << status); 0: any */
    const char *workflow; /* exact name */
    const char *prefix;   /* of the workflow's name */
    const char *key;
    const char *subject;
    const char *reference;
    const char *tag;
    const char *current_step;
    hf_id parent;
    int64_t created_after;  /* inclusive; 0: any */
    int64_t created_before; /* exclusive; 0: any */
    bool overdue;           /* due but not begun, or past the deadline */
    bool deleted;           /* the deleted ones instead of the others */
    const char *cursor;     /* hf_runs.next of the page before; NULL: newest first */
    int limit;              /* 1..1000; default 50 */
    const char *flow_key;
} hf_filter;

#define HF_FILTER_VERSION 1
#define HF_FILTER_INIT                                                                             \
    {                                                                                              \
        HF_FILTER_VERSION, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, { { 0 } }, 0, 0, false,    \
            false, NULL, 0, NULL                                                                   \
    }

/* Newest first; pages are stable while others write. A page whose runs hold more than 16 MiB of input, state, result and
 * error ends early, with a cursor to go on. Runs of the engine's own workflows ("holdfast.") are left out, here and
 * by hf_bulk, unless the filter names a workflow, a parent, or a prefix that begins so itself. */
HF_PUBLIC hf_code hf_list(hf_client *client, hf_runs **out, const hf_filter *filter,
                          hf_error *err) HF_MUST_CHECK;
/* How many children the run has in each status, without the deleted ones. */
HF_PUBLIC hf_code hf_child_counts(hf_client *client, int64_t counts[HF_STATUS_COUNT], hf_id run,
                                  hf_error *err) HF_MUST_CHECK;
/* Blocks until the run has finished or `timeout` us have passed (HF_TIMEOUT; < 0: forever). Woken, not polled. */
HF_PUBLIC hf_code hf_wait(hf_client *client, hf_run **out, hf_id id, int64_t timeout,
                          hf_error *err) HF_MUST_CHECK;
/* The run's journal after `after_seq`, oldest first, at most `limit` (1..1000). HF_NOT_FOUND: no such run. */
HF_PUBLIC hf_code hf_events_list(hf_client *client, hf_events **out, hf_id id, int64_t after_seq,
                                 int limit, hf_error *err) HF_MUST_CHECK;
/* The same, but blocks until there is at least one (HF_TIMEOUT after `timeout` us). */
HF_PUBLIC hf_code hf_events_follow(hf_client *client, hf_events **out, hf_id id, int64_t after_seq,
                                   int limit, int64_t timeout, hf_error *err) HF_MUST_CHECK;

/* ---- Changing ---- */

typedef struct hf_change {
    int version; /* HF_CHANGE_VERSION */
    const char *reason;
    int64_t expected_revision; /* refuse with HF_REVISION if it differs; 0: any */
} hf_change;

#define HF_CHANGE_VERSION 1
#define HF_CHANGE_INIT                                                                             \
    {                                                                                              \
        HF_CHANGE_VERSION, NULL, 0                                                                 \
    }

/* What can be done to a run; HF_NOT_ALLOWED from any other status. */
typedef enum hf_action {
    HF_CANCEL,    /* any unfinished run, and its children */
    HF_PAUSE,     /* pending or waiting at once; leased at its next commit */
    HF_RESUME,    /* paused, or about to be */
    HF_RETRY_RUN, /* failed or cancelled, back to pending with all attempts */
    HF_DELETE,    /* softly; independent of status */
    HF_RESTORE    /* undoes the delete */
} hf_action;

/* `change` may be NULL. Runs of the engine's own workflows ("holdfast.") are changed by their own calls (hf_schedule_pause,
 * hf_subscription_delete, ...): HF_NOT_ALLOWED. */
HF_PUBLIC hf_code hf_change_run(hf_client *client, hf_id id, hf_action action,
                                const hf_change *change, hf_error *err) HF_MUST_CHECK;
HF_PUBLIC const char *hf_action_name(hf_action action);

typedef struct hf_fork_options {
    int version;       /* HF_FORK_VERSION */
    const char *input; /* JSON; NULL: that of the old run */
    const char *key;   /* of the new run; NULL: none */
    const char *reason;
} hf_fork_options;

#define HF_FORK_VERSION 1
#define HF_FORK_INIT                                                                               \
    {                                                                                              \
        HF_FORK_VERSION, NULL, NULL, NULL                                                          \
    }

/* Starts a new run like an old one (workflow, input, subject, reference, tags, priority, partition, trace, flow key) that remembers the
 * steps which the old one had finished before `step` began (NULL: none), so that it goes on from there. Its journal says
 * `forked_from`. The old run may have ended or not, and is not touched; its parent, key, mail and children are not the new
 * run's. HF_NOT_ALLOWED when the new run would wait for children that the old one started and did not wait for. With a key,
 * the same fork twice gives the same run. `options` may be NULL. */
HF_PUBLIC hf_code hf_fork(hf_client *client, hf_triggered *out, hf_id run, const char *step,
                          const hf_fork_options *options, hf_error *err) HF_MUST_CHECK;

typedef struct hf_bulk_result {
    int64_t matched; /* before anything was changed; after a cursor only those that it came by */
    int64_t changed;
    int64_t refused; /* their status did not allow it */
} hf_bulk_result;

/* Called now and then with the counts so far; return false to stop. */
typedef bool (*hf_bulk_progress)(const hf_bulk_result *so_far, void *arg);

/* Applies `action` to all runs that match; what was changed before an error stays changed. `dry_run` only counts.
 * `progress` may be NULL. HF_LOCKED: all is done but for runs that other transactions kept locked. */
HF_PUBLIC hf_code hf_bulk(hf_client *client, hf_bulk_result *out, const hf_filter *filter,
                          hf_action action, const hf_change *change, bool dry_run,
                          hf_bulk_progress progress, void *arg, hf_error *err) HF_MUST_CHECK;
/* The same, to be done in parts: `next` receives the cursor with which the filter goes on where `progress` stopped it, or
 * nothing ("") where all is done. It may be the filter's cursor itself. */
HF_PUBLIC hf_code hf_bulk_part(hf_client *client, hf_bulk_result *out, char next[HF_ID_TEXT],
                               const hf_filter *filter, hf_action action, const hf_change *change,
                               hf_bulk_progress progress, void *arg, hf_error *err) HF_MUST_CHECK;

/* A signal to a run. Types child, continue, retry, task and timer are the engine's own, as are ids that begin with "child:",
 * "requeue:" or "timer:": HF_INVALID. */
typedef struct hf_signal_spec {
    int version;         /* HF_SIGNAL_VERSION */
    const char *id;      /* dropped if the run has seen it; NULL: a new one is made */
    const char *type;    /* default "external" */
    const char *name;    /* required */
    const char *payload; /* JSON; NULL means null */
    const char *token;   /* ignored as stale unless the run waits with this token; NULL: any */
    int64_t expected_revision; /* refuse with HF_REVISION if the run's differs; 0: any */
    int64_t delay;             /* us until the run sees it */
} hf_signal_spec;

#define HF_SIGNAL_VERSION 1
#define HF_SIGNAL_INIT                                                                             \
    {                                                                                              \
        HF_SIGNAL_VERSION, NULL, NULL, NULL, NULL, NULL, 0, 0                                      \
    }

/* `duplicate` (may be NULL) is set when the signal's id had arrived before. Runs of the engine's own workflows
 * ("holdfast.") take none: HF_NOT_ALLOWED. */
HF_PUBLIC hf_code hf_signal(hf_client *client, hf_id run, const hf_signal_spec *spec,
                            bool *duplicate, hf_error *err) HF_MUST_CHECK;

/* Removes for good the runs that ended, or were deleted, before the time `finished_before`, with all that belongs to them:
 * those of one workflow, or of all (NULL), in small batches. */
HF_PUBLIC hf_code hf_purge(hf_client *client, int64_t *removed, const char *workflow,
                           int64_t finished_before, hf_error *err) HF_MUST_CHECK;
/* Counts the runs that hf_purge would remove now. */
HF_PUBLIC hf_code hf_purge_count(hf_client *client, int64_t *count, const char *workflow,
                                 int64_t finished_before, hf_error *err) HF_MUST_CHECK;

/* ---- Workflows, workers, tenants ---- */

/* Which fields of hf_workflow a call sets. */
enum {
    HF_SET_MAX_ATTEMPTS = 1 << 0,
    HF_SET_RETRY_BASE = 1 << 1,
    HF_SET_RETRY_CAP = 1 << 2,
    HF_SET_LEASE = 1 << 3,
    HF_SET_TIMEOUT = 1 << 4,
    HF_SET_RETENTION = 1 << 5,
    HF_SET_DEAD_LETTER = 1 << 6,
    HF_SET_DEFINITION = 1 << 7,
    HF_SET_PAUSED = 1 << 8,
    HF_SET_MAX_RUNNING = 1 << 9,
    HF_SET_RATE = 1 << 10,
    HF_SET_KEY_MAX_RUNNING = 1 << 11,
    HF_SET_KEY_RATE = 1 << 12,
    HF_SET_FIT_WITHIN = 1 << 13,
    HF_SET_ON_CANCEL = 1 << 14,
    HF_SET_CHILDREN = 1 << 15
};

/* Registers the workflow if it is new; sets the fields in `mask`. Idempotent. */
HF_PUBLIC hf_code hf_workflow_put(hf_client *client, const hf_workflow *workflow, unsigned mask,
                                  hf_error *err) HF_MUST_CHECK;
/* Like hf_workflow_put, but HF_UNKNOWN_WORKFLOW when it does not exist. */
HF_PUBLIC hf_code hf_workflow_set(hf_client *client, const hf_workflow *workflow, unsigned mask,
                                  hf_error *err) HF_MUST_CHECK;
/* The share of a flow key among those of its workflow, 1 to 1000; without being set it is 1. "": the runs without a
 * flow key. */
HF_PUBLIC hf_code hf_workflow_weight(hf_client *client, const char *workflow, const char *flow_key,
                                     int weight, hf_error *err) HF_MUST_CHECK;
/* HF_UNKNOWN_WORKFLOW: there is none of this name. */
HF_PUBLIC hf_code hf_workflow_get(hf_client *client, hf_workflow **out, const char *name,
                                  hf_error *err) HF_MUST_CHECK;
/* Those whose name begins so; NULL: all. */
HF_PUBLIC hf_code hf_workflow_list(hf_client *client, hf_workflows **out, const char *prefix,
                                   hf_error *err) HF_MUST_CHECK;
/* The workers that serve this tenant, also those that were heard of last a while ago (live is false then). */
HF_PUBLIC hf_code hf_workers(hf_client *client, hf_worker_list **out, hf_error *err) HF_MUST_CHECK;

/* Tenants of the whole store, whatever the client's own is. HF_OK, too, if it is there already. */
HF_PUBLIC hf_code hf_tenant_create(hf_client *client, const char *name,
                                   hf_error *err) HF_MUST_CHECK;
/* All work of a disabled tenant is refused (HF_DISABLED), and nothing of it is lost; false lets it go on. */
HF_PUBLIC hf_code hf_tenant_disable(hf_client *client, const char *name, bool disabled,
                                    hf_error *err) HF_MUST_CHECK;
HF_PUBLIC hf_code hf_tenant_list(hf_client *client, hf_tenants **out, hf_error *err) HF_MUST_CHECK;
/* PostgreSQL only: makes a role of the database a client of the tenant ("*": of all). In plain SQL it can read what is the
 * tenant's and, unless `read_only`, trigger, signal and cancel there; row-level security keeps it from everything else.
 * HF_INVALID on SQLite, and for a role that row-level security does not hold for; HF_CONFLICT when it is another
 * tenant's client. The client must own the schema. */
HF_PUBLIC hf_code hf_tenant_grant(hf_client *client, const char *tenant, const char *role,
                                  bool read_only, hf_error *err) HF_MUST_CHECK;
/* Takes it all away again. HF_NOT_FOUND when it was not granted. */
HF_PUBLIC hf_code hf_tenant_revoke(hf_client *client, const char *tenant, const char *role,
                                   hf_error *err) HF_MUST_CHECK;

/* ---- Host locks ---- */

/* A named lock across machines, for jobs of which one may run. It expires by itself after `ttl` us unless
 * renewed. `token` rises with every new holder: hand it to what the lock protects, to refuse old holders. */
typedef struct hf_lock {
    char name[201];
    char holder[256];
    int64_t token;
    int64_t until; /* store clock, us */
} hf_lock;

/* HF_LOCKED when somebody else holds it; with `wait` > 0 waits so many us for it. */
HF_PUBLIC hf_code hf_lock_acquire(hf_client *client, hf_lock *out, const char *name,
                                  const char *holder, int64_t ttl, int64_t wait,
                                  hf_error *err) HF_MUST_CHECK;
/* HF_STALE when it was lost. */
HF_PUBLIC hf_code hf_lock_renew(hf_client *client, hf_lock *lock, int64_t ttl,
                                hf_error *err) HF_MUST_CHECK;
HF_PUBLIC hf_code hf_lock_release(hf_client *client, const hf_lock *lock,
                                  hf_error *err) HF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
