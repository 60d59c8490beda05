/* A growing string.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_UTIL_BUFFER_H
#define HF_UTIL_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

/* Starts zeroed: `struct hf__buffer b = {0};`. Failure is sticky, so many additions need one
 * check at the end. */
struct hf__buffer {
    char *data;      /* always NUL-terminated; NULL while nothing was added */
    size_t length;   /* bytes, without the NUL */
    size_t capacity; /* bytes allocated */
    bool failed;     /* memory ran out; later additions do nothing */
};

void hf__buffer_add(struct hf__buffer *buffer, const void *bytes, size_t length);
void hf__buffer_add_text(struct hf__buffer *buffer, const char *text);
void hf__buffer_addf(struct hf__buffer *buffer, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds the text as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD, so the
 * result is always valid JSON. */
void hf__buffer_add_json_string(struct hf__buffer *buffer, const char *text, size_t length);
/* The same for many, as a JSON array. */
void hf__buffer_add_json_strings(struct hf__buffer *buffer, const char *const *texts, size_t count);
/* Empties it and forgets a failure, but keeps the memory. */
void hf__buffer_clear(struct hf__buffer *buffer);
/* Gives the memory back; the buffer may be used again. */
void hf__buffer_free(struct hf__buffer *buffer);
/* The text ("" if nothing was added), the caller's to free(); NULL if any addition failed. The
 * buffer is empty after. */
char *hf__buffer_take(struct hf__buffer *buffer) __attribute__((warn_unused_result));

#endif
