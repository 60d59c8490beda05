/* SPDX-License-Identifier: Apache-2.0 */
#include "util/json.h"

#include "util/error.h"
#include "util/text.h"

#include <stdint.h>
#include <string.h>

struct reader {
    const char *text;
    size_t length;
    size_t at;
    int depth;
    const char *expected; /* set where reading stops */
};

static bool stop(struct reader *r, const char *expected)
{
    r->expected = expected;
    return false;
}

/* The next byte, or -1 at the end, so that a NUL byte in the text is told from the end. */
static int peek(const struct reader *r)
{
    return r->at < r->length ? (unsigned char)r->text[r->at] : -1;
}

static bool is_space(int c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static void skip_space(struct reader *r)
{
    while (is_space(peek(r)))
        r->at++;
}

static bool take(struct reader *r, char c)
{
    if (peek(r) != c)
        return false;
    r->at++;
    return true;
}

static bool read_word(struct reader *r, const char *word)
{
    size_t length = strlen(word);
    if (r->length - r->at < length || memcmp(r->text + r->at, word, length) != 0)
        return stop(r, "a value (true, false and null are the only bare words)");
    r->at += length;
    return true;
}

static bool read_digits(struct reader *r)
{
    if (!is_digit(peek(r)))
        return stop(r, "a digit");
    while (is_digit(peek(r)))
        r->at++;
    return true;
}

static bool read_number(struct reader *r)
{
    take(r, '-');
    if (take(r, '0')) {
        if (is_digit(peek(r)))
            return stop(r, "no digit after a leading zero");
    } else if (!read_digits(r)) {
        return false;
    }
    if (take(r, '.') && !read_digits(r))
        return false;
    if (take(r, 'e') || take(r, 'E')) {
        if (!take(r, '+'))
            take(r, '-');
        return read_digits(r);
    }
    return true;
}

static int hex_value(int c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool read_four_hex(struct reader *r, unsigned *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        int value = hex_value(peek(r));
        if (value < 0)
            return stop(r, "four hexadecimal digits after \\u");
        *out = *out << 4 | (unsigned)value;
    }
    return true;
}

static bool read_unicode_escape(struct reader *r)
{
    unsigned unit, low;
    size_t start = r->at;
    if (!read_four_hex(r, &unit))
        return false;
    if (unit < 0xd800 || unit > 0xdfff)
        return true;
    bool paired = unit < 0xdc00 && take(r, '\\') && take(r, 'u');
    if (paired && !read_four_hex(r, &low))
        return false;
    if (paired && low >= 0xdc00 && low <= 0xdfff)
        return true;
    r->at = start;
    return stop(r, "a whole surrogate pair (\\uD800-\\uDBFF, then \\uDC00-\\uDFFF)");
}

static bool read_escape(struct reader *r)
{
    if (take(r, 'u'))
        return read_unicode_escape(r);
    int c = peek(r);
    if (c <= 0 || !strchr("\"\\/bfnrt", c))
        return stop(r, "one of \" \\ / b f n r t u after a backslash");
    r->at++;
    return true;
}

static bool read_character(struct reader *r)
{
    if (take(r, '\\'))
        return read_escape(r);
    int c = peek(r);
    if (c < 0)
        return stop(r, "a closing quote");
    if (c < 0x20)
        return stop(r, "no bare control character in a string; escape it");
    size_t step = c < 0x80 ? 1 : hf__utf8_sequence(r->text + r->at, r->length - r->at);
    if (step == 0)
        return stop(r, "valid UTF-8");
    r->at += step;
    return true;
}

static bool read_string(struct reader *r)
{
    if (!take(r, '"'))
        return stop(r, "a string in double quotes");
    while (!take(r, '"'))
        if (!read_character(r))
            return false;
    return true;
}

static bool read_value(struct reader *r);

static bool read_member(struct reader *r)
{
    skip_space(r);
    if (!read_string(r))
        return false;
    skip_space(r);
    if (!take(r, ':'))
        return stop(r, "a colon after the key");
    return read_value(r);
}

/* The inside of an array or object, behind its opening bracket. */
static bool read_items(struct reader *r, char close, bool (*read_item)(struct reader *),
                       const char *expected)
{
    if (++r->depth > HF__JSON_MAX_DEPTH)
        return stop(r, "at most 128 levels of nesting");
    skip_space(r);
    if (!take(r, close)) {
        do {
            if (!read_item(r))
                return false;
        } while (take(r, ','));
        if (!take(r, close))
            return stop(r, expected);
    }
    r->depth--;
    return true;
}

static bool read_bare_value(struct reader *r)
{
    int c = peek(r);
    if (take(r, '{'))
        return read_items(r, '}', read_member, "a comma or }");
    if (take(r, '['))
        return read_items(r, ']', read_value, "a comma or ]");
    switch (c) {
    case '"': return read_string(r);
    case 't': return read_word(r, "true");
    case 'f': return read_word(r, "false");
    case 'n': return read_word(r, "null");
    default: return is_digit(c) || c == '-' ? read_number(r) : stop(r, "a value");
    }
}

/* With the white space on both sides. */
static bool read_value(struct reader *r)
{
    skip_space(r);
    if (!read_bare_value(r))
        return false;
    skip_space(r);
    return true;
}

#define SHOWN_MOST 24 /* bytes of what stands where the mistake is */

/* Cut where a character ends; what is no UTF-8 is shown as it can be. */
static int shown_length(const struct reader *r)
{
    size_t left = r->length - r->at;
    size_t length = left < SHOWN_MOST ? left : SHOWN_MOST;
    while (length > 0 && length < left && ((unsigned char)r->text[r->at + length] & 0xc0) == 0x80)
        length--;
    return (int)length;
}

hf_code hf__json_check(const char *text, size_t length, hf_error *err)
{
    if (!text)
        return hf__fail(err, HF_INVALID, "there is no JSON; give a value, or null");
    struct reader r = { .text = text, .length = length };
    if (read_value(&r)) {
        if (r.at == length)
            return HF_OK;
        stop(&r, "nothing more after the value");
    }
    if (r.at == length)
        return hf__fail(err, HF_INVALID, "not valid JSON at byte %zu (the end): expected %s", r.at,
                        r.expected);
    return hf__fail(err, HF_INVALID, "not valid JSON at byte %zu: expected %s, found \"%.*s\"",
                    r.at, r.expected, shown_length(&r), text + r.at);
}
