/* Schedules: each due time fires once, what was missed is caught up with, runs that overlap are dealt with. The clock
 * is the test's; workers run only while a test lets them, so that every pause between is a downtime. B10.
 * SPDX-License-Identifier: Apache-2.0 */
#include "contract/fixture.h"

#include <holdfast/worker.h>

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "client/client.h"
#include "kernel/chores.h"
#include "util/duration.h"

#define NAME "nightly"
#define HOUR HF_HOURS(1)
#define WORKERS_MOST 4

/* ---- Workers ---- */

struct staff {
    hf_worker *worker;
    pthread_t thread;
    hf_code ended;
    hf_error error;
};

static hf_code idle_handler(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)ctx;
    (void)input;
    (void)err;
    (void)arg;
    return HF_OK;
}

static void *run_worker(void *arg)
{
    struct staff *staff = arg;
    staff->ended = hf_worker_run(staff->worker, &staff->error);
    return NULL;
}

/* What to lose with the commit of the schedule's next turn, once. */
static void (*_Atomic to_lose)(int count);

static void observe(const hf_worker_event *event, void *arg)
{
    (void)arg;
    if (event->kind != HF_WORKER_RUN_STARTED)
        return;
    void (*lose)(int) = atomic_exchange(&to_lose, NULL);
    if (lose)
        lose(1);
}

static void hire(struct staff *staff)
{
    hf_worker_options options = HF_WORKER_OPTIONS_INIT;
    options.threads = 2;
    options.poll = HF_MILLISECONDS(100);
    options.observer = observe;
    assert_ok(hf_worker_new(&staff->worker, fx.client, &options, &fx.error));
    assert_ok(hf_worker_handle(staff->worker, "unrelated", idle_handler, NULL, &fx.error));
    assert_int_equal(pthread_create(&staff->thread, NULL, run_worker, staff), 0);
}

static void dismiss(struct staff *staff)
{
    hf_worker_stop(staff->worker);
    pthread_join(staff->thread, NULL);
    hf_worker_free(staff->worker);
    assert_int_equal(staff->ended, HF_OK);
}

static bool is_settled(hf_id id)
{
    hf_run *run = NULL;
    assert_ok(hf_get(fx.client, &run, id, &fx.error));
    bool asleep = run->status == HF_WAITING && (run->run_at == 0 || run->run_at > now());
    bool settled = asleep || run->status == HF_PAUSED || hf_status_finished(run->status);
    hf_run_free(run);
    return settled;
}

static const hf_schedule *show(void)
{
    hf_schedule *schedule = NULL;
    assert_ok(hf_schedule_get(fx.client, &schedule, NAME, &fx.error));
    return keep(schedule, (void (*)(void *))hf_schedule_free);
}

/* Lets workers live until the schedule sleeps. */
static void let_work_with(int workers)
{
    struct staff staff[WORKERS_MOST] = { 0 };
    hf_id run = show()->run;
    for (int i = 0; i < workers; i++)
        hire(&staff[i]);
    for (int i = 0; !is_settled(run); i++) {
        assert_true(i < 18000);
        usleep(10000);
    }
    for (int i = 0; i < workers; i++)
        dismiss(&staff[i]);
}

static void let_work(void)
{
    let_work_with(1);
}

/* ---- Doing and looking ---- */

/* Half past an hour. */
static void begin_at_half_past(void)
{
    advance(HOUR - now() % HOUR + HOUR / 2);
}

static hf_schedule_spec hourly(void)
{
    hf_schedule_spec spec = HF_SCHEDULE_INIT;
    spec.name = NAME;
    spec.cron = "every 1h";
    spec.workflow = WORK;
    return spec;
}

static void set(const hf_schedule_spec *spec)
{
    assert_ok(hf_schedule_set(fx.client, spec, &fx.error));
}

static void set_hourly(hf_overlap overlap, hf_catch_up catch_up)
{
    hf_schedule_spec spec = hourly();
    spec.overlap = overlap;
    spec.catch_up = catch_up;
    begin_at_half_past();
    set(&spec);
}

/* The runs of `work`, newest first. */
static const hf_runs *started(void)
{
    hf_filter filter = HF_FILTER_INIT;
    filter.workflow = WORK;
    filter.limit = 1000;
    return list(&filter);
}

static void expect_started(size_t count)
{
    assert_int_equal(started()->count, count);
}

