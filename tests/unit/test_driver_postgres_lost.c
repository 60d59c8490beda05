/* The PostgreSQL driver when sessions end, servers fall silent and answers do not come. F8.
 * SPDX-License-Identifier: Apache-2.0 */
#include "postgres_toys.h"
#include "util/clock.h"

#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

/* Ends a backend as soon as it sleeps in pg_sleep. */
struct killer {
    pthread_t thread;
    int pid;
};

static void *kill_sleeper(void *arg)
{
    const struct killer *killer = arg;
    PGconn *pg = PQconnectdb(own_url);
    char sql[200];
    snprintf(sql, sizeof sql,
             "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
             " WHERE pid = %d AND wait_event = 'PgSleep'",
             killer->pid);
    for (int tries = 0, done = 0; tries < 12000 && !done; tries++) {
        PGresult *result = PQexec(pg, sql);
        done = PQntuples(result);
        PQclear(result);
        usleep(10000);
    }
    PQfinish(pg);
    return NULL;
}

static void start_killer(struct killer *killer, struct hf__conn *conn)
{
    killer->pid = (int)ask_number(conn, BACKEND);
    assert_int_equal(pthread_create(&killer->thread, NULL, kill_sleeper, killer), 0);
}

/* ---- broken connections ---- */

static void a_backend_that_is_terminated_is_a_lost_connection(void **state)
{
    NEED_SERVER();
    struct hf__database *const both[] = { db, pooled };
    for (int i = 0; i < 2; i++) {
        struct hf__conn *conn = connected(both[i]);
        struct killer killer;
        start_killer(&killer, conn);
        struct hf__table seconds = one_number(600), three = items(1, 3);
        bool unknown = true;
        ok(driver->begin(conn, &failure));
        ok(ask(conn, ADD, &three, NULL, &failure));
        ok(ask(conn, SLEEP, &seconds, NULL, &failure));
        hf_code code = driver->commit(conn, NULL, &unknown, &failure);
        pthread_join(killer.thread, NULL);
        assert_failed(code, HF_UNAVAILABLE, "57P01");
        assert_true(driver->lost(conn));
        assert_false(unknown); /* the server said so before it came to the commit */
        driver->rollback(conn);
        assert_failed(driver->begin(conn, &failure), HF_UNAVAILABLE, "08003");
        assert_failed(driver->sync(conn, &failure), HF_UNAVAILABLE, "08003");
        driver->disconnect(conn);
        assert_int_equal(stored(), 0);
    }
}

static void a_backend_that_dies_in_its_commit_leaves_it_unknown(void **state)
{
    NEED_SERVER();
    struct hf__conn *conn = connected(db);
    struct killer killer;
    start_killer(&killer, conn);
    struct hf__table slow = items(1, 1);
    bool unknown = false;
    ok(driver->begin(conn, &failure));
    ok(ask(conn, ADD_SLOWLY_COMMITTED, &slow, NULL, &failure));
    hf_code code = driver->commit(conn, NULL, &unknown, &failure);
    pthread_join(killer.thread, NULL);
    assert_failed(code, HF_UNAVAILABLE, "57P01");
    assert_true(unknown);
    assert_true(driver->lost(conn));
    driver->disconnect(conn);
}

/* ---- silent connections ---- */

/* The limit is also what the server has to answer in that it is at work. On a machine so busy that it does not, nothing is
 * proven: then `try` is called once more, with a longer limit. */
static void with_a_limit(bool (*try)(int seconds, const char *more), const char *more)
{
    for (int seconds = 2; !try(seconds, more); seconds *= 2)
        assert_true(seconds < 100);
}

static struct hf__database *opened_with_limit(int seconds, const char *more)
{
    char parameter[60];
    snprintf(parameter, sizeof parameter, "answer_timeout=%ds%s", seconds, more);
    return opened_with(parameter);
}

