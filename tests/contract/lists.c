/* Lists and bulk changes: every filter, stable pages, and only what matches is changed. A12, A13.
 * SPDX-License-Identifier: Apache-2.0 */
#include "contract/fixture.h"

static void expect_only(const hf_filter *filter, hf_id id)
{
    const hf_runs *runs = list(filter);
    assert_int_equal(runs->count, 1);
    assert_true(hf_id_equal(runs->items[0].id, id));
    assert_null(runs->next);
}

static void runs_are_listed_newest_first(void **state)
{
    hf_filter filter = HF_FILTER_INIT;
    hf_id ids[3];
    (void)state;
    for (int i = 0; i < 3; i++)
        ids[i] = trigger(WORK);
    const hf_runs *runs = list(&filter);
    assert_int_equal(runs->count, 3);
    for (int i = 0; i < 3; i++)
        assert_true(hf_id_equal(runs->items[i].id, ids[2 - i]));
    assert_int_equal(list(NULL)->count, 3);
}

static void a_filter_by_status_takes_several(void **state)
{
    hf_filter filter = HF_FILTER_INIT;
    (void)state;
    hf_id failed = run_that_is(HF_FAILED, 0);
    run_that_is(HF_SUCCEEDED, 0);
    run_that_is(HF_PAUSED, 0);
    filter.statuses = 1u << HF_FAILED;
    expect_only(&filter, failed);
    filter.statuses = 1u << HF_FAILED | 1u << HF_PAUSED;
    assert_int_equal(list(&filter)->count, 2);
}

static void every_text_filter_finds_its_run_and_no_other(void **state)
{
    static const char *const tags[] = { "red", "round" };
    hf_filter any = HF_FILTER_INIT;
    (void)state;
    define("a.b.c");
    define("a.bc");
    hf_trigger_spec spec = spec_of("a.b.c");
    spec.key = "key";
    spec.subject = "subject";
    spec.reference = "reference";
    spec.tags = tags;
    spec.tag_count = 2;
    hf_id wanted = trigger_spec(&spec);
    spec = spec_of("a.bc");
    spec.key = "key2";
    spec.subject = "Subject";
    spec.reference = "ref";
    spec.tags = tags;
    spec.tag_count = 1;
    trigger_spec(&spec);
    trigger(WORK);
    hf_filter filters[] = { any, any, any, any, any, any };
    filters[0].workflow = "a.b.c";
    filters[1].prefix = "a.b.";
    filters[2].key = "key";
    filters[3].subject = "subject";
    filters[4].reference = "reference";
    filters[5].tag = "round";
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        expect_only(&filters[i], wanted);
    any.tag = "red";
    assert_int_equal(list(&any)->count, 2);
    any.tag = "ro";
    assert_int_equal(list(&any)->count, 0);
    any.tag = NULL;
    any.prefix = "a.";
    assert_int_equal(list(&any)->count, 2);
}

static void filters_together_must_all_match(void **state)
{
    hf_filter filter = HF_FILTER_INIT;
    hf_trigger_spec spec = spec_of(WORK);
    (void)state;
    spec.subject = "one";
    hf_id id = trigger_spec(&spec);
    spec.subject = "two";
    trigger_spec(&spec);
    filter.subject = "one";
    filter.workflow = WORK;
    filter.statuses = 1u << HF_PENDING;
    expect_only(&filter, id);
    filter.statuses = 1u << HF_FAILED;
    assert_int_equal(list(&filter)->count, 0);
}

static void a_filter_by_time_includes_its_start_and_not_its_end(void **state)
{
    hf_filter filter = HF_FILTER_INIT;
    int64_t start = now();
    (void)state;
    trigger(WORK);
    advance(10);
    hf_id second = trigger(WORK);
    advance(10);
    trigger(WORK);
    filter.created_after = start + 10;
    filter.created_before = start + 20;
    expect_only(&filter, second);
}

/* ---- Ids that tell another time ---- */

/* Milliseconds that a run was stored after its id was made: none, both ends of what lists take for granted, and more. */
static const int64_t late_by[] = { 0,    1,    -99,    -100,    -101,    -102, 998,
                                   999,  1000, 1001,   1002,    -60000,  7,    60000,
                                   -500, 500,  360000, -360000, 86400000 };

