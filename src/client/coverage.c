/* SPDX-License-Identifier: Apache-2.0 */
#include "client/coverage.h"

#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "client/ask.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"

#define FRESH_FOR HF_SECONDS(1)             /* when it says that somebody serves the workflow */
#define DOUBTFUL_AFTER HF_MILLISECONDS(100) /* when it says that nobody does */

bool hf__pattern_serves(const char *pattern, const char *workflow)
{
    size_t length = strlen(pattern);
    if (length > 0 && pattern[length - 1] == '*')
        return strncmp(pattern, workflow, length - 1) == 0;
    if (length > 0 && pattern[length - 1] == '.')
        return strncmp(pattern, workflow, length) == 0;
    return strcmp(pattern, workflow) == 0;
}

static bool names_tenant(const json_t *tenants, const char *tenant)
{
    size_t i;
    json_t *item;
    json_array_foreach(tenants, i, item)
    {
        const char *name = json_string_value(item);
        if (name && (strcmp(name, "*") == 0 || strcmp(name, tenant) == 0))
            return true;
    }
    return false;
}

void hf__coverage_free(struct hf__coverage *coverage)
{
    for (size_t i = 0; i < coverage->count; i++)
        free(coverage->patterns[i]);
    free(coverage->patterns);
    coverage->patterns = NULL;
    coverage->count = 0;
}

static bool add_pattern(struct hf__coverage *coverage, const char *pattern)
{
    char **bigger = hf__realloc(coverage->patterns, (coverage->count + 1) * sizeof *bigger);
    if (!bigger)
        return false;
    coverage->patterns = bigger;
    bigger[coverage->count] = hf__strdup(pattern);
    return bigger[coverage->count] && ++coverage->count;
}

/* One worker's row, as it was registered. */
static bool add_row(struct hf__coverage *coverage, const struct hf__cell *c, const char *tenant)
{
    bool ok = true;
    size_t i;
    json_t *item;
    json_t *tenants = json_loads(hf__as_text(c[0]), 0, NULL);
    json_t *serves = json_loads(hf__as_text(c[1]), 0, NULL);
    if (names_tenant(tenants, tenant)) {
        json_array_foreach(serves, i, item)
        {
            const char *pattern = json_string_value(item);
            ok = ok && (!pattern || add_pattern(coverage, pattern));
        }
    }
    json_decref(tenants);
    json_decref(serves);
    return ok;
}

/* Reads what live workers serve for the client's tenant. */
static hf_code look(hf_client *client, struct hf__coverage *fresh, hf_error *err)
{
    struct hf__ask ask;
    hf__ask_begin(&ask, client->engine, HF__STMT_LIVE_PATTERNS)[0] = hf__text(client->tenant);
    hf_code code = hf__ask_send(&ask, err);
    for (int i = 0; code == HF_OK && i < ask.out.nrows; i++)
        if (!add_row(fresh, hf__table_row(&ask.out, i), client->tenant))
            code = hf__nomem(err);
    hf__ask_end(&ask);
    return code;
}

static bool serves(const struct hf__coverage *coverage, const char *workflow)
{
    for (size_t i = 0; i < coverage->count; i++)
        if (hf__pattern_serves(coverage->patterns[i], workflow))
            return true;
    return false;
}

/* What the last look says, if it is fresh enough to be believed. */
static bool recall(hf_client *client, const char *workflow, bool *uncovered)
{
    pthread_mutex_lock(&client->coverage_mutex);
    const struct hf__coverage *last = &client->coverage;
    int64_t age = last->asked_at ? hf__monotonic_us() - last->asked_at : INT64_MAX;
    *uncovered = !serves(last, workflow);
    pthread_mutex_unlock(&client->coverage_mutex);
    return age < (*uncovered ? DOUBTFUL_AFTER : FRESH_FOR);
}

bool hf__covered_known(hf_client *client, const char *workflow)
{
    bool uncovered;
    return recall(client, workflow, &uncovered);
}

hf_code hf__covered(hf_client *client, const char *workflow, bool *uncovered, hf_error *err)
{
    struct hf__coverage fresh = { .asked_at = hf__monotonic_us() };
    if (recall(client, workflow, uncovered))
        return HF_OK;
    hf_code code = look(client, &fresh, err);
    if (code == HF_OK) {
        *uncovered = !serves(&fresh, workflow);
        pthread_mutex_lock(&client->coverage_mutex);
        struct hf__coverage old = client->coverage;
        client->coverage = fresh;
        pthread_mutex_unlock(&client->coverage_mutex);
        fresh = old;
    }
    hf__coverage_free(&fresh);
    return code;
}

bool hf__tenant_listed(const char *tenants, const char *tenant)
{
    json_t *list = json_loads(tenants, 0, NULL);
    bool found = names_tenant(list, tenant);
    json_decref(list);
    return found;
}

hf_code hf__count_workers(hf_client *client, hf_workflow *workflows, size_t count, hf_error *err)
{
    hf_worker_list *workers = NULL;
    hf_code code = hf_workers(client, &workers, err);
    if (code != HF_OK)
        return code;
    for (size_t w = 0; w < workers->count; w++) {
        size_t i;
        json_t *item;
        json_t *serves_list =
            workers->items[w].live ? json_loads(workers->items[w].serves, 0, NULL) : NULL;
        for (size_t n = 0; n < count; n++) {
            bool found = false;
            json_array_foreach(serves_list, i, item)
            {
                const char *pattern = json_string_value(item);
                found |= pattern && hf__pattern_serves(pattern, workflows[n].name);
            }
            workflows[n].workers += found;
        }
        json_decref(serves_list);
    }
    hf_worker_list_free(workers);
    return HF_OK;
}

static hf_code nothing(const struct hf__driver *driver, struct hf__conn *conn, void *arg,
                       hf_error *err)
{
    (void)driver;
    (void)conn;
    (void)arg;
    (void)err;
    return HF_OK;
}

hf_code hf__tell_workers(hf_client *client, hf_error *err)
{
    struct hf__wake wake = { .workflows_changed = true };
    return hf__engine_transact(client->engine, nothing, NULL, &wake, err);
}