/* True: the server did answer, and was heard to be at work. */
static bool close_hasty(struct hf__database *hasty, struct hf__conn *conn, hf_code code)
{
    bool late = atomic_load(&hasty->silences) > 0 ||
                (code == HF_UNAVAILABLE && strstr(failure.message, "answer_timeout"));
    if (!late) {
        ok(code);
        assert_false(driver->lost(conn));
    }
    driver->disconnect(conn);
    driver->close(hasty);
    return !late;
}

static bool work_beyond(int limit, const char *more)
{
    struct hf__database *hasty = opened_with_limit(limit, more);
    struct hf__conn *conn = connected(hasty);
    struct hf__table seconds = one_number(limit + 1), three = items(1, 3);
    bool unknown = true;
    hf_code code = ask(conn, SLEEP, &seconds, NULL, &failure);
    if (code == HF_OK)
        code = driver->sync(conn, &failure);
    if (code == HF_OK)
        code = driver->begin(conn, &failure);
    if (code == HF_OK)
        code = ask(conn, ADD, &three, NULL, &failure);
    if (code == HF_OK)
        code = ask(conn, SLEEP, &seconds, NULL, &failure);
    if (code == HF_OK)
        code = driver->commit(conn, NULL, &unknown, &failure);
    bool answered = close_hasty(hasty, conn, code);
    if (answered)
        assert_int_equal(stored(), 3);
    return before_each(NULL) == 0 && answered;
}

static void a_server_that_is_at_work_is_waited_for_beyond_the_limit(void **state)
{
    NEED_SERVER();
    with_a_limit(work_beyond, "");
    with_a_limit(work_beyond, "&prepare=off");
}

/* Whoever asks hears that it is idle, since it is done by then. */
static bool answer_meanwhile(int limit, const char *more)
{
    struct hf__statement *question = &statements[HF__STMT_IS_AT_WORK], real = *question;
    char slow[100];
    snprintf(slow, sizeof slow, "SELECT pg_sleep(%d.5) IS NULL, $1::int, $2::int", limit - 1);
    question->sql = slow;
    struct hf__database *hasty = opened_with_limit(limit, more);
    struct hf__conn *conn = connected(hasty);
    struct hf__table seconds = one_number(limit + 1);
    hf_code code = HF_OK;
    for (int i = 0; i < 2 && code == HF_OK; i++) { /* and once more: the connection goes on */
        code = ask(conn, SLEEP, &seconds, NULL, &failure);
        if (code == HF_OK)
            code = driver->sync(conn, &failure);
    }
    *question = real;
    return close_hasty(hasty, conn, code);
}

static void an_answer_that_comes_while_it_is_asked_about_is_one(void **state)
{
    NEED_SERVER();
    with_a_limit(answer_meanwhile, "");
}

static bool migrate_beyond(int limit, const char *more)
{
    struct hf__database *hasty = opened_with_limit(limit, more);
    struct hf__conn *conn = connected(hasty);
    char script[80];
    snprintf(script, sizeof script, "-- holdfast: no transaction\nSELECT pg_sleep(%d)", limit + 1);
    hf_code code = driver->migrate_lock(conn, &failure);
    if (code == HF_OK)
        code = driver->script(conn, script, &failure);
    driver->migrate_unlock(conn);
    return close_hasty(hasty, conn, code);
}

static void a_migration_may_take_as_long_as_the_server_is_at_work(void **state)
{
    NEED_SERVER();
    with_a_limit(migrate_beyond, "");
}

