/* Durable functions: ordinary handlers whose named pieces are remembered. After a crash, a retry or a wait the handler starts
 * again from the top, and what was done before returns what it returned then.
 *
 * What waits (sleep, signal, person, children, pause) returns HF_SUSPENDED the first time: hand it up, `return` it from the handler,
 * and the worker's thread is free. When the time has come the handler is called again, and the same call returns HF_OK.
 *
 * Names: each call is remembered under its name. The second use of a name in one run is remembered as "name#2", and so on.
 * Calls must come in the same order every time; one that does not match what is remembered fails the run with the error code
 * history_mismatch, which names both. From then on, and once the run is lost, every call returns the same error. A name is 1
 * to 500 bytes and does not itself end with "#" and a number.
 *
 * A step is ended before the next call is made, and calls are made one at a time. Whoever breaks a rule of these fails the run
 * for good, whatever the handler does with what the call answered: error codes calls_overlap (a call inside an open step, or
 * from two threads at once), not_awaited (the handler returned HF_OK with a step open), result_refused (the same, since the
 * step's output was refused) and broken_rule.
 *
 * Times given as a negative number have passed already. A limit of 0 is none.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HOLDFAST_FUNCTION_H
#define HOLDFAST_FUNCTION_H

#include <holdfast/transition.h>
#include <holdfast/worker.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns from the handler with the code unless it is HF_OK. */
#define hf_try(call)                                                                               \
    do {                                                                                           \
        hf_code hf_try_code = (call);                                                              \
        if (hf_try_code != HF_OK)                                                                  \
            return hf_try_code;                                                                    \
    } while (0)

/* ---- Steps ---- */

/* One use of a named step; lives in the handler's frame. Its fields are the library's. */
typedef struct hf_step {
    hf_ctx *ctx;
    const char *name;
    void *entry; /* what is remembered; NULL: nothing yet */
    const void *options;
    int attempt;
    int64_t started_at;
    int64_t deadline;
    char key[560];
} hf_step;

typedef struct hf_step_options {
    int version;        /* HF_STEP_OPTIONS_VERSION */
    int max_attempts;   /* default 0: as many as the run itself may have */
    int64_t retry_base; /* us before the second attempt, doubled each time; default 1 s */
    int64_t retry_cap;  /* default 5 min */
    int64_t
        timeout; /* us for one attempt; 0: none; negative: it fails before it begins. What comes later counts as failed, and a handler that does not come back
                           is left behind: what it calls then is refused */
    /* us for which failures may put off the next attempt (hf_step_failure.retry_after) without using up attempts, from the first
     * of them on; default 1 h, 0: no limit; negative: they do use them up */
    int64_t retry_after_limit;
} hf_step_options;

#define HF_STEP_OPTIONS_VERSION 2 /* 2: retry_after_limit */
#define HF_STEP_OPTIONS_INIT                                                                       \
    {                                                                                              \
        HF_STEP_OPTIONS_VERSION, 0, 0, 0, 0, HF_HOURS(1)                                           \
    }

/* Why an attempt failed; all of it is remembered, and the same at every replay. */
typedef struct hf_step_failure {
    int version;            /* HF_STEP_FAILURE_VERSION */
    hf_code code;           /* HF_PERMANENT: no more attempts */
    const char *error_code; /* your own, at most 200 bytes; NULL: the name of `code` */
    const char *message;    /* NULL: what `code` means */
    const char *details;    /* JSON; NULL: none */
    int64_t
        retry_after; /* us until the next attempt, and this one does not count; 0: it does, and the policy tells */
} hf_step_failure;

#define HF_STEP_FAILURE_VERSION 1
#define HF_STEP_FAILURE_INIT                                                                       \
    {                                                                                              \
        HF_STEP_FAILURE_VERSION, HF_HANDLER_FAILED, NULL, NULL, NULL, 0                            \
    }

/* True: not done yet, so do it and call hf_step_done or hf_step_fail. False: it is over (hf_step_output, hf_step_result), or
 * the run is lost (hf_step_result tells). `options` may be NULL and must live as long as the step. */
