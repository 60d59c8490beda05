/* What a worker decides without a store: which handler, which lane first, how long to sleep. A10.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "util/clock.h"
#include "worker/heads.h"
#include "worker/lanes.h"
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
    const struct hf__served *route = hf__registry_find(registry, workflow);
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

/* Lanes 1 to 9: of workflow 1, but 7 of workflow 2; lane 3 weighs three times as much. */
static struct hf__lanes some_lanes(void)
{
    static struct hf__lane items[9];
    for (int i = 0; i < 9; i++)
        items[i] = (struct hf__lane){ i + 1, i == 6 ? 2 : 1, 1, i == 2 ? 3 : 1, i == 3, true };
    return (struct hf__lanes){ .items = items, .count = 9 };
}

/* What is picked for a claim of `most`: "lane:priority:floor:share", a space behind each. */
static const char *picked(struct hf__heads *heads, int most, bool with_floors)
{
    static char text[500];
    struct hf__arena arena = { 0 };
    struct hf__lanes lanes = some_lanes();
    const struct hf__pick pick = { .most = most, .breadth = most, .with_floors = with_floors };
    size_t count, length = 0;
    const struct hf__claim_head *found = hf__heads_pick(heads, &lanes, &arena, &pick, &count);
    assert_non_null(found);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%d:%d:%lld:%d ",
                                   (int)found[i].lane, found[i].priority, (long long)found[i].floor,
                                   found[i].share);
    hf__arena_free(&arena);
    return text;
}

static void take(struct hf__heads *heads, int32_t lane, int count)
{
    for (int i = 0; i < count; i++)
        hf__heads_taken(heads, lane, 0, HF_SECONDS(900));
}

static void lanes_of_one_priority_share_by_weight(void **state)
{
    struct hf__head items[] = { { .lane = 7, .priority = 5 },
                                { .lane = 1, .priority = 0 },
                                { .lane = 2, .priority = 0 },
                                { .lane = 3, .priority = 0 } };
    struct hf__heads heads = some_heads(items, 4);
    (void)state;
    assert_string_equal(picked(&heads, 100, true), "7:5:0:0 1:0:0:20 2:0:0:20 3:0:0:60 ");
}

/* A thousand keys of one workflow do not crowd out another workflow. */
static void workflows_share_evenly(void **state)
{
    struct hf__head items[] = { { .lane = 1 }, { .lane = 2 }, { .lane = 7 } };
    struct hf__heads heads = some_heads(items, 3);
    (void)state;
    assert_string_equal(picked(&heads, 100, true), "1:0:0:25 2:0:0:25 7:0:0:50 ");
}

static void whoever_got_least_is_next(void **state)
{
    struct hf__head items[] = { { .lane = 1 }, { .lane = 2 }, { .lane = 3 } };
    struct hf__heads heads = some_heads(items, 3);
    int taken[4] = { 0 };
    (void)state;
    for (int i = 0; i < 500; i++) {
        int lane = picked(&heads, 1, true)[0] - '0';
        taken[lane]++;
        take(&heads, lane, 1);
    }
    assert_int_equal(taken[1], 100);
    assert_int_equal(taken[2], 100);
    assert_int_equal(taken[3], 300);
}

/* A lane that had nothing for a time does not get all that it missed. */
static void turns_are_not_saved_up(void **state)
{
    struct hf__head items[] = { { .lane = 1 }, { .lane = 2, .run_at = HF__HEAD_EMPTY } };
    struct hf__heads heads = some_heads(items, 2);
    int taken = 0;
    (void)state;
    for (int i = 0; i < 50; i++) {
        assert_string_equal(picked(&heads, 1, false), "1:0:0:0 ");
        take(&heads, 1, 1);
    }
    items[1].run_at = 0;
    for (int i = 0; i < 20; i++) {
        int lane = picked(&heads, 1, true)[0] - '0';
        taken += lane == 2;
        take(&heads, lane, 1);
    }
    assert_int_equal(taken, 10);
}

