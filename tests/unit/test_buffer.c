/* SPDX-License-Identifier: Apache-2.0 */
#include "util/alloc.h"
#include "util/buffer.h"
#include "util/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void additions_follow_one_another(void **state)
{
    (void)state;
    struct hf__buffer buffer = { 0 };
    hf__buffer_add_text(&buffer, "one ");
    hf__buffer_add(&buffer, "two!!", 3);
    hf__buffer_addf(&buffer, " %d", 3);
    assert_string_equal(buffer.data, "one two 3");
    assert_int_equal(buffer.length, 9);
    hf__buffer_free(&buffer);
}

static void it_is_terminated_after_every_addition(void **state)
{
    (void)state;
    struct hf__buffer buffer = { 0 };
    for (size_t i = 1; i <= 3000; i++) {
        hf__buffer_add(&buffer, "x", 1);
        assert_int_equal(buffer.length, i);
        assert_int_equal(buffer.data[i], '\0');
        assert_true(buffer.capacity > i);
    }
    hf__buffer_free(&buffer);
}

static void adding_nothing_gives_an_empty_text(void **state)
{
    (void)state;
    struct hf__buffer buffer = { 0 };
    hf__buffer_add(&buffer, NULL, 0);
    assert_string_equal(buffer.data, "");
    hf__buffer_free(&buffer);
}

static void taking_from_an_untouched_buffer_gives_an_empty_text(void **state)
{
    (void)state;
    struct hf__buffer buffer = { 0 };
    char *text = hf__buffer_take(&buffer);
    assert_string_equal(text, "");
    free(text);
}

static void a_taken_text_belongs_to_the_taker(void **state)
{
    (void)state;
    struct hf__buffer buffer = { 0 };
    hf__buffer_add_text(&buffer, "mine");
    char *text = hf__buffer_take(&buffer);
    assert_null(buffer.data);
    hf__buffer_add_text(&buffer, "other");
    assert_string_equal(text, "mine");
    free(text);
    hf__buffer_free(&buffer);
}

static void a_failure_sticks_until_the_end(void **state)
{
    (void)state;
    struct hf__buffer buffer = { 0 };
    hf__buffer_add_text(&buffer, "first");
    hf__alloc_fail_after = 0;
    hf__buffer_addf(&buffer, "%0200d", 1);
    hf__buffer_add_text(&buffer, "later");
    assert_true(buffer.failed);
    assert_string_equal(buffer.data, "first");
    assert_null(hf__buffer_take(&buffer));
}

static void clearing_forgets_text_and_failure(void **state)
{
    (void)state;
    struct hf__buffer buffer = { 0 };
    hf__buffer_add_text(&buffer, "old");
    buffer.failed = true;
    hf__buffer_clear(&buffer);
    hf__buffer_add_text(&buffer, "new");
    assert_string_equal(buffer.data, "new");
    hf__buffer_free(&buffer);
}

static void an_impossible_length_fails_instead_of_wrapping(void **state)
{
    (void)state;
    struct hf__buffer buffer = { 0 };
    hf__buffer_add_text(&buffer, "x");
    hf__buffer_add(&buffer, "y", SIZE_MAX - 1);
    assert_true(buffer.failed);
    hf__buffer_free(&buffer);
}

static void a_json_string_is_escaped(void **state)
{
    (void)state;
    struct hf__buffer buffer = { 0 };
    hf__buffer_add_json_string(&buffer, "a\"b\\c/\b\f\n\r\t\x01\x1f\x7f\xc3\xa9", 16);
    assert_string_equal(buffer.data, "\"a\\\"b\\\\c/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\xc3\xa9\"");
    hf__buffer_free(&buffer);
}

static void a_json_string_keeps_nul_bytes(void **state)
{
    (void)state;
    struct hf__buffer buffer = { 0 };
    hf__buffer_add_json_string(&buffer, "a\0b", 3);
    assert_string_equal(buffer.data, "\"a\\u0000b\"");
    hf__buffer_free(&buffer);
}

static void a_json_string_replaces_what_is_not_utf8(void **state)
{
    (void)state;
    struct hf__buffer buffer = { 0 };
    hf__buffer_add_json_string(&buffer,
                               "a\xff"
                               "b\xc3",
                               4);
    assert_string_equal(buffer.data, "\"a\xef\xbf\xbd"
                                     "b\xef\xbf\xbd\"");
    hf__buffer_free(&buffer);
}

static void every_byte_string_becomes_valid_json(void **state)
{
    (void)state;
    for (int first = 0; first < 256; first++) {
        for (int second = 0; second < 256; second++) {
            struct hf__buffer buffer = { 0 };
            char bytes[] = { (char)first, (char)second };
            hf__buffer_add_json_string(&buffer, bytes, 2);
            assert_int_equal(hf__json_check(buffer.data, buffer.length, NULL), HF_OK);
            hf__buffer_free(&buffer);
        }
    }
}

static void a_json_string_is_read_back_as_it_was(void **state)
{
    (void)state;
    const char text[] = "line\nquote\" back\\slash \0 \xf0\x9f\x8c\x8a";
    struct hf__buffer buffer = { 0 };
    hf__buffer_add_json_string(&buffer, text, sizeof text - 1);
    json_t *value = json_loads(buffer.data, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    assert_int_equal(json_string_length(value), sizeof text - 1);
    assert_memory_equal(json_string_value(value), text, sizeof text - 1);
    json_decref(value);
    hf__buffer_free(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(additions_follow_one_another),
        cmocka_unit_test(it_is_terminated_after_every_addition),
        cmocka_unit_test(adding_nothing_gives_an_empty_text),
        cmocka_unit_test(taking_from_an_untouched_buffer_gives_an_empty_text),
        cmocka_unit_test(a_taken_text_belongs_to_the_taker),
        cmocka_unit_test(a_failure_sticks_until_the_end),
        cmocka_unit_test(clearing_forgets_text_and_failure),
        cmocka_unit_test(an_impossible_length_fails_instead_of_wrapping),
        cmocka_unit_test(a_json_string_is_escaped),
        cmocka_unit_test(a_json_string_keeps_nul_bytes),
        cmocka_unit_test(a_json_string_replaces_what_is_not_utf8),
        cmocka_unit_test(every_byte_string_becomes_valid_json),
        cmocka_unit_test(a_json_string_is_read_back_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
