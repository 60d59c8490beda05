/* Whether two documents mean the same, by the rules of PostgreSQL's jsonb: the SQL functions compare with that.
 * SPDX-License-Identifier: Apache-2.0 */
#include "util/json.h"

#include "util/buffer.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define MOST_EXPONENT 8 /* bytes, with the e and the sign */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_valid(const char *text)
{
    return hf__json_check(text, strlen(text), NULL) == HF_OK;
}

/* The next byte that is not white space between tokens; NUL at the end. */
static char next_significant(const char **at, bool *in_string)
{
    if (!*in_string)
        while (is_space(**at))
            (*at)++;
    char c = **at;
    if (c == '"')
        *in_string = !*in_string;
    if (c)
        (*at)++;
    return c;
}

/* For valid documents only: there white space never separates two tokens that would else be one. */
static bool same_but_for_space(const char *a, const char *b)
{
    bool a_in_string = false, b_in_string = false;
    char c;
    do {
        c = next_significant(&a, &a_in_string);
        if (c != next_significant(&b, &b_in_string))
            return false;
        if (c == '\\' && *a++ != *b++)
            return false;
    } while (c);
    return true;
}

/* ---- Numbers ---- */

static bool is_of_number(char c)
{
    return is_digit(c) || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

/* The digits of a number without the zeros on either side, and the power of ten that they are multiplied with. */
struct decimal {
    struct hf__buffer digits;
    bool negative;
    long exponent;
};

/* False: the exponent is beyond reason, and the text must speak for itself. */
static bool read_decimal(struct decimal *out, const char *text, size_t length)
{
    size_t at = 0;
    bool in_fraction = false;
    out->negative = text[0] == '-';
    for (at = out->negative; at < length && (is_digit(text[at]) || text[at] == '.'); at++) {
        if (text[at] == '.')
            in_fraction = true;
        else if (text[at] != '0' || out->digits.length)
            hf__buffer_add(&out->digits, &text[at], 1);
        out->exponent -= in_fraction && text[at] != '.';
    }
    if (at < length && length - at > MOST_EXPONENT)
        return false;
    if (at < length)
        out->exponent += strtol(text + at + 1, NULL, 10);
    while (out->digits.length && out->digits.data[out->digits.length - 1] == '0') {
        out->digits.length--;
        out->exponent++;
    }
    return true;
}

/* A number as a string that equal numbers have in common: 1, 1.0 and 10e-1 are all "n1e0". */
static void add_number(struct hf__buffer *json, const char *text, size_t length)
{
    struct decimal number = { 0 };
    hf__buffer_add_text(json, "\"n");
    if (!read_decimal(&number, text, length)) {
        hf__buffer_add(json, text, length);
    } else if (number.digits.length == 0) {
        hf__buffer_add_text(json, "0");
    } else {
        hf__buffer_add_text(json, number.negative ? "-" : "");
        hf__buffer_add(json, number.digits.data, number.digits.length);
        hf__buffer_addf(json, "e%ld", number.exponent);
    }
    json->failed |= number.digits.failed;
    hf__buffer_free(&number.digits);
    hf__buffer_add_text(json, "\"");
}

/* ---- Meaning ---- */

static size_t string_length(const char *text)
{
    size_t at = 1;
    while (text[at] != '"')
        at += text[at] == '\\' ? 2 : 1;
    return at + 1;
}

static size_t number_length(const char *text)
{
    size_t at = 0;
    while (is_of_number(text[at]))
        at++;
    return at;
}

/* A valid document with its numbers as strings, so that the parser does not round them. To tell them apart, strings
 * begin with an s and numbers with an n. */
static json_t *parse_exactly(const char *text)
{
    struct hf__buffer json = { 0 };
    while (*text) {
        size_t length = 1;
        if (*text == '"') {
            length = string_length(text);
            hf__buffer_add_text(&json, "\"s");
            hf__buffer_add(&json, text + 1, length - 1);
        } else if (is_digit(*text) || *text == '-') {
            length = number_length(text);
            add_number(&json, text, length);
        } else {
            hf__buffer_add(&json, text, 1);
        }
        text += length;
    }
    json_t *parsed = json.failed ? NULL : json_loads(json.data, JSON_DECODE_ANY, NULL);
    hf__buffer_free(&json);
    return parsed;
}

static bool same_meaning(const char *a, const char *b)
{
    json_t *left = parse_exactly(a);
    json_t *right = left ? parse_exactly(b) : NULL;
    bool same = right && json_equal(left, right);
    json_decref(right);
    json_decref(left);
    return same;
}

bool hf__json_equal(const char *a, const char *b)
{
    if (!a || !b)
        return a == b;
    if (strcmp(a, b) == 0)
        return true;
    if (!is_valid(a) || !is_valid(b))
        return false;
    return same_but_for_space(a, b) || same_meaning(a, b);
}