/* The runs' keys are the due times, newest first, in hours before now (cut). */
static void expect_due(const int *hours_ago, size_t count)
{
    const hf_runs *runs = started();
    assert_int_equal(runs->count, count);
    for (size_t i = 0; i < count; i++) {
        char due[HF__TIME_TEXT];
        hf__time_format(now() - now() % HOUR - hours_ago[i] * HOUR, due);
        assert_string_equal(runs->items[i].key, text_of("schedule:%s:%s", NAME, due));
    }
}
#define EXPECT_DUE(...)                                                                            \
    expect_due((const int[]){ __VA_ARGS__ }, sizeof((const int[]){ __VA_ARGS__ }) / sizeof(int))

static const hf_claimed *claim_started(void)
{
    static const char *const patterns[] = { WORK };
    hf_claim_spec spec = HF_CLAIM_INIT;
    spec.worker = WORKER;
    spec.patterns = patterns;
    spec.pattern_count = 1;
    const hf_claims *claims = claim_with(&spec);
    assert_int_equal(claims->count, 1);
    return &claims->items[0];
}

static size_t count_events(const char *name)
{
    const hf_events *events = events_of(show()->run);
    size_t count = 0;
    for (size_t i = 0; i < events->count; i++)
        count += strcmp(events->items[i].name, name) == 0;
    return count;
}

/* ---- Firing ---- */

static void a_due_time_starts_a_run_with_what_the_schedule_says(void **state)
{
    static const char *const tags[] = { "a", "b" };
    hf_schedule_spec spec = hourly();
    (void)state;
    begin_at_half_past();
    spec.input = "{\"n\": 12345678901234567890.0}";
    spec.priority = 7;
    spec.tags = tags;
    spec.tag_count = 2;
    set(&spec);
    let_work();
    expect_started(0);
    advance(HOUR);
    let_work();
    EXPECT_DUE(0);
    const hf_run *run = get(started()->items[0].id);
    assert_string_equal(run->input, spec.input);
    assert_int_equal(run->priority, 7);
    assert_string_equal(run->tags, "[\"a\",\"b\"]");
    assert_string_equal(run->reference, "schedule:" NAME);
    assert_true(hf_id_equal(show()->last_run, run->id));
    assert_true(show()->last_at == now() - HOUR / 2);
    assert_true(show()->next_at == now() + HOUR / 2);
    assert_int_equal(show()->fired, 1);
    assert_int_equal(count_events("fired"), 1);
}

static void several_workers_fire_a_due_time_once(void **state)
{
    (void)state;
    set_hourly(HF_OVERLAP_ALLOW, HF_CATCH_UP_ONE);
    for (int i = 1; i <= 5; i++) {
        advance(HOUR);
        let_work_with(WORKERS_MOST);
        expect_started((size_t)i);
    }
    EXPECT_DUE(0, 1, 2, 3, 4);
    assert_int_equal(show()->fired, 5);
}

static void a_lost_answer_fires_neither_twice_nor_never(void **state)
{
    void (*const faults[])(int) = { lose_answers, lose_commits };
    (void)state;
    set_hourly(HF_OVERLAP_ALLOW, HF_CATCH_UP_ALL);
    for (int i = 0; i < 2; i++) {
        int lost = answers_lost();
        advance(2 * HOUR);
        atomic_store(&to_lose, faults[i]);
        let_work();
        assert_int_equal(answers_lost(), lost + 1);
    }
    EXPECT_DUE(0, 1, 2, 3);
    assert_int_equal(show()->fired, 4);
    assert_int_equal(count_events("fired"), 4);
}

static void cron_fires_in_its_time_zone(void **state)
{
    int64_t berlin_noon;
    hf_schedule_spec spec = hourly();
    (void)state;
    spec.cron = "0 12 * * *";
    spec.timezone = "Asia/Tokyo";
    set(&spec);
    assert_int_equal((show()->next_at / HOUR) % 24, 3);
    spec.timezone = "Europe/Berlin";
    set(&spec);
    berlin_noon = show()->next_at / HOUR % 24;
    assert_true(berlin_noon == 10 || berlin_noon == 11);
}

/* ---- Catching up ---- */

static void catching_up_with_one_fires_the_latest(void **state)
{
    (void)state;
    set_hourly(HF_OVERLAP_ALLOW, HF_CATCH_UP_ONE);
    advance(5 * HOUR);
    let_work();
    EXPECT_DUE(0);
    assert_int_equal(count_events("missed"), 1);
    advance(HOUR);
    let_work();
    EXPECT_DUE(0, 1);
}

