/* Checks of everything that callers hand in, before anything is written.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLIENT_CHECK_H
#define HF_CLIENT_CHECK_H

#include <holdfast/transition.h>

#define HF__MAX_LABEL 512   /* bytes of a key, subject, reference, tag, step or signal name */
#define HF__MAX_REQUEST 64  /* bytes of the id of a request */
#define HF__MAX_REASON 2000 /* bytes of a reason */
#define HF__MAX_TAGS 32
#define HF__MAX_TIME INT64_C(253402300799000000) /* the year 9999 */

/* Options structs say which version of themselves they are. */
hf_code hf__check_version(const char *what, int version, int known, hf_error *err);
/* NULL is fine. `limit` in bytes. */
hf_code hf__check_json(const char *what, const char *json, size_t limit, hf_error *err);
hf_code hf__check_optional_label(const char *what, const char *text, hf_error *err);
hf_code hf__check_time(const char *what, int64_t time, hf_error *err);
hf_code hf__check_duration(const char *what, int64_t duration, hf_error *err);
hf_code hf__check_range(const char *what, int64_t value, int64_t low, int64_t high, hf_error *err);
/* `internal`: names that begin with "holdfast." are allowed. */
hf_code hf__check_workflow_name(const char *name, bool internal, hf_error *err);
/* "billing.charge.v1", "billing.", "billing.*" or "*": a star stands at the end or nowhere. */
hf_code hf__check_pattern(const char *pattern, hf_error *err);
/* A W3C traceparent of version 00. */
bool hf__trace_valid(const char *text);
hf_code hf__check_weight(const char *flow_key, int weight, hf_error *err);
hf_code hf__check_trigger(const hf_trigger_spec *spec, size_t max_payload, hf_error *err);
hf_code hf__check_signal(const hf_signal_spec *spec, size_t max_payload, hf_error *err);
/* What others send must not look like the engine's own mail. */
hf_code hf__check_sender(const hf_signal_spec *spec, hf_error *err);
hf_code hf__check_change(const hf_change *change, hf_error *err);
hf_code hf__check_filter(const hf_filter *filter, hf_error *err);
hf_code hf__check_workflow(const hf_workflow *workflow, unsigned mask, hf_error *err);
/* A JSON array of names. */
hf_code hf__check_task_roles(const char *roles, hf_error *err);
hf_code hf__check_task(const hf_new_task *task, size_t max_payload, hf_error *err);
/* NULL: it has none, or is of a program that knows of none. */
static inline const char *hf__transition_request(const hf_transition *transition)
{
    return transition->version >= 2 ? transition->request : NULL;
}
hf_code hf__check_transition(const hf_transition *transition, size_t max_payload, hf_error *err);
/* NULL is fine. */
hf_code hf__check_request(const char *request, hf_error *err);
hf_code hf__check_step(const hf_step_record *step, size_t max_payload, hf_error *err);

#endif
