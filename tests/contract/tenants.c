/* Tenants: nobody sees, learns of or changes what belongs to another. F6.
 * SPDX-License-Identifier: Apache-2.0 */
#include "contract/fixture.h"

#include <holdfast/dead_letter.h>
#include <holdfast/outbox.h>
#include <holdfast/task.h>

/* A held run of ours with mail, a child, a tag, a key and a flow key. The stranger is fx.other. */
static const hf_claimed *ours(void)
{
    static const char *const tags[] = { "secret" };
    hf_trigger_spec spec = spec_of(WORK);
    hf_trigger_spec child = spec_of(WORK);
    spec.key = "k";
    spec.flow_key = "f";
    spec.subject = "s";
    spec.reference = "r";
    spec.tags = tags;
    spec.tag_count = 1;
    hf_id id = trigger_spec(&spec);
    const hf_claimed *held = claim();
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    t.children = &child;
    t.child_count = 1;
    commit(&t);
    change(claim()->run.id, HF_CANCEL);
    send_signal(id, "s");
    return claim();
}

static void a_stranger_cannot_read_a_run(void **state)
{
    const hf_claimed *held = ours();
    hf_run *run = NULL;
    hf_events *events = NULL;
    (void)state;
    assert_code(hf_get(fx.other, &run, held->run.id, &fx.error), HF_NOT_FOUND);
    assert_code(hf_get_by_key(fx.other, &run, WORK, "k", &fx.error), HF_NOT_FOUND);
    assert_code(hf_wait(fx.other, &run, held->run.id, 0, &fx.error), HF_NOT_FOUND);
    assert_code(hf_events_list(fx.other, &events, held->run.id, 0, 100, &fx.error), HF_NOT_FOUND);
    assert_code(hf_events_follow(fx.other, &events, held->run.id, 0, 10, 1, &fx.error),
                HF_NOT_FOUND);
    assert_int_equal(sql_number("SELECT watched FROM run WHERE id = %s", sql_id(held->run.id)), 0);
}

static void a_stranger_finds_nothing_by_any_filter(void **state)
{
    const hf_claimed *held = ours();
    const hf_step_record step = { held->run.id, held->run.version, WORKER, "s", "succeeded", "1" };
    hf_filter any = HF_FILTER_INIT;
    hf_filter filters[15];
    (void)state;
    assert_ok(hf_step_save(fx.client, &step, &fx.error));
    trigger(WORK); /* is due, and not begun */
    change(trigger(WORK), HF_DELETE);
    advance(HF_SECONDS(1));
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        filters[i] = any;
    filters[1].workflow = WORK;
    filters[2].key = "k";
    filters[3].subject = "s";
    filters[4].reference = "r";
    filters[5].tag = "secret";
    filters[6].parent = held->run.id;
    filters[7].statuses = 1u << HF_LEASED;
    filters[8].prefix = "wo";
    filters[9].current_step = "s";
    filters[10].created_after = 1;
    filters[11].created_before = now();
    filters[12].overdue = true;
    filters[13].deleted = true;
    filters[14].flow_key = "f";
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
        hf_runs *runs = NULL;
        hf_bulk_result result;
        char next[HF_ID_TEXT];
        assert_true(list(&filters[i])->count > 0);
        assert_ok(hf_list(fx.other, &runs, &filters[i], &fx.error));
        assert_int_equal(runs->count, 0);
        hf_runs_free(runs);
        assert_ok(
            hf_bulk(fx.other, &result, &filters[i], HF_DELETE, NULL, false, NULL, NULL, &fx.error));
        assert_int_equal(result.matched, 0);
        assert_int_equal(result.changed, 0);
        assert_ok(hf_bulk_part(fx.other, &result, next, &filters[i], HF_DELETE, NULL, NULL, NULL,
                               &fx.error));
        assert_int_equal(result.matched, 0);
        assert_int_equal(result.changed, 0);
        assert_string_equal(next, "");
    }
    assert_int_equal(get(held->run.id)->deleted_at, 0);
}