static void catching_up_with_none_fires_only_what_is_hardly_late(void **state)
{
    (void)state;
    set_hourly(HF_OVERLAP_ALLOW, HF_CATCH_UP_NONE);
    advance(5 * HOUR);
    let_work();
    expect_started(0);
    assert_int_equal(count_events("missed"), 1);
    advance(HOUR / 2 + HF_SECONDS(60));
    let_work();
    EXPECT_DUE(0);
    advance(HOUR + HF_SECONDS(1));
    let_work();
    expect_started(1);
}

static void catching_up_with_all_fires_each(void **state)
{
    (void)state;
    set_hourly(HF_OVERLAP_ALLOW, HF_CATCH_UP_ALL);
    advance(4 * HOUR);
    let_work();
    EXPECT_DUE(0, 1, 2, 3);
    assert_int_equal(count_events("missed"), 0);
}

static void more_than_a_turn_can_fire_goes_on_in_the_next(void **state)
{
    hf_schedule_spec spec = hourly();
    (void)state;
    spec.cron = "every 1s";
    spec.overlap = HF_OVERLAP_ALLOW;
    spec.catch_up = HF_CATCH_UP_ALL;
    set(&spec);
    int64_t from = now() / HF_SECONDS(1);
    advance(HF_SECONDS(2500));
    let_work();
    assert_int_equal(show()->fired, now() / HF_SECONDS(1) - from);
    assert_int_equal(sql_number("SELECT count(*) FROM run r JOIN workflow w ON w.id = "
                                "r.workflow_id JOIN tenant t ON t.id = r.tenant_id WHERE w.name = "
                                "'%s' AND t.name = '%s'",
                                WORK, fx.tenant),
                     show()->fired);
}

/* ---- Overlap ---- */

static void skipping_starts_nothing_while_the_last_runs(void **state)
{
    (void)state;
    set_hourly(HF_OVERLAP_SKIP, HF_CATCH_UP_ONE);
    advance(HOUR);
    let_work();
    const hf_claimed *held = claim_started();
    advance(HOUR);
    let_work();
    EXPECT_DUE(1);
    assert_int_equal(show()->skipped, 1);
    assert_int_equal(count_events("skipped"), 1);
    (void)held;
    change(started()->items[0].id, HF_CANCEL);
    advance(HOUR);
    let_work();
    EXPECT_DUE(0, 2);
}

static void skipping_while_catching_up_starts_the_first_of_all(void **state)
{
    (void)state;
    set_hourly(HF_OVERLAP_SKIP, HF_CATCH_UP_ALL);
    advance(3 * HOUR);
    let_work();
    EXPECT_DUE(2);
    assert_int_equal(show()->skipped, 2);
}

static void queueing_starts_the_next_when_the_last_has_ended(void **state)
{
    (void)state;
    set_hourly(HF_OVERLAP_QUEUE, HF_CATCH_UP_ALL);
    advance(3 * HOUR);
    let_work();
    EXPECT_DUE(2);
    assert_int_equal(show()->queued, 2);
    succeed(claim_started());
    let_work();
    EXPECT_DUE(1, 2);
    fail_for_good(claim_started());
    let_work();
    EXPECT_DUE(0, 1, 2);
    assert_int_equal(show()->queued, 0);
    assert_int_equal(show()->skipped, 0);
    succeed(claim_started());
    let_work();
    expect_started(3);
    advance(HOUR);
    let_work();
    EXPECT_DUE(0, 1, 2, 3);
}

static void a_queue_that_is_full_skips(void **state)
{
    (void)state;
    set_hourly(HF_OVERLAP_QUEUE, HF_CATCH_UP_ALL);
    advance(104 * HOUR);
    let_work();
    expect_started(1);
    assert_int_equal(show()->queued, 100);
    assert_int_equal(show()->skipped, 3);
}

static void cancelling_replaces_the_last(void **state)
{
    (void)state;
    set_hourly(HF_OVERLAP_CANCEL, HF_CATCH_UP_ALL);
    advance(HOUR);
    let_work();
    hf_id first = started()->items[0].id;
    advance(2 * HOUR);
    let_work();
    EXPECT_DUE(0, 2);
    expect_status(first, HF_CANCELLED);
    expect_status(started()->items[0].id, HF_PENDING);
    assert_int_equal(show()->fired, 2);
    assert_int_equal(show()->skipped, 1);
}

