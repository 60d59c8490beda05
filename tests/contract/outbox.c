/* The outbox: who gets an event, when it is published, who is woken by it, and what the engine itself tells. F3.
 * SPDX-License-Identifier: Apache-2.0 */
#include "contract/fixture.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "client/client.h"
#include "client/outbox.h"
#include "contract/sql.h"
#include "kernel/chores.h"
#include "store/postgres.h"

static void subscribe_to(const char *name, const char *const *events, size_t count)
{
    hf_subscription_spec spec = HF_SUBSCRIPTION_INIT;
    spec.name = name;
    spec.url = "http://127.0.0.1:1/hook";
    spec.events = events;
    spec.event_count = count;
    assert_ok(hf_subscription_put(fx.client, &spec, NULL, &fx.error));
}

static void subscribe(const char *name, const char *event)
{
    subscribe_to(name, &event, event != NULL);
}

static const hf_subscription *subscription(const char *name)
{
    hf_subscription *found = NULL;
    assert_ok(hf_subscription_get(fx.client, &found, name, &fx.error));
    return keep(found, (void (*)(void *))hf_subscription_free);
}

static const hf_outbox_page *entries(const hf_outbox_filter *filter)
{
    hf_outbox_page *page = NULL;
    assert_ok(hf_outbox_list(fx.client, &page, filter, &fx.error));
    return keep(page, (void (*)(void *))hf_outbox_page_free);
}

static hf_transition emitting(const hf_claimed *held, hf_turn turn, const hf_new_outbox *entry)
{
    hf_transition t = turn_of(held, turn);
    t.outbox = entry;
    t.outbox_count = 1;
    return t;
}

/* A run that emits one event and succeeds. */
static hf_id emit(const char *type)
{
    const hf_claimed *held = claim_new();
    hf_new_outbox entry = { .type = type, .payload = "{\"n\":1}" };
    hf_transition t = emitting(held, HF_TURN_SUCCEED, &entry);
    commit(&t);
    return held->run.id;
}

/* The dispatcher of a subscription is due: claims it. */
static const hf_claimed *claim_dispatcher(void)
{
    const hf_claimed *held = claim();
    assert_string_equal(held->run.workflow, HF__CHORE_DISPATCH);
    return held;
}

static void go_to_sleep(const hf_claimed *held)
{
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    t.waiting_kind = HF__WAITING_OUTBOX;
    commit(&t);
}

static hf_id subscription_id(const char *name)
{
    hf_id id;
    const char *text = sql_text(fx.backend == BACKEND_POSTGRES
                                    ? "SELECT id FROM subscription WHERE run_id = %s"
                                    : "SELECT lower(hex(id)) FROM subscription WHERE run_id = %s",
                                sql_id(subscription(name)->run));
    char dashed[HF_ID_TEXT];
    if (strlen(text) == 32) {
        snprintf(dashed, sizeof dashed, "%.8s-%.4s-%.4s-%.4s-%.12s", text, text + 8, text + 12,
                 text + 16, text + 20);
        text = dashed;
    }
    assert_true(hf_id_parse(text, &id));
    return id;
}

/* As the dispatcher does once the receiver took them. Returns how many there were. */
static size_t deliver_all(const char *name)
{
    struct hf__arena arena = { 0 };
    struct hf__delivery *pending = NULL;
    const struct hf__delivery *ended[100];
    size_t count = 0;
    hf_id id = subscription_id(name);
    const struct hf__delivery_range range = { .subscription = id, .most = 100 };
    assert_ok(hf__deliveries_load(fx.client, &pending, &count, &range, &arena, &fx.error));
    for (size_t i = 0; i < count; i++)
        ended[i] = &pending[i];
    assert_ok(hf__deliveries_end(fx.client, id, ended, count, &fx.error));
    hf__arena_free(&arena);
    return count;
}

/* ---- Routing ---- */

