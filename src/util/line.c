/* SPDX-License-Identifier: Apache-2.0 */
#include "util/line.h"

#include <string.h>

/* Given-out lines are cut off once they are most of the buffer, so that each byte is moved once on average. */
static void cut_front(struct hf__lines *lines)
{
    size_t left = lines->bytes.length - lines->taken;
    if (lines->taken == 0 || left > lines->taken)
        return;
    memmove(lines->bytes.data, lines->bytes.data + lines->taken, left + 1);
    lines->bytes.length = left;
    lines->searched -= lines->taken;
    lines->taken = 0;
}

void hf__lines_add(struct hf__lines *lines, const char *bytes, size_t length)
{
    cut_front(lines);
    hf__buffer_add(&lines->bytes, bytes, length);
}

enum hf__line_end hf__lines_next(struct hf__lines *lines, char **line, size_t *length)
{
    struct hf__buffer *bytes = &lines->bytes;
    if (bytes->failed)
        return HF__LINE_NO_MEMORY;
    size_t unsearched = bytes->length - lines->searched;
    char *from = unsearched ? bytes->data + lines->searched : NULL;
    char *newline = from ? memchr(from, '\n', unsearched) : NULL;
    size_t end = newline ? (size_t)(newline - bytes->data) : bytes->length;
    if (end - lines->taken > lines->limit)
        return HF__LINE_TOO_LONG;
    lines->searched = end;
    if (!newline)
        return HF__LINE_NONE;
    *newline = '\0';
    *line = bytes->data + lines->taken;
    *length = end - lines->taken;
    lines->taken = lines->searched = end + 1;
    return HF__LINE_THERE;
}

void hf__lines_free(struct hf__lines *lines)
{
    hf__buffer_free(&lines->bytes);
    lines->taken = lines->searched = 0;
}