enum { ODD_RUNS = 3 * (sizeof late_by / sizeof *late_by) };

struct odd_run {
    hf_id id;
    int64_t created_at;
};

static int newest_id_first(const void *left, const void *right)
{
    const struct odd_run *a = left;
    const struct odd_run *b = right;
    return memcmp(b->id.bytes, a->id.bytes, sizeof a->id.bytes);
}

static int64_t id_ms(hf_id id)
{
    int64_t ms = 0;
    for (int i = 0; i < 6; i++)
        ms = ms << 8 | id.bytes[i];
    return ms;
}

/* In the order of lists. */
static void trigger_odd_runs(struct odd_run *runs)
{
    hf_trigger_spec spec = spec_of(WORK);
    spec.flow_key = "odd";
    for (size_t i = 0; i < ODD_RUNS; i++) {
        runs[i].id = trigger_spec(&spec);
        runs[i].created_at = (id_ms(runs[i].id) + late_by[i % (ODD_RUNS / 3)]) * 1000;
        sql("UPDATE run SET created_at = %lld WHERE id = %s", (long long)runs[i].created_at,
            sql_id(runs[i].id));
    }
    qsort(runs, ODD_RUNS, sizeof *runs, newest_id_first);
}

static void expect_in_time(const struct odd_run *runs, hf_filter filter)
{
    size_t next = 0;
    for (const hf_runs *page = NULL; !page || page->next; filter.cursor = page->next) {
        page = list(&filter);
        for (size_t k = 0; k < page->count; k++, next++) {
            while (next < ODD_RUNS &&
                   ((filter.created_after && runs[next].created_at < filter.created_after) ||
                    (filter.created_before && runs[next].created_at >= filter.created_before)))
                next++;
            assert_true(next < ODD_RUNS && hf_id_equal(page->items[k].id, runs[next].id));
        }
    }
    for (; next < ODD_RUNS; next++)
        assert_true((filter.created_after && runs[next].created_at < filter.created_after) ||
                    (filter.created_before && runs[next].created_at >= filter.created_before));
}

static void runs_whose_ids_tell_another_time_are_found_by_their_time(void **state)
{
    struct odd_run runs[ODD_RUNS];
    hf_filter filters[] = { HF_FILTER_INIT, HF_FILTER_INIT, HF_FILTER_INIT };
    (void)state;
    trigger_odd_runs(runs);
    filters[1].workflow = WORK;
    filters[1].statuses = 1u << HF_PENDING;
    filters[2].flow_key = "odd";
    for (size_t i = 0; i < ODD_RUNS; i++)
        for (size_t k = 0; k < sizeof filters / sizeof *filters; k++) {
            hf_filter filter = filters[k];
            filter.limit = i % 2 ? 4 : 100;
            filter.created_after = runs[i].created_at;
            expect_in_time(runs, filter);
            filter.created_before = runs[i].created_at + 1000;
            expect_in_time(runs, filter);
            filter.created_after = 0;
            expect_in_time(runs, filter);
        }
}

static void a_filter_by_step_and_by_parent(void **state)
{
    const hf_claimed *held = claim_new();
    hf_trigger_spec child = spec_of(WORK);
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    hf_filter by_step = HF_FILTER_INIT;
    hf_filter by_parent = HF_FILTER_INIT;
    hf_id child_id;
    (void)state;
    t.current_step = "charge";
    t.children = &child;
    t.child_count = 1;
    assert_ok(hf_commit(fx.client, &t, &child_id, &fx.error));
    by_step.current_step = "charge";
    expect_only(&by_step, held->run.id);
    by_parent.parent = held->run.id;
    expect_only(&by_parent, child_id);
}

static void the_overdue_are_due_but_not_begun_or_past_their_deadline(void **state)
{
    hf_filter filter = HF_FILTER_INIT;
    hf_trigger_spec later = spec_of(WORK);
    (void)state;
    filter.overdue = true;
    later.delay = HF_HOURS(1);
    run_that_is(HF_WAITING, 0);
    run_that_is(HF_SUCCEEDED, HF_SECONDS(1));
    hf_id held_late = run_that_is(HF_LEASED, HF_SECONDS(10));
    trigger_spec(&later);
    assert_int_equal(list(&filter)->count, 0);
    hf_id due = trigger(WORK);
    expect_only(&filter, due);
    change(due, HF_CANCEL);
    advance(HF_SECONDS(10));
    expect_only(&filter, held_late);
}