static void an_event_goes_to_those_who_want_it(void **state)
{
    (void)state;
    subscribe("orders", "order.*");
    subscribe("paid", "order.paid");
    subscribe("all", NULL);
    subscribe("alerts", "holdfast.*");
    emit("order.paid");
    claim_as(WORKER, 10);
    emit("order.sent");
    emit("ordering");
    assert_int_equal(subscription("orders")->pending, 2);
    assert_int_equal(subscription("paid")->pending, 1);
    assert_int_equal(subscription("all")->pending, 3);
    assert_int_equal(subscription("alerts")->pending, 0);
}

static void what_nobody_wants_is_published_at_once(void **state)
{
    hf_outbox_filter filter = HF_OUTBOX_FILTER_INIT;
    hf_outbox_lag lag;
    (void)state;
    subscribe("orders", "order.*");
    emit("mail.sent");
    filter.undelivered = true;
    assert_int_equal(entries(&filter)->count, 0);
    assert_true(entries(NULL)->items[0].published_at > 0);
    assert_ok(hf_outbox_lag_get(fx.client, &lag, &fx.error));
    assert_int_equal(lag.undelivered, 0);
    expect_nothing_due();
}

static void another_tenants_subscription_gets_nothing(void **state)
{
    hf_subscription_spec spec = HF_SUBSCRIPTION_INIT;
    hf_subscriptions *list = NULL;
    (void)state;
    spec.name = "theirs";
    spec.url = "https://example.com";
    assert_ok(hf_subscription_put(fx.other, &spec, NULL, &fx.error));
    emit("order.paid");
    assert_true(entries(NULL)->items[0].published_at > 0);
    assert_ok(hf_subscription_list(fx.other, &list, &fx.error));
    assert_int_equal(list->count, 1);
    assert_int_equal(list->items[0].pending, 0);
    hf_subscriptions_free(list);
    assert_ok(hf_subscription_list(fx.client, &list, &fx.error));
    assert_int_equal(list->count, 0);
    hf_subscriptions_free(list);
}

static void an_event_is_published_when_the_last_subscription_has_got_it(void **state)
{
    hf_outbox_filter filter = HF_OUTBOX_FILTER_INIT;
    (void)state;
    filter.undelivered = true;
    subscribe("one", "order.*");
    subscribe("two", "order.paid");
    emit("order.paid");
    assert_int_equal(entries(&filter)->items[0].pending, 2);
    assert_int_equal(deliver_all("one"), 1);
    assert_int_equal(entries(&filter)->items[0].pending, 1);
    assert_int_equal(deliver_all("two"), 1);
    assert_int_equal(entries(&filter)->count, 0);
    assert_int_equal(deliver_all("two"), 0);
}

static void events_of_a_removed_subscription_are_published(void **state)
{
    hf_outbox_filter filter = HF_OUTBOX_FILTER_INIT;
    hf_subscription *none;
    (void)state;
    filter.undelivered = true;
    subscribe("one", "order.*");
    subscribe("two", "order.*");
    hf_id run = subscription("one")->run;
    emit("order.paid");
    assert_ok(hf_subscription_delete(fx.client, "one", &fx.error));
    assert_int_equal(entries(&filter)->items[0].pending, 1);
    assert_ok(hf_subscription_delete(fx.client, "two", &fx.error));
    assert_int_equal(entries(&filter)->count, 0);
    assert_true(get(run)->deleted_at > 0);
    assert_code(hf_subscription_get(fx.client, &none, "one", &fx.error), HF_NOT_FOUND);
    assert_code(hf_subscription_delete(fx.client, "one", &fx.error), HF_NOT_FOUND);
    subscribe("one", "order.*");
    assert_string_equal(subscription("one")->state, "active");
}

