/* Forks: a new run that remembers what an old one had done before a step, and nothing of what came after. A13.
 * SPDX-License-Identifier: Apache-2.0 */
#include "contract/fixture.h"

static void save_as(const hf_claimed *held, const char *name, const char *status, const char *data)
{
    const hf_step_record step = {
        .run = held->run.id,
        .run_version = held->run.version,
        .worker = WORKER,
        .name = name,
        .status = status,
        .data = data,
    };
    assert_ok(hf_step_save(fx.client, &step, &fx.error));
}

static void save(const hf_claimed *held, const char *name)
{
    save_as(held, name, "succeeded",
            text_of("{\"op\":\"step\",\"output\":{\"of\":\"%s\",\"big\":12345678901234567890.10}}",
                    name));
}

/* A run of three steps that has failed. */
static hf_id failed_run(void)
{
    const hf_claimed *held = claim_new();
    save(held, "first");
    save_as(held, "second", "failed", "{\"op\":\"step\",\"error\":\"no\"}");
    save(held, "third");
    fail_for_good(held);
    return held->run.id;
}

static hf_code try_fork(hf_id run, const char *step, const hf_fork_options *options, hf_id *out)
{
    hf_triggered forked;
    hf_code code = hf_fork(fx.client, &forked, run, step, options, &fx.error);
    *out = forked.id;
    assert_int_equal(forked.code, code);
    return code;
}

static hf_id fork_run(hf_id run, const char *step)
{
    hf_id id;
    assert_ok(try_fork(run, step, NULL, &id));
    return id;
}

static const char *steps_of(const hf_claimed *held)
{
    const char *all = "";
    for (size_t i = 0; i < held->step_count; i++)
        all = text_of("%s%s%s=%s", all, i ? " " : "", held->steps[i].step, held->steps[i].name);
    return all;
}

static void a_fork_keeps_the_steps_before_the_chosen_one(void **state)
{
    hf_id old = failed_run();
    (void)state;
    hf_id id = fork_run(old, "third");
    assert_false(hf_id_equal(id, old));
    expect_status(id, HF_PENDING);
    expect_status(old, HF_FAILED);
    expect_journal(id, "created forked_from succeeded failed");
    const hf_claimed *held = claim();
    assert_true(hf_id_equal(held->run.id, id));
    assert_int_equal(held->run.attempt, 1);
    assert_string_equal(steps_of(held), "first=succeeded second=failed");
    assert_string_equal(held->steps[0].data,
                        "{\"op\":\"step\",\"output\":{\"of\":\"first\",\"big\":"
                        "12345678901234567890.10}}");
    save(held, "third");
    succeed(held);
    expect_status(id, HF_SUCCEEDED);
}

static void a_fork_from_the_first_step_or_from_none_keeps_nothing(void **state)
{
    hf_id old = failed_run();
    (void)state;
    fork_run(old, "first");
    const hf_claimed *held = claim();
    assert_int_equal(held->step_count, 0);
    succeed(held);
    hf_id id = fork_run(old, NULL);
    held = claim();
    assert_true(hf_id_equal(held->run.id, id));
    assert_int_equal(held->step_count, 0);
    expect_journal(id, "created forked_from started");
}

static void the_journal_says_where_a_fork_comes_from(void **state)
{
    hf_id old = failed_run();
    hf_fork_options options = HF_FORK_INIT;
    hf_id id;
    char text[HF_ID_TEXT];
    (void)state;
    hf_id_format(old, text);
    options.reason = "the \"third\" one";
    assert_ok(try_fork(old, "third", &options, &id));
    const hf_events *events = events_of(id);
    assert_string_equal(events->items[1].kind, "domain");
    assert_string_equal(
        events->items[1].data,
        text_of("{\"run\":\"%s\",\"step\":\"third\",\"reason\":\"the \\\"third\\\" one\"}", text));
    assert_string_equal(events->items[1].actor, "tester");
    id = fork_run(old, NULL);
    assert_string_equal(events_of(id)->items[1].data, text_of("{\"run\":\"%s\"}", text));
}

