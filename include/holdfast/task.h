/* Tasks: questions that runs put to people. A run makes one with a transition (hf_new_task) or by hf_ask_person; the answer
 * comes back as mail.
 *
 * A task is open until somebody claims or answers it. Who claims it, or whom it is assigned to, has it: nobody else can claim,
 * release or complete it, until it is released or reassigned. It is cancelled when its run ends, and open again when that run
 * is retried.
 *
 * Who acts is the client's actor. `expected_version` (0: any) is the hf_task.version that the caller has seen: HF_REVISION
 * when it is another by now. HF_CONFLICT: somebody else has the task. HF_NOT_ALLOWED: it is completed or cancelled, or its run
 * has finished or was deleted.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HOLDFAST_TASK_H
#define HOLDFAST_TASK_H

#include <holdfast/client.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hf_task {
    hf_id id;
    hf_id run;            /* that asks */
    const char *workflow; /* of the run */
    const char *name;
    const char *status;   /* open, claimed, completed, cancelled */
    int64_t version;      /* one more with every change */
    const char *assignee; /* who has it; once it is completed, who did; NULL: nobody */
    const char *roles;    /* JSON array: who might do it */
    const char *payload;  /* JSON: what it is about */
    const char *form;     /* JSON: how to ask for the result */
    const char *outcome;  /* in a word, as "approved"; "withdrawn" when the run stopped asking */
    const char *result;   /* JSON */
    int64_t due_at;
    int64_t created_at;
    int64_t updated_at;
    int64_t completed_at; /* or cancelled */
} hf_task;

typedef struct hf_task_page {
    hf_task *items;
    size_t count;
    const char *next; /* cursor of the next page; NULL: this is the last */
} hf_task_page;

#define HF_TASK_FILTER_VERSION 1
typedef struct hf_task_filter {
    int version;        /* HF_TASK_FILTER_VERSION */
    const char *status; /* names with commas between them, or "all"; NULL: open,claimed */
    const char *assignee;
    const char *role; /* one of its roles */
    hf_id run;        /* zero: any */
    const char *name;
    bool overdue; /* past their due time */
    /* In the order in which they are due, those without a time last; only for open and claimed ones. */
    bool by_due;
    int limit;          /* 1..1000; default 50 */
    const char *cursor; /* hf_task_page.next of the page before; NULL: from the beginning */
} hf_task_filter;
#define HF_TASK_FILTER_INIT                                                                        \
    {                                                                                              \
        .version = HF_TASK_FILTER_VERSION                                                          \
    }

/* Newest first, unless by_due. Tasks of deleted runs are left out. The caller frees the page. `filter` may be NULL. A
 * page whose tasks hold more than 16 MiB ends early, with a cursor to go on. */
HF_PUBLIC hf_code hf_task_list(hf_client *client, hf_task_page **out, const hf_task_filter *filter,
                               hf_error *err) HF_MUST_CHECK;
HF_PUBLIC void hf_task_page_free(hf_task_page *page);
HF_PUBLIC hf_code hf_task_get(hf_client *client, hf_task **out, hf_id id,
                              hf_error *err) HF_MUST_CHECK;
HF_PUBLIC void hf_task_free(hf_task *task);
/* Whether somebody with these roles (hf_token_access.task_roles: a JSON array; NULL or "": all) may claim and answer it: it
 * must have one of them. For servers, which ask before they act for a caller; whoever opens the store may answer all. */
HF_PUBLIC bool hf_task_allows(const hf_task *task, const char *task_roles) HF_MUST_CHECK;

/* The caller has it from now on. HF_OK, too, if it has it already. */
HF_PUBLIC hf_code hf_task_claim(hf_client *client, hf_id id, int64_t expected_version,
                                hf_error *err) HF_MUST_CHECK;
/* Nobody has it any more. */
HF_PUBLIC hf_code hf_task_release(hf_client *client, hf_id id, int64_t expected_version,
                                  hf_error *err) HF_MUST_CHECK;
/* It is open, for `assignee` (NULL: for everybody), whoever had it. */
HF_PUBLIC hf_code hf_task_reassign(hf_client *client, hf_id id, const char *assignee,
                                   int64_t expected_version, hf_error *err) HF_MUST_CHECK;
/* Answers it. In the same transaction the run gets mail of type "task" with the task's name and token and the payload
 * {"task": id, "outcome": ..., "result": ..., "by": ...}. `result` is JSON (NULL: null). The same answer by the same actor once
 * more is HF_OK and changes nothing. */
HF_PUBLIC hf_code hf_task_complete(hf_client *client, hf_id id, const char *outcome,
                                   const char *result, int64_t expected_version,
                                   hf_error *err) HF_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
