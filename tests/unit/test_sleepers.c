/* SPDX-License-Identifier: Apache-2.0 */
#include "server/sleepers.h"
#include "util/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <cmocka.h>

enum { COUNT = 300, ROUNDS = 20000 };

static struct hf__request *requests;

static int setup(void **state)
{
    (void)state;
    requests = calloc(COUNT, sizeof *requests);
    return requests ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    free(requests);
    return 0;
}

static int64_t least(void)
{
    int64_t found = INT64_MAX;
    for (int i = 0; i < COUNT; i++)
        if (requests[i].parking.asleep && requests[i].parking.until < found)
            found = requests[i].parking.until;
    return found;
}

static void the_soonest_is_first_whoever_comes_and_goes(void **state)
{
    (void)state;
    struct hf__sleepers sleepers = { NULL };
    struct hf__random random;
    hf__random_seed(&random, 7);
    for (int round = 0; round < ROUNDS; round++) {
        struct hf__request *one = &requests[hf__random_below(&random, COUNT)];
        if (one->parking.asleep) {
            hf__sleepers_remove(&sleepers, one);
        } else {
            one->parking.until = (int64_t)hf__random_below(&random, 1000);
            hf__sleepers_add(&sleepers, one);
        }
        one->parking.asleep = !one->parking.asleep;
        assert_int_equal(sleepers.soonest ? sleepers.soonest->parking.until : INT64_MAX, least());
    }
}

static void all_are_called_in_their_order(void **state)
{
    (void)state;
    struct hf__sleepers sleepers = { NULL };
    int64_t last = -1;
    int called = 0;
    for (int i = 0; i < COUNT; i++) {
        requests[i].parking.until = (i * 37) % COUNT / 2;
        hf__sleepers_add(&sleepers, &requests[i]);
    }
    for (; sleepers.soonest; called++) {
        assert_true(sleepers.soonest->parking.until >= last);
        last = sleepers.soonest->parking.until;
        hf__sleepers_remove(&sleepers, sleepers.soonest);
    }
    assert_int_equal(called, COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_soonest_is_first_whoever_comes_and_goes, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(all_are_called_in_their_order, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