static void a_transaction_is_not_waited_for_without_end(void **state)
{
    NEED_SERVER();
    struct hf__database *hasty = opened_with("answer_timeout=100ms");
    struct hf__conn *conn = connected(hasty);
    struct hf__table minutes = one_number(600);
    int pid = (int)ask_number(conn, BACKEND);
    bool unknown = true;
    ok(driver->begin(conn, &failure));
    ok(ask(conn, SLEEP, &minutes, NULL, &failure));
    assert_failed(driver->commit(conn, NULL, &unknown, &failure), HF_UNAVAILABLE, "08006");
    assert_non_null(strstr(failure.message, "answer_timeout"));
    assert_true(driver->lost(conn)); /* the end of its session may be heard, or not */
    /* It does not work on for nobody; but a server that is too busy to answer within the limit is asked nothing more. */
    bool silent = atomic_load(&hasty->silences) > 0;
    for (int i = 0; i < 6000 && !silent && kill(pid, 0) == 0; i++)
        usleep(10000);
    assert_true(silent || kill(pid, 0) != 0);
    driver->disconnect(conn);
    driver->close(hasty);
}

/* Stopped before it reads what it is asked: then it says that it is idle. */
static bool stop_one_of_two(int limit, const char *more)
{
    struct hf__database *hasty = opened_with_limit(limit, more);
    struct hf__conn *stopped = connected(hasty), *other = connected(hasty);
    struct hf__table three = items(1, 3);
    bool unknown = false;
    int pid = (int)ask_number(stopped, BACKEND);
    if (kill(pid, SIGSTOP) != 0)
        skip(); /* the server is on another machine */
    ok(driver->begin(stopped, &failure));
    ok(ask(stopped, ADD, &three, NULL, &failure));
    hf_code code = driver->commit(stopped, NULL, &unknown, &failure);
    kill(pid, SIGCONT);
    assert_failed(code, HF_UNAVAILABLE, "08006");
    assert_true(unknown && driver->lost(stopped));
    driver->disconnect(stopped);
    bool answered = close_hasty(hasty, other, HF_OK);
    admin_do("BEGIN; LOCK " SCHEMA ".item; COMMIT");
    return before_each(NULL) == 0 && answered;
}

static void a_session_that_does_not_answer_is_lost_and_the_others_are_not(void **state)
{
    NEED_SERVER();
    with_a_limit(stop_one_of_two, "");
}

/* A port that somebody listens on and nobody accepts from: connections to it are made by the system alone. */
static void a_silent_server_is_tried_by_one_at_a_time(void **state)
{
    NEED_SERVER();
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(listener, 5), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    char text[100];
    snprintf(text, sizeof text, "postgres://127.0.0.1:%d/none?connect_timeout=2",
             ntohs(address.sin_port));
    struct hf__database *silent = NULL;
    struct hf__conn *conn = NULL;
    ok(hf__postgres_open_with(&silent, statements, text, NULL, &failure));
    assert_failed(driver->connect(&conn, silent, &failure), HF_UNAVAILABLE, "08001");
    assert_null(strstr(failure.message, "does not answer"));
    assert_failed(driver->connect(&conn, silent, &failure), HF_UNAVAILABLE, "08001");
    assert_non_null(strstr(failure.message, "does not answer"));
    driver->close(silent);
    close(listener);
}

/* ---- what a commit foretells ---- */

struct telling {
    int count;
    const struct hf__table *answer;
    int rows; /* of the answer, when it was told */
};

static void note_telling(void *arg)
{
    struct telling *telling = arg;
    telling->count++;
    telling->rows = telling->answer ? telling->answer->nrows : 0;
}

static void a_commit_is_foretold_with_its_answers_before_it_is_done(void **state)
{
    NEED_SERVER();
    struct hf__conn *conn = connected(db);
    struct killer killer;
    struct hf__table slow = items(1, 1), answer = table(1);
    struct telling telling = { .answer = &answer };
    bool unknown = false;
    start_killer(&killer, conn); /* which ends it in its commit */
    ok(driver->begin(conn, &failure));
    ok(ask(conn, ADD_SLOWLY_COMMITTED, &slow, NULL, &failure));
    ok(ask(conn, COUNT, NULL, &answer, &failure));
    driver->foretell(conn, note_telling, &telling);
    hf_code code = driver->commit(conn, NULL, &unknown, &failure);
    pthread_join(killer.thread, NULL);
    assert_failed(code, HF_UNAVAILABLE, "57P01");
    assert_true(unknown);
    assert_int_equal(telling.count, 1);
    assert_int_equal(telling.rows, 1);
    driver->disconnect(conn);
}

