/* Claims: who gets what, in which order, and what is passed over. A2.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "client/client.h"
#include "contract/fixture.h"

static hf_id trigger_with(int priority, int64_t delay)
{
    hf_trigger_spec spec = spec_of(WORK);
    spec.priority = priority;
    spec.delay = delay;
    return trigger_spec(&spec);
}

static void set_paused(bool paused)
{
    hf_workflow workflow = { .name = WORK, .paused = paused };
    assert_ok(hf_workflow_set(fx.client, &workflow, HF_SET_PAUSED, &fx.error));
}

static void a_claim_leases_the_run_to_the_worker(void **state)
{
    const hf_claimed *held = claim_new();
    const hf_run *run = get(held->run.id);
    (void)state;
    assert_int_equal(run->status, HF_LEASED);
    assert_string_equal(run->leased_by, WORKER);
    assert_int_equal(run->lease_until, now() + LEASE);
    assert_int_equal(run->started_at, now());
    assert_int_equal(held->run.lease_until, now() + LEASE);
    assert_int_equal(held->due_at, now());
    assert_int_equal(held->lease, LEASE);
    assert_int_equal(held->retry_base, HF_SECONDS(1));
    assert_int_equal(held->retry_cap, HF_MINUTES(5));
    assert_false(held->suspect);
    assert_false(held->exhausted);
    assert_false(held->overdue);
}

/* Clients see no change when a run is merely claimed; the fence does. */
static void a_claim_raises_the_version_but_not_the_revision(void **state)
{
    hf_id id = trigger(WORK);
    const hf_run *before = get(id);
    const hf_claimed *held = claim();
    (void)state;
    assert_int_equal(held->run.version, before->version + 1);
    assert_int_equal(get(id)->version, before->version + 1);
    assert_int_equal(get(id)->revision, before->revision);
}

static void a_claimed_run_is_not_claimed_again_while_its_lease_holds(void **state)
{
    (void)state;
    claim_new();
    advance(LEASE - 1);
    expect_nothing_due();
}

static void the_more_urgent_run_is_claimed_first(void **state)
{
    hf_id low = trigger_with(-5, 0);
    hf_id high = trigger_with(9, 0);
    hf_id middle = trigger_with(0, 0);
    const hf_id order[] = { high, middle, low };
    (void)state;
    for (int i = 0; i < 3; i++) {
        const hf_claims *claims = claim_as(WORKER, 1);
        assert_int_equal(claims->count, 1);
        assert_true(hf_id_equal(claims->items[0].run.id, order[i]));
    }
}

static void within_a_priority_the_one_due_first_is_claimed_first(void **state)
{
    hf_id late = trigger_with(0, HF_SECONDS(20));
    hf_id early = trigger_with(0, HF_SECONDS(10));
    (void)state;
    advance(HF_SECONDS(30));
    assert_true(hf_id_equal(claim_as(WORKER, 1)->items[0].run.id, early));
    assert_true(hf_id_equal(claim_as(WORKER, 1)->items[0].run.id, late));
}

static void a_batch_comes_in_the_order_of_urgency(void **state)
{
    hf_id ids[4];
    const int priorities[] = { 1, 3, 3, 2 };
    const int order[] = { 1, 2, 3, 0 };
    (void)state;
    for (int i = 0; i < 4; i++) {
        ids[i] = trigger_with(priorities[i], 0);
        advance(1);
    }
    const hf_claims *claims = claim_as(WORKER, 10);
    assert_int_equal(claims->count, 4);
    for (int i = 0; i < 4; i++)
        assert_true(hf_id_equal(claims->items[i].run.id, ids[order[i]]));
}

static void a_delayed_run_is_claimed_at_its_time_and_not_before(void **state)
{
    trigger_with(0, HF_SECONDS(10));
    (void)state;
    advance(HF_SECONDS(10) - 1);
    expect_nothing_due();
    assert_int_equal(claim_as(WORKER, 1)->next_due, now() + 1);
    advance(1);
    claim();
}

static void a_run_that_is_due_does_not_wait_behind_a_delayed_more_urgent_one(void **state)
{
    trigger_with(100, HF_HOURS(1));
    hf_id due = trigger_with(0, 0);
    (void)state;
    assert_true(hf_id_equal(claim()->run.id, due));
}

