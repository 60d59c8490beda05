/* Tasks: lists of them, and what people do with them.
 * SPDX-License-Identifier: Apache-2.0 */
#include <holdfast/task.h>

#include <stdlib.h>
#include <string.h>

#include "client/answer.h"
#include "client/ask.h"
#include "client/check.h"
#include "client/client.h"
#include "client/ids.h"
#include "util/error.h"
#include "util/text.h"

#define DEFAULT_LIMIT 50
#define MAX_LIMIT 1000

static const char *const statuses[] = { "open", "claimed", "completed", "cancelled" };
enum { STATUSES = 4, UNANSWERED = 1 | 2, ALL = 15 };

/* ---- Roles ---- */

/* The next name in a JSON array of plain names, and its length; NULL: no more. */
static const char *next_role(const char *at, size_t *length)
{
    at = at ? strchr(at, '"') : NULL;
    *length = at ? strcspn(at + 1, "\"") : 0;
    return at ? at + 1 : NULL;
}

static bool has_role(const char *roles, const char *role, size_t role_length)
{
    size_t length;
    for (const char *at = next_role(roles, &length); at; at = next_role(at + length + 1, &length))
        if (length == role_length && memcmp(at, role, length) == 0)
            return true;
    return false;
}

bool hf_task_allows(const hf_task *task, const char *task_roles)
{
    size_t length;
    if (!task_roles || !*task_roles)
        return true;
    for (const char *at = next_role(task_roles, &length); at;
         at = next_role(at + length + 1, &length))
        if (has_role(task->roles, at, length))
            return true;
    return false;
}

/* ---- Reading ---- */

static void read_task(hf_task *task, const struct hf__cell *c)
{
    *task = (hf_task){
        .id = hf__as_uuid(c[0]),
        .run = hf__as_uuid(c[1]),
        .workflow = hf__as_text(c[2]),
        .name = hf__as_text(c[3]),
        .status = statuses[hf__as_number(c[4]) & 3],
        .version = hf__as_number(c[5]),
        .assignee = hf__as_text(c[6]),
        .roles = hf__as_text(c[7]),
        .payload = hf__as_text(c[8]),
        .form = hf__as_text(c[9]),
        .outcome = hf__as_text(c[10]),
        .result = hf__as_text(c[11]),
        .due_at = hf__as_number(c[12]),
        .created_at = hf__as_number(c[13]),
        .updated_at = hf__as_number(c[14]),
        .completed_at = hf__as_number(c[15]),
    };
}

hf_code hf_task_get(hf_client *client, hf_task **out, hf_id id, hf_error *err)
{
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_GET_TASK);
    hf_task *task = hf__answer_new(sizeof *task);
    c[0] = hf__number(client->tenant_id);
    c[1] = hf__uuid(&id);
    hf_code code = hf__ask_into(&ask, task, err);
    if (code == HF_OK && ask.out.nrows == 0)
        code = hf__fail(err, HF_NOT_FOUND, "there is no such task in this tenant");
    if (code == HF_OK) {
        read_task(task, hf__table_row(&ask.out, 0));
        *out = task;
    } else {
        hf__answer_free(task);
    }
    hf__ask_end(&ask);
    return code;
}

void hf_task_free(hf_task *task)
{
    hf__answer_free(task);
}

/* ---- Lists ---- */

/* Where a page begins: after this task, in the order of the list. */
struct place {
    int64_t due; /* only by due time */
    hf_id id;
};

static hf_code parse_statuses(const char *text, int *mask, hf_error *err)
{
    *mask = !text ? UNANSWERED : strcmp(text, "all") == 0 ? ALL : 0;
    for (const char *at = text; *mask != ALL && at; at = strchr(at, ',')) {
        at += *at == ',';
        size_t length = strcspn(at, ",");
        int i = 0;
        while (i < STATUSES &&
               (strlen(statuses[i]) != length || strncmp(statuses[i], at, length) != 0))
            i++;
        if (i == STATUSES)
            return hf__fail(err, HF_INVALID,
                            "\"%.60s\" is not a status of tasks: open, claimed, completed, "
                            "cancelled, or all",
                            at);
        *mask |= 1 << i;
    }
    return HF_OK;
}