static void a_commit_is_foretold_once_and_the_next_is_not(void **state)
{
    NEED_SERVER();
    struct hf__conn *conn = connected(db);
    struct telling telling = { 0 };
    bool unknown = false;
    for (int i = 1; i <= 3; i++) {
        struct hf__table one = items(i, 1);
        ok(driver->begin(conn, &failure));
        ok(ask(conn, ADD, &one, NULL, &failure));
        if (i < 3)
            driver->foretell(conn, note_telling, &telling);
        ok(driver->commit(conn, NULL, &unknown, &failure));
        assert_int_equal(telling.count, i < 3 ? i : 2);
    }
    driver->disconnect(conn);
    assert_int_equal(stored(), 3);
}

static void nothing_is_foretold_when_a_statement_fails(void **state)
{
    NEED_SERVER();
    struct hf__conn *conn = connected(db);
    struct hf__table sqlstate = one_text("22012");
    struct telling telling = { 0 };
    bool unknown = true;
    ok(driver->begin(conn, &failure));
    ok(ask(conn, RAISE, &sqlstate, NULL, &failure));
    driver->foretell(conn, note_telling, &telling);
    assert_int_not_equal(driver->commit(conn, NULL, &unknown, &failure), HF_OK);
    driver->rollback(conn);
    assert_false(unknown);
    ok(driver->begin(conn, &failure));
    ok(driver->commit(conn, NULL, &unknown, &failure));
    assert_int_equal(telling.count, 0);
    driver->disconnect(conn);
}

/* What is sent behind it may fail: then the commit was foretold, and does not come. */
static void what_is_sent_behind_a_foretelling_is_not_waited_for(void **state)
{
    NEED_SERVER();
    struct hf__conn *conn = connected(db);
    struct hf__table sqlstate = one_text("22012");
    struct hf__table answer = table(1);
    struct telling telling = { .answer = &answer };
    bool unknown = true;
    ok(driver->begin(conn, &failure));
    ok(ask(conn, COUNT, NULL, &answer, &failure));
    driver->foretell(conn, note_telling, &telling);
    ok(ask(conn, RAISE, &sqlstate, NULL, &failure));
    assert_int_not_equal(driver->commit(conn, NULL, &unknown, &failure), HF_OK);
    assert_string_equal(failure.sqlstate, "22012");
    driver->rollback(conn);
    assert_false(unknown);
    assert_int_equal(telling.count, 1);
    assert_int_equal(telling.rows, 1);
    driver->disconnect(conn);
}

static void nothing_is_foretold_by_a_rollback(void **state)
{
    NEED_SERVER();
    struct hf__conn *conn = connected(db);
    struct hf__table answer = table(1);
    struct telling telling = { .answer = &answer };
    ok(driver->begin(conn, &failure));
    ok(ask(conn, COUNT, NULL, &answer, &failure));
    driver->foretell(conn, note_telling, &telling);
    driver->rollback(conn);
    assert_int_equal(telling.count, 0);
    driver->disconnect(conn);
}

static void nothing_is_foretold_behind_a_pooler(void **state)
{
    NEED_SERVER();
    struct hf__conn *conn = connected(pooled);
    struct hf__table one = items(1, 1);
    struct telling telling = { 0 };
    bool unknown = false;
    ok(driver->begin(conn, &failure));
    ok(ask(conn, ADD, &one, NULL, &failure));
    driver->foretell(conn, note_telling, &telling);
    ok(driver->commit(conn, NULL, &unknown, &failure));
    assert_int_equal(telling.count, 0);
    driver->disconnect(conn);
}

