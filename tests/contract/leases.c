/* Leases and attempts: what happens when a holder dies, and how often a run is tried. A3, A5.
 * SPDX-License-Identifier: Apache-2.0 */
#include "client/client.h"
#include "contract/fixture.h"

static hf_code beat(const hf_claimed *held, int64_t lease, hf_code *verdict)
{
    hf_held holding = { .run = held->run.id, .run_version = held->run.version, .lease = lease };
    hf_code code = hf_heartbeat(fx.client, &holding, 1, &fx.error);
    *verdict = holding.code;
    return code;
}

static void an_expired_lease_is_claimed_by_somebody_else(void **state)
{
    const hf_claimed *first = claim_new();
    (void)state;
    advance(LEASE);
    const hf_claims *claims = claim_as("bert", 10);
    assert_int_equal(claims->count, 1);
    const hf_claimed *second = &claims->items[0];
    assert_true(hf_id_equal(second->run.id, first->run.id));
    assert_int_equal(second->run.version, first->run.version + 1);
    assert_string_equal(get(first->run.id)->leased_by, "bert");
    expect_journal(first->run.id, "created started started");
}

/* Its killer may be the run itself. */
static void a_run_whose_lease_expired_is_marked_as_suspect(void **state)
{
    (void)state;
    assert_false(claim_new()->suspect);
    advance(LEASE);
    const hf_claimed *second = claim();
    assert_true(second->suspect);
    retry_after(second, 0);
    assert_false(claim()->suspect);
}

static void a_claim_of_fresh_runs_only_leaves_the_suspect_ones(void **state)
{
    static const char *const all[] = { "*" };
    hf_claim_spec spec = HF_CLAIM_INIT;
    (void)state;
    claim_new();
    advance(LEASE);
    hf_id fresh = trigger(WORK);
    spec.worker = WORKER;
    spec.patterns = all;
    spec.pattern_count = 1;
    spec.limit = 10;
    spec.fresh_only = true;
    const hf_claims *claims = claim_with(&spec);
    assert_int_equal(claims->count, 1);
    assert_true(hf_id_equal(claims->items[0].run.id, fresh));
    spec.fresh_only = false;
    assert_int_equal(claim_with(&spec)->count, 1);
}

static const hf_claims *claim_fresh_only(void)
{
    static const char *const all[] = { "*" };
    hf_claim_spec spec = HF_CLAIM_INIT;
    spec.worker = WORKER;
    spec.patterns = all;
    spec.pattern_count = 1;
    spec.limit = 10;
    spec.fresh_only = true;
    return claim_with(&spec);
}

static void limit_running(int most)
{
    hf_workflow limited = { .name = WORK, .max_running = most };
    assert_ok(hf_workflow_put(fx.client, &limited, HF_SET_MAX_RUNNING, &fx.error));
}

/* Its last attempt, which it has lost; of its own or of its workflow's number, with and without limits. */
static void a_run_without_attempts_is_left_to_nobody(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        limit_running(i < 2 ? 0 : 5);
        hf_trigger_spec spec = spec_of(WORK);
        spec.max_attempts = i % 2 ? 5 : 0;
        hf_id id = trigger_spec(&spec);
        int attempts = get(id)->max_attempts;
        for (int attempt = 1; attempt <= attempts; attempt++) {
            assert_int_equal(claim()->run.attempt, attempt);
            assert_int_equal(claim_fresh_only()->count, 0);
            advance(LEASE);
        }
        const hf_claims *claims = claim_fresh_only();
        assert_int_equal(claims->count, 1);
        assert_true(claims->items[0].exhausted);
        succeed(&claims->items[0]);
    }
}

static void a_late_run_is_left_to_nobody(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        limit_running(i ? 5 : 0);
        hf_trigger_spec spec = spec_of(WORK);
        spec.timeout = LEASE * 2;
        trigger_spec(&spec);
        claim();
        advance(LEASE);
        assert_int_equal(claim_fresh_only()->count, 0);
        advance(LEASE);
        const hf_claims *claims = claim_fresh_only();
        assert_int_equal(claims->count, 1);
        assert_true(claims->items[0].overdue);
        succeed(&claims->items[0]);
    }
}

/* Held since before its workflow had limits, it has no slot. */
static void a_run_without_attempts_or_slot_is_left_to_nobody(void **state)
{
    (void)state;
    hf_trigger_spec spec = spec_of(WORK);
    spec.max_attempts = 1;
    trigger_spec(&spec);
    claim();
    sql("UPDATE workflow SET max_running = 5 WHERE name = '" WORK "'");
    advance(LEASE);
    assert_int_equal(claim_fresh_only()->count, 1);
}

