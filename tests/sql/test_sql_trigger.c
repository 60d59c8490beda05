/* holdfast.trigger leaves the same rows, to the last column, as the library does, and refuses the same. F15.
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

static int64_t same_lanes(void)
{
    return pg_number(scratch.pg,
                     "SELECT count(DISTINCT f.keys) FROM (SELECT t.name, string_agg(l.flow_key, "
                     "',' ORDER BY l.flow_key) AS keys FROM holdfast.lane l JOIN holdfast.tenant t "
                     "ON t.id = l.tenant_id JOIN holdfast.run r ON r.lane = l.id WHERE t.name IN "
                     "('%s', '%s') GROUP BY t.name) f",
                     plays[LIBRARY].tenant, plays[SQL].tenant);
}

static void a_flow_key_leaves_the_same_rows(void **state)
{
    (void)state;
    stand_still(0);
    new_plays();
    for (int i = 0; i < 2; i++)
        compare_trigger(
            "flow key",
            (hf_trigger_spec){
                .version = 1, .workflow = "work", .input = "null", .flow_key = "a \"b\"" },
            "'work', flow_key => 'a \"b\"'");
    assert_int_equal(same_lanes(), 1);
    assert_string_equal(pg_text(scratch.pg,
                                "SELECT string_agg(flow_key, ',') FROM holdfast.runs "
                                "WHERE tenant = '%s'",
                                plays[SQL].tenant),
                        "a \"b\",a \"b\"");
}

static hf_trigger_spec debounced(const char *input, int64_t wait, int64_t at_most)
{
    return (hf_trigger_spec){ .version = 1,
                              .workflow = "work",
                              .input = input,
                              .debounce_key = "k",
                              .debounce_for = wait,
                              .debounce_at_most = at_most };
}

/* As compare_trigger, but an id that never became a run is in the journal of each. */
static void a_debounce_leaves_the_same_rows(void **state)
{
    (void)state;
    hf_trigger_spec keyed = debounced("4", HF_HOURS(1), 0);
    keyed.key = "key";
    stand_still(0);
    new_plays();
    compare_trigger("first", debounced("1", HF_HOURS(1), HF_HOURS(3)),
                    "'work', '1', debounce_key => 'k', debounce_for => '1 hour', "
                    "debounce_at_most => '3 hours'");
    stand_still(HF_MINUTES(30));
    compare_trigger("second", debounced("{\"a\": 2}", HF_HOURS(2), 0),
                    "'work', '{\"a\": 2}', debounce_key => 'k', debounce_for => '2 hours'");
    compare_trigger("the same again", debounced("{\"a\":2.0}", HF_HOURS(9), HF_HOURS(10)),
                    "'work', '{\"a\":2.0}', debounce_key => 'k', debounce_for => '9 hours', "
                    "debounce_at_most => '10 hours'");
    compare_trigger("nothing", debounced(NULL, HF_MINUTES(1), 0),
                    "'work', NULL, debounce_key => 'k', debounce_for => '1 minute'");
    compare_trigger("with a key", keyed,
                    "'work', '4', key => 'key', debounce_key => 'k', debounce_for => '1 hour'");
    assert_int_equal(pg_number(scratch.pg, "SELECT count(*) FROM holdfast.runs WHERE tenant = '%s'",
                               plays[SQL].tenant),
                     1);
    for (int i = 0; i < WAYS; i++)
        pg_do(scratch.pg,
              "UPDATE holdfast.run SET version = 2 WHERE tenant_id = (SELECT id FROM "
              "holdfast.tenant WHERE name = '%s')",
              plays[i].tenant);
    compare_trigger("it has begun", debounced("5", HF_HOURS(1), 0),
                    "'work', '5', debounce_key => 'k', debounce_for => '1 hour'");
    assert_int_equal(pg_number(scratch.pg, "SELECT count(*) FROM holdfast.runs WHERE tenant = '%s'",
                               plays[SQL].tenant),
                     2);
}

/* A worker of one pattern, live or not. */
static void register_worker(const char *tenants, const char *serves, bool live)
{
    pg_do(scratch.pg,
          "INSERT INTO holdfast.worker (name, tenants, serves, host, pid, program, threads, "
          "started_at, seen_at, expires_at) VALUES ('w', '[\"%s\"]', '[\"x\",\"%s\"]', 'h', 1, "
          "'p', 1, 0, 0, holdfast.now() + %d)",
          tenants, serves, live ? 1000000000 : -1);
}

