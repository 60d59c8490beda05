/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "worker/world.h"

#include "client/client.h"
#include "sql/scratch.h"
#include "util/clock.h"
#include "util/error.h"

#define SKIPPED 77 /* what Meson takes for a skipped test */

struct world world;
static const char *kind;
static struct scratch scratch; /* on PostgreSQL: what other tests do rings no worker here */

/* ---- A driver that counts, and fails when asked ---- */

static struct hf__driver counting;
static const struct hf__driver *real;
static atomic_int looks;
static atomic_int wide_looks;
static atomic_bool forbidden; /* tenants */
static pthread_t tester;

/* The lanes are a JSON array of numbers. */
static bool is_wide(const struct hf__table *params)
{
    int lanes = 1;
    for (const char *c = hf__as_text(hf__table_row(params, 0)[0]); *c; c++)
        lanes += *c == ',';
    return lanes > WIDE_LOOK;
}

static hf_code counting_send(struct hf__conn *conn, enum hf__stmt stmt,
                             const struct hf__table *params, struct hf__table *result,
                             hf_error *err)
{
    if (stmt == HF__STMT_FIND_HEADS || stmt == HF__STMT_NEXT_DUE || stmt == HF__STMT_CLAIM_RUNS ||
        stmt == HF__STMT_CLAIM_HEAD || stmt == HF__STMT_CLAIM_LIMITED ||
        stmt == HF__STMT_CLAIM_LIMITED_HEAD)
        atomic_fetch_add(&looks, 1);
    if (stmt == HF__STMT_FIND_HEADS && is_wide(params))
        atomic_fetch_add(&wide_looks, 1);
    if (stmt == HF__STMT_GET_TENANT && atomic_load(&forbidden) &&
        !pthread_equal(pthread_self(), tester))
        return hf__nomem(err);
    return real->send(conn, stmt, params, result, err);
}

static void make_driver(void)
{
    real = world_is_on_postgres() ? &hf__postgres_driver : &hf__sqlite_driver;
    counting = *real;
    counting.send = counting_send;
}

int world_looks(void)
{
    return atomic_load(&looks);
}

int world_wide_looks(void)
{
    return atomic_load(&wide_looks);
}

void world_forbid_tenants(bool now)
{
    atomic_store(&forbidden, now);
}

/* ---- The store ---- */

static void choose_url(void)
{
    world.directory[0] = '\0';
    if (strcmp(kind, "memory") == 0) {
        strcpy(world.url, "sqlite::memory:");
    } else if (strcmp(kind, "file") == 0) {
        folder_make(world.directory);
        folder_put_tables(world.directory, "test.db");
        snprintf(world.url, sizeof world.url, "sqlite:%s/test.db", world.directory);
    } else {
        strcpy(world.url, scratch.url);
    }
}

bool world_is_in_memory(void)
{
    return strcmp(kind, "memory") == 0;
}

bool world_is_on_postgres(void)
{
    return strcmp(kind, "postgres") == 0;
}

int world_set_up(void **state)
{
    static int counter;
    char tenant[64];
    hf_error err = { 0 };
    struct hf__engine_options inner = { .driver = &counting };
    (void)state;
    tester = pthread_self();
    choose_url();
    make_driver();
    snprintf(tenant, sizeof tenant, "test-%ld-%lld-%d", (long)getpid(),
             (long long)hf__clock_now(&hf__system_clock), counter++);
    if (hf__open(&world.root, world.url, NULL, &inner, &err) != HF_OK)
        fail_msg("%s: %s", world.url, err.message);
    assert_ok(hf_tenant_create(world.root, tenant, NULL));
    assert_ok(hf_open_as(&world.client, world.root, tenant, "tester", NULL));
    return 0;
}

static void remove_directory(void)
{
    if (world.directory[0])
        assert_int_equal(folder_remove(world.directory), 0);
}

