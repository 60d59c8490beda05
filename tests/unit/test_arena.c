/* SPDX-License-Identifier: Apache-2.0 */
#include "util/alloc.h"
#include "util/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void memory_is_aligned_and_does_not_overlap(void **state)
{
    (void)state;
    struct hf__arena arena;
    hf__arena_init(&arena, 64);
    unsigned char *pieces[100];
    for (size_t i = 0; i < 100; i++) {
        pieces[i] = hf__arena_alloc(&arena, i);
        assert_int_equal((uintptr_t)pieces[i] % 16, 0);
        memset(pieces[i], (int)i, i);
    }
    for (size_t i = 0; i < 100; i++)
        for (size_t k = 0; k < i; k++)
            assert_int_equal(pieces[i][k], i);
    hf__arena_free(&arena);
}

static void a_piece_may_be_larger_than_a_chunk(void **state)
{
    (void)state;
    struct hf__arena arena;
    hf__arena_init(&arena, 64);
    char *large = hf__arena_alloc(&arena, 100000);
    assert_non_null(large);
    memset(large, 1, 100000);
    hf__arena_free(&arena);
}

static void an_impossible_size_is_refused(void **state)
{
    (void)state;
    struct hf__arena arena = { 0 };
    assert_null(hf__arena_alloc(&arena, SIZE_MAX));
    assert_null(hf__arena_alloc(&arena, SIZE_MAX - 20));
    assert_null(hf__arena_calloc(&arena, SIZE_MAX / 2, 4));
    hf__arena_free(&arena);
}

static void texts_are_copied(void **state)
{
    (void)state;
    struct hf__arena arena = { 0 };
    char source[] = "holdfast";
    char *whole = hf__arena_strdup(&arena, source);
    char *part = hf__arena_strndup(&arena, source, 4);
    memset(source, 'x', 8);
    assert_string_equal(whole, "holdfast");
    assert_string_equal(part, "hold");
    assert_null(hf__arena_strdup(&arena, NULL));
    hf__arena_free(&arena);
}

static void printf_makes_room_for_the_whole_text(void **state)
{
    (void)state;
    struct hf__arena arena;
    hf__arena_init(&arena, 16);
    char *text = hf__arena_printf(&arena, "%0500d|%s", 7, "end");
    assert_int_equal(strlen(text), 504);
    assert_string_equal(text + 498, "07|end");
    hf__arena_free(&arena);
}

static void calloc_zeroes_memory_that_was_used_before(void **state)
{
    (void)state;
    struct hf__arena arena = { 0 };
    memset(hf__arena_alloc(&arena, 256), 0xff, 256);
    hf__arena_reset(&arena);
    unsigned char *zeroes = hf__arena_calloc(&arena, 64, 4);
    for (size_t i = 0; i < 256; i++)
        assert_int_equal(zeroes[i], 0);
    hf__arena_free(&arena);
}

static void a_reset_arena_needs_no_new_memory_for_as_much_as_its_largest_chunk(void **state)
{
    (void)state;
    struct hf__arena arena;
    hf__arena_init(&arena, 64);
    for (int i = 0; i < 50; i++)
        assert_non_null(hf__arena_alloc(&arena, 100));
    assert_non_null(hf__arena_alloc(&arena, 50000));
    assert_non_null(hf__arena_alloc(&arena, 50000));
    hf__arena_reset(&arena);
    hf__alloc_fail_after = 0;
    void *again = hf__arena_alloc(&arena, 50000);
    hf__alloc_fail_after = -1;
    assert_non_null(again);
    hf__arena_free(&arena);
}

static void a_failed_allocation_leaves_the_arena_usable(void **state)
{
    (void)state;
    struct hf__arena arena;
    hf__arena_init(&arena, 64);
    char *before = hf__arena_strdup(&arena, "before");
    hf__alloc_fail_after = 0;
    assert_null(hf__arena_printf(&arena, "%0200d", 1));
    assert_string_equal(before, "before");
    assert_string_equal(hf__arena_printf(&arena, "%03d", 1), "001");
    hf__arena_free(&arena);
}

static void an_empty_arena_can_be_reset_and_freed(void **state)
{
    (void)state;
    struct hf__arena arena;
    hf__arena_init(&arena, 0);
    hf__arena_reset(&arena);
    hf__arena_free(&arena);
    hf__arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_aligned_and_does_not_overlap),
        cmocka_unit_test(a_piece_may_be_larger_than_a_chunk),
        cmocka_unit_test(an_impossible_size_is_refused),
        cmocka_unit_test(texts_are_copied),
        cmocka_unit_test(printf_makes_room_for_the_whole_text),
        cmocka_unit_test(calloc_zeroes_memory_that_was_used_before),
        cmocka_unit_test(a_reset_arena_needs_no_new_memory_for_as_much_as_its_largest_chunk),
        cmocka_unit_test(a_failed_allocation_leaves_the_arena_usable),
        cmocka_unit_test(an_empty_arena_can_be_reset_and_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