static void deleted_runs_are_hidden_unless_asked_for(void **state)
{
    hf_filter filter = HF_FILTER_INIT;
    hf_id kept = trigger(WORK);
    hf_id deleted = trigger(WORK);
    (void)state;
    change(deleted, HF_DELETE);
    expect_only(&filter, kept);
    filter.deleted = true;
    expect_only(&filter, deleted);
}

/* ---- Pages ---- */

static void pages_are_stable_while_others_write(void **state)
{
    hf_filter filter = HF_FILTER_INIT;
    hf_id ids[10];
    int seen = 0;
    (void)state;
    for (int i = 0; i < 10; i++)
        ids[i] = trigger(WORK);
    filter.limit = 3;
    for (const hf_runs *page = NULL; !page || page->next;) {
        page = list(&filter);
        for (size_t i = 0; i < page->count; i++, seen++)
            assert_true(hf_id_equal(page->items[i].id, ids[9 - seen]));
        filter.cursor = page->next;
        trigger(WORK);
        change(ids[0], seen % 2 ? HF_PAUSE : HF_RESUME);
    }
    assert_int_equal(seen, 10);
}

static void the_last_page_has_no_next_even_if_it_is_full(void **state)
{
    hf_filter filter = HF_FILTER_INIT;
    (void)state;
    for (int i = 0; i < 4; i++)
        trigger(WORK);
    filter.limit = 2;
    const hf_runs *page = list(&filter);
    assert_non_null(page->next);
    filter.cursor = page->next;
    page = list(&filter);
    assert_int_equal(page->count, 2);
    assert_null(page->next);
}

static void pages_of_large_runs_end_early_and_leave_nothing_out(void **state)
{
    enum { RUNS = 24, LARGE = 1000000 };
    hf_filter filter = HF_FILTER_INIT;
    hf_trigger_spec spec = spec_of(WORK);
    char *input = keep(malloc(LARGE + 1), free);
    hf_id ids[RUNS];
    int seen = 0;
    (void)state;
    memset(input, 'x', LARGE);
    input[0] = input[LARGE - 1] = '"';
    input[LARGE] = '\0';
    spec.input = input;
    for (int i = 0; i < RUNS; i++)
        ids[i] = trigger_spec(&spec);
    filter.limit = 1000;
    for (const hf_runs *page = NULL; !page || page->next;) {
        page = list(&filter);
        assert_true(page->count > 0 && page->count * LARGE <= 16 << 20);
        for (size_t i = 0; i < page->count; i++, seen++)
            assert_true(hf_id_equal(page->items[i].id, ids[RUNS - 1 - seen]));
        filter.cursor = page->next;
    }
    assert_int_equal(seen, RUNS);
}

static void a_run_larger_than_a_page_hides_nothing(void **state)
{
    hf_filter filter = HF_FILTER_INIT;
    hf_id ids[3];
    (void)state;
    for (int i = 0; i < 3; i++)
        ids[i] = trigger(WORK);
    sql("UPDATE run SET input = '\"' || %s || '\"' WHERE id = %s",
        fx.backend == BACKEND_POSTGRES ? "repeat('x', 20000000)" : "hex(zeroblob(10000000))",
        sql_id(ids[2]));
    filter.workflow = WORK;
    for (int i = 2; i >= 0; i -= 2) {
        const hf_runs *page = list(&filter);
        assert_int_equal(page->count, i == 2 ? 1 : 2);
        assert_true(hf_id_equal(page->items[0].id, ids[i == 2 ? 2 : 1]));
        assert_int_equal(page->next != NULL, i == 2);
        filter.cursor = page->next;
    }
}

/* ---- Rare ones ---- */

enum { CROWD = 1500 }; /* more than are looked at before an index is asked */

/* Every tenth is of another workflow. */
static void trigger_crowd_of(const char *workflow, const char *tenth)
{
    hf_trigger_spec *specs = keep(calloc(CROWD, sizeof *specs), free);
    hf_triggered *answers = keep(calloc(CROWD, sizeof *answers), free);
    for (int i = 0; i < CROWD; i++)
        specs[i] = spec_of(i % 10 == 0 ? tenth : workflow);
    assert_ok(hf_trigger_many(fx.client, answers, specs, CROWD, &fx.error));
}