int world_tear_down(void **state)
{
    (void)state;
    world_forbid_tenants(false);
    if (world.runs)
        world_stop();
    hf_worker_free(world.worker);
    world.worker = NULL;
    hf_close(world.client);
    hf_close(world.root);
    world.client = world.root = NULL;
    remove_directory();
    return 0;
}

static bool choose_store(const char *name)
{
    static const char *const stores[] = { "memory", "file", "postgres" };
    for (size_t i = 0; i < sizeof stores / sizeof *stores; i++)
        if (strcmp(name, stores[i]) == 0)
            kind = stores[i];
    return kind;
}

int world_run_tests(int argc, char **argv, const char *name, const struct CMUnitTest *tests,
                    size_t count)
{
    char title[64];
    if (argc < 2 || !choose_store(argv[1])) {
        fprintf(stderr, "usage: %s memory|file|postgres [TEST]\n", argv[0]);
        return 2;
    }
    if (world_is_on_postgres() && !scratch_server()) {
        fprintf(stderr, "HOLDFAST_TEST_POSTGRES is not set: skipped\n");
        return SKIPPED;
    }
    if (argc > 2)
        cmocka_set_test_filter(argv[2]);
    snprintf(title, sizeof title, "%s on %s", name, kind);
    if (world_is_on_postgres())
        scratch_create(&scratch);
    int failed = _cmocka_run_group_tests(title, tests, count, NULL, NULL);
    if (world_is_on_postgres())
        scratch_drop(&scratch);
    return failed ? 1 : 0;
}

/* ---- The worker ---- */

static atomic_int started; /* or ended without having started */

static void observe(const hf_worker_event *event, void *arg)
{
    (void)arg;
    if (event->kind == HF_WORKER_STARTED || event->kind == HF_WORKER_STOPPED)
        atomic_store(&started, 1);
}

hf_worker_options world_options(void)
{
    hf_worker_options options = HF_WORKER_OPTIONS_INIT;
    options.observer = observe;
    options.threads = 2;
    options.poll = HF_HOURS(1);
    options.heartbeat = HF_MILLISECONDS(50);
    return options;
}

void world_hire(const hf_worker_options *options)
{
    hf_worker_options defaults = world_options();
    if (hf_worker_new(&world.worker, world.client, options ? options : &defaults, &world.error) !=
        HF_OK)
        fail_msg("%s", world.error.message);
}

void world_handle(const char *pattern, hf_handler handler, void *arg)
{
    if (!world.worker)
        world_hire(NULL);
    if (hf_worker_handle(world.worker, pattern, handler, arg, &world.error) != HF_OK)
        fail_msg("%s", world.error.message);
}

static void *run_worker(void *arg)
{
    (void)arg;
    world.ended = hf_worker_run(world.worker, &world.error);
    return NULL;
}

void world_start(void)
{
    atomic_store(&started, 0);
    assert_int_equal(pthread_create(&world.thread, NULL, run_worker, NULL), 0);
    world.runs = true;
    world_await(&started, 1);
}

void world_ask_stop(void)
{
    hf_worker_stop(world.worker);
}

void world_join(void)
{
    pthread_join(world.thread, NULL);
    world.runs = false;
    hf_worker_free(world.worker);
    world.worker = NULL;
    if (world.ended != HF_OK)
        fail_msg("the worker ended with %s: %s", hf_code_name(world.ended), world.error.message);
}

void world_stop(void)
{
    world_ask_stop();
    world_join();
}

/* ---- Runs ---- */

void world_define(const char *name, int max_attempts, int64_t retry_base, int64_t lease)
{
    hf_error err;
    hf_workflow workflow = {
        .name = name,
        .max_attempts = max_attempts,
        .retry_base = retry_base,
        .lease = lease,
    };
    unsigned mask = (max_attempts ? HF_SET_MAX_ATTEMPTS : 0u) |
                    (retry_base ? HF_SET_RETRY_BASE : 0u) | (lease ? HF_SET_LEASE : 0u);
    if (hf_workflow_put(world.client, &workflow, mask, &err) != HF_OK)
        fail_msg("%s", err.message);
}

