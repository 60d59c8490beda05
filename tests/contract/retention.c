/* Retention: what has ended goes after the time that its workflow says; work under way is left alone. And the chores
 * that workers do for the whole store: retention and sealing. The clock is the test's. F5.
 * SPDX-License-Identifier: Apache-2.0 */
#include "contract/fixture.h"

#include <holdfast/audit.h>
#include <holdfast/worker.h>

#include <libpq-fe.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "audit/seal.h"
#include "client/client.h"
#include "client/ids.h"
#include "client/retention.h"
#include "kernel/chores.h"
#include "support/sanitized.h"

#define KEPT HF_HOURS(1)
#if SANITIZED
/* So slow that all may be gone before the next run has ended. */
enum { MANY = 10000, AT_ONCE = 1, AT_LEAST = 0 };
#else
enum { MANY = 30000, AT_ONCE = 6, AT_LEAST = 1 };
#endif
/* AT_ONCE: runs between two looks at what is left, since to count takes longer than to run. AT_LEAST: those that end
 * meanwhile. */

/* ---- Doing ---- */

/* Everything that has expired goes; gives how many runs that were. */
static int64_t expire(void)
{
    struct hf__retention walk;
    assert_ok(hf__retention_begin(&walk, fx.client, &fx.error));
    while (!walk.done)
        assert_ok(hf__retention_step(&walk, &fx.error));
    int64_t removed = walk.removed;
    hf__retention_end(&walk);
    return removed;
}

static int64_t next_expiry(void)
{
    struct hf__retention walk;
    int64_t at;
    assert_ok(hf__retention_begin(&walk, fx.client, &fx.error));
    assert_ok(hf__retention_next(&walk, &at, &fx.error));
    hf__retention_end(&walk);
    return at;
}

/* Nothing of an earlier test is left to expire: retention is for the whole store. */
static int set_up(void **state)
{
    int status = fixture_set_up(state);
    advance(2 * HF__DELETED_KEPT);
    expire();
    return status;
}

static void keep_for(int64_t retention)
{
    define_with((hf_workflow){ .name = WORK, .retention = retention }, HF_SET_RETENTION);
}

static bool is_there(hf_id id)
{
    return sql_number("SELECT count(*) FROM run WHERE id = %s", sql_id(id)) == 1;
}

/* ---- What goes ---- */

static void an_ended_run_goes_after_its_time_with_all_that_belongs_to_it(void **state)
{
    static const char *const tags[] = { "t" };
    hf_trigger_spec spec = spec_of(WORK);
    hf_new_task task = { .name = "check" };
    (void)state;
    keep_for(KEPT);
    spec.tags = tags;
    spec.tag_count = 1;
    hf_id id = trigger_spec(&spec);
    send_signal(id, "s");
    hf_transition t = turn_of(claim(), HF_TURN_SUCCEED);
    t.tasks = &task;
    t.task_count = 1;
    commit(&t);
    sql("INSERT INTO dead_letter (tenant_id, id, run_id, reason, envelope, created_at) "
        "SELECT tenant_id, id, id, 'poison', '{}', 0 FROM run WHERE id = %s",
        sql_id(id));
    advance(KEPT);
    assert_int_equal(expire(), 0);
    advance(1);
    assert_int_equal(expire(), 1);
    expect_gone(id);
}

static void without_a_retention_nothing_goes_however_old(void **state)
{
    hf_id id = run_that_is(HF_SUCCEEDED, 0);
    (void)state;
    advance(HF_DAYS(3000));
    assert_int_equal(expire(), 0);
    expect_status(id, HF_SUCCEEDED);
}

static void work_that_has_not_ended_is_left_alone_however_old(void **state)
{
    (void)state;
    keep_for(KEPT);
    for (hf_status status = HF_PENDING; status <= HF_PAUSED; status++) {
        hf_id id = run_that_is(status, 0);
        advance(HF_DAYS(300));
        assert_int_equal(expire(), 0);
        expect_status(id, status);
        change(id, HF_CANCEL);
        advance(KEPT + 1);
        assert_int_equal(expire(), 1);
    }
}

static void each_workflow_has_its_own_time(void **state)
{
    (void)state;
    keep_for(KEPT);
    define_with((hf_workflow){ .name = "longer", .retention = 3 * KEPT }, HF_SET_RETENTION);
    hf_id longer = trigger("longer");
    succeed(claim());
    hf_id shorter = run_that_is(HF_FAILED, 0);
    advance(KEPT + 1);
    assert_int_equal(expire(), 1);
    assert_false(is_there(shorter));
    assert_true(is_there(longer));
    advance(2 * KEPT);
    assert_int_equal(expire(), 1);
}

