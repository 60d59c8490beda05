/* holdfast.signal and holdfast.cancel leave the same rows, to the last column, as the library does, in every situation.
 * F15.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "sql/plays.h"

/* ---- Actions ---- */

struct sent {
    const char *name;
    const char *payload;
    const char *id;
    const char *token;
    int64_t delay;
    int64_t revision;
};

static hf_code signal_by_library(struct play *play, const struct sent *sent, bool *duplicate)
{
    hf_signal_spec spec = HF_SIGNAL_INIT;
    spec.name = sent->name;
    spec.payload = sent->payload;
    spec.id = sent->id;
    spec.token = sent->token;
    spec.delay = sent->delay;
    spec.expected_revision = sent->revision;
    return hf_signal(play->client, play->run, &spec, duplicate, NULL);
}

static const char *quoted(const char *text)
{
    static char texts[8][4000];
    static int next;
    char *out = texts[next++ % 8];
    if (!text)
        return "NULL";
    snprintf(out, sizeof texts[0], "$q$%s$q$", text);
    return out;
}

static const char *signal_by_sql(struct play *play, const struct sent *sent)
{
    return pg_refusal(scratch.pg,
                      "SELECT holdfast.signal('%s', %s, %s::text, id => %s, token => %s, "
                      "delay => '%lld us', expected_revision => %lld, tenant => '%s')",
                      id_text(play->run), quoted(sent->name), quoted(sent->payload),
                      quoted(sent->id), quoted(sent->token), (long long)sent->delay,
                      (long long)sent->revision, play->tenant);
}

static void compare_signal(const char *name, const struct sent *sent)
{
    bool duplicate = false;
    hf_code code = signal_by_library(&plays[LIBRARY], sent, &duplicate);
    assert_same_verdict(name, code, signal_by_sql(&plays[SQL], sent));
    assert_same_rows(name);
}

static void compare_cancel(const char *name, const char *reason, int64_t revision)
{
    hf_change wanted = HF_CHANGE_INIT;
    wanted.reason = reason;
    wanted.expected_revision = revision;
    hf_code code =
        hf_change_run(plays[LIBRARY].client, plays[LIBRARY].run, HF_CANCEL, &wanted, NULL);
    const char *state =
        pg_refusal(scratch.pg,
                   "SELECT holdfast.cancel('%s', %s, expected_revision => %lld, "
                   "tenant => '%s')",
                   id_text(plays[SQL].run), quoted(reason), (long long)revision, plays[SQL].tenant);
    assert_same_verdict(name, code, state);
    assert_same_rows(name);
}

/* ---- Tests ---- */

static void act_cancel(const struct situation *situation)
{
    compare_cancel(situation->name, NULL, 0);
}

static void cancel_leaves_the_same_rows(void **state)
{
    (void)state;
    in_every_situation(act_cancel);
}

static void act_cancel_with_reason(const struct situation *situation)
{
    compare_cancel(situation->name, "no \"longer\" needed \\ für Österreich", 0);
}

static void cancel_with_a_reason_leaves_the_same_rows(void **state)
{
    (void)state;
    in_every_situation(act_cancel_with_reason);
}

static void act_cancel_other_revision(const struct situation *situation)
{
    compare_cancel(situation->name, NULL, 77);
}

static void cancel_of_another_revision_is_refused_alike(void **state)
{
    (void)state;
    in_every_situation(act_cancel_other_revision);
}

static void act_signal(const struct situation *situation)
{
    compare_signal(situation->name,
                   &(struct sent){ .name = "go", .payload = "{\"a\":\"\\u0000\"}" });
}

static void signal_leaves_the_same_rows(void **state)
{
    (void)state;
    in_every_situation(act_signal);
}

static void act_signal_later(const struct situation *situation)
{
    struct sent sent = { .name = "go \"on\"", .id = "s-\"1\"", .delay = HF_MINUTES(30) };
    compare_signal(situation->name, &sent);
    compare_signal(situation->name, &sent);
}

static void a_delayed_and_a_repeated_signal_leave_the_same_rows(void **state)
{
    (void)state;
    in_every_situation(act_signal_later);
}

static void act_signal_with_token(const struct situation *situation)
{
    compare_signal(situation->name, &(struct sent){ .name = "go", .token = "token-1" });
    compare_signal(situation->name, &(struct sent){ .name = "go", .token = "token-2" });
}

static void stale_and_fitting_tokens_leave_the_same_rows(void **state)
{
    (void)state;
    in_every_situation(act_signal_with_token);
}

static void act_signal_revision(const struct situation *situation)
{
    compare_signal(situation->name, &(struct sent){ .name = "go", .revision = 1 });
    compare_signal(situation->name, &(struct sent){ .name = "go", .revision = 3 });
}

static void expected_revisions_are_judged_alike(void **state)
{
    (void)state;
    in_every_situation(act_signal_revision);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signal_leaves_the_same_rows),
        cmocka_unit_test(a_delayed_and_a_repeated_signal_leave_the_same_rows),
        cmocka_unit_test(stale_and_fitting_tokens_leave_the_same_rows),
        cmocka_unit_test(expected_revisions_are_judged_alike),
        cmocka_unit_test(cancel_leaves_the_same_rows),
        cmocka_unit_test(cancel_with_a_reason_leaves_the_same_rows),
        cmocka_unit_test(cancel_of_another_revision_is_refused_alike),
        cmocka_unit_test(the_journal_equals_the_state),
    };
    if (!scratch_server())
        return 77;
    return cmocka_run_group_tests(tests, plays_set_up, plays_tear_down);
}
