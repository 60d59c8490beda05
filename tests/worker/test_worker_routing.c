/* What a worker decides without a store: which handler, which lane first, how long to sleep.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "util/clock.h"
#include "worker/heads.h"
#include "worker/registry.h"

static hf_code handler(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)ctx;
    (void)input;
    (void)err;
    (void)arg;
    return HF_OK;
}

static void add(struct hf__registry *registry, const char *pattern)
{
    assert_int_equal(hf__registry_add(registry, pattern, handler, NULL, NULL, NULL), HF_OK);
}

static void expect(const struct hf__registry *registry, const char *workflow, const char *pattern)
{
    const struct hf__route *route = hf__registry_find(registry, workflow);
    assert_non_null(route);
    assert_string_equal(route->pattern, pattern);
}

static void the_longest_match_wins(void **state)
{
    struct hf__registry registry = { 0 };
    (void)state;
    add(&registry, "billing.*");
    add(&registry, "billing.charge.*");
    add(&registry, "billing.charge.v1");
    expect(&registry, "billing.charge.v1", "billing.charge.v1");
    expect(&registry, "billing.charge.v2", "billing.charge.*");
    expect(&registry, "billing.refund.v1", "billing.*");
    expect(&registry, "billing.charge.v1x", "billing.charge.*");
    assert_null(hf__registry_find(&registry, "billing"));
    assert_null(hf__registry_find(&registry, "mail.send.v1"));
    add(&registry, "*");
    expect(&registry, "mail.send.v1", "*");
    hf__registry_free(&registry);
}

static void bad_patterns_are_refused(void **state)
{
    static const char *const bad[] = { "",     "a b",         "*a",   "a.**",          "holdfast.*",
                                       "a..b", "holdfast.me", "a\n*", "\xc3\xa4.send", "*.*" };
    struct hf__registry registry = { 0 };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(hf__registry_add(&registry, bad[i], handler, NULL, NULL, NULL),
                         HF_INVALID);
    assert_int_equal(hf__registry_add(&registry, NULL, handler, NULL, NULL, NULL), HF_INVALID);
    hf__registry_free(&registry);
}

/* Most urgent first, as a look leaves them; the store's clock stands at 1000. */
static struct hf__heads some_heads(struct hf__head *items, size_t count)
{
    return (struct hf__heads){
        .items = items,
        .count = count,
        .store_now = HF_SECONDS(1000),
        .read_at = hf__monotonic_us(),
    };
}

static void lanes_of_one_priority_take_turns(void **state)
{
    struct hf__head items[] = { { .lane = 7, .priority = 5 },
                                { .lane = 1, .priority = 0 },
                                { .lane = 2, .priority = 0 },
                                { .lane = 3, .priority = 0 } };
    struct hf__heads heads = some_heads(items, 4);
    struct hf__arena arena = { 0 };
    (void)state;
    assert_string_equal(hf__heads_json(&heads, &arena, true), "[[7,5,0],[1,0,0],[2,0,0],[3,0,0]]");
    assert_string_equal(hf__heads_json(&heads, &arena, true), "[[7,5,0],[2,0,0],[3,0,0],[1,0,0]]");
    assert_string_equal(hf__heads_json(&heads, &arena, true), "[[7,5,0],[3,0,0],[1,0,0],[2,0,0]]");
    hf__arena_free(&arena);
}

static void only_due_heads_are_claimed_from_and_the_next_is_known(void **state)
{
    struct hf__head items[] = { { .lane = 1, .priority = 0, .run_at = HF_SECONDS(2000) },
                                { .lane = 2, .priority = 0, .run_at = HF_SECONDS(900) },
                                { .lane = 3, .priority = 0, .run_at = HF_SECONDS(1500) } };
    struct hf__heads heads = some_heads(items, 3);
    struct hf__arena arena = { 0 };
    (void)state;
    assert_true(hf__heads_due(&heads));
    assert_int_equal(hf__heads_next(&heads), HF_SECONDS(1500));
    assert_string_equal(hf__heads_json(&heads, &arena, true), "[[2,0,0]]");
    items[1].run_at = HF_SECONDS(1600);
    assert_false(hf__heads_due(&heads));
    hf__arena_free(&arena);
}

static void a_floor_rises_with_what_was_taken_less_some_slack(void **state)
{
    struct hf__head items[] = { { .lane = 1, .priority = 3, .run_at = HF_SECONDS(900) } };
    struct hf__heads heads = some_heads(items, 1);
    struct hf__arena arena = { 0 };
    (void)state;
    hf__heads_taken(&heads, 1, 3, HF_SECONDS(950));
    hf__heads_taken(&heads, 1, 3, HF_SECONDS(940));
    hf__heads_taken(&heads, 1, 4, HF_SECONDS(999));
    assert_string_equal(hf__heads_json(&heads, &arena, true), "[[1,3,949000000]]");
    assert_string_equal(hf__heads_json(&heads, &arena, false), "[[1,3,0]]");
    hf__arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_match_wins),
        cmocka_unit_test(bad_patterns_are_refused),
        cmocka_unit_test(lanes_of_one_priority_take_turns),
        cmocka_unit_test(only_due_heads_are_claimed_from_and_the_next_is_known),
        cmocka_unit_test(a_floor_rises_with_what_was_taken_less_some_slack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