static void a_retried_run_is_kept(void **state)
{
    (void)state;
    keep_for(KEPT);
    hf_id id = run_that_is(HF_FAILED, 0);
    change(id, HF_RETRY_RUN);
    advance(2 * KEPT);
    assert_int_equal(expire(), 0);
    expect_status(id, HF_PENDING);
}

static hf_id parent_that_waits_for(hf_id *child)
{
    hf_trigger_spec spec = spec_of(WORK);
    hf_id parent = trigger(WORK);
    hf_transition t = turn_of(claim(), HF_TURN_WAIT);
    t.children = &spec;
    t.child_count = 1;
    t.wait_children = 2; /* of which the second never comes */
    assert_ok(hf_commit(fx.client, &t, child, &fx.error));
    return parent;
}

static void an_ended_child_is_kept_until_its_parent_has_ended(void **state)
{
    hf_id child;
    (void)state;
    keep_for(KEPT);
    hf_id parent = parent_that_waits_for(&child);
    succeed(claim());
    expect_status(child, HF_SUCCEEDED);
    advance(2 * KEPT);
    assert_int_equal(expire(), 0);
    change(parent, HF_CANCEL);
    assert_int_equal(expire(), 1);
    assert_false(is_there(child));
    advance(2 * KEPT);
    expire(); /* and what cancelled its children */
    assert_false(is_there(parent));
}

static void an_ended_parent_is_kept_until_its_children_have_ended(void **state)
{
    hf_id child;
    (void)state;
    keep_for(KEPT);
    hf_id parent = parent_that_waits_for(&child);
    send_signal(parent, "go on");
    const hf_claims *both = claim_as(WORKER, 2);
    assert_int_equal(both->count, 2);
    bool first = hf_id_equal(both->items[0].run.id, parent);
    succeed(&both->items[first ? 0 : 1]);
    advance(2 * KEPT);
    assert_int_equal(expire(), 0);
    assert_true(is_there(parent));
    change(child, HF_CANCEL);
    assert_int_equal(expire(), 1);
    assert_false(is_there(parent));
}

static void a_deleted_run_goes_when_it_can_no_longer_be_restored(void **state)
{
    hf_id id = run_that_is(HF_WAITING, 0);
    (void)state;
    change(id, HF_DELETE);
    advance(HF__DELETED_KEPT);
    assert_int_equal(expire(), 0);
    advance(1);
    assert_int_equal(expire(), 1);
    expect_gone(id);
}

static void what_runs_in_all_tenants_goes(void **state)
{
    (void)state;
    keep_for(KEPT);
    hf_id id = run_that_is(HF_SUCCEEDED, 0);
    advance(KEPT + 1);
    hf_client *mine = fx.client;
    fx.client = fx.other;
    assert_int_equal(expire(), 1);
    fx.client = mine;
    assert_false(is_there(id));
}

static void the_next_time_is_that_of_the_first_run_to_expire(void **state)
{
    (void)state;
    keep_for(KEPT);
    hf_id stuck;
    hf_id parent = parent_that_waits_for(&stuck);
    succeed(claim());
    advance(2 * KEPT); /* the child has expired, but must stay: it is no reason to wake up */
    run_that_is(HF_SUCCEEDED, 0);
    int64_t first = now() + KEPT;
    advance(1000);
    run_that_is(HF_SUCCEEDED, 0);
    assert_int_equal(next_expiry(), first);
    change(parent, HF_CANCEL);
}

/* ---- Workers ---- */

struct staff {
    hf_worker *worker;
    pthread_t thread;
    hf_code ended;
    hf_error error;
};

static hf_code do_nothing(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)ctx, (void)input, (void)err, (void)arg;
    return HF_OK;
}

static void *run_worker(void *arg)
{
    struct staff *staff = arg;
    staff->ended = hf_worker_run(staff->worker, &staff->error);
    return NULL;
}

