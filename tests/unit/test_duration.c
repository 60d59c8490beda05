/* SPDX-License-Identifier: Apache-2.0 */
#include "util/duration.h"
#include "util/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

static void assert_duration(const char *text, int64_t expected)
{
    int64_t us = -1;
    hf_error err = { 0 };
    if (hf__duration_parse(text, &us, &err) != HF_OK)
        fail_msg("%s", err.message);
    assert_true(us == expected);
}

static void assert_duration_refused(const char *text, const char *message)
{
    int64_t us = 77;
    hf_error err = { 0 };
    assert_int_equal(hf__duration_parse(text, &us, &err), HF_INVALID);
    assert_true(us == 77);
    if (!strstr(err.message, message))
        fail_msg("%s", err.message);
}

static void assert_formatted(int64_t us, const char *expected)
{
    char text[HF__DURATION_TEXT];
    hf__duration_format(us, text);
    assert_string_equal(text, expected);
}

static void assert_time(const char *text, int64_t expected)
{
    int64_t us = -1;
    hf_error err = { 0 };
    if (hf__time_parse(text, &us, &err) != HF_OK)
        fail_msg("%s", err.message);
    assert_true(us == expected);
}

static void assert_time_refused(const char *text)
{
    int64_t us = 77;
    hf_error err = { 0 };
    if (hf__time_parse(text, &us, &err) != HF_INVALID)
        fail_msg("%s was accepted", text);
    assert_true(us == 77);
    assert_true(strlen(err.message) > 10);
}

static void assert_time_formatted(int64_t us, const char *expected)
{
    char text[HF__TIME_TEXT];
    hf__time_format(us, text);
    assert_string_equal(text, expected);
}

static void every_unit_is_understood(void **state)
{
    (void)state;
    assert_duration("7us", 7);
    assert_duration("250ms", 250000);
    assert_duration("30s", 30000000);
    assert_duration("2m", 120000000);
    assert_duration("1h", INT64_C(3600000000));
    assert_duration("3d", INT64_C(259200000000));
    assert_duration("2w", INT64_C(1209600000000));
}

static void units_add_up(void **state)
{
    (void)state;
    assert_duration("1h30m", INT64_C(5400000000));
    assert_duration("1w1d1h1m1s1ms1us", INT64_C(694861001001));
}

static void a_bare_number_is_seconds(void **state)
{
    (void)state;
    assert_duration("90", 90000000);
    assert_duration("0", 0);
    assert_duration("0.25", 250000);
}

static void decimals_are_exact(void **state)
{
    (void)state;
    assert_duration("1.5s", 1500000);
    assert_duration("0.000001s", 1);
    assert_duration("1.25h", INT64_C(4500000000));
    assert_duration("0.1d", INT64_C(8640000000));
    assert_duration("1.001ms", 1001);
}

static void what_is_finer_than_a_microsecond_is_refused(void **state)
{
    (void)state;
    assert_duration_refused("0.5us", "finer than a microsecond");
    assert_duration_refused("1.0005ms", "finer than a microsecond");
    assert_duration_refused("0.0000001s", "more than six decimals");
}

static void malformed_durations_are_refused(void **state)
{
    (void)state;
    assert_duration_refused(NULL, "missing");
    assert_duration_refused("", "not a number");
    assert_duration_refused("s", "not a number");
    assert_duration_refused(".5s", "not a number");
    assert_duration_refused("+5s", "not a number");
    assert_duration_refused(" 5s", "not a number");
    assert_duration_refused("1.s", "without digits");
    assert_duration_refused("1.2.3s", "no known unit");
    assert_duration_refused("5 s", "no known unit");
    assert_duration_refused("5S", "no known unit");
    assert_duration_refused("5sec", "no known unit");
    assert_duration_refused("5s ", "not a number");
    assert_duration_refused("1e3s", "no known unit");
    assert_duration_refused("1h30", "no known unit");
}

