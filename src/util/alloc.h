/* Allocation that a test can make fail at the n-th call. Release with free().
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_UTIL_ALLOC_H
#define HF_UTIL_ALLOC_H

#include <stdatomic.h>
#include <stddef.h>

/* Negative: allocations never fail on purpose. Set to n: the next n succeed, the one after them
 * fails once, and the counter goes back to -1, so a test sees whether its failure was reached. */
extern atomic_long hf__alloc_fail_after;

/* Each returns NULL when there is no memory; hf__calloc also when count * size overflows. */
void *hf__malloc(size_t size) __attribute__((malloc, warn_unused_result));
void *hf__calloc(size_t count, size_t size) __attribute__((malloc, warn_unused_result));
/* On failure the old memory is untouched and still the caller's. */
void *hf__realloc(void *memory, size_t size) __attribute__((warn_unused_result));
char *hf__strdup(const char *text) __attribute__((malloc, warn_unused_result));
/* Copies exactly `length` bytes and adds a NUL. */
char *hf__strndup(const char *text, size_t length) __attribute__((malloc, warn_unused_result));

#endif