static void a_stranger_cannot_change_or_signal_a_run(void **state)
{
    const hf_claimed *held = ours();
    hf_signal_spec signal = HF_SIGNAL_INIT;
    int64_t removed = -1;
    hf_id failed = run_that_is(HF_FAILED, 0);
    const char *before = dump();
    (void)state;
    for (int action = HF_CANCEL; action <= HF_RESTORE; action++) {
        assert_code(hf_change_run(fx.other, held->run.id, (hf_action)action, NULL, &fx.error),
                    HF_NOT_FOUND);
        assert_code(hf_change_run(fx.other, failed, (hf_action)action, NULL, &fx.error),
                    HF_NOT_FOUND);
    }
    signal.name = "s";
    assert_code(hf_signal(fx.other, held->run.id, &signal, NULL, &fx.error), HF_NOT_FOUND);
    assert_ok(hf_purge_count(fx.other, &removed, NULL, now() + 1, &fx.error));
    assert_int_equal(removed, 0);
    assert_ok(hf_purge(fx.other, &removed, NULL, now() + 1, &fx.error));
    assert_int_equal(removed, 0);
    assert_string_equal(before, dump());
}

static void a_stranger_with_the_right_version_cannot_hold_a_run(void **state)
{
    const hf_claimed *held = ours();
    hf_held lease = { .run = held->run.id, .run_version = held->run.version, .lease = LEASE };
    hf_step_record step = { held->run.id, held->run.version, WORKER, "s", "succeeded", "1" };
    const char *before = dump();
    (void)state;
    for (hf_turn turn = HF_TURN_SUCCEED; turn <= HF_TURN_GO_ON; turn++) {
        hf_transition t = turn_of(held, turn);
        const char *const mail[] = { held->mail[0].id };
        t.consumed = mail;
        t.consumed_count = 1;
        assert_code(hf_commit(fx.other, &t, NULL, &fx.error), HF_STALE);
    }
    assert_ok(hf_heartbeat(fx.other, &lease, 1, &fx.error));
    assert_int_equal(lease.code, HF_STALE);
    assert_code(hf_step_save(fx.other, &step, &fx.error), HF_STALE);
    assert_code(hf_step_save_once(fx.other, &step, "r-1", &fx.error), HF_STALE);
    assert_string_equal(before, dump());
}

static void a_stranger_is_not_told_that_a_run_was_cancelled(void **state)
{
    const hf_claimed *held = ours();
    hf_held lease = { .run = held->run.id, .run_version = held->run.version, .lease = LEASE };
    hf_transition t = turn_of(held, HF_TURN_SUCCEED);
    (void)state;
    change(held->run.id, HF_CANCEL);
    assert_ok(hf_heartbeat(fx.other, &lease, 1, &fx.error));
    assert_int_equal(lease.code, HF_STALE);
    assert_code(hf_commit(fx.other, &t, NULL, &fx.error), HF_STALE);
}

static void a_stranger_does_not_claim_our_runs(void **state)
{
    static const char *const all[] = { "*" };
    hf_claim_spec spec = HF_CLAIM_INIT;
    hf_claims *claims = NULL;
    (void)state;
    trigger(WORK);
    spec.worker = WORKER;
    spec.patterns = all;
    spec.pattern_count = 1;
    spec.limit = 100;
    assert_ok(hf_claim(fx.other, &claims, &spec, &fx.error));
    assert_int_equal(claims->count, 0);
    hf_claims_free(claims);
}

static void a_stranger_has_workflows_of_its_own(void **state)
{
    hf_workflow *found = NULL;
    hf_workflows *all = NULL;
    hf_workflow change_it = { .name = WORK, .max_attempts = 99 };
    hf_trigger_spec spec = spec_of(WORK);
    hf_triggered out;
    (void)state;
    assert_code(hf_workflow_get(fx.other, &found, WORK, &fx.error), HF_UNKNOWN_WORKFLOW);
    assert_code(hf_workflow_set(fx.other, &change_it, HF_SET_MAX_ATTEMPTS, &fx.error),
                HF_UNKNOWN_WORKFLOW);
    assert_ok(hf_workflow_list(fx.other, &all, NULL, &fx.error));
    assert_int_equal(all->count, 0);
    hf_workflows_free(all);
    assert_code(hf_trigger(fx.other, &out, &spec, &fx.error), HF_UNKNOWN_WORKFLOW);
    assert_ok(hf_workflow_put(fx.other, &change_it, HF_SET_MAX_ATTEMPTS, &fx.error));
    assert_int_equal(claim_new()->run.max_attempts, 3);
}

