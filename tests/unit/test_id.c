/* SPDX-License-Identifier: Apache-2.0 */
#include "util/id.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

static const char example[] = "019a88d0-1234-7abc-8def-0123456789ab";

static hf_id made(int64_t now_us, uint64_t seed)
{
    struct hf__random random;
    hf__random_seed(&random, seed);
    hf_id id;
    hf__id_make(&id, now_us, &random);
    return id;
}

static void an_id_is_a_uuid_of_version_7(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        hf_id id = made(INT64_C(1763241651123456), seed);
        assert_int_equal(id.bytes[6] >> 4, 7);
        assert_int_equal(id.bytes[8] >> 6, 2);
    }
}

static void an_id_starts_with_its_milliseconds(void **state)
{
    (void)state;
    hf_id id = made(INT64_C(0x0123456789ab) * 1000 + 999, 1);
    assert_memory_equal(id.bytes, "\x01\x23\x45\x67\x89\xab", 6);
}

static void a_later_microsecond_makes_a_larger_id(void **state)
{
    (void)state;
    int64_t now = INT64_C(1763241651000000);
    for (int i = 0; i < 2500; i++, now++)
        assert_true(hf__id_compare(made(now, 1), made(now + 1, 2)) < 0);
}

static void ids_of_one_microsecond_differ(void **state)
{
    (void)state;
    assert_false(hf_id_equal(made(1000, 1), made(1000, 2)));
}

static void ids_made_one_after_the_other_are_in_order_within_a_microsecond(void **state)
{
    struct hf__random random;
    hf_id last = { { 0 } };
    (void)state;
    hf__random_seed(&random, 7);
    hf__id_make_after(&last, 1000, &random);
    for (int i = 0; i < 10000; i++) {
        hf_id before = last;
        hf__id_make_after(&last, 1000, &random);
        assert_true(hf__id_compare(before, last) < 0);
        assert_memory_equal(before.bytes, last.bytes, 8);
        assert_int_equal(last.bytes[8] >> 6, 2);
    }
}

static void an_id_after_the_largest_is_still_one_of_its_microsecond(void **state)
{
    struct hf__random random;
    hf_id last = made(1000, 1);
    (void)state;
    hf__random_seed(&random, 7);
    last.bytes[8] = 0xbf;
    memset(last.bytes + 9, 0xff, 7);
    hf_id largest = last;
    hf__id_make_after(&last, 1000, &random);
    assert_memory_equal(last.bytes, largest.bytes, 8);
    assert_int_equal(last.bytes[8] >> 6, 2);
    assert_false(hf_id_equal(last, largest));
}

static void steps_lead_from_an_id_to_those_behind_it(void **state)
{
    hf_id first, next;
    char text[HF_ID_TEXT];
    (void)state;
    assert_true(hf_id_parse("01890000-0000-7000-8000-0000000000fe", &first));
    assert_true(hf__id_step(first, 0, &next));
    assert_true(hf_id_equal(next, first));
    assert_true(hf__id_step(first, 3, &next));
    hf_id_format(next, text);
    assert_string_equal(text, "01890000-0000-7000-8000-000000000101");
    assert_true(hf_id_parse("01890000-0000-7000-bfff-fffffffffffd", &first));
    assert_true(hf__id_step(first, 2, &next));
    assert_false(hf__id_step(first, 3, &next));
    assert_false(hf__id_step(first, UINT64_MAX, &next));
}

static void the_lowest_id_of_a_millisecond_lies_between_its_ids_and_those_before(void **state)
{
    const int64_t now = INT64_C(1763241651123);
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        assert_true(hf__id_compare(hf__id_at(now), made(now * 1000, seed)) < 0);
        assert_true(hf__id_compare(hf__id_at(now), made(now * 1000 - 1, seed)) > 0);
    }
    assert_true(hf_id_is_zero(hf__id_at(-1)));
    assert_true(hf__id_compare(hf__id_at(INT64_MAX), hf__id_at(INT64_C(1) << 47)) > 0);
}

static void a_time_before_the_epoch_is_taken_as_the_epoch(void **state)
{
    (void)state;
    hf_id id = made(-5, 1);
    assert_memory_equal(id.bytes, "\0\0\0\0\0\0\x70\0", 8);
}

