/* Cron expressions: when they fire, in every time zone and on the days when clocks are changed. B10.
 * SPDX-License-Identifier: Apache-2.0 */
#include "schedule/cron.h"
#include "util/duration.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

static int64_t time_of(const char *text)
{
    int64_t us = 0;
    hf_error err = { 0 };
    if (hf__time_parse(text, &us, &err) != HF_OK)
        fail_msg("%s", err.message);
    return us;
}

static struct hf__cron cron_of(const char *text)
{
    struct hf__cron cron;
    hf_error err = { 0 };
    if (hf__cron_parse(&cron, text, &err) != HF_OK)
        fail_msg("%s", err.message);
    return cron;
}

static struct hf__zone zone_of(const char *name)
{
    struct hf__zone zone;
    hf_error err = { 0 };
    if (hf__zone_load(&zone, name, &err) != HF_OK)
        fail_msg("%s", err.message);
    return zone;
}

/* The firings after a time, one by one; `expected` ends with NULL. */
static void assert_fires(const char *text, const char *zone_name, const char *after,
                         const char *const *expected)
{
    struct hf__cron cron = cron_of(text);
    struct hf__zone zone = zone_of(zone_name);
    int64_t at = time_of(after);
    for (; *expected; expected++) {
        char shown[HF__TIME_TEXT], wanted[HF__TIME_TEXT];
        at = hf__cron_next(&cron, &zone, at);
        hf__time_format(at, shown);
        hf__time_format(time_of(*expected), wanted);
        if (strcmp(shown, wanted) != 0)
            fail_msg("%s in %s: fires at %s, not at %s", text, zone_name, shown, wanted);
    }
    hf__zone_free(&zone);
}
#define FIRES(cron, zone, after, ...)                                                              \
    assert_fires(cron, zone, after, (const char *const[]){ __VA_ARGS__, NULL })

static void assert_refused(const char *text, const char *message)
{
    struct hf__cron cron;
    hf_error err = { 0 };
    assert_int_equal(hf__cron_parse(&cron, text, &err), HF_INVALID);
    if (!strstr(err.message, message))
        fail_msg("%s: %s", text, err.message);
}

/* ---- Expressions ---- */

static void fields_may_be_values_ranges_lists_and_steps(void **state)
{
    (void)state;
    FIRES("30 4 * * *", "UTC", "2026-01-01T04:30:00Z", "2026-01-02T04:30:00Z");
    FIRES("0,20,40 * * * *", "UTC", "2026-01-01T00:19:59.999999Z", "2026-01-01T00:20:00Z",
          "2026-01-01T00:40:00Z", "2026-01-01T01:00:00Z");
    FIRES("*/25 * * * *", "UTC", "2026-01-01T00:00:00Z", "2026-01-01T00:25:00Z",
          "2026-01-01T00:50:00Z", "2026-01-01T01:00:00Z");
    FIRES("50/5 23 * * *", "UTC", "2026-01-01T00:00:00Z", "2026-01-01T23:50:00Z",
          "2026-01-01T23:55:00Z", "2026-01-02T23:50:00Z");
    FIRES("0 8-18/5 * * *", "UTC", "2026-01-01T00:00:00Z", "2026-01-01T08:00:00Z",
          "2026-01-01T13:00:00Z", "2026-01-01T18:00:00Z", "2026-01-02T08:00:00Z");
    FIRES("  0\t0  1  jan,JUL ? ", "UTC", "2026-01-01T00:00:00Z", "2026-07-01T00:00:00Z",
          "2027-01-01T00:00:00Z");
    FIRES("0 9 * * Mon-Fri", "UTC", "2026-11-13T09:00:00Z", "2026-11-16T09:00:00Z");
    FIRES("0 9 * * 5-7", "UTC", "2026-11-13T09:00:00Z", "2026-11-14T09:00:00Z",
          "2026-11-15T09:00:00Z", "2026-11-20T09:00:00Z");
    FIRES("0 9 * * sat-sun", "UTC", "2026-11-13T09:00:00Z", "2026-11-14T09:00:00Z",
          "2026-11-15T09:00:00Z", "2026-11-21T09:00:00Z");
}