static void a_claim_names_no_more_heads_than_runs(void **state)
{
    struct hf__head items[] = { { .lane = 1 }, { .lane = 2 }, { .lane = 3 } };
    struct hf__heads heads = some_heads(items, 3);
    (void)state;
    assert_string_equal(picked(&heads, 2, true), "1:0:0:1 2:0:0:1 ");
}

/* What was not taken in full has no more; the others are claimed from without a look. */
static void a_head_that_gave_less_than_its_share_is_spent(void **state)
{
    struct hf__head items[] = { { .lane = 1 }, { .lane = 2 } };
    struct hf__heads heads = some_heads(items, 2);
    (void)state;
    assert_string_equal(picked(&heads, 10, true), "1:0:0:5 2:0:0:5 ");
    take(&heads, 1, 5);
    take(&heads, 2, 3);
    assert_false(hf__heads_settle(&heads, 8, 10));
    assert_string_equal(picked(&heads, 10, false), "1:0:0:0 ");
    take(&heads, 1, 4);
    assert_true(hf__heads_settle(&heads, 4, 10));
}

static void a_closed_lane_is_passed_by_until_its_time(void **state)
{
    struct hf__head items[] = { { .lane = 1 }, { .lane = 4 } };
    struct hf__heads heads = some_heads(items, 2);
    struct hf__lanes lanes = some_lanes();
    struct hf__closed_lane closed = { 4, HF_SECONDS(1300) };
    (void)state;
    hf__heads_close(&heads, &closed, 1, HF_SECONDS(1200));
    assert_string_equal(picked(&heads, 10, true), "1:0:0:0 ");
    assert_int_equal(hf__heads_next(&heads), HF_SECONDS(1200));
    hf__heads_open(&heads, &lanes, 2);
    assert_string_equal(picked(&heads, 10, true), "1:0:0:0 ");
    hf__heads_open(&heads, &lanes, 1);
    assert_string_equal(picked(&heads, 10, false), "1:0:0:5 4:0:0:5 ");
}

static void only_due_heads_are_claimed_from_and_the_next_is_known(void **state)
{
    struct hf__head items[] = { { .lane = 1, .priority = 0, .run_at = HF_SECONDS(2000) },
                                { .lane = 2, .priority = 0, .run_at = HF_SECONDS(900) },
                                { .lane = 3, .priority = 0, .run_at = HF_SECONDS(1500) } };
    struct hf__heads heads = some_heads(items, 3);
    (void)state;
    assert_true(hf__heads_due(&heads));
    assert_int_equal(hf__heads_next(&heads), HF_SECONDS(1500));
    assert_string_equal(picked(&heads, 10, true), "2:0:0:0 ");
    items[1].run_at = HF_SECONDS(1600);
    assert_false(hf__heads_due(&heads));
}

static void a_floor_rises_with_what_was_taken_less_some_slack(void **state)
{
    struct hf__head items[] = { { .lane = 1, .priority = 3, .run_at = HF_SECONDS(900) } };
    struct hf__heads heads = some_heads(items, 1);
    (void)state;
    hf__heads_taken(&heads, 1, 3, HF_SECONDS(950));
    hf__heads_taken(&heads, 1, 3, HF_SECONDS(940));
    hf__heads_taken(&heads, 1, 4, HF_SECONDS(999));
    assert_string_equal(picked(&heads, 10, true), "1:3:949000000:0 ");
    assert_string_equal(picked(&heads, 10, false), "1:3:0:0 ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_match_wins),
        cmocka_unit_test(bad_patterns_are_refused),
        cmocka_unit_test(lanes_of_one_priority_share_by_weight),
        cmocka_unit_test(workflows_share_evenly),
        cmocka_unit_test(whoever_got_least_is_next),
        cmocka_unit_test(turns_are_not_saved_up),
        cmocka_unit_test(a_claim_names_no_more_heads_than_runs),
        cmocka_unit_test(a_head_that_gave_less_than_its_share_is_spent),
        cmocka_unit_test(a_closed_lane_is_passed_by_until_its_time),
        cmocka_unit_test(only_due_heads_are_claimed_from_and_the_next_is_known),
        cmocka_unit_test(a_floor_rises_with_what_was_taken_less_some_slack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
