/* Reading runs and their journals.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "client/answer.h"
#include "client/ask.h"
#include "client/check.h"
#include "client/client.h"
#include "client/read.h"
#include "kernel/batch.h"
#include "util/error.h"

#define MAX_LIMIT 1000

/* Sends a question whose answer is one run. */
static hf_code answer_run(struct hf__ask *ask, hf_run **out, hf_error *err)
{
    hf_run *run = hf__answer_new(sizeof *run);
    hf_code code = run ? HF_OK : hf__nomem(err);
    if (code == HF_OK) {
        hf__table_init(&ask->out, hf__answer_arena(run), ask->out.ncolumns);
        code = hf__ask_send(ask, err);
    }
    if (code == HF_OK && ask->out.nrows == 0)
        code = hf__fail(err, HF_NOT_FOUND, "there is no such run in this tenant");
    if (code == HF_OK) {
        hf__run_read(run, hf__table_row(&ask->out, 0));
        *out = run;
        run = NULL;
    }
    hf__answer_free(run);
    hf__ask_end(ask);
    return code;
}

hf_code hf_get(hf_client *client, hf_run **out, hf_id id, hf_error *err)
{
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_GET_RUN);
    c[0] = hf__number(client->tenant_id);
    c[1] = hf__uuid(&id);
    return answer_run(&ask, out, err);
}

hf_code hf_get_by_key(hf_client *client, hf_run **out, const char *workflow, const char *key,
                      hf_error *err)
{
    hf_code code = hf__check_workflow_name(workflow, true, err);
    if (code == HF_OK)
        code = hf__check_optional_label("key", key ? key : "", err);
    if (code != HF_OK)
        return code;
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_GET_RUN_BY_KEY);
    c[0] = hf__number(client->tenant_id);
    c[1] = hf__text(workflow);
    c[2] = hf__text(key);
    return answer_run(&ask, out, err);
}

char *hf__prefix_end(struct hf__arena *arena, const char *prefix)
{
    return hf__arena_printf(arena, "%s\xf4\x8f\xbf\xbf", prefix);
}

hf_code hf__filter_fill(struct hf__ask *ask, hf_client *client, const hf_filter *filter,
                        const hf_id *before, int limit, hf_error *err)
{
    struct hf__cell *c = hf__table_row(&ask->in, 0);
    char *end = filter->prefix ? hf__prefix_end(&ask->arena, filter->prefix) : NULL;
    if (filter->prefix && !end)
        return hf__nomem(err);
    c[0] = hf__number(client->tenant_id);
    c[1] = hf__uuid_or_null(before);
    c[2] = hf__number(limit);
    c[3] = hf__number(filter->statuses);
    c[4] = hf__text(filter->workflow);
    c[5] = hf__text(filter->prefix);
    c[6] = hf__text(end);
    c[7] = hf__text(filter->key);
    c[8] = hf__text(filter->subject);
    c[9] = hf__text(filter->reference);
    c[10] = hf__text(filter->tag);
    c[11] = hf__text(filter->current_step);
    c[12] = hf__uuid_or_null(&filter->parent);
    c[13] = hf__number_or_null(filter->created_after);
    c[14] = hf__number_or_null(filter->created_before);
    c[15] = hf__number(filter->overdue);
    c[16] = hf__number(filter->deleted);
    c[17] = hf__text(filter->flow_key);
    return HF_OK;
}

hf_code hf__count_runs(hf_client *client, int64_t *out, const hf_filter *filter, hf_error *err)
{
    static const hf_id nobody;
    struct hf__ask ask;
    hf__ask_begin(&ask, client->engine, HF__STMT_COUNT_RUNS);
    hf_code code = hf__filter_fill(&ask, client, filter, &nobody, 1, err);
    if (code == HF_OK)
        code = hf__ask_send(&ask, err);
    if (code == HF_OK)
        *out = hf__as_number(hf__table_row(&ask.out, 0)[0]);
    hf__ask_end(&ask);
    return code;
}

hf_code hf_child_counts(hf_client *client, int64_t counts[HF_STATUS_COUNT], hf_id run,
                        hf_error *err)
{
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_COUNT_CHILDREN);
    c[0] = hf__number(client->tenant_id);
    c[1] = hf__uuid(&run);
    memset(counts, 0, HF_STATUS_COUNT * sizeof *counts);
    hf_code code = hf__ask_send(&ask, err);
    for (int i = 0; code == HF_OK && i < ask.out.nrows; i++) {
        const struct hf__cell *row = hf__table_row(&ask.out, i);
        int64_t status = hf__as_number(row[0]);
        if (status >= 0 && status < HF_STATUS_COUNT)
            counts[status] = hf__as_number(row[1]);
    }
    hf__ask_end(&ask);
    return code;
}

static void read_event(hf_event *event, const struct hf__cell *c)
{
    event->run = hf__as_uuid(c[0]);
    event->seq = hf__as_number(c[1]);
    event->position = hf__as_number(c[2]);
    event->version = hf__as_number(c[3]);
    event->kind = hf__event_kind_name((int)hf__as_number(c[4]));
    event->name = hf__as_text(c[5]);
    event->actor = hf__as_text(c[6]);
    event->step = hf__as_text(c[7]);
    event->data = hf__as_text(c[8]);
    event->at = hf__as_number(c[9]);
}

/* Nothing was found: because there is nothing new, or because there is no such run? */
static hf_code check_exists(hf_client *client, hf_id id, hf_error *err)
{
    hf_run *run = NULL;
    hf_code code = hf_get(client, &run, id, err);
    hf_run_free(run);
    return code;
}

hf_code hf__events_list(hf_client *client, hf_events **out, hf_id id, int64_t after_seq, int limit,
                        int64_t bytes, bool *more, hf_error *err)
{
    if (after_seq < 0 || limit < 1 || limit > MAX_LIMIT)
        return hf__fail(err, HF_INVALID, "after_seq must not be negative, limit from 1 to %d",
                        MAX_LIMIT);
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_LIST_EVENTS);
    c[0] = hf__number(client->tenant_id);
    c[1] = hf__uuid(&id);
    c[2] = hf__number(after_seq);
    c[3] = hf__number(limit + 1);
    c[4] = hf__number(bytes);
    hf_events *events = hf__answer_new(sizeof *events);
    hf_code code = events ? HF_OK : hf__nomem(err);
    if (code == HF_OK) {
        hf__table_init(&ask.out, hf__answer_arena(events), ask.out.ncolumns);
        code = hf__ask_send(&ask, err);
    }
    if (code == HF_OK) {
        events->count = hf__page_rows(&ask.out, limit, bytes, more);
        events->items =
            hf__arena_calloc(hf__answer_arena(events), events->count + 1, sizeof *events->items);
        code = events->items ? HF_OK : hf__nomem(err);
    }
    for (size_t i = 0; code == HF_OK && i < events->count; i++)
        read_event(&events->items[i], hf__table_row(&ask.out, (int)i));
    if (code == HF_OK && events->count == 0)
        code = check_exists(client, id, err);
    if (code == HF_OK)
        *out = events;
    else
        hf__answer_free(events);
    hf__ask_end(&ask);
    return code;
}

hf_code hf_events_list(hf_client *client, hf_events **out, hf_id id, int64_t after_seq, int limit,
                       hf_error *err)
{
    bool more;
    return hf__events_list(client, out, id, after_seq, limit, INT64_MAX, &more, err);
}