static void an_id_is_read_back_as_it_was_written(void **state)
{
    (void)state;
    hf_id id = made(INT64_C(1763241651123456), 9), back;
    char text[HF_ID_TEXT];
    hf_id_format(id, text);
    assert_int_equal(strlen(text), 36);
    assert_true(hf_id_parse(text, &back));
    assert_true(hf_id_equal(id, back));
}

static void the_text_form_is_lower_case_with_dashes(void **state)
{
    (void)state;
    hf_id id;
    char text[HF_ID_TEXT];
    assert_true(hf_id_parse("019A88D0-1234-7ABC-8DEF-0123456789AB", &id));
    hf_id_format(id, text);
    assert_string_equal(text, example);
}

static void what_is_not_exactly_36_characters_is_refused(void **state)
{
    (void)state;
    hf_id id;
    char text[40];
    for (size_t length = 0; length < 36; length++) {
        memcpy(text, example, length);
        text[length] = '\0';
        assert_false(hf_id_parse(text, &id));
    }
    assert_false(hf_id_parse("019a88d0-1234-7abc-8def-0123456789ab0", &id));
    assert_false(hf_id_parse(" 019a88d0-1234-7abc-8def-0123456789ab", &id));
    assert_false(hf_id_parse("019a88d012347abc8def0123456789ab", &id));
    assert_false(hf_id_parse("{019a88d0-1234-7abc-8def-0123456789ab}", &id));
    assert_false(hf_id_parse(NULL, &id));
}

static void a_wrong_character_anywhere_is_refused(void **state)
{
    (void)state;
    hf_id id;
    char text[HF_ID_TEXT];
    for (size_t i = 0; i < 36; i++) {
        memcpy(text, example, sizeof text);
        text[i] = text[i] == '-' ? '0' : 'g';
        assert_false(hf_id_parse(text, &id));
        text[i] = example[i] == '-' ? '_' : '-';
        assert_false(hf_id_parse(text, &id));
    }
}

static void a_refused_text_leaves_the_id_alone(void **state)
{
    (void)state;
    hf_id id = made(1, 1), before = id;
    assert_false(hf_id_parse("019a88d0-1234-7abc-8def-0123456789ax", &id));
    assert_true(hf_id_equal(id, before));
}

static void only_the_zero_id_is_zero(void **state)
{
    (void)state;
    hf_id id = { { 0 } };
    assert_true(hf_id_is_zero(id));
    id.bytes[15] = 1;
    assert_false(hf_id_is_zero(id));
}

static void ids_compare_by_their_bytes(void **state)
{
    (void)state;
    hf_id low = { { 1 } }, high = { { 0x80 } };
    assert_true(hf__id_compare(low, high) < 0);
    assert_true(hf__id_compare(high, low) > 0);
    assert_int_equal(hf__id_compare(high, high), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_is_a_uuid_of_version_7),
        cmocka_unit_test(an_id_starts_with_its_milliseconds),
        cmocka_unit_test(a_later_microsecond_makes_a_larger_id),
        cmocka_unit_test(ids_of_one_microsecond_differ),
        cmocka_unit_test(ids_made_one_after_the_other_are_in_order_within_a_microsecond),
        cmocka_unit_test(an_id_after_the_largest_is_still_one_of_its_microsecond),
        cmocka_unit_test(steps_lead_from_an_id_to_those_behind_it),
        cmocka_unit_test(the_lowest_id_of_a_millisecond_lies_between_its_ids_and_those_before),
        cmocka_unit_test(a_time_before_the_epoch_is_taken_as_the_epoch),
        cmocka_unit_test(an_id_is_read_back_as_it_was_written),
        cmocka_unit_test(the_text_form_is_lower_case_with_dashes),
        cmocka_unit_test(what_is_not_exactly_36_characters_is_refused),
        cmocka_unit_test(a_wrong_character_anywhere_is_refused),
        cmocka_unit_test(a_refused_text_leaves_the_id_alone),
        cmocka_unit_test(only_the_zero_id_is_zero),
        cmocka_unit_test(ids_compare_by_their_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