static void a_line_that_breaks_in_silence_leaves_the_commit_unknown(void **state)
{
    NEED_SERVER();
    struct hf__conn *conn = connected(db);
    struct hf__table three = items(1, 3);
    bool unknown = false;
    ok(driver->begin(conn, &failure));
    ok(ask(conn, ADD, &three, NULL, &failure));
    ok(driver->sync(conn, &failure));
    shutdown(PQsocket(conn->pg), SHUT_RD);
    hf_code code = driver->commit(conn, NULL, &unknown, &failure);
    assert_failed(code, HF_UNAVAILABLE, "08006");
    assert_true(unknown);
    assert_true(driver->lost(conn));
    driver->disconnect(conn);
    admin_do("BEGIN; LOCK " SCHEMA ".item; COMMIT"); /* waits for whatever became of it */
    assert_int_equal(stored(), 3);
}

static void an_idle_connection_that_was_ended_is_noticed_at_its_next_use(void **state)
{
    NEED_SERVER();
    struct hf__conn *conn = connected(db);
    char sql[100];
    snprintf(sql, sizeof sql, "SELECT pg_terminate_backend(%d, 120000)",
             (int)ask_number(conn, BACKEND));
    admin_do(sql);
    struct hf__table answer = table(1);
    hf_code code = ask(conn, COUNT, NULL, &answer, &failure);
    if (code == HF_OK)
        code = driver->sync(conn, &failure);
    assert_int_equal(code, HF_UNAVAILABLE);
    assert_true(*failure.sqlstate);
    assert_true(driver->lost(conn));
    driver->disconnect(conn);
}

static void a_server_that_is_not_there_is_unavailable(void **state)
{
    NEED_SERVER();
    struct hf__database *nowhere = NULL;
    struct hf__conn *conn = NULL;
    struct hf__watch *watch = NULL;
    ok(hf__postgres_open_with(&nowhere, statements, "postgres://127.0.0.1:1/none", NULL, &failure));
    assert_failed(driver->connect(&conn, nowhere, &failure), HF_UNAVAILABLE, "08001");
    assert_failed(driver->watch(&watch, nowhere, &failure), HF_UNAVAILABLE, "08001");
    assert_null(conn);
    driver->close(nowhere);
}

static void forgotten_statements_switch_the_database_to_none(void **state)
{
    NEED_SERVER();
    struct hf__database *fresh = opened_with("");
    struct hf__conn *conn = connected(fresh);
    ask_number(conn, COUNT);
    ok(ask(conn, FORGET_PREPARED, NULL, NULL, &failure));
    ok(driver->sync(conn, &failure));
    struct hf__table answer = table(1);
    ok(ask(conn, COUNT, NULL, &answer, &failure));
    assert_failed(driver->sync(conn, &failure), HF_UNAVAILABLE, "26000");
    assert_true(driver->lost(conn));
    driver->disconnect(conn);

    conn = connected(fresh);
    assert_true(conn->unprepared);
    assert_int_equal(ask_number(conn, COUNT), 0);
    driver->disconnect(conn);
    driver->close(fresh);
}

/* ---- waking ---- */

struct ear {
    struct hf__heard heard[16];
    int count;
};

static void hear(const struct hf__heard *heard, void *arg)
{
    struct ear *ear = arg;
    assert_true(ear->count < 16);
    ear->heard[ear->count++] = *heard;
}

static void listen_until(struct hf__watch *watch, struct ear *ear, int count)
{
    int64_t deadline = hf__monotonic_us() + HF_MINUTES(2);
    while (ear->count < count && hf__monotonic_us() < deadline)
        ok(driver->watch_wait(watch, HF_SECONDS(1), hear, ear, &failure));
    assert_int_equal(ear->count, count);
}

