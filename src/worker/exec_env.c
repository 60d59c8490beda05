/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/exec_env.h"

#include "util/error.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADDED_LONGEST 131072 /* bytes of one entry: what Linux takes */

extern char **environ;

/* What programs need to find others, and to speak to people. All else of the worker's stays with it: its store's password may
 * be among it, or another service's key. A name that ends with '_' stands for all that begin so. */
static const char *const PASSED[] = { "PATH",   "HOME", "LANG",  "LC_", "TZ",
                                      "TMPDIR", "USER", "SHELL", "TERM" };

static const char *const OURS[] = { "HOLDFAST_RUN_ID",     "HOLDFAST_WORKFLOW", "HOLDFAST_KEY",
                                    "HOLDFAST_ATTEMPT",    "HOLDFAST_TENANT",   "TRACEPARENT",
                                    "HOLDFAST_RUN_SOCKET", "HOLDFAST_STEP_KEY" };

enum { PASSED_COUNT = sizeof PASSED / sizeof *PASSED, OUR_COUNT = sizeof OURS / sizeof *OURS };

static size_t name_length(const char *entry)
{
    return strcspn(entry, "=");
}

static bool is_passed(const char *entry)
{
    for (size_t i = 0; i < PASSED_COUNT; i++) {
        size_t length = strlen(PASSED[i]);
        bool family = PASSED[i][length - 1] == '_';
        if ((family || name_length(entry) == length) && strncmp(entry, PASSED[i], length) == 0)
            return true;
    }
    return false;
}

static bool is_called(const char *entry, const char *name)
{
    return name_length(entry) == strlen(name) && strncmp(entry, name, strlen(name)) == 0;
}

static bool is_ours(const char *entry)
{
    for (size_t i = 0; i < OUR_COUNT; i++)
        if (is_called(entry, OURS[i]))
            return true;
    return false;
}

hf_code hf__exec_env_check(const char *entry, hf_error *err)
{
    if (!entry || name_length(entry) == 0 || strlen(entry) > ADDED_LONGEST)
        return hf__fail(err, HF_INVALID,
                        "a variable of a program is NAME, with the worker's own value, or "
                        "NAME=VALUE, not \"%.100s\"",
                        entry ? entry : "");
    if (is_ours(entry))
        return hf__fail(err, HF_INVALID,
                        "%.*s says which run it is and is set by the worker: choose another name",
                        (int)name_length(entry), entry);
    return HF_OK;
}

/* ---- Putting it together ---- */

struct list {
    struct hf__arena *arena;
    char **items;
    size_t count;
    bool failed;
};

/* In place of an earlier value of the same name. */
static void put(struct list *list, const char *name, size_t length, const char *value)
{
    char *entry = hf__arena_printf(list->arena, "%.*s=%s", (int)length, name, value);
    list->failed |= !entry;
    for (size_t i = 0; entry && i < list->count; i++)
        if (name_length(list->items[i]) == length && strncmp(list->items[i], entry, length) == 0) {
            list->items[i] = entry;
            return;
        }
    if (entry)
        list->items[list->count++] = entry;
}

static void put_own(struct list *list)
{
    for (size_t i = 0; environ[i]; i++)
        if (is_passed(environ[i]) && strchr(environ[i], '='))
            put(list, environ[i], name_length(environ[i]), strchr(environ[i], '=') + 1);
}

static void put_added(struct list *list, const char *entry)
{
    size_t length = name_length(entry);
    const char *value = entry[length] == '=' ? entry + length + 1 : getenv(entry);
    if (value)
        put(list, entry, length, value);
}

static void put_run(struct list *list, const hf_run *run, const char *socket)
{
    char id[HF_ID_TEXT], attempt[16];
    hf_id_format(run->id, id);
    snprintf(attempt, sizeof attempt, "%d", run->attempt);
    const char *values[OUR_COUNT] = { id,          run->workflow, run->key, attempt,
                                      run->tenant, run->trace,    socket,   NULL };
    for (size_t i = 0; i < OUR_COUNT; i++)
        if (values[i])
            put(list, OURS[i], strlen(OURS[i]), values[i]);
}

char **hf__exec_env(struct hf__arena *arena, char *const *added, size_t added_count,
                    const hf_run *run, const char *socket)
{
    size_t count = 0;
    while (environ[count])
        count++;
    struct list list = { .arena = arena };
    list.items = hf__arena_calloc(arena, count + added_count + OUR_COUNT + 1, sizeof *list.items);
    if (!list.items)
        return NULL;
    put_own(&list);
    for (size_t i = 0; i < added_count; i++)
        put_added(&list, added[i]);
    put_run(&list, run, socket);
    return list.failed ? NULL : list.items;
}
