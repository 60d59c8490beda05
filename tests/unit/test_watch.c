/* How often somebody who waits for a run asks for it while others have it locked. B9.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/watch.h"

/* A fan-out of half a second has its parent locked for most of that: who waits for it should not hear of its end half a second
 * later. */
static void whoever_waits_for_a_locked_run_is_late_by_an_eighth_of_the_time_at_most(void **state)
{
    int64_t waited = 0;
    (void)state;
    for (int tries = 0; tries < 100; tries++) {
        int64_t pause = hf__watch_pause(tries);
        assert_true(pause <= HF_MILLISECONDS(5) + waited / 8);
        waited += pause;
    }
}

static void a_run_that_stays_locked_is_asked_for_seldom(void **state)
{
    int tries = 0;
    (void)state;
    for (int64_t waited = 0; waited < HF_MINUTES(1); waited += hf__watch_pause(tries++))
        assert_true(hf__watch_pause(tries) >= HF_MILLISECONDS(5));
    assert_true(tries < 150);
    assert_int_equal(hf__watch_pause(INT32_MAX), HF_MILLISECONDS(640));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_waits_for_a_locked_run_is_late_by_an_eighth_of_the_time_at_most),
        cmocka_unit_test(a_run_that_stays_locked_is_asked_for_seldom),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