/* "DUE.ID" by due time, otherwise "ID". */
static hf_code parse_cursor(const hf_task_filter *filter, struct place *place, hf_error *err)
{
    const char *text = filter->cursor;
    char *end = NULL;
    memset(place, filter->by_due ? 0 : 0xff, sizeof *place);
    if (!text)
        return HF_OK;
    if (filter->by_due) {
        place->due = strtoll(text, &end, 10);
        text = *end == '.' ? end + 1 : "";
    }
    if (!hf_id_parse(text, &place->id))
        return hf__fail(err, HF_INVALID,
                        "\"%.60s\" is not a cursor: pass the `next` of the page before",
                        filter->cursor);
    return HF_OK;
}

static hf_code check_filter(const hf_task_filter *filter, int *mask, struct place *place,
                            hf_error *err)
{
    hf_code code =
        hf__check_version("hf_task_filter", filter->version, HF_TASK_FILTER_VERSION, err);
    if (code == HF_OK && (filter->limit < 0 || filter->limit > MAX_LIMIT))
        code = hf__fail(err, HF_INVALID, "the limit must be from 1 to %d", MAX_LIMIT);
    if (code == HF_OK)
        code = hf__check_optional_label("assignee", filter->assignee, err);
    if (code == HF_OK && filter->role)
        code = hf__name_check("role", filter->role, err);
    if (code == HF_OK)
        code = hf__check_optional_label("task name", filter->name, err);
    if (code == HF_OK)
        code = parse_statuses(filter->status, mask, err);
    if (code == HF_OK && filter->by_due && (*mask & ~UNANSWERED))
        code = hf__fail(err, HF_INVALID, "only tasks that are open or claimed go by due time");
    return code == HF_OK ? parse_cursor(filter, place, err) : code;
}

/* By what the filter narrows most. */
static enum hf__stmt statement_of(const hf_task_filter *filter, int mask)
{
    if (filter->by_due)
        return filter->assignee ? HF__STMT_LIST_ASSIGNED_DUE_TASKS : HF__STMT_LIST_DUE_TASKS;
    if (!hf_id_is_zero(filter->run))
        return HF__STMT_LIST_RUN_TASKS;
    if (mask & ~UNANSWERED)
        return HF__STMT_LIST_TASKS;
    return filter->assignee ? HF__STMT_LIST_ASSIGNED_TASKS : HF__STMT_LIST_OPEN_TASKS;
}

static void fill_filter(struct hf__ask *ask, const hf_task_filter *filter, int mask)
{
    struct hf__cell *c = hf__table_row(&ask->in, 0);
    c[4] = hf__number(mask);
    c[5] = hf__text(filter->assignee);
    c[6] =
        filter->role ? hf__text(hf__arena_printf(&ask->arena, "\"%s\"", filter->role)) : hf__null();
    c[7] = hf__uuid_or_null(&filter->run);
    c[8] = hf__text(filter->name);
    c[9] = hf__number(filter->overdue);
    c[10] = hf__number(HF__PAGE_BYTES);
}

static hf_code fill_page(hf_task_page *page, const struct hf__table *out, int limit, bool by_due,
                         hf_error *err)
{
    struct hf__arena *arena = hf__answer_arena(page);
    bool more;
    page->count = hf__page_rows(out, limit, HF__PAGE_BYTES, &more);
    page->items = hf__arena_calloc(arena, page->count + 1, sizeof *page->items);
    if (!page->items)
        return hf__nomem(err);
    for (size_t i = 0; i < page->count; i++)
        read_task(&page->items[i], hf__table_row(out, (int)i));
    if (!more)
        return HF_OK;
    const hf_task *last = &page->items[page->count - 1];
    char id[HF_ID_TEXT];
    hf_id_format(last->id, id);
    page->next = by_due ? hf__arena_printf(arena, "%lld.%s",
                                           (long long)(last->due_at ? last->due_at : INT64_MAX), id)
                        : hf__arena_strdup(arena, id);
    return page->next ? HF_OK : hf__nomem(err);
}

