/* Flow control: limits and rates of a workflow and of its flow keys, and fair shares between keys. B7.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "client/client.h"
#include "contract/fixture.h"

static void limit(hf_workflow workflow, unsigned mask)
{
    workflow.name = WORK;
    assert_ok(hf_workflow_set(fx.client, &workflow, mask, &fx.error));
}

static void limit_running(int most)
{
    limit((hf_workflow){ .max_running = most }, HF_SET_MAX_RUNNING);
}

static void limit_keys(int most)
{
    limit((hf_workflow){ .key_max_running = most }, HF_SET_KEY_MAX_RUNNING);
}

static void limit_rate(int count, int64_t interval, int burst)
{
    limit((hf_workflow){ .rate = { count, interval, burst } }, HF_SET_RATE);
}

static void trigger_key(const char *flow_key, int count)
{
    hf_trigger_spec spec = spec_of(WORK);
    spec.flow_key = flow_key;
    for (int i = 0; i < count; i++)
        trigger_spec(&spec);
}

static void a_run_tells_its_flow_key(void **state)
{
    hf_trigger_spec spec = spec_of(WORK);
    hf_filter filter = HF_FILTER_INIT;
    hf_run *run;
    hf_triggered fork;
    (void)state;
    spec.flow_key = "a";
    spec.key = "k";
    hf_id id = trigger_spec(&spec);
    spec.flow_key = "b";
    spec.key = NULL;
    trigger_spec(&spec);
    trigger(WORK);
    assert_string_equal(get(id)->flow_key, "a");
    assert_null(get(trigger(WORK))->flow_key);
    assert_ok(hf_get_by_key(fx.client, &run, WORK, "k", &fx.error));
    assert_string_equal(run->flow_key, "a");
    hf_run_free(run);

    filter.flow_key = "a";
    assert_int_equal(list(&filter)->count, 1);
    assert_true(hf_id_equal(list(&filter)->items[0].id, id));
    assert_string_equal(list(&filter)->items[0].flow_key, "a");
    filter.flow_key = "A";
    assert_int_equal(list(&filter)->count, 0);
    filter.flow_key = "";
    hf_runs *none = NULL;
    assert_code(hf_list(fx.client, &none, &filter, &fx.error), HF_INVALID);

    assert_ok(hf_fork(fx.client, &fork, id, NULL, NULL, &fx.error));
    assert_string_equal(get(fork.id)->flow_key, "a");
}

static void a_change_of_many_goes_by_the_flow_key(void **state)
{
    hf_filter filter = HF_FILTER_INIT;
    hf_bulk_result result;
    (void)state;
    trigger_key("a", 3);
    trigger_key("b", 2);
    filter.flow_key = "a";
    assert_ok(hf_bulk(fx.client, &result, &filter, HF_CANCEL, NULL, true, NULL, NULL, &fx.error));
    assert_int_equal(result.matched, 3);
    assert_ok(hf_bulk(fx.client, &result, &filter, HF_CANCEL, NULL, false, NULL, NULL, &fx.error));
    assert_int_equal(result.changed, 3);
    assert_int_equal(claim_as(WORKER, 10)->count, 2);
}

static const char *weights_of_work(void)
{
    hf_workflow *workflow;
    assert_ok(hf_workflow_get(fx.client, &workflow, WORK, &fx.error));
    const char *text = workflow->weights ? text_of("%s", workflow->weights) : NULL;
    hf_workflow_free(workflow);
    return text;
}

static void a_workflow_tells_its_weights(void **state)
{
    (void)state;
    assert_null(weights_of_work());
    assert_ok(hf_workflow_weight(fx.client, WORK, "a \"b\"", 3, &fx.error));
    assert_ok(hf_workflow_weight(fx.client, WORK, "", 7, &fx.error));
    assert_ok(hf_workflow_weight(fx.client, WORK, "plain", 1, &fx.error));
    assert_string_equal(weights_of_work(), "{\"\":7,\"a \\\"b\\\"\":3}");
    assert_ok(hf_workflow_weight(fx.client, WORK, "", 1, &fx.error));
    assert_string_equal(weights_of_work(), "{\"a \\\"b\\\"\":3}");
}

/* How many of these runs have the flow key. */
static int count_key(const hf_claims *claims, const char *flow_key)
{
    int count = 0;
    for (size_t i = 0; i < claims->count; i++)
        count += sql_number("SELECT count(*) FROM lane WHERE id = %d AND flow_key = '%s'",
                            claims->items[i].lane, flow_key) == 1;
    return count;
}