/* Of the default tenant, and of the test's. */
static void hire(struct staff *staff)
{
    const char *tenants[] = { "default", fx.tenant };
    hf_worker_options options = HF_WORKER_OPTIONS_INIT;
    options.threads = 2;
    options.poll = HF_MILLISECONDS(100);
    options.heartbeat = HF_MILLISECONDS(100);
    options.tenants = tenants;
    options.tenant_count = 2;
    assert_ok(hf_worker_new(&staff->worker, fx.root, &options, &fx.error));
    assert_ok(hf_worker_handle(staff->worker, WORK, do_nothing, NULL, &fx.error));
    assert_int_equal(pthread_create(&staff->thread, NULL, run_worker, staff), 0);
}

static void dismiss(struct staff *staff)
{
    hf_worker_stop(staff->worker);
    pthread_join(staff->thread, NULL);
    hf_worker_free(staff->worker);
    if (staff->ended != HF_OK)
        fail_msg("%s", staff->error.message);
}

#define AWAIT(condition)                                                                           \
    do {                                                                                           \
        int tries = 0;                                                                             \
        while (!(condition)) {                                                                     \
            assert_true(tries++ < 4000);                                                           \
            usleep(tries < 20 ? 10000 : 50000);                                                    \
        }                                                                                          \
    } while (0)

/* Anybody's transaction on the server holds sealing up: then it looks again, later by the store's clock. */
#define AWAIT_SEALING(condition)                                                                   \
    do {                                                                                           \
        int looks = 0;                                                                             \
        while (!(condition)) {                                                                     \
            assert_true(looks++ < 2000);                                                           \
            usleep(300000);                                                                        \
            advance(HF_SECONDS(10));                                                               \
        }                                                                                          \
    } while (0)

/* All but lines of sealing runs, which are sealed with what comes next. Time passes: on PostgreSQL a transaction of any
 * database of the server, such as another test's, holds a sealing run up for a moment. */
static bool all_is_sealed(void)
{
    bool postgres = fx.backend == BACKEND_POSTGRES;
    advance(HF_MILLISECONDS(100));
    return sql_number("SELECT count(*) FROM event e WHERE NOT EXISTS (SELECT 1 FROM seal s WHERE "
                      "e.%s < s.%s) AND NOT EXISTS (SELECT 1 FROM run r JOIN workflow w ON w.id = "
                      "r.workflow_id WHERE r.id = e.run_id AND w.name = '" HF__CHORE_SEAL "')",
                      postgres ? "xid" : "position", postgres ? "hi_xid" : "hi_position") == 0;
}

static void expect_true_seals(void)
{
    hf_audit_report report;
    assert_ok(hf_audit_verify(fx.root, &report, NULL, &fx.error));
    assert_int_equal(report.problems, 0);
}

static int64_t runs_of(const char *workflow, const char *where)
{
    return sql_number("SELECT count(*) FROM run r JOIN workflow w ON w.id = r.workflow_id "
                      "WHERE w.name = '%s' AND %s",
                      workflow, where);
}

static int64_t unfinished(void)
{
    return sql_number("SELECT count(*) FROM run r JOIN tenant t ON t.id = r.tenant_id "
                      "WHERE t.name = '%s' AND r.status < 4",
                      fx.tenant);
}

static hf_run *retention_run(void)
{
    hf_run *run = NULL;
    assert_ok(hf_get_by_key(fx.root, &run, HF__CHORE_RETENTION, "store", &fx.error));
    return keep(run, (void (*)(void *))hf_run_free);
}

static bool retention_sleeps(void)
{
    const hf_run *run = retention_run();
    return run->status == HF_WAITING && run->waiting_until > now();
}

static void workers_remove_what_has_expired_and_sleep_until_the_next(void **state)
{
    struct staff staff[2] = { 0 };
    (void)state;
    keep_for(HF_MINUTES(30));
    hf_id old = run_that_is(HF_SUCCEEDED, 0);
    advance(HF_MINUTES(20));
    hf_id young = run_that_is(HF_SUCCEEDED, 0);
    int64_t due = now() + HF_MINUTES(30);
    advance(HF_MINUTES(15));
    hire(&staff[0]);
    hire(&staff[1]);
    AWAIT(!is_there(old) && retention_sleeps());
    assert_true(is_there(young));
    assert_true(llabs(retention_run()->waiting_until - due) <= 1);
    advance(HF_MINUTES(15) + 2);
    AWAIT(!is_there(young));
    dismiss(&staff[0]);
    dismiss(&staff[1]);
    assert_int_equal(runs_of(HF__CHORE_RETENTION, "true"), 1);
}

static void bury(const char *name, int64_t died_at)
{
    sql("INSERT INTO worker (name, tenants, serves, host, pid, program, threads, started_at, "
        "seen_at, expires_at) VALUES ('%s-%s', '[]', '[]', 'h', 1, 'p', 1, 0, 0, %lld)",
        fx.tenant, name, (long long)died_at);
}

