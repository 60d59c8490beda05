/* Short names for what contract tests do all the time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "client/client.h"
#include "client/ids.h"
#include "contract/fixture.h"

static void free_claims(void *memory)
{
    hf_claims_free(memory);
}

static void free_run(void *memory)
{
    hf_run_free(memory);
}

static void free_runs(void *memory)
{
    hf_runs_free(memory);
}

static void free_events(void *memory)
{
    hf_events_free(memory);
}

/* ---- Triggers ---- */

void define_with(hf_workflow workflow, unsigned mask)
{
    assert_ok(hf_workflow_put(fx.client, &workflow, mask, &fx.error));
}

void define(const char *workflow)
{
    define_with((hf_workflow){ .name = workflow }, 0);
}

hf_trigger_spec spec_of(const char *workflow)
{
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    spec.workflow = workflow;
    return spec;
}

hf_code try_trigger(const hf_trigger_spec *spec, hf_triggered *out)
{
    return hf_trigger(fx.client, out, spec, &fx.error);
}

hf_id trigger_spec(const hf_trigger_spec *spec)
{
    hf_triggered out;
    assert_ok(try_trigger(spec, &out));
    assert_false(out.existed);
    return out.id;
}

hf_id trigger(const char *workflow)
{
    hf_trigger_spec spec = spec_of(workflow);
    return trigger_spec(&spec);
}

/* ---- Claims ---- */

const hf_claims *claim_with(const hf_claim_spec *spec)
{
    hf_claims *claims = NULL;
    assert_ok(hf_claim(fx.client, &claims, spec, &fx.error));
    return keep(claims, free_claims);
}

const hf_claims *claim_as(const char *worker, int limit)
{
    static const char *const all[] = { "*", "holdfast.*" };
    hf_claim_spec spec = HF_CLAIM_INIT;
    spec.worker = worker;
    spec.patterns = all;
    spec.pattern_count = 2;
    spec.limit = limit;
    return claim_with(&spec);
}

const hf_claims *claim_of(const char *workflow, int limit)
{
    const char *const pattern[] = { workflow };
    hf_claim_spec spec = HF_CLAIM_INIT;
    spec.worker = WORKER;
    spec.patterns = pattern;
    spec.pattern_count = 1;
    spec.limit = limit;
    return claim_with(&spec);
}

const hf_claimed *claim(void)
{
    const hf_claims *claims = claim_as(WORKER, 10);
    assert_int_equal(claims->count, 1);
    return &claims->items[0];
}

void expect_nothing_due(void)
{
    assert_int_equal(claim_as(WORKER, 10)->count, 0);
}

const hf_claimed *claim_new(void)
{
    hf_id id = trigger(WORK);
    const hf_claimed *held = claim();
    assert_true(hf_id_equal(held->run.id, id));
    return held;
}

/* ---- Commits ---- */

hf_transition turn_of(const hf_claimed *held, hf_turn turn)
{
    return (hf_transition){
        .version = HF_TRANSITION_VERSION,
        .run = held->run.id,
        .run_version = held->run.version,
        .worker = WORKER,
        .turn = turn,
        .seen_position = held->seen_position,
        .seen_at = held->seen_at,
    };
}

hf_code try_commit(const hf_transition *transition)
{
    return hf_commit(fx.client, transition, NULL, &fx.error);
}

void commit(const hf_transition *transition)
{
    assert_ok(try_commit(transition));
}

hf_code try_commit_short(const hf_transition *transition)
{
    struct hf__op op = {
        .kind = HF__OP_COMMIT,
        .tenant = fx.client->tenant_id,
        .actor = fx.client->actor,
        .commit = { .transition = transition, .parentless = true },
        .error = &fx.error,
        .shard = hf__shard_of(transition->run),
    };
    hf__engine_apply(fx.client->engine, &op, 1);
    return op.code;
}

void succeed(const hf_claimed *held)
{
    hf_transition t = turn_of(held, HF_TURN_SUCCEED);
    commit(&t);
}