static int64_t lanes_of_work(void)
{
    return sql_number("SELECT count(*) FROM lane WHERE tenant_id = %d AND workflow_id = (SELECT "
                      "id FROM workflow WHERE tenant_id = %d AND name = '" WORK "')",
                      fx.client->tenant_id, fx.client->tenant_id);
}

/* ---- Flow keys ---- */

static void a_flow_key_has_a_lane_of_its_own(void **state)
{
    (void)state;
    trigger(WORK);
    trigger_key("a", 2);
    trigger_key("b", 1);
    assert_int_equal(lanes_of_work(), 3);
    const hf_claims *claims = claim_as(WORKER, 10);
    assert_int_equal(claims->count, 4);
    assert_int_equal(count_key(claims, "a"), 2);
    assert_int_equal(count_key(claims, "b"), 1);
}

static void a_flow_key_belongs_to_one_workflow(void **state)
{
    hf_trigger_spec spec = spec_of("a.other");
    (void)state;
    define("a.other");
    trigger_key("a", 1);
    spec.flow_key = "a";
    trigger_spec(&spec);
    const hf_claims *claims = claim_as(WORKER, 10);
    assert_int_equal(claims->count, 2);
    assert_int_not_equal(claims->items[0].lane, claims->items[1].lane);
}

static void an_unknown_workflow_gets_no_lane(void **state)
{
    hf_trigger_spec spec = spec_of("a.nowhere");
    hf_triggered out;
    (void)state;
    spec.flow_key = "a";
    assert_code(try_trigger(&spec, &out), HF_UNKNOWN_WORKFLOW);
    assert_int_equal(sql_number("SELECT count(*) FROM lane WHERE tenant_id = %d AND flow_key = 'a'",
                                fx.client->tenant_id),
                     0);
}

static void a_flow_key_is_bounded(void **state)
{
    char text[202];
    hf_trigger_spec spec = spec_of(WORK);
    hf_triggered out;
    (void)state;
    memset(text, 'k', sizeof text);
    text[201] = '\0';
    spec.flow_key = text;
    assert_code(try_trigger(&spec, &out), HF_TOO_LARGE);
    spec.flow_key = "";
    assert_code(try_trigger(&spec, &out), HF_INVALID);
    text[200] = '\0';
    spec.flow_key = text;
    trigger_spec(&spec);
    claim();
}

static void a_child_may_have_a_flow_key(void **state)
{
    const hf_claimed *held = claim_new();
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    hf_trigger_spec child = spec_of(WORK);
    (void)state;
    child.flow_key = "a";
    t.children = &child;
    t.child_count = 1;
    t.wait_children = 1;
    commit(&t);
    const hf_claims *claims = claim_as(WORKER, 10);
    assert_int_equal(claims->count, 1);
    assert_int_equal(count_key(claims, "a"), 1);
}

static void the_counts_of_a_workflow_include_its_keys(void **state)
{
    hf_workflow *workflow;
    (void)state;
    trigger(WORK);
    trigger_key("a", 3);
    claim_as(WORKER, 1);
    assert_ok(hf_workflow_get(fx.client, &workflow, WORK, &fx.error));
    keep(workflow, (void (*)(void *))hf_workflow_free);
    assert_int_equal(workflow->due, 3);
    assert_int_equal(workflow->leased, 1);
}

/* ---- Slots ---- */

static void no_more_runs_are_held_than_the_limit(void **state)
{
    (void)state;
    limit_running(3);
    trigger_key("a", 3);
    trigger_key(NULL, 3);
    const hf_claims *held = claim_as(WORKER, 10);
    assert_int_equal(held->count, 3);
    expect_nothing_due();
    succeed(&held->items[0]);
    retry_after(&held->items[1], HF_HOURS(1));
    assert_int_equal(claim_as(WORKER, 10)->count, 2);
    expect_nothing_due();
}