static void pages_of_the_outbox_follow_each_other(void **state)
{
    hf_outbox_filter filter = HF_OUTBOX_FILTER_INIT;
    (void)state;
    hf_id last = { { 0 } };
    for (int i = 0; i < 5; i++)
        last = emit(i % 2 ? "a.odd" : "a.even");
    filter.limit = 3;
    const hf_outbox_page *page = entries(&filter);
    assert_int_equal(page->count, 3);
    assert_true(hf_id_equal(page->items[0].run, last));
    filter.cursor = page->next;
    page = entries(&filter);
    assert_int_equal(page->count, 2);
    assert_null(page->next);
    filter.cursor = NULL;
    filter.limit = 0;
    filter.type = "a.odd";
    assert_int_equal(entries(&filter)->count, 2);
    filter.type = "a.*";
    assert_int_equal(entries(&filter)->count, 5);
    filter.type = "b.*";
    assert_int_equal(entries(&filter)->count, 0);
    filter.type = NULL;
    filter.run = last;
    assert_int_equal(entries(&filter)->count, 1);
    filter.cursor = "x";
    hf_outbox_page *none;
    assert_code(hf_outbox_list(fx.client, &none, &filter, &fx.error), HF_INVALID);
}

static void published_events_expire_in_small_batches(void **state)
{
    int64_t removed = 0;
    (void)state;
    subscribe("slow", "slow.*");
    for (int i = 0; i < 3; i++)
        emit("quick");
    emit("slow.one");
    assert_ok(hf__outbox_expire(fx.client, now() - HF_HOURS(1), 2, &removed, &fx.error));
    assert_int_equal(removed, 0);
    assert_ok(hf__outbox_expire(fx.client, now() + HF_HOURS(1), 2, &removed, &fx.error));
    assert_int_equal(removed, 2);
    assert_ok(hf__outbox_expire(fx.client, now() + HF_HOURS(1), 2, &removed, &fx.error));
    assert_int_equal(removed, 1);
    assert_int_equal(entries(NULL)->count, 1);
    assert_string_equal(entries(NULL)->items[0].type, "slow.one");
}

/* ---- Settings ---- */

static void the_secret_is_given_once(void **state)
{
    hf_subscription_spec spec = HF_SUBSCRIPTION_INIT;
    char secret[HF_SECRET_TEXT], again[HF_SECRET_TEXT];
    (void)state;
    spec.name = "s";
    spec.url = "https://example.com/hook";
    assert_ok(hf_subscription_put(fx.client, &spec, secret, &fx.error));
    assert_int_equal(strncmp(secret, "whsec_", 6), 0);
    assert_int_equal(strlen(secret), 6 + 32);
    spec.mode = HF_EVENT_BINARY;
    assert_ok(hf_subscription_put(fx.client, &spec, again, &fx.error));
    assert_string_equal(again, "");
    assert_string_equal(sql_text("SELECT secret FROM subscription WHERE run_id = %s",
                                 sql_id(subscription("s")->run)),
                        secret);
    assert_string_equal(subscription("s")->mode, "binary");
    spec.secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    assert_ok(hf_subscription_put(fx.client, &spec, again, &fx.error));
    assert_string_equal(again, spec.secret);
}

static void bad_settings_are_refused(void **state)
{
    static const char *const urls[] = { NULL,           "",
                                        "ftp://x/",     "http://",
                                        "https:///x",   "http://u:p@h/",
                                        "http://h/a b", "file:///etc/passwd" };
    static const char *const secrets[] = { "", "whsec_", "whsec_c2hvcnQ=", "abc", "whsec_$$$$" };
    hf_subscription_spec spec = HF_SUBSCRIPTION_INIT;
    const char *pattern = "a*b";
    (void)state;
    spec.name = "s";
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        spec.url = urls[i];
        assert_code(hf_subscription_put(fx.client, &spec, NULL, &fx.error), HF_INVALID);
    }
    spec.url = "http://h";
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++) {
        spec.secret = secrets[i];
        assert_code(hf_subscription_put(fx.client, &spec, NULL, &fx.error), HF_INVALID);
    }
    spec.secret = NULL;
    spec.events = &pattern;
    spec.event_count = 1;
    assert_code(hf_subscription_put(fx.client, &spec, NULL, &fx.error), HF_INVALID);
    spec.event_count = 0;
    spec.name = "no/name";
    assert_code(hf_subscription_put(fx.client, &spec, NULL, &fx.error), HF_INVALID);
}