static bool is_remembered(const char *name)
{
    return sql_number("SELECT count(*) FROM worker WHERE name = '%s-%s'", fx.tenant, name) == 1;
}

static void workers_that_died_more_than_a_day_ago_are_forgotten(void **state)
{
    struct staff staff = { 0 };
    (void)state;
    bury("long-dead", now() - HF_DAYS(1) - 1);
    bury("newly-dead", now() - HF_DAYS(1) + HF_HOURS(2));
    hire(&staff);
    AWAIT(!is_remembered("long-dead") && retention_sleeps());
    assert_true(is_remembered("newly-dead"));
    advance(HF_HOURS(2) + 1);
    AWAIT(!is_remembered("newly-dead"));
    dismiss(&staff);
}

static int64_t told(void)
{
    return sql_number("SELECT count(*) FROM outbox o JOIN tenant t ON t.id = o.tenant_id "
                      "WHERE t.name = '%s' AND o.published_at IS NOT NULL",
                      fx.tenant);
}

/* Of a run that is itself kept. */
static void published_events_go_after_seven_days(void **state)
{
    struct staff staff = { 0 };
    hf_new_outbox entry = { .type = "told" };
    (void)state;
    hf_id id = trigger(WORK);
    hf_transition t = turn_of(claim(), HF_TURN_SUCCEED);
    t.outbox = &entry;
    t.outbox_count = 1;
    commit(&t);
    assert_int_equal(told(), 1);
    advance(HF_DAYS(7));
    hire(&staff);
    AWAIT(retention_sleeps());
    assert_int_equal(told(), 1);
    advance(HF_HOURS(1) + 1);
    AWAIT(told() == 0);
    dismiss(&staff);
    assert_true(is_there(id));
}

static void workers_seal_what_is_written_and_rest_when_nothing_is(void **state)
{
    struct staff staff[2] = { 0 };
    (void)state;
    for (int i = 0; i < 50; i++)
        trigger(WORK);
    hire(&staff[0]);
    hire(&staff[1]);
    AWAIT(unfinished() == 0 && retention_sleeps());
    AWAIT_SEALING(all_is_sealed() && runs_of(HF__CHORE_SEAL, "r.status < 4") == 0);
    int64_t sealings;
    int restless = 0;
    do { /* what was written last may have been worth one more */
        sealings = runs_of(HF__CHORE_SEAL, "true");
        usleep(1000000); /* ten beats */
    } while (runs_of(HF__CHORE_SEAL, "true") != sealings && ++restless < 10);
    assert_true(restless < 10);
    int64_t done = runs_of(HF__CHORE_SEAL, "r.status = 4"); /* another one may be held up */
    trigger(WORK);
    AWAIT_SEALING(all_is_sealed() && runs_of(HF__CHORE_SEAL, "r.status = 4") > done);
    expect_true_seals();
    dismiss(&staff[0]);
    dismiss(&staff[1]);
}

static void a_cancelled_retention_comes_again_by_itself(void **state)
{
    struct staff staff = { 0 };
    (void)state;
    hire(&staff);
    AWAIT(retention_sleeps());
    dismiss(&staff);
    assert_ok(hf__steer_run(fx.root, retention_run()->id, HF_CANCEL, &fx.error));
    hire(&staff);
    AWAIT(retention_sleeps());
    dismiss(&staff);
    assert_int_equal(runs_of(HF__CHORE_RETENTION, "true"), 1);
}

/* The run that closes the next block, as a worker starts it. */
static hf_id start_sealing(void)
{
    int64_t block = sql_number("SELECT coalesce(max(block), 0) + 1 FROM seal");
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    spec.workflow = HF__CHORE_SEAL;
    spec.key = text_of("block-%lld", (long long)block);
    spec.input = text_of("{\"block\":%lld}", (long long)block);
    struct hf__op op = { .kind = HF__OP_TRIGGER,
                         .tenant = fx.root->tenant_id,
                         .trigger = { .id = hf__new_id(), .spec = &spec },
                         .error = &fx.error };
    assert_ok(hf__workflow_ensure(fx.root, HF__CHORE_SEAL, &fx.error));
    hf__engine_apply(fx.root->engine, &op, 1);
    assert_ok(op.code);
    return op.trigger.existed ? op.trigger.existing : op.trigger.id; /* an earlier test's */
}

