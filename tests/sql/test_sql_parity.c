/* holdfast.signal and holdfast.cancel leave the same rows, to the last column, as the library does, in every situation.
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

/* A trigger by both ways; `sql` are the same arguments in SQL. */
static void compare_trigger(const char *name, hf_trigger_spec spec, const char *sql)
{
    hf_triggered made;
    hf_code code = hf_trigger(plays[LIBRARY].client, &made, &spec, NULL);
    const char *state = pg_refusal(scratch.pg, "SELECT holdfast.trigger(%s, tenant => '%s')", sql,
                                   plays[SQL].tenant);
    assert_same_verdict(name, code, state);
    assert_same_rows(name);
}

static void trigger_leaves_the_same_rows(void **state)
{
    (void)state;
    static const char *const tags[] = { "red", "deep \"blue\"", "red" };
    stand_still(0);
    new_plays();
    compare_trigger("plain", (hf_trigger_spec){ .version = 1, .workflow = "work", .input = "null" },
                    "'work'");
    compare_trigger("all options",
                    (hf_trigger_spec){ .version = 1,
                                       .workflow = "work",
                                       .input = "[1, 2]",
                                       .key = "a key",
                                       .priority = -7,
                                       .delay = HF_HOURS(3),
                                       .timeout = HF_DAYS(2),
                                       .max_attempts = 9,
                                       .subject = "Schüler",
                                       .reference = "r/1",
                                       .tags = tags,
                                       .tag_count = 3,
                                       .partition = "p",
                                       .trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" },
                    "'work', '[1, 2]', key => 'a key', priority => -7, delay => '3 hours', "
                    "timeout => '2 days', max_attempts => 9, subject => 'Schüler', "
                    "reference => 'r/1', tags => ARRAY['red', 'deep \"blue\"', 'red'], "
                    "partition => 'p', trace => '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'");
    compare_trigger("times",
                    (hf_trigger_spec){ .version = 1,
                                       .workflow = "child",
                                       .input = "null",
                                       .run_at = 1900000100123456,
                                       .delay = HF_DAYS(1),
                                       .timeout_at = 1900000050000001 },
                    "'child', run_at => '2030-03-17 17:48:20.123456+00', delay => '1 day', "
                    "timeout_at => '2030-03-17 17:47:30.000001+00'");
    compare_trigger("the workflow's deadline",
                    (hf_trigger_spec){ .version = 1, .workflow = "child", .input = "null" },
                    "'child'");
}

static void keys_are_judged_alike(void **state)
{
    (void)state;
    static const struct {
        const char *first;
        const char *second;
    } pairs[] = {
        { "{\"a\":1,\"b\":[2]}", "{\"a\":1,\"b\":[2]}" },
        { "{\"a\":1,\"b\":[2]}", "{ \"b\" : [ 2 ] , \"a\" : 1 }" },
        { "{\"a\":1}", "{\"a\":2}" },
        { "{\"a\":\"x y\"}", "{\"a\":\"xy\"}" },
        { "{\"a\":\"\\u0000\"}", "{ \"a\":\"\\u0000\"}" },
        { "{\"a\":\"\\u0000\"}", "{\"a\":\"\"}" },
        { "\"\\u00e4\"", "\"ä\"" },
        { "[1,2]", "[2,1]" },
        { "null", "null" },
        { "1e5000", "1e5000 " },
    };
    stand_still(0);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char sql[200];
        new_plays();
        snprintf(sql, sizeof sql, "'work', '%s', key => 'k'", pairs[i].first);
        compare_trigger(pairs[i].first,
                        (hf_trigger_spec){
                            .version = 1, .workflow = "work", .input = pairs[i].first, .key = "k" },
                        sql);
        snprintf(sql, sizeof sql, "'work', '%s', key => 'k'", pairs[i].second);
        compare_trigger(
            pairs[i].second,
            (hf_trigger_spec){
                .version = 1, .workflow = "work", .input = pairs[i].second, .key = "k" },
            sql);
    }
}

static char *nested(int levels)
{
    char *text = calloc(1, (size_t)levels * 2 + 1);
    memset(text, '[', (size_t)levels);
    memset(text + levels, ']', (size_t)levels);
    return text;
}

