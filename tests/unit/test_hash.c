/* SPDX-License-Identifier: Apache-2.0 */
#include "util/alloc.h"
#include "util/hash.h"
#include "util/id.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

static hf_id numbered(unsigned n)
{
    hf_id id = { { 0 } };
    memcpy(id.bytes, &n, sizeof n);
    return id;
}

static void an_empty_map_has_nothing(void **state)
{
    (void)state;
    struct hf__idmap map;
    size_t cursor = 0;
    hf__idmap_init(&map);
    assert_null(hf__idmap_get(&map, numbered(1)));
    assert_null(hf__idmap_remove(&map, numbered(1)));
    assert_false(hf__idmap_next(&map, &cursor, NULL, NULL));
    hf__idmap_free(&map);
}

static void what_was_put_is_found(void **state)
{
    (void)state;
    struct hf__idmap map;
    int value;
    hf__idmap_init(&map);
    assert_true(hf__idmap_put(&map, numbered(1), &value));
    assert_ptr_equal(hf__idmap_get(&map, numbered(1)), &value);
    assert_null(hf__idmap_get(&map, numbered(2)));
    hf__idmap_free(&map);
}

static void the_zero_id_is_an_id_like_any_other(void **state)
{
    (void)state;
    struct hf__idmap map;
    int value;
    hf__idmap_init(&map);
    assert_true(hf__idmap_put(&map, numbered(0), &value));
    assert_ptr_equal(hf__idmap_remove(&map, numbered(0)), &value);
    hf__idmap_free(&map);
}

static void putting_again_replaces(void **state)
{
    (void)state;
    struct hf__idmap map;
    int first, second;
    hf__idmap_init(&map);
    assert_true(hf__idmap_put(&map, numbered(1), &first));
    assert_true(hf__idmap_put(&map, numbered(1), &second));
    assert_int_equal(map.count, 1);
    assert_ptr_equal(hf__idmap_get(&map, numbered(1)), &second);
    hf__idmap_free(&map);
}

static void removing_gives_the_value_back_once(void **state)
{
    (void)state;
    struct hf__idmap map;
    int value;
    hf__idmap_init(&map);
    assert_true(hf__idmap_put(&map, numbered(1), &value));
    assert_ptr_equal(hf__idmap_remove(&map, numbered(1)), &value);
    assert_null(hf__idmap_remove(&map, numbered(1)));
    assert_int_equal(map.count, 0);
    hf__idmap_free(&map);
}

enum { IDS = 500 };

static void random_puts_and_removes_agree_with_a_plain_array(void **state)
{
    (void)state;
    static int values[IDS];
    void *present[IDS] = { NULL };
    struct hf__random random;
    struct hf__idmap map;
    hf__random_seed(&random, 11);
    hf__idmap_init(&map);
    for (int i = 0; i < 200000; i++) {
        unsigned n = (unsigned)hf__random_below(&random, IDS);
        if (hf__random_below(&random, 2)) {
            assert_true(hf__idmap_put(&map, numbered(n), &values[n]));
            present[n] = &values[n];
        } else {
            assert_ptr_equal(hf__idmap_remove(&map, numbered(n)), present[n]);
            present[n] = NULL;
        }
        n = (unsigned)hf__random_below(&random, IDS);
        assert_ptr_equal(hf__idmap_get(&map, numbered(n)), present[n]);
    }
    hf__idmap_free(&map);
}

static void a_walk_meets_every_entry_once(void **state)
{
    (void)state;
    int seen[IDS] = { 0 };
    struct hf__idmap map;
    hf__idmap_init(&map);
    for (unsigned n = 0; n < IDS; n++)
        assert_true(hf__idmap_put(&map, numbered(n), &seen[n]));
    size_t cursor = 0;
    hf_id id;
    void *value;
    while (hf__idmap_next(&map, &cursor, &id, &value)) {
        assert_ptr_equal(value, hf__idmap_get(&map, id));
        ++*(int *)value;
    }
    for (unsigned n = 0; n < IDS; n++)
        assert_int_equal(seen[n], 1);
    hf__idmap_free(&map);
}

static void a_failed_put_leaves_the_map_as_it_was(void **state)
{
    (void)state;
    struct hf__idmap map;
    int value;
    unsigned n = 0;
    hf__idmap_init(&map);
    hf__alloc_fail_after = 1;
    while (hf__idmap_put(&map, numbered(n), &value))
        n++;
    assert_true(n > 0);
    assert_int_equal(map.count, n);
    for (unsigned i = 0; i < n; i++)
        assert_ptr_equal(hf__idmap_get(&map, numbered(i)), &value);
    assert_true(hf__idmap_put(&map, numbered(n), &value));
    hf__idmap_free(&map);
}

static void a_freed_map_can_be_used_again(void **state)
{
    (void)state;
    struct hf__idmap map;
    int value;
    hf__idmap_init(&map);
    assert_true(hf__idmap_put(&map, numbered(1), &value));
    hf__idmap_free(&map);
    assert_null(hf__idmap_get(&map, numbered(1)));
    assert_true(hf__idmap_put(&map, numbered(2), &value));
    hf__idmap_free(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_map_has_nothing),
        cmocka_unit_test(what_was_put_is_found),
        cmocka_unit_test(the_zero_id_is_an_id_like_any_other),
        cmocka_unit_test(putting_again_replaces),
        cmocka_unit_test(removing_gives_the_value_back_once),
        cmocka_unit_test(random_puts_and_removes_agree_with_a_plain_array),
        cmocka_unit_test(a_walk_meets_every_entry_once),
        cmocka_unit_test(a_failed_put_leaves_the_map_as_it_was),
        cmocka_unit_test(a_freed_map_can_be_used_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
