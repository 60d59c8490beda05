/* Lists of what is pending, overdue or at a step are exact, whatever the queue holds: random mixtures of runs with and
 * without delays, retries, priorities, flow keys, deadlines and steps, whose ids are more or less right, beside a list of
 * everything. A12.
 * SPDX-License-Identifier: Apache-2.0 */
#include "contract/fixture.h"

#include "client/ids.h"
#include "support/sanitized.h"
#include "util/clock.h"
#include "util/random.h"

/* So many, and so few of each workflow, that those which are looked at first do not hold a page: then the queue is asked.
 * Fewer where a sanitizer slows them down. */
enum { ROUNDS = SANITIZED ? 40 : 60, MOST_AT_ONCE = 240, MOST_RUNS = ROUNDS * MOST_AT_ONCE };
enum { WORKFLOWS = 6, SPREAD = 3, NEW = 5 };

static const char *const workflows[WORKFLOWS] = { "old.one", "old.two",   "mid.one",
                                                  "mid.two", "mid.three", "new.one" };

/* Which they are is a choice of each turn, so that runs come back to some and leave others. */
enum { STEPS = 3 };
static const char *const steps[STEPS] = { "pack", "send", "bill" };

static struct hf__random dice;
static int64_t skew; /* us that the clock of whoever triggers is ahead */

static int roll(int sides)
{
    return (int)hf__random_below(&dice, (uint64_t)sides);
}

static int64_t read_skewed(void *arg)
{
    (void)arg;
    return now() + skew;
}

static const struct hf__clock skewed = { .now = read_skewed };

/* ---- Mixtures ---- */

/* Mostly as much as lists take for granted; now and then more. */
static int64_t random_skew(void)
{
    static const int64_t ms[] = { 0, 0, -1, -40, -998, 99, -700, 60, -1003, 103, -90000, 90000 };
    return ms[roll(roll(4) ? 8 : 12)] * 1000;
}

static hf_trigger_spec random_spec(const char *workflow)
{
    hf_trigger_spec spec = spec_of(workflow);
    int kind = roll(20);
    spec.priority = kind < 3 ? roll(100) : kind < 6 ? roll(3) : 0;
    if (workflow == workflows[SPREAD]) /* over more priorities than are looked into */
        spec.priority = roll(100);
    if (kind == 6 || kind == 7)
        spec.delay = HF_SECONDS(1 + roll(200));
    if (kind == 8)
        spec.run_at = now() - HF_SECONDS(roll(100));
    if (kind == 9)
        spec.timeout = HF_SECONDS(1 + roll(100));
    if (roll(4) == 0)
        spec.flow_key = text_of("customer-%d", roll(50));
    return spec;
}

static void trigger_some(hf_id *ids, int count, const char *workflow)
{
    static hf_trigger_spec specs[MOST_AT_ONCE];
    static hf_triggered answers[MOST_AT_ONCE];
    skew = random_skew();
    for (int i = 0; i < count; i++)
        specs[i] = random_spec(workflow);
    assert_ok(hf_trigger_many(fx.client, answers, specs, (size_t)count, &fx.error));
    for (int i = 0; i < count; i++)
        ids[i] = answers[i].id;
}

static void save_some_steps(const hf_claimed *held)
{
    hf_step_record step = { .run = held->run.id,
                            .run_version = held->run.version,
                            .worker = WORKER,
                            .status = "succeeded",
                            .data = "1" };
    for (int i = roll(4); i > 0; i--) {
        step.name = steps[roll(STEPS)];
        assert_ok(hf_step_save(fx.client, &step, &fx.error));
    }
}

static void work_on(const hf_claimed *held)
{
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    t.waiting_until = now() + HF_SECONDS(1 + roll(300));
    t.current_step = roll(3) ? NULL : steps[roll(STEPS)];
    save_some_steps(held);
    switch (roll(5)) {
    case 0: break; /* stays with its holder */
    case 1: retry_after(held, HF_SECONDS(roll(2) ? roll(300) : 0)); break;
    case 2: commit(&t); break;
    case 3: fail_for_good(held); break;
    default: succeed(held); break;
    }
}

