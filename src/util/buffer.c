/* SPDX-License-Identifier: Apache-2.0 */
#include "util/buffer.h"

#include "util/alloc.h"
#include "util/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for `extra` bytes and a NUL behind the present ones. */
static bool reserve(struct hf__buffer *buffer, size_t extra)
{
    if (buffer->failed)
        return false;
    if (extra < buffer->capacity - buffer->length)
        return true;

    size_t needed, capacity = buffer->capacity < 32 ? 64 : buffer->capacity;
    if (__builtin_add_overflow(buffer->length, extra, &needed) || needed >= SIZE_MAX / 2) {
        buffer->failed = true;
        return false;
    }
    while (capacity <= needed)
        capacity *= 2;
    char *data = hf__realloc(buffer->data, capacity);
    if (!data) {
        buffer->failed = true;
        return false;
    }
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
}

void hf__buffer_add(struct hf__buffer *buffer, const void *bytes, size_t length)
{
    if (!reserve(buffer, length))
        return;
    if (length)
        memcpy(buffer->data + buffer->length, bytes, length);
    buffer->length += length;
    buffer->data[buffer->length] = '\0';
}

void hf__buffer_add_text(struct hf__buffer *buffer, const char *text)
{
    hf__buffer_add(buffer, text, strlen(text));
}

void hf__buffer_addf(struct hf__buffer *buffer, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, fmt, args);
    if (length < 0) {
        buffer->failed = true;
    } else if (reserve(buffer, (size_t)length)) {
        vsnprintf(buffer->data + buffer->length, (size_t)length + 1, fmt, again);
        buffer->length += (size_t)length;
    }
    va_end(again);
    va_end(args);
}

/* The two-character escape of a byte, or 0. */
static char short_escape(char byte)
{
    switch (byte) {
    case '"': return '"';
    case '\\': return '\\';
    case '\b': return 'b';
    case '\f': return 'f';
    case '\n': return 'n';
    case '\r': return 'r';
    case '\t': return 't';
    default: return 0;
    }
}

static void add_escaped(struct hf__buffer *buffer, char byte)
{
    char letter = short_escape(byte);
    if (letter)
        hf__buffer_add(buffer, (char[]){ '\\', letter }, 2);
    else
        hf__buffer_addf(buffer, "\\u%04x", (unsigned)(unsigned char)byte);
}

static bool stands_for_itself(char byte)
{
    return (unsigned char)byte >= 0x20 && byte != '"' && byte != '\\';
}

/* Bytes from the start that need no escape and are whole UTF-8 sequences. */
static size_t plain_span(const char *text, size_t length)
{
    size_t at = 0;
    while (at < length && stands_for_itself(text[at])) {
        size_t step = hf__utf8_sequence(text + at, length - at);
        if (step == 0)
            break;
        at += step;
    }
    return at;
}

void hf__buffer_add_json_string(struct hf__buffer *buffer, const char *text, size_t length)
{
    hf__buffer_add(buffer, "\"", 1);
    size_t at = 0;
    while (at < length) {
        size_t span = plain_span(text + at, length - at);
        hf__buffer_add(buffer, text + at, span);
        at += span;
        if (at == length)
            break;
        if (stands_for_itself(text[at]))
            hf__buffer_add_text(buffer, "\xef\xbf\xbd");
        else
            add_escaped(buffer, text[at]);
        at++;
    }
    hf__buffer_add(buffer, "\"", 1);
}

void hf__buffer_add_json_strings(struct hf__buffer *buffer, const char *const *texts, size_t count)
{
    hf__buffer_add_text(buffer, "[");
    for (size_t i = 0; i < count; i++) {
        hf__buffer_add_text(buffer, i ? "," : "");
        hf__buffer_add_json_string(buffer, texts[i], strlen(texts[i]));
    }
    hf__buffer_add_text(buffer, "]");
}

void hf__buffer_clear(struct hf__buffer *buffer)
{
    buffer->length = 0;
    buffer->failed = false;
    if (buffer->data)
        buffer->data[0] = '\0';
}

void hf__buffer_free(struct hf__buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct hf__buffer){ 0 };
}

char *hf__buffer_take(struct hf__buffer *buffer)
{
    hf__buffer_add(buffer, "", 0);
    char *text = NULL;
    if (!buffer->failed) {
        text = buffer->data;
        buffer->data = NULL;
    }
    hf__buffer_free(buffer);
    return text;
}