static void a_claim_takes_no_more_than_its_limit(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++)
        trigger(WORK);
    assert_int_equal(claim_as(WORKER, 2)->count, 2);
    assert_int_equal(claim_as(WORKER, 10)->count, 3);
}

static void the_limit_counts_over_all_lanes_and_priorities(void **state)
{
    (void)state;
    define("a.one");
    define("a.two");
    for (int i = 0; i < 3; i++) {
        hf_trigger_spec spec = spec_of(i % 2 ? "a.one" : "a.two");
        spec.priority = i;
        trigger_spec(&spec);
        spec.workflow = WORK;
        trigger_spec(&spec);
    }
    assert_int_equal(claim_as(WORKER, 4)->count, 4);
    assert_int_equal(claim_as(WORKER, 4)->count, 2);
}

static void a_claim_serves_the_patterns_it_names(void **state)
{
    static const char *const patterns[] = { "billing.*", "mail.send" };
    static const char *const workflows[] = { "billing.charge",  "billing.refund.v2", "mail.send",
                                             "mail.send.later", "billingx",          "mail" };
    hf_claim_spec spec = HF_CLAIM_INIT;
    (void)state;
    for (size_t i = 0; i < 6; i++) {
        define(workflows[i]);
        trigger(workflows[i]);
    }
    spec.worker = WORKER;
    spec.limit = 10;
    spec.patterns = patterns;
    spec.pattern_count = 2;
    const hf_claims *claims = claim_with(&spec);
    assert_int_equal(claims->count, 3);
    for (size_t i = 0; i < claims->count; i++)
        assert_true(strncmp(claims->items[i].run.workflow, "billing.", 8) == 0 ||
                    strcmp(claims->items[i].run.workflow, "mail.send") == 0);
}

static void a_star_within_a_pattern_is_refused(void **state)
{
    static const char *const bad[] = { "a*b", "*.charge", "a**", "", "a b", NULL };
    hf_claims *claims = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hf_claim_spec spec = HF_CLAIM_INIT;
        spec.worker = WORKER;
        spec.patterns = &bad[i];
        spec.pattern_count = 1;
        assert_code(hf_claim(fx.client, &claims, &spec, &fx.error), HF_INVALID);
    }
}

static void the_engines_own_runs_are_claimed_only_by_who_names_them(void **state)
{
    static const char *const others[] = { "*", "h*", "holdfast*", "i*" };
    static const char *const own[] = { "holdfast.*" };
    hf_claim_spec spec = HF_CLAIM_INIT;
    const hf_claimed *parent = claim_new();
    hf_trigger_spec child = HF_TRIGGER_INIT;
    (void)state;
    child.workflow = WORK;
    child.run_at = now() + HF_HOURS(1);
    hf_transition t = turn_of(parent, HF_TURN_WAIT);
    t.waiting_kind = "children";
    t.children = &child;
    t.child_count = 1;
    commit(&t);
    change(parent->run.id, HF_CANCEL); /* starts a run that cancels the child */
    spec.worker = WORKER;
    spec.limit = 10;
    spec.patterns = others;
    spec.pattern_count = sizeof others / sizeof *others;
    assert_int_equal(claim_with(&spec)->count, 0);
    spec.patterns = own;
    spec.pattern_count = 1;
    assert_int_equal(claim_with(&spec)->count, 1);
}

static void a_lane_named_by_two_patterns_is_claimed_once(void **state)
{
    static const char *const patterns[] = { "*", WORK, "work*" };
    hf_claim_spec spec = HF_CLAIM_INIT;
    (void)state;
    trigger(WORK);
    trigger(WORK);
    spec.worker = WORKER;
    spec.limit = 10;
    spec.patterns = patterns;
    spec.pattern_count = 3;
    assert_int_equal(claim_with(&spec)->count, 2);
}

static void a_paused_workflow_is_not_claimed_until_it_is_resumed(void **state)
{
    trigger(WORK);
    (void)state;
    set_paused(true);
    expect_nothing_due();
    set_paused(false);
    claim();
}

static void a_disabled_tenant_is_not_claimed_until_it_is_enabled(void **state)
{
    trigger(WORK);
    (void)state;
    assert_ok(hf_tenant_disable(fx.root, fx.tenant, true, &fx.error));
    expect_nothing_due();
    assert_ok(hf_tenant_disable(fx.root, fx.tenant, false, &fx.error));
    claim();
}

