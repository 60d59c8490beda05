/* What chooses runs, in a query or in a body.
 * SPDX-License-Identifier: Apache-2.0 */
#include "server/routes.h"

#include <holdfast/client.h>

#define FILTER(name_, field, kind_, about_)                                                        \
    {                                                                                              \
        .name = name_, .kind = HF__FIELD_##kind_, .offset = offsetof(hf_filter, field),            \
        .about = about_                                                                            \
    }

const struct hf__member hf__filter_members[] = {
    FILTER("status", statuses, STATUSES, "in one of these statuses"),
    FILTER("workflow", workflow, TEXT, "of this workflow"),
    FILTER("prefix", prefix, TEXT, "of workflows whose name begins so"),
    FILTER("key", key, TEXT, "with this key"),
    FILTER("flow_key", flow_key, TEXT, "with this flow key"),
    FILTER("subject", subject, TEXT, "about this subject"),
    FILTER("reference", reference, TEXT, "with this business reference"),
    FILTER("tag", tag, TEXT, "with this tag"),
    FILTER("step", current_step, TEXT, "whose current step is this"),
    FILTER("parent", parent, ID, "children of this run"),
    FILTER("created_after", created_after, TIME, "made at this time or later"),
    FILTER("created_before", created_before, TIME, "made before this time"),
    FILTER("overdue", overdue, BOOL, "due but not begun, or past the deadline"),
    FILTER("deleted", deleted, BOOL, "the deleted ones instead of the others"),
    FILTER("cursor", cursor, TEXT, "`next` of the page before"),
    FILTER("limit", limit, INT, "1 to 1000; default 50"),
    HF__MEMBERS_END,
};
