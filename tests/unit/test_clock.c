/* SPDX-License-Identifier: Apache-2.0 */
#include "util/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <time.h>
#include <cmocka.h>

static void the_system_clock_agrees_with_the_machine(void **state)
{
    (void)state;
    int64_t now = hf__clock_now(&hf__system_clock);
    int64_t seconds = (int64_t)time(NULL);
    assert_true(now / 1000000 >= seconds - 2 && now / 1000000 <= seconds + 2);
}

static void monotonic_time_does_not_go_backwards(void **state)
{
    (void)state;
    int64_t last = hf__monotonic_us();
    for (int i = 0; i < 10000; i++) {
        int64_t now = hf__monotonic_us();
        assert_true(now >= last);
        last = now;
    }
}

static void monotonic_time_counts_microseconds(void **state)
{
    (void)state;
    int64_t start = hf__monotonic_us();
    nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
    int64_t took = hf__monotonic_us() - start;
    assert_true(took >= 20000 && took < 5000000);
}

static int64_t stopped(void *arg)
{
    return *(int64_t *)arg;
}

static void a_test_can_own_the_clock(void **state)
{
    (void)state;
    int64_t at = 42;
    struct hf__clock clock = { .now = stopped, .arg = &at };
    assert_int_equal(hf__clock_now(&clock), 42);
    at = 43;
    assert_int_equal(hf__clock_now(&clock), 43);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_system_clock_agrees_with_the_machine),
        cmocka_unit_test(monotonic_time_does_not_go_backwards),
        cmocka_unit_test(monotonic_time_counts_microseconds),
        cmocka_unit_test(a_test_can_own_the_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