static void one_key_in_two_tenants_is_two_runs(void **state)
{
    hf_workflow workflow = { .name = WORK };
    hf_trigger_spec spec = spec_of(WORK);
    hf_triggered out;
    (void)state;
    assert_ok(hf_workflow_put(fx.other, &workflow, 0, &fx.error));
    spec.key = "k";
    spec.input = "1";
    hf_id mine = trigger_spec(&spec);
    spec.input = "2";
    assert_ok(hf_trigger(fx.other, &out, &spec, &fx.error));
    assert_false(out.existed);
    assert_false(hf_id_equal(out.id, mine));
}

static void a_strangers_locks_are_other_locks(void **state)
{
    hf_lock mine;
    hf_lock theirs;
    (void)state;
    assert_ok(hf_lock_acquire(fx.client, &mine, "job", "me", HF_MINUTES(1), 0, &fx.error));
    assert_ok(hf_lock_acquire(fx.other, &theirs, "job", "them", HF_MINUTES(1), 0, &fx.error));
    hf_lock stolen = mine;
    stolen.token = 77;
    assert_code(hf_lock_renew(fx.other, &stolen, HF_MINUTES(1), &fx.error), HF_STALE);
    assert_code(hf_lock_release(fx.other, &stolen, &fx.error), HF_STALE);
    assert_ok(hf_lock_release(fx.other, &theirs, &fx.error));
    assert_ok(hf_lock_renew(fx.client, &mine, HF_MINUTES(1), &fx.error));
}

static void a_commit_cannot_start_children_in_another_tenant(void **state)
{
    hf_workflow workflow = { .name = "theirs" };
    hf_trigger_spec child = spec_of("theirs");
    const hf_claimed *held = claim_new();
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    (void)state;
    assert_ok(hf_workflow_put(fx.other, &workflow, 0, &fx.error));
    t.children = &child;
    t.child_count = 1;
    assert_code(try_commit(&t), HF_UNKNOWN_WORKFLOW);
}

static void a_stranger_counts_and_forks_nothing(void **state)
{
    const hf_claimed *held = ours();
    int64_t counts[HF_STATUS_COUNT];
    hf_triggered out;
    const char *before = dump();
    (void)state;
    assert_ok(hf_child_counts(fx.client, counts, held->run.id, &fx.error));
    assert_int_equal(counts[HF_CANCELLED], 1);
    assert_ok(hf_child_counts(fx.other, counts, held->run.id, &fx.error));
    for (int status = 0; status < HF_STATUS_COUNT; status++)
        assert_int_equal(counts[status], 0);
    assert_code(hf_fork(fx.other, &out, held->run.id, NULL, NULL, &fx.error), HF_NOT_FOUND);
    assert_string_equal(before, dump());
}

static void a_stranger_cannot_use_our_workflows_in_any_trigger(void **state)
{
    hf_trigger_spec specs[2] = { spec_of(WORK), spec_of(WORK) };
    hf_triggered made[2];
    hf_transition first = { .version = HF_TRANSITION_VERSION, .turn = HF_TURN_WAIT };
    const char *before = dump();
    (void)state;
    specs[1].flow_key = "customer";
    assert_code(hf_trigger_many(fx.other, made, specs, 2, &fx.error), HF_UNKNOWN_WORKFLOW);
    assert_code(hf_trigger_with(fx.other, &made[0], &specs[0], &first, &fx.error),
                HF_UNKNOWN_WORKFLOW);
    assert_code(hf_workflow_weight(fx.other, WORK, "customer", 5, &fx.error), HF_UNKNOWN_WORKFLOW);
    assert_string_equal(before, dump());
    assert_int_equal(sql_number("SELECT count(*) FROM lane WHERE flow_key = 'customer'"), 0);
}

static void a_strangers_key_is_no_conflict_in_any_trigger(void **state)
{
    hf_workflow workflow = { .name = WORK };
    hf_trigger_spec spec = spec_of(WORK);
    hf_transition first = { .version = HF_TRANSITION_VERSION, .turn = HF_TURN_WAIT };
    hf_triggered made;
    (void)state;
    assert_ok(hf_workflow_put(fx.other, &workflow, 0, &fx.error));
    spec.key = "k";
    spec.input = "1";
    trigger_spec(&spec);
    spec.input = "2";
    assert_ok(hf_trigger_with(fx.other, &made, &spec, &first, &fx.error));
    assert_false(made.existed);
    assert_ok(hf_trigger_many(fx.other, &made, &spec, 1, &fx.error));
    assert_true(made.existed); /* its own */
}