HF_PUBLIC bool hf_step_begin(hf_ctx *ctx, const char *name, hf_step *step);
HF_PUBLIC bool hf_step_begin_with(hf_ctx *ctx, const char *name, const hf_step_options *options,
                                  hf_step *step);
/* The same for every attempt of this step of this run, and for no other: hand it to what must not happen twice. */
HF_PUBLIC const char *hf_step_key(const hf_step *step);
HF_PUBLIC int hf_step_attempt(const hf_step *step);
/* Remembers the output (JSON; NULL: null), durably, before it returns. HF_INVALID, HF_TOO_LARGE: nothing is remembered, and
 * the step is still to be ended. */
HF_PUBLIC hf_code hf_step_done(hf_step *step, const char *json);
/* An attempt failed. HF_SUSPENDED: it is tried again later. Otherwise it has failed for good, which is remembered, and
 * hf_step_result tells. HF_PERMANENT as `code` leaves no more attempts. A handler that returns HF_HANDLER_FAILED right
 * after that fails its run for good: every replay would meet the same. */
HF_PUBLIC hf_code hf_step_fail(hf_step *step, hf_code code, const char *message);
/* The same with a code of your own, details, or the time of the next attempt. HF_INVALID: the code or the details are not
 * acceptable, and the step is still to be ended. */
HF_PUBLIC hf_code hf_step_fail_with(hf_step *step, const hf_step_failure *failure);
/* HF_OK once it is done; HF_HANDLER_FAILED with the message if it failed for good; HF_SUSPENDED while it waits for its next
 * attempt; otherwise what became of the run. */
HF_PUBLIC hf_code hf_step_result(const hf_step *step, hf_error *err) HF_MUST_CHECK;
/* The code and the details (JSON; NULL: none) with which the step failed for good; NULL unless it did. If the handler returns
 * HF_HANDLER_FAILED then, they are the run's. They live as long as the handler runs. */
HF_PUBLIC const char *hf_step_error_code(const hf_step *step);
HF_PUBLIC const char *hf_step_error_details(const hf_step *step);
/* JSON; NULL unless it is done. Lives as long as the handler runs. */
HF_PUBLIC const char *hf_step_output(const hf_step *step);
/* HF_OK while there is time left; HF_TIMEOUT past the step's own limit; otherwise as hf_check. */
HF_PUBLIC hf_code hf_step_check(const hf_step *step) HF_MUST_CHECK;

/* The work of a step: calls hf_step_done with its output, or returns a code other than HF_OK. */
typedef hf_code (*hf_step_work)(hf_step *step, hf_error *err, void *arg);
/* All of the above in one call. `output` may be NULL. */
HF_PUBLIC hf_code hf_step_run(hf_ctx *ctx, const char *name, const hf_step_options *options,
                              hf_step_work work, void *arg, const char **output,
                              hf_error *err) HF_MUST_CHECK;

/* ---- Time ---- */

/* For so long from the first call on, or until a time on the store's clock. It costs nothing, however long. */
HF_PUBLIC hf_code hf_sleep(hf_ctx *ctx, const char *name, int64_t us) HF_MUST_CHECK;
HF_PUBLIC hf_code hf_sleep_until(hf_ctx *ctx, const char *name, int64_t at) HF_MUST_CHECK;
/* Until a person resumes the run, or until the time (0: none) has passed. The run is paused meanwhile. */
HF_PUBLIC hf_code hf_pause_here(hf_ctx *ctx, const char *name, int64_t us) HF_MUST_CHECK;

/* ---- Signals ---- */

/* The next signal of this name (hf_signal, `holdfast signal`), in the order of arrival, also one that was sent before. The
 * payload (JSON; NULL: not wanted) lives as long as the handler runs. HF_TIMEOUT when `timeout` us (0: none) have passed first. */
HF_PUBLIC hf_code hf_wait_signal(hf_ctx *ctx, const char *name, int64_t timeout,
                                 const char **payload) HF_MUST_CHECK;