/* Only a new version refuses a holder, never the clock. */
static void expiry_alone_does_not_refuse_the_holder(void **state)
{
    const hf_claimed *held = claim_new();
    hf_code verdict;
    (void)state;
    advance(HF_DAYS(1));
    assert_ok(beat(held, LEASE, &verdict));
    assert_int_equal(verdict, HF_OK);
    advance(HF_DAYS(1));
    hf_step_record step = { held->run.id, held->run.version, WORKER, "s", "succeeded", "1" };
    assert_ok(hf_step_save(fx.client, &step, &fx.error));
    succeed(held);
    expect_status(held->run.id, HF_SUCCEEDED);
}

/* ---- A worker that comes back under its name ---- */

static void come_back(const char *worker)
{
    assert_ok(hf__leases_end(fx.client->engine, fx.client->tenant_id, worker, &fx.error));
}

static void what_a_former_worker_of_a_name_held_is_due_at_once(void **state)
{
    const hf_claimed *held = claim_new();
    trigger(WORK);
    const hf_claims *others = claim_as("bert", 1);
    (void)state;
    come_back(WORKER);
    const hf_claimed *again = claim();
    assert_true(hf_id_equal(again->run.id, held->run.id));
    assert_true(again->suspect);
    assert_int_equal(again->run.attempt, 2);
    hf_transition t = turn_of(held, HF_TURN_SUCCEED);
    assert_code(try_commit(&t), HF_STALE);
    succeed(again);
    succeed(&others->items[0]);
}

/* Until somebody else has claimed it: expiry alone refuses nobody. */
static void a_worker_that_lives_beside_one_of_its_name_may_still_be_first(void **state)
{
    const hf_claimed *held = claim_new();
    hf_code verdict;
    (void)state;
    come_back(WORKER);
    assert_ok(beat(held, LEASE, &verdict));
    assert_int_equal(verdict, HF_OK);
    expect_nothing_due();
    succeed(held);
}

static void what_comes_back_has_its_old_place(void **state)
{
    (void)state;
    hf_id old = trigger(WORK);
    claim();
    advance(HF_SECONDS(1));
    trigger(WORK);
    come_back(WORKER);
    assert_true(hf_id_equal(claim_as(WORKER, 1)->items[0].run.id, old));
}

static void a_worker_that_comes_back_changes_nothing_in_other_tenants(void **state)
{
    claim_new();
    const char *before = dump();
    (void)state;
    assert_ok(hf__leases_end(fx.other->engine, fx.other->tenant_id, WORKER, &fx.error));
    assert_string_equal(before, dump());
    assert_ok(hf__leases_end(fx.other->engine, 0, WORKER, &fx.error));
    succeed(claim());
}

static void a_slot_of_a_former_worker_is_claimed_again(void **state)
{
    hf_workflow one = { .name = "one", .max_running = 1 };
    (void)state;
    define_with(one, HF_SET_MAX_RUNNING);
    hf_id id = trigger("one");
    trigger("one");
    assert_int_equal(claim_of("one", 2)->count, 1);
    come_back(WORKER);
    const hf_claims *claims = claim_of("one", 2);
    assert_int_equal(claims->count, 1);
    assert_true(hf_id_equal(claims->items[0].run.id, id));
}

/* ---- Heartbeats ---- */

static void a_heartbeat_prolongs_the_lease(void **state)
{
    const hf_claimed *held = claim_new();
    hf_code verdict;
    (void)state;
    advance(HF_SECONDS(20));
    assert_ok(beat(held, LEASE, &verdict));
    assert_int_equal(verdict, HF_OK);
    assert_int_equal(get(held->run.id)->lease_until, now() + LEASE);
    advance(HF_SECONDS(20));
    expect_nothing_due();
}

static void a_heartbeat_changes_nothing_but_the_lease(void **state)
{
    const hf_claimed *held = claim_new();
    const hf_run *before = get(held->run.id);
    hf_code verdict;
    (void)state;
    advance(1);
    assert_ok(beat(held, LEASE, &verdict));
    const hf_run *after = get(held->run.id);
    assert_int_equal(after->version, before->version);
    assert_int_equal(after->revision, before->revision);
    assert_int_equal(after->attempt, before->attempt);
    expect_journal(held->run.id, "created started");
}

static void one_heartbeat_for_many_runs_answers_each_for_itself(void **state)
{
    hf_held held[4];
    const hf_claims *claims;
    (void)state;
    for (int i = 0; i < 3; i++)
        trigger(WORK);
    claims = claim_as(WORKER, 10);
    assert_int_equal(claims->count, 3);
    for (int i = 0; i < 3; i++)
        held[i] =
            (hf_held){ claims->items[i].run.id, claims->items[i].run.version, LEASE, HF_INTERNAL };
    held[3] = (hf_held){ { { 1 } }, 2, LEASE, HF_INTERNAL };
    change(held[1].run, HF_CANCEL);
    succeed(&claims->items[2]);
    assert_ok(hf_heartbeat(fx.client, held, 4, &fx.error));
    assert_int_equal(held[0].code, HF_OK);
    assert_int_equal(held[1].code, HF_RUN_CANCELLED);
    assert_int_equal(held[2].code, HF_STALE);
    assert_int_equal(held[3].code, HF_STALE);
}

