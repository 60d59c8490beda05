/* SPDX-License-Identifier: Apache-2.0 */
#include "util/alloc.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

atomic_long hf__alloc_fail_after = -1;

static bool must_fail(void)
{
    if (atomic_load_explicit(&hf__alloc_fail_after, memory_order_relaxed) < 0)
        return false;
    return atomic_fetch_sub(&hf__alloc_fail_after, 1) == 0;
}

void *hf__malloc(size_t size)
{
    return must_fail() ? NULL : malloc(size ? size : 1);
}

void *hf__calloc(size_t count, size_t size)
{
    size_t total;
    if (must_fail() || __builtin_mul_overflow(count, size, &total))
        return NULL;
    return calloc(1, total ? total : 1);
}

void *hf__realloc(void *memory, size_t size)
{
    return must_fail() ? NULL : realloc(memory, size ? size : 1);
}

char *hf__strdup(const char *text)
{
    return hf__strndup(text, strlen(text));
}

char *hf__strndup(const char *text, size_t length)
{
    if (length == SIZE_MAX)
        return NULL;
    char *copy = hf__malloc(length + 1);
    if (!copy)
        return NULL;
    if (length)
        memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}
