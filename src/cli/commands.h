/* Every command, defined in the file of its family.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_COMMANDS_H
#define HF_CLI_COMMANDS_H

#include "cli/command.h"

extern const struct cli_command cli_command_trigger;
extern const struct cli_command cli_command_get;
extern const struct cli_command cli_command_list;
extern const struct cli_command cli_command_wait;
extern const struct cli_command cli_command_events;
extern const struct cli_command cli_command_cancel;
extern const struct cli_command cli_command_pause;
extern const struct cli_command cli_command_resume;
extern const struct cli_command cli_command_retry;
extern const struct cli_command cli_command_delete;
extern const struct cli_command cli_command_restore;
extern const struct cli_command cli_command_signal;
extern const struct cli_command cli_command_steps;
extern const struct cli_command cli_command_tree;
extern const struct cli_command cli_command_watch;
extern const struct cli_command cli_command_fork;
extern const struct cli_command cli_command_serve;
extern const struct cli_command cli_command_worker;
extern const struct cli_command cli_command_workers;
extern const struct cli_command cli_command_step;
extern const struct cli_command cli_command_sleep;
extern const struct cli_command cli_command_child_start;
extern const struct cli_command cli_command_child_wait;
extern const struct cli_command cli_command_progress;
extern const struct cli_command cli_command_state;
extern const struct cli_command cli_command_emit;
extern const struct cli_command cli_command_now;
extern const struct cli_command cli_command_uuid;
extern const struct cli_command cli_command_random;
extern const struct cli_command cli_command_workflow_create;
extern const struct cli_command cli_command_workflow_set;
extern const struct cli_command cli_command_workflow_show;
extern const struct cli_command cli_command_workflow_list;
extern const struct cli_command cli_command_workflow_pause;
extern const struct cli_command cli_command_workflow_resume;
extern const struct cli_command cli_command_workflows;
extern const struct cli_command cli_command_tenant_create;
extern const struct cli_command cli_command_tenant_disable;
extern const struct cli_command cli_command_tenant_enable;
extern const struct cli_command cli_command_tenant_list;
extern const struct cli_command cli_command_tenant_grant;
extern const struct cli_command cli_command_tenant_revoke;
extern const struct cli_command cli_command_token_create;
extern const struct cli_command cli_command_token_list;
extern const struct cli_command cli_command_token_revoke;
extern const struct cli_command cli_command_schedule_create;
extern const struct cli_command cli_command_schedule_list;
extern const struct cli_command cli_command_schedule_show;
extern const struct cli_command cli_command_schedule_next;
extern const struct cli_command cli_command_schedule_pause;
extern const struct cli_command cli_command_schedule_resume;
extern const struct cli_command cli_command_schedule_delete;
extern const struct cli_command cli_command_subscription_create;
extern const struct cli_command cli_command_subscription_list;
extern const struct cli_command cli_command_subscription_show;
extern const struct cli_command cli_command_subscription_test;
extern const struct cli_command cli_command_subscription_park;
extern const struct cli_command cli_command_subscription_resume;
extern const struct cli_command cli_command_subscription_delete;
extern const struct cli_command cli_command_outbox_list;
extern const struct cli_command cli_command_ask;
extern const struct cli_command cli_command_task_list;
extern const struct cli_command cli_command_task_show;
extern const struct cli_command cli_command_task_claim;
extern const struct cli_command cli_command_task_release;
extern const struct cli_command cli_command_task_reassign;
extern const struct cli_command cli_command_task_complete;
extern const struct cli_command cli_command_lock;
extern const struct cli_command cli_command_dead_letter_list;
extern const struct cli_command cli_command_dead_letter_show;
extern const struct cli_command cli_command_dead_letter_requeue;
extern const struct cli_command cli_command_dead_letter_discard;
extern const struct cli_command cli_command_audit_verify;
extern const struct cli_command cli_command_audit_head;
extern const struct cli_command cli_command_purge;
extern const struct cli_command cli_command_migrate;
extern const struct cli_command cli_command_doctor;
extern const struct cli_command cli_command_top;
extern const struct cli_command cli_command_version;
extern const struct cli_command cli_command_help;
extern const struct cli_command cli_command_completion_bash;
extern const struct cli_command cli_command_completion_fish;
extern const struct cli_command cli_command_completion_zsh;

#endif
