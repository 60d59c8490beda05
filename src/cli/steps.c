/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/steps.h"

#include "cli/children.h"
#include "cli/terminal.h"
#include "client/brood.h"
#include "util/alloc.h"

#include <jansson.h>
#include <string.h>

/* Ids and ends of many children are not to be read at a glance: how many, and how they ended. NULL: it says neither, or there is
 * no memory. */
static char *children_text(const struct hf__step_line *step)
{
    json_t *array = json_loads(step->output, 0, NULL);
    int64_t counts[HF_STATUS_COUNT] = { 0 };
    struct hf__buffer text = { 0 };
    struct hf__brood brood;
    if (!hf__brood_read(array, &brood)) {
        json_decref(array);
        return NULL;
    }
    if (brood.started < brood.count)
        hf__buffer_addf(&text, "%zu of ", brood.started);
    hf__buffer_addf(&text, "%zu %s", brood.count, brood.count == 1 ? "child" : "children");
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *end = json_array_get(array, i);
        const char *name = json_string_value(json_object_get(end, "status"));
        hf_status status;
        if (name && hf_status_parse(name, &status))
            counts[status]++;
    }
    if (cli_counts_total(counts) > 0)
        hf__buffer_add_text(&text, ": ");
    cli_counts_add(&text, counts);
    json_decref(array);
    return hf__buffer_take(&text);
}

char *cli_step_outcome(struct cli_session *session, const struct hf__step_line *step)
{
    if (step->status && strcmp(step->status, "waiting") == 0 && step->until) {
        char until[CLI_UNTIL_TEXT];
        cli_until_text(session, step->until, until);
        return hf__strdup(until);
    }
    bool of_children =
        !step->error && step->output && step->op && strncmp(step->op, "children", 8) == 0;
    char *children = of_children ? children_text(step) : NULL;
    if (children)
        return children;
    const char *text = step->error ? step->error : step->output;
    return cli_clean_line(text && strcmp(text, "null") != 0 ? text : "");
}