static hf_schedule_spec nightly(void)
{
    hf_schedule_spec spec = HF_SCHEDULE_INIT;
    spec.name = "nightly";
    spec.cron = "@daily";
    spec.workflow = WORK;
    return spec;
}

static void a_stranger_has_schedules_of_its_own(void **state)
{
    hf_schedule_spec spec = nightly();
    hf_schedule *schedule = NULL;
    hf_schedules *all = NULL;
    int64_t times[3];
    size_t found = 0;
    (void)state;
    assert_ok(hf_schedule_set(fx.client, &spec, &fx.error));
    const char *before = dump();
    assert_code(hf_schedule_get(fx.other, &schedule, "nightly", &fx.error), HF_NOT_FOUND);
    assert_code(hf_schedule_next(fx.other, "nightly", times, 3, &found, &fx.error), HF_NOT_FOUND);
    assert_code(hf_schedule_pause(fx.other, "nightly", &fx.error), HF_NOT_FOUND);
    assert_code(hf_schedule_resume(fx.other, "nightly", &fx.error), HF_NOT_FOUND);
    assert_code(hf_schedule_delete(fx.other, "nightly", &fx.error), HF_NOT_FOUND);
    assert_code(hf_schedule_set(fx.other, &spec, &fx.error), HF_UNKNOWN_WORKFLOW);
    assert_ok(hf_schedule_list(fx.other, &all, &fx.error));
    assert_int_equal(all->count, 0);
    hf_schedules_free(all);
    assert_string_equal(before, dump());
    assert_ok(hf_schedule_delete(fx.client, "nightly", &fx.error));
}

static void a_stranger_has_tokens_of_its_own(void **state)
{
    hf_token_spec spec = HF_TOKEN_INIT;
    hf_token_made made;
    hf_token_access access;
    hf_tokens *tokens = NULL;
    (void)state;
    spec.name = "web";
    spec.roles = HF_ROLE_ADMIN;
    assert_ok(hf_token_create(fx.client, &made, &spec, &fx.error));
    assert_code(hf_token_revoke(fx.other, made.id, &fx.error), HF_NOT_FOUND);
    assert_ok(hf_token_list(fx.other, &tokens, &fx.error));
    assert_int_equal(tokens->count, 0);
    hf_tokens_free(tokens);
    /* whoever checks it, it is ours */
    assert_ok(hf_token_check(fx.other, made.secret, &access, &fx.error));
    assert_string_equal(access.tenant, fx.tenant);
}

static void a_strangers_subscriptions_are_their_own(void **state)
{
    hf_subscription_spec spec = HF_SUBSCRIPTION_INIT;
    hf_subscription *found = NULL;
    hf_subscriptions *all = NULL;
    int status = 0;
    (void)state;
    spec.name = "hook";
    spec.url = "http://127.0.0.1:1/ours";
    assert_ok(hf_subscription_put(fx.client, &spec, NULL, &fx.error));
    assert_code(hf_subscription_get(fx.other, &found, "hook", &fx.error), HF_NOT_FOUND);
    assert_code(hf_subscription_park(fx.other, "hook", &fx.error), HF_NOT_FOUND);
    assert_code(hf_subscription_resume(fx.other, "hook", &fx.error), HF_NOT_FOUND);
    assert_code(hf_subscription_delete(fx.other, "hook", &fx.error), HF_NOT_FOUND);
    assert_code(hf_subscription_test(fx.other, "hook", &status, &fx.error), HF_NOT_FOUND);
    assert_ok(hf_subscription_list(fx.other, &all, &fx.error));
    assert_int_equal(all->count, 0);
    hf_subscriptions_free(all);
    spec.url = "http://127.0.0.1:1/theirs";
    assert_ok(hf_subscription_put(fx.other, &spec, NULL, &fx.error));
    assert_ok(hf_subscription_get(fx.client, &found, "hook", &fx.error));
    assert_string_equal(found->url, "http://127.0.0.1:1/ours");
    hf_subscription_free(found);
}