static void trigger_crowd(void)
{
    trigger_crowd_of(WORK, WORK);
}

static size_t count_over_pages(hf_filter filter, int limit)
{
    size_t seen = 0;
    hf_id last = { { 0 } };
    filter.limit = limit;
    for (const hf_runs *page = NULL; !page || page->next;) {
        page = list(&filter);
        for (size_t k = 0; k < page->count; k++, seen++) {
            assert_true(seen == 0 || memcmp(page->items[k].id.bytes, last.bytes, 16) < 0);
            last = page->items[k].id;
        }
        filter.cursor = page->next;
    }
    return seen;
}

static void rare_runs_are_found_behind_a_crowd_by_every_filter(void **state)
{
    static const char *const tags[] = { "rare" };
    hf_filter any = HF_FILTER_INIT;
    hf_id in[HF_STATUS_COUNT];
    (void)state;
    define("rare.one");
    hf_trigger_spec spec = spec_of("rare.one");
    spec.key = spec.subject = spec.reference = spec.flow_key = "rare";
    spec.tags = tags;
    spec.tag_count = 1;
    spec.delay = HF_HOURS(1);
    hf_id rare = trigger_spec(&spec);
    hf_id deleted = trigger(WORK);
    change(deleted, HF_DELETE);
    for (int status = HF_LEASED; status < HF_STATUS_COUNT; status++)
        in[status] = run_that_is((hf_status)status, 0);
    trigger_crowd();
    const hf_filter one[] = {
        { .version = any.version, .workflow = "rare.one" },
        { .version = any.version, .prefix = "rare." },
        { .version = any.version, .key = "rare" },
        { .version = any.version, .subject = "rare" },
        { .version = any.version, .reference = "rare" },
        { .version = any.version, .tag = "rare" },
        { .version = any.version, .flow_key = "rare" },
        { .version = any.version, .prefix = "rare.", .statuses = 1u << HF_PENDING },
    };
    for (size_t i = 0; i < sizeof one / sizeof *one; i++)
        expect_only(&one[i], rare);
    for (int status = HF_LEASED; status < HF_STATUS_COUNT; status++) {
        any.statuses = 1u << status;
        expect_only(&any, in[status]);
    }
    any.statuses = 0;
    any.deleted = true;
    expect_only(&any, deleted);
}

/* In the step where they ended, wait, are held, or begin again. */
static void runs_are_found_by_their_step_wherever_they_stand(void **state)
{
    static const char *const steps[] = { "pack", "send", "pack" };
    hf_filter filter = HF_FILTER_INIT;
    hf_id ids[5];
    (void)state;
    for (int i = 0; i < 5; i++) {
        const hf_claimed *held = claim_new();
        ids[i] = held->run.id;
        for (int k = 0; k < 3; k++) {
            hf_step_record step = { .run = held->run.id,
                                    .run_version = held->run.version,
                                    .worker = WORKER,
                                    .name = steps[k],
                                    .status = "succeeded",
                                    .data = "1" };
            assert_ok(hf_step_save(fx.client, &step, &fx.error));
        }
        if (i == 0)
            succeed(held);
        if (i == 1)
            wait_for_signal(held);
        if (i == 2)
            retry_after(held, HF_SECONDS(9));
        if (i == 3)
            fail_for_good(held);
    }
    filter.current_step = "pack";
    assert_int_equal(count_over_pages(filter, 2), 5);
    assert_int_equal(count_over_pages(filter, 50), 5);
    filter.workflow = WORK;
    assert_int_equal(count_over_pages(filter, 2), 5);
    change(ids[0], HF_DELETE);
    assert_int_equal(count_over_pages(filter, 2), 4);
    filter.statuses = 1u << HF_LEASED;
    expect_only(&filter, ids[4]);
    filter.statuses = 0;
    filter.deleted = true;
    expect_only(&filter, ids[0]);
    filter.current_step = "send";
    assert_int_equal(count_over_pages(filter, 2), 0);
    filter.deleted = false;
    assert_int_equal(count_over_pages(filter, 2), 0);
}