static void allowing_lets_both_run(void **state)
{
    (void)state;
    set_hourly(HF_OVERLAP_ALLOW, HF_CATCH_UP_ONE);
    advance(HOUR);
    let_work();
    advance(HOUR);
    let_work();
    EXPECT_DUE(0, 1);
}

/* ---- Pausing, changing, deleting ---- */

static void a_paused_schedule_fires_nothing(void **state)
{
    (void)state;
    set_hourly(HF_OVERLAP_ALLOW, HF_CATCH_UP_ONE);
    assert_ok(hf_schedule_pause(fx.client, NAME, &fx.error));
    assert_ok(hf_schedule_pause(fx.client, NAME, &fx.error));
    assert_true(show()->paused);
    assert_true(show()->next_at == 0);
    advance(3 * HOUR);
    let_work();
    expect_started(0);
    assert_ok(hf_schedule_resume(fx.client, NAME, &fx.error));
    assert_ok(hf_schedule_resume(fx.client, NAME, &fx.error));
    assert_false(show()->paused);
    let_work();
    EXPECT_DUE(0);
}

static void what_was_due_in_a_pause_is_missed_even_if_it_was_short(void **state)
{
    (void)state;
    set_hourly(HF_OVERLAP_ALLOW, HF_CATCH_UP_NONE);
    advance(HOUR / 2 - HF_SECONDS(10));
    assert_ok(hf_schedule_pause(fx.client, NAME, &fx.error));
    advance(HF_SECONDS(20));
    assert_ok(hf_schedule_resume(fx.client, NAME, &fx.error));
    let_work();
    expect_started(0);
    advance(HOUR - HF_SECONDS(10));
    let_work();
    EXPECT_DUE(0);
}

static void new_settings_hold_at_once_and_keep_what_was(void **state)
{
    hf_schedule_spec spec = hourly();
    (void)state;
    set_hourly(HF_OVERLAP_ALLOW, HF_CATCH_UP_ALL);
    advance(HOUR);
    let_work();
    hf_id run = show()->run, last = show()->last_run;
    spec.cron = "every 2h";
    spec.input = "\"new\"";
    spec.overlap = HF_OVERLAP_ALLOW;
    set(&spec);
    assert_string_equal(show()->cron, "every 2h"); /* no worker has seen it yet */
    let_work();
    assert_string_equal(show()->cron, "every 2h");
    assert_true(hf_id_equal(show()->run, run));
    assert_true(hf_id_equal(show()->last_run, last));
    assert_int_equal(show()->fired, 1);
    expect_started(1);
    advance(2 * HOUR);
    let_work();
    expect_started(2);
    assert_string_equal(started()->items[0].input, "\"new\"");
}

static void what_was_due_before_the_change_fires_by_the_old_settings(void **state)
{
    hf_schedule_spec spec = hourly();
    (void)state;
    set_hourly(HF_OVERLAP_ALLOW, HF_CATCH_UP_ALL);
    advance(2 * HOUR);
    spec.cron = "every 1m";
    spec.input = "\"new\"";
    set(&spec);
    let_work();
    EXPECT_DUE(0, 1);
    assert_string_equal(started()->items[0].input, "null");
    assert_true(show()->next_at == now() + HF_MINUTES(1));
}

static void a_schedule_takes_no_signals(void **state)
{
    hf_signal_spec signal = HF_SIGNAL_INIT;
    (void)state;
    set_hourly(HF_OVERLAP_ALLOW, HF_CATCH_UP_ONE);
    signal.name = "set";
    signal.payload =
        "{\"cron\":\"@daily\",\"timezone\":\"UTC\",\"workflow\":\"work\",\"input\":\"null\","
        "\"overlap\":\"skip\",\"catch_up\":\"one\",\"priority\":0,\"tags\":[]}";
    assert_code(try_signal(show()->run, &signal), HF_NOT_ALLOWED);
    assert_string_equal(show()->cron, "every 1h");
}

