/* holdfast tree
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/children.h"
#include "cli/commands.h"
#include "cli/field.h"
#include "cli/run_ref.h"
#include "cli/terminal.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_RUNS = 2000 }; /* however deep and wide: a tree that nobody can read helps nobody */

static struct {
    int64_t depth, children;
} args = { .depth = 5, .children = 20 };

static const struct cli_option options[] = {
    CLI_OPT(NUMBER, 0, "depth", "N", "levels of children to show; default 5", .value = &args.depth,
            .min = 0, .max = 100),
    CLI_OPT(NUMBER, 0, "children", "N",
            "children of one run to show, those that need a look first; default 20",
            .value = &args.children, .min = 0, .max = 1000),
    CLI_OPTIONS_END,
};

static const struct hf__field node_fields[] = {
    { "id", HF__FIELD_ID, offsetof(hf_run, id) },
    { "workflow", HF__FIELD_TEXT, offsetof(hf_run, workflow) },
    { "key", HF__FIELD_TEXT, offsetof(hf_run, key) },
    { "status", HF__FIELD_STATUS, offsetof(hf_run, status) },
    { "attempt", HF__FIELD_INT, offsetof(hf_run, attempt) },
    { "created_at", HF__FIELD_TIME, offsetof(hf_run, created_at) },
    { "started_at", HF__FIELD_TIME, offsetof(hf_run, started_at) },
    { "finished_at", HF__FIELD_TIME, offsetof(hf_run, finished_at) },
    { "last_error", HF__FIELD_TEXT, offsetof(hf_run, last_error) },
    { NULL, HF__FIELD_TEXT, 0 },
};

/* The lines to the left of a run. */
struct strokes {
    const char *child, *last_child; /* before a run */
    const char *beside, *nothing;   /* before what hangs below it */
    const char *more;
};

static const struct strokes utf8 = { "├─ ", "└─ ", "│  ", "   ", "… and" };
static const struct strokes ascii = { "|- ", "`- ", "|  ", "   ", "... and" };

struct tree {
    struct cli_session *session;
    const struct strokes *strokes;
    bool colors;
    int width; /* columns of the terminal; 0: none */
    int shown; /* runs so far */
    struct hf__buffer prefix;
    struct hf__buffer json;
};

/* The children of one run: those to show, oldest first, and how many others there are in each status. */
struct family {
    hf_runs *pages[2];
    int64_t others[HF_STATUS_COUNT];
    int64_t total;
    size_t count; /* to show */
};

static hf_run *member(const struct family *family, size_t index)
{
    /* A page is newest first. The rest comes after those that need a look. */
    for (int page = 0; page < 2; page++) {
        size_t count = family->pages[page] ? family->pages[page]->count : 0;
        if (index < count)
            return &family->pages[page]->items[count - 1 - index];
        index -= count;
    }
    return NULL;
}

static void family_free(struct family *family)
{
    hf_runs_free(family->pages[0]);
    hf_runs_free(family->pages[1]);
}

static hf_code load_page(struct tree *tree, hf_id parent, unsigned statuses, int64_t limit,
                         hf_runs **out, hf_error *err)
{
    hf_filter filter = HF_FILTER_INIT;
    filter.parent = parent;
    filter.statuses = statuses;
    filter.limit = (int)limit;
    return limit > 0 ? hf_list(tree->session->client, out, &filter, err) : HF_OK;
}

static hf_code load_members(struct tree *tree, hf_id parent, struct family *family, int64_t room,
                            hf_error *err)
{
    const unsigned quiet = 1u << HF_SUCCEEDED | 1u << HF_PENDING;
    if (room >= family->total) {
        family->count = (size_t)family->total;
        return load_page(tree, parent, 0, family->total, &family->pages[0], err);
    }
    hf_code code = load_page(tree, parent, ~quiet & 0x7fu, room, &family->pages[0], err);
    if (code == HF_OK && family->pages[0])
        room -= (int64_t)family->pages[0]->count;
    if (code == HF_OK)
        code = load_page(tree, parent, quiet, room, &family->pages[1], err);
    return code;
}

