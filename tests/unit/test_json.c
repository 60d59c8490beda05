/* SPDX-License-Identifier: Apache-2.0 */
#include "util/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void assert_accepted(const char *text)
{
    hf_error err = { 0 };
    if (hf__json_check(text, strlen(text), &err) != HF_OK)
        fail_msg("%s was refused: %s", text, err.message);
}

static void assert_refused_with(const char *text, size_t length, const char *message)
{
    hf_error err = { 0 };
    assert_int_equal(hf__json_check(text, length, &err), HF_INVALID);
    if (!strstr(err.message, message))
        fail_msg("%s was refused with: %s", text, err.message);
}

static void assert_refused(const char *text, const char *message)
{
    assert_refused_with(text, strlen(text), message);
}

static void every_kind_of_value_is_accepted(void **state)
{
    (void)state;
    const char *texts[] = { "null",
                            "true",
                            "false",
                            "0",
                            "-0",
                            "\"\"",
                            "[]",
                            "{}",
                            "[1,2]",
                            "{\"a\":1,\"b\":[{}]}",
                            " \t\r\n{ \"a\" : [ 1 , 2 ] } \n" };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_accepted(texts[i]);
}

static void numbers_may_have_any_size(void **state)
{
    (void)state;
    assert_accepted("123456789012345678901234567890");
    assert_accepted("-99999999999999999999999.5e+4000");
    assert_accepted("1E-99999");
}

static void malformed_numbers_are_refused(void **state)
{
    (void)state;
    assert_refused("01", "at byte 1: expected no digit after a leading zero");
    assert_refused("-", "at byte 1 (the end): expected a digit");
    assert_refused("1.", "at byte 2 (the end): expected a digit");
    assert_refused("1e+", "at byte 3 (the end): expected a digit");
    assert_refused(".5", "at byte 0: expected a value");
    assert_refused("+1", "at byte 0: expected a value");
    assert_refused("0x10", "at byte 1: expected nothing more");
    assert_refused("NaN", "at byte 0: expected a value");
}

static void malformed_structure_is_refused_with_its_place(void **state)
{
    (void)state;
    assert_refused("", "at byte 0 (the end): expected a value");
    assert_refused("{\"a\":1,}", "at byte 7: expected a string in double quotes");
    assert_refused("[1,]", "at byte 3: expected a value");
    assert_refused("[1 2]", "at byte 3: expected a comma or ]");
    assert_refused("{\"a\" 1}", "at byte 5: expected a colon");
    assert_refused("{\"a\":1", "at byte 6 (the end): expected a comma or }");
    assert_refused("{a:1}", "at byte 1: expected a string");
    assert_refused("[1}", "at byte 2: expected a comma or ]");
    assert_refused("nul", "at byte 0: expected a value");
    assert_refused("True", "at byte 0: expected a value");
    assert_refused("1 1", "at byte 2: expected nothing more");
    assert_refused("[1] // no", "at byte 4: expected nothing more");
    assert_refused("\xef\xbb\xbf{}", "at byte 0: expected a value");
}

static void a_missing_document_is_refused(void **state)
{
    (void)state;
    assert_int_equal(hf__json_check(NULL, 0, NULL), HF_INVALID);
}

static void a_nul_byte_is_refused_everywhere(void **state)
{
    (void)state;
    assert_refused_with("1\0", 2, "at byte 1: expected nothing more");
    assert_refused_with("\"a\0b\"", 5, "at byte 2: expected no bare control character");
    assert_refused_with("\"\\\0\"", 4, "at byte 2: expected one of");
    assert_refused_with("\0", 1, "at byte 0: expected a value");
}

static void reading_stops_at_the_given_length(void **state)
{
    (void)state;
    assert_int_equal(hf__json_check("12345 garbage", 5, NULL), HF_OK);
    assert_refused_with("true", 3, "at byte 0: expected a value");
    assert_refused_with("\"\\u00e9\"", 5, "at byte 5 (the end): expected four hexadecimal");
}

static void all_escapes_are_accepted(void **state)
{
    (void)state;
    assert_accepted("\"\\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u00e9 \\uABCD \\u0000\"");
    assert_accepted("\"\\ud83c\\udf0a\"");
    assert_accepted("{\"\\u0000\":1}");
}