static void a_crowd_is_paged_through_without_gaps_whatever_finds_it(void **state)
{
    hf_filter filters[] = { HF_FILTER_INIT, HF_FILTER_INIT, HF_FILTER_INIT, HF_FILTER_INIT };
    (void)state;
    filters[0].statuses = 1u << HF_PENDING;
    filters[1].workflow = WORK;
    filters[2].overdue = true;
    filters[3].created_after = now();
    trigger_crowd();
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
        assert_int_equal(count_over_pages(filters[i], 400), CROWD);
        assert_int_equal(count_over_pages(filters[i], 1000), CROWD);
    }
}

/* Too many to be collected, and none of them among the first that are looked at. */
static void a_backlog_behind_a_crowd_is_paged_through_without_gaps(void **state)
{
    hf_filter filters[] = { HF_FILTER_INIT, HF_FILTER_INIT, HF_FILTER_INIT, HF_FILTER_INIT };
    (void)state;
    define("old.one");
    hf_id first = trigger("old.one");
    for (int i = 0; i < 4; i++)
        trigger_crowd_of(i % 2 ? WORK : "old.one", i % 2 ? WORK : "old.one");
    filters[0].workflow = "old.one";
    filters[1].prefix = "old.";
    filters[2].prefix = "old.";
    filters[2].overdue = true;
    filters[3].workflow = "old.one";
    filters[3].statuses = 1u << HF_PENDING;
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
        assert_int_equal(count_over_pages(filters[i], 50), 2 * CROWD + 1);
        assert_int_equal(count_over_pages(filters[i], 1000), 2 * CROWD + 1);
    }
    change(first, HF_CANCEL);
    filters[0].statuses = 1u << HF_CANCELLED;
    expect_only(&filters[0], first);
    filters[0].statuses = 1u << HF_CANCELLED | 1u << HF_PENDING;
    assert_int_equal(count_over_pages(filters[0], 1000), 2 * CROWD + 1);
}

/* Each time the place where it goes on in another way is one further. */
static void no_run_is_lost_where_one_way_to_find_them_follows_another(void **state)
{
    hf_filter by_workflow = HF_FILTER_INIT;
    hf_filter overdue = HF_FILTER_INIT;
    (void)state;
    define("tenth.one");
    trigger_crowd_of(WORK, "tenth.one");
    by_workflow.workflow = overdue.workflow = "tenth.one";
    overdue.overdue = true;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(count_over_pages(by_workflow, 200), CROWD / 10);
        assert_int_equal(count_over_pages(overdue, 200), CROWD / 10);
        trigger(WORK);
    }
}

static void a_cursor_that_is_none_is_refused(void **state)
{
    hf_filter filter = HF_FILTER_INIT;
    hf_runs *runs = NULL;
    (void)state;
    filter.cursor = "last page";
    assert_code(hf_list(fx.client, &runs, &filter, &fx.error), HF_INVALID);
}

/* ---- Bulk ---- */

static hf_bulk_result bulk(const hf_filter *filter, hf_action action, bool dry_run)
{
    hf_bulk_result result;
    assert_ok(hf_bulk(fx.client, &result, filter, action, NULL, dry_run, NULL, NULL, &fx.error));
    return result;
}

static void a_dry_run_counts_and_changes_nothing(void **state)
{
    hf_filter filter = HF_FILTER_INIT;
    (void)state;
    for (int i = 0; i < 3; i++)
        trigger(WORK);
    const char *before = dump();
    hf_bulk_result result = bulk(&filter, HF_CANCEL, true);
    assert_int_equal(result.matched, 3);
    assert_int_equal(result.changed, 0);
    assert_string_equal(before, dump());
}

static void a_bulk_change_reaches_all_that_match_over_many_pages(void **state)
{
    enum { MANY = 450 };
    hf_filter filter = HF_FILTER_INIT;
    hf_trigger_spec specs[MANY];
    hf_triggered out[MANY];
    (void)state;
    for (int i = 0; i < MANY; i++) {
        specs[i] = spec_of(WORK);
        specs[i].subject = "bulk";
    }
    assert_ok(hf_trigger_many(fx.client, out, specs, MANY, &fx.error));
    hf_id other = trigger(WORK);
    filter.subject = "bulk";
    hf_bulk_result result = bulk(&filter, HF_CANCEL, false);
    assert_int_equal(result.matched, MANY);
    assert_int_equal(result.changed, MANY);
    assert_int_equal(result.refused, 0);
    expect_status(other, HF_PENDING);
    for (int i = 0; i < MANY; i += 50)
        expect_status(out[i].id, HF_CANCELLED);
    result = bulk(&filter, HF_DELETE, false);
    assert_int_equal(result.changed, MANY);
    assert_int_equal(bulk(&filter, HF_DELETE, false).matched, 0);
    filter.deleted = true;
    assert_int_equal(bulk(&filter, HF_RESTORE, false).changed, MANY);
}