static void a_stranger_sees_nothing_of_an_outbox(void **state)
{
    static const hf_new_outbox entry = { .type = "order.paid", .payload = "1" };
    hf_subscription_spec spec = HF_SUBSCRIPTION_INIT;
    hf_outbox_filter filter = HF_OUTBOX_FILTER_INIT;
    hf_outbox_page *page = NULL;
    hf_outbox_lag lag;
    (void)state;
    spec.name = "hook";
    spec.url = "http://127.0.0.1:1/ours";
    assert_ok(hf_subscription_put(fx.client, &spec, NULL, &fx.error));
    trigger(WORK);
    hf_transition t = turn_of(claim(), HF_TURN_WAIT);
    t.outbox = &entry;
    t.outbox_count = 1;
    commit(&t);
    assert_ok(hf_outbox_lag_get(fx.client, &lag, &fx.error));
    assert_int_equal(lag.undelivered, 1);
    assert_ok(hf_outbox_lag_get(fx.other, &lag, &fx.error));
    assert_int_equal(lag.undelivered, 0);
    filter.run = t.run;
    assert_ok(hf_outbox_list(fx.other, &page, &filter, &fx.error));
    assert_int_equal(page->count, 0);
    hf_outbox_page_free(page);
}

static void a_strangers_dead_letters_are_their_own(void **state)
{
    static const hf_dead_letter_filter any = HF_DEAD_LETTER_FILTER_INIT;
    hf_dead_letters *letters = NULL;
    hf_dead_letter *letter = NULL;
    (void)state;
    hf_id run = trigger(WORK);
    sql("INSERT INTO dead_letter (tenant_id, id, run_id, reason, envelope, created_at) SELECT "
        "tenant_id, id, id, 'poison', '{}', 1 FROM run WHERE id = %s",
        sql_id(run));
    assert_ok(hf_dead_letter_list(fx.other, &letters, &any, &fx.error));
    assert_int_equal(letters->count, 0);
    hf_dead_letters_free(letters);
    assert_code(hf_dead_letter_get(fx.other, &letter, run, &fx.error), HF_NOT_FOUND);
    assert_code(hf_dead_letter_requeue(fx.other, run, &fx.error), HF_NOT_FOUND);
    assert_code(hf_dead_letter_discard(fx.other, run, &fx.error), HF_NOT_FOUND);
    assert_ok(hf_dead_letter_get(fx.client, &letter, run, &fx.error));
    hf_dead_letter_free(letter);
}

static void a_stranger_has_nothing_to_do_with_a_task(void **state)
{
    hf_new_task asked = { .name = "approve" };
    hf_task_page *page = NULL;
    hf_task *task = NULL;
    (void)state;
    trigger(WORK);
    hf_transition t = turn_of(claim(), HF_TURN_WAIT);
    t.tasks = &asked;
    t.task_count = 1;
    commit(&t);
    assert_ok(hf_task_list(fx.client, &page, NULL, &fx.error));
    assert_int_equal(page->count, 1);
    hf_id id = page->items[0].id;
    hf_task_page_free(page);
    assert_ok(hf_task_list(fx.other, &page, NULL, &fx.error));
    assert_int_equal(page->count, 0);
    hf_task_page_free(page);
    assert_code(hf_task_get(fx.other, &task, id, &fx.error), HF_NOT_FOUND);
    assert_code(hf_task_claim(fx.other, id, 0, &fx.error), HF_NOT_FOUND);
    assert_code(hf_task_release(fx.other, id, 0, &fx.error), HF_NOT_FOUND);
    assert_code(hf_task_reassign(fx.other, id, "them", 0, &fx.error), HF_NOT_FOUND);
    assert_code(hf_task_complete(fx.other, id, "yes", NULL, 0, &fx.error), HF_NOT_FOUND);
    assert_ok(hf_task_get(fx.client, &task, id, &fx.error));
    assert_string_equal(task->status, "open");
    hf_task_free(task);
}