/* ---- Attempts ---- */

static void the_attempt_is_counted_at_the_claim(void **state)
{
    const hf_claimed *held = claim_new();
    (void)state;
    assert_int_equal(held->run.attempt, 1);
    assert_int_equal(get(held->run.id)->attempt, 1);
    advance(LEASE);
    assert_int_equal(claim()->run.attempt, 2);
}

/* A run that kills its worker every time runs out of attempts all the same. */
static void a_run_that_always_kills_its_worker_becomes_exhausted(void **state)
{
    const hf_claimed *held = claim_new();
    (void)state;
    for (int attempt = 1; attempt <= 3; attempt++) {
        assert_int_equal(held->run.attempt, attempt);
        assert_false(held->exhausted);
        advance(LEASE);
        held = claim();
    }
    assert_true(held->exhausted);
    assert_int_equal(held->run.max_attempts, 3);
    fail_for_good(held);
    advance(HF_DAYS(1));
    expect_nothing_due();
}

static void a_runs_own_max_attempts_goes_before_the_workflows(void **state)
{
    hf_trigger_spec spec = spec_of(WORK);
    (void)state;
    spec.max_attempts = 1;
    trigger_spec(&spec);
    const hf_claimed *held = claim();
    assert_int_equal(held->run.max_attempts, 1);
    assert_false(held->exhausted);
    advance(LEASE);
    assert_true(claim()->exhausted);
}

static void a_retry_counts_as_an_attempt(void **state)
{
    (void)state;
    retry_after(claim_new(), 0);
    assert_int_equal(claim()->run.attempt, 2);
}

/* Sleeping a thousand times costs no attempts. */
static void waiting_sets_the_attempt_back(void **state)
{
    const hf_claimed *held = claim_new();
    (void)state;
    for (int i = 0; i < 10; i++) {
        hf_transition t = turn_of(held, HF_TURN_WAIT);
        t.waiting_until = now() + HF_SECONDS(1);
        commit(&t);
        assert_int_equal(get(held->run.id)->attempt, 0);
        advance(HF_SECONDS(1));
        held = claim();
        assert_int_equal(held->run.attempt, 1);
        assert_false(held->exhausted);
    }
}

static void giving_a_run_back_does_not_count_its_attempt(void **state)
{
    const hf_claimed *held = claim_new();
    hf_transition t = turn_of(held, HF_TURN_GIVE_BACK);
    (void)state;
    commit(&t);
    const hf_run *run = get(held->run.id);
    assert_int_equal(run->status, HF_PENDING);
    assert_int_equal(run->attempt, 0);
    assert_int_equal(run->run_at, now());
    assert_null(run->leased_by);
    assert_string_equal(run->last_worker, WORKER);
    expect_journal(held->run.id, "created started given_back");
    assert_int_equal(claim()->run.attempt, 1);
}

static void the_first_claim_sets_the_start_and_later_ones_keep_it(void **state)
{
    const hf_claimed *held = claim_new();
    int64_t started = now();
    (void)state;
    advance(HF_SECONDS(5));
    retry_after(held, 0);
    claim();
    assert_int_equal(get(held->run.id)->started_at, started);
}

/* ---- Places in the order ---- */

static const hf_claimed *claim_one(void)
{
    const hf_claims *claims = claim_as(WORKER, 1);
    assert_int_equal(claims->count, 1);
    return &claims->items[0];
}

static void expect_claimed(hf_id id)
{
    assert_true(hf_id_equal(claim_one()->run.id, id));
}

/* So many, each due a second after the one before. */
static void trigger_in_turn(hf_id *ids, int count)
{
    for (int i = 0; i < count; i++) {
        ids[i] = trigger(WORK);
        advance(HF_SECONDS(1));
    }
}

static void a_run_whose_worker_died_keeps_its_place(void **state)
{
    hf_id ids[6];
    (void)state;
    trigger_in_turn(ids, 6);
    expect_claimed(ids[0]);
    expect_claimed(ids[1]);
    advance(LEASE + HF_SECONDS(1));
    for (int i = 0; i < 6; i++)
        expect_claimed(ids[i]);
}