static void a_commit_wakes_another_connection(void **state)
{
    NEED_SERVER();
    struct hf__database *const both[] = { db, pooled };
    for (int i = 0; i < 2; i++) {
        struct hf__watch *watch = NULL;
        ok(driver->watch(&watch, db, &failure));
        assert_true(hf__postgres_watch_hears(watch));
        struct hf__conn *conn = connected(both[i]);
        const int32_t lanes[] = { 4, 9 };
        const hf_id run = { { 1, 2, 3 } };
        const struct hf__wake wake = { .lanes = lanes,
                                       .lane_count = 2,
                                       .earliest = 77,
                                       .watched = &run,
                                       .watched_count = 1,
                                       .workflows_changed = true };
        struct hf__table three = items(i * 10, 3);
        bool unknown;
        ok(driver->begin(conn, &failure));
        ok(ask(conn, ADD, &three, NULL, &failure));
        ok(driver->commit(conn, &wake, &unknown, &failure));
        struct ear ear = { 0 };
        listen_until(watch, &ear, 4);
        assert_int_equal(ear.heard[1].lane, 9);
        assert_int_equal(ear.heard[1].earliest, 77);
        assert_true(ear.heard[2].workflows_changed);
        assert_true(ear.heard[3].run && hf_id_equal(ear.heard[3].run_id, run));

        ear.count = 0;
        driver->ring(conn, &(struct hf__wake){ .lanes = lanes, .lane_count = 1 });
        listen_until(watch, &ear, 1);
        driver->disconnect(conn);
        driver->unwatch(watch);
    }
}

static void a_failed_commit_and_a_failed_wake_do_not_mix(void **state)
{
    NEED_SERVER();
    statements[HF__STMT_NOTIFY_WORKERS].sql = "SELECT $1 || $2 FROM no_such_schema.t";
    struct hf__conn *conn = connected(db);
    const int32_t lane = 1;
    const struct hf__wake wake = { .lanes = &lane, .lane_count = 1 };
    struct hf__table three = items(1, 3);
    bool unknown;
    ok(driver->begin(conn, &failure));
    ok(ask(conn, ADD, &three, NULL, &failure));
    ok(driver->commit(conn, &wake, &unknown, &failure));
    assert_int_equal(stored(), 3);
    assert_false(driver->lost(conn));

    ok(driver->begin(conn, &failure));
    ok(ask(conn, ADD, &three, NULL, &failure));
    assert_failed(driver->commit(conn, &wake, &unknown, &failure), HF_STORE, "23505");
    driver->rollback(conn);
    driver->ring(conn, &wake);
    assert_int_equal(ask_number(conn, COUNT), 3);
    driver->disconnect(conn);
    statements[HF__STMT_NOTIFY_WORKERS] = notify;
}

static void waiting_ends_with_its_time(void **state)
{
    NEED_SERVER();
    struct hf__watch *watch = NULL;
    struct ear ear = { 0 };
    ok(driver->watch(&watch, db, &failure));
    int64_t start = hf__monotonic_us();
    ok(driver->watch_wait(watch, HF_MILLISECONDS(50), hear, &ear, &failure));
    int64_t took = hf__monotonic_us() - start;
    assert_true(took >= HF_MILLISECONDS(50));
    assert_int_equal(ear.count, 0);
    driver->unwatch(watch);
}

static void *stop_soon(void *watch)
{
    usleep(50000);
    driver->watch_stop(watch);
    return NULL;
}

static void waiting_ends_when_told_to_stop_and_stays_ended(void **state)
{
    NEED_SERVER();
    struct hf__watch *watch = NULL;
    struct ear ear = { 0 };
    pthread_t stopper;
    ok(driver->watch(&watch, db, &failure));
    assert_int_equal(pthread_create(&stopper, NULL, stop_soon, watch), 0);
    ok(driver->watch_wait(watch, INT64_MAX, hear, &ear, &failure));
    ok(driver->watch_wait(watch, INT64_MAX, hear, &ear, &failure));
    pthread_join(stopper, NULL);
    driver->unwatch(watch);
}