/* Puts a task (task.h) to people, once, and waits for its answer. `task` says whom and what: its name (NULL: `name`), assignee,
 * roles, payload, form, due_at; NULL: anybody. The answer (JSON; NULL: not wanted) lives as long as the handler runs:
 * {"task": id, "outcome": ..., "result": ..., "by": ...}. HF_TIMEOUT when `timeout` us (0: none) have passed first: then the
 * task is withdrawn. */
HF_PUBLIC hf_code hf_ask_person(hf_ctx *ctx, const char *name, const hf_new_task *task,
                                int64_t timeout, const char **answer) HF_MUST_CHECK;

/* ---- Children ---- */

typedef struct hf_child_end {
    hf_id run;
    bool ended; /* false: the wait was over before it */
    hf_status status;
    const char *result; /* JSON; lives as long as the handler runs */
    const char *error;  /* JSON */
} hf_child_end;

typedef enum hf_wait_for {
    HF_WAIT_ALL,           /* until all have ended, well or not */
    HF_WAIT_ANY,           /* until one has ended */
    HF_WAIT_ALL_OR_FAILURE /* until all have ended or one has failed or was cancelled */
} hf_wait_for;

/* Starts runs whose ends can be waited for, and that are cancelled with this one. All of them or none are accepted; `ids` has
 * room for `count` ids, at most 1,000,000. More than 4,000 that differ in nothing but priority, trace and input are written in
 * portions: the first are at work while the rest is written, and a worker that dies meanwhile leaves the rest to the next.
 * HF_TOO_LARGE: more than 25,000 that differ in more. */
HF_PUBLIC hf_code hf_children_start(hf_ctx *ctx, const char *name, const hf_trigger_spec *specs,
                                    size_t count, hf_id *ids) HF_MUST_CHECK;
/* HF_TIMEOUT when `timeout` us (0: none) have passed first; `ends` has room for `count`, in the order of `ids`, which are
 * different children of this run. What one wait has seen ended is ended for all later ones. */
HF_PUBLIC hf_code hf_children_wait(hf_ctx *ctx, const char *name, const hf_id *ids, size_t count,
                                   hf_wait_for what, int64_t timeout,
                                   hf_child_end *ends) HF_MUST_CHECK;
/* The same for one child, without a time limit. */
HF_PUBLIC hf_code hf_child_start(hf_ctx *ctx, const char *name, const hf_trigger_spec *spec,
                                 hf_id *id) HF_MUST_CHECK;
HF_PUBLIC hf_code hf_child_wait(hf_ctx *ctx, const char *name, hf_id id,
                                hf_child_end *end) HF_MUST_CHECK;

/* ---- Telling ---- */

/* How far the run is: 0 to 100, and a few words (or NULL). Seen at once by whoever looks at the run; not remembered. A replay
 * does not tell it again as long as it has something ahead that the run has remembered since; nor what hf_publish says. */
HF_PUBLIC hf_code hf_progress(hf_ctx *ctx, int percent, const char *text) HF_MUST_CHECK;
/* Publishes the run's state (JSON; NULL: null) at once; not remembered. */
HF_PUBLIC hf_code hf_publish(hf_ctx *ctx, const char *json) HF_MUST_CHECK;
/* Puts an event into the outbox, once. */
HF_PUBLIC hf_code hf_emit(hf_ctx *ctx, const char *type, const char *json) HF_MUST_CHECK;

/* ---- The same every time ---- */

HF_PUBLIC hf_code hf_now(hf_ctx *ctx, int64_t *us) HF_MUST_CHECK; /* the store's clock */
HF_PUBLIC hf_code hf_random(hf_ctx *ctx, uint64_t *number) HF_MUST_CHECK;
HF_PUBLIC hf_code hf_uuid(hf_ctx *ctx, hf_id *id) HF_MUST_CHECK;
/* Which version of a piece of code this run goes through: `current` for runs that come here for the first time, 0 for those
 * that passed here before the change was there. Remembered: the first answer for a change holds for the whole run. */
HF_PUBLIC hf_code hf_version(hf_ctx *ctx, const char *change, int current,
                             int *version) HF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