static hf_trigger_spec full_spec(void)
{
    static const char *const tags[] = { "red", "deep \"blue\"" };
    hf_trigger_spec spec = spec_of(WORK);
    spec.input = "{\"n\":1.10}";
    spec.key = "k";
    spec.priority = -7;
    spec.subject = "s";
    spec.reference = "r";
    spec.partition = "p";
    spec.tags = tags;
    spec.tag_count = 2;
    spec.trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    return spec;
}

static void a_fork_is_like_the_old_run_but_for_the_key(void **state)
{
    hf_trigger_spec spec = full_spec();
    (void)state;
    const hf_run *run = get(fork_run(trigger_spec(&spec), NULL));
    assert_string_equal(run->workflow, WORK);
    assert_string_equal(run->input, spec.input);
    assert_null(run->key);
    assert_int_equal(run->priority, -7);
    assert_string_equal(run->subject, "s");
    assert_string_equal(run->reference, "r");
    assert_string_equal(run->partition, "p");
    assert_string_equal(run->trace, spec.trace);
    hf_filter filter = HF_FILTER_INIT;
    filter.tag = "deep \"blue\"";
    assert_int_equal(list(&filter)->count, 2);
}

static void a_fork_takes_another_input_and_key(void **state)
{
    hf_id old = failed_run();
    hf_fork_options options = HF_FORK_INIT;
    hf_id id;
    (void)state;
    options.input = "{\"mended\":true}";
    options.key = "again";
    assert_ok(try_fork(old, "third", &options, &id));
    assert_string_equal(get(id)->input, options.input);
    assert_string_equal(get(id)->key, "again");
    assert_string_equal(steps_of(claim()), "first=succeeded second=failed");
    options.input = "{";
    options.key = NULL;
    assert_code(try_fork(old, "third", &options, &id), HF_INVALID);
}

static void the_same_fork_with_a_key_is_one_run(void **state)
{
    hf_trigger_spec spec = full_spec();
    hf_id old = trigger_spec(&spec);
    hf_fork_options options = HF_FORK_INIT;
    hf_id first;
    hf_id second;
    (void)state;
    options.key = "fork";
    assert_ok(try_fork(old, NULL, &options, &first));
    assert_ok(try_fork(old, NULL, &options, &second));
    assert_true(hf_id_equal(first, second));
    expect_journal(first, "created forked_from");
    options.reason = "another";
    assert_code(try_fork(old, NULL, &options, &second), HF_CONFLICT);
    options.key = "k"; /* the old run's own */
    assert_code(try_fork(old, NULL, &options, &second), HF_CONFLICT);
    assert_non_null(strstr(fx.error.message, "is not this fork"));
}

static void a_wrong_step_is_answered_with_those_there_are(void **state)
{
    hf_id old = failed_run();
    hf_id id;
    const char *before = dump();
    (void)state;
    assert_code(try_fork(old, "fourth", NULL, &id), HF_INVALID);
    assert_string_equal(fx.error.message, "the run has no step \"fourth\"; it has \"first\", "
                                          "\"second\", \"third\"");
    assert_string_equal(dump(), before);
    old = trigger(WORK);
    assert_code(try_fork(old, "fourth", NULL, &id), HF_INVALID);
    assert_non_null(strstr(fx.error.message, "none at all"));
}

/* A sleep and a pause have one line: what came after them says that they are over. */
static void a_wait_that_had_only_begun_is_not_kept(void **state)
{
    const hf_claimed *held = claim_new();
    const hf_new_event waits[] = {
        { .kind = "step", .name = "waiting", .step = "nap", .data = "{\"op\":\"sleep\"}" },
        { .kind = "step", .name = "waiting", .step = "look", .data = "{\"op\":\"pause\"}" },
        { .kind = "step", .name = "waiting", .step = "approval", .data = "{\"op\":\"wait\"}" },
        { .kind = "domain", .name = "progress", .data = "{\"percent\":40}" },
        { .kind = "step", .name = "succeeded", .step = "last" },
    };
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    (void)state;
    t.events = waits;
    t.event_count = 5;
    t.waiting_kind = "signal";
    commit(&t);
    fork_run(held->run.id, "last");
    assert_string_equal(steps_of(claim()), "nap=succeeded look=succeeded");
    expect_status(held->run.id, HF_WAITING);
}

