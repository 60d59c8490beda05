/* Ids that tell another time than the one at which their run was stored: by whichever way it came, a list by time has it. The
 * limits of what lists take for granted are in client/list.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include "client/ids.h"
#include "contract/fixture.h"
#include "util/clock.h"

#define ODD "odd"

/* Milliseconds that a run is stored after its id was made: none, both ends of what is taken for granted, and more. */
static const int64_t late_by[] = { 0,    1,    -99,    -100, -101, -102,  998,  999,
                                   1000, 1001, -60000, 7,    500,  60000, -500, 86400000 };

enum {
    TIMES = sizeof late_by / sizeof *late_by,
    IN_TIME = 9,   /* of these */
    PAIRS = TIMES, /* of runs by each way */
};

static int64_t lateness; /* us */

static int64_t read_late(void *arg)
{
    (void)arg;
    return now() - lateness;
}

static const struct hf__clock late_clock = { .now = read_late };

static int ids_follow_the_late_clock(void **state)
{
    int rc = fixture_set_up(state);
    define(ODD);
    hf__new_ids_follow(&late_clock, 7);
    return rc;
}

static int ids_follow_the_system_clock(void **state)
{
    hf__new_ids_follow(&hf__system_clock, (uint64_t)hf__clock_now(&hf__system_clock));
    return fixture_tear_down(state);
}

/* ---- The ways to a new run: two at a time ---- */

static void alone(hf_id ids[2])
{
    ids[0] = trigger(ODD);
    ids[1] = trigger(ODD);
}

static void together_as(hf_trigger_spec first, hf_trigger_spec second, hf_id ids[2])
{
    const hf_trigger_spec specs[] = { first, second };
    hf_triggered out[2];
    assert_ok(hf_trigger_many(fx.client, out, specs, 2, &fx.error));
    ids[0] = out[0].id;
    ids[1] = out[1].id;
}

static void together(hf_id ids[2])
{
    together_as(spec_of(ODD), spec_of(ODD), ids);
}

static void with_keys(hf_id ids[2])
{
    static int number;
    hf_trigger_spec first = spec_of(ODD);
    hf_trigger_spec second = spec_of(ODD);
    first.key = text_of("%d", number++);
    second.key = text_of("%d", number++);
    together_as(first, second, ids);
}

static void debounced(hf_id ids[2])
{
    static int number;
    hf_trigger_spec first = spec_of(ODD);
    hf_trigger_spec second = spec_of(ODD);
    first.debounce_key = text_of("%d", number++);
    second.debounce_key = text_of("%d", number++);
    first.debounce_for = second.debounce_for = HF_HOURS(1);
    together_as(first, second, ids);
}

static void with_a_first_turn(hf_id ids[2])
{
    hf_transition wait = { .version = HF_TRANSITION_VERSION, .turn = HF_TURN_WAIT };
    hf_trigger_spec spec = spec_of(ODD);
    for (int i = 0; i < 2; i++) {
        hf_triggered out;
        assert_ok(hf_trigger_with(fx.client, &out, &spec, &wait, &fx.error));
        ids[i] = out.id;
    }
}

static void start_from_a_run(hf_trigger_spec first, hf_id ids[2])
{
    const hf_trigger_spec specs[] = { first, spec_of(ODD) };
    trigger(WORK);
    hf_transition t = turn_of(&claim_of(WORK, 1)->items[0], HF_TURN_WAIT);
    t.children = specs;
    t.child_count = 2;
    assert_ok(hf_commit(fx.client, &t, ids, &fx.error));
}

static void as_children_that_are_alike(hf_id ids[2])
{
    start_from_a_run(spec_of(ODD), ids);
}

static void as_children_that_are_not(hf_id ids[2])
{
    hf_trigger_spec first = spec_of(ODD);
    first.subject = "first";
    start_from_a_run(first, ids);
}

/* ---- Looking for them ---- */

struct made {
    hf_id ids[2];
    int64_t at;
};

/* One pair for each lateness, a second after the one before. */
static void make(void (*way)(hf_id ids[2]), struct made made[PAIRS])
{
    for (int i = 0; i < PAIRS; i++) {
        advance(HF_SECONDS(1));
        lateness = late_by[i] * 1000;
        made[i].at = now();
        way(made[i].ids);
    }
}

static bool has(const hf_runs *runs, hf_id id)
{
    for (size_t i = 0; i < runs->count; i++)
        if (hf_id_equal(runs->items[i].id, id))
            return true;
    return false;
}

static void find_each_by_its_time(void (*way)(hf_id ids[2]))
{
    struct made made[PAIRS];
    make(way, made);
    for (int i = 0; i < PAIRS; i++) {
        hf_filter filter = HF_FILTER_INIT;
        filter.workflow = ODD;
        filter.created_after = made[i].at;
        filter.created_before = made[i].at + 1;
        const hf_runs *runs = list(&filter);
        assert_int_equal(runs->count, 2);
        assert_true(has(runs, made[i].ids[0]) && has(runs, made[i].ids[1]));
    }
}

#define FOUND_BY_TIME(way)                                                                         \
    static void runs_made_##way##_are_found_by_their_time(void **state)                            \
    {                                                                                              \
        (void)state;                                                                               \
        find_each_by_its_time(way);                                                                \
    }

FOUND_BY_TIME(alone)
FOUND_BY_TIME(together)
FOUND_BY_TIME(with_keys)
FOUND_BY_TIME(debounced)
FOUND_BY_TIME(with_a_first_turn)
FOUND_BY_TIME(as_children_that_are_alike)
FOUND_BY_TIME(as_children_that_are_not)

static int64_t known_in_time(void)
{
    return sql_number("SELECT count(r.in_time) FROM run r JOIN workflow w ON w.id = r.workflow_id "
                      "WHERE w.name = '" ODD "'");
}

/* Who inserts many says which of them are in time: so the index need not find out. Two triggers may come alone, though: then
 * PostgreSQL is not told. */
static void runs_that_are_in_time_are_known_as_such(void **state)
{
    void (*const ways[])(hf_id ids[2]) = { with_keys, as_children_that_are_alike,
                                           as_children_that_are_not, together };
    size_t sure = sizeof ways / sizeof *ways - (fx.backend == BACKEND_POSTGRES);
    struct made made[PAIRS];
    (void)state;
    for (size_t i = 0; i < sure; i++) {
        int64_t before = known_in_time();
        make(ways[i], made);
        assert_int_equal(known_in_time() - before, 2 * IN_TIME);
    }
}

#define LATE_TEST(test)                                                                            \
    cmocka_unit_test_setup_teardown(test, ids_follow_the_late_clock, ids_follow_the_system_clock)

static const struct CMUnitTest tests[] = {
    LATE_TEST(runs_made_alone_are_found_by_their_time),
    LATE_TEST(runs_made_together_are_found_by_their_time),
    LATE_TEST(runs_made_with_keys_are_found_by_their_time),
    LATE_TEST(runs_made_debounced_are_found_by_their_time),
    LATE_TEST(runs_made_with_a_first_turn_are_found_by_their_time),
    LATE_TEST(runs_made_as_children_that_are_alike_are_found_by_their_time),
    LATE_TEST(runs_made_as_children_that_are_not_are_found_by_their_time),
    LATE_TEST(runs_that_are_in_time_are_known_as_such),
};

CONTRACT("odd ids", tests)
