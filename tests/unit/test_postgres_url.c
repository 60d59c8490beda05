/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres.h"
#include "util/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void assert_value(const struct hf__postgres_url *url, const char *keyword, const char *value)
{
    const char *found = hf__postgres_url_value(url, keyword);
    assert_non_null(found);
    assert_string_equal(found, value);
}

static struct hf__postgres_url parsed(const char *text)
{
    struct hf__postgres_url url;
    hf_error err;
    if (hf__postgres_url_parse(&url, text, &err) != HF_OK)
        fail_msg("%s: %s", text, err.message);
    return url;
}

static void assert_refused(const char *text, hf_code code, const char *said)
{
    struct hf__postgres_url url;
    hf_error err = { 0 };
    assert_int_equal(hf__postgres_url_parse(&url, text, &err), code);
    assert_non_null(strstr(err.message, said));
    assert_int_equal(url.count, 0);
}

static void every_form_of_libpq_is_read(void **state)
{
    (void)state;
    struct hf__postgres_url url = parsed("postgres://ann:s%20x@db.example:5433/work");
    assert_value(&url, "host", "db.example");
    assert_value(&url, "port", "5433");
    assert_value(&url, "user", "ann");
    assert_value(&url, "password", "s x");
    assert_value(&url, "dbname", "work");
    hf__postgres_url_free(&url);

    url = parsed("postgresql:///work?host=/run/x&port=5433");
    assert_value(&url, "host", "/run/x");
    assert_value(&url, "port", "5433");
    hf__postgres_url_free(&url);

    url = parsed("postgres://one:1,two:2/work?target_session_attrs=read-write");
    assert_value(&url, "host", "one,two");
    assert_value(&url, "port", "1,2");
    hf__postgres_url_free(&url);

    url = parsed("postgres://");
    assert_null(hf__postgres_url_value(&url, "host"));
    hf__postgres_url_free(&url);
}

static void a_dead_server_is_noticed_by_default(void **state)
{
    (void)state;
    struct hf__postgres_url url = parsed("postgres://h/db");
    assert_value(&url, "connect_timeout", "5");
    assert_value(&url, "tcp_user_timeout", "10000");
    assert_value(&url, "keepalives_idle", "4");
    assert_value(&url, "fallback_application_name", "holdfast");
    assert_value(&url, "client_encoding", "UTF8");
    hf__postgres_url_free(&url);
}

static void what_the_url_says_goes_before_the_defaults(void **state)
{
    (void)state;
    struct hf__postgres_url url =
        parsed("postgres://h/db?connect_timeout=30&application_name=mine&client_encoding=LATIN1");
    assert_value(&url, "connect_timeout", "30");
    assert_value(&url, "application_name", "mine");
    assert_value(&url, "client_encoding", "UTF8");
    hf__postgres_url_free(&url);
}

static void our_parameters_are_taken_out(void **state)
{
    (void)state;
    static const char *const off[] = {
        "postgres://h/db?prepare=off",
        "postgres://h/db?prepare=off&sslmode=disable",
        "postgres://h/db?sslmode=disable&prepare=off",
        "postgres://h/db?sslmode=disable&prepare=off&port=1",
        "postgres://u:a?b@h/db?prepare=off",
    };
    for (size_t i = 0; i < sizeof off / sizeof *off; i++) {
        struct hf__postgres_url url = parsed(off[i]);
        assert_true(url.unprepared);
        assert_value(&url, "host", "h");
        assert_value(&url, "dbname", "db");
        hf__postgres_url_free(&url);
    }
    struct hf__postgres_url url = parsed("postgres://h/db?prepare=on");
    assert_false(url.unprepared);
    assert_int_equal(url.answer_limit, HF_SECONDS(10));
    hf__postgres_url_free(&url);
    url = parsed("postgres://h/db?answer_timeout=1m30s&prepare=on");
    assert_int_equal(url.answer_limit, HF_SECONDS(90));
    assert_int_equal(url.limits.max_open, -1);
    assert_int_equal(url.limits.max_idle, -1);
    assert_int_equal(url.limits.max_lifetime, -1);
    hf__postgres_url_free(&url);
    url = parsed("postgres://h/db?max_open=1000&port=1&max_idle=0&max_lifetime=30m");
    assert_int_equal(url.limits.max_open, 1000);
    assert_int_equal(url.limits.max_idle, 0);
    assert_int_equal(url.limits.max_lifetime, HF_MINUTES(30));
    assert_value(&url, "port", "1");
    hf__postgres_url_free(&url);
}