static void a_type_of_the_engines_own_cannot_be_emitted(void **state)
{
    const hf_claimed *held = claim_new();
    hf_new_outbox entry = { .type = "holdfast.run.failed" };
    hf_transition t = emitting(held, HF_TURN_SUCCEED, &entry);
    (void)state;
    assert_code(try_commit(&t), HF_INVALID);
}

/* ---- Waking ---- */

static void a_new_event_wakes_its_dispatcher(void **state)
{
    (void)state;
    subscribe("orders", "order.*");
    subscribe("mails", "mail.*");
    expect_nothing_due();
    emit("order.paid");
    const hf_claimed *held = claim_dispatcher();
    assert_string_equal(held->run.key, "orders");
    assert_int_equal(deliver_all("orders"), 1);
    go_to_sleep(held);
    expect_nothing_due();
}

static void a_dispatcher_does_not_sleep_past_an_event_that_came_while_it_worked(void **state)
{
    (void)state;
    subscribe("orders", "order.*");
    emit("order.paid");
    const hf_claimed *held = claim_dispatcher();
    deliver_all("orders");
    hf_id run = trigger(WORK);
    const hf_claimed *other = claim();
    assert_true(hf_id_equal(other->run.id, run));
    hf_new_outbox entry = { .type = "order.sent" };
    hf_transition t = emitting(other, HF_TURN_SUCCEED, &entry);
    commit(&t);
    go_to_sleep(held);
    claim_dispatcher();
}

static void a_dispatcher_that_waits_for_its_next_try_is_not_woken(void **state)
{
    (void)state;
    subscribe("orders", "order.*");
    emit("order.paid");
    hf_transition t = turn_of(claim_dispatcher(), HF_TURN_WAIT);
    t.waiting_kind = "retry";
    t.waiting_until = now() + HF_HOURS(1);
    commit(&t);
    emit("order.sent");
    expect_nothing_due();
    assert_ok(hf_subscription_resume(fx.client, "orders", &fx.error));
    claim_dispatcher();
}

static void a_dispatchers_own_trouble_is_shown(void **state)
{
    (void)state;
    subscribe("orders", "order.*");
    emit("order.paid");
    hf_transition t = turn_of(claim_dispatcher(), HF_TURN_RETRY);
    t.last_error = "no libcurl";
    commit(&t);
    assert_string_equal(subscription("orders")->state, "retrying");
    assert_string_equal(subscription("orders")->last_error, "no libcurl");
    go_to_sleep(claim_dispatcher());
    go_to_sleep(claim_dispatcher());
    deliver_all("orders");
    go_to_sleep(claim_dispatcher());
    assert_string_equal(subscription("orders")->state, "active");
}

static void a_parked_subscription_keeps_its_events(void **state)
{
    (void)state;
    subscribe("orders", "order.*");
    assert_ok(hf_subscription_park(fx.client, "orders", &fx.error));
    assert_ok(hf_subscription_park(fx.client, "orders", &fx.error));
    assert_string_equal(subscription("orders")->state, "parked");
    emit("order.paid");
    expect_nothing_due();
    assert_int_equal(subscription("orders")->pending, 1);
    assert_ok(hf_subscription_resume(fx.client, "orders", &fx.error));
    assert_string_equal(subscription("orders")->state, "active");
    claim_dispatcher();
}

static void an_ended_dispatcher_is_replaced_by_putting_again(void **state)
{
    (void)state;
    subscribe("orders", "order.*");
    hf_id first = subscription("orders")->run;
    assert_ok(hf__steer_run(fx.client, first, HF_CANCEL, &fx.error));
    assert_string_equal(subscription("orders")->state, "ended");
    subscribe("orders", "order.*");
    assert_false(hf_id_equal(subscription("orders")->run, first));
    go_to_sleep(claim_dispatcher()); /* it had a look at what the other one may have left */
    emit("order.paid");
    claim_dispatcher();
}

static void what_an_ended_dispatcher_left_is_delivered_by_the_next(void **state)
{
    (void)state;
    subscribe("orders", "order.*");
    emit("order.paid");
    assert_ok(hf__steer_run(fx.client, claim_dispatcher()->run.id, HF_CANCEL, &fx.error));
    subscribe("orders", "order.*");
    const hf_claimed *held = claim_dispatcher();
    assert_true(hf_id_equal(held->run.id, subscription("orders")->run));
    assert_int_equal(deliver_all("orders"), 1);
}