static void each_key_has_its_own_slots(void **state)
{
    (void)state;
    limit_keys(2);
    trigger_key("a", 5);
    trigger_key("b", 5);
    const hf_claims *held = claim_as(WORKER, 100);
    assert_int_equal(held->count, 4);
    assert_int_equal(count_key(held, "a"), 2);
    assert_int_equal(count_key(held, "b"), 2);
    limit_running(5);
    trigger_key("c", 5);
    assert_int_equal(claim_as(WORKER, 100)->count, 1);
}

static void a_short_end_frees_the_slot_too(void **state)
{
    (void)state;
    limit_running(1);
    trigger_key(NULL, 2);
    hf_transition t = turn_of(claim(), HF_TURN_SUCCEED);
    expect_nothing_due();
    assert_ok(try_commit_short(&t));
    claim();
}

static void a_slot_of_a_dead_worker_comes_back_with_its_run(void **state)
{
    (void)state;
    limit_running(1);
    hf_id first = trigger(WORK);
    hf_id second = trigger(WORK);
    claim();
    advance(LEASE);
    const hf_claims *claims = claim_as("bert", 10);
    assert_int_equal(claims->count, 1);
    assert_true(hf_id_equal(claims->items[0].run.id, first));
    assert_true(claims->items[0].suspect);
    expect_nothing_due();
    succeed(&claims->items[0]);
    assert_true(hf_id_equal(claim()->run.id, second));
}

/* An expired run counts until somebody takes it over, whoever asks for fresh ones only. */
static void an_expired_lease_keeps_its_slot_until_it_is_taken_over(void **state)
{
    static const char *const all[] = { "*" };
    hf_claim_spec spec = HF_CLAIM_INIT;
    (void)state;
    spec.worker = "bert";
    spec.patterns = all;
    spec.pattern_count = 1;
    spec.limit = 10;
    spec.fresh_only = true;
    limit_running(1);
    trigger_key(NULL, 2);
    claim();
    advance(LEASE);
    assert_int_equal(claim_with(&spec)->count, 0);
    spec.fresh_only = false;
    assert_int_equal(claim_with(&spec)->count, 1);
}

static void a_limit_can_be_changed_and_removed_at_any_time(void **state)
{
    hf_workflow *workflow;
    (void)state;
    trigger_key(NULL, 20);
    assert_int_equal(claim_as(WORKER, 4)->count, 4);
    limit_running(5);
    assert_int_equal(claim_as(WORKER, 10)->count, 1);
    limit_running(2);
    expect_nothing_due();
    limit_running(8);
    assert_int_equal(claim_as(WORKER, 10)->count, 3);
    assert_ok(hf_workflow_get(fx.client, &workflow, WORK, &fx.error));
    keep(workflow, (void (*)(void *))hf_workflow_free);
    assert_int_equal(workflow->max_running, 8);
    limit_running(0);
    assert_int_equal(claim_as(WORKER, 20)->count, 12);
    assert_int_equal(sql_number("SELECT count(*) FROM workflow WHERE tenant_id = %d AND "
                                "max_running IS NOT NULL",
                                fx.client->tenant_id),
                     0);
}

/* A worker may not know of the limit yet: the claim that does not count finds nothing. */
static void a_claim_that_knows_no_limit_passes_a_limited_workflow_by(void **state)
{
    struct hf__arena arena;
    (void)state;
    trigger(WORK);
    const struct hf__claim_head head = {
        .lane = (int32_t)sql_number("SELECT lane FROM workflow WHERE tenant_id = %d",
                                    fx.client->tenant_id),
    };
    hf__arena_init(&arena, 4096);
    for (int limited = 1; limited >= 0; limited--) {
        struct hf__op op = { .kind = HF__OP_CLAIM,
                             .claim = { .heads = &head,
                                        .head_count = 1,
                                        .most = 10,
                                        .worker = WORKER,
                                        .arena = &arena } };
        limit_keys(limited);
        hf__engine_apply(fx.client->engine, &op, 1);
        assert_int_equal(op.claim.claims->count, !limited);
    }
    hf__arena_free(&arena);
}

static void workflows_without_limits_are_claimed_from_beside(void **state)
{
    (void)state;
    define("a.free");
    limit_running(1);
    trigger_key(NULL, 5);
    for (int i = 0; i < 5; i++)
        trigger("a.free");
    assert_int_equal(claim_as(WORKER, 4)->count, 4);
    assert_int_equal(claim_as(WORKER, 100)->count, 2);
    assert_int_equal(
        sql_number("SELECT count(*) FROM run WHERE tenant_id = %d AND slot IS NOT NULL",
                   fx.client->tenant_id),
        1);
}