static void it_keeps_it_however_often_that_happens(void **state)
{
    hf_id ids[3];
    (void)state;
    define_with((hf_workflow){ .name = WORK, .max_attempts = 100 }, HF_SET_MAX_ATTEMPTS);
    trigger_in_turn(ids, 3);
    for (int i = 0; i < 5; i++) {
        const hf_claimed *held = claim_one();
        assert_true(hf_id_equal(held->run.id, ids[0]));
        advance(LEASE + HF_SECONDS(1));
    }
}

static void it_keeps_it_where_runs_are_limited(void **state)
{
    hf_id ids[4];
    (void)state;
    define_with((hf_workflow){ .name = WORK, .max_running = 2 }, HF_SET_MAX_RUNNING);
    trigger_in_turn(ids, 4);
    expect_claimed(ids[0]);
    expect_claimed(ids[1]);
    advance(LEASE + HF_SECONDS(1));
    for (int i = 0; i < 2; i++) {
        const hf_claimed *held = claim_one();
        assert_true(hf_id_equal(held->run.id, ids[i]));
        succeed(held);
    }
    expect_claimed(ids[2]);
}

static void a_holder_that_is_late_prolongs_its_lease_all_the_same(void **state)
{
    hf_id ids[3];
    hf_code verdict;
    (void)state;
    trigger_in_turn(ids, 3);
    const hf_claimed *held = claim_one();
    advance(LEASE + HF_SECONDS(1));
    static const char *const all[] = { "*" };
    hf_claim_spec fresh = HF_CLAIM_INIT;
    fresh.worker = WORKER;
    fresh.patterns = all;
    fresh.pattern_count = 1;
    fresh.fresh_only = true;
    assert_true(hf_id_equal(claim_with(&fresh)->items[0].run.id,
                            ids[1])); /* the first is back in its place */
    assert_true(get(ids[0])->run_at < now() - LEASE);
    assert_ok(beat(held, LEASE, &verdict));
    assert_int_equal(verdict, HF_OK);
    assert_int_equal(get(ids[0])->lease_until, now() + LEASE);
    expect_claimed(ids[2]);
    expect_nothing_due();
    succeed(held);
}

static void a_run_that_is_given_back_keeps_its_place(void **state)
{
    hf_id ids[3];
    (void)state;
    trigger_in_turn(ids, 3);
    hf_transition t = turn_of(claim_one(), HF_TURN_GIVE_BACK);
    commit(&t);
    for (int i = 0; i < 3; i++)
        expect_claimed(ids[i]);
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(an_expired_lease_is_claimed_by_somebody_else),
    CONTRACT_TEST(a_run_whose_lease_expired_is_marked_as_suspect),
    CONTRACT_TEST(a_claim_of_fresh_runs_only_leaves_the_suspect_ones),
    CONTRACT_TEST(a_run_without_attempts_is_left_to_nobody),
    CONTRACT_TEST(a_late_run_is_left_to_nobody),
    CONTRACT_TEST(a_run_without_attempts_or_slot_is_left_to_nobody),
    CONTRACT_TEST(expiry_alone_does_not_refuse_the_holder),
    CONTRACT_TEST(what_a_former_worker_of_a_name_held_is_due_at_once),
    CONTRACT_TEST(a_worker_that_lives_beside_one_of_its_name_may_still_be_first),
    CONTRACT_TEST(what_comes_back_has_its_old_place),
    CONTRACT_TEST(a_worker_that_comes_back_changes_nothing_in_other_tenants),
    CONTRACT_TEST(a_slot_of_a_former_worker_is_claimed_again),
    CONTRACT_TEST(a_heartbeat_prolongs_the_lease),
    CONTRACT_TEST(a_heartbeat_changes_nothing_but_the_lease),
    CONTRACT_TEST(one_heartbeat_for_many_runs_answers_each_for_itself),
    CONTRACT_TEST(the_attempt_is_counted_at_the_claim),
    CONTRACT_TEST(a_run_that_always_kills_its_worker_becomes_exhausted),
    CONTRACT_TEST(a_runs_own_max_attempts_goes_before_the_workflows),
    CONTRACT_TEST(a_retry_counts_as_an_attempt),
    CONTRACT_TEST(waiting_sets_the_attempt_back),
    CONTRACT_TEST(giving_a_run_back_does_not_count_its_attempt),
    CONTRACT_TEST(the_first_claim_sets_the_start_and_later_ones_keep_it),
    CONTRACT_TEST(a_run_whose_worker_died_keeps_its_place),
    CONTRACT_TEST(it_keeps_it_however_often_that_happens),
    CONTRACT_TEST(it_keeps_it_where_runs_are_limited),
    CONTRACT_TEST(a_holder_that_is_late_prolongs_its_lease_all_the_same),
    CONTRACT_TEST(a_run_that_is_given_back_keeps_its_place),
};
CONTRACT("leases", tests)
