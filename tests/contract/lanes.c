/* Lanes of flow keys: made with the first run of a key, removed when nothing needs them any more, and never while a run is
 * in them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "client/client.h"
#include "client/idle_lanes.h"
#include "contract/fixture.h"

#define KEY "key"

/* A day after the migration. */
static int set_up(void **state)
{
    int status = fixture_set_up(state);
    advance(HF_DAYS(1));
    return status;
}

/* ---- Doing ---- */

/* Retention's walk over all lanes. */
static void tidy(void)
{
    int32_t after = 0;
    do
        assert_ok(hf__idle_lanes_step(fx.client->engine, &after, &fx.error));
    while (after);
}

static hf_trigger_spec keyed(void)
{
    hf_trigger_spec spec = spec_of(WORK);
    spec.flow_key = KEY;
    return spec;
}

static hf_id trigger_keyed(void)
{
    hf_trigger_spec spec = keyed();
    return trigger_spec(&spec);
}

/* The last lane of all is never removed from SQLite; so this is another one. */
static void make_last_lane(void)
{
    assert_ok(hf_workflow_weight(fx.client, WORK, "last", 2, &fx.error));
}

static int64_t lane_of_key(void)
{
    return sql_number("SELECT coalesce(max(id), 0) FROM lane WHERE tenant_id = %d "
                      "AND flow_key = '" KEY "'",
                      fx.client->tenant_id);
}

static void purge_all(void)
{
    assert_ok(hf_purge(fx.client, NULL, NULL, now() + HF_HOURS(1), &fx.error));
}

/* The key had a run, and its lane is gone; those who wrote the run may still know the lane. */
static void use_and_remove(void)
{
    trigger_keyed();
    make_last_lane();
    succeed(claim());
    purge_all();
    tidy();
    assert_int_equal(lane_of_key(), 0);
}

/* ---- What goes ---- */

static void a_lane_goes_after_the_last_run_of_its_key(void **state)
{
    (void)state;
    trigger_keyed();
    trigger_keyed();
    make_last_lane();
    const hf_claims *claims = claim_as(WORKER, 10);
    succeed(&claims->items[0]);
    purge_all();
    tidy();
    assert_int_not_equal(lane_of_key(), 0);
    succeed(&claims->items[1]);
    tidy();
    assert_int_not_equal(lane_of_key(), 0);
    purge_all();
    tidy();
    assert_int_equal(lane_of_key(), 0);
}

static void a_lane_stays_while_a_run_in_any_status_is_in_it(void **state)
{
    hf_id id = trigger_keyed();
    (void)state;
    make_last_lane();
    int64_t lane = lane_of_key();
    for (int status = HF_PENDING; status <= HF_CANCELLED; status++)
        for (int deleted = 0; deleted < 2; deleted++)
            for (int timed = 0; timed < 2; timed++) {
                sql("UPDATE run SET status = %d, deleted_at = %s, run_at = %s WHERE id = %s",
                    status, deleted ? "1" : "NULL", timed ? "1" : "NULL", sql_id(id));
                tidy();
                assert_int_equal(lane_of_key(), lane);
            }
    sql("UPDATE run SET status = 0, deleted_at = NULL, run_at = created_at WHERE id = %s",
        sql_id(id));
    succeed(claim());
}

static void the_lane_of_a_workflow_itself_stays(void **state)
{
    (void)state;
    make_last_lane();
    tidy();
    trigger(WORK);
    succeed(claim());
}

static void a_lane_with_a_weight_of_its_own_stays_until_it_has_none(void **state)
{
    (void)state;
    assert_ok(hf_workflow_weight(fx.client, WORK, KEY, 3, &fx.error));
    make_last_lane();
    tidy();
    assert_int_not_equal(lane_of_key(), 0);
    assert_ok(hf_workflow_weight(fx.client, WORK, KEY, 1, &fx.error));
    tidy();
    assert_int_equal(lane_of_key(), 0);
}

static void a_lane_stays_until_its_starts_are_paid_for(void **state)
{
    (void)state;
    define_with((hf_workflow){ .name = WORK, .key_rate = { 1, HF_DAYS(1), 1 } }, HF_SET_KEY_RATE);
    trigger_keyed();
    make_last_lane();
    succeed(claim());
    purge_all();
    tidy();
    trigger_keyed();
    expect_nothing_due();
    advance(HF_DAYS(1));
    succeed(claim());
    purge_all();
    advance(HF_DAYS(1));
    tidy();
    assert_int_equal(lane_of_key(), 0);
}

/* Programs of the version before may not expect it. */
static void no_lane_goes_on_the_day_of_a_migration(void **state)
{
    (void)state;
    sql("INSERT INTO schema_version (version, name, min_writer, applied_at) VALUES (998, 'x', 1, "
        "%lld)",
        (long long)(now() - HF_DAYS(1) + 1));
    trigger_keyed();
    make_last_lane();
    succeed(claim());
    purge_all();
    tidy();
    assert_int_not_equal(lane_of_key(), 0);
    advance(1);
    tidy();
    assert_int_equal(lane_of_key(), 0);
    sql("DELETE FROM schema_version WHERE version = 998");
}

/* ---- What comes afterwards ---- */

