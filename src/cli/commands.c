/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"

#include <string.h>

static const struct cli_command *const start[] = {
    &cli_command_workflow_create,
    &cli_command_worker,
    &cli_command_trigger,
    &cli_command_list,
    &cli_command_get,
    &cli_command_watch,
    &cli_command_serve,
    &cli_command_help,
    NULL,
};

static const struct cli_command *const runs[] = {
    &cli_command_wait,
    &cli_command_events,
    &cli_command_steps,
    &cli_command_tree,
    &cli_command_signal,
    &cli_command_cancel,
    &cli_command_retry,
    &cli_command_pause,
    &cli_command_resume,
    &cli_command_fork,
    &cli_command_delete,
    &cli_command_restore,
    NULL,
};

static const struct cli_command *const failures[] = {
    &cli_command_dead_letter_list,
    &cli_command_dead_letter_show,
    &cli_command_dead_letter_requeue,
    &cli_command_dead_letter_discard,
    NULL,
};

static const struct cli_command *const workflows[] = {
    &cli_command_workflows,
    &cli_command_workflow_list,
    &cli_command_workflow_show,
    &cli_command_workflow_set,
    &cli_command_workflow_pause,
    &cli_command_workflow_resume,
    NULL,
};

static const struct cli_command *const schedules[] = {
    &cli_command_schedule_create, &cli_command_schedule_list,
    &cli_command_schedule_show,   &cli_command_schedule_next,
    &cli_command_schedule_pause,  &cli_command_schedule_resume,
    &cli_command_schedule_delete, NULL,
};

static const struct cli_command *const programs[] = {
    &cli_command_step, &cli_command_sleep, &cli_command_child_start, &cli_command_child_wait,
    &cli_command_ask,  &cli_command_emit,  &cli_command_progress,    &cli_command_state,
    &cli_command_now,  &cli_command_uuid,  &cli_command_random,      NULL,
};

static const struct cli_command *const tasks[] = {
    &cli_command_task_list,
    &cli_command_task_show,
    &cli_command_task_claim,
    &cli_command_task_complete,
    &cli_command_task_release,
    &cli_command_task_reassign,
    NULL,
};

static const struct cli_command *const integration[] = {
    &cli_command_subscription_create,
    &cli_command_subscription_list,
    &cli_command_subscription_show,
    &cli_command_subscription_test,
    &cli_command_subscription_park,
    &cli_command_subscription_resume,
    &cli_command_subscription_delete,
    &cli_command_outbox_list,
    NULL,
};

static const struct cli_command *const operations[] = {
    &cli_command_top,          &cli_command_doctor,     &cli_command_workers,
    &cli_command_lock,         &cli_command_purge,      &cli_command_migrate,
    &cli_command_audit_verify, &cli_command_audit_head, NULL,
};

static const struct cli_command *const access[] = {
    &cli_command_tenant_list,    &cli_command_tenant_create,
    &cli_command_tenant_disable, &cli_command_tenant_enable,
    &cli_command_tenant_grant,   &cli_command_tenant_revoke,
    &cli_command_token_create,   &cli_command_token_list,
    &cli_command_token_revoke,   NULL,
};

static const struct cli_command *const program[] = {
    &cli_command_completion_bash,
    &cli_command_completion_fish,
    &cli_command_completion_zsh,
    &cli_command_version,
    NULL,
};

/* The most used first, in a group and among the groups. */
const struct cli_group cli_groups[] = {
    { "Start here", start },           { "Runs", runs },
    { "Dead letters", failures },      { "Workflows and their flow", workflows },
    { "Schedules", schedules },        { "Inside durable programs", programs },
    { "Tasks for people", tasks },     { "Events for other systems", integration },
    { "Operations", operations },      { "Tenants and access", access },
    { "The program itself", program }, { NULL, NULL },
};

const struct cli_option cli_global_options[] = {
    CLI_OPT(TEXT, 0, "store", "URL",
            "sqlite:FILE or postgres://USER@HOST/DB; default HOLDFAST_STORE, else "
            "sqlite:holdfast.db",
            .value = &cli_the_session.store),
    CLI_OPT(TEXT, 0, "tenant", "NAME", "whose runs; default HOLDFAST_TENANT, else default",
            .value = &cli_the_session.tenant),
    CLI_OPT(TEXT, 0, "actor", "NAME",
            "who acts, for the journal; default HOLDFAST_ACTOR, else the user's name",
            .value = &cli_the_session.actor),
    CLI_OPT(NUMBER, 0, "max-payload", "BYTES",
            "largest input, result or signal; default 1048576, at most 268435456",
            .value = &cli_the_session.max_payload, .min = 1, .max = 268435456),
    CLI_OPT(SWITCH, 0, "json", NULL, "for machines: one JSON object per line",
            .value = &cli_the_session.json),
    CLI_OPT(SWITCH, 'q', "quiet", NULL, "no notices, warnings and progress",
            .value = &cli_the_session.quiet),
    CLI_OPT(SWITCH, 0, "utc", NULL, "exact times on a terminal too, instead of \"3m ago\"",
            .value = &cli_the_session.utc),
    CLI_OPT(SWITCH, 0, "no-color", NULL, "no colours; NO_COLOR in the environment does the same",
            .value = &cli_the_session.no_color),
    CLI_OPT(SWITCH, 'h', "help", NULL, "show help and exit", .value = &cli_the_session.help),
    CLI_OPT(SWITCH, 'V', "version", NULL, "show the version and exit",
            .value = &cli_the_session.version),
    CLI_OPTIONS_END,
};

const struct cli_command *cli_command_next(struct cli_command_walk *walk)
{
    if (!walk->group)
        walk->group = cli_groups;
    while (walk->group->title && !walk->group->commands[walk->at]) {
        walk->group++;
        walk->at = 0;
    }
    return walk->group->title ? walk->group->commands[walk->at++] : NULL;
}

const struct cli_command *cli_command_find(const char *name)
{
    struct cli_command_walk walk = { 0 };
    const struct cli_command *command;
    while ((command = cli_command_next(&walk)))
        if (strcmp(command->name, name) == 0)
            return command;
    return NULL;
}

bool cli_command_is_family(const char *word)
{
    struct cli_command_walk walk = { 0 };
    const struct cli_command *command;
    size_t length = strlen(word);
    while ((command = cli_command_next(&walk)))
        if (strncmp(command->name, word, length) == 0 && command->name[length] == ' ')
            return true;
    return false;
}

bool cli_command_opens(const struct cli_command *command)
{
    struct cli_command_walk walk = { 0 };
    const struct cli_command *first;
    size_t length = strcspn(command->name, " ");
    do
        first = cli_command_next(&walk);
    while (first != command && (strcspn(first->name, " ") != length ||
                                strncmp(first->name, command->name, length) != 0));
    return first == command;
}
