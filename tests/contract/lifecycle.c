/* The lifecycle table is what the API does: every change in it happens, and none besides. A1.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernel/lifecycle.h"
#include "contract/fixture.h"

enum { STATUSES = HF_CANCELLED + 1 };
#define DEADLINE HF_MINUTES(10)

/* Runs in every status; paused ones also from waiting. */
static const struct start {
    hf_status status;
    bool waited;
} starts[] = {
    { HF_PENDING, false }, { HF_LEASED, false },    { HF_WAITING, false }, { HF_PAUSED, false },
    { HF_PAUSED, true },   { HF_SUCCEEDED, false }, { HF_FAILED, false },  { HF_CANCELLED, false },
};
enum { STARTS = sizeof starts / sizeof *starts };

static hf_id begin(const struct start *start)
{
    if (!start->waited)
        return run_that_is(start->status, DEADLINE);
    hf_id id = run_that_is(HF_WAITING, DEADLINE);
    change(id, HF_PAUSE);
    return id;
}

/* ---- What can be tried on a run ---- */

static hf_code claim_it(hf_id id)
{
    advance(DEADLINE + HF_MINUTES(1));
    const hf_claims *claims = claim_as("bert", 10);
    for (size_t i = 0; i < claims->count; i++)
        if (hf_id_equal(claims->items[i].run.id, id))
            return HF_OK;
    return HF_NOT_ALLOWED;
}

static hf_transition turn_now(hf_id id, hf_turn turn, bool unleased)
{
    return (hf_transition){
        .version = HF_TRANSITION_VERSION,
        .run = id,
        .run_version = get(id)->version,
        .worker = WORKER,
        .turn = turn,
        .unleased = unleased,
    };
}

static hf_code turn_it(hf_id id, hf_turn turn, bool unleased)
{
    hf_transition t = turn_now(id, turn, unleased);
    return try_commit(&t);
}

#define TURN(name, turn, unleased)                                                                 \
    static hf_code name(hf_id id)                                                                  \
    {                                                                                              \
        return turn_it(id, turn, unleased);                                                        \
    }
TURN(hold_and_succeed, HF_TURN_SUCCEED, false)
TURN(hold_and_fail, HF_TURN_FAIL, false)
TURN(hold_and_retry, HF_TURN_RETRY, false)
TURN(hold_and_wait, HF_TURN_WAIT, false)
TURN(hold_and_give_back, HF_TURN_GIVE_BACK, false)
TURN(execute_and_succeed, HF_TURN_SUCCEED, true)
TURN(execute_and_fail, HF_TURN_FAIL, true)
TURN(execute_and_retry, HF_TURN_RETRY, true)
TURN(execute_and_wait, HF_TURN_WAIT, true)
TURN(execute_and_give_back, HF_TURN_GIVE_BACK, true)

static hf_code cancel_it(hf_id id)
{
    return try_change(id, HF_CANCEL);
}

static hf_code resume_it(hf_id id)
{
    return try_change(id, HF_RESUME);
}

static hf_code retry_it(hf_id id)
{
    return try_change(id, HF_RETRY_RUN);
}

/* A held run is paused by its next commit. */
static hf_code pause_it(hf_id id)
{
    bool held = status_of(id) == HF_LEASED;
    hf_code code = try_change(id, HF_PAUSE);
    return code == HF_OK && held ? hold_and_wait(id) : code;
}

static const struct way {
    hf_code (*go)(hf_id id);
    const char *name;
    hf_status to; /* the status it would lead to; resume has two */
} ways[] = {
    { claim_it, "claim", HF_LEASED },
    { hold_and_succeed, "succeed", HF_SUCCEEDED },
    { hold_and_fail, "fail", HF_FAILED },
    { hold_and_retry, "retry", HF_PENDING },
    { hold_and_wait, "wait", HF_WAITING },
    { hold_and_give_back, "give back", HF_PENDING },
    { execute_and_succeed, "execute to success", HF_SUCCEEDED },
    { execute_and_fail, "execute to failure", HF_FAILED },
    { execute_and_retry, "execute to pending", HF_PENDING },
    { execute_and_wait, "execute", HF_WAITING },
    { execute_and_give_back, "execute and give back", HF_PENDING },
    { cancel_it, "cancel", HF_CANCELLED },
    { pause_it, "pause", HF_PAUSED },
    { resume_it, "resume", HF_PENDING },
    { retry_it, "operator's retry", HF_PENDING },
};
enum { WAYS = sizeof ways / sizeof *ways };

static const char *last_event(hf_id id)
{
    const hf_events *events = events_of(id);
    return events->items[events->count - 1].name;
}

/* The row of the table for what happened to a run, or -1. */
static int row_of(hf_status from, hf_status to, const char *event)
{
    for (int i = 0; i < hf__lifecycle_count; i++)
        if (hf__lifecycle[i].from == from && hf__lifecycle[i].to == to &&
            strcmp(hf__lifecycle[i].event, event) == 0)
            return i;
    return -1;
}

enum { MOST_ROWS = 100 };

/* Tries every way from every status and notes the rows of the table that it took. */
static void try_everything(bool reached[MOST_ROWS], bool check_refusals)
{
    assert_true(hf__lifecycle_count <= MOST_ROWS);
    for (int s = 0; s < STARTS; s++)
        for (int w = 0; w < WAYS; w++) {
            hf_id id = begin(&starts[s]);
            const char *before = dump();
            hf_code code = ways[w].go(id);
            hf_status from = starts[s].status;
            hf_status to = status_of(id);
            if (code == HF_OK) {
                int row = row_of(from, to, last_event(id));
                if (row < 0)
                    fail_msg("%s made a %s run %s, and the journal says %s", ways[w].name,
                             hf_status_name(from), hf_status_name(to), last_event(id));
                reached[row] = true;
                assert_non_null(hf__lifecycle_find(from, to));
            } else if (check_refusals) {
                assert_string_equal(before, dump());
            }
            if (to <= HF_PAUSED)
                change(id, HF_CANCEL);
        }
}

static void every_change_in_the_table_happens_through_the_api(void **state)
{
    bool reached[MOST_ROWS] = { false };
    (void)state;
    try_everything(reached, false);
    for (int i = 0; i < hf__lifecycle_count; i++)
        if (!reached[i])
            fail_msg("nothing made a %s run %s as %s", hf_status_name(hf__lifecycle[i].from),
                     hf_status_name(hf__lifecycle[i].to), hf__lifecycle[i].event);
}

static void a_change_that_is_not_in_the_table_is_refused_and_changes_nothing(void **state)
{
    bool reached[MOST_ROWS] = { false };
    (void)state;
    try_everything(reached, true);
}

static void a_finished_run_is_never_claimed(void **state)
{
    (void)state;
    for (hf_status status = HF_SUCCEEDED; status <= HF_CANCELLED; status++)
        run_that_is(status, DEADLINE);
    advance(HF_DAYS(30));
    expect_nothing_due();
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(every_change_in_the_table_happens_through_the_api),
    CONTRACT_TEST(a_change_that_is_not_in_the_table_is_refused_and_changes_nothing),
    CONTRACT_TEST(a_finished_run_is_never_claimed),
};
CONTRACT("lifecycle", tests)