static void settings_that_came_some_other_way_are_checked(void **state)
{
    static const char *const payloads[] = {
        "null",
        "{}",
        "{\"cron\":\"0 0 31 2 *\",\"timezone\":\"UTC\",\"workflow\":\"work\",\"input\":\"null\","
        "\"overlap\":\"skip\",\"catch_up\":\"one\",\"priority\":0,\"tags\":[]}",
        "{\"cron\":\"@daily\",\"timezone\":\"UTC\",\"workflow\":\"holdfast.schedule\","
        "\"input\":\"null\",\"overlap\":\"skip\",\"catch_up\":\"one\",\"priority\":0,\"tags\":[]}",
        "{\"cron\":\"@daily\",\"timezone\":\"UTC\",\"workflow\":\"work\",\"input\":\"{\","
        "\"overlap\":\"skip\",\"catch_up\":\"one\",\"priority\":0,\"tags\":[]}",
    };
    size_t count = sizeof payloads / sizeof *payloads;
    (void)state;
    set_hourly(HF_OVERLAP_ALLOW, HF_CATCH_UP_ONE);
    for (size_t i = 0; i < count; i++) {
        hf_signal_spec signal = HF_SIGNAL_INIT;
        signal.name = "set";
        signal.payload = payloads[i];
        assert_ok(hf__steer(fx.client, show()->run, &signal, &fx.error));
    }
    hf_signal_spec unknown = HF_SIGNAL_INIT;
    unknown.name = "whatever";
    assert_ok(hf__steer(fx.client, show()->run, &unknown, &fx.error));
    let_work();
    assert_int_equal(count_events("refused"), count);
    assert_string_equal(show()->cron, "every 1h");
    advance(HOUR);
    let_work();
    EXPECT_DUE(0);
}

static void a_deleted_schedule_is_gone_and_its_runs_go_on(void **state)
{
    hf_schedule *gone = NULL;
    hf_schedule_spec spec = hourly();
    (void)state;
    set_hourly(HF_OVERLAP_QUEUE, HF_CATCH_UP_ONE);
    advance(HOUR);
    let_work();
    hf_id old = show()->run;
    assert_ok(hf_schedule_delete(fx.client, NAME, &fx.error));
    assert_code(hf_schedule_get(fx.client, &gone, NAME, &fx.error), HF_NOT_FOUND);
    assert_code(hf_schedule_delete(fx.client, NAME, &fx.error), HF_NOT_FOUND);
    assert_code(hf_schedule_pause(fx.client, NAME, &fx.error), HF_NOT_FOUND);
    advance(3 * HOUR);
    spec.overlap = HF_OVERLAP_ALLOW;
    set(&spec);
    assert_false(hf_id_equal(show()->run, old));
    assert_int_equal(show()->fired, 0);
    let_work();
    EXPECT_DUE(3);
    succeed(claim_started());
    advance(HOUR);
    let_work();
    EXPECT_DUE(0, 4);
}

/* As those could who have the tables. */
static void a_schedule_that_was_cancelled_can_be_set_again(void **state)
{
    hf_schedule_spec spec = hourly();
    (void)state;
    set_hourly(HF_OVERLAP_ALLOW, HF_CATCH_UP_ONE);
    assert_ok(hf__steer_run(fx.client, show()->run, HF_CANCEL, &fx.error));
    assert_int_equal(show()->status, HF_CANCELLED);
    assert_true(show()->next_at == 0);
    assert_code(hf_schedule_pause(fx.client, NAME, &fx.error), HF_NOT_ALLOWED);
    set(&spec);
    assert_int_equal(show()->status, HF_WAITING);
    advance(HOUR);
    let_work();
    EXPECT_DUE(0);
}

/* ---- Reading, refusing ---- */

static void schedules_are_listed_by_name_within_their_tenant(void **state)
{
    static const char *const names[] = { "b", "c", "a" };
    hf_schedules *schedules = NULL;
    hf_schedule *foreign = NULL;
    (void)state;
    for (int i = 0; i < 3; i++) {
        hf_schedule_spec spec = hourly();
        spec.name = names[i];
        set(&spec);
    }
    assert_ok(hf_schedule_list(fx.client, &schedules, &fx.error));
    keep(schedules, (void (*)(void *))hf_schedules_free);
    assert_int_equal(schedules->count, 3);
    assert_string_equal(schedules->items[0].name, "a");
    assert_string_equal(schedules->items[1].name, "b");
    assert_string_equal(schedules->items[2].name, "c");
    assert_code(hf_schedule_get(fx.other, &foreign, "a", &fx.error), HF_NOT_FOUND);
    assert_code(hf_schedule_delete(fx.other, "a", &fx.error), HF_NOT_FOUND);
    assert_ok(hf_schedule_list(fx.other, &schedules, &fx.error));
    assert_int_equal(schedules->count, 0);
    hf_schedules_free(schedules);
}