static void a_bulk_change_counts_those_whose_status_did_not_allow_it(void **state)
{
    hf_filter filter = HF_FILTER_INIT;
    (void)state;
    run_that_is(HF_SUCCEEDED, 0);
    run_that_is(HF_FAILED, 0);
    run_that_is(HF_CANCELLED, 0);
    hf_bulk_result result = bulk(&filter, HF_RETRY_RUN, false);
    assert_int_equal(result.matched, 3);
    assert_int_equal(result.changed, 2);
    assert_int_equal(result.refused, 1);
}

static bool stop_at_once(const hf_bulk_result *so_far, void *arg)
{
    *(int64_t *)arg = so_far->changed;
    return false;
}

static void a_bulk_change_can_be_stopped_by_its_progress(void **state)
{
    enum { MANY = 250 };
    hf_filter filter = HF_FILTER_INIT;
    hf_trigger_spec specs[MANY];
    hf_triggered out[MANY];
    hf_bulk_result result;
    int64_t told = 0;
    (void)state;
    for (int i = 0; i < MANY; i++)
        specs[i] = spec_of(WORK);
    assert_ok(hf_trigger_many(fx.client, out, specs, MANY, &fx.error));
    assert_ok(hf_bulk(fx.client, &result, &filter, HF_CANCEL, NULL, false, stop_at_once, &told,
                      &fx.error));
    assert_true(result.changed > 0 && result.changed < MANY);
    assert_int_equal(result.changed, told);
    assert_int_equal(result.matched, MANY);
}

/* Also where what was changed still matches, and would be come by again. */
static void a_bulk_change_that_was_stopped_goes_on_where_it_was(void **state)
{
    enum { MANY = 450 };
    hf_filter filter = HF_FILTER_INIT;
    hf_trigger_spec specs[MANY];
    hf_triggered out[MANY];
    hf_bulk_result result;
    char next[HF_ID_TEXT];
    int64_t told, changed = 0;
    (void)state;
    for (int i = 0; i < MANY; i++)
        specs[i] = spec_of(WORK);
    assert_ok(hf_trigger_many(fx.client, out, specs, MANY, &fx.error));
    filter.workflow = WORK;
    do {
        assert_ok(hf_bulk_part(fx.client, &result, next, &filter, HF_CANCEL, NULL, stop_at_once,
                               &told, &fx.error));
        assert_int_equal(result.refused, 0);
        assert_true(result.changed > 0);
        assert_int_equal(result.matched, filter.cursor ? result.changed : MANY);
        changed += result.changed;
        filter.cursor = next;
    } while (*next);
    assert_int_equal(changed, MANY);
    expect_status(out[0].id, HF_CANCELLED);
}

/* Failed runs are found by an index of their own, workflow by workflow. */
static void failed_runs_of_all_workflows_are_listed_like_others(void **state)
{
    static const char *const workflows[] = { "a.one", "b.two", "a.three" };
    static const char *const tags[] = { "red" };
    enum { RUNS = 9 };
    hf_filter filter = HF_FILTER_INIT;
    hf_id ids[RUNS];
    (void)state;
    for (int i = 0; i < RUNS; i++) {
        define(workflows[i % 3]);
        hf_trigger_spec spec = spec_of(workflows[i % 3]);
        spec.tags = tags;
        spec.tag_count = i == 4;
        spec.key = i == 5 ? "key" : NULL;
        ids[i] = trigger_spec(&spec);
        fail_for_good(claim());
    }
    change(ids[8], HF_DELETE);
    run_that_is(HF_SUCCEEDED, 0);
    filter.statuses = 1u << HF_FAILED;
    filter.limit = 3;
    for (int left = RUNS - 2; left >= 0;) {
        const hf_runs *runs = list(&filter);
        for (size_t i = 0; i < runs->count; i++)
            assert_true(hf_id_equal(runs->items[i].id, ids[left--]));
        filter.cursor = runs->next;
        assert_true(left < 0 || runs->next);
    }
    assert_null(filter.cursor);
    filter.tag = "red";
    expect_only(&filter, ids[4]);
    filter.tag = NULL;
    filter.key = "key";
    expect_only(&filter, ids[5]);
    filter.key = NULL;
    filter.prefix = "b.";
    assert_int_equal(list(&filter)->count, 3);
    filter.prefix = NULL;
    filter.deleted = true;
    expect_only(&filter, ids[8]);
}

