/* SPDX-License-Identifier: Apache-2.0 */
#include "util/arena.h"

#include "util/alloc.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 16, DEFAULT_CHUNK = 4096, LARGEST_GROWN_CHUNK = 1 << 20 };

struct hf__arena_chunk {
    struct hf__arena_chunk *older;
    size_t size; /* bytes behind this header */
    size_t used;
    _Alignas(ALIGNMENT) unsigned char bytes[];
};

void hf__arena_init(struct hf__arena *arena, size_t first_chunk_size)
{
    *arena = (struct hf__arena){ .next_size = first_chunk_size };
}

static bool add_chunk(struct hf__arena *arena, size_t needed)
{
    size_t size = arena->next_size ? arena->next_size : DEFAULT_CHUNK;
    size_t following = size < LARGEST_GROWN_CHUNK ? size * 2 : size;
    if (size < needed)
        size = needed;
    if (size > SIZE_MAX - sizeof(struct hf__arena_chunk))
        return false;

    struct hf__arena_chunk *chunk = hf__malloc(sizeof *chunk + size);
    if (!chunk)
        return false;
    *chunk = (struct hf__arena_chunk){ .older = arena->newest, .size = size };
    arena->newest = chunk;
    arena->next_size = following;
    return true;
}

void *hf__arena_alloc(struct hf__arena *arena, size_t size)
{
    if (size > SIZE_MAX - ALIGNMENT)
        return NULL;
    size_t rounded = size ? (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1) : ALIGNMENT;
    struct hf__arena_chunk *chunk = arena->newest;
    if (!chunk || chunk->size - chunk->used < rounded) {
        if (!add_chunk(arena, rounded))
            return NULL;
        chunk = arena->newest;
    }
    void *memory = chunk->bytes + chunk->used;
    chunk->used += rounded;
    return memory;
}

void *hf__arena_calloc(struct hf__arena *arena, size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total))
        return NULL;
    void *memory = hf__arena_alloc(arena, total);
    return memory ? memset(memory, 0, total) : NULL;
}

char *hf__arena_strdup(struct hf__arena *arena, const char *text)
{
    return text ? hf__arena_strndup(arena, text, strlen(text)) : NULL;
}

char *hf__arena_strndup(struct hf__arena *arena, const char *text, size_t length)
{
    if (length == SIZE_MAX)
        return NULL;
    char *copy = hf__arena_alloc(arena, length + 1);
    if (!copy)
        return NULL;
    if (length)
        memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

char *hf__arena_printf(struct hf__arena *arena, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    char *text = NULL;
    int length = vsnprintf(NULL, 0, fmt, args);
    if (length >= 0)
        text = hf__arena_alloc(arena, (size_t)length + 1);
    if (text)
        vsnprintf(text, (size_t)length + 1, fmt, again);
    va_end(again);
    va_end(args);
    return text;
}

static void free_chunks(struct hf__arena_chunk *chunk, const struct hf__arena_chunk *keep)
{
    while (chunk) {
        struct hf__arena_chunk *older = chunk->older;
        if (chunk != keep)
            free(chunk);
        chunk = older;
    }
}

void hf__arena_reset(struct hf__arena *arena)
{
    struct hf__arena_chunk *largest = arena->newest;
    for (struct hf__arena_chunk *c = arena->newest; c; c = c->older)
        if (c->size > largest->size)
            largest = c;
    free_chunks(arena->newest, largest);
    if (largest) {
        largest->older = NULL;
        largest->used = 0;
    }
    arena->newest = largest;
}

void hf__arena_free(struct hf__arena *arena)
{
    free_chunks(arena->newest, NULL);
    arena->newest = NULL;
}