static void disturb(hf_id id)
{
    static const hf_action actions[] = { HF_DELETE, HF_CANCEL, HF_PAUSE, HF_PAUSE, HF_RESUME };
    hf_action action = actions[roll(5)];
    (void)try_change(id, action);
    if (action == HF_PAUSE && roll(2))
        (void)try_change(id, HF_RESUME);
}

/* Some time passes between them: from nothing to more than what an id may be wrong by. */
static void mix(uint64_t seed)
{
    static const int64_t pauses[] = { 0, 700, 50000, 400000, 1300000, 5000000 };
    hf_id *ids = keep(calloc(MOST_RUNS, sizeof *ids), free);
    int count = 0;
    hf__random_seed(&dice, seed);
    hf__new_ids_follow(&skewed, seed);
    for (size_t i = 0; i < WORKFLOWS; i++)
        define(workflows[i]);
    for (int round = 0; round < ROUNDS; round++) {
        int more = 1 + roll(MOST_AT_ONCE);
        /* The last ones are a crowd before all others. */
        trigger_some(ids + count, more, workflows[round > ROUNDS * 5 / 6 ? NEW : roll(WORKFLOWS)]);
        count += more;
        advance(pauses[roll(6)]);
        const hf_claims *claims = claim_of(workflows[roll(WORKFLOWS)], 1 + roll(8));
        for (size_t i = 0; i < claims->count; i++)
            work_on(&claims->items[i]);
        for (int i = 0; i < 5; i++)
            disturb(ids[roll(count)]);
    }
    hf__new_ids_follow(&hf__system_clock, seed);
}

/* ---- What lists should tell ---- */

static bool is_overdue(const hf_run *run)
{
    bool open = run->status <= HF_PAUSED;
    bool past = run->timeout_at && run->timeout_at <= now();
    bool idle = run->status == HF_PENDING || run->status == HF_WAITING;
    return open && (past || (idle && run->run_at && run->run_at <= now()));
}

static bool is_wanted(const hf_run *run, const hf_filter *filter)
{
    return (!filter->statuses || filter->statuses & 1u << run->status) &&
           (!filter->workflow || strcmp(run->workflow, filter->workflow) == 0) &&
           (!filter->prefix ||
            strncmp(run->workflow, filter->prefix, strlen(filter->prefix)) == 0) &&
           (!filter->current_step ||
            (run->current_step && strcmp(run->current_step, filter->current_step) == 0)) &&
           (!filter->overdue || is_overdue(run));
}

/* All runs, newest first, with nothing that could be left out: no filter. */
static const hf_run **everything(size_t *count)
{
    const hf_run **all = keep(calloc(MOST_RUNS + 1, sizeof *all), free);
    hf_filter any = HF_FILTER_INIT;
    any.limit = 1000;
    *count = 0;
    for (const hf_runs *page = NULL; !page || page->next; any.cursor = page->next) {
        page = list(&any);
        for (size_t i = 0; i < page->count; i++)
            all[(*count)++] = &page->items[i];
    }
    return all;
}

static void expect_exact(const hf_run **all, size_t count, hf_filter filter, int limit)
{
    size_t at = 0;
    filter.limit = limit;
    for (const hf_runs *page = NULL; !page || page->next; filter.cursor = page->next) {
        page = list(&filter);
        for (size_t i = 0; i < page->count; i++, at++) {
            while (at < count && !is_wanted(all[at], &filter))
                at++;
            assert_true(at < count && hf_id_equal(page->items[i].id, all[at]->id));
        }
    }
    for (; at < count; at++)
        assert_false(is_wanted(all[at], &filter));
}

