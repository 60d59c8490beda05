/* SPDX-License-Identifier: Apache-2.0 */
#include "util/text.h"

#include "util/error.h"

#include <string.h>

static bool is_continuation(unsigned char byte)
{
    return (byte & 0xc0) == 0x80;
}

/* The second byte is what tells overlong forms, surrogates and too large code points from the
 * rest. */
static bool second_byte_fits(unsigned char lead, unsigned char second)
{
    switch (lead) {
    case 0xe0: return second >= 0xa0 && second <= 0xbf;
    case 0xed: return second >= 0x80 && second <= 0x9f;
    case 0xf0: return second >= 0x90 && second <= 0xbf;
    case 0xf4: return second >= 0x80 && second <= 0x8f;
    default: return is_continuation(second);
    }
}

size_t hf__utf8_sequence(const char *bytes, size_t length)
{
    if (length == 0)
        return 0;
    const unsigned char *b = (const unsigned char *)bytes;
    if (b[0] < 0x80)
        return 1;
    if (b[0] < 0xc2 || b[0] > 0xf4)
        return 0;
    size_t size = b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4;
    if (length < size || !second_byte_fits(b[0], b[1]))
        return 0;
    for (size_t i = 2; i < size; i++)
        if (!is_continuation(b[i]))
            return 0;
    return size;
}

bool hf__utf8_valid(const char *bytes, size_t length)
{
    size_t at = 0;
    while (at < length) {
        size_t step = hf__utf8_sequence(bytes + at, length - at);
        if (step == 0)
            return false;
        at += step;
    }
    return true;
}

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool belongs_in_name(char c)
{
    return is_letter_or_digit(c) || c == '_' || c == '.' || c == ':' || c == '-';
}

hf_code hf__name_check(const char *what, const char *name, hf_error *err)
{
    if (!name || !*name)
        return hf__fail(err, HF_INVALID, "%s is missing; give 1 to %d characters", what,
                        HF__NAME_MAX);
    size_t length = strnlen(name, HF__NAME_MAX + 1);
    if (length > HF__NAME_MAX)
        return hf__fail(err, HF_TOO_LARGE, "%s \"%.40s...\" is too long; the limit is %d bytes",
                        what, name, HF__NAME_MAX);
    for (size_t i = 0; i < length; i++)
        if (!belongs_in_name(name[i]))
            return hf__fail(err, HF_INVALID,
                            "%s \"%s\" has an unusable character at byte %zu; use letters, "
                            "digits and _ . : - only",
                            what, name, i);
    if (!is_letter_or_digit(name[0]))
        return hf__fail(err, HF_INVALID, "%s \"%s\" must start with a letter or a digit", what,
                        name);
    if (strstr(name, ".."))
        return hf__fail(err, HF_INVALID, "%s \"%s\" has two dots in a row; use one", what, name);
    if (name[length - 1] == '.')
        return hf__fail(err, HF_INVALID, "%s \"%s\" must not end with a dot", what, name);
    return HF_OK;
}

/* C0, DEL and, as U+0080 to U+009F, C1. */
static bool is_control(const char *text)
{
    unsigned char first = (unsigned char)text[0];
    return first < 0x20 || first == 0x7f || (first == 0xc2 && (unsigned char)text[1] < 0xa0);
}

hf_code hf__label_check(const char *what, const char *text, size_t max_bytes, hf_error *err)
{
    if (!text || !*text)
        return hf__fail(err, HF_INVALID, "%s is empty; give 1 to %zu bytes", what, max_bytes);
    size_t length = strnlen(text, max_bytes + 1);
    if (length > max_bytes)
        return hf__fail(err, HF_TOO_LARGE, "%s \"%.40s...\" is too long; the limit is %zu bytes",
                        what, text, max_bytes);
    for (size_t at = 0; at < length;) {
        size_t step = hf__utf8_sequence(text + at, length - at);
        if (step == 0)
            return hf__fail(err, HF_INVALID, "%s is not valid UTF-8 at byte %zu; re-encode it",
                            what, at);
        if (is_control(text + at))
            return hf__fail(err, HF_INVALID, "%s has a control character at byte %zu; remove it",
                            what, at);
        at += step;
    }
    return HF_OK;
}
