/* SPDX-License-Identifier: Apache-2.0 */
#include "util/json_members.h"

#include <string.h>

static const char *skip_space(const char *at)
{
    while (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n')
        at++;
    return at;
}

/* `at` is on the opening quote; returns what follows the closing one. */
static const char *skip_string(const char *at)
{
    for (at++; *at && *at != '"'; at++)
        if (*at == '\\' && at[1])
            at++;
    return *at ? at + 1 : at;
}

static const char *skip_value(const char *at)
{
    int depth = 0;
    while (*at) {
        if (*at == '"') {
            at = skip_string(at);
            continue;
        }
        if (depth == 0 && (*at == ',' || *at == '}' || *at == ']'))
            break;
        if (*at == '{' || *at == '[')
            depth++;
        else if (*at == '}' || *at == ']')
            depth--;
        at++;
    }
    return at;
}

bool hf__json_is_object(const char *json)
{
    return *skip_space(json) == '{';
}

bool hf__json_member_next(const char *object, size_t *at, struct hf__json_member *out)
{
    const char *here = skip_space(object + *at);
    if (*here == '{' || *here == ',')
        here = skip_space(here + 1);
    if (*here != '"')
        return false;
    const char *after_name = skip_string(here);
    const char *value = skip_space(skip_space(after_name) + 1);
    const char *end = skip_value(value);
    *at = (size_t)(end - object);
    while (end > value && strchr(" \t\r\n", end[-1]))
        end--;
    *out = (struct hf__json_member){ here + 1, (size_t)(after_name - here) - 2, value,
                                     (size_t)(end - value) };
    return true;
}

bool hf__json_item_next(const char *array, size_t *at, const char **out, size_t *length)
{
    const char *here = skip_space(array + *at);
    if (*here == '[' && *at == 0)
        here = skip_space(here + 1);
    else if (*here == ',')
        here = skip_space(here + 1);
    if (*here == ']' || *here == '\0')
        return false;
    const char *end = skip_value(here);
    *at = (size_t)(end - array);
    while (end > here && strchr(" \t\r\n", end[-1]))
        end--;
    *out = here;
    *length = (size_t)(end - here);
    return true;
}