static void a_trigger_makes_a_lane_anew_that_was_removed(void **state)
{
    (void)state;
    use_and_remove();
    hf_id id = trigger_keyed();
    assert_string_equal(get(id)->flow_key, KEY);
    succeed(claim());
}

static void the_number_of_a_lane_is_never_given_again(void **state)
{
    (void)state;
    trigger_keyed();
    int64_t first = lane_of_key();
    succeed(claim());
    purge_all();
    tidy();
    hf_trigger_spec spec = spec_of(WORK);
    spec.flow_key = "another";
    trigger_spec(&spec);
    assert_int_equal(
        sql_number("SELECT count(*) FROM lane WHERE id = %lld AND flow_key = 'another'",
                   (long long)first),
        0);
    succeed(claim());
}

static void a_debounced_trigger_makes_a_lane_anew_that_was_removed(void **state)
{
    hf_trigger_spec spec = keyed();
    (void)state;
    use_and_remove();
    spec.debounce_key = "d";
    spec.debounce_for = HF_SECONDS(1);
    trigger_spec(&spec);
    advance(HF_SECONDS(1));
    succeed(claim());
}

static void many_triggers_make_a_lane_anew_that_was_removed(void **state)
{
    enum { COUNT = 7 };
    hf_trigger_spec specs[COUNT];
    hf_triggered out[COUNT];
    (void)state;
    use_and_remove();
    for (int i = 0; i < COUNT; i++)
        specs[i] = i % 2 ? keyed() : spec_of(WORK);
    assert_ok(hf_trigger_many(fx.client, out, specs, COUNT, &fx.error));
    assert_int_equal(claim_as(WORKER, 10)->count, COUNT);
}

static void a_child_makes_a_lane_anew_that_was_removed(void **state)
{
    hf_trigger_spec child = keyed();
    (void)state;
    use_and_remove();
    hf_transition t = turn_of(claim_new(), HF_TURN_SUCCEED);
    t.children = &child;
    t.child_count = 1;
    commit(&t);
    assert_int_not_equal(lane_of_key(), 0);
    succeed(claim());
}

static void a_first_turn_makes_a_lane_anew_that_was_removed(void **state)
{
    hf_trigger_spec spec = keyed();
    hf_new_event event = { .kind = "domain", .name = "began" };
    hf_transition first = {
        .version = HF_TRANSITION_VERSION, .turn = HF_TURN_RETRY, .events = &event, .event_count = 1
    };
    hf_triggered out;
    (void)state;
    use_and_remove();
    assert_ok(hf_trigger_with(fx.client, &out, &spec, &first, &fx.error));
    expect_journal(out.id, "created began");
    succeed(claim());
}

/* Another process wrote the runs and remembers; this one removes. */
static void what_another_process_remembers_does_no_harm(void **state)
{
    hf_trigger_spec spec = keyed();
    hf_client *theirs = open_beside();
    hf_triggered out;
    (void)state;
    if (!theirs)
        skip();
    assert_ok(hf_trigger(theirs, &out, &spec, &fx.error));
    make_last_lane();
    succeed(claim());
    purge_all();
    tidy();
    assert_int_equal(lane_of_key(), 0);
    assert_ok(hf_trigger(theirs, &out, &spec, &fx.error));
    succeed(claim());
    hf_close(theirs);
}

/* holdfast.trigger in a transaction that is still open. */
static void a_trigger_by_sql_that_is_not_committed_keeps_its_lane(void **state)
{
    (void)state;
    if (fx.backend != BACKEND_POSTGRES)
        skip();
    use_and_remove();
    sql("BEGIN");
    sql("SELECT holdfast.trigger('" WORK "', flow_key => '" KEY "', tenant => '%s')", fx.tenant);
    sql("COMMIT");
    succeed(claim());
    purge_all();
    sql("BEGIN");
    sql("SELECT holdfast.trigger('" WORK "', flow_key => '" KEY "', tenant => '%s')", fx.tenant);
    tidy();
    sql("COMMIT");
    succeed(claim());
}

#define LANE_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, fixture_tear_down)

static const struct CMUnitTest tests[] = {
    LANE_TEST(a_lane_goes_after_the_last_run_of_its_key),
    LANE_TEST(a_lane_stays_while_a_run_in_any_status_is_in_it),
    LANE_TEST(the_lane_of_a_workflow_itself_stays),
    LANE_TEST(a_lane_with_a_weight_of_its_own_stays_until_it_has_none),
    LANE_TEST(a_lane_stays_until_its_starts_are_paid_for),
    LANE_TEST(no_lane_goes_on_the_day_of_a_migration),
    LANE_TEST(a_trigger_makes_a_lane_anew_that_was_removed),
    LANE_TEST(the_number_of_a_lane_is_never_given_again),
    LANE_TEST(a_debounced_trigger_makes_a_lane_anew_that_was_removed),
    LANE_TEST(many_triggers_make_a_lane_anew_that_was_removed),
    LANE_TEST(a_child_makes_a_lane_anew_that_was_removed),
    LANE_TEST(a_first_turn_makes_a_lane_anew_that_was_removed),
    LANE_TEST(what_another_process_remembers_does_no_harm),
    LANE_TEST(a_trigger_by_sql_that_is_not_committed_keeps_its_lane),
};

CONTRACT("lanes", tests)
