/* The fields of the public records, as machines read them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "record/field.h"

#include <holdfast/audit.h>
#include <holdfast/dead_letter.h>
#include <holdfast/outbox.h>
#include <holdfast/schedule.h>
#include <holdfast/task.h>
#include <holdfast/token.h>

#include <stddef.h>

#define FIELD(type, member, kind)                                                                  \
    {                                                                                              \
#member, HF__FIELD_##kind, offsetof(type, member)                                          \
    }

const struct hf__field hf__run_fields[] = {
    FIELD(hf_run, id, ID),
    FIELD(hf_run, tenant, TEXT),
    FIELD(hf_run, workflow, TEXT),
    FIELD(hf_run, key, TEXT),
    FIELD(hf_run, status, STATUS),
    FIELD(hf_run, priority, INT),
    FIELD(hf_run, attempt, INT),
    FIELD(hf_run, max_attempts, INT),
    FIELD(hf_run, version, INT64),
    FIELD(hf_run, revision, INT64),
    FIELD(hf_run, run_at, TIME),
    FIELD(hf_run, lease_until, TIME),
    FIELD(hf_run, leased_by, TEXT),
    FIELD(hf_run, pause_requested, BOOL),
    FIELD(hf_run, input, JSON),
    FIELD(hf_run, state, JSON),
    FIELD(hf_run, result, JSON),
    FIELD(hf_run, error, JSON),
    FIELD(hf_run, error_code, TEXT),
    FIELD(hf_run, last_error, TEXT),
    FIELD(hf_run, current_step, TEXT),
    FIELD(hf_run, waiting_kind, TEXT),
    FIELD(hf_run, waiting_token, TEXT),
    FIELD(hf_run, waiting_until, TIME),
    FIELD(hf_run, wait_count, INT),
    FIELD(hf_run, last_worker, TEXT),
    FIELD(hf_run, subject, TEXT),
    FIELD(hf_run, reference, TEXT),
    FIELD(hf_run, tags, WORDS),
    FIELD(hf_run, partition, TEXT),
    FIELD(hf_run, trace, TEXT),
    FIELD(hf_run, actor, TEXT),
    FIELD(hf_run, parent, ID),
    FIELD(hf_run, root, ID),
    FIELD(hf_run, timeout_at, TIME),
    FIELD(hf_run, created_at, TIME),
    FIELD(hf_run, started_at, TIME),
    FIELD(hf_run, updated_at, TIME),
    FIELD(hf_run, paused_at, TIME),
    FIELD(hf_run, finished_at, TIME),
    FIELD(hf_run, deleted_at, TIME),
    FIELD(hf_run, delete_reason, TEXT),
    FIELD(hf_run, flow_key, TEXT),
    FIELD(hf_run, debounce_key, TEXT),
    { NULL, HF__FIELD_TEXT, 0 },
};

const struct hf__field hf__event_fields[] = {
    FIELD(hf_event, run, ID),        FIELD(hf_event, seq, INT64), FIELD(hf_event, position, INT64),
    FIELD(hf_event, version, INT64), FIELD(hf_event, kind, TEXT), FIELD(hf_event, name, TEXT),
    FIELD(hf_event, actor, TEXT),    FIELD(hf_event, step, TEXT), FIELD(hf_event, data, JSON),
    FIELD(hf_event, at, TIME),       { NULL, HF__FIELD_TEXT, 0 },
};

const struct hf__field hf__workflow_fields[] = {
    FIELD(hf_workflow, name, TEXT),
    FIELD(hf_workflow, paused, BOOL),
    FIELD(hf_workflow, max_attempts, INT),
    FIELD(hf_workflow, retry_base, DURATION),
    FIELD(hf_workflow, retry_cap, DURATION),
    FIELD(hf_workflow, lease, DURATION),
    FIELD(hf_workflow, timeout, DURATION),
    FIELD(hf_workflow, retention, DURATION),
    FIELD(hf_workflow, dead_letter, TEXT),
    FIELD(hf_workflow, fit_within, SECONDS),
    FIELD(hf_workflow, on_cancel, TEXT),
    FIELD(hf_workflow, children, TEXT),
    FIELD(hf_workflow, definition, TEXT),
    FIELD(hf_workflow, created_at, TIME),
    FIELD(hf_workflow, updated_at, TIME),
    FIELD(hf_workflow, due, INT64),
    FIELD(hf_workflow, delayed, INT64),
    FIELD(hf_workflow, parked, INT),
    FIELD(hf_workflow, leased, INT64),
    FIELD(hf_workflow, failed, INT64),
    FIELD(hf_workflow, workers, INT),
    FIELD(hf_workflow, max_running, INT),
    FIELD(hf_workflow, key_max_running, INT),
    { "rate_count", HF__FIELD_INT, offsetof(hf_workflow, rate.count) },
    { "rate_interval", HF__FIELD_DURATION, offsetof(hf_workflow, rate.interval) },
    { "rate_burst", HF__FIELD_INT, offsetof(hf_workflow, rate.burst) },
    { "key_rate_count", HF__FIELD_INT, offsetof(hf_workflow, key_rate.count) },
    { "key_rate_interval", HF__FIELD_DURATION, offsetof(hf_workflow, key_rate.interval) },
    { "key_rate_burst", HF__FIELD_INT, offsetof(hf_workflow, key_rate.burst) },
    FIELD(hf_workflow, weights, JSON),
    { NULL, HF__FIELD_TEXT, 0 },
};

const struct hf__field hf__worker_fields[] = {
    FIELD(hf_worker_info, name, TEXT),     FIELD(hf_worker_info, host, TEXT),
    FIELD(hf_worker_info, pid, INT),       FIELD(hf_worker_info, program, TEXT),
    FIELD(hf_worker_info, serves, WORDS),  FIELD(hf_worker_info, threads, INT),
    FIELD(hf_worker_info, live, BOOL),     FIELD(hf_worker_info, idle, BOOL),
    FIELD(hf_worker_info, draining, BOOL), FIELD(hf_worker_info, running, INT64),
    FIELD(hf_worker_info, stuck, INT),     FIELD(hf_worker_info, started_at, TIME),
    FIELD(hf_worker_info, seen_at, TIME),  { NULL, HF__FIELD_TEXT, 0 },
};

const struct hf__field hf__tenant_fields[] = {
    FIELD(hf_tenant, name, TEXT),
    FIELD(hf_tenant, disabled, BOOL),
    FIELD(hf_tenant, created_at, TIME),
    { NULL, HF__FIELD_TEXT, 0 },
};

const struct hf__field hf__schedule_fields[] = {
    FIELD(hf_schedule, name, TEXT),       FIELD(hf_schedule, cron, TEXT),
    FIELD(hf_schedule, timezone, TEXT),   FIELD(hf_schedule, workflow, TEXT),
    FIELD(hf_schedule, input, JSON),      FIELD(hf_schedule, overlap, TEXT),
    FIELD(hf_schedule, catch_up, TEXT),   FIELD(hf_schedule, priority, INT),
    FIELD(hf_schedule, tags, WORDS),      FIELD(hf_schedule, paused, BOOL),
    FIELD(hf_schedule, status, STATUS),   FIELD(hf_schedule, run, ID),
    FIELD(hf_schedule, next_at, TIME),    FIELD(hf_schedule, last_at, TIME),
    FIELD(hf_schedule, last_run, ID),     FIELD(hf_schedule, fired, INT64),
    FIELD(hf_schedule, skipped, INT64),   FIELD(hf_schedule, queued, INT),
    FIELD(hf_schedule, last_error, TEXT), FIELD(hf_schedule, created_at, TIME),
    FIELD(hf_schedule, updated_at, TIME), { NULL, HF__FIELD_TEXT, 0 },
};

const struct hf__field hf__token_fields[] = {
    FIELD(hf_token, id, ID),
    FIELD(hf_token, name, TEXT),
    { "roles", HF__FIELD_WORDS, offsetof(hf_token, role_names) },
    FIELD(hf_token, task_roles, WORDS),
    FIELD(hf_token, created_at, TIME),
    FIELD(hf_token, created_by, TEXT),
    FIELD(hf_token, expires_at, TIME),
    FIELD(hf_token, revoked_at, TIME),
    FIELD(hf_token, revoked_by, TEXT),
    { NULL, HF__FIELD_TEXT, 0 },
};

const struct hf__field hf__subscription_fields[] = {
    FIELD(hf_subscription, name, TEXT),
    FIELD(hf_subscription, url, TEXT),
    FIELD(hf_subscription, events, WORDS),
    FIELD(hf_subscription, mode, TEXT),
    FIELD(hf_subscription, state, TEXT),
    FIELD(hf_subscription, max_failures, INT),
    FIELD(hf_subscription, failures, INT),
    FIELD(hf_subscription, last_error, TEXT),
    FIELD(hf_subscription, retry_at, TIME),
    FIELD(hf_subscription, pending, INT64),
    FIELD(hf_subscription, oldest_at, TIME),
    FIELD(hf_subscription, run, ID),
    FIELD(hf_subscription, created_at, TIME),
    FIELD(hf_subscription, updated_at, TIME),
    { NULL, HF__FIELD_TEXT, 0 },
};

const struct hf__field hf__outbox_fields[] = {
    FIELD(hf_outbox_entry, id, ID),
    FIELD(hf_outbox_entry, position, INT64),
    FIELD(hf_outbox_entry, run, ID),
    FIELD(hf_outbox_entry, type, TEXT),
    FIELD(hf_outbox_entry, payload, JSON),
    FIELD(hf_outbox_entry, created_at, TIME),
    FIELD(hf_outbox_entry, published_at, TIME),
    FIELD(hf_outbox_entry, pending, INT),
    FIELD(hf_outbox_entry, attempts, INT),
    FIELD(hf_outbox_entry, last_error, TEXT),
    { NULL, HF__FIELD_TEXT, 0 },
};

const struct hf__field hf__dead_letter_fields[] = {
    FIELD(hf_dead_letter, id, ID),       FIELD(hf_dead_letter, run, ID),
    FIELD(hf_dead_letter, reason, TEXT), FIELD(hf_dead_letter, envelope, JSON),
    FIELD(hf_dead_letter, node, TEXT),   FIELD(hf_dead_letter, created_at, TIME),
    { NULL, HF__FIELD_TEXT, 0 },
};

const struct hf__field hf__audit_problem_fields[] = {
    FIELD(hf_audit_problem, problem, TEXT), FIELD(hf_audit_problem, meaning, TEXT),
    FIELD(hf_audit_problem, block, INT64),  FIELD(hf_audit_problem, run, ID),
    FIELD(hf_audit_problem, seq, INT64),    { NULL, HF__FIELD_TEXT, 0 },
};

const struct hf__field hf__task_fields[] = {
    FIELD(hf_task, id, ID),           FIELD(hf_task, run, ID),
    FIELD(hf_task, workflow, TEXT),   FIELD(hf_task, name, TEXT),
    FIELD(hf_task, status, TEXT),     FIELD(hf_task, version, INT64),
    FIELD(hf_task, assignee, TEXT),   FIELD(hf_task, roles, WORDS),
    FIELD(hf_task, payload, JSON),    FIELD(hf_task, form, JSON),
    FIELD(hf_task, outcome, TEXT),    FIELD(hf_task, result, JSON),
    FIELD(hf_task, due_at, TIME),     FIELD(hf_task, created_at, TIME),
    FIELD(hf_task, updated_at, TIME), FIELD(hf_task, completed_at, TIME),
    { NULL, HF__FIELD_TEXT, 0 },
};
