/* Errors: one code per thing that can go wrong, and a struct the callee fills.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HOLDFAST_ERROR_H
#define HOLDFAST_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HF_PUBLIC __attribute__((visibility("default")))
#define HF_MUST_CHECK __attribute__((warn_unused_result))
#else
#define HF_PUBLIC
#define HF_MUST_CHECK
#endif

/* symbol, number, name for machines, what it means */
#define HF_ERRORS(X)                                                                               \
    X(HF_OK, 0, "ok", "it worked")                                                                 \
    X(HF_INVALID, 1, "invalid", "an argument or input is not acceptable")                          \
    X(HF_TOO_LARGE, 2, "too_large", "an input is larger than the limit")                           \
    X(HF_NOT_FOUND, 3, "not_found", "there is no such thing in this tenant")                       \
    X(HF_CONFLICT, 4, "conflict", "it conflicts with what is there")                               \
    X(HF_UNKNOWN_WORKFLOW, 5, "unknown_workflow", "no workflow has this name")                     \
    X(HF_NO_WORKER, 6, "no_worker", "no live worker could run this workflow")                      \
    X(HF_NOT_ALLOWED, 7, "not_allowed", "the run's status does not allow this change")             \
    X(HF_STALE, 8, "stale", "the caller no longer holds the run; nothing was changed")             \
    X(HF_REVISION, 9, "revision_mismatch", "the run was changed meanwhile")                        \
    X(HF_RUN_CANCELLED, 10, "cancelled", "the run was cancelled")                                  \
    X(HF_TIMEOUT, 11, "timeout", "the time limit passed first")                                    \
    X(HF_DISABLED, 12, "disabled", "the tenant is disabled")                                       \
    X(HF_LOCKED, 13, "locked", "somebody else holds the lock")                                     \
    X(HF_UNAVAILABLE, 14, "unavailable", "the store cannot be reached")                            \
    X(HF_STORE_FULL, 15, "store_full", "the store has no room left")                               \
    X(HF_READ_ONLY, 16, "read_only", "the store cannot be written")                                \
    X(HF_SCHEMA_NEWER, 17, "schema_newer", "the schema needs a newer program")                     \
    X(HF_SCHEMA_OLDER, 18, "schema_older", "the schema must be migrated first")                    \
    X(HF_STORE, 19, "store_error", "the store refused a statement")                                \
    X(HF_CLOSED, 20, "closed", "the handle is being closed")                                       \
    X(HF_NOMEM, 21, "out_of_memory", "memory ran out")                                             \
    X(HF_RETRY, 22, "retry", "the handler asks to be tried again later")                           \
    X(HF_PERMANENT, 23, "permanent", "the handler failed for good; do not try again")              \
    X(HF_HANDLER_FAILED, 24, "failed", "the handler failed")                                       \
    X(HF_INTERNAL, 25, "internal", "a bug in Holdfast; please report it")                          \
    X(HF_SUSPENDED, 26, "suspended",                                                               \
      "the run waits; the handler returns this and is called again")                               \
    X(HF_UNAUTHORIZED, 27, "unauthorized", "the token is not accepted")

typedef enum hf_code {
#define HF_ERROR_ENUM(symbol, number, name, meaning) symbol = number,
    HF_ERRORS(HF_ERROR_ENUM)
#undef HF_ERROR_ENUM
} hf_code;

/* Owned by the caller, filled by the callee when it does not return HF_OK. Every function accepts NULL. */
typedef struct hf_error {
    hf_code code;
    char sqlstate[6];  /* the database's own code, "" when there is none */
    char message[506]; /* for people: what happened and what to do next */
} hf_error;

/* "conflict" for HF_CONFLICT; stable, for scripts and logs. */
HF_PUBLIC const char *hf_code_name(hf_code code);
/* The sentence that belongs to a code. */
HF_PUBLIC const char *hf_code_meaning(hf_code code);

#ifdef __cplusplus
}
#endif
#endif