static void six_fields_begin_with_seconds(void **state)
{
    (void)state;
    FIRES("*/20 * * * * *", "UTC", "2026-01-01T00:00:00Z", "2026-01-01T00:00:20Z",
          "2026-01-01T00:00:40Z", "2026-01-01T00:01:00Z");
    FIRES("15 30 4 * * *", "UTC", "2026-01-01T04:30:15Z", "2026-01-02T04:30:15Z");
}

static void shorthands_are_expressions(void **state)
{
    (void)state;
    FIRES("@hourly", "UTC", "2026-01-31T23:30:00Z", "2026-02-01T00:00:00Z");
    FIRES("@daily", "UTC", "2026-12-31T00:00:00Z", "2027-01-01T00:00:00Z");
    FIRES("@midnight", "UTC", "2026-12-31T00:00:00Z", "2027-01-01T00:00:00Z");
    FIRES("@weekly", "UTC", "2026-11-16T00:00:00Z", "2026-11-22T00:00:00Z");
    FIRES("@monthly", "UTC", "2026-11-16T00:00:00Z", "2026-12-01T00:00:00Z");
    FIRES("@yearly", "UTC", "2026-11-16T00:00:00Z", "2027-01-01T00:00:00Z");
    FIRES("@annually", "UTC", "2026-11-16T00:00:00Z", "2027-01-01T00:00:00Z");
}

static void intervals_count_from_the_epoch(void **state)
{
    (void)state;
    FIRES("every 15m", "UTC", "2026-01-01T00:07:00Z", "2026-01-01T00:15:00Z",
          "2026-01-01T00:30:00Z");
    FIRES("every 1s", "UTC", "2026-01-01T00:00:00.5Z", "2026-01-01T00:00:01Z");
    FIRES("every 1d", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T00:00:00Z",
          "2026-03-30T00:00:00Z");
}

static void a_day_of_month_and_a_day_of_week_are_either(void **state)
{
    (void)state;
    FIRES("0 0 13 * fri", "UTC", "2026-11-01T00:00:00Z", "2026-11-06T00:00:00Z",
          "2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z", "2026-11-27T00:00:00Z",
          "2026-12-04T00:00:00Z", "2026-12-11T00:00:00Z", "2026-12-13T00:00:00Z");
    /* a field that begins with a star does not count as restricted: both must match */
    FIRES("0 0 */10 * mon", "UTC", "2026-11-01T00:00:00Z", "2026-12-21T00:00:00Z");
}

static void leap_days_come_in_leap_years(void **state)
{
    (void)state;
    FIRES("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z",
          "2032-02-29T00:00:00Z");
    FIRES("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z");
    FIRES("0 0 29 2 */6", "UTC", "2088-03-01T00:00:00Z", "2116-02-29T00:00:00Z",
          "2128-02-29T00:00:00Z");
    FIRES("0 0 31 * *", "UTC", "2026-01-31T00:00:00Z", "2026-03-31T00:00:00Z",
          "2026-05-31T00:00:00Z");
}

static void what_is_no_expression_is_refused(void **state)
{
    (void)state;
    assert_refused("", "has 0 fields");
    assert_refused("* * * *", "has 4 fields");
    assert_refused("* * * * * * *", "has 7 fields");
    assert_refused("60 * * * *", "minute \"60\"");
    assert_refused("* 24 * * *", "hour \"24\"");
    assert_refused("* * 0 * *", "day of month \"0\"");
    assert_refused("* * 32 * *", "day of month \"32\"");
    assert_refused("* * * 13 *", "month \"13\"");
    assert_refused("* * * * 8", "day of week \"8\"");
    assert_refused("60 * * * * *", "second \"60\"");
    assert_refused("? * * * *", "minute \"?\"");
    assert_refused("5-1 * * * *", "minute \"5-1\"");
    assert_refused("*/0 * * * *", "minute \"*/0\"");
    assert_refused("*/61 * * * *", "minute \"*/61\"");
    assert_refused("1, * * * *", "minute \"1,\"");
    assert_refused("1-2-3 * * * *", "minute \"1-2-3\"");
    assert_refused("-1 * * * *", "minute \"-1\"");
    assert_refused("99999999999999999999 * * * *", "minute");
    assert_refused("* * * janu *", "month \"janu\"");
    assert_refused("* * L * *", "day of month \"L\"");
    assert_refused("@often", "is not known");
    assert_refused("every", "has 1 fields");
    assert_refused("every now", "duration");
    assert_refused("every 500ms", "from 1s to 366d");
    assert_refused("every 1.5s", "whole seconds");
    assert_refused("every 1000d", "from 1s to 366d");
}