static void unknown_escapes_are_refused(void **state)
{
    (void)state;
    assert_refused("\"\\x41\"", "at byte 2: expected one of");
    assert_refused("\"\\u12g4\"", "at byte 5: expected four hexadecimal digits");
    assert_refused("\"\\", "at byte 2 (the end): expected one of");
}

static void half_a_surrogate_pair_is_refused(void **state)
{
    (void)state;
    assert_refused("\"\\ud800\"", "at byte 3: expected a whole surrogate pair");
    assert_refused("\"\\udc00\"", "at byte 3: expected a whole surrogate pair");
    assert_refused("\"\\ud800\\u0041\"", "at byte 3: expected a whole surrogate pair");
    assert_refused("\"\\ud800\\n\"", "at byte 3: expected a whole surrogate pair");
    assert_refused("\"\\udc00\\udc00\"", "at byte 3: expected a whole surrogate pair");
    assert_refused("\"\\udc00\\ud800\"", "at byte 3: expected a whole surrogate pair");
}

static void strings_must_be_closed_and_free_of_control_characters(void **state)
{
    (void)state;
    assert_refused("\"abc", "at byte 4 (the end): expected a closing quote");
    assert_refused("\"a\nb\"", "at byte 2: expected no bare control character");
    assert_accepted("\"\x7f\"");
}

static void strings_must_be_strict_utf8(void **state)
{
    (void)state;
    assert_accepted("\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8c\x8a\"");
    assert_refused("\"\xc0\xaf\"", "at byte 1: expected valid UTF-8");
    assert_refused("\"\xed\xa0\x80\"", "at byte 1: expected valid UTF-8");
    assert_refused("\"\xf4\x90\x80\x80\"", "at byte 1: expected valid UTF-8");
    assert_refused("\"\xe2\x82\"", "at byte 1: expected valid UTF-8");
    assert_refused("{\"\xff\":1}", "at byte 2: expected valid UTF-8");
}

/* depth times '[', or '{"":' for objects, a 0, and the closing brackets. */
static char *nested(int depth, const char *open, char close)
{
    size_t width = strlen(open), size = (size_t)depth;
    char *text = malloc(size * (width + 1) + 2), *at = text;
    for (int i = 0; i < depth; i++, at += width)
        memcpy(at, open, width);
    *at++ = '0';
    memset(at, close, size);
    at[size] = '\0';
    return text;
}

static void nesting_is_accepted_up_to_128_levels(void **state)
{
    (void)state;
    char *arrays = nested(128, "[", ']'), *objects = nested(128, "{\"\":", '}');
    assert_accepted(arrays);
    assert_accepted(objects);
    free(arrays);
    free(objects);
}

static void deeper_nesting_is_refused(void **state)
{
    (void)state;
    char *arrays = nested(129, "[", ']'), *objects = nested(100000, "{\"\":", '}');
    assert_refused(arrays, "at byte 129: expected at most 128 levels");
    assert_refused(objects, "expected at most 128 levels");
    free(arrays);
    free(objects);
}

static void neighbours_do_not_add_to_the_depth(void **state)
{
    (void)state;
    char text[2002] = "[[]";
    for (size_t i = 3; i + 4 < sizeof text; i += 3)
        memcpy(text + i, ",[]", 4);
    strcat(text, "]");
    assert_accepted(text);
}

static void key_order_and_space_do_not_make_a_difference(void **state)
{
    (void)state;
    assert_true(hf__json_equal("{\"a\":1,\"b\":[2,3]}", " { \"b\" : [2, 3] , \"a\" : 1 } "));
    assert_true(hf__json_equal("\"\\u00e9\"", "\"\xc3\xa9\""));
    assert_true(hf__json_equal("{\"a\":\"\\u0000\",\"b\":1}", " {\"a\":\"\\u0000\", \"b\":1}"));
    assert_true(hf__json_equal("1.50", "1.5"));
}