static void the_next_firings_can_be_asked_for(void **state)
{
    int64_t times[3];
    size_t found = 0;
    (void)state;
    set_hourly(HF_OVERLAP_ALLOW, HF_CATCH_UP_ONE);
    assert_ok(hf_schedule_next(fx.client, NAME, times, 3, &found, &fx.error));
    assert_int_equal(found, 3);
    for (int i = 0; i < 3; i++)
        assert_true(times[i] == now() + HOUR / 2 + i * HOUR);
}

static void what_makes_no_sense_is_refused(void **state)
{
    hf_schedule_spec good = hourly(), spec;
    (void)state;
    spec = good, spec.name = "a b";
    assert_code(hf_schedule_set(fx.client, &spec, &fx.error), HF_INVALID);
    spec = good, spec.name = NULL;
    assert_code(hf_schedule_set(fx.client, &spec, &fx.error), HF_INVALID);
    spec = good, spec.cron = "0 0 31 2 *";
    assert_code(hf_schedule_set(fx.client, &spec, &fx.error), HF_INVALID);
    spec = good, spec.cron = NULL;
    assert_code(hf_schedule_set(fx.client, &spec, &fx.error), HF_INVALID);
    spec = good, spec.timezone = "Mars/Olympus";
    assert_code(hf_schedule_set(fx.client, &spec, &fx.error), HF_INVALID);
    spec = good, spec.workflow = "unknown";
    assert_code(hf_schedule_set(fx.client, &spec, &fx.error), HF_UNKNOWN_WORKFLOW);
    spec = good, spec.workflow = HF__CHORE_SCHEDULE;
    assert_code(hf_schedule_set(fx.client, &spec, &fx.error), HF_INVALID);
    spec = good, spec.input = "{";
    assert_code(hf_schedule_set(fx.client, &spec, &fx.error), HF_INVALID);
    spec = good, spec.overlap = (hf_overlap)9;
    assert_code(hf_schedule_set(fx.client, &spec, &fx.error), HF_INVALID);
    spec = good, spec.catch_up = (hf_catch_up)9;
    assert_code(hf_schedule_set(fx.client, &spec, &fx.error), HF_INVALID);
    spec = good, spec.priority = 5000;
    assert_code(hf_schedule_set(fx.client, &spec, &fx.error), HF_INVALID);
    spec = good, spec.version = 0;
    assert_code(hf_schedule_set(fx.client, &spec, &fx.error), HF_INVALID);
    hf_trigger_spec by_hand = spec_of(HF__CHORE_SCHEDULE);
    hf_triggered out;
    assert_code(try_trigger(&by_hand, &out), HF_INVALID);
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(a_due_time_starts_a_run_with_what_the_schedule_says),
    CONTRACT_TEST(several_workers_fire_a_due_time_once),
    CONTRACT_TEST(a_lost_answer_fires_neither_twice_nor_never),
    CONTRACT_TEST(cron_fires_in_its_time_zone),
    CONTRACT_TEST(catching_up_with_one_fires_the_latest),
    CONTRACT_TEST(catching_up_with_none_fires_only_what_is_hardly_late),
    CONTRACT_TEST(catching_up_with_all_fires_each),
    CONTRACT_TEST(more_than_a_turn_can_fire_goes_on_in_the_next),
    CONTRACT_TEST(skipping_starts_nothing_while_the_last_runs),
    CONTRACT_TEST(skipping_while_catching_up_starts_the_first_of_all),
    CONTRACT_TEST(queueing_starts_the_next_when_the_last_has_ended),
    CONTRACT_TEST(a_queue_that_is_full_skips),
    CONTRACT_TEST(cancelling_replaces_the_last),
    CONTRACT_TEST(allowing_lets_both_run),
    CONTRACT_TEST(a_paused_schedule_fires_nothing),
    CONTRACT_TEST(what_was_due_in_a_pause_is_missed_even_if_it_was_short),
    CONTRACT_TEST(new_settings_hold_at_once_and_keep_what_was),
    CONTRACT_TEST(what_was_due_before_the_change_fires_by_the_old_settings),
    CONTRACT_TEST(a_schedule_takes_no_signals),
    CONTRACT_TEST(settings_that_came_some_other_way_are_checked),
    CONTRACT_TEST(a_deleted_schedule_is_gone_and_its_runs_go_on),
    CONTRACT_TEST(a_schedule_that_was_cancelled_can_be_set_again),
    CONTRACT_TEST(schedules_are_listed_by_name_within_their_tenant),
    CONTRACT_TEST(the_next_firings_can_be_asked_for),
    CONTRACT_TEST(what_makes_no_sense_is_refused),
};

CONTRACT("schedules", tests)
