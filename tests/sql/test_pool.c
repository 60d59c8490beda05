/* Connections to PostgreSQL, as the server counts them: never more than max_open, no more unused ones than max_idle, none
 * older than max_lifetime. F8.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sql/scratch.h"

#include <holdfast/worker.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/client.h"
#include "client/ids.h"
#include "util/clock.h"

#define SOON HF_MINUTES(3) /* longer than anything should take, even on a busy machine */

enum { READERS = 20, FLUSHERS = 2, LISTENERS = 1, GATE = 77 };

static struct scratch scratch;

/* Whoever asks the store for the time waits while the test holds the lock: by trying, since the engine's sessions wait for
 * no lock for long. */
static const char gate[] =
    "CREATE OR REPLACE FUNCTION holdfast.now() RETURNS bigint LANGUAGE plpgsql STABLE AS $$ BEGIN "
    "WHILE NOT pg_try_advisory_xact_lock_shared(77) LOOP PERFORM pg_sleep(0.02); END LOOP; "
    "RETURN (extract(epoch FROM statement_timestamp()) * 1000000)::bigint; END $$";

static int set_up(void **state)
{
    (void)state;
    scratch_create(&scratch);
    hf_client *client = scratch_open(scratch.url);
    assert_ok(hf_workflow_put(client, &(hf_workflow){ .name = "work" }, 0, err));
    hf_close(client);
    pg_do(scratch.pg, gate);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_drop(&scratch);
    return 0;
}

static void close_gate(void)
{
    pg_do(scratch.pg, "SELECT pg_advisory_lock(%d)", GATE);
}

static void open_gate(void)
{
    pg_do(scratch.pg, "SELECT pg_advisory_unlock(%d)", GATE);
}

/* Also after a test that failed, so that nobody waits on. */
static int open_gate_for_good(void **state)
{
    (void)state;
    pg_do(scratch.pg, "SELECT pg_advisory_unlock_all()");
    return 0;
}

#define TEST(name) cmocka_unit_test_teardown(name, open_gate_for_good)

/* A client whose sessions the server knows by `name`. It is patient: nobody gives up while the gate is closed. */
static hf_client *opened(const char *name, const char *limits)
{
    char parameters[200], url[SCRATCH_URL];
    hf_client *client = NULL;
    hf_options options = HF_OPTIONS_INIT;
    options.connect_limit = SOON;
    snprintf(parameters, sizeof parameters, "application_name=%s&answer_timeout=3m&%s", name,
             limits);
    scratch_url_with(url, scratch.url, parameters);
    assert_ok(hf_open(&client, url, &options, err));
    return client;
}

/* The same once every flusher has had something to do: runs, of which there are none, go to all of them. */
static hf_client *opened_and_used(const char *name, const char *limits)
{
    hf_client *client = opened(name, limits);
    for (int i = 0; i < 32; i++)
        assert_int_equal(hf_change_run(client, hf__new_id(), HF_CANCEL, NULL, NULL), HF_NOT_FOUND);
    return client;
}

static int sessions(const char *name)
{
    return (int)pg_number(scratch.pg,
                          "SELECT count(*) FROM pg_stat_activity WHERE application_name = '%s' AND "
                          "datname = current_database()",
                          name);
}

/* Waits until the server counts so many. */
static void await_sessions(const char *name, int wanted)
{
    int64_t deadline = hf__monotonic_us() + SOON;
    int found;
    while ((found = sessions(name)) != wanted && hf__monotonic_us() < deadline)
        usleep(10000);
    assert_int_equal(found, wanted);
}

/* Waits until so many have found all connections in use. */
static void await_waited(hf_client *client, int64_t wanted)
{
    int64_t deadline = hf__monotonic_us() + SOON;
    while (hf__engine_pool_use(client->engine).waited < wanted && hf__monotonic_us() < deadline)
        usleep(10000);
    assert_int_equal(hf__engine_pool_use(client->engine).waited, wanted);
}

static atomic_int heard; /* a listener begins with the news that everything may have changed */