static void a_dispatcher_that_is_resumed_delivers_what_came_meanwhile(void **state)
{
    (void)state;
    subscribe("orders", "order.*");
    hf_id run = subscription("orders")->run;
    assert_ok(hf_subscription_park(fx.client, "orders", &fx.error));
    emit("order.paid");
    expect_nothing_due();
    assert_ok(hf__steer_run(fx.client, run, HF_RESUME, &fx.error));
    claim_dispatcher();
}

/* ---- Commits that come late (PostgreSQL) ---- */

/* Another transaction's insert_outbox, up to but not with its commit. */
static PGconn *write_event_without_commit(hf_id run, const char *type)
{
    PGconn *conn = PQconnectdb(fx.url);
    char id[HF_ID_TEXT], tenant[16], array[64], types[64], runs[64], ids[64];
    assert_int_equal(PQstatus(conn), CONNECTION_OK);
    snprintf(tenant, sizeof tenant, "{%d}", fx.client->tenant_id);
    hf_id_format(run, id);
    snprintf(runs, sizeof runs, "{%s}", id);
    id[0] = id[0] == 'f' ? 'e' : 'f';
    snprintf(ids, sizeof ids, "{%s}", id);
    snprintf(types, sizeof types, "{%s}", type);
    snprintf(array, sizeof array, "{1}");
    const char *announced[] = { tenant };
    const char *values[] = {
        ids, tenant, runs, array, types, "{null}", "{null}", "{null}", "{null}"
    };
    PQclear(PQexec(conn, "BEGIN"));
    PGresult *first = PQexecParams(conn, hf__postgres_statements[HF__STMT_ANNOUNCE_OUTBOX].sql, 1,
                                   NULL, announced, NULL, NULL, 0);
    assert_int_equal(PQresultStatus(first), PGRES_TUPLES_OK);
    PGresult *second = PQexecParams(conn, hf__postgres_statements[HF__STMT_INSERT_OUTBOX].sql, 9,
                                    NULL, values, NULL, NULL, 0);
    if (PQresultStatus(second) != PGRES_TUPLES_OK)
        fail_msg("%s", PQerrorMessage(conn));
    PQclear(first);
    PQclear(second);
    return conn;
}

static void end_with(PGconn *conn, const char *how)
{
    PGresult *result = PQexec(conn, how);
    assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK);
    PQclear(result);
    PQfinish(conn);
}

static void an_event_that_commits_late_is_delivered_all_the_same(void **state)
{
    (void)state;
    if (fx.backend != BACKEND_POSTGRES)
        skip();
    subscribe("orders", "order.*");
    hf_id run = emit("order.first");
    const hf_claimed *held = claim_dispatcher();
    assert_int_equal(deliver_all("orders"), 1);
    PGconn *late = write_event_without_commit(run, "order.late");
    emit("order.second"); /* gets a higher position, and commits first */
    assert_int_equal(deliver_all("orders"), 1);
    go_to_sleep(held);
    held = claim_dispatcher(); /* it may not sleep while an event is being written */
    assert_int_equal(deliver_all("orders"), 0);
    end_with(late, "COMMIT");
    assert_int_equal(deliver_all("orders"), 1);
    go_to_sleep(held);
    expect_nothing_due();
}

static void an_event_that_commits_after_the_dispatchers_last_look_keeps_it_awake(void **state)
{
    (void)state;
    if (fx.backend != BACKEND_POSTGRES)
        skip();
    subscribe("orders", "order.*");
    hf_id run = emit("order.first");
    const hf_claimed *held = claim_dispatcher();
    deliver_all("orders");
    PGconn *late = write_event_without_commit(run, "order.late");
    go_to_sleep(held);
    held = claim_dispatcher();
    end_with(late, "COMMIT");
    go_to_sleep(held);
    claim_dispatcher();
    assert_int_equal(deliver_all("orders"), 1);
}