static void a_cancelled_sealing_run_comes_again_by_itself(void **state)
{
    struct staff staff = { 0 };
    hf_run *run = NULL;
    (void)state;
    trigger(WORK);
    hf_id id = start_sealing();
    assert_ok(hf__steer_run(fx.root, id, HF_CANCEL, &fx.error));
    hire(&staff);
    AWAIT_SEALING(unfinished() == 0 && all_is_sealed());
    expect_true_seals();
    dismiss(&staff);
    assert_ok(hf_get(fx.root, &run, id, &fx.error));
    assert_int_equal(run->status, HF_SUCCEEDED);
    hf_run_free(run);
}

/* Lines of one run, written in one transaction: on PostgreSQL no block parts them. */
static void write_lines(int count)
{
    hf_id run = trigger(WORK);
    sql("WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < %d) "
        "INSERT INTO event (run_id, seq, version, tenant_id, at, kind, name) SELECT r.id, "
        "r.event_seq + n, r.version, r.tenant_id, r.created_at, 1, 'line' FROM n, run r "
        "WHERE r.id = %s",
        count, sql_id(run));
    sql("UPDATE run SET event_seq = event_seq + %d WHERE id = %s", count, sql_id(run));
}

/* Runs of the workflow that were made after this one and before it ended. */
static int64_t created_meanwhile(const char *workflow, hf_id run)
{
    const char *lines = text_of("FROM event WHERE run_id = %s", sql_id(run));
    return sql_number("SELECT count(*) FROM event e JOIN run r ON r.id = e.run_id JOIN workflow w "
                      "ON w.id = r.workflow_id WHERE w.name = '%s' AND e.name = 'created' AND "
                      "e.position > (SELECT min(position) %s) AND e.position < (SELECT "
                      "max(position) %s)",
                      workflow, lines, lines);
}

/* The first block is a small one, for the second transaction would make it too large. */
static void a_sealing_run_goes_on_while_there_is_more(void **state)
{
    struct staff staff = { 0 };
    (void)state;
    write_lines(HF__SEAL_EVENTS / 4);
    write_lines(HF__SEAL_EVENTS);
    hf_id id = start_sealing();
    hire(&staff);
    AWAIT_SEALING(sql_number("SELECT status FROM run WHERE id = %s", sql_id(id)) == HF_SUCCEEDED);
    AWAIT(unfinished() == 0);
    dismiss(&staff);
    assert_true(sql_number("SELECT count(*) FROM event WHERE name = 'waiting' AND run_id = %s",
                           sql_id(id)) > 0);
    assert_int_equal(created_meanwhile(HF__CHORE_SEAL, id), 0);
}

static int64_t next_seal_look(void)
{
    return sql_number(
        "SELECT coalesce(max(r.run_at), 0) FROM run r JOIN workflow w ON w.id = r.workflow_id "
        "WHERE w.name = '" HF__CHORE_SEAL "' AND r.status = 2");
}

/* Each wait leaves lines in the journal, and somebody's transaction may be open for hours. */
static void a_sealing_run_that_is_held_up_looks_more_and_more_seldom(void **state)
{
    struct staff staff = { 0 };
    int64_t wait = 0;
    (void)state;
    if (fx.backend != BACKEND_POSTGRES)
        skip();
    PGconn *dawdler = PQconnectdb(fx.url);
    PQclear(PQexec(dawdler, "BEGIN; SELECT pg_current_xact_id()"));
    trigger(WORK);
    hire(&staff);
    for (int looks = 0; wait < HF_MINUTES(5); looks++) {
        assert_true(looks < 15);
        AWAIT(next_seal_look() > now());
        wait = next_seal_look() - now();
        assert_true(wait <= HF_MINUTES(5));
        advance(wait);
    }
    PQfinish(dawdler);
    AWAIT_SEALING(unfinished() == 0 && all_is_sealed());
    expect_true_seals();
    dismiss(&staff);
}

static void sealing_runs_go_after_a_week(void **state)
{
    (void)state;
    struct staff staff = { 0 };
    trigger(WORK);
    hire(&staff);
    AWAIT_SEALING(runs_of(HF__CHORE_SEAL, "r.status = 4") > 0);
    dismiss(&staff);
    advance(HF_DAYS(6));
    expire();
    assert_true(runs_of(HF__CHORE_SEAL, "r.status = 4") > 0);
    advance(HF_DAYS(2));
    expire();
    assert_int_equal(runs_of(HF__CHORE_SEAL, "r.status = 4"), 0);
    assert_int_equal(runs_of(HF__CHORE_RETENTION, "true"), 1);
}