static void hear(const struct hf__heard *what, void *arg)
{
    (void)what, (void)arg;
    atomic_fetch_add(&heard, 1);
}

static void await_listener(void)
{
    int64_t deadline = hf__monotonic_us() + SOON;
    while (atomic_load(&heard) == 0 && hf__monotonic_us() < deadline)
        usleep(10000);
    assert_int_not_equal(atomic_load(&heard), 0);
}

/* ---- Readers ---- */

struct reader {
    hf_client *client;
    pthread_t thread;
    hf_code code;
};

static void *read_time(void *arg)
{
    struct reader *reader = arg;
    int64_t now;
    reader->code = hf_store_now(reader->client, &now, NULL);
    return NULL;
}

static void start_readers(struct reader *readers, int count, hf_client *client)
{
    for (int i = 0; i < count; i++) {
        readers[i].client = client;
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_time, &readers[i]), 0);
    }
}

static void join_readers(struct reader *readers, int count)
{
    for (int i = 0; i < count; i++) {
        pthread_join(readers[i].thread, NULL);
        assert_int_equal(readers[i].code, HF_OK);
    }
}

/* ---- max_open and max_idle ---- */

static void many_callers_share_max_open_connections_and_leave_max_idle(void **state)
{
    (void)state;
    enum { MAX_OPEN = 6, MAX_IDLE = 1, POOLED = MAX_OPEN - FLUSHERS - LISTENERS };
    struct reader readers[READERS];
    struct hf__ear *ear = NULL;
    hf_client *client = opened_and_used("pool_open", "max_open=6&max_idle=1");
    atomic_store(&heard, 0);
    assert_ok(hf__engine_listen(client->engine, &ear, hear, NULL, err));
    await_listener();
    await_sessions("pool_open", FLUSHERS + LISTENERS + MAX_IDLE);

    close_gate();
    int64_t before = hf__engine_pool_use(client->engine).waited;
    start_readers(readers, READERS, client);
    await_waited(client, before + READERS - POOLED);
    await_sessions("pool_open", MAX_OPEN);
    open_gate();
    join_readers(readers, READERS);

    await_sessions("pool_open", FLUSHERS + LISTENERS + MAX_IDLE);
    hf__engine_unlisten(ear);
    hf_close(client);
    await_sessions("pool_open", 0);
}

static void a_listener_that_begins_waits_for_room_to_test_its_hearing(void **state)
{
    (void)state;
    struct reader reader;
    struct hf__ear *ear = NULL;
    hf_client *client = opened_and_used("pool_ear", "max_open=4");
    await_sessions("pool_ear", FLUSHERS + 1);
    atomic_store(&heard, 0);
    close_gate();
    start_readers(&reader, 1, client);
    int64_t deadline = hf__monotonic_us() + SOON;
    while (hf__engine_pool_use(client->engine).idle > 0 && hf__monotonic_us() < deadline)
        usleep(10000);
    assert_ok(hf__engine_listen(client->engine, &ear, hear, NULL, err));
    await_waited(client, 1);
    assert_int_equal(sessions("pool_ear"), FLUSHERS + 1);
    assert_int_equal(atomic_load(&heard), 0);

    open_gate();
    join_readers(&reader, 1);
    await_listener();
    hf__engine_unlisten(ear);
    hf_close(client);
}

static void who_only_reads_has_one_connection(void **state)
{
    (void)state;
    int64_t now;
    hf_client *client = opened("pool_read", "max_idle=1");
    for (int i = 0; i < 3; i++)
        assert_ok(hf_store_now(client, &now, err));
    assert_int_equal(sessions("pool_read"), 1);
    hf_close(client);
}

static void no_connection_is_kept_where_none_may_be_idle(void **state)
{
    (void)state;
    int64_t now;
    hf_client *client = opened_and_used("pool_none", "max_idle=0");
    assert_ok(hf_store_now(client, &now, err));
    await_sessions("pool_none", FLUSHERS);
    hf_close(client);
}