static void expect_exact_lists(uint64_t seed)
{
    const hf_filter any = HF_FILTER_INIT;
    const unsigned pending = 1u << HF_PENDING;
    const hf_filter filters[] = {
        { .version = any.version, .statuses = pending },
        { .version = any.version, .statuses = pending, .workflow = "old.one" },
        { .version = any.version, .statuses = pending, .prefix = "old." },
        { .version = any.version, .statuses = pending | 1u << HF_WAITING, .workflow = "old.two" },
        { .version = any.version, .workflow = "old.two" },
        { .version = any.version, .statuses = pending, .workflow = workflows[SPREAD] },
        { .version = any.version, .current_step = steps[0] },
        { .version = any.version, .current_step = steps[1], .workflow = "old.two" },
        { .version = any.version, .current_step = steps[2], .statuses = 1u << HF_LEASED },
        { .version = any.version, .overdue = true },
        { .version = any.version, .overdue = true, .prefix = "old." },
        { .version = any.version, .overdue = true, .workflow = "old.two", .statuses = pending },
    };
    size_t count;
    mix(seed);
    const hf_run **all = everything(&count);
    assert_true(count > MOST_RUNS / 3);
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
        expect_exact(all, count, filters[i], 200);
        expect_exact(all, count, filters[i], 1000);
        if (filters[i].current_step) /* which few have */
            expect_exact(all, count, filters[i], 20);
    }
}

static void trigger_alike(int count, const char *workflow, int64_t delay)
{
    hf_trigger_spec *specs = keep(calloc((size_t)count, sizeof *specs), free);
    hf_triggered *answers = keep(calloc((size_t)count, sizeof *answers), free);
    for (int i = 0; i < count; i++) {
        specs[i] = spec_of(workflow);
        specs[i].delay = delay + (delay ? roll(1000) : 0);
    }
    assert_ok(hf_trigger_many(fx.client, answers, specs, (size_t)count, &fx.error));
}

/* ---- Tests ---- */

static void a_mixed_queue_is_listed_exactly(void **state)
{
    (void)state;
    expect_exact_lists(1);
}

static void another_mixed_queue_is_listed_exactly(void **state)
{
    (void)state;
    expect_exact_lists(2);
}

/* More than are collected at first, behind more than are looked at first. */
static void a_backlog_of_what_was_delayed_is_listed_exactly(void **state)
{
    hf_filter filter = HF_FILTER_INIT;
    size_t count;
    (void)state;
    skew = 0;
    hf__new_ids_follow(&skewed, 3);
    define("other");
    trigger(WORK);
    trigger_alike(2300, WORK, HF_SECONDS(10));
    trigger_alike(1500, "other", 0);
    trigger_alike(10, WORK, HF_HOURS(1));
    advance(HF_SECONDS(25));
    const hf_run **all = everything(&count);
    hf__new_ids_follow(&hf__system_clock, 3);
    assert_int_equal(count, 1 + 2300 + 1500 + 10);
    filter.overdue = true;
    filter.workflow = WORK;
    expect_exact(all, count, filter, 50);
    expect_exact(all, count, filter, 300);
    filter.overdue = false;
    filter.statuses = 1u << HF_PENDING;
    expect_exact(all, count, filter, 50);
}

static void one_that_is_held_past_its_deadline_is_found_behind_a_crowd(void **state)
{
    hf_filter filter = HF_FILTER_INIT;
    (void)state;
    define("other");
    hf_id held = run_that_is(HF_LEASED, HF_SECONDS(20));
    trigger_alike(1500, "other", 0);
    advance(HF_SECONDS(25));
    filter.overdue = true;
    filter.workflow = WORK;
    assert_int_equal(list(&filter)->count, 1);
    assert_true(hf_id_equal(list(&filter)->items[0].id, held));
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(a_mixed_queue_is_listed_exactly),
    CONTRACT_TEST(another_mixed_queue_is_listed_exactly),
    CONTRACT_TEST(a_backlog_of_what_was_delayed_is_listed_exactly),
    CONTRACT_TEST(one_that_is_held_past_its_deadline_is_found_behind_a_crowd),
};

CONTRACT("list_queues", tests)