static void dates_that_never_come_are_refused(void **state)
{
    (void)state;
    assert_refused("0 0 31 2 *", "never comes");
    assert_refused("0 0 30 feb ?", "never comes");
    assert_refused("0 0 31 4,6,9,11 *", "never comes");
    cron_of("0 0 29 2 *");
    cron_of("0 0 31 4,5 *");
    cron_of("0 0 31 2 mon"); /* Mondays come */
}

/* ---- Daylight saving ---- */

static void berlin_jumps_from_two_to_three(void **state)
{
    (void)state;
    FIRES("30 2 * * *", "Europe/Berlin", "2026-03-27T12:00:00Z", "2026-03-28T02:30:00+01:00",
          "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00");
    FIRES("0,30 2,3 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", "2026-03-29T03:00:00+02:00",
          "2026-03-29T03:30:00+02:00", "2026-03-30T02:00:00+02:00");
    FIRES("*/15 2 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", "2026-03-29T03:00:00+02:00",
          "2026-03-30T02:00:00+02:00");
    FIRES("*/30 * * * *", "Europe/Berlin", "2026-03-29T01:00:00+01:00", "2026-03-29T01:30:00+01:00",
          "2026-03-29T03:00:00+02:00", "2026-03-29T03:30:00+02:00");
    FIRES("30 * * * *", "Europe/Berlin", "2026-03-29T01:00:00+01:00", "2026-03-29T01:30:00+01:00",
          "2026-03-29T03:30:00+02:00");
}

static void berlin_falls_from_three_to_two(void **state)
{
    (void)state;
    FIRES("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T02:30:00+02:00",
          "2026-10-26T02:30:00+01:00");
    FIRES("0 3 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T03:00:00+01:00",
          "2026-10-26T03:00:00+01:00");
    FIRES("*/30 * * * *", "Europe/Berlin", "2026-10-25T02:00:00+02:00", "2026-10-25T02:30:00+02:00",
          "2026-10-25T02:00:00+01:00", "2026-10-25T02:30:00+01:00", "2026-10-25T03:00:00+01:00");
    /* asked in the second of the two hours, the fixed one has been */
    FIRES("30 2 * * *", "Europe/Berlin", "2026-10-25T02:10:00+01:00", "2026-10-26T02:30:00+01:00");
}

static void new_york_jumps_and_falls(void **state)
{
    (void)state;
    FIRES("15 2 * * *", "America/New_York", "2026-03-07T12:00:00Z", "2026-03-08T03:00:00-04:00",
          "2026-03-09T02:15:00-04:00");
    FIRES("30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", "2026-11-01T01:30:00-04:00",
          "2026-11-02T01:30:00-05:00");
    FIRES("*/20 * * * *", "America/New_York", "2026-11-01T01:20:00-04:00",
          "2026-11-01T01:40:00-04:00", "2026-11-01T01:00:00-05:00", "2026-11-01T01:20:00-05:00");
}

static void lord_howe_moves_by_half_an_hour(void **state)
{
    (void)state;
    FIRES("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", "2026-10-04T02:30:00+11:00",
          "2026-10-05T02:15:00+11:00");
    FIRES("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z", "2026-04-05T01:45:00+11:00",
          "2026-04-06T01:45:00+10:30");
    FIRES("*/15 * * * *", "Australia/Lord_Howe", "2026-04-05T01:30:00+11:00",
          "2026-04-05T01:45:00+11:00", "2026-04-05T01:30:00+10:30", "2026-04-05T01:45:00+10:30",
          "2026-04-05T02:00:00+10:30");
}

static void the_rule_at_the_end_of_a_zone_goes_on(void **state)
{
    (void)state;
    FIRES("30 2 * * *", "Europe/Berlin", "2150-03-28T12:00:00Z", "2150-03-29T03:00:00+02:00",
          "2150-03-30T02:30:00+02:00");
    FIRES("0 12 1 7 *", "America/New_York", "2500-01-01T00:00:00Z", "2500-07-01T12:00:00-04:00");
    FIRES("0 12 1 1 *", "Australia/Lord_Howe", "2499-06-01T00:00:00Z", "2500-01-01T12:00:00+11:00");
}

