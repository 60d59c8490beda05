/* SPDX-License-Identifier: Apache-2.0 */
#include "util/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

static void the_same_seed_gives_the_same_numbers(void **state)
{
    (void)state;
    struct hf__random a, b;
    hf__random_seed(&a, 7);
    hf__random_seed(&b, 7);
    for (int i = 0; i < 100; i++)
        assert_true(hf__random_u64(&a) == hf__random_u64(&b));
}

static void other_seeds_give_other_numbers(void **state)
{
    (void)state;
    struct hf__random a, b;
    hf__random_seed(&a, 7);
    hf__random_seed(&b, 8);
    assert_true(hf__random_u64(&a) != hf__random_u64(&b));
}

/* From the reference implementation, state 1 2 3 4. */
static void the_numbers_are_those_of_xoshiro256(void **state)
{
    (void)state;
    struct hf__random random = { { 1, 2, 3, 4 } };
    assert_true(hf__random_u64(&random) == 11520);
    assert_true(hf__random_u64(&random) == 0);
    assert_true(hf__random_u64(&random) == 1509978240);
    assert_true(hf__random_u64(&random) == UINT64_C(1215971899390074240));
}

static void the_system_seeds_differently_each_time(void **state)
{
    (void)state;
    struct hf__random a, b;
    assert_true(hf__random_seed_os(&a));
    assert_true(hf__random_seed_os(&b));
    assert_memory_not_equal(a.state, b.state, sizeof a.state);
}

static void a_bounded_number_is_evenly_spread_below_its_limit(void **state)
{
    (void)state;
    struct hf__random random;
    hf__random_seed(&random, 1);
    int hits[6] = { 0 };
    for (int i = 0; i < 60000; i++)
        hits[hf__random_below(&random, 6)]++;
    for (int i = 0; i < 6; i++)
        assert_in_range(hits[i], 9500, 10500);
}

/* A plain remainder would give a value below 2^62 half of the time instead of a third. */
static void a_huge_limit_does_not_favour_small_numbers(void **state)
{
    (void)state;
    struct hf__random random;
    hf__random_seed(&random, 2);
    int small = 0;
    for (int i = 0; i < 30000; i++)
        small += hf__random_below(&random, UINT64_C(3) << 62) < UINT64_C(1) << 62;
    assert_in_range(small, 9500, 10500);
}

static void a_limit_of_one_leaves_only_zero(void **state)
{
    (void)state;
    struct hf__random random;
    hf__random_seed(&random, 3);
    assert_true(hf__random_below(&random, 1) == 0);
}

static void a_unit_number_lies_in_its_interval(void **state)
{
    (void)state;
    struct hf__random random;
    hf__random_seed(&random, 4);
    double sum = 0;
    for (int i = 0; i < 10000; i++) {
        double x = hf__random_unit(&random);
        assert_true(x >= 0 && x < 1);
        sum += x;
    }
    assert_true(sum > 4800 && sum < 5200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_seed_gives_the_same_numbers),
        cmocka_unit_test(other_seeds_give_other_numbers),
        cmocka_unit_test(the_numbers_are_those_of_xoshiro256),
        cmocka_unit_test(the_system_seeds_differently_each_time),
        cmocka_unit_test(a_bounded_number_is_evenly_spread_below_its_limit),
        cmocka_unit_test(a_huge_limit_does_not_favour_small_numbers),
        cmocka_unit_test(a_limit_of_one_leaves_only_zero),
        cmocka_unit_test(a_unit_number_lies_in_its_interval),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