static void a_listener_that_loses_its_connection_says_so(void **state)
{
    NEED_SERVER();
    struct hf__watch *watch = NULL;
    struct ear ear = { 0 };
    ok(driver->watch(&watch, db, &failure));
    admin_do("SELECT pg_terminate_backend(pid, 120000) FROM pg_stat_activity"
             " WHERE datname = current_database() AND query = 'LISTEN holdfast_run'");
    hf_code code = driver->watch_wait(watch, HF_MINUTES(2), hear, &ear, &failure);
    assert_int_equal(code, HF_UNAVAILABLE);
    assert_true(*failure.sqlstate);
    driver->unwatch(watch);
}

/* ---- commits that are seen before they are durable ---- */

/* Adds an item and wakes for it as a lone trigger does. */
static hf_code add_and_wake(struct hf__conn *conn, int item, bool *unknown)
{
    static const hf_id fresh = { { 1 } };
    static const int32_t lane = 7;
    const struct hf__wake wake = { .lanes = &lane,
                                   .lane_count = 1,
                                   .earliest = 1,
                                   .urgent = true,
                                   .fresh = &fresh,
                                   .deferred = true };
    struct hf__table row = items(item, 1);
    ok(driver->begin(conn, &failure));
    ok(ask(conn, ADD, &row, NULL, &failure));
    return driver->commit(conn, &wake, unknown, &failure);
}

static void a_commit_that_is_not_made_durable_is_unknown(void **state)
{
    static const char *const hows[] = {
        "SELECT 1 / 0",                                  /* refused */
        "INSERT INTO " SCHEMA ".late VALUES (1)",        /* refused by its commit */
        "SELECT pg_terminate_backend(pg_backend_pid())", /* not answered */
    };
    NEED_SERVER();
    admin_do("CREATE TABLE " SCHEMA ".late (id int);"
             "CREATE FUNCTION " SCHEMA ".refuse() RETURNS trigger LANGUAGE plpgsql AS "
             "$$BEGIN RAISE EXCEPTION 'on purpose'; END$$;"
             "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON " SCHEMA ".late DEFERRABLE "
             "INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION " SCHEMA ".refuse()");
    const struct hf__statement real = statements[HF__STMT_MAKE_DURABLE];
    for (int i = 0; i < 3; i++) {
        struct hf__conn *conn = connected(db);
        bool unknown = false;
        int64_t before = stored();
        statements[HF__STMT_MAKE_DURABLE].sql = hows[i];
        hf_code code = add_and_wake(conn, 100 + i, &unknown);
        driver->rollback(conn);
        assert_true(driver->lost(conn));
        driver->disconnect(conn);
        statements[HF__STMT_MAKE_DURABLE] = real;
        assert_int_equal(code, HF_UNAVAILABLE); /* so it is sent again */
        assert_true(unknown);
        assert_int_equal(stored(), before + 1);
    }
}

static void a_session_that_ends_between_commit_and_disk_leaves_it_unknown(void **state)
{
    NEED_SERVER();
    const struct hf__statement real = statements[HF__STMT_NOTIFY_EARLY];
    struct hf__conn *conn = connected(db);
    bool unknown = false;
    statements[HF__STMT_NOTIFY_EARLY].sql = "SELECT pg_terminate_backend(pg_backend_pid()), $1, $2";
    hf_code code = add_and_wake(conn, 150, &unknown);
    statements[HF__STMT_NOTIFY_EARLY] = real;
    driver->disconnect(conn);
    assert_int_equal(code, HF_UNAVAILABLE);
    assert_true(unknown);
    assert_int_equal(stored(), 1);
    assert_false(atomic_load(&db->has_no_places)); /* that says nothing of what the server tells */
}

/* What make_durable locks, and a look whether it did. */
static void make_mark(void)
{
    admin_do("INSERT INTO holdfast.schema_version VALUES (1)");
}

static void drop_mark(void)
{
    PGresult *mark = PQexec(admin, "SELECT xmax <> '0' FROM holdfast.schema_version");
    assert_string_equal(PQgetvalue(mark, 0, 0), "t");
    PQclear(mark);
    admin_do("DELETE FROM holdfast.schema_version");
}