static void other_values_differ(void **state)
{
    (void)state;
    assert_false(hf__json_equal("{\"a\":1}", "{\"a\":2}"));
    assert_false(hf__json_equal("[1,2]", "[2,1]"));
    assert_false(hf__json_equal("{\"a\":\"\\u0000\",\"b\":1}", "{\"b\":1,\"a\":\"\\u0000\"}"));
    assert_false(hf__json_equal("\"1\"", "1"));
    assert_false(hf__json_equal("{}", "null"));
    assert_false(hf__json_equal("\"a b\"", "\"ab\""));
    assert_false(hf__json_equal("\"a\\\" b\"", "\"a\\\"  b\""));
}

static void huge_integers_are_compared_digit_by_digit(void **state)
{
    (void)state;
    assert_true(
        hf__json_equal("[123456789012345678901234567890]", " [ 123456789012345678901234567890 ] "));
    assert_false(
        hf__json_equal("123456789012345678901234567890", "123456789012345678901234567891"));
    assert_true(hf__json_equal("[\"a\\\\\", 1e999]", "[\"a\\\\\",1e999]"));
}

static void numbers_are_compared_by_their_exact_value(void **state)
{
    static const char *const same[][2] = {
        { "1", "1.0" },
        { "1", "10e-1" },
        { "-0", "0" },
        { "0.0e9", "-0" },
        { "1e2", "100" },
        { "0.00012", "12E-5" },
        { "1e400", "10e399" },
        { "[1.50,{\"a\":2}]", "[1.5,{\"a\":2.00}]" },
        { "123456789012345678901234567890", "12345678901234567890123456789e+1" },
    };
    static const char *const other[][2] = {
        { "1", "-1" },
        { "1", "10" },
        { "1", "\"1\"" },
        { "1", "\"n1e0\"" },
        { "0.1", "0.01" },
        { "9007199254740993", "9007199254740992.0" },
        { "1e99999999", "1e99999998" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (!hf__json_equal(same[i][0], same[i][1]) || !hf__json_equal(same[i][1], same[i][0]))
            fail_msg("%s is not %s", same[i][0], same[i][1]);
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (hf__json_equal(other[i][0], other[i][1]) || hf__json_equal(other[i][1], other[i][0]))
            fail_msg("%s is %s", other[i][0], other[i][1]);
}

static void what_is_not_json_equals_only_its_own_bytes(void **state)
{
    (void)state;
    assert_true(hf__json_equal("{oops", "{oops"));
    assert_false(hf__json_equal("{oops", "{oops "));
    assert_false(hf__json_equal("1", "1 x"));
    assert_false(hf__json_equal("", " "));
}

static void nothing_equals_nothing_only(void **state)
{
    (void)state;
    assert_true(hf__json_equal(NULL, NULL));
    assert_false(hf__json_equal(NULL, "null"));
    assert_false(hf__json_equal("null", NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_value_is_accepted),
        cmocka_unit_test(numbers_may_have_any_size),
        cmocka_unit_test(malformed_numbers_are_refused),
        cmocka_unit_test(malformed_structure_is_refused_with_its_place),
        cmocka_unit_test(a_missing_document_is_refused),
        cmocka_unit_test(a_nul_byte_is_refused_everywhere),
        cmocka_unit_test(reading_stops_at_the_given_length),
        cmocka_unit_test(all_escapes_are_accepted),
        cmocka_unit_test(unknown_escapes_are_refused),
        cmocka_unit_test(half_a_surrogate_pair_is_refused),
        cmocka_unit_test(strings_must_be_closed_and_free_of_control_characters),
        cmocka_unit_test(strings_must_be_strict_utf8),
        cmocka_unit_test(nesting_is_accepted_up_to_128_levels),
        cmocka_unit_test(deeper_nesting_is_refused),
        cmocka_unit_test(neighbours_do_not_add_to_the_depth),
        cmocka_unit_test(key_order_and_space_do_not_make_a_difference),
        cmocka_unit_test(other_values_differ),
        cmocka_unit_test(huge_integers_are_compared_digit_by_digit),
        cmocka_unit_test(numbers_are_compared_by_their_exact_value),
        cmocka_unit_test(what_is_not_json_equals_only_its_own_bytes),
        cmocka_unit_test(nothing_equals_nothing_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
