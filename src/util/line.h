/* Lines out of a stream of bytes that somebody else sends: bounded, in any pieces.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_UTIL_LINE_H
#define HF_UTIL_LINE_H

#include "util/buffer.h"

/* Starts zeroed but for `limit`. */
struct hf__lines {
    size_t limit;            /* bytes of one line, without its newline */
    struct hf__buffer bytes; /* what came and was not given out yet */
    size_t taken;            /* bytes at its front that were given out */
    size_t searched;         /* bytes at its front that hold no further newline */
};

enum hf__line_end {
    HF__LINE_NONE, /* not complete yet */
    HF__LINE_THERE,
    HF__LINE_TOO_LONG, /* no newline within the limit: nothing more can be read */
    HF__LINE_NO_MEMORY
};

void hf__lines_add(struct hf__lines *lines, const char *bytes, size_t length);
/* The next line, without its newline, NUL-terminated, and its length, for it may hold NUL bytes. It lives until the next
 * call. */
enum hf__line_end hf__lines_next(struct hf__lines *lines, char **line, size_t *length);
void hf__lines_free(struct hf__lines *lines);

#endif
