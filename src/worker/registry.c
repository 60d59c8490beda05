/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/registry.h"

#include "client/check.h"
#include "util/alloc.h"
#include "util/error.h"
#include "util/text.h"

#include <stdlib.h>
#include <string.h>

#define RESERVED "holdfast."

static bool is_reserved(const char *pattern)
{
    return strncmp(pattern, RESERVED, strlen(RESERVED)) == 0;
}

static hf_code check_pattern(const char *pattern, hf_error *err)
{
    if (!pattern || !*pattern)
        return hf__fail(err, HF_INVALID,
                        "a handler needs a pattern such as \"billing.charge.v1\" or \"billing.*\"");
    if (is_reserved(pattern))
        return hf__fail(err, HF_INVALID,
                        "\"%s\": names that begin with \"" RESERVED
                        "\" belong to the engine; choose another",
                        pattern);
    if (pattern[strlen(pattern) - 1] == '*')
        return hf__check_pattern(pattern, err);
    return hf__name_check("workflow name", pattern, err);
}

static bool has_pattern(const struct hf__registry *registry, const char *pattern)
{
    for (size_t i = 0; i < registry->count; i++)
        if (strcmp(registry->routes[i].pattern, pattern) == 0)
            return true;
    return false;
}

hf_code hf__registry_add(struct hf__registry *registry, const char *pattern, hf_handler handler,
                         void *arg, void (*release)(void *arg), hf_error *err)
{
    hf_code code = check_pattern(pattern, err);
    if (code != HF_OK)
        return code;
    if (has_pattern(registry, pattern))
        return hf__fail(err, HF_INVALID, "\"%s\" has a handler already", pattern);

    struct hf__served *routes =
        hf__realloc(registry->routes, (registry->count + 1) * sizeof *routes);
    if (!routes)
        return hf__nomem(err);
    registry->routes = routes;
    char *copy = hf__strdup(pattern);
    if (!copy)
        return hf__nomem(err);
    bool family = copy[strlen(copy) - 1] == '*';
    routes[registry->count++] = (struct hf__served){
        .pattern = copy,
        .length = strlen(copy) - (family ? 1 : 0),
        .family = family,
        .handler = handler,
        .arg = arg,
        .release = release,
    };
    return HF_OK;
}

const struct hf__served *hf__registry_find(const struct hf__registry *registry,
                                           const char *workflow)
{
    const struct hf__served *best = NULL;
    for (size_t i = 0; i < registry->count; i++) {
        const struct hf__served *route = &registry->routes[i];
        if (strncmp(route->pattern, workflow, route->length) != 0)
            continue;
        if (!route->family && workflow[route->length] == '\0')
            return route;
        if (route->family && (!best || route->length > best->length))
            best = route;
    }
    return best;
}

void hf__registry_free(struct hf__registry *registry)
{
    for (size_t i = 0; i < registry->count; i++) {
        struct hf__served *route = &registry->routes[i];
        if (route->release)
            route->release(route->arg);
        free(route->pattern);
    }
    free(registry->routes);
    *registry = (struct hf__registry){ 0 };
}