static void inputs_are_judged_alike(void **state)
{
    (void)state;
    char *deep = nested(128);
    char *too_deep = nested(129);
    const char *const inputs[] = {
        "",
        "hello",
        "{",
        "{\"a\":1,}",
        "01",
        "\"\\ud800\"",
        "\"\\udc00x\"",
        "\"\\ud83d\\ude00\"",
        "\"\\\\ud800\"",
        "\"\\ud800\\ud800\"",
        "\"\\u0000\"",
        "1e99999",
        "nul",
        "[1 2]",
        "\"\t\"",
        deep,
        too_deep,
        " true\n",
        "\"\\\\\\ud800\"",
        "\"[[[[\"",
    };
    stand_still(0);
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        char sql[600];
        new_plays();
        snprintf(sql, sizeof sql, "'work', '%s'", inputs[i]);
        compare_trigger(inputs[i],
                        (hf_trigger_spec){ .version = 1, .workflow = "work", .input = inputs[i] },
                        sql);
    }
    free(deep);
    free(too_deep);
}

static void names_and_numbers_are_judged_alike(void **state)
{
    (void)state;
    char long_text[600] = "";
    memset(long_text, 'x', 513);
    const struct {
        hf_trigger_spec spec;
        const char *sql;
    } cases[] = {
        { { .workflow = "none" }, "'none'" },
        { { .workflow = "" }, "''" },
        { { .workflow = "a..b" }, "'a..b'" },
        { { .workflow = "a." }, "'a.'" },
        { { .workflow = "-a" }, "'-a'" },
        { { .workflow = "a b" }, "'a b'" },
        { { .workflow = "holdfast.x" }, "'holdfast.x'" },
        { { .workflow = long_text }, "repeat('x', 513)" },
        { { .workflow = "work", .key = "" }, "'work', key => ''" },
        { { .workflow = "work", .key = "a\nb" }, "'work', key => E'a\\nb'" },
        { { .workflow = "work", .subject = "\xc2\x85" }, "'work', subject => U&'\\0085'" },
        { { .workflow = "work", .key = long_text }, "'work', key => repeat('x', 513)" },
        { { .workflow = "work", .priority = 1001 }, "'work', priority => 1001" },
        { { .workflow = "work", .max_attempts = -1 }, "'work', max_attempts => -1" },
        { { .workflow = "work", .delay = -1 }, "'work', delay => '-1 us'" },
        { { .workflow = "work", .timeout = HF_DAYS(40000) }, "'work', timeout => '40000 days'" },
        { { .workflow = "work", .run_at = INT64_MAX }, "'work', run_at => 'infinity'" },
    };
    stand_still(0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hf_trigger_spec spec = cases[i].spec;
        new_plays();
        spec.version = HF_TRIGGER_VERSION;
        compare_trigger(cases[i].sql, spec, cases[i].sql);
    }
}

static bool query(void *arg, const char *sql, invariants_row row, void *row_arg)
{
    (void)arg;
    PGresult *result = PQexec(scratch.pg, sql);
    bool worked = PQresultStatus(result) == PGRES_TUPLES_OK;
    for (int i = 0; i < PQntuples(result); i++) {
        const char *cells[64];
        for (int n = 0; n < PQnfields(result) && n < 64; n++)
            cells[n] = PQgetisnull(result, i, n) ? NULL : PQgetvalue(result, i, n);
        row(cells, row_arg);
    }
    PQclear(result);
    return worked;
}

/* After all of the above: what the journal says is where the runs are. */
static void the_journal_equals_the_state(void **state)
{
    (void)state;
    char complaint[500];
    pg_do(scratch.pg, "SET search_path = holdfast, public");
    const struct invariants_source source = {
        .query = query,
        .id_format = "CAST(%s AS text)",
        .now = pg_number(scratch.pg, "SELECT holdfast.now()"),
    };
    if (!invariants_hold(&source, complaint, sizeof complaint))
        fail_msg("%s", complaint);
    assert_true(pg_number(scratch.pg, "SELECT count(*) FROM holdfast.run") > 100);
}

static int set_up(void **state)
{
    (void)state;
    scratch_create(&scratch);
    root = scratch_open(scratch.url);
    actor = strdup(pg_text(scratch.pg, "SELECT session_user"));
    hf_workflow work = { .name = "work" };
    assert_ok(hf_workflow_put(root, &work, 0, err));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (int way = 0; way < WAYS; way++)
        hf_close(plays[way].client);
    hf_close(root);
    free((char *)actor);
    scratch_drop(&scratch);
    return 0;
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