static void a_writer_that_rolls_back_lets_the_dispatcher_sleep(void **state)
{
    (void)state;
    if (fx.backend != BACKEND_POSTGRES)
        skip();
    subscribe("orders", "order.*");
    hf_id run = emit("order.first");
    const hf_claimed *held = claim_dispatcher();
    deliver_all("orders");
    end_with(write_event_without_commit(run, "order.late"), "ROLLBACK");
    go_to_sleep(held);
    expect_nothing_due();
}

static const hf_claimed *claim_of_the_other_tenant(void)
{
    hf_client *ours = fx.client;
    fx.client = fx.other;
    assert_ok(hf__workflow_ensure(fx.client, WORK, &fx.error));
    const hf_claimed *held = claim_new();
    fx.client = ours;
    return held;
}

static void *apply_two(void *arg)
{
    hf__engine_apply(fx.client->engine, arg, 2);
    return NULL;
}

/* As another flush, with a dispatcher of the other tenant, would: nobody may write events there for now. */
static PGconn *keep_the_other_tenant_quiet(void)
{
    char sql[200];
    PGconn *conn = PQconnectdb(fx.url);
    snprintf(sql, sizeof sql,
             "BEGIN; SELECT FROM holdfast.engine_lock WHERE kind = 2 AND place = %d %% 128 FOR NO "
             "KEY UPDATE",
             fx.other->tenant_id);
    PGresult *result = PQexec(conn, sql);
    assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
    PQclear(result);
    return conn;
}

