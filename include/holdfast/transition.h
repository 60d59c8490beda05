/* What lies under the worker: claim runs, commit what a turn decided. A transition is applied in one transaction or not
 * at all, and only if the caller still holds the run.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HOLDFAST_TRANSITION_H
#define HOLDFAST_TRANSITION_H

#include <holdfast/client.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One input in a run's mailbox. */
typedef struct hf_mail {
    const char *id;      /* unique in the mailbox; by it mail is consumed or blamed */
    const char *type;    /* external, timer, child, task, retry, continue */
    const char *name;    /* of a signal or task; a timer's key; a child's key or workflow */
    const char *payload; /* JSON */
    const char *token;   /* that the sender gave; NULL: none */
    const char *sender;  /* the actor */
    int64_t position;    /* the order of arrival; several that came together may have one */
    int64_t visible_at;
    int64_t occurred_at;
    int attempts; /* turns that failed on it */
} hf_mail;

/* A run in the caller's hands until run.lease_until, unless prolonged. */
typedef struct hf_claimed {
    hf_run run;    /* run.version is the fence for all that follows */
    int tenant_id; /* the store's own numbers for its tenant and lane */
    int lane;
    bool limited;   /* holds a slot of its workflow */
    int64_t due_at; /* its place in the order: run_at before its first claim that did not end */
    bool suspect;   /* its last lease expired: the holder may have been killed by it */
    bool exhausted; /* no attempts left: fail it without a handler */
    bool overdue;   /* past its deadline: fail it without a handler */
    bool steps_cut; /* `steps` may not be all: a claim brings 100,000 lines, retries counted */
    int64_t lease;  /* us, the workflow's */
    int64_t retry_base;
    int64_t retry_cap;
    const char *dead_letter; /* workflow to start when it fails for good; NULL: none */
    hf_mail *mail;           /* visible and not consumed, in order; at most the first 100,000 */
    size_t mail_count;
    hf_event *steps; /* recorded steps, by sequence */
    size_t step_count;
    /* Sequence of the last retry by an operator after a step was recorded; 0: none. */
    int64_t retried_seq;
    int64_t seen_position; /* hand these two back with a transition to waiting */
    int64_t seen_at;
} hf_claimed;

typedef struct hf_claims {
    hf_claimed *items;
    size_t count;
    int64_t next_due; /* earliest time at which more could be claimed; 0: unknown or none */
} hf_claims;

typedef struct hf_claim_spec {
    int version;        /* HF_CLAIM_VERSION */
    const char *worker; /* the holder's name */
    /* "billing.charge.v1", "billing.*", "*"; the engine's own only by "holdfast.". */
    const char *const *patterns;
    size_t pattern_count;
    int limit;       /* 1..1000 */
    int64_t lease;   /* us; 0: each workflow's */
    bool fresh_only; /* leave runs whose lease expired to others, if they are to be begun at all */
} hf_claim_spec;

#define HF_CLAIM_VERSION 1
#define HF_CLAIM_INIT                                                                              \
    {                                                                                              \
        HF_CLAIM_VERSION, NULL, NULL, 0, 1, 0, false                                               \
    }

/* Takes the most urgent due runs of the client's tenant, if there are any. Does not wait. */
HF_PUBLIC hf_code hf_claim(hf_client *client, hf_claims **out, const hf_claim_spec *spec,
                           hf_error *err) HF_MUST_CHECK;
HF_PUBLIC void hf_claims_free(hf_claims *claims);

typedef enum hf_turn {
    HF_TURN_SUCCEED,
    HF_TURN_FAIL,      /* for good */
    HF_TURN_RETRY,     /* back to pending after retry_delay */
    HF_TURN_WAIT,      /* for a signal, a timer, children or a time */
    HF_TURN_GIVE_BACK, /* not begun: back to pending at once, the attempt does not count */
    HF_TURN_GO_ON,     /* still held: what it brings is written now, at the same version */
    HF_TURN_UNFIT /* the code does not fit its history: waits for a worker whose code does. Brings
                          an error only; the attempt does not count */
} hf_turn;

typedef struct hf_new_event {
    const char *kind; /* domain, step, task, signal */
    const char *name;
    const char *step; /* the step's name, for kind step */
    const char *data; /* JSON or NULL */
} hf_new_event;

typedef struct hf_new_timer {
    const char *key; /* replaced in place by its key */
    int64_t delay;   /* us from the commit; used when at is 0 */
    int64_t at;
    const char *payload;
    const char *token;
} hf_new_timer;

typedef struct hf_new_outbox {
    const char *type;
    const char *payload;
} hf_new_outbox;