static void a_deleted_run_is_not_claimed_until_it_is_restored(void **state)
{
    hf_id id = trigger(WORK);
    (void)state;
    change(id, HF_DELETE);
    expect_nothing_due();
    change(id, HF_RESTORE);
    claim();
}

static void a_paused_run_is_not_claimed(void **state)
{
    hf_id id = trigger(WORK);
    (void)state;
    change(id, HF_PAUSE);
    advance(HF_DAYS(1));
    expect_nothing_due();
}

static void the_runs_of_other_tenants_are_not_claimed(void **state)
{
    hf_workflow workflow = { .name = WORK };
    hf_trigger_spec spec = spec_of(WORK);
    hf_triggered out;
    (void)state;
    assert_ok(hf_workflow_put(fx.other, &workflow, 0, &fx.error));
    assert_ok(hf_trigger(fx.other, &out, &spec, &fx.error));
    expect_nothing_due();
}

static void a_claims_own_lease_is_used_in_place_of_the_workflows(void **state)
{
    static const char *const all[] = { "*" };
    hf_claim_spec spec = HF_CLAIM_INIT;
    hf_id id = trigger(WORK);
    (void)state;
    spec.worker = WORKER;
    spec.patterns = all;
    spec.pattern_count = 1;
    spec.lease = HF_SECONDS(3);
    claim_with(&spec);
    assert_int_equal(get(id)->lease_until, now() + HF_SECONDS(3));
}

/* What a worker takes from heads that it remembers; the claims are the arena's. */
static const hf_claims *claim_heads(const struct hf__claim_head *heads, size_t count,
                                    struct hf__arena *arena)
{
    struct hf__op op = {
        .kind = HF__OP_CLAIM,
        .claim = { .heads = heads,
                   .head_count = count,
                   .most = 10,
                   .worker = WORKER,
                   .arena = arena },
    };
    hf__engine_apply(fx.client->engine, &op, 1);
    assert_int_equal(op.code, HF_OK);
    return op.claim.claims;
}

static struct hf__claim_head head_of(int priority)
{
    return (struct hf__claim_head){
        .lane = (int32_t)sql_number("SELECT lane FROM workflow WHERE tenant_id = %d",
                                    fx.client->tenant_id),
        .priority = priority,
    };
}

static const hf_claims *claim_from(int priority, int share, struct hf__arena *arena)
{
    struct hf__claim_head head = head_of(priority);
    head.share = share;
    return claim_heads(&head, 1, arena);
}

/* A worker's memory of lanes may be older than the pause: the claim itself looks. */
static void a_claim_from_an_old_list_of_lanes_respects_pauses_and_disabled_tenants(void **state)
{
    struct hf__arena arena;
    (void)state;
    trigger(WORK);
    hf__arena_init(&arena, 4096);
    for (int i = 0; i < 3; i++) {
        set_paused(i == 0);
        assert_ok(hf_tenant_disable(fx.root, fx.tenant, i == 1, &fx.error));
        assert_int_equal(claim_from(0, 0, &arena)->count, i == 2);
    }
    hf__arena_free(&arena);
}

static void a_claim_from_one_head_takes_of_its_priority_and_no_more_than_its_share(void **state)
{
    struct hf__arena arena;
    (void)state;
    hf_id first = trigger_with(0, 0);
    trigger_with(0, 0);
    hf_id urgent = trigger_with(5, 0);
    hf__arena_init(&arena, 4096);
    const hf_claims *claims = claim_from(5, 0, &arena);
    assert_int_equal(claims->count, 1);
    assert_true(hf_id_equal(claims->items[0].run.id, urgent));
    claims = claim_from(0, 1, &arena);
    assert_int_equal(claims->count, 1);
    assert_true(hf_id_equal(claims->items[0].run.id, first));
    hf__arena_free(&arena);
}

static void expect_only(const hf_claims *claims, hf_id id)
{
    assert_int_equal(claims->count, 1);
    assert_true(hf_id_equal(claims->items[0].run.id, id));
}

/* The head's floor keeps what is due before it from being taken; without it, that is taken. */
static void expect_floor(size_t head_count, bool limited)
{
    struct hf__arena arena;
    struct hf__claim_head heads[2] = { head_of(0), head_of(7) };
    hf__arena_init(&arena, 4096);
    hf_id below = trigger(WORK);
    advance(1);
    hf_id at = trigger(WORK);
    heads[0].floor = now();
    heads[0].limited = heads[1].limited = limited;
    expect_only(claim_heads(heads, head_count, &arena), at);
    heads[0].floor = 0;
    expect_only(claim_heads(heads, head_count, &arena), below);
    hf__arena_free(&arena);
}

