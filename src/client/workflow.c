/* Workflows.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "client/answer.h"
#include "client/ask.h"
#include "client/check.h"
#include "client/client.h"
#include "client/coverage.h"
#include "client/live.h"
#include "client/read.h"
#include "util/buffer.h"
#include "util/error.h"
#include "util/text.h"

static hf_code create(hf_client *client, const char *const *names, size_t count, bool *created,
                      hf_error *err)
{
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_CREATE_WORKFLOW);
    for (size_t i = 0; i < count; i++) {
        c = i ? hf__table_add(&ask.in) : c;
        c[0] = hf__number(client->tenant_id);
        c[1] = hf__text(names[i]);
    }
    hf_code code = hf__ask_send(&ask, err);
    *created = code == HF_OK && ask.out.nrows > 0;
    hf__ask_end(&ask);
    return code;
}

static void put_rate(struct hf__cell *c, const hf_rate *rate)
{
    int64_t in_a_second =
        rate->count ? ((int64_t)rate->count * HF_SECONDS(1) + rate->interval - 1) / rate->interval
                    : 0;
    int64_t usual = in_a_second < rate->count ? in_a_second : rate->count;
    c[0] = hf__number_or_null(rate->count);
    c[1] = rate->count ? hf__number(rate->interval) : hf__null();
    c[2] = rate->count ? hf__number(rate->burst ? rate->burst : usual) : hf__null();
}

/* Runs that are held by now count from the moment at which their workflow has a limit. */
static hf_code occupy_slots(hf_client *client, const char *name, hf_error *err)
{
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_OCCUPY_SLOTS);
    c[0] = hf__number(client->tenant_id);
    c[1] = hf__text(name);
    hf_code code = hf__ask_send(&ask, err);
    hf__ask_end(&ask);
    return code;
}

static bool limits_running(const hf_workflow *workflow, unsigned mask)
{
    return (mask & HF_SET_MAX_RUNNING && workflow->max_running) ||
           (mask & HF_SET_KEY_MAX_RUNNING && workflow->key_max_running);
}

static hf_code set_fields(hf_client *client, const hf_workflow *workflow, unsigned mask,
                          hf_error *err)
{
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_SET_WORKFLOW);
    c[0] = hf__number(client->tenant_id);
    c[1] = hf__text(workflow->name);
    c[2] = hf__number(mask);
    c[3] = hf__number(workflow->max_attempts);
    c[4] = hf__number(workflow->retry_base);
    c[5] = hf__number(workflow->retry_cap);
    c[6] = hf__number(workflow->lease);
    c[7] = hf__number_or_null(workflow->timeout);
    c[8] = hf__number_or_null(workflow->retention);
    c[9] = hf__text(workflow->dead_letter);
    c[10] = hf__text(workflow->definition);
    c[11] = hf__number(workflow->paused);
    c[12] = hf__number_or_null(workflow->max_running);
    put_rate(c + 13, &workflow->rate);
    c[16] = hf__number_or_null(workflow->key_max_running);
    put_rate(c + 17, &workflow->key_rate);
    c[20] = hf__number(HF_SECONDS(workflow->fit_within));
    c[21] = hf__text(workflow->on_cancel);
    c[22] = hf__text(workflow->children);
    hf_code code = hf__ask_send(&ask, err);
    if (code == HF_OK && ask.out.nrows == 0)
        code = hf__fail(err, HF_UNKNOWN_WORKFLOW,
                        "no workflow is named \"%s\": create it with `holdfast workflow create %s`",
                        workflow->name, workflow->name);
    hf__ask_end(&ask);
    return code == HF_OK && limits_running(workflow, mask)
               ? occupy_slots(client, workflow->name, err)
               : code;
}

