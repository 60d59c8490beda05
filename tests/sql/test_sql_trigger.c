/* holdfast.trigger leaves the same rows, to the last column, as the library does, and refuses the same.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sql/plays.h"
#include "util/json.h"

#define TRACE "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

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
                                       .trace = TRACE },
                    "'work', '[1, 2]', key => 'a key', priority => -7, delay => '3 hours', "
                    "timeout => '2 days', max_attempts => 9, subject => 'Schüler', "
                    "reference => 'r/1', tags => ARRAY['red', 'deep \"blue\"', 'red'], "
                    "partition => 'p', trace => '" TRACE "'");
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

/* Whether two inputs are the same is decided in two places. */
static void inputs_are_compared_alike(void **state)
{
    static const char *const inputs[] = {
        "1",
        "1.0",
        "10e-1",
        "-0",
        "0.00",
        "1.50",
        "1.5",
        "\"1\"",
        "[1,2]",
        "[1.0, 2]",
        "[2,1]",
        "{\"a\":1,\"b\":2}",
        "{\"b\":2.0,\"a\":1}",
        "{\"a\":3,\"a\":1,\"b\":2}",
        "\"\\u00e9\"",
        "\"\xc3\xa9\"",
        "{\"a\":\"\\u0000\",\"b\":1}",
        "{\"a\":\"\\u0000\", \"b\":1}",
        "{\"b\":1,\"a\":\"\\u0000\"}",
        "9007199254740993",
        "9007199254740992.0",
        "123456789012345678901234567890",
        "12345678901234567890123456789e1",
        "1e400",
        "10e399",
    };
    enum { INPUTS = sizeof inputs / sizeof *inputs };
    (void)state;
    for (int i = 0; i < INPUTS; i++)
        for (int n = 0; n < INPUTS; n++) {
            bool sql =
                pg_number(scratch.pg, "SELECT holdfast.same_json($in$%s$in$, $in$%s$in$)::int",
                          inputs[i], inputs[n]) != 0;
            if (hf__json_equal(inputs[i], inputs[n]) != sql)
                fail_msg("%s and %s are the %s by SQL, not by the library", inputs[i], inputs[n],
                         sql ? "same" : "not the same");
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trigger_leaves_the_same_rows),
        cmocka_unit_test(keys_are_judged_alike),
        cmocka_unit_test(inputs_are_judged_alike),
        cmocka_unit_test(inputs_are_compared_alike),
        cmocka_unit_test(names_and_numbers_are_judged_alike),
        cmocka_unit_test(the_journal_equals_the_state),
    };
    if (!scratch_server())
        return 77;
    return cmocka_run_group_tests(tests, plays_set_up, plays_tear_down);
}