static void a_negative_duration_is_refused(void **state)
{
    (void)state;
    assert_duration_refused("-1s", "negative");
    assert_duration_refused("1h-5m", "negative");
}

static void units_come_once_and_the_largest_first(void **state)
{
    (void)state;
    assert_duration_refused("30m1h", "largest first");
    assert_duration_refused("1s1s", "once");
}

static void a_hundred_years_is_the_limit(void **state)
{
    (void)state;
    assert_duration("36525d", HF__DURATION_MAX);
    assert_duration("36524d24h", HF__DURATION_MAX);
    assert_duration_refused("36525d1us", "100 years");
    assert_duration_refused("36526d", "100 years");
    assert_duration_refused("3000000000000000w", "100 years");
    assert_duration_refused("9223372036854775807w", "100 years");
    assert_duration_refused("99999999999999999999999999999999", "100 years");
}

static void durations_are_written_shortly(void **state)
{
    (void)state;
    assert_formatted(0, "0s");
    assert_formatted(7, "7us");
    assert_formatted(1500, "1.5ms");
    assert_formatted(250000, "250ms");
    assert_formatted(1500000, "1.5s");
    assert_formatted(1000001, "1.000001s");
    assert_formatted(INT64_C(5400000000), "1h30m");
    assert_formatted(INT64_C(86400000000) + 5, "1d0.000005s");
    assert_formatted(INT64_C(259200000000), "3d");
}

static void a_negative_duration_is_written_with_its_sign(void **state)
{
    (void)state;
    assert_formatted(-5000000, "-5s");
    assert_formatted(INT64_MIN, "-106751991d4h54.775808s");
}

static void a_written_duration_is_read_back_the_same(void **state)
{
    (void)state;
    struct hf__random random;
    hf__random_seed(&random, 5);
    for (int i = 0; i < 20000; i++) {
        char text[HF__DURATION_TEXT];
        int64_t us =
            (int64_t)hf__random_below(&random, UINT64_C(1) << hf__random_below(&random, 52));
        hf__duration_format(us, text);
        assert_duration(text, us);
    }
}

static void a_time_is_microseconds_since_the_epoch(void **state)
{
    (void)state;
    assert_time("1970-01-01T00:00:00Z", 0);
    assert_time("2026-11-15T21:20:51Z", INT64_C(1794777651000000));
    assert_time("2026-11-15t21:20:51.5z", INT64_C(1794777651500000));
    assert_time("2026-11-15T21:20:51.123456Z", INT64_C(1794777651123456));
    assert_time("9999-12-31T23:59:59.999999Z", HF__TIME_MAX);
}

static void an_offset_is_taken_off(void **state)
{
    (void)state;
    assert_time("2026-11-15T22:20:51+01:00", INT64_C(1794777651000000));
    assert_time("2026-11-15T15:50:51-05:30", INT64_C(1794777651000000));
    assert_time("1969-12-31T23:30:00-01:00", INT64_C(1800000000));
    assert_time("2026-11-15T21:20:51-00:00", INT64_C(1794777651000000));
}

static void leap_years_are_known(void **state)
{
    (void)state;
    assert_time("2000-02-29T00:00:00Z", INT64_C(951782400000000));
    assert_time("2024-02-29T00:00:00Z", INT64_C(1709164800000000));
    assert_time_refused("2023-02-29T00:00:00Z");
    assert_time_refused("2100-02-29T00:00:00Z");
    assert_time_refused("2024-02-30T00:00:00Z");
}

static void impossible_dates_and_times_are_refused(void **state)
{
    (void)state;
    const char *texts[] = { "2026-00-01T00:00:00Z",     "2026-13-01T00:00:00Z",
                            "2026-01-00T00:00:00Z",     "2026-04-31T00:00:00Z",
                            "2026-01-01T24:00:00Z",     "2026-01-01T00:60:00Z",
                            "2026-01-01T00:00:60Z",     "2026-01-01T00:00:00+24:00",
                            "2026-01-01T00:00:00+01:60" };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_time_refused(texts[i]);
}