static const char *as_a_list(const char *child)
{
    return text_of("[\"%s\"]", child);
}

static const char *as_the_first_of_many(const char *child)
{
    return text_of("{\"first\":\"%s\",\"count\":1,\"started\":1}", child);
}

/* What its step `fan` remembers of the child, and the name of the step that has seen its end; NULL: none. */
static hf_id parent_of_one(const char *(*remembered)(const char *child), const char *ends)
{
    const hf_claimed *held = claim_new();
    hf_trigger_spec child = spec_of(WORK);
    child.delay = HF_HOURS(1);
    hf_transition t = turn_of(held, HF_TURN_RETRY);
    t.children = &child;
    t.child_count = 1;
    hf_id id;
    char text[HF_ID_TEXT];
    assert_ok(hf_commit(fx.client, &t, &id, &fx.error));
    hf_id_format(id, text);
    held = claim();
    save(held, "before");
    save_as(held, "fan", "succeeded",
            text_of("{\"op\":\"children\",\"output\":%s}", remembered(text)));
    if (ends)
        save_as(held, ends, "succeeded",
                text_of("{\"op\":\"children_wait\",\"output\":[{\"run\":\"%s\"}]}", text));
    save(held, "after");
    fail_for_good(held);
    return held->run.id;
}

static void a_fork_that_would_wait_for_the_old_runs_children_is_refused(void **state)
{
    hf_id old = parent_of_one(as_the_first_of_many, NULL);
    hf_id id;
    (void)state;
    assert_code(try_fork(old, "after", NULL, &id), HF_NOT_ALLOWED);
    old = parent_of_one(as_a_list, NULL);
    assert_code(try_fork(old, "after", NULL, &id), HF_NOT_ALLOWED);
    assert_non_null(strstr(fx.error.message, "the step \"fan\" started children"));
    assert_ok(try_fork(old, "fan", NULL, &id));
}

static void children_whose_ends_are_known_are_kept(void **state)
{
    hf_id old = parent_of_one(as_the_first_of_many, "gather");
    (void)state;
    fork_run(old, "after");
    const hf_claimed *held = claim();
    assert_string_equal(steps_of(held), "before=succeeded fan=succeeded gather=succeeded");
    assert_true(hf_id_is_zero(held->run.parent));
}

static void an_unfinished_run_can_be_forked_and_goes_on(void **state)
{
    const hf_claimed *held = claim_new();
    (void)state;
    save(held, "first");
    save(held, "second");
    fork_run(held->run.id, "second");
    assert_string_equal(steps_of(claim()), "first=succeeded");
    succeed(held);
    expect_status(held->run.id, HF_SUCCEEDED);
}

static void a_fork_of_a_child_has_no_parent(void **state)
{
    hf_id old = parent_of_one(as_a_list, NULL);
    hf_filter filter = HF_FILTER_INIT;
    (void)state;
    filter.parent = old;
    const hf_runs *children = list(&filter);
    assert_int_equal(children->count, 1);
    assert_true(hf_id_is_zero(get(fork_run(children->items[0].id, NULL))->parent));
}

static void what_is_not_there_cannot_be_forked(void **state)
{
    hf_id old = failed_run();
    hf_triggered out;
    hf_id id;
    (void)state;
    assert_code(try_fork((hf_id){ { 1 } }, NULL, NULL, &id), HF_NOT_FOUND);
    assert_code(hf_fork(fx.other, &out, old, NULL, NULL, &fx.error), HF_NOT_FOUND);
    change(old, HF_DELETE);
    assert_code(try_fork(old, NULL, NULL, &id), HF_NOT_ALLOWED);
}

