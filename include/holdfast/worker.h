/* A worker: claims runs, gives them to handlers, commits what they decide.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HOLDFAST_WORKER_H
#define HOLDFAST_WORKER_H

#include <holdfast/client.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hf_worker hf_worker;
/* One attempt of one run, valid while its handler runs. */
typedef struct hf_ctx hf_ctx;

/* Works on one attempt of a run; `input` is JSON. Returns HF_OK: succeeded, with the result given by hf_return (else null).
 * HF_PERMANENT: failed for good. HF_SUSPENDED, handed up from a function of <holdfast/function.h>: the run waits. HF_RETRY or
 * any other code: this attempt failed, and the next comes by the workflow's policy, if one is left. `err->message` becomes the
 * run's last_error. */
typedef hf_code (*hf_handler)(hf_ctx *ctx, const char *input, hf_error *err, void *arg);

/* The run at hand; strings live as long as the handler runs. */
HF_PUBLIC hf_id hf_ctx_run(const hf_ctx *ctx);
HF_PUBLIC const char *hf_ctx_workflow(const hf_ctx *ctx);
HF_PUBLIC const char *hf_ctx_key(const hf_ctx *ctx); /* NULL: none */
HF_PUBLIC int hf_ctx_attempt(const hf_ctx *ctx);     /* from 1; a wait begins anew */
/* The W3C traceparent that the run was triggered with; NULL: none. Runs that it starts have it too, unless they are given
 * another. */
HF_PUBLIC const char *hf_ctx_trace(const hf_ctx *ctx);
/* A client bound to the run's tenant; borrowed. */
HF_PUBLIC hf_client *hf_ctx_client(hf_ctx *ctx);
/* Sets the result (JSON, copied); returns HF_OK or HF_INVALID, so that a handler can end with it. */
HF_PUBLIC hf_code hf_return(hf_ctx *ctx, const char *json) HF_MUST_CHECK;
/* The delay before the next attempt, at most 100 years, in place of the policy's, if the handler fails or asks to be retried. */
HF_PUBLIC void hf_retry_after(hf_ctx *ctx, int64_t delay);
/* A structured error (JSON, copied) to keep beside the message. */
HF_PUBLIC hf_code hf_fail_with(hf_ctx *ctx, const char *error_code, const char *json) HF_MUST_CHECK;
/* HF_OK while the run is held; HF_RUN_CANCELLED, HF_STALE, HF_TIMEOUT (deadline) or HF_CLOSED (the worker's stop limit has
 * passed, the run is given back) once it is not. Cheap. */
HF_PUBLIC hf_code hf_check(const hf_ctx *ctx) HF_MUST_CHECK;
/* Adds an event of kind domain to the run's journal with the commit that ends this attempt. */
HF_PUBLIC hf_code hf_record(hf_ctx *ctx, const char *name, const char *json) HF_MUST_CHECK;

typedef enum hf_worker_event_kind {
    HF_WORKER_STARTED,
    HF_WORKER_RUN_STARTED,
    HF_WORKER_RUN_FINISHED, /* committed; `status` tells how */
    HF_WORKER_RUN_LOST,     /* lease lost or cancelled under the handler */
    HF_WORKER_STORE_LOST,   /* the store went away; the worker goes on trying */
    HF_WORKER_STORE_BACK,
    HF_WORKER_DRAINING,
    HF_WORKER_STOPPED,
    HF_WORKER_THREAD_LOST, /* its handler does not come back, although its step or run is over: another took its place */
    HF_WORKER_THREAD_BACK /* it did: what it says counts for nothing */
} hf_worker_event_kind;

typedef struct hf_worker_event {
    hf_worker_event_kind kind;
    hf_id run;
    const char *workflow;
    const char *tenant;
    int attempt;
    hf_status status;
    const char *message; /* an error or NULL */
    int64_t duration;    /* us of the handler */
    const char *trace;   /* of the run; NULL: none */
} hf_worker_event;

/* Called from the worker's threads; must be quick and thread-safe. */
typedef void (*hf_worker_observer)(const hf_worker_event *event, void *arg);

#define HF_MAX_THREADS 1024 /* of one worker */