static void a_claim_takes_nothing_below_the_floor_of_a_head(void **state)
{
    (void)state;
    expect_floor(1, false);
    expect_floor(2, false);
    define_with((hf_workflow){ .name = WORK, .max_running = 100 }, HF_SET_MAX_RUNNING);
    expect_floor(1, true);
    expect_floor(2, true);
}

/* ---- Together ---- */

enum { WORKERS = 8, RUNS = 200 };

static void *claim_until_empty(void *arg)
{
    static const char *const all[] = { "*" };
    int *count = arg;
    char name[32];
    hf_error err;
    snprintf(name, sizeof name, "worker-%p", arg);
    hf_claim_spec spec = HF_CLAIM_INIT;
    spec.worker = name;
    spec.patterns = all;
    spec.pattern_count = 1;
    spec.limit = 7;
    for (size_t got = 1; got > 0;) {
        hf_claims *claims = NULL;
        if (hf_claim(fx.client, &claims, &spec, &err) != HF_OK)
            return NULL;
        got = claims->count;
        *count += (int)got;
        hf_claims_free(claims);
    }
    return NULL;
}

static void eight_workers_at_once_never_claim_one_run_twice(void **state)
{
    pthread_t threads[WORKERS];
    int counts[WORKERS] = { 0 };
    hf_trigger_spec specs[RUNS];
    hf_triggered out[RUNS];
    int total = 0;
    (void)state;
    for (int i = 0; i < RUNS; i++)
        specs[i] = spec_of(WORK);
    assert_ok(hf_trigger_many(fx.client, out, specs, RUNS, &fx.error));
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, claim_until_empty, &counts[i]), 0);
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
        total += counts[i];
    }
    expect_nothing_due();
    assert_int_equal(total, RUNS);
    for (int i = 0; i < RUNS; i++)
        assert_int_equal(get(out[i].id)->version, 2);
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(a_claim_leases_the_run_to_the_worker),
    CONTRACT_TEST(a_claim_raises_the_version_but_not_the_revision),
    CONTRACT_TEST(a_claimed_run_is_not_claimed_again_while_its_lease_holds),
    CONTRACT_TEST(the_more_urgent_run_is_claimed_first),
    CONTRACT_TEST(within_a_priority_the_one_due_first_is_claimed_first),
    CONTRACT_TEST(a_batch_comes_in_the_order_of_urgency),
    CONTRACT_TEST(a_delayed_run_is_claimed_at_its_time_and_not_before),
    CONTRACT_TEST(a_run_that_is_due_does_not_wait_behind_a_delayed_more_urgent_one),
    CONTRACT_TEST(a_claim_takes_no_more_than_its_limit),
    CONTRACT_TEST(the_limit_counts_over_all_lanes_and_priorities),
    CONTRACT_TEST(a_claim_serves_the_patterns_it_names),
    CONTRACT_TEST(a_star_within_a_pattern_is_refused),
    CONTRACT_TEST(the_engines_own_runs_are_claimed_only_by_who_names_them),
    CONTRACT_TEST(a_lane_named_by_two_patterns_is_claimed_once),
    CONTRACT_TEST(a_paused_workflow_is_not_claimed_until_it_is_resumed),
    CONTRACT_TEST(a_disabled_tenant_is_not_claimed_until_it_is_enabled),
    CONTRACT_TEST(a_deleted_run_is_not_claimed_until_it_is_restored),
    CONTRACT_TEST(a_paused_run_is_not_claimed),
    CONTRACT_TEST(the_runs_of_other_tenants_are_not_claimed),
    CONTRACT_TEST(a_claims_own_lease_is_used_in_place_of_the_workflows),
    CONTRACT_TEST(a_claim_from_an_old_list_of_lanes_respects_pauses_and_disabled_tenants),
    CONTRACT_TEST(a_claim_from_one_head_takes_of_its_priority_and_no_more_than_its_share),
    CONTRACT_TEST(a_claim_takes_nothing_below_the_floor_of_a_head),
    CONTRACT_TEST(eight_workers_at_once_never_claim_one_run_twice),
};
CONTRACT("claims", tests)