static int64_t waiting_writers(void)
{
    return sql_number("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                      "AND wait_event_type = 'Lock' AND query LIKE '%%engine_lock%%'");
}

/* How many seats of our tenant are somebody's. */
static int64_t seats_taken(void)
{
    return sql_number(
        "SELECT 8 - count(*) FROM (SELECT FROM engine_lock WHERE kind = 2 AND place = "
        "%d %% 128 FOR NO KEY UPDATE SKIP LOCKED) free",
        fx.client->tenant_id);
}

/* Two such flushes would wait for each other. */
static void a_flush_in_which_a_dispatcher_sleeps_does_not_wait_for_another_tenants_quiet(
    void **state)
{
    (void)state;
    if (fx.backend != BACKEND_POSTGRES)
        skip();
    subscribe("orders", "order.*");
    for (int i = 0; i < 10; i++) {
        pthread_t thread;
        hf_new_outbox entry = { .type = "order.theirs" };
        emit("order.first");
        hf_transition sleeps = turn_of(claim_dispatcher(), HF_TURN_WAIT);
        hf_transition emits = emitting(claim_of_the_other_tenant(), HF_TURN_SUCCEED, &entry);
        deliver_all("orders");
        sleeps.waiting_kind = HF__WAITING_OUTBOX;
        struct hf__op ops[2] = {
            { .kind = HF__OP_COMMIT, .tenant = fx.client->tenant_id, .commit.transition = &sleeps },
            { .kind = HF__OP_COMMIT, .tenant = fx.other->tenant_id, .commit.transition = &emits },
        };
        PGconn *quiet = keep_the_other_tenant_quiet();
        assert_int_equal(pthread_create(&thread, NULL, apply_two, ops), 0);
        while (waiting_writers() == 0)
            usleep(1000);
        assert_int_equal(seats_taken(), 0);
        end_with(quiet, "COMMIT");
        pthread_join(thread, NULL);
        assert_int_equal(ops[0].code, HF_OK);
        assert_int_equal(ops[1].code, HF_OK);
        expect_nothing_due();
    }
}

static void *deliver_two(void *arg)
{
    (void)arg;
    deliver_all("two");
    return NULL;
}

/* Each of two last subscriptions would see the other's delivery as still there. */
static void an_event_that_two_subscriptions_get_at_once_is_published(void **state)
{
    char subscription_text[HF_ID_TEXT + 2], position[32], id[HF_ID_TEXT], ids[HF_ID_TEXT + 2];
    pthread_t thread;
    (void)state;
    if (fx.backend != BACKEND_POSTGRES)
        skip();
    subscribe("one", "order.*");
    subscribe("two", "order.*");
    emit("order.paid");
    const hf_outbox_entry *entry = &entries(NULL)->items[0];
    hf_id_format(subscription_id("one"), id);
    snprintf(subscription_text, sizeof subscription_text, "{%s}", id);
    snprintf(position, sizeof position, "{%lld}", (long long)entry->position);
    hf_id_format(entry->id, id);
    snprintf(ids, sizeof ids, "{%s}", id);
    const char *delivery[] = { subscription_text, position };
    const char *event[] = { ids };
    PGconn *first = PQconnectdb(fx.url);
    PQclear(PQexec(first, "BEGIN"));
    PQclear(PQexecParams(first, hf__postgres_statements[HF__STMT_LOCK_OUTBOX].sql, 1, NULL, event,
                         NULL, NULL, 0));
    PQclear(PQexecParams(first, hf__postgres_statements[HF__STMT_END_DELIVERIES].sql, 2, NULL,
                         delivery, NULL, NULL, 0));
    PQclear(PQexecParams(first, hf__postgres_statements[HF__STMT_PUBLISH_OUTBOX].sql, 1, NULL,
                         event, NULL, NULL, 0));
    assert_int_equal(pthread_create(&thread, NULL, deliver_two, NULL), 0);
    struct timespec moment = { .tv_nsec = 100 * 1000 * 1000 };
    nanosleep(&moment, NULL);
    end_with(first, "COMMIT");
    pthread_join(thread, NULL);
    assert_int_equal(entries(NULL)->items[0].pending, 0);
    assert_true(entries(NULL)->items[0].published_at > 0);
}

/* ---- The engine's own events ---- */

static int64_t alerts(const char *type)
{
    hf_outbox_filter filter = HF_OUTBOX_FILTER_INIT;
    filter.type = type;
    return (int64_t)entries(&filter)->count;
}

static void nobody_pays_for_alerts_that_nobody_wants(void **state)
{
    (void)state;
    subscribe("all", NULL);
    fail_for_good(claim_new());
    assert_int_equal(alerts("holdfast.*"), 0);
}

static void a_run_that_failed_for_good_is_told_of(void **state)
{
    (void)state;
    subscribe("alerts", "holdfast.*");
    const hf_claimed *held = claim_new();
    hf_transition t = turn_of(held, HF_TURN_FAIL);
    t.error_code = "broken";
    t.last_error = "it \"broke\"";
    assert_ok(try_commit_short(&t));
    assert_int_equal(alerts("holdfast.run.failed"), 1);
    assert_int_equal(alerts("holdfast.*"), 1);
    const hf_outbox_entry *entry = &entries(NULL)->items[0];
    assert_non_null(strstr(entry->payload, "\"error_code\":\"broken\""));
    assert_non_null(strstr(entry->payload, "it \\\"broke\\\""));
    assert_int_equal(subscription("alerts")->pending, 1);
    claim_dispatcher();
    const hf_claimed *other = claim_new();
    fail_for_good(other);
    change(other->run.id, HF_RETRY_RUN);
    fail_for_good(claim());
    assert_int_equal(alerts("holdfast.run.failed"), 3);
}

static void a_failure_that_is_refused_is_not_told_of(void **state)
{
    (void)state;
    subscribe("alerts", "holdfast.*");
    const hf_claimed *held = claim_new();
    hf_transition t = turn_of(held, HF_TURN_FAIL);
    change(held->run.id, HF_CANCEL);
    assert_code(try_commit_short(&t), HF_RUN_CANCELLED);
    assert_int_equal(alerts("holdfast.run.failed"), 0);
}

static void a_failed_child_is_told_of(void **state)
{
    (void)state;
    subscribe("alerts", "holdfast.run.failed");
    const hf_claimed *parent = claim_new();
    hf_trigger_spec child = spec_of(WORK);
    hf_transition t = turn_of(parent, HF_TURN_WAIT);
    t.children = &child;
    t.child_count = 1;
    t.wait_children = 1;
    commit(&t);
    hf_transition failing = turn_of(claim(), HF_TURN_FAIL);
    assert_ok(try_commit_short(&failing));
    assert_int_equal(alerts("holdfast.run.failed"), 1);
}

static void a_run_without_a_handler_is_told_of(void **state)
{
    (void)state;
    subscribe("alerts", "holdfast.*");
    hf_transition t = turn_of(claim_new(), HF_TURN_FAIL);
    t.error_code = "no_handler_registered";
    assert_ok(try_commit_short(&t));
    assert_int_equal(alerts("holdfast.run.no_handler"), 1);
    assert_int_equal(alerts("holdfast.run.failed"), 1);
}

static void a_dead_letter_is_told_of_and_no_blame_before_it(void **state)
{
    const char *id = "bad-1";
    hf_signal_spec signal = HF_SIGNAL_INIT;
    (void)state;
    subscribe("alerts", "holdfast.dead_letter");
    hf_id run = run_that_is(HF_WAITING, 0);
    signal.id = id;
    signal.name = "bad";
    assert_ok(try_signal(run, &signal));
    for (int i = 0; i < 5; i++) {
        assert_int_equal(alerts("holdfast.dead_letter"), 0);
        hf_transition t = turn_of(claim(), HF_TURN_RETRY);
        t.blamed = &id;
        t.blamed_count = 1;
        commit(&t);
    }
    assert_int_equal(alerts("holdfast.dead_letter"), 1);
    assert_non_null(strstr(entries(NULL)->items[0].payload, "bad-1"));
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(an_event_goes_to_those_who_want_it),
    CONTRACT_TEST(what_nobody_wants_is_published_at_once),
    CONTRACT_TEST(another_tenants_subscription_gets_nothing),
    CONTRACT_TEST(an_event_is_published_when_the_last_subscription_has_got_it),
    CONTRACT_TEST(events_of_a_removed_subscription_are_published),
    CONTRACT_TEST(pages_of_the_outbox_follow_each_other),
    CONTRACT_TEST(published_events_expire_in_small_batches),
    CONTRACT_TEST(the_secret_is_given_once),
    CONTRACT_TEST(bad_settings_are_refused),
    CONTRACT_TEST(a_type_of_the_engines_own_cannot_be_emitted),
    CONTRACT_TEST(a_new_event_wakes_its_dispatcher),
    CONTRACT_TEST(a_dispatcher_does_not_sleep_past_an_event_that_came_while_it_worked),
    CONTRACT_TEST(a_dispatcher_that_waits_for_its_next_try_is_not_woken),
    CONTRACT_TEST(a_dispatchers_own_trouble_is_shown),
    CONTRACT_TEST(a_parked_subscription_keeps_its_events),
    CONTRACT_TEST(an_ended_dispatcher_is_replaced_by_putting_again),
    CONTRACT_TEST(what_an_ended_dispatcher_left_is_delivered_by_the_next),
    CONTRACT_TEST(a_dispatcher_that_is_resumed_delivers_what_came_meanwhile),
    CONTRACT_TEST(an_event_that_commits_late_is_delivered_all_the_same),
    CONTRACT_TEST(an_event_that_commits_after_the_dispatchers_last_look_keeps_it_awake),
    CONTRACT_TEST(a_flush_in_which_a_dispatcher_sleeps_does_not_wait_for_another_tenants_quiet),
    CONTRACT_TEST(a_writer_that_rolls_back_lets_the_dispatcher_sleep),
    CONTRACT_TEST(an_event_that_two_subscriptions_get_at_once_is_published),
    CONTRACT_TEST(nobody_pays_for_alerts_that_nobody_wants),
    CONTRACT_TEST(a_run_that_failed_for_good_is_told_of),
    CONTRACT_TEST(a_failure_that_is_refused_is_not_told_of),
    CONTRACT_TEST(a_failed_child_is_told_of),
    CONTRACT_TEST(a_run_without_a_handler_is_told_of),
    CONTRACT_TEST(a_dead_letter_is_told_of_and_no_blame_before_it),
};

CONTRACT("outbox", tests)
