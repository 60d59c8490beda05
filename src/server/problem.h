/* The problems that requests are answered with (RFC 9457). Their types are stable; the OpenAPI document lists them, and a
 * test compares the manual with it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_SERVER_PROBLEM_H
#define HF_SERVER_PROBLEM_H

#include <holdfast/error.h>

struct hf__request;

/* symbol, status, type. Those that come from an hf_code have its name. */
#define HF__PROBLEMS(X)                                                                            \
    X(INVALID, 400, "invalid")                                                                     \
    X(NO_TOKEN, 401, "no_token")                                                                   \
    X(BAD_TOKEN, 401, "bad_token")                                                                 \
    X(UNAUTHORIZED, 401, "unauthorized")                                                           \
    X(FORBIDDEN, 403, "forbidden")                                                                 \
    X(DISABLED, 403, "disabled")                                                                   \
    X(FOREIGN_ORIGIN, 403, "foreign_origin")                                                       \
    X(FOREIGN_HOST, 403, "foreign_host")                                                           \
    X(NOT_FOUND, 404, "not_found")                                                                 \
    X(UNKNOWN_WORKFLOW, 404, "unknown_workflow")                                                   \
    X(NO_SUCH_PATH, 404, "no_such_path")                                                           \
    X(METHOD_NOT_ALLOWED, 405, "method_not_allowed")                                               \
    X(CONFLICT, 409, "conflict")                                                                   \
    X(NOT_ALLOWED, 409, "not_allowed")                                                             \
    X(STALE, 409, "stale")                                                                         \
    X(CANCELLED, 409, "cancelled")                                                                 \
    X(REVISION, 412, "revision_mismatch")                                                          \
    X(TOO_LARGE, 413, "too_large")                                                                 \
    X(READ_ONLY, 500, "read_only")                                                                 \
    X(SCHEMA_NEWER, 500, "schema_newer")                                                           \
    X(SCHEMA_OLDER, 500, "schema_older")                                                           \
    X(STORE, 500, "store_error")                                                                   \
    X(INTERNAL, 500, "internal")                                                                   \
    X(NO_WORKER, 503, "no_worker")                                                                 \
    X(UNAVAILABLE, 503, "unavailable")                                                             \
    X(LOCKED, 503, "locked")                                                                       \
    X(CLOSED, 503, "closed")                                                                       \
    X(NOMEM, 503, "out_of_memory")                                                                 \
    X(BUSY, 503, "busy")                                                                           \
    X(STOPPING, 503, "stopping")                                                                   \
    X(TIMEOUT, 504, "timeout")                                                                     \
    X(STORE_FULL, 507, "store_full")

enum hf__problem {
#define HF__PROBLEM_ENUM(symbol, status, type) HF__PROBLEM_##symbol,
    HF__PROBLEMS(HF__PROBLEM_ENUM)
#undef HF__PROBLEM_ENUM
        HF__PROBLEM_COUNT
};

#define HF__PROBLEM_PREFIX "urn:holdfast:problem:" /* of every type */

/* Without the prefix. */
const char *hf__problem_type(enum hf__problem problem);

/* Replaces whatever was written by a problem. */
void hf__reply_problem(struct hf__request *request, const hf_error *err);
void hf__reply_problem_as(struct hf__request *request, enum hf__problem problem, const char *title,
                          const char *detail);

#endif
