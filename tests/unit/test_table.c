/* Tables of values and their cells.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/table.h"
#include "util/alloc.h"

#include <string.h>

static void a_new_row_is_all_null(void **state)
{
    (void)state;
    struct hf__arena arena;
    struct hf__table table;
    hf__arena_init(&arena, 0);
    hf__table_init(&table, &arena, 3);

    struct hf__cell *row = hf__table_add(&table);
    for (int i = 0; i < 3; i++)
        assert_true(hf__is_null(row[i]));
    assert_int_equal(table.nrows, 1);
    hf__arena_free(&arena);
}

static void rows_keep_their_values_while_the_table_grows(void **state)
{
    (void)state;
    struct hf__arena arena;
    struct hf__table table;
    hf__arena_init(&arena, 0);
    hf__table_init(&table, &arena, 2);

    for (int i = 0; i < 10000; i++) {
        struct hf__cell *row = hf__table_add(&table);
        row[0] = hf__number(i);
        row[1] = hf__number(-i);
    }
    assert_false(table.failed);
    assert_int_equal(table.nrows, 10000);
    for (int i = 0; i < 10000; i++) {
        assert_int_equal(hf__as_number(hf__table_row(&table, i)[0]), i);
        assert_int_equal(hf__as_number(hf__table_row(&table, i)[1]), -i);
    }
    hf__arena_free(&arena);
}

static void a_failed_allocation_drops_the_row_and_is_told(void **state)
{
    (void)state;
    struct hf__arena arena;
    struct hf__table table;
    hf__arena_init(&arena, 0);
    hf__table_init(&table, &arena, 2);

    hf__alloc_fail_after = 0;
    struct hf__cell *row = hf__table_add(&table);
    assert_non_null(row);
    row[1] = hf__number(1);
    assert_true(table.failed);
    assert_int_equal(table.nrows, 0);

    assert_true(hf__is_null(hf__table_add(&table)[1]));
    assert_int_equal(table.nrows, 1);
    assert_true(table.failed);
    hf__arena_free(&arena);
}

static void numbers_and_texts_come_back(void **state)
{
    (void)state;
    assert_int_equal(hf__as_number(hf__number(INT64_MIN)), INT64_MIN);
    assert_string_equal(hf__as_text(hf__text("abc")), "abc");
    assert_int_equal(hf__text("abc").length, 3);
    assert_int_equal(hf__text_n("abc", 2).length, 2);
    assert_int_equal(hf__text("").length, 0);
    assert_false(hf__is_null(hf__text("")));
    assert_false(hf__is_null(hf__number(0)));
}

static void null_reads_as_nothing(void **state)
{
    (void)state;
    assert_int_equal(hf__as_number(hf__null()), 0);
    assert_null(hf__as_text(hf__null()));
    assert_true(hf_id_is_zero(hf__as_uuid(hf__null())));
    assert_true(hf__is_null(hf__text(NULL)));
    assert_true(hf__is_null(hf__text_n(NULL, 4)));
    assert_true(hf__is_null(hf__number_or_null(0)));
    assert_int_equal(hf__as_number(hf__number_or_null(7)), 7);
}

static void ids_come_back_and_zero_is_null_if_asked(void **state)
{
    (void)state;
    hf_id id = { { 1, 2, 3 } }, zero = { { 0 } };
    assert_true(hf_id_equal(hf__as_uuid(hf__uuid(&id)), id));
    assert_int_equal(hf__uuid(&id).length, 16);
    assert_false(hf__is_null(hf__uuid(&zero)));
    assert_true(hf__is_null(hf__uuid_or_null(&zero)));
    assert_true(hf_id_equal(hf__as_uuid(hf__uuid_or_null(&id)), id));
}

/* The length does not fit, so the store must see a length that it refuses, not a short text. */
static void a_text_beyond_two_gigabytes_does_not_become_a_short_one(void **state)
{
    (void)state;
    assert_int_equal(hf__text_n("", (size_t)1 << 32).length, INT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_row_is_all_null),
        cmocka_unit_test(rows_keep_their_values_while_the_table_grows),
        cmocka_unit_test(a_failed_allocation_drops_the_row_and_is_told),
        cmocka_unit_test(numbers_and_texts_come_back),
        cmocka_unit_test(null_reads_as_nothing),
        cmocka_unit_test(ids_come_back_and_zero_is_null_if_asked),
        cmocka_unit_test(a_text_beyond_two_gigabytes_does_not_become_a_short_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