static void make_ended_runs(void)
{
    const char *numbers = text_of("WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n "
                                  "WHERE n < %d)",
                                  MANY);
    const char *id = fx.backend == BACKEND_POSTGRES ? "gen_random_uuid()" : "randomblob(16)";
    sql("%s INSERT INTO run (tenant_id, id, workflow_id, lane, status, version, event_seq, "
        "created_at, updated_at, finished_at) SELECT w.tenant_id, %s, w.id, w.lane, 4, 2, 1, "
        "n, n, n FROM n, workflow w JOIN tenant t ON t.id = w.tenant_id "
        "WHERE w.name = '" WORK "' AND t.name = '%s'",
        numbers, id, fx.tenant);
    sql("INSERT INTO event (run_id, seq, version, tenant_id, at, kind, name) SELECT r.id, 1, 2, "
        "r.tenant_id, 0, 0, 'succeeded' FROM run r JOIN tenant t ON t.id = r.tenant_id "
        "WHERE t.name = '%s' AND r.created_at <= %d",
        fx.tenant, MANY);
}

static void have_work_done(int runs)
{
    for (int i = 0; i < runs; i++) {
        hf_run *run = NULL;
        hf_id id = trigger(WORK);
        assert_ok(hf_wait(fx.client, &run, id, HF_SECONDS(60), &fx.error));
        assert_int_equal(run->status, HF_SUCCEEDED);
        hf_run_free(run);
    }
}

static void tens_of_thousands_of_runs_go_while_work_goes_on(void **state)
{
    struct staff staff = { 0 };
    int64_t left = MANY;
    int meanwhile = 0;
    (void)state;
    make_ended_runs();
    keep_for(KEPT);
    advance(KEPT + HF_MINUTES(2)); /* whenever the chore wanted to wake up, it is due */
    hire(&staff);
    while (left > 0) {
        bool begun = left < MANY;
        have_work_done(AT_ONCE);
        left = sql_number("SELECT count(*) FROM run r JOIN tenant t ON t.id = r.tenant_id "
                          "WHERE t.name = '%s' AND r.created_at <= %d",
                          fx.tenant, MANY);
        if (begun && left > 0)
            meanwhile += AT_ONCE;
    }
    dismiss(&staff);
    assert_true(meanwhile >= AT_LEAST);
    assert_int_equal(sql_number("SELECT count(*) FROM event WHERE at = 0 AND name = 'succeeded'"),
                     0);
}

#define RETENTION_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, fixture_tear_down)

static const struct CMUnitTest tests[] = {
    RETENTION_TEST(an_ended_run_goes_after_its_time_with_all_that_belongs_to_it),
    RETENTION_TEST(without_a_retention_nothing_goes_however_old),
    RETENTION_TEST(work_that_has_not_ended_is_left_alone_however_old),
    RETENTION_TEST(each_workflow_has_its_own_time),
    RETENTION_TEST(a_retried_run_is_kept),
    RETENTION_TEST(an_ended_child_is_kept_until_its_parent_has_ended),
    RETENTION_TEST(an_ended_parent_is_kept_until_its_children_have_ended),
    RETENTION_TEST(a_deleted_run_goes_when_it_can_no_longer_be_restored),
    RETENTION_TEST(what_runs_in_all_tenants_goes),
    RETENTION_TEST(the_next_time_is_that_of_the_first_run_to_expire),
    RETENTION_TEST(workers_remove_what_has_expired_and_sleep_until_the_next),
    RETENTION_TEST(workers_that_died_more_than_a_day_ago_are_forgotten),
    RETENTION_TEST(published_events_go_after_seven_days),
    RETENTION_TEST(workers_seal_what_is_written_and_rest_when_nothing_is),
    RETENTION_TEST(a_cancelled_retention_comes_again_by_itself),
    RETENTION_TEST(a_cancelled_sealing_run_comes_again_by_itself),
    RETENTION_TEST(a_sealing_run_goes_on_while_there_is_more),
    RETENTION_TEST(a_sealing_run_that_is_held_up_looks_more_and_more_seldom),
    RETENTION_TEST(sealing_runs_go_after_a_week),
    RETENTION_TEST(tens_of_thousands_of_runs_go_while_work_goes_on),
};
CONTRACT("retention", tests)
