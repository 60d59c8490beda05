/* Memory that lives and dies together: one arena per turn, per answer, per request.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_UTIL_ARENA_H
#define HF_UTIL_ARENA_H

#include <stddef.h>

struct hf__arena_chunk;

/* Not safe for use by two threads at once. A zeroed arena is valid. */
struct hf__arena {
    struct hf__arena_chunk *newest; /* the chunk being filled; older ones hang behind it */
    size_t next_size;               /* bytes of the next chunk; doubles up to a limit */
};

/* Allocates nothing yet; 0 for the default size. */
void hf__arena_init(struct hf__arena *arena, size_t first_chunk_size);
/* 16-byte aligned, not zeroed; NULL when there is no memory. A size of 0 gives a unique pointer. */
void *hf__arena_alloc(struct hf__arena *arena, size_t size) __attribute__((warn_unused_result));
/* Zeroed array; NULL when there is no memory or count * size overflows. */
void *hf__arena_calloc(struct hf__arena *arena, size_t count, size_t size)
    __attribute__((warn_unused_result));
/* NULL for NULL. */
char *hf__arena_strdup(struct hf__arena *arena, const char *text)
    __attribute__((warn_unused_result));
/* Copies exactly `length` bytes and adds a NUL. */
char *hf__arena_strndup(struct hf__arena *arena, const char *text, size_t length)
    __attribute__((warn_unused_result));
char *hf__arena_printf(struct hf__arena *arena, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), warn_unused_result));
/* Everything allocated is gone; the largest chunk is kept for the next use. */
void hf__arena_reset(struct hf__arena *arena);
/* Gives all memory back; the arena may be used again. */
void hf__arena_free(struct hf__arena *arena);

#endif