static void other_forms_of_time_are_refused(void **state)
{
    (void)state;
    const char *texts[] = { "",
                            "2026",
                            "2026-11-15",
                            "2026-11-15T21:20Z",
                            "2026-11-15T21:20:51",
                            "2026-11-15 21:20:51Z",
                            "20261115T212051Z",
                            "2026-11-15T21:20:51.Z",
                            "2026-11-15T21:20:51.1234567Z",
                            "2026-11-15T21:20:51,5Z",
                            "2026-11-15T21:20:51+0100",
                            "2026-11-15T21:20:51+01",
                            "2026-11-15T21:20:51Z ",
                            " 2026-11-15T21:20:51Z",
                            "2026-1-5T21:20:51Z",
                            "+2026-11-15T21:20:51Z",
                            "12026-11-15T21:20:51Z" };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_time_refused(texts[i]);
    assert_time_refused(NULL);
}

static void times_outside_1970_to_9999_are_refused(void **state)
{
    (void)state;
    assert_time_refused("1969-12-31T23:59:59Z");
    assert_time_refused("1970-01-01T00:00:00+00:01");
    assert_time_refused("1600-01-01T00:00:00Z");
    assert_time_refused("9999-12-31T23:59:59-00:01");
}

static void a_time_is_written_in_milliseconds_if_they_are_enough(void **state)
{
    (void)state;
    assert_time_formatted(0, "1970-01-01T00:00:00.000Z");
    assert_time_formatted(INT64_C(1794777651123000), "2026-11-15T21:20:51.123Z");
    assert_time_formatted(INT64_C(1794777651123456), "2026-11-15T21:20:51.123456Z");
    assert_time_formatted(INT64_C(1794777651000001), "2026-11-15T21:20:51.000001Z");
}

static void a_time_out_of_range_is_written_as_the_nearest_end(void **state)
{
    (void)state;
    assert_time_formatted(-1, "1970-01-01T00:00:00.000Z");
    assert_time_formatted(INT64_MAX, "9999-12-31T23:59:59.999999Z");
}

static void a_written_time_is_read_back_the_same(void **state)
{
    (void)state;
    struct hf__random random;
    hf__random_seed(&random, 6);
    for (int i = 0; i < 20000; i++) {
        char text[HF__TIME_TEXT];
        int64_t us = (int64_t)hf__random_below(&random, HF__TIME_MAX + 1);
        hf__time_format(us, text);
        assert_time(text, us);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_unit_is_understood),
        cmocka_unit_test(units_add_up),
        cmocka_unit_test(a_bare_number_is_seconds),
        cmocka_unit_test(decimals_are_exact),
        cmocka_unit_test(what_is_finer_than_a_microsecond_is_refused),
        cmocka_unit_test(malformed_durations_are_refused),
        cmocka_unit_test(a_negative_duration_is_refused),
        cmocka_unit_test(units_come_once_and_the_largest_first),
        cmocka_unit_test(a_hundred_years_is_the_limit),
        cmocka_unit_test(durations_are_written_shortly),
        cmocka_unit_test(a_negative_duration_is_written_with_its_sign),
        cmocka_unit_test(a_written_duration_is_read_back_the_same),
        cmocka_unit_test(a_time_is_microseconds_since_the_epoch),
        cmocka_unit_test(an_offset_is_taken_off),
        cmocka_unit_test(leap_years_are_known),
        cmocka_unit_test(impossible_dates_and_times_are_refused),
        cmocka_unit_test(other_forms_of_time_are_refused),
        cmocka_unit_test(times_outside_1970_to_9999_are_refused),
        cmocka_unit_test(a_time_is_written_in_milliseconds_if_they_are_enough),
        cmocka_unit_test(a_time_out_of_range_is_written_as_the_nearest_end),
        cmocka_unit_test(a_written_time_is_read_back_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