/* More than one page of the journal. */
static void a_long_history_is_kept_as_a_whole(void **state)
{
    enum { MANY = 2500 };
    const hf_claimed *held = claim_new();
    hf_new_event *events = calloc(MANY, sizeof *events);
    (void)state;
    for (int i = 0; i < MANY; i++)
        events[i] = (hf_new_event){
            .kind = "step",
            .name = "succeeded",
            .step = text_of("step#%d", i),
            .data = "{\"op\":\"step\",\"output\":1}",
        };
    hf_transition t = turn_of(held, HF_TURN_FAIL);
    t.events = events;
    t.event_count = MANY;
    commit(&t);
    free(events);
    fork_run(held->run.id, text_of("step#%d", MANY - 1));
    const hf_claimed *next = claim();
    assert_int_equal(next->step_count, MANY - 1);
    assert_string_equal(next->steps[MANY - 2].step, text_of("step#%d", MANY - 2));
}

static void more_history_than_one_transaction_should_hold_is_refused(void **state)
{
    enum { MANY = 10002 };
    const hf_claimed *held = claim_new();
    hf_new_event *events = calloc(MANY, sizeof *events);
    hf_id id;
    (void)state;
    for (int i = 0; i < MANY; i++)
        events[i] = (hf_new_event){ .kind = "step",
                                    .name = "succeeded",
                                    .step = i < MANY - 1 ? "same" : "last" };
    hf_transition t = turn_of(held, HF_TURN_FAIL);
    t.events = events;
    t.event_count = MANY;
    commit(&t);
    free(events);
    assert_code(try_fork(held->run.id, "last", NULL, &id), HF_TOO_LARGE);
    assert_non_null(strstr(fx.error.message, "fork from an earlier step"));
}

static void a_fork_whose_answer_was_lost_is_there_once(void **state)
{
    hf_id old = failed_run();
    (void)state;
    lose_answers(1);
    hf_id id = fork_run(old, "third");
    assert_int_equal(answers_lost(), 1);
    expect_journal(id, "created forked_from succeeded failed");
    assert_string_equal(steps_of(claim()), "first=succeeded second=failed");
    expect_nothing_due();
}

static void children_are_counted_by_status(void **state)
{
    hf_id old = parent_of_one(as_a_list, NULL);
    int64_t counts[HF_STATUS_COUNT];
    (void)state;
    assert_ok(hf_child_counts(fx.client, counts, old, &fx.error));
    assert_int_equal(counts[HF_PENDING], 1);
    assert_int_equal(counts[HF_SUCCEEDED], 0);
    advance(HF_HOURS(2));
    succeed(claim());
    assert_ok(hf_child_counts(fx.client, counts, old, &fx.error));
    assert_int_equal(counts[HF_PENDING], 0);
    assert_int_equal(counts[HF_SUCCEEDED], 1);
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(a_fork_keeps_the_steps_before_the_chosen_one),
    CONTRACT_TEST(a_fork_from_the_first_step_or_from_none_keeps_nothing),
    CONTRACT_TEST(the_journal_says_where_a_fork_comes_from),
    CONTRACT_TEST(a_fork_is_like_the_old_run_but_for_the_key),
    CONTRACT_TEST(a_fork_takes_another_input_and_key),
    CONTRACT_TEST(the_same_fork_with_a_key_is_one_run),
    CONTRACT_TEST(a_wrong_step_is_answered_with_those_there_are),
    CONTRACT_TEST(a_wait_that_had_only_begun_is_not_kept),
    CONTRACT_TEST(a_fork_that_would_wait_for_the_old_runs_children_is_refused),
    CONTRACT_TEST(children_whose_ends_are_known_are_kept),
    CONTRACT_TEST(an_unfinished_run_can_be_forked_and_goes_on),
    CONTRACT_TEST(a_fork_of_a_child_has_no_parent),
    CONTRACT_TEST(what_is_not_there_cannot_be_forked),
    CONTRACT_TEST(a_long_history_is_kept_as_a_whole),
    CONTRACT_TEST(more_history_than_one_transaction_should_hold_is_refused),
    CONTRACT_TEST(a_fork_whose_answer_was_lost_is_there_once),
    CONTRACT_TEST(children_are_counted_by_status),
};

CONTRACT("forks", tests)