typedef struct hf_new_task {
    hf_id id; /* zero: a new one */
    const char *name;
    const char *assignee;
    const char *roles;   /* JSON array of names */
    const char *payload; /* JSON */
    const char *form;    /* JSON */
    const char *token;   /* the answer bears it */
    int64_t due_at;
} hf_new_task;

typedef struct hf_transition {
    int version; /* HF_TRANSITION_VERSION */
    hf_id run;
    int64_t run_version; /* the version of the claim; for `unleased`, the version that was read */
    bool unleased;       /* commit on a waiting run that nobody holds and that has no due signal */
    const char *worker;  /* the holder's name, the events' actor; NULL: the client's actor */
    hf_turn turn;
    const char *state;  /* NULL: as it is */
    const char *result; /* succeed */
    const char *error;  /* fail, retry, unfit: JSON */
    const char *error_code;
    const char *last_error;
    const char *current_step; /* NULL: as it is */
    int64_t retry_delay;      /* retry */
    const char *waiting_kind; /* wait; anything but "worker" */
    const char *waiting_token;
    int64_t waiting_until; /* wake at this time at the latest; 0: no limit */
    int wait_children; /* wake when so many child ends are in the mailbox; 0: not for children */
    bool wake_on_child_failure; /* and when one failed after the claim, or seen_position is 0 */
    bool pause; /* wait: paused, until an operator resumes it or waiting_until has passed */
    int64_t seen_position; /* from hf_claimed */
    int64_t seen_at;
    const char *const *consumed; /* ids of mail that is done with */
    size_t consumed_count;
    /* Ids of mail on which this turn failed; the fifth time it goes to the dead letters. */
    const char *const *blamed;
    size_t blamed_count;
    const hf_new_timer *timers;
    size_t timer_count;
    const char *const *cancelled_timers; /* keys */
    size_t cancelled_timer_count;
    const hf_trigger_spec *children; /* their ends come back as mail, also when they are deleted */
    size_t child_count;
    const hf_trigger_spec *starts; /* runs started without a tie to this one */
    size_t start_count;
    const hf_new_event *events;
    size_t event_count;
    const hf_new_outbox *outbox;
    size_t outbox_count;
    const hf_new_task *tasks;
    size_t task_count;
    const char *const *withdrawn_tasks; /* tokens of open tasks that need no answer any more */
    size_t withdrawn_task_count;
    /* HF_TURN_GO_ON: 1 to 64 bytes, unique within the claim. Committed again with the same request, nothing changes, and the
     * answer is the first one's; also while the first is on its way. NULL: none. Since version 2. */
    const char *request;
} hf_transition;

#define HF_TRANSITION_VERSION 2 /* 2: request */

/* HF_STALE (nothing changed) when the run moved on; HF_RUN_CANCELLED when it was cancelled. `child_ids`, if not NULL,
 * has room for child_count ids. */
HF_PUBLIC hf_code hf_commit(hf_client *client, const hf_transition *transition, hf_id *child_ids,
                            hf_error *err) HF_MUST_CHECK;

/* Trigger with a first transition applied at once: its state, events, timers, children, starts, outbox, tasks and turn
 * (WAIT, or RETRY for "pending"). If a run with the key is there already, nothing of it is applied. */
HF_PUBLIC hf_code hf_trigger_with(hf_client *client, hf_triggered *out, const hf_trigger_spec *spec,
                                  const hf_transition *initial, hf_error *err) HF_MUST_CHECK;

typedef struct hf_held {
    hf_id run;
    int64_t run_version;
    int64_t lease; /* us to prolong by, from now */
    hf_code code;  /* out: HF_OK, HF_STALE or HF_RUN_CANCELLED */
} hf_held;

/* One heartbeat for many runs; each is answered for itself. */
HF_PUBLIC hf_code hf_heartbeat(hf_client *client, hf_held *held, size_t count,
                               hf_error *err) HF_MUST_CHECK;

typedef struct hf_step_record {
    hf_id run;
    int64_t run_version;
    const char *worker;
    const char *name;   /* of the step */
    const char *status; /* "succeeded" or "failed" */
    const char *data;   /* JSON: output or error, attempt, times */
} hf_step_record;

/* Records a finished step in the journal, durably, before it returns. */
HF_PUBLIC hf_code hf_step_save(hf_client *client, const hf_step_record *step,
                               hf_error *err) HF_MUST_CHECK;
/* The same, once for a request (1 to 64 bytes, unique within the claim): repeated, nothing is recorded. */
HF_PUBLIC hf_code hf_step_save_once(hf_client *client, const hf_step_record *step,
                                    const char *request, hf_error *err) HF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
