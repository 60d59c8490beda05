/* SPDX-License-Identifier: Apache-2.0 */
#include "util/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdbool.h>
#include <string.h>
#include <cmocka.h>

static bool valid(const char *text)
{
    return hf__utf8_valid(text, strlen(text));
}

static void assert_name_refused(const char *name, hf_code code, const char *message)
{
    hf_error err = { 0 };
    assert_int_equal(hf__name_check("workflow name", name, &err), code);
    if (!strstr(err.message, "workflow name") || !strstr(err.message, message))
        fail_msg("%s", err.message);
}

static void well_formed_utf8_is_valid(void **state)
{
    (void)state;
    assert_true(valid(""));
    assert_true(valid("plain \x7f"));
    assert_true(valid("\xc2\x80 \xdf\xbf \xe0\xa0\x80 \xed\x9f\xbf \xee\x80\x80 \xef\xbf\xbf"));
    assert_true(valid("\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf"));
}

static void overlong_forms_are_not_valid(void **state)
{
    (void)state;
    assert_false(valid("\xc0\x80"));
    assert_false(valid("\xc1\xbf"));
    assert_false(valid("\xe0\x9f\xbf"));
    assert_false(valid("\xf0\x8f\xbf\xbf"));
}

static void surrogates_and_too_large_code_points_are_not_valid(void **state)
{
    (void)state;
    assert_false(valid("\xed\xa0\x80"));
    assert_false(valid("\xed\xbf\xbf"));
    assert_false(valid("\xf4\x90\x80\x80"));
    assert_false(valid("\xf5\x80\x80\x80"));
    assert_false(valid("\xff"));
}

static void broken_sequences_are_not_valid(void **state)
{
    (void)state;
    assert_false(valid("\x80"));
    assert_false(valid("\xc3"));
    assert_false(valid("\xe2\x82"));
    assert_false(valid("\xf0\x9f\x8c"));
    assert_false(valid("\xe2\x28\xa1"));
    assert_false(valid("\xf0\x9f\x28\x8a"));
    assert_false(hf__utf8_valid("\xc3\xa9", 1));
}

static void the_number_of_valid_three_byte_strings_is_exact(void **state)
{
    (void)state;
    int count = 0;
    for (unsigned bits = 0; bits < 1u << 24; bits++) {
        char bytes[] = { (char)(bits >> 16), (char)(bits >> 8), (char)bits };
        count += hf__utf8_sequence(bytes, 3) == 3;
    }
    assert_int_equal(count, 0x10000 - 0x800 - 0x800);
}

static void ordinary_names_are_accepted(void **state)
{
    (void)state;
    const char *names[] = { "a", "9", "billing.invoice_charge.v1", "A:b-c_d.e", "holdfast.purge" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_int_equal(hf__name_check("workflow name", names[i], NULL), HF_OK);
}

static void a_missing_name_is_refused(void **state)
{
    (void)state;
    assert_name_refused(NULL, HF_INVALID, "missing");
    assert_name_refused("", HF_INVALID, "missing");
}

static void a_name_may_have_200_bytes_and_no_more(void **state)
{
    (void)state;
    char name[202];
    memset(name, 'n', 201);
    name[201] = '\0';
    assert_name_refused(name, HF_TOO_LARGE, "200 bytes");
    name[200] = '\0';
    assert_int_equal(hf__name_check("workflow name", name, NULL), HF_OK);
}

static void only_the_allowed_characters_may_be_in_a_name(void **state)
{
    (void)state;
    const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:-";
    for (int c = 1; c < 256; c++) {
        char name[] = { 'a', (char)c, 'a', '\0' };
        hf_code expected = strchr(allowed, c) ? HF_OK : HF_INVALID;
        assert_int_equal(hf__name_check("name", name, NULL), expected);
    }
    assert_name_refused("a b", HF_INVALID, "byte 1");
}

static void a_name_starts_with_a_letter_or_digit(void **state)
{
    (void)state;
    assert_name_refused(".a", HF_INVALID, "start");
    assert_name_refused("_a", HF_INVALID, "start");
    assert_name_refused("-a", HF_INVALID, "start");
    assert_name_refused(":a", HF_INVALID, "start");
}

static void dots_in_a_name_separate_parts(void **state)
{
    (void)state;
    assert_name_refused("a..b", HF_INVALID, "two dots");
    assert_name_refused("a.", HF_INVALID, "end with a dot");
}

static void a_label_may_be_any_text(void **state)
{
    (void)state;
    assert_int_equal(hf__label_check("key", "Zo\xc3\xab #42 / \xf0\x9f\x8c\x8a", 100, NULL), HF_OK);
    assert_int_equal(hf__label_check("key", "\xc2\xa0", 2, NULL), HF_OK);
}

static void an_empty_label_is_refused(void **state)
{
    (void)state;
    assert_int_equal(hf__label_check("key", "", 10, NULL), HF_INVALID);
    assert_int_equal(hf__label_check("key", NULL, 10, NULL), HF_INVALID);
}

static void a_label_is_bounded_in_bytes(void **state)
{
    (void)state;
    hf_error err = { 0 };
    assert_int_equal(hf__label_check("key", "12345", 5, &err), HF_OK);
    assert_int_equal(hf__label_check("key", "123456", 5, &err), HF_TOO_LARGE);
    assert_non_null(strstr(err.message, "the limit is 5 bytes"));
}

static void control_characters_in_a_label_are_refused(void **state)
{
    (void)state;
    for (int c = 1; c < 0x20; c++) {
        char text[] = { 'a', (char)c, '\0' };
        assert_int_equal(hf__label_check("key", text, 10, NULL), HF_INVALID);
    }
    assert_int_equal(hf__label_check("key", "\x7f", 10, NULL), HF_INVALID);
    assert_int_equal(hf__label_check("key", "\xc2\x85", 10, NULL), HF_INVALID);
}

static void a_label_that_is_not_utf8_is_refused_with_its_place(void **state)
{
    (void)state;
    hf_error err = { 0 };
    assert_int_equal(hf__label_check("key", "ab\xff", 10, &err), HF_INVALID);
    assert_non_null(strstr(err.message, "key is not valid UTF-8 at byte 2"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(well_formed_utf8_is_valid),
        cmocka_unit_test(overlong_forms_are_not_valid),
        cmocka_unit_test(surrogates_and_too_large_code_points_are_not_valid),
        cmocka_unit_test(broken_sequences_are_not_valid),
        cmocka_unit_test(the_number_of_valid_three_byte_strings_is_exact),
        cmocka_unit_test(ordinary_names_are_accepted),
        cmocka_unit_test(a_missing_name_is_refused),
        cmocka_unit_test(a_name_may_have_200_bytes_and_no_more),
        cmocka_unit_test(only_the_allowed_characters_may_be_in_a_name),
        cmocka_unit_test(a_name_starts_with_a_letter_or_digit),
        cmocka_unit_test(dots_in_a_name_separate_parts),
        cmocka_unit_test(a_label_may_be_any_text),
        cmocka_unit_test(an_empty_label_is_refused),
        cmocka_unit_test(a_label_is_bounded_in_bytes),
        cmocka_unit_test(control_characters_in_a_label_are_refused),
        cmocka_unit_test(a_label_that_is_not_utf8_is_refused_with_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
