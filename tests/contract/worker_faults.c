/* A worker whose store fails it: an answer that was lost, a schema that has moved on. F10.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "contract/fixture.h"

#include "worker/worker.h"

static hf_worker *worker;
static pthread_t thread;
static hf_code ended;
static hf_error reason;
static atomic_int started; /* or ended without having started */
static atomic_int calls;

static void nap(void)
{
    struct timespec time = { .tv_nsec = 1000000 };
    nanosleep(&time, NULL);
}

static void observe(const hf_worker_event *event, void *arg)
{
    (void)arg;
    if (event->kind == HF_WORKER_STARTED || event->kind == HF_WORKER_STOPPED)
        atomic_store(&started, 1);
}

static hf_code count_it(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)ctx;
    (void)input;
    (void)err;
    (void)arg;
    atomic_fetch_add(&calls, 1);
    return HF_OK;
}

static void *run_worker(void *arg)
{
    (void)arg;
    ended = hf_worker_run(worker, &reason);
    return NULL;
}

static void start_worker(void)
{
    hf_worker_options options = HF_WORKER_OPTIONS_INIT;
    options.threads = 2;
    options.poll = HF_HOURS(1);
    options.heartbeat = HF_MILLISECONDS(10);
    options.observer = observe;
    assert_ok(hf_worker_new(&worker, fx.client, &options, &fx.error));
    assert_ok(hf_worker_handle(worker, WORK, count_it, NULL, &fx.error));
    atomic_store(&started, 0);
    atomic_store(&calls, 0);
    assert_int_equal(pthread_create(&thread, NULL, run_worker, NULL), 0);
    while (!atomic_load(&started))
        nap();
}

/* One that does not end by itself is stopped, for the test to go on. */
static void join_worker(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 120;
    if (pthread_timedjoin_np(thread, NULL, &until) != 0) {
        hf_worker_stop(worker);
        pthread_join(thread, NULL);
    }
    hf_worker_free(worker);
}

/* One run, of whose claim the answer is lost, unless the engine's own work comes between: then of that. */
static hf_id lose_a_claim(void)
{
    hf_trigger_spec spec = spec_of(WORK);
    hf_run *run = NULL;
    spec.delay = HF_SECONDS(1);
    hf_id id = trigger_spec(&spec);
    while (!atomic_load(&worker->idle)) /* a claim that finds nothing must not be the one */
        nap();
    atomic_store(&calls, 0);
    lose_answers(1);
    advance(HF_SECONDS(1));
    assert_ok(hf_wait(fx.client, &run, id, HF_MINUTES(2), &fx.error));
    hf_run_free(run);
    lose_answers(0);
    return id;
}

/* The test's clock stands still, so the lease never ends: only an adoption brings the run back. */
static void a_worker_gives_back_what_it_claimed_without_hearing_of_it(void **state)
{
    hf_id id;
    int tries = 0;
    (void)state;
    start_worker();
    do
        id = lose_a_claim();
    while (!strstr(journal(id), "given_back") && ++tries < 20);
    hf_worker_stop(worker);
    join_worker();
    expect_journal(id, "created started given_back started succeeded");
    assert_int_equal(get(id)->attempt, 1);
    /* Where the claim is handed out early, its handler may have begun before the answer was lost. */
    assert_in_range(atomic_load(&calls), 1, fx.backend == BACKEND_MEMORY ? 1 : 2);
}

#define SHORT_LEASE HF_MILLISECONDS(300)

/* As when the process is stopped while the answer is on its way. */
static void oversleep(void)
{
    struct timespec time = { .tv_nsec = 2 * SHORT_LEASE * 1000 };
    nanosleep(&time, NULL);
}

/* Returns the one that is due first. */
static hf_id hear_of_claims_late(void)
{
    enum { MANY = 20 };
    hf_id ids[MANY];
    hf_trigger_spec spec = spec_of(WORK);
    spec.delay = HF_SECONDS(1);
    for (int i = 0; i < MANY; i++)
        ids[i] = trigger_spec(&spec);
    while (!atomic_load(&worker->idle))
        nap();
    when_committed(oversleep);
    advance(HF_SECONDS(1));
    for (int i = 0; i < MANY; i++) {
        hf_run *run = NULL;
        assert_ok(hf_wait(fx.client, &run, ids[i], HF_MINUTES(2), &fx.error));
        hf_run_free(run);
    }
    when_committed(NULL);
    return ids[0];
}

/* The lease began when the claim was made, not when the worker got to hear of it: others may be at it. */
static void a_worker_that_hears_too_late_of_its_claims_does_not_begin_them(void **state)
{
    hf_id id;
    int tries = 0;
    (void)state;
    define_with((hf_workflow){ .name = WORK, .lease = SHORT_LEASE }, HF_SET_LEASE);
    foretell_nothing(true);
    start_worker();
    do
        id = hear_of_claims_late();
    while (!strstr(journal(id), "given_back") && ++tries < 20);
    hf_worker_stop(worker);
    join_worker();
    foretell_nothing(false);
    assert_non_null(strstr(journal(id), "created started given_back started"));
}

static void a_worker_stops_by_itself_when_the_schema_needs_a_newer_program(void **state)
{
    (void)state;
    start_worker();
    sql("INSERT INTO schema_version (version, name, min_writer, applied_at) "
        "VALUES (99, 'future', 98, 0)");
    join_worker();
    sql("DELETE FROM schema_version WHERE version = 99");
    assert_code(ended, HF_SCHEMA_NEWER);
    assert_non_null(strstr(reason.message, "newer"));
    hf_id id = trigger(WORK);
    expect_status(id, HF_PENDING);
    assert_int_equal(sql_number("SELECT count(*) FROM worker"), 0);
}

static void a_worker_goes_on_when_a_newer_schema_suits_it(void **state)
{
    hf_run *run = NULL;
    (void)state;
    start_worker();
    sql("INSERT INTO schema_version (version, name, min_writer, applied_at) "
        "VALUES (99, 'future', 1, 0)");
    for (int i = 0; i < 300; i++)
        nap(); /* several looks at the schema */
    hf_code code = hf_wait(fx.client, &run, trigger(WORK), HF_MINUTES(2), &fx.error);
    hf_run_free(run);
    hf_worker_stop(worker);
    join_worker();
    sql("DELETE FROM schema_version WHERE version = 99");
    assert_code(code, HF_OK);
    assert_code(ended, HF_OK);
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(a_worker_gives_back_what_it_claimed_without_hearing_of_it),
    CONTRACT_TEST(a_worker_that_hears_too_late_of_its_claims_does_not_begin_them),
    CONTRACT_TEST(a_worker_stops_by_itself_when_the_schema_needs_a_newer_program),
    CONTRACT_TEST(a_worker_goes_on_when_a_newer_schema_suits_it),
};
CONTRACT("worker_faults", tests)
