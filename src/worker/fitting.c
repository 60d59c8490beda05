/* Which of its handlers a worker claims runs for: those that fit WORKER_TYPE_PREFIXES, where no option says what to claim.
 * SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

#include "util/alloc.h"
#include "util/buffer.h"
#include "util/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLE "WORKER_TYPE_PREFIXES"

/* What of a handler's workflows begins with `stem`, as a pattern: the handler's own, or a narrower one. NULL: nothing, or no
 * memory. */
static char *fitting(const struct hf__served *route, const char *stem)
{
    size_t length = strlen(stem);
    if (length <= route->length && strncmp(route->pattern, stem, length) == 0)
        return hf__strdup(route->pattern);
    if (!route->family || strncmp(route->pattern, stem, route->length) != 0)
        return NULL;
    char *narrow = hf__malloc(length + 2);
    if (narrow)
        snprintf(narrow, length + 2, "%s*", stem);
    return narrow;
}

static hf_code keep(hf_worker *worker, char *pattern, hf_error *err)
{
    for (size_t i = 0; i < worker->prefix_count; i++)
        if (strcmp(worker->prefixes[i], pattern) == 0) {
            free(pattern);
            return HF_OK;
        }
    char **more = hf__realloc(worker->prefixes, (worker->prefix_count + 1) * sizeof *more);
    if (!more) {
        free(pattern);
        return hf__nomem(err);
    }
    worker->prefixes = more;
    more[worker->prefix_count++] = pattern;
    return HF_OK;
}

static hf_code keep_fitting(hf_worker *worker, const char *stem, hf_error *err)
{
    hf_code code = HF_OK;
    for (size_t i = 0; code == HF_OK && i < worker->registry.count; i++) {
        char *pattern = fitting(&worker->registry.routes[i], stem);
        if (pattern)
            code = keep(worker, pattern, err);
    }
    return code;
}

static hf_code refuse(const hf_worker *worker, const char *prefixes, hf_error *err)
{
    struct hf__buffer names = { 0 };
    for (size_t i = 0; i < worker->registry.count; i++)
        hf__buffer_addf(&names, "%s%s", i ? ", " : "", worker->registry.routes[i].pattern);
    hf__fail(err, HF_INVALID,
             VARIABLE " is \"%.100s\", and no handler of this worker begins so: it has %.250s",
             prefixes, names.failed ? "others" : names.data);
    hf__buffer_free(&names);
    return HF_INVALID;
}

hf_code hf__fitting_choose(hf_worker *worker, hf_error *err)
{
    const char *prefixes = getenv(VARIABLE);
    if (worker->prefix_count || worker->registry.count == 0 || !prefixes || !*prefixes)
        return HF_OK;
    char *copy = hf__strdup(prefixes), *rest = NULL;
    hf_code code = copy ? HF_OK : hf__nomem(err);
    for (char *stem = copy ? strtok_r(copy, ", ", &rest) : NULL; code == HF_OK && stem;
         stem = strtok_r(NULL, ", ", &rest)) {
        stem[strcspn(stem, "*")] = '\0';
        code = keep_fitting(worker, stem, err);
    }
    free(copy);
    return code == HF_OK && worker->prefix_count == 0 ? refuse(worker, prefixes, err) : code;
}