static void the_more_urgent_run_gets_the_slot(void **state)
{
    hf_trigger_spec spec = spec_of(WORK);
    (void)state;
    limit_running(1);
    trigger_key("a", 2);
    spec.flow_key = "b";
    spec.priority = 5;
    hf_id urgent = trigger_spec(&spec);
    assert_true(hf_id_equal(claim()->run.id, urgent));
}

static void a_paused_workflow_gives_nothing_and_its_slots_stay(void **state)
{
    (void)state;
    limit_running(2);
    trigger_key(NULL, 3);
    const hf_claims *held = claim_as(WORKER, 1);
    limit((hf_workflow){ .paused = true }, HF_SET_PAUSED);
    expect_nothing_due();
    limit((hf_workflow){ .paused = false }, HF_SET_PAUSED);
    assert_int_equal(claim_as(WORKER, 10)->count, 1);
    change(held->items[0].run.id, HF_CANCEL);
    assert_int_equal(claim_as(WORKER, 10)->count, 1);
}

static void a_deleted_run_counts_until_its_lease_ends(void **state)
{
    (void)state;
    limit_running(1);
    trigger_key(NULL, 2);
    change(claim()->run.id, HF_DELETE);
    expect_nothing_due();
    advance(LEASE);
    claim();
}

/* ---- Rates ---- */

static void starts_come_no_faster_than_the_rate(void **state)
{
    (void)state;
    limit_rate(10, HF_SECONDS(10), 1);
    trigger_key(NULL, 5);
    claim();
    const hf_claims *none = claim_as(WORKER, 10);
    assert_int_equal(none->count, 0);
    assert_int_equal(none->next_due, now() + HF_SECONDS(1));
    advance(HF_SECONDS(1) - 1);
    assert_int_equal(claim_as(WORKER, 10)->count, 0);
    advance(1);
    assert_int_equal(claim_as(WORKER, 10)->count, 1);
    assert_int_equal(claim_as(WORKER, 10)->count, 0);
}

static void a_burst_may_come_at_once_and_fills_up_again(void **state)
{
    (void)state;
    limit_rate(10, HF_SECONDS(10), 3);
    trigger_key(NULL, 20);
    assert_int_equal(claim_as(WORKER, 100)->count, 3);
    advance(HF_SECONDS(2));
    assert_int_equal(claim_as(WORKER, 100)->count, 2);
    advance(HF_SECONDS(100));
    assert_int_equal(claim_as(WORKER, 100)->count, 3);
}

static void each_key_has_its_own_rate(void **state)
{
    (void)state;
    limit((hf_workflow){ .key_rate = { 60, HF_MINUTES(1), 2 } }, HF_SET_KEY_RATE);
    trigger_key("a", 5);
    trigger_key("b", 1);
    const hf_claims *first = claim_as(WORKER, 100);
    assert_int_equal(first->count, 3);
    assert_int_equal(count_key(first, "a"), 2);
    advance(HF_SECONDS(1));
    assert_int_equal(claim_as(WORKER, 100)->count, 1);
    limit_rate(1, HF_HOURS(1), 1);
    advance(HF_SECONDS(10));
    assert_int_equal(claim_as(WORKER, 100)->count, 1);
}

static void a_retry_counts_as_a_start(void **state)
{
    (void)state;
    limit_rate(1, HF_SECONDS(60), 1);
    trigger(WORK);
    retry_after(claim(), HF_SECONDS(1));
    advance(HF_SECONDS(1));
    assert_int_equal(claim_as(WORKER, 1)->count, 0);
    advance(HF_SECONDS(59));
    claim();
}

/* A slower rate does not leave a debt when it is lifted. */
static void a_new_rate_holds_at_once(void **state)
{
    (void)state;
    limit_rate(1, HF_HOURS(10), 1);
    trigger_key(NULL, 5);
    claim_as(WORKER, 1);
    limit_rate(1, HF_SECONDS(1), 1);
    advance(HF_SECONDS(1));
    assert_int_equal(claim_as(WORKER, 10)->count, 1);
    limit_rate(0, 0, 0);
    assert_int_equal(claim_as(WORKER, 10)->count, 3);
}