hf_code hf_task_list(hf_client *client, hf_task_page **out, const hf_task_filter *filter,
                     hf_error *err)
{
    static const hf_task_filter any = HF_TASK_FILTER_INIT;
    struct place place;
    int mask;
    if (!filter)
        filter = &any;
    hf_code code = check_filter(filter, &mask, &place, err);
    if (code != HF_OK)
        return code;
    int limit = filter->limit ? filter->limit : DEFAULT_LIMIT;
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, statement_of(filter, mask));
    hf_task_page *page = hf__answer_new(sizeof *page);
    c[0] = hf__number(client->tenant_id);
    c[1] = hf__number(place.due);
    c[2] = hf__uuid(&place.id);
    c[3] = hf__number(limit + 1);
    fill_filter(&ask, filter, mask);
    code = hf__ask_into(&ask, page, err);
    if (code == HF_OK)
        code = fill_page(page, &ask.out, limit, filter->by_due, err);
    if (code == HF_OK)
        *out = page;
    else
        hf__answer_free(page);
    hf__ask_end(&ask);
    return code;
}

void hf_task_page_free(hf_task_page *page)
{
    hf__answer_free(page);
}

/* ---- Changes ---- */

/* The change locks the run, so that has to be known first; a task never goes to another one. */
static hf_code apply(hf_client *client, struct hf__op *op, hf_error *err)
{
    hf_task *task = NULL;
    hf_code code = hf_task_get(client, &task, op->task.id, err);
    if (code != HF_OK)
        return code;
    op->kind = HF__OP_TASK;
    op->tenant = client->tenant_id;
    op->actor = client->actor;
    op->task.run = task->run;
    op->error = err;
    op->shard = hf__shard_of(task->run);
    hf_task_free(task);
    hf__engine_apply(client->engine, op, 1);
    return op->code;
}

hf_code hf_task_claim(hf_client *client, hf_id id, int64_t expected_version, hf_error *err)
{
    struct hf__op op = {
        .task = { .id = id, .action = HF__TASK_CLAIM, .expected_version = expected_version },
    };
    return apply(client, &op, err);
}

hf_code hf_task_release(hf_client *client, hf_id id, int64_t expected_version, hf_error *err)
{
    struct hf__op op = {
        .task = { .id = id, .action = HF__TASK_RELEASE, .expected_version = expected_version },
    };
    return apply(client, &op, err);
}

hf_code hf_task_reassign(hf_client *client, hf_id id, const char *assignee,
                         int64_t expected_version, hf_error *err)
{
    struct hf__op op = {
        .task = { .id = id,
                  .action = HF__TASK_REASSIGN,
                  .assignee = assignee,
                  .expected_version = expected_version },
    };
    hf_code code = hf__check_optional_label("assignee", assignee, err);
    return code == HF_OK ? apply(client, &op, err) : code;
}

hf_code hf_task_complete(hf_client *client, hf_id id, const char *outcome, const char *result,
                         int64_t expected_version, hf_error *err)
{
    struct hf__op op = {
        .task = { .id = id,
                  .action = HF__TASK_COMPLETE,
                  .outcome = outcome,
                  .result = result,
                  .expected_version = expected_version },
    };
    hf_code code = hf__label_check("outcome", outcome ? outcome : "", HF__MAX_LABEL, err);
    if (code == HF_OK)
        code = hf__check_json("result", result, hf__engine_max_payload(client->engine), err);
    return code == HF_OK ? apply(client, &op, err) : code;
}