typedef struct hf_worker_options {
    int version;      /* HF_WORKER_OPTIONS_VERSION */
    const char *name; /* unique; default host:pid:random */
    int threads;      /* handlers at once, at most HF_MAX_THREADS; default 2 x cores, at least 4 */
    /* Claimed workflows, "billing." or "billing.*", and what has no handler fails; default: those of the handlers, as far as they
     * begin as the environment's WORKER_TYPE_PREFIXES (separated by commas) says, if it says anything. */
    const char *const *prefixes;
    size_t prefix_count;
    const char *const *tenants; /* served tenants; default: the client's own; "*": all */
    size_t tenant_count;
    int64_t poll;       /* us between safety looks; default 5 s */
    int64_t heartbeat;  /* us; default a third of the shortest lease, at most 10 s */
    int64_t stop_limit; /* us for running handlers after a stop; default 30 s */
    hf_worker_observer observer;
    void *observer_arg;
    bool chores_only; /* may run without handlers: works on schedules and the like alone */
    bool no_dispatch; /* delivers no events of the outbox: another worker has to */
} hf_worker_options;

#define HF_WORKER_OPTIONS_VERSION 2 /* 2: no_dispatch */
#define HF_WORKER_OPTIONS_INIT                                                                     \
    {                                                                                              \
        HF_WORKER_OPTIONS_VERSION, NULL, 0, NULL, 0, NULL, 0, 0, 0, 0, NULL, NULL, false, false    \
    }

/* The worker borrows the client, which must outlive it. */
HF_PUBLIC hf_code hf_worker_new(hf_worker **out, hf_client *client,
                                const hf_worker_options *options, hf_error *err) HF_MUST_CHECK;
/* Serves a workflow ("billing.charge.v1", registered if new) or a family ("billing.*"). The longest match wins. */
HF_PUBLIC hf_code hf_worker_handle(hf_worker *worker, const char *pattern, hf_handler handler,
                                   void *arg, hf_error *err) HF_MUST_CHECK;

typedef struct hf_exec_options {
    int version;             /* HF_EXEC_OPTIONS_VERSION */
    const char *const *argv; /* the program and its arguments, NULL last; run without a shell */
    int64_t time_limit;      /* us; 0: none but the run's deadline */
    size_t max_output;       /* bytes of stdout; default the client's max_payload */
    /* Added to its environment: "NAME", with this process's value, or "NAME=VALUE". Without it the program finds PATH, HOME,
     * LANG, LC_*, TZ, TMPDIR, USER, SHELL, TERM and what the run is; nothing else, so no password either. */
    const char *const *env;
    size_t env_count;
} hf_exec_options;

#define HF_EXEC_OPTIONS_VERSION 2 /* 2: env */
#define HF_EXEC_OPTIONS_INIT                                                                       \
    {                                                                                              \
        HF_EXEC_OPTIONS_VERSION, NULL, 0, 0, NULL, 0                                               \
    }

/* Serves a pattern by a program: input on stdin, result on stdout (JSON, or text that becomes a JSON string),
 * exit 75: try again later, 78: failed for good, other non-zero: failure with stderr's tail as the error. What it left running
 * when it ends is killed. The program can
 * remember steps and wait by calling `holdfast step` and its kin, which reach this worker through HOLDFAST_RUN_SOCKET. */
HF_PUBLIC hf_code hf_worker_exec(hf_worker *worker, const char *pattern,
                                 const hf_exec_options *options, hf_error *err) HF_MUST_CHECK;

/* Works until hf_worker_stop, also through outages of the store. Returns HF_OK after a graceful stop. */
HF_PUBLIC hf_code hf_worker_run(hf_worker *worker, hf_error *err) HF_MUST_CHECK;
/* No new claims; running handlers finish or are given back within the stop limit. Async-signal-safe. A second call
 * gives back at once. */
HF_PUBLIC void hf_worker_stop(hf_worker *worker);
/* After hf_worker_run has returned, or instead of it. */
HF_PUBLIC void hf_worker_free(hf_worker *worker);

#ifdef __cplusplus
}
#endif
#endif