static void unusable_limits_are_refused(void **state)
{
    const hf_workflow bad[] = {
        { .name = WORK, .max_running = -1 },
        { .name = WORK, .key_max_running = 1000001 },
        { .name = WORK, .rate = { 1, 0, 0 } },
        { .name = WORK, .rate = { -1, HF_SECONDS(1), 0 } },
        { .name = WORK, .key_rate = { 1, HF_DAYS(32), 0 } },
        { .name = WORK, .key_rate = { 1, HF_DAYS(1), -1 } },
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_code(hf_workflow_set(fx.client, &bad[i],
                                    HF_SET_MAX_RUNNING | HF_SET_KEY_MAX_RUNNING | HF_SET_RATE |
                                        HF_SET_KEY_RATE,
                                    &fx.error),
                    HF_INVALID);
    assert_code(hf_workflow_weight(fx.client, WORK, "a", 0, &fx.error), HF_INVALID);
    assert_code(hf_workflow_weight(fx.client, WORK, NULL, 1, &fx.error), HF_INVALID);
    assert_code(hf_workflow_weight(fx.client, "a.nowhere", "a", 1, &fx.error), HF_UNKNOWN_WORKFLOW);
}

/* ---- Shares ---- */

static void a_key_with_many_runs_does_not_crowd_out_one_with_few(void **state)
{
    (void)state;
    trigger_key("many", 100);
    trigger_key("few", 3);
    const hf_claims *claims = claim_as(WORKER, 10);
    assert_int_equal(claims->count, 10);
    assert_int_equal(count_key(claims, "few"), 3);
}

static void keys_share_by_weight(void **state)
{
    (void)state;
    assert_ok(hf_workflow_weight(fx.client, WORK, "heavy", 3, &fx.error));
    trigger_key("heavy", 100);
    trigger_key("light", 100);
    const hf_claims *claims = claim_as(WORKER, 40);
    assert_int_equal(claims->count, 40);
    assert_int_equal(count_key(claims, "heavy"), 30);
    limit_running(80);
    claims = claim_as(WORKER, 80);
    assert_int_equal(claims->count, 40);
    assert_int_equal(count_key(claims, "heavy"), 30);
}

/* ---- Together ---- */

enum { THREADS = 6, RUNS = 120, MOST = 4 };

static atomic_int held_now, held_most, done;

static void *work(void *arg)
{
    static const char *const all[] = { "*" };
    hf_client *client = arg;
    while (atomic_load(&done) < RUNS) {
        hf_claim_spec spec = HF_CLAIM_INIT;
        hf_claims *claims;
        hf_error err;
        spec.worker = "many";
        spec.patterns = all;
        spec.pattern_count = 1;
        spec.limit = 3;
        if (hf_claim(client, &claims, &spec, &err) != HF_OK)
            return "claim";
        int held = atomic_fetch_add(&held_now, (int)claims->count) + (int)claims->count;
        for (int most = atomic_load(&held_most); held > most;)
            if (atomic_compare_exchange_weak(&held_most, &most, held))
                break;
        for (size_t i = 0; i < claims->count; i++) {
            hf_transition t = { .version = HF_TRANSITION_VERSION,
                                .run = claims->items[i].run.id,
                                .run_version = claims->items[i].run.version,
                                .turn = HF_TURN_SUCCEED };
            atomic_fetch_sub(&held_now, 1);
            if (hf_commit(client, &t, NULL, &err) != HF_OK)
                return "commit";
            atomic_fetch_add(&done, 1);
        }
        hf_claims_free(claims);
    }
    return NULL;
}

/* Two processes' worth of flushers, and more callers than slots. */
static void many_workers_never_hold_more_than_the_limit(void **state)
{
    pthread_t threads[THREADS];
    (void)state;
    atomic_store(&held_now, 0);
    atomic_store(&held_most, 0);
    atomic_store(&done, 0);
    limit_running(MOST);
    limit_keys(3);
    trigger_key("a", RUNS / 2);
    trigger_key("b", RUNS / 2);
    hf_client *beside = open_beside();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, work, beside && i % 2 ? beside : fx.client), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_in_range(atomic_load(&held_most), 1, MOST);
    if (beside)
        hf_close(beside);
}

static atomic_int claimed_by_thread;