hf_id world_trigger_spec(const hf_trigger_spec *spec)
{
    hf_error err;
    hf_triggered out;
    if (hf_trigger(world.client, &out, spec, &err) != HF_OK)
        fail_msg("%s", err.message);
    return out.id;
}

hf_id world_trigger(const char *workflow, const char *input)
{
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    spec.workflow = workflow;
    spec.input = input;
    return world_trigger_spec(&spec);
}

void world_claim_and_die(const char *workflow)
{
    const char *patterns[] = { workflow };
    hf_claim_spec spec = HF_CLAIM_INIT;
    hf_claims *claims = NULL;
    hf_error err;
    spec.worker = "dead";
    spec.patterns = patterns;
    spec.pattern_count = 1;
    spec.lease = HF_MILLISECONDS(20);
    if (hf_claim(world.client, &claims, &spec, &err) != HF_OK)
        fail_msg("%s", err.message);
    assert_int_equal(claims->count, 1);
    hf_claims_free(claims);
    world_sleep(spec.lease + HF_MILLISECONDS(5));
}

hf_run *world_wait(hf_id id)
{
    hf_error err;
    hf_run *run = NULL;
    if (hf_wait(world.client, &run, id, SOON, &err) != HF_OK)
        fail_msg("%s", err.message);
    return run;
}

hf_run *world_get(hf_id id)
{
    hf_error err;
    hf_run *run = NULL;
    if (hf_get(world.client, &run, id, &err) != HF_OK)
        fail_msg("%s", err.message);
    return run;
}

hf_run *world_await_status(hf_id id, hf_status status)
{
    for (;;) {
        hf_run *run = world_get(id);
        if (run->status == status)
            return run;
        if (hf_status_finished(run->status))
            fail_msg("%s: %s", hf_status_name(run->status), run->last_error);
        hf_run_free(run);
        world_sleep(HF_MILLISECONDS(5));
    }
}

void world_signal(hf_id id, const char *name, const char *payload, const char *signal_id)
{
    hf_signal_spec spec = HF_SIGNAL_INIT;
    spec.name = name;
    spec.payload = payload;
    spec.id = signal_id;
    bool duplicate;
    assert_ok(hf_signal(world.client, id, &spec, &duplicate, &world.error));
}

int world_count_events(hf_id run, const char *wanted, const char *name)
{
    hf_events *events = NULL;
    int count = 0;
    assert_ok(hf_events_list(world.client, &events, run, 0, 1000, NULL));
    for (size_t i = 0; i < events->count; i++)
        count += strcmp(events->items[i].kind, wanted) == 0 &&
                 (!name || strcmp(events->items[i].name, name) == 0);
    hf_events_free(events);
    return count;
}

void world_expect(hf_id id, hf_status status)
{
    hf_run *run = world_wait(id);
    if (run->status != status)
        fail_msg("the run is %s (%s), not %s", hf_status_name(run->status),
                 run->last_error ? run->last_error : "no error", hf_status_name(status));
    hf_run_free(run);
}

void world_expect_result(hf_id id, const char *result)
{
    hf_run *run = world_wait(id);
    if (run->status != HF_SUCCEEDED)
        fail_msg("%s: %s", hf_status_name(run->status), run->last_error);
    assert_string_equal(run->result, result);
    hf_run_free(run);
}

void world_sleep(int64_t us)
{
    struct timespec time = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };
    nanosleep(&time, NULL);
}

void world_await(atomic_int *counter, int value)
{
    int64_t until = hf__monotonic_us() + SOON;
    while (atomic_load(counter) < value) {
        if (hf__monotonic_us() > until)
            fail_msg("waited in vain for %d, it is %d", value, atomic_load(counter));
        world_sleep(HF_MILLISECONDS(1));
    }
}