static hf_code load_family(struct tree *tree, hf_id parent, int depth, struct family *family,
                           hf_error *err)
{
    *family = (struct family){ 0 };
    hf_code code = hf_child_counts(tree->session->client, family->others, parent, err);
    family->total = cli_counts_total(family->others);
    if (code != HF_OK || family->total == 0 || depth >= args.depth)
        return code;
    int64_t room = MOST_RUNS - tree->shown;
    code = load_members(tree, parent, family, room < args.children ? room : args.children, err);
    family->count = 0;
    for (int page = 0; code == HF_OK && page < 2; page++)
        family->count += family->pages[page] ? family->pages[page]->count : 0;
    for (size_t i = 0; i < family->count; i++)
        if (family->others[member(family, i)->status] > 0)
            family->others[member(family, i)->status]--;
    return code;
}

/* ---- For people ---- */

static void add_duration(struct tree *tree, struct hf__buffer *line, const hf_run *run)
{
    char text[CLI_SPAN_TEXT];
    if (!run->started_at)
        return;
    int64_t end = run->finished_at ? run->finished_at : cli_now(tree->session);
    cli_span_text(end - run->started_at, text);
    hf__buffer_addf(line, "  %s", text);
}

static void add_clean(struct hf__buffer *line, const char *before, const char *text)
{
    char *clean = text ? cli_clean_line(text) : NULL;
    if (clean && *clean)
        hf__buffer_addf(line, "%s%s", before, clean);
    free(clean);
}

/* What follows the status: it may be cut at the terminal's edge. */
static void add_rest(struct tree *tree, struct hf__buffer *line, const hf_run *run)
{
    char id[HF_ID_TEXT];
    hf_id_format(run->id, id);
    add_duration(tree, line, run);
    hf__buffer_addf(line, "  %s", id);
    if (run->status == HF_FAILED)
        add_clean(line, "  ", run->last_error);
}

static void put_cut(const struct tree *tree, const char *text, int used)
{
    int room = tree->width - used;
    if (tree->width == 0 || cli_text_width(text) <= room)
        fputs(text, stdout);
    else if (room > 1)
        printf("%.*s%s", (int)cli_text_fit(text, room - 1), text,
               tree->strokes == &utf8 ? "…" : "~");
}

static void show_run(struct tree *tree, const char *stroke, const hf_run *run)
{
    struct hf__buffer head = { 0 };
    struct hf__buffer rest = { 0 };
    const char *status = hf_status_name(run->status);
    if (tree->prefix.data)
        hf__buffer_add_text(&head, tree->prefix.data);
    hf__buffer_add_text(&head, stroke);
    add_clean(&head, "", run->workflow);
    add_clean(&head, "/", run->key);
    hf__buffer_add_text(&head, "  ");
    add_rest(tree, &rest, run);
    if (!head.failed && !rest.failed) {
        int used = cli_text_width(head.data);
        int status_width = (int)strlen(status);
        put_cut(tree, head.data, 0);
        if (tree->width == 0 || used + status_width <= tree->width)
            printf("%s%s%s", tree->colors ? cli_color_of(status) : "", status,
                   tree->colors ? cli_color_end : "");
        put_cut(tree, rest.data, used + status_width);
    }
    putchar('\n');
    hf__buffer_free(&head);
    hf__buffer_free(&rest);
}

static void show_others(struct tree *tree, const struct family *family, int depth)
{
    int64_t others = cli_counts_total(family->others);
    if (others == 0)
        return;
    struct hf__buffer line = { 0 };
    char count[CLI_COUNT_TEXT];
    cli_count_text(others, count);
    hf__buffer_addf(&line, "%s%s", tree->prefix.data ? tree->prefix.data : "",
                    tree->strokes->last_child);
    if (family->count > 0)
        hf__buffer_addf(&line, "%s %s more: ", tree->strokes->more, count);
    else
        hf__buffer_addf(&line, "%s %s: ", count, others == 1 ? "child" : "children");
    cli_counts_add(&line, family->others);
    if (depth >= args.depth)
        hf__buffer_add_text(&line, " (see --depth)");
    if (!line.failed)
        put_cut(tree, line.data, 0);
    putchar('\n');
    hf__buffer_free(&line);
}