void fail_for_good(const hf_claimed *held)
{
    hf_transition t = turn_of(held, HF_TURN_FAIL);
    t.error_code = "broken";
    t.last_error = "it broke";
    commit(&t);
}

void wait_for_signal(const hf_claimed *held)
{
    hf_transition t = turn_of(held, HF_TURN_WAIT);
    commit(&t);
}

void retry_after(const hf_claimed *held, int64_t delay)
{
    hf_transition t = turn_of(held, HF_TURN_RETRY);
    t.retry_delay = delay;
    commit(&t);
}

void consume_all(const hf_claimed *held, hf_transition *transition)
{
    const char **ids = keep(calloc(held->mail_count + 1, sizeof *ids), free);
    for (size_t i = 0; i < held->mail_count; i++)
        ids[i] = held->mail[i].id;
    transition->consumed = ids;
    transition->consumed_count = held->mail_count;
    commit(transition);
}

/* ---- Signals and changes ---- */

hf_code try_signal(hf_id run, const hf_signal_spec *spec)
{
    return hf_signal(fx.client, run, spec, NULL, &fx.error);
}

void send_signal(hf_id run, const char *name)
{
    hf_signal_spec spec = HF_SIGNAL_INIT;
    spec.name = name;
    assert_ok(try_signal(run, &spec));
}

hf_code try_change(hf_id run, hf_action action)
{
    return hf_change_run(fx.client, run, action, NULL, &fx.error);
}

void change(hf_id run, hf_action action)
{
    assert_ok(try_change(run, action));
}

hf_id run_that_is(hf_status status, int64_t deadline)
{
    hf_trigger_spec spec = spec_of(WORK);
    spec.timeout = deadline;
    hf_id id = trigger_spec(&spec);
    const hf_claimed *held = status == HF_PENDING || status == HF_PAUSED ? NULL : claim();
    switch (status) {
    case HF_PENDING:
    case HF_LEASED: break;
    case HF_WAITING: wait_for_signal(held); break;
    case HF_PAUSED: change(id, HF_PAUSE); break;
    case HF_SUCCEEDED: succeed(held); break;
    case HF_FAILED: fail_for_good(held); break;
    case HF_CANCELLED: change(id, HF_CANCEL); break;
    }
    expect_status(id, status);
    return id;
}

/* ---- Looking ---- */

const hf_run *get(hf_id id)
{
    hf_run *run = NULL;
    assert_ok(hf_get(fx.client, &run, id, &fx.error));
    return keep(run, free_run);
}

hf_status status_of(hf_id run)
{
    return get(run)->status;
}

void expect_status(hf_id run, hf_status status)
{
    assert_string_equal(hf_status_name(status_of(run)), hf_status_name(status));
}

const hf_events *events_of(hf_id run)
{
    hf_events *events = NULL;
    assert_ok(hf_events_list(fx.client, &events, run, 0, 1000, &fx.error));
    return keep(events, free_events);
}

const char *journal(hf_id run)
{
    const hf_events *events = events_of(run);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    for (size_t i = 0; i < events->count; i++)
        fprintf(out, "%s%s", i ? " " : "", events->items[i].name);
    fclose(out);
    return keep(text, free);
}

void expect_gone(hf_id run)
{
    static const char *const tables[] = { "event", "signal", "task", "dead_letter", "run_tag" };
    assert_int_equal(sql_number("SELECT count(*) FROM run WHERE id = %s", sql_id(run)), 0);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        assert_int_equal(
            sql_number("SELECT count(*) FROM %s WHERE run_id = %s", tables[i], sql_id(run)), 0);
}

void expect_journal(hf_id run, const char *names)
{
    assert_string_equal(journal(run), names);
}

const hf_runs *list(const hf_filter *filter)
{
    hf_runs *runs = NULL;
    assert_ok(hf_list(fx.client, &runs, filter, &fx.error));
    return keep(runs, free_runs);
}