static void bad_urls_are_refused_with_a_reason(void **state)
{
    (void)state;
    assert_refused(NULL, HF_INVALID, "postgres://");
    assert_refused("", HF_INVALID, "postgres://");
    assert_refused("host=x dbname=y", HF_INVALID, "postgres://");
    assert_refused("mysql://h/db", HF_INVALID, "postgres://");
    assert_refused("postgres://h/db?colour=red", HF_INVALID, "colour");
    assert_refused("postgres://h:abc/db", HF_INVALID, "port");
    assert_refused("postgres://h:99999/db", HF_INVALID, "port");
    assert_refused("postgres://h:0/db", HF_INVALID, "port");
    assert_refused("postgres://h/db?port=5432x", HF_INVALID, "port");
    assert_refused("postgres://a,b/db?port=5432,70000", HF_INVALID, "port");
    assert_refused("postgres://h/db?prepare=maybe", HF_INVALID, "'on' or 'off'");
    assert_refused("postgres://h/db?answer_timeout=soon", HF_INVALID, "answer_timeout");
    assert_refused("postgres://h/db?answer_timeout=", HF_INVALID, "answer_timeout");
    assert_refused("postgres://h/db?answer_timeout=0", HF_INVALID, "answer_timeout");
    assert_refused("postgres://h/db?answer_timeout=1000000000000000000000000000000000000000000000s",
                   HF_INVALID, "answer_timeout");
    assert_refused("postgres://h/db?max_open=0", HF_INVALID, "'max_open' must be a number from 1");
    assert_refused("postgres://h/db?max_open=1001", HF_INVALID, "to 1000, not '1001'");
    assert_refused("postgres://h/db?max_open=99999999999", HF_INVALID, "max_open");
    assert_refused("postgres://h/db?max_open=", HF_INVALID, "max_open");
    assert_refused("postgres://h/db?max_open=4&max_idle=-1", HF_INVALID, "'max_idle' must be");
    assert_refused("postgres://h/db?max_idle=2x", HF_INVALID, "not '2x'");
    assert_refused("postgres://h/db?max_lifetime=999ms", HF_INVALID, "at least 1s");
    assert_refused("postgres://h/db?max_lifetime=ever", HF_INVALID, "max_lifetime");
    assert_refused("postgres://[::1/db", HF_INVALID, "cannot be read");

    char *longest = calloc(1, 10001);
    memset(longest, 'x', 10000);
    memcpy(longest, "postgres://", 11);
    assert_refused(longest, HF_TOO_LARGE, "8192");
    free(longest);
}

static void a_password_is_never_repeated(void **state)
{
    (void)state;
    static const char *const bad[] = { "postgres://ann:hunter2@[::1/db",
                                       "postgres://ann:hunter2@[::1]x/db",
                                       "postgres://ann:hunter2%zz@h/db",
                                       "postgres://h/db?password=hunter2=x" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct hf__postgres_url url;
        hf_error err = { 0 };
        assert_int_equal(hf__postgres_url_parse(&url, bad[i], &err), HF_INVALID);
        assert_null(strstr(err.message, "hunter2"));
    }
}

static void running_out_of_memory_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    bool failed = true;
    for (long n = 0; failed; n++) {
        struct hf__postgres_url url;
        hf_error err;
        atomic_store(&hf__alloc_fail_after, n);
        hf_code code = hf__postgres_url_parse(&url, "postgres://u@h:1/db?prepare=off", &err);
        failed = atomic_load(&hf__alloc_fail_after) < 0;
        atomic_store(&hf__alloc_fail_after, -1);
        assert_int_equal(code, failed ? HF_NOMEM : HF_OK);
        hf__postgres_url_free(&url);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_of_libpq_is_read),
        cmocka_unit_test(a_dead_server_is_noticed_by_default),
        cmocka_unit_test(what_the_url_says_goes_before_the_defaults),
        cmocka_unit_test(our_parameters_are_taken_out),
        cmocka_unit_test(bad_urls_are_refused_with_a_reason),
        cmocka_unit_test(a_password_is_never_repeated),
        cmocka_unit_test(running_out_of_memory_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
