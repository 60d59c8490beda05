/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/filter.h"

static struct {
    unsigned given;
    unsigned statuses;
    const char *workflow, *prefix, *key, *subject, *reference, *tag, *step, *flow_key;
    hf_id parent;
    struct cli_when created_after, created_before;
    bool overdue, deleted;
} args;

#define CHOOSES .mask = &args.given, .bit = 1

const struct cli_option cli_filter_options[] = {
    CLI_OPT(STATUS_SET, 's', "status", "STATUS", "in this status; repeat it, or separate by commas",
            .value = &args.statuses, CHOOSES),
    CLI_OPT(TEXT, 'w', "workflow", "NAME", "of this workflow", .value = &args.workflow, CHOOSES),
    CLI_OPT(TEXT, 0, "prefix", "PREFIX", "of workflows whose name begins so, as in billing.",
            .value = &args.prefix, CHOOSES),
    CLI_OPT(TEXT, 'k', "key", "KEY", "with this key", .value = &args.key, CHOOSES),
    CLI_OPT(TEXT, 0, "subject", "TEXT", "about this subject", .value = &args.subject, CHOOSES),
    CLI_OPT(TEXT, 0, "reference", "TEXT", "with this business reference", .value = &args.reference,
            CHOOSES),
    CLI_OPT(TEXT, 't', "tag", "TAG", "with this tag", .value = &args.tag, CHOOSES),
    CLI_OPT(TEXT, 0, "flow-key", "KEY", "with this flow key", .value = &args.flow_key, CHOOSES),
    CLI_OPT(TEXT, 0, "step", "NAME", "whose current step is this", .value = &args.step, CHOOSES),
    CLI_OPT(ID, 0, "parent", "ID", "children of this run", .value = &args.parent, CHOOSES),
    CLI_OPT(WHEN, 0, "created-after", "WHEN", "made at this time or later; 2h means two hours ago",
            .value = &args.created_after, CHOOSES),
    CLI_OPT(WHEN, 0, "created-before", "WHEN", "made before this time",
            .value = &args.created_before, CHOOSES),
    CLI_OPT(SWITCH, 0, "overdue", NULL, "due but not begun, or past the deadline",
            .value = &args.overdue, CHOOSES),
    CLI_OPT(SWITCH, 0, "deleted", NULL, "deleted ones instead of the others",
            .value = &args.deleted, CHOOSES),
    CLI_OPTIONS_END,
};

bool cli_filter_given(void)
{
    return args.given != 0;
}

static int64_t point_of(struct cli_session *session, const struct cli_when *when)
{
    if (!when->given)
        return 0;
    int64_t point = when->ago ? cli_now(session) - when->value : when->value;
    return point > 0 ? point : 1;
}

hf_filter cli_filter(struct cli_session *session)
{
    hf_filter filter = HF_FILTER_INIT;
    filter.statuses = args.statuses;
    filter.workflow = args.workflow;
    filter.prefix = args.prefix;
    filter.key = args.key;
    filter.subject = args.subject;
    filter.reference = args.reference;
    filter.tag = args.tag;
    filter.current_step = args.step;
    filter.flow_key = args.flow_key;
    filter.parent = args.parent;
    filter.created_after = point_of(session, &args.created_after);
    filter.created_before = point_of(session, &args.created_before);
    filter.overdue = args.overdue;
    filter.deleted = args.deleted;
    return filter;
}