hf_code hf_workflow_weight(hf_client *client, const char *workflow, const char *flow_key,
                           int weight, hf_error *err)
{
    hf_code code = hf__check_workflow_name(workflow, false, err);
    if (code == HF_OK)
        code = hf__check_weight(flow_key, weight, err);
    if (code != HF_OK)
        return code;
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_SET_WEIGHT);
    c[0] = hf__number(client->tenant_id);
    c[1] = hf__text(workflow);
    c[2] = hf__text(flow_key);
    c[3] = hf__number(weight);
    code = hf__ask_send(&ask, err);
    if (code == HF_OK && ask.out.nrows == 0)
        code = hf__fail(err, HF_UNKNOWN_WORKFLOW,
                        "no workflow is named \"%s\": create it with `holdfast workflow create %s`",
                        workflow, workflow);
    hf__ask_end(&ask);
    return code == HF_OK ? hf__tell_workers(client, err) : code;
}

hf_code hf_workflow_set(hf_client *client, const hf_workflow *workflow, unsigned mask,
                        hf_error *err)
{
    hf_code code = hf__check_workflow(workflow, mask, err);
    if (code == HF_OK)
        code = set_fields(client, workflow, mask, err);
    return code == HF_OK ? hf__tell_workers(client, err) : code;
}

hf_code hf_workflow_put(hf_client *client, const hf_workflow *workflow, unsigned mask,
                        hf_error *err)
{
    bool created = false;
    hf_code code = hf__check_workflow(workflow, mask, err);
    if (code == HF_OK)
        code = create(client, &workflow->name, 1, &created, err);
    if (code == HF_OK && mask)
        code = set_fields(client, workflow, mask, err);
    if (code == HF_OK && (created || mask))
        code = hf__tell_workers(client, err);
    return code;
}

hf_code hf__workflows_ensure(hf_client *client, const char *const *names, size_t count,
                             hf_error *err)
{
    bool created = false;
    hf_code code = count ? create(client, names, count, &created, err) : HF_OK;
    return code == HF_OK && created ? hf__tell_workers(client, err) : code;
}

hf_code hf__workflow_ensure(hf_client *client, const char *name, hf_error *err)
{
    return hf__workflows_ensure(client, &name, 1, err);
}

static void read_rate(hf_rate *rate, const struct hf__cell *c)
{
    rate->count = (int)hf__as_number(c[0]);
    rate->interval = hf__as_number(c[1]);
    rate->burst = (int)hf__as_number(c[2]);
}

static void read_workflow(hf_workflow *workflow, const struct hf__cell *c)
{
    workflow->name = hf__as_text(*c++);
    workflow->paused = hf__as_number(*c++) != 0;
    workflow->max_attempts = (int)hf__as_number(*c++);
    workflow->retry_base = hf__as_number(*c++);
    workflow->retry_cap = hf__as_number(*c++);
    workflow->lease = hf__as_number(*c++);
    workflow->timeout = hf__as_number(*c++);
    workflow->retention = hf__as_number(*c++);
    workflow->dead_letter = hf__as_text(*c++);
    workflow->definition = hf__as_text(*c++);
    workflow->created_at = hf__as_number(*c++);
    workflow->updated_at = hf__as_number(*c++);
    workflow->due = hf__as_number(*c++);
    workflow->delayed = hf__as_number(*c++);
    workflow->parked = (int)hf__as_number(*c++);
    workflow->leased = hf__as_number(*c++);
    workflow->failed = hf__as_number(*c++);
    workflow->max_running = (int)hf__as_number(*c++);
    read_rate(&workflow->rate, c);
    workflow->key_max_running = (int)hf__as_number(c[3]);
    read_rate(&workflow->key_rate, c + 4);
    workflow->fit_within = (int)(hf__as_number(c[7]) / HF_SECONDS(1));
    workflow->on_cancel = hf__as_text(c[8]);
    workflow->children = hf__as_text(c[9]);
}