static void a_worker_is_required_alike(void **state)
{
    (void)state;
    static const struct {
        const char *tenants;
        const char *serves;
        bool live;
    } workers[] = {
        { "*", "work", true },   { "*", "work", false }, { "*", "wor*", true },
        { "*", "*", true },      { "*", "wor", true },   { "*", "wor.", true },
        { "nobody", "*", true }, { "*", "Work", true },  { "*", "work.*", true },
    };
    stand_still(0);
    for (size_t i = 0; i < sizeof workers / sizeof *workers; i++) {
        new_plays();
        register_worker(workers[i].tenants, workers[i].serves, workers[i].live);
        compare_trigger(
            workers[i].serves,
            (hf_trigger_spec){
                .version = 1, .workflow = "work", .input = "null", .require_worker = true },
            "'work', require_worker => true");
        pg_do(scratch.pg, "DELETE FROM holdfast.worker WHERE name = 'w'");
    }
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

/* An input of so many bytes: the limit is the same. */
static void compare_size(int bytes)
{
    char *text = malloc((size_t)bytes + 1);
    hf_triggered made;
    memset(text, 'x', (size_t)bytes);
    text[0] = text[bytes - 1] = '"';
    text[bytes] = '\0';
    new_plays();
    hf_trigger_spec spec = { .version = 1, .workflow = "work", .input = text };
    hf_code code = hf_trigger(plays[LIBRARY].client, &made, &spec, NULL);
    const char *state = pg_refusal(scratch.pg,
                                   "SELECT holdfast.trigger('work', '\"' || repeat('x', %d) || "
                                   "'\"', tenant => '%s')",
                                   bytes - 2, plays[SQL].tenant);
    assert_same_verdict("size", code, state);
    free(text);
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
    compare_size(1024 * 1024);
    compare_size(1024 * 1024 + 1);
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
    char two_hundred[202] = "";
    memset(two_hundred, 'x', 201);
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
        { { .workflow = "work", .flow_key = "" }, "'work', flow_key => ''" },
        { { .workflow = "work", .flow_key = two_hundred }, "'work', flow_key => repeat('x', 201)" },
        { { .workflow = "work", .trace = "" }, "'work', trace => ''" },
        { { .workflow = "work", .trace = "x" }, "'work', trace => 'x'" },
        { { .workflow = "work", .trace = TRACE "0" }, "'work', trace => '" TRACE "0'" },
        { { .workflow = "work",
            .trace = "00-4BF92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" },
          "'work', trace => '00-4BF92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'" },
        { { .workflow = "work",
            .trace = "00-00000000000000000000000000000000-00f067aa0ba902b7-01" },
          "'work', trace => '00-00000000000000000000000000000000-00f067aa0ba902b7-01'" },
        { { .workflow = "work",
            .trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01" },
          "'work', trace => '00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01'" },
        { { .workflow = "work",
            .trace = "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" },
          "'work', trace => '01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'" },
        { { .workflow = "work", .trace = TRACE }, "'work', trace => '" TRACE "'" },
        { { .workflow = "work", .debounce_key = "", .debounce_for = 1 },
          "'work', debounce_key => '', debounce_for => '1 us'" },
        { { .workflow = "work", .debounce_key = two_hundred, .debounce_for = 1 },
          "'work', debounce_key => repeat('x', 201), debounce_for => '1 us'" },
        { { .workflow = "work", .debounce_key = "k" }, "'work', debounce_key => 'k'" },
        { { .workflow = "work", .debounce_for = 1 }, "'work', debounce_for => '1 us'" },
        { { .workflow = "work", .debounce_key = "k", .debounce_for = HF_DAYS(366) },
          "'work', debounce_key => 'k', debounce_for => '366 days'" },
        { { .workflow = "work", .debounce_key = "k", .debounce_for = 2, .debounce_at_most = 1 },
          "'work', debounce_key => 'k', debounce_for => '2 us', debounce_at_most => '1 us'" },
        { { .workflow = "work", .debounce_key = "k", .debounce_for = 2, .debounce_at_most = 2 },
          "'work', debounce_key => 'k', debounce_for => '2 us', debounce_at_most => '2 us'" },
        { { .workflow = "work", .debounce_key = "k", .debounce_for = 1, .delay = 1 },
          "'work', debounce_key => 'k', debounce_for => '1 us', delay => '1 us'" },
        { { .workflow = "work", .debounce_key = "k", .debounce_for = 1, .run_at = 1 },
          "'work', debounce_key => 'k', debounce_for => '1 us', run_at => '1970-01-01 00:00+00'" },
    };
    stand_still(0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hf_trigger_spec spec = cases[i].spec;
        new_plays();
        spec.version = HF_TRIGGER_VERSION;
        spec.input = "null";
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
        cmocka_unit_test(a_flow_key_leaves_the_same_rows),
        cmocka_unit_test(a_debounce_leaves_the_same_rows),
        cmocka_unit_test(a_worker_is_required_alike),
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