static void what_the_options_say_goes_before_the_url(void **state)
{
    (void)state;
    char url[SCRATCH_URL];
    hf_error error;
    hf_client *client = NULL;
    hf_options options = HF_OPTIONS_INIT;
    scratch_url_with(url, scratch.url, "max_open=3");
    assert_int_equal(hf_open(&client, url, &options, &error), HF_INVALID);
    assert_non_null(strstr(error.message, "max_open is 3; it must be at least 4"));
    options.max_open = 4;
    assert_ok(hf_open(&client, url, &options, err));
    hf_close(client);
    options.max_open = 2;
    scratch_url_with(url, scratch.url, "max_open=8");
    assert_int_equal(hf_open(&client, url, &options, &error), HF_INVALID);
    assert_non_null(strstr(error.message, "max_open is 2"));
}

/* ---- max_lifetime ---- */

static atomic_int calls;

static hf_code work(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)ctx, (void)input, (void)err, (void)arg;
    atomic_fetch_add(&calls, 1);
    return HF_OK;
}

static void *run_worker(void *worker)
{
    return hf_worker_run(worker, NULL) == HF_OK ? worker : NULL;
}

static void trigger_for_a_moment(hf_client *client, int *count)
{
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    hf_triggered run;
    spec.workflow = "work";
    assert_ok(hf_trigger(client, &run, &spec, err));
    (*count)++;
    usleep(5000);
}

/* The sessions of a moment in which all kinds of them are there. */
static const char *first_sessions(const char *name, hf_client *client, int *count)
{
    int64_t deadline = hf__monotonic_us() + SOON;
    while (sessions(name) <= FLUSHERS + LISTENERS && hf__monotonic_us() < deadline)
        trigger_for_a_moment(client, count);
    return pg_text(scratch.pg,
                   "SELECT array_agg(pid)::text FROM pg_stat_activity WHERE application_name = "
                   "'%s'",
                   name);
}

static bool any_is_left(const char *pids)
{
    return pg_number(scratch.pg, "SELECT count(*) FROM pg_stat_activity WHERE pid = ANY ('%s')",
                     pids) > 0;
}

/* The worker hears of its work by its listener alone: others trigger it, and it does not poll. */
static void connections_are_replaced_after_max_lifetime_and_nothing_is_lost(void **state)
{
    (void)state;
    int count = 0;
    pthread_t thread;
    void *ended = NULL;
    hf_worker *worker = NULL;
    hf_worker_options options = HF_WORKER_OPTIONS_INIT;
    hf_client *other = scratch_open(scratch.url);
    hf_client *client = opened("pool_life", "max_lifetime=1s");
    options.poll = HF_HOURS(1);
    assert_ok(hf_worker_new(&worker, client, &options, err));
    assert_ok(hf_worker_handle(worker, "work", work, NULL, err));
    assert_int_equal(pthread_create(&thread, NULL, run_worker, worker), 0);

    const char *pids = first_sessions("pool_life", other, &count);
    int64_t deadline = hf__monotonic_us() + SOON;
    while (any_is_left(pids) && hf__monotonic_us() < deadline)
        trigger_for_a_moment(other, &count);
    assert_false(any_is_left(pids));

    while (atomic_load(&calls) < count && hf__monotonic_us() < deadline)
        usleep(10000);
    hf_worker_stop(worker);
    pthread_join(thread, &ended);
    assert_non_null(ended);
    assert_int_equal(atomic_load(&calls), count);
    assert_int_equal(
        pg_number(scratch.pg,
                  "SELECT count(*) FROM holdfast.runs WHERE workflow = 'work' AND status = "
                  "'succeeded'"),
        count);
    hf_worker_free(worker);
    hf_close(client);
    hf_close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(many_callers_share_max_open_connections_and_leave_max_idle),
        TEST(a_listener_that_begins_waits_for_room_to_test_its_hearing),
        TEST(who_only_reads_has_one_connection),
        TEST(no_connection_is_kept_where_none_may_be_idle),
        TEST(what_the_options_say_goes_before_the_url),
        TEST(connections_are_replaced_after_max_lifetime_and_nothing_is_lost),
    };
    if (!scratch_server())
        return 77; /* skipped */
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
