/* SPDX-License-Identifier: Apache-2.0 */
#include "server/route.h"

#include "server/routes.h"

#include <stdio.h>
#include <string.h>

static const struct hf__route *const groups[] = {
    hf__run_routes,    hf__many_routes,   hf__workflow_routes, hf__schedule_routes,
    hf__worker_routes, hf__work_routes,   hf__tenant_routes,   hf__token_routes,
    hf__letter_routes, hf__outbox_routes, hf__event_routes,    hf__live_routes,
    hf__task_routes,   hf__system_routes, hf__metrics_routes,
};

enum { GROUPS = sizeof groups / sizeof groups[0] };

const struct hf__route *hf__route_at(size_t index)
{
    static const struct hf__route end;
    for (int i = 0; i < GROUPS; i++)
        for (const struct hf__route *route = groups[i]; route->method; route++)
            if (index-- == 0)
                return route;
    return &end;
}

/* Whether the path fits the pattern; keeps what stands for its {names}. */
static bool fits(struct hf__path_match *out, const char *pattern, const char *path)
{
    int names = 0;
    memset(out->starts, 0, sizeof out->starts);
    while (*pattern) {
        if (*pattern == '{') {
            size_t length = strcspn(path, "/");
            if (length == 0 || names == HF__PATH_ARGS)
                return false;
            out->starts[names] = path;
            out->lengths[names++] = length;
            path += length;
            pattern += strcspn(pattern, "}") + 1;
        } else if (*pattern++ != *path++) {
            return false;
        }
    }
    return *path == '\0';
}

static void allow(struct hf__path_match *out, const char *method)
{
    size_t used = strlen(out->allowed);
    snprintf(out->allowed + used, sizeof out->allowed - used, "%s%s%s", used ? ", " : "", method,
             strcmp(method, "GET") == 0 ? ", HEAD" : "");
}

enum hf__match hf__route_match(struct hf__path_match *out, const char *method, const char *path)
{
    const struct hf__route *route;
    *out = (struct hf__path_match){ 0 };
    if (strcmp(method, "HEAD") == 0)
        method = "GET";
    for (size_t i = 0; (route = hf__route_at(i))->method; i++) {
        if (!fits(out, route->path, path))
            continue;
        allow(out, route->method);
        if (strcmp(route->method, method) == 0) {
            out->route = route;
            return HF__MATCHED;
        }
    }
    return out->allowed[0] ? HF__NO_SUCH_METHOD : HF__NO_SUCH_PATH;
}