static void the_engines_own_runs_are_left_out_unless_asked_for(void **state)
{
    hf_filter filter = HF_FILTER_INIT;
    hf_schedule_spec spec = HF_SCHEDULE_INIT;
    hf_bulk_result matched;
    (void)state;
    spec.name = "nightly";
    spec.cron = "every 1h";
    spec.workflow = WORK;
    assert_ok(hf_schedule_set(fx.client, &spec, &fx.error));
    trigger(WORK);
    assert_int_equal(list(&filter)->count, 1);
    assert_ok(hf_bulk(fx.client, &matched, &filter, HF_CANCEL, NULL, true, NULL, NULL, &fx.error));
    assert_int_equal(matched.matched, 1);
    filter.prefix = "h"; /* somebody's workflows that begin so, not the engine's */
    assert_int_equal(list(&filter)->count, 0);
    assert_ok(hf_bulk(fx.client, &matched, &filter, HF_CANCEL, NULL, true, NULL, NULL, &fx.error));
    assert_int_equal(matched.matched, 0);
    filter.prefix = "holdfast.";
    assert_int_equal(list(&filter)->count, 1);
    filter.prefix = "holdfast.s";
    assert_int_equal(list(&filter)->count, 1);
    filter.prefix = NULL;
    filter.workflow = "holdfast.schedule";
    assert_int_equal(list(&filter)->count, 1);
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(the_engines_own_runs_are_left_out_unless_asked_for),
    CONTRACT_TEST(runs_are_listed_newest_first),
    CONTRACT_TEST(a_filter_by_status_takes_several),
    CONTRACT_TEST(failed_runs_of_all_workflows_are_listed_like_others),
    CONTRACT_TEST(every_text_filter_finds_its_run_and_no_other),
    CONTRACT_TEST(filters_together_must_all_match),
    CONTRACT_TEST(a_filter_by_time_includes_its_start_and_not_its_end),
    CONTRACT_TEST(runs_whose_ids_tell_another_time_are_found_by_their_time),
    CONTRACT_TEST(a_filter_by_step_and_by_parent),
    CONTRACT_TEST(the_overdue_are_due_but_not_begun_or_past_their_deadline),
    CONTRACT_TEST(deleted_runs_are_hidden_unless_asked_for),
    CONTRACT_TEST(pages_are_stable_while_others_write),
    CONTRACT_TEST(the_last_page_has_no_next_even_if_it_is_full),
    CONTRACT_TEST(pages_of_large_runs_end_early_and_leave_nothing_out),
    CONTRACT_TEST(a_run_larger_than_a_page_hides_nothing),
    CONTRACT_TEST(rare_runs_are_found_behind_a_crowd_by_every_filter),
    CONTRACT_TEST(runs_are_found_by_their_step_wherever_they_stand),
    CONTRACT_TEST(a_crowd_is_paged_through_without_gaps_whatever_finds_it),
    CONTRACT_TEST(a_backlog_behind_a_crowd_is_paged_through_without_gaps),
    CONTRACT_TEST(no_run_is_lost_where_one_way_to_find_them_follows_another),
    CONTRACT_TEST(a_cursor_that_is_none_is_refused),
    CONTRACT_TEST(a_dry_run_counts_and_changes_nothing),
    CONTRACT_TEST(a_bulk_change_reaches_all_that_match_over_many_pages),
    CONTRACT_TEST(a_bulk_change_counts_those_whose_status_did_not_allow_it),
    CONTRACT_TEST(a_bulk_change_can_be_stopped_by_its_progress),
    CONTRACT_TEST(a_bulk_change_that_was_stopped_goes_on_where_it_was),
};
CONTRACT("lists", tests)