static void a_commit_that_is_made_durable_is_known(void **state)
{
    NEED_SERVER();
    make_mark();
    struct hf__conn *conn = connected(db);
    bool unknown = true;
    for (int i = 0; i < 2; i++) {
        ok(add_and_wake(conn, 200 + i, &unknown));
        assert_false(unknown);
        assert_int_equal(stored(), i + 1);
    }
    driver->disconnect(conn);
    drop_mark();
}

static bool is_woken(PGconn *listener, const char *payload)
{
    bool woken = false;
    PGnotify *said;
    PQclear(PQexec(listener, ""));
    while ((said = PQnotifies(listener)) != NULL) {
        woken |= strcmp(said->extra, payload) == 0;
        PQfreemem(said);
    }
    return woken;
}

/* Where the server does not tell places, the wake-up comes without, and from then on nothing is deferred. */
static void a_wake_up_that_fails_between_commit_and_disk_is_made_up_for(void **state)
{
    NEED_SERVER();
    make_mark();
    const struct hf__statement real = statements[HF__STMT_NOTIFY_EARLY];
    PGconn *listener = PQconnectdb(own_url);
    PQclear(PQexec(listener, "LISTEN holdfast_wake"));
    struct hf__conn *conn = connected(db);
    bool unknown = true;
    statements[HF__STMT_NOTIFY_EARLY].sql = "SELECT 1 / 0, $1, $2";
    atomic_store(&db->sleeper_seen_at, hf__monotonic_us());
    atomic_store(&db->alone, true);
    assert_true(driver->may_defer(conn));
    ok(add_and_wake(conn, 300, &unknown));
    statements[HF__STMT_NOTIFY_EARLY] = real;
    assert_false(unknown);
    assert_false(driver->may_defer(conn));
    assert_true(is_woken(listener, "7@1#01000000000000000000000000000000"));
    atomic_store(&db->has_no_places, false);
    driver->disconnect(conn);
    PQfinish(listener);
    drop_mark();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_backend_that_is_terminated_is_a_lost_connection),
        TEST(a_backend_that_dies_in_its_commit_leaves_it_unknown),
        TEST(a_server_that_is_at_work_is_waited_for_beyond_the_limit),
        TEST(an_answer_that_comes_while_it_is_asked_about_is_one),
        TEST(a_migration_may_take_as_long_as_the_server_is_at_work),
        TEST(a_transaction_is_not_waited_for_without_end),
        TEST(a_session_that_does_not_answer_is_lost_and_the_others_are_not),
        TEST(a_silent_server_is_tried_by_one_at_a_time),
        TEST(a_commit_is_foretold_with_its_answers_before_it_is_done),
        TEST(a_commit_is_foretold_once_and_the_next_is_not),
        TEST(nothing_is_foretold_when_a_statement_fails),
        TEST(what_is_sent_behind_a_foretelling_is_not_waited_for),
        TEST(nothing_is_foretold_by_a_rollback),
        TEST(nothing_is_foretold_behind_a_pooler),
        TEST(a_line_that_breaks_in_silence_leaves_the_commit_unknown),
        TEST(an_idle_connection_that_was_ended_is_noticed_at_its_next_use),
        TEST(a_server_that_is_not_there_is_unavailable),
        TEST(forgotten_statements_switch_the_database_to_none),
        TEST(a_commit_wakes_another_connection),
        TEST(a_failed_commit_and_a_failed_wake_do_not_mix),
        TEST(a_commit_that_is_not_made_durable_is_unknown),
        TEST(a_commit_that_is_made_durable_is_known),
        TEST(a_session_that_ends_between_commit_and_disk_leaves_it_unknown),
        TEST(a_wake_up_that_fails_between_commit_and_disk_is_made_up_for),
        TEST(waiting_ends_with_its_time),
        TEST(waiting_ends_when_told_to_stop_and_stays_ended),
        TEST(a_listener_that_loses_its_connection_says_so),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