static void a_stranger_does_not_learn_whom_else_a_worker_serves(void **state)
{
    hf_worker_list *workers = NULL;
    (void)state;
    sql("INSERT INTO worker (name, tenants, serves, host, pid, program, threads, started_at, "
        "seen_at, expires_at) VALUES ('both-%s', '[\"%s\",\"%s\"]', '[\"*\"]', 'h', 1, 'p', 1, 1, "
        "1, 1)",
        fx.tenant, fx.tenant, fx.other_tenant);
    sql("INSERT INTO worker (name, tenants, serves, host, pid, program, threads, started_at, "
        "seen_at, expires_at) VALUES ('mine-%s', '[\"%s\"]', '[\"*\"]', 'h', 1, 'p', 1, 1, 1, 1)",
        fx.tenant, fx.tenant);
    assert_ok(hf_workers(fx.other, &workers, &fx.error));
    assert_int_equal(workers->count, 1);
    assert_string_equal(workers->items[0].tenants, text_of("[\"%s\"]", fx.other_tenant));
    hf_worker_list_free(workers);
    sql("DELETE FROM worker");
}

/* ---- Tenants themselves ---- */

static void a_tenant_must_exist_to_be_used(void **state)
{
    hf_client *client = NULL;
    (void)state;
    assert_code(hf_open_as(&client, fx.root, "nobody", NULL, &fx.error), HF_NOT_FOUND);
    assert_code(hf_tenant_disable(fx.root, "nobody", true, &fx.error), HF_NOT_FOUND);
}

static void creating_a_tenant_twice_is_no_mistake(void **state)
{
    hf_tenants *tenants = NULL;
    int found = 0;
    (void)state;
    assert_ok(hf_tenant_create(fx.root, fx.tenant, &fx.error));
    assert_ok(hf_tenant_disable(fx.root, fx.tenant, true, &fx.error));
    assert_ok(hf_tenant_create(fx.root, fx.tenant, &fx.error));
    assert_ok(hf_tenant_list(fx.root, &tenants, &fx.error));
    for (size_t i = 0; i < tenants->count; i++)
        if (strcmp(tenants->items[i].name, fx.tenant) == 0) {
            found++;
            assert_true(tenants->items[i].disabled);
        }
    hf_tenants_free(tenants);
    assert_int_equal(found, 1);
}

static void what_runs_in_a_disabled_tenant_may_be_finished(void **state)
{
    const hf_claimed *held = claim_new();
    hf_trigger_spec child = spec_of(WORK);
    hf_transition t = turn_of(held, HF_TURN_SUCCEED);
    (void)state;
    assert_ok(hf_tenant_disable(fx.root, fx.tenant, true, &fx.error));
    t.starts = &child;
    t.start_count = 1;
    commit(&t);
    expect_nothing_due();
    assert_ok(hf_tenant_disable(fx.root, fx.tenant, false, &fx.error));
    claim();
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(a_stranger_cannot_read_a_run),
    CONTRACT_TEST(a_stranger_finds_nothing_by_any_filter),
    CONTRACT_TEST(a_stranger_cannot_change_or_signal_a_run),
    CONTRACT_TEST(a_stranger_with_the_right_version_cannot_hold_a_run),
    CONTRACT_TEST(a_stranger_is_not_told_that_a_run_was_cancelled),
    CONTRACT_TEST(a_stranger_does_not_claim_our_runs),
    CONTRACT_TEST(a_stranger_has_workflows_of_its_own),
    CONTRACT_TEST(one_key_in_two_tenants_is_two_runs),
    CONTRACT_TEST(a_strangers_locks_are_other_locks),
    CONTRACT_TEST(a_commit_cannot_start_children_in_another_tenant),
    CONTRACT_TEST(a_stranger_counts_and_forks_nothing),
    CONTRACT_TEST(a_stranger_cannot_use_our_workflows_in_any_trigger),
    CONTRACT_TEST(a_strangers_key_is_no_conflict_in_any_trigger),
    CONTRACT_TEST(a_stranger_has_schedules_of_its_own),
    CONTRACT_TEST(a_stranger_has_tokens_of_its_own),
    CONTRACT_TEST(a_stranger_does_not_learn_whom_else_a_worker_serves),
    CONTRACT_TEST(a_strangers_subscriptions_are_their_own),
    CONTRACT_TEST(a_stranger_sees_nothing_of_an_outbox),
    CONTRACT_TEST(a_strangers_dead_letters_are_their_own),
    CONTRACT_TEST(a_stranger_has_nothing_to_do_with_a_task),
    CONTRACT_TEST(a_tenant_must_exist_to_be_used),
    CONTRACT_TEST(creating_a_tenant_twice_is_no_mistake),
    CONTRACT_TEST(what_runs_in_a_disabled_tenant_may_be_finished),
};
CONTRACT("tenants", tests)