static void *claim_in_thread(void *arg)
{
    static const char *const all[] = { "*" };
    hf_claim_spec spec = HF_CLAIM_INIT;
    hf_claims *claims;
    (void)arg;
    spec.worker = "bert";
    spec.patterns = all;
    spec.pattern_count = 1;
    spec.limit = 10;
    if (hf_claim(fx.client, &claims, &spec, NULL) != HF_OK)
        return "claim";
    atomic_store(&claimed_by_thread, (int)claims->count);
    hf_claims_free(claims);
    return NULL;
}

/* Whoever counts does so when the others' claims are committed, and not before. */
static void claims_from_a_limited_workflow_wait_for_each_other(void **state)
{
    pthread_t thread;
    void *failed;
    (void)state;
    if (fx.backend != BACKEND_POSTGRES)
        skip();
    limit_running(1);
    trigger_key(NULL, 2);
    atomic_store(&claimed_by_thread, -1);
    sql("BEGIN");
    sql("SELECT FROM engine_lock WHERE kind = 1 AND place IN (SELECT id %% 1024 FROM workflow "
        "WHERE "
        "tenant_id = %d) FOR NO KEY UPDATE",
        fx.client->tenant_id);
    sql("UPDATE run SET status = 1, slot = workflow_id, run_at = run_at + 30000000 WHERE id = "
        "(SELECT id FROM run WHERE tenant_id = %d LIMIT 1)",
        fx.client->tenant_id);
    assert_int_equal(pthread_create(&thread, NULL, claim_in_thread, NULL), 0);
    for (int i = 0; i < 20; i++) {
        usleep(5000);
        assert_int_equal(atomic_load(&claimed_by_thread), -1);
    }
    sql("UPDATE run SET status = 0, slot = NULL, run_at = run_at - 30000000 WHERE tenant_id = %d "
        "AND status = 1",
        fx.client->tenant_id);
    sql("COMMIT");
    pthread_join(thread, &failed);
    assert_null(failed);
    assert_int_equal(atomic_load(&claimed_by_thread), 1);
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(a_flow_key_has_a_lane_of_its_own),
    CONTRACT_TEST(a_flow_key_belongs_to_one_workflow),
    CONTRACT_TEST(an_unknown_workflow_gets_no_lane),
    CONTRACT_TEST(a_flow_key_is_bounded),
    CONTRACT_TEST(a_run_tells_its_flow_key),
    CONTRACT_TEST(a_change_of_many_goes_by_the_flow_key),
    CONTRACT_TEST(a_workflow_tells_its_weights),
    CONTRACT_TEST(a_child_may_have_a_flow_key),
    CONTRACT_TEST(the_counts_of_a_workflow_include_its_keys),
    CONTRACT_TEST(no_more_runs_are_held_than_the_limit),
    CONTRACT_TEST(each_key_has_its_own_slots),
    CONTRACT_TEST(a_short_end_frees_the_slot_too),
    CONTRACT_TEST(a_slot_of_a_dead_worker_comes_back_with_its_run),
    CONTRACT_TEST(an_expired_lease_keeps_its_slot_until_it_is_taken_over),
    CONTRACT_TEST(a_limit_can_be_changed_and_removed_at_any_time),
    CONTRACT_TEST(a_claim_that_knows_no_limit_passes_a_limited_workflow_by),
    CONTRACT_TEST(workflows_without_limits_are_claimed_from_beside),
    CONTRACT_TEST(the_more_urgent_run_gets_the_slot),
    CONTRACT_TEST(a_paused_workflow_gives_nothing_and_its_slots_stay),
    CONTRACT_TEST(a_deleted_run_counts_until_its_lease_ends),
    CONTRACT_TEST(starts_come_no_faster_than_the_rate),
    CONTRACT_TEST(a_burst_may_come_at_once_and_fills_up_again),
    CONTRACT_TEST(each_key_has_its_own_rate),
    CONTRACT_TEST(a_retry_counts_as_a_start),
    CONTRACT_TEST(a_new_rate_holds_at_once),
    CONTRACT_TEST(unusable_limits_are_refused),
    CONTRACT_TEST(a_key_with_many_runs_does_not_crowd_out_one_with_few),
    CONTRACT_TEST(keys_share_by_weight),
    CONTRACT_TEST(many_workers_never_hold_more_than_the_limit),
    CONTRACT_TEST(claims_from_a_limited_workflow_wait_for_each_other),
};

CONTRACT("flow", tests)