static hf_code show_children(struct tree *tree, const hf_run *run, int depth, hf_error *err)
{
    struct family family;
    hf_code code = load_family(tree, run->id, depth, &family, err);
    bool others = code == HF_OK && cli_counts_total(family.others) > 0;
    tree->shown += (int)family.count;
    for (size_t i = 0; code == HF_OK && i < family.count; i++) {
        bool last = i + 1 == family.count && !others;
        size_t length = tree->prefix.length;
        show_run(tree, last ? tree->strokes->last_child : tree->strokes->child, member(&family, i));
        hf__buffer_add_text(&tree->prefix, last ? tree->strokes->nothing : tree->strokes->beside);
        code = show_children(tree, member(&family, i), depth + 1, err);
        tree->prefix.length = length;
        if (tree->prefix.data)
            tree->prefix.data[length] = '\0';
    }
    if (code == HF_OK)
        show_others(tree, &family, depth);
    family_free(&family);
    return code;
}

/* ---- For machines ---- */

static void add_others(struct hf__buffer *json, const int64_t others[HF_STATUS_COUNT])
{
    const char *separator = "";
    hf__buffer_add_text(json, ",\"more\":{");
    for (int status = 0; status < HF_STATUS_COUNT; status++) {
        if (others[status] == 0)
            continue;
        hf__buffer_addf(json, "%s\"%s\":%lld", separator, hf_status_name((hf_status)status),
                        (long long)others[status]);
        separator = ",";
    }
    hf__buffer_add_text(json, "}");
}

static hf_code add_json(struct tree *tree, const hf_run *run, int depth, hf_error *err)
{
    struct family family;
    hf_code code = load_family(tree, run->id, depth, &family, err);
    tree->shown += (int)family.count;
    hf__buffer_add_text(&tree->json, "{");
    hf__record_members(&tree->json, node_fields, run);
    hf__buffer_add_text(&tree->json, ",\"children\":[");
    for (size_t i = 0; code == HF_OK && i < family.count; i++) {
        if (i > 0)
            hf__buffer_add_text(&tree->json, ",");
        code = add_json(tree, member(&family, i), depth + 1, err);
    }
    hf__buffer_add_text(&tree->json, "]");
    add_others(&tree->json, family.others);
    hf__buffer_add_text(&tree->json, "}");
    family_free(&family);
    return code;
}

static hf_code show_json(struct tree *tree, const hf_run *run, hf_error *err)
{
    hf_code code = add_json(tree, run, 0, err);
    if (code == HF_OK && tree->json.failed)
        fputs("holdfast: memory ran out\n", stderr);
    else if (code == HF_OK)
        puts(tree->json.data);
    return code;
}

static int show_tree(struct cli_session *session, int count, char **operands)
{
    (void)count;
    int status = CLI_OK;
    hf_error err = { 0 };
    hf_run *run = NULL;
    hf_code code = HF_OK;
    struct tree tree = {
        .session = session,
        .strokes = cli_terminal_utf8() ? &utf8 : &ascii,
        .colors = cli_terminal_colors(session),
        .width = cli_terminal_width(),
        .shown = 1,
    };
    if (!cli_run_get(session, operands[0], &run, &status))
        return status;
    if (session->json) {
        code = show_json(&tree, run, &err);
    } else {
        show_run(&tree, "", run);
        code = show_children(&tree, run, 0, &err);
    }
    if (code != HF_OK)
        status = cli_run_fail(session, operands[0], &err);
    hf__buffer_free(&tree.prefix);
    hf__buffer_free(&tree.json);
    hf_run_free(run);
    return status;
}

const struct cli_command cli_command_tree = {
    .name = "tree",
    .summary = "Show a run with its children, their children, and so on",
    .operands = "RUN",
    .details = "Each with its status and how long it has been running or took. Of many children "
               "those that failed or are under way are shown, the others are counted; at most 2000 "
               "runs are shown. With --json one object with its children inside it, and the "
               "counts of those that are left out in `more`. RUN is an id, or WORKFLOW/KEY.",
    .examples = "holdfast tree order.v1/o-17\n"
                "holdfast tree order.v1/o-17 --children 100 --depth 1",
    .min_operands = 1,
    .max_operands = 1,
    .options = options,
    .run = show_tree,
};