static void zones_without_changes_work(void **state)
{
    (void)state;
    FIRES("0 9 * * *", "Asia/Tokyo", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
    FIRES("0 0 * * *", "Asia/Kathmandu", "2026-01-01T00:00:00Z", "2026-01-01T18:15:00Z");
    FIRES("0 0 * * *", "Etc/GMT+12", "2026-01-01T00:00:00Z", "2026-01-01T12:00:00Z");
}

static void unknown_zones_are_refused(void **state)
{
    static const char *const names[] = {
        "",
        "Berlin",
        "europe/berlin",
        "../../etc/passwd",
        "Europe/../Europe/Berlin",
        "/etc/localtime",
        "Europe",
        "Europe/",
        "Europe//Berlin",
        "tzdata.zi",
        "zone.tab",
        "Europe/Berlin\n",
        "posixrules ",
    };
    struct hf__zone zone;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        hf_error err = { 0 };
        assert_int_equal(hf__zone_load(&zone, names[i], &err), HF_INVALID);
        assert_non_null(strstr(err.message, "there is no time zone"));
    }
}

/* ---- Looking back ---- */

static void the_last_firing_is_found_without_counting(void **state)
{
    static const char *const crons[] = { "*/7 * * * * *", "30 2 * * *", "* * * 1 *", "every 7s" };
    struct hf__zone zone = zone_of("Europe/Berlin");
    int64_t from = time_of("2026-01-30T00:00:00Z"), until = time_of("2026-02-02T01:23:45Z");
    (void)state;
    for (size_t i = 0; i < sizeof crons / sizeof *crons; i++) {
        struct hf__cron cron = cron_of(crons[i]);
        int64_t last = 0;
        for (int64_t at = hf__cron_next(&cron, &zone, from); at <= until;
             at = hf__cron_next(&cron, &zone, at))
            last = at;
        assert_true(last > 0);
        assert_true(hf__cron_last(&cron, &zone, from, until) == last);
        assert_true(hf__cron_last(&cron, &zone, last, until) == 0);
        assert_true(hf__cron_last(&cron, &zone, last - 1, last) == last);
    }
    hf__zone_free(&zone);
}

static void time_ends_with_the_year_9999(void **state)
{
    struct hf__cron cron = cron_of("0 0 1 1 *"), every = cron_of("every 366d");
    struct hf__zone zone = zone_of("UTC");
    (void)state;
    assert_true(hf__cron_next(&cron, &zone, time_of("9999-06-01T00:00:00Z")) == 0);
    assert_true(hf__cron_next(&cron, &zone, INT64_MAX) == 0);
    assert_true(hf__cron_next(&every, &zone, HF__TIME_MAX - 1) == 0);
    assert_true(hf__cron_next(&cron, &zone, INT64_MIN) == time_of("1971-01-01T00:00:00Z"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_may_be_values_ranges_lists_and_steps),
        cmocka_unit_test(six_fields_begin_with_seconds),
        cmocka_unit_test(shorthands_are_expressions),
        cmocka_unit_test(intervals_count_from_the_epoch),
        cmocka_unit_test(a_day_of_month_and_a_day_of_week_are_either),
        cmocka_unit_test(leap_days_come_in_leap_years),
        cmocka_unit_test(what_is_no_expression_is_refused),
        cmocka_unit_test(dates_that_never_come_are_refused),
        cmocka_unit_test(berlin_jumps_from_two_to_three),
        cmocka_unit_test(berlin_falls_from_three_to_two),
        cmocka_unit_test(new_york_jumps_and_falls),
        cmocka_unit_test(lord_howe_moves_by_half_an_hour),
        cmocka_unit_test(the_rule_at_the_end_of_a_zone_goes_on),
        cmocka_unit_test(zones_without_changes_work),
        cmocka_unit_test(unknown_zones_are_refused),
        cmocka_unit_test(the_last_firing_is_found_without_counting),
        cmocka_unit_test(time_ends_with_the_year_9999),
    };
    return cmocka_run_group_tests_name("cron", tests, NULL, NULL);
}