/* The rows of list_workflows into `items`, which has room for them. */
static hf_code ask_workflows(hf_client *client, const char *name, const char *prefix,
                             struct hf__arena *arena, hf_workflow **items, size_t *count,
                             hf_error *err)
{
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_LIST_WORKFLOWS);
    char *end = prefix ? hf__prefix_end(&ask.arena, prefix) : NULL;
    c[0] = hf__number(client->tenant_id);
    c[1] = hf__number(HF__MOST_QUEUED);
    c[2] = hf__text(name);
    c[3] = hf__text(prefix);
    c[4] = hf__text(end);
    hf__table_init(&ask.out, arena, ask.out.ncolumns);
    hf_code code = prefix && !end ? hf__nomem(err) : hf__ask_send(&ask, err);
    if (code == HF_OK) {
        *count = (size_t)ask.out.nrows;
        *items = hf__arena_calloc(arena, *count + 1, sizeof **items);
        code = *items ? HF_OK : hf__nomem(err);
    }
    for (size_t i = 0; code == HF_OK && i < *count; i++)
        read_workflow(&(*items)[i], hf__table_row(&ask.out, (int)i));
    hf__ask_end(&ask);
    return code;
}

#define MOST_WEIGHTS 100

/* The weights as a JSON object; NULL when all are 1. */
static hf_code read_weights(hf_workflow *workflow, struct hf__arena *arena,
                            const struct hf__table *rows, hf_error *err)
{
    struct hf__buffer json = { 0 };
    if (rows->nrows == 0)
        return HF_OK;
    for (int i = 0; i < rows->nrows; i++) {
        const struct hf__cell *c = hf__table_row(rows, i);
        hf__buffer_add_text(&json, i ? "," : "{");
        hf__buffer_add_json_string(&json, hf__as_text(c[0]), strlen(hf__as_text(c[0])));
        hf__buffer_addf(&json, ":%d", (int)hf__as_number(c[1]));
    }
    hf__buffer_add_text(&json, "}");
    workflow->weights = json.failed ? NULL : hf__arena_strdup(arena, json.data);
    hf__buffer_free(&json);
    return workflow->weights ? HF_OK : hf__nomem(err);
}

static hf_code ask_weights(hf_client *client, hf_workflow *workflow, hf_error *err)
{
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_LIST_WEIGHTS);
    c[0] = hf__number(client->tenant_id);
    c[1] = hf__text(workflow->name);
    c[2] = hf__number(MOST_WEIGHTS);
    hf_code code = hf__ask_send(&ask, err);
    if (code == HF_OK)
        code = read_weights(workflow, hf__answer_arena(workflow), &ask.out, err);
    hf__ask_end(&ask);
    return code;
}

hf_code hf_workflow_get(hf_client *client, hf_workflow **out, const char *name, hf_error *err)
{
    hf_code code = hf__check_workflow_name(name, true, err);
    if (code != HF_OK)
        return code;
    hf_workflow *workflow = hf__answer_new(sizeof *workflow);
    hf_workflow *items = NULL;
    size_t count = 0;
    code = workflow
               ? ask_workflows(client, name, NULL, hf__answer_arena(workflow), &items, &count, err)
               : hf__nomem(err);
    if (code == HF_OK && count == 0)
        code = hf__fail(err, HF_UNKNOWN_WORKFLOW, "no workflow is named \"%s\"", name);
    if (code == HF_OK) {
        *workflow = items[0];
        code = hf__count_workers(client, workflow, 1, err);
    }
    if (code == HF_OK)
        code = ask_weights(client, workflow, err);
    if (code == HF_OK)
        *out = workflow;
    else
        hf__answer_free(workflow);
    return code;
}

hf_code hf_workflow_list(hf_client *client, hf_workflows **out, const char *prefix, hf_error *err)
{
    hf_code code = hf__check_optional_label("prefix", prefix, err);
    if (code != HF_OK)
        return code;
    hf_workflows *list = hf__answer_new(sizeof *list);
    code = list ? ask_workflows(client, NULL, prefix, hf__answer_arena(list), &list->items,
                                &list->count, err)
                : hf__nomem(err);
    if (code == HF_OK)
        code = hf__count_workers(client, list->items, list->count, err);
    if (code == HF_OK)
        *out = list;
    else
        hf__answer_free(list);
    return code;
}
