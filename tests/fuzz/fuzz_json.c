/* Our JSON check and jansson must agree, but for the differences that are meant.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "util/json.h"

#include <jansson.h>
#include <stdbool.h>
#include <string.h>

const char *const fuzz_seeds[] = {
    "{\"a\":[1,2.5,-3e+7,null,true,false],\"b\":{\"c\":\"text\"}}",
    "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83c\\udf0a\\u0000\"",
    "[\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x8c\x8a\", {\"\": {}}, [], [[[[[[[[]]]]]]]]]",
    " [ 123456789012345678901234567890 , 1e999 , -0 , 0.0 ] ",
    "{\"a\":1,\"a\":2,\"\\ud800\":\"\\udfff\"}",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    NULL,
};

/* jansson takes a NUL byte after the value for the end, and nests deeper than we do. */
static bool may_refuse_alone(const uint8_t *data, size_t size, const hf_error *ours)
{
    return memchr(data, '\0', size) || strstr(ours->message, "128 levels");
}

/* jansson cannot hold numbers that are too large, nor keys with \u0000. */
static bool may_accept_alone(const json_error_t *theirs)
{
    enum json_error_code code = json_error_code(theirs);
    return code == json_error_numeric_overflow || code == json_error_null_byte_in_key;
}

/* jansson writes reals with 17 digits, and what holds \\u0000 is compared by its text alone. */
static bool is_rewritten_exactly(const json_t *value, const char *text)
{
    const char *key;
    json_t *part;
    size_t i;
    bool exact = !json_is_real(value) && !strstr(text, "\\u0000");
    if (json_is_object(value))
        json_object_foreach((json_t *)value, key, part) exact =
            exact && is_rewritten_exactly(part, text);
    if (json_is_array(value))
        json_array_foreach(value, i, part) exact = exact && is_rewritten_exactly(part, text);
    return exact;
}

static bool holds_number(const json_t *value)
{
    const char *key;
    json_t *part;
    size_t i;
    bool found = json_is_number(value);
    if (json_is_object(value))
        json_object_foreach((json_t *)value, key, part) found = found || holds_number(part);
    if (json_is_array(value))
        json_array_foreach(value, i, part) found = found || holds_number(part);
    return found;
}

/* How far a string or anything else that is no number goes. */
static size_t other_length(const char *text)
{
    size_t length = 1;
    if (*text != '"')
        return 1;
    while (text[length] != '"')
        length += text[length] == '\\' ? 2 : 1;
    return length + 1;
}

/* The same document with one more digit behind the point of every number: with a 0 it means the same, with another it does
 * not. Exponents beyond reason are compared as they are written: there a 0 would make a difference. */
static char *respell(const char *text, char digit)
{
    char *out = malloc(3 * strlen(text) + 1);
    FUZZ_EXPECT(out);
    char *end = out;
    while (*text) {
        size_t mantissa = strspn(text, "-0123456789.");
        size_t length = strspn(text, "-+0123456789.eE");
        if (mantissa == 0 || (digit == '0' && length - mantissa > 8)) {
            length = mantissa ? length : other_length(text);
            memcpy(end, text, length);
            end += length;
        } else {
            end += sprintf(end, "%.*s%s%c%.*s", (int)mantissa, text,
                           memchr(text, '.', mantissa) ? "" : ".", digit, (int)(length - mantissa),
                           text + mantissa);
        }
        text += length;
    }
    *end = '\0';
    return out;
}

/* By the exact rule, whatever jansson can hold. */
static void compare_numbers(const char *text, const json_t *value)
{
    char *same = respell(text, '0');
    char *other = respell(text, '1');
    bool by_text = strstr(text, "\\u0000");
    FUZZ_EXPECT(hf__json_equal(text, same) || by_text);
    FUZZ_EXPECT(!value || !holds_number(value) || !hf__json_equal(text, other));
    free(other);
    free(same);
}

static char *text_of(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 2);
    FUZZ_EXPECT(text);
    memcpy(text, data, size);
    strcpy(text + size, " ");
    return text;
}

/* A valid document has no NUL byte, so it can be compared as a text. */
static void compare_rewritten(const char *text, const json_t *value)
{
    char *rewritten = json_dumps(value, JSON_ENCODE_ANY | JSON_SORT_KEYS | JSON_INDENT(2));
    FUZZ_EXPECT(rewritten && hf__json_check(rewritten, strlen(rewritten), NULL) == HF_OK);
    FUZZ_EXPECT(hf__json_equal(text, rewritten) || !is_rewritten_exactly(value, text));
    FUZZ_EXPECT(hf__json_equal(text, text));
    free(rewritten);
}

static void compare(const uint8_t *data, size_t size, const json_t *value)
{
    char *text = text_of(data, size);
    compare_numbers(text, value);
    if (value)
        compare_rewritten(text, value);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hf_error ours = { .code = HF_OK };
    json_error_t theirs;
    json_t *value = json_loadb((const char *)data, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, &theirs);
    hf_code code = hf__json_check((const char *)data, size, &ours);
    FUZZ_EXPECT(code == ours.code);
    if (value && code != HF_OK)
        FUZZ_EXPECT(may_refuse_alone(data, size, &ours));
    if (!value && code == HF_OK)
        FUZZ_EXPECT(may_accept_alone(&theirs));
    if (code == HF_OK)
        compare(data, size, value);
    json_decref(value);
    return 0;
}
