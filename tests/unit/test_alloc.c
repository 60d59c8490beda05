/* SPDX-License-Identifier: Apache-2.0 */
#include "util/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void the_nth_allocation_fails_once(void **state)
{
    (void)state;
    hf__alloc_fail_after = 2;
    void *first = hf__malloc(1), *second = hf__calloc(1, 1), *third = hf__malloc(1);
    void *fourth = hf__malloc(1);
    assert_non_null(first);
    assert_non_null(second);
    assert_null(third);
    assert_non_null(fourth);
    assert_true(hf__alloc_fail_after < 0);
    free(first);
    free(second);
    free(fourth);
}

static void a_failed_realloc_leaves_the_old_memory(void **state)
{
    (void)state;
    char *text = hf__strdup("kept");
    hf__alloc_fail_after = 0;
    assert_null(hf__realloc(text, 100));
    assert_string_equal(text, "kept");
    free(text);
}

static void a_count_that_overflows_is_refused(void **state)
{
    (void)state;
    volatile size_t huge = SIZE_MAX / 2;
    assert_null(hf__calloc(huge, 4));
}

static void nothing_at_all_can_be_allocated(void **state)
{
    (void)state;
    void *none = hf__malloc(0), *zeroes = hf__calloc(0, 8);
    assert_non_null(none);
    assert_non_null(zeroes);
    free(none);
    free(zeroes);
}

static void strndup_copies_bytes_and_ends_them(void **state)
{
    (void)state;
    char *copy = hf__strndup("a\0bcd", 3);
    assert_memory_equal(copy, "a\0b", 4);
    free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nth_allocation_fails_once),
        cmocka_unit_test(a_failed_realloc_leaves_the_old_memory),
        cmocka_unit_test(a_count_that_overflows_is_refused),
        cmocka_unit_test(nothing_at_all_can_be_allocated),
        cmocka_unit_test(strndup_copies_bytes_and_ends_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
