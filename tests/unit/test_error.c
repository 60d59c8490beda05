/* SPDX-License-Identifier: Apache-2.0 */
#include "util/error.h"
#include "util/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdbool.h>
#include <string.h>
#include <cmocka.h>

static void a_failure_fills_the_error_and_returns_its_code(void **state)
{
    (void)state;
    hf_error err = { .sqlstate = "40001" };
    assert_int_equal(hf__fail(&err, HF_CONFLICT, "key %s is taken by %d", "k", 7), HF_CONFLICT);
    assert_int_equal(err.code, HF_CONFLICT);
    assert_string_equal(err.message, "key k is taken by 7");
    assert_string_equal(err.sqlstate, "");
}

static void an_error_may_be_null(void **state)
{
    (void)state;
    assert_int_equal(hf__fail(NULL, HF_STALE, "unheard"), HF_STALE);
    assert_int_equal(hf__nomem(NULL), HF_NOMEM);
}

static void a_long_message_is_cut_between_characters(void **state)
{
    (void)state;
    hf_error err;
    char text[601];
    for (size_t shift = 0; shift < 4; shift++) {
        memset(text, 'x', shift);
        for (size_t i = shift; i + 4 < sizeof text; i += 4)
            memcpy(text + i, "\xf0\x9f\x8c\x8a", 4);
        text[596] = '\0';
        hf__fail(&err, HF_INVALID, "%s", text);
        size_t length = strlen(err.message);
        assert_true(length > 500 && length < sizeof err.message);
        assert_true(hf__utf8_valid(err.message, length));
        assert_null(strchr(err.message, '?'));
    }
}

static void bytes_that_are_not_text_become_question_marks(void **state)
{
    (void)state;
    hf_error err;
    hf__fail(&err, HF_INVALID, "a\xff\xc3 \x1b[31m\x7f\n\tz\xc3");
    assert_string_equal(err.message, "a?? ?[31m?\n\tz?");
}

static void an_error_can_be_wrapped_in_its_own_message(void **state)
{
    (void)state;
    hf_error err;
    hf__fail(&err, HF_STORE, "inner");
    hf__fail(&err, err.code, "outer: %s", err.message);
    assert_string_equal(err.message, "outer: inner");
    assert_int_equal(err.code, HF_STORE);
}

static void running_out_of_memory_says_so(void **state)
{
    (void)state;
    hf_error err;
    assert_int_equal(hf__nomem(&err), HF_NOMEM);
    assert_non_null(strstr(err.message, "memory"));
}

static void every_code_has_a_name_and_a_meaning(void **state)
{
    (void)state;
    assert_string_equal(hf_code_name(HF_OK), "ok");
    assert_string_equal(hf_code_name(HF_REVISION), "revision_mismatch");
    assert_string_equal(hf_code_meaning(HF_NOMEM), "memory ran out");
}

static void an_unknown_code_is_named_unknown(void **state)
{
    (void)state;
    assert_string_equal(hf_code_name((hf_code)999), "unknown");
    assert_non_null(hf_code_meaning((hf_code)999));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_fills_the_error_and_returns_its_code),
        cmocka_unit_test(an_error_may_be_null),
        cmocka_unit_test(a_long_message_is_cut_between_characters),
        cmocka_unit_test(bytes_that_are_not_text_become_question_marks),
        cmocka_unit_test(an_error_can_be_wrapped_in_its_own_message),
        cmocka_unit_test(running_out_of_memory_says_so),
        cmocka_unit_test(every_code_has_a_name_and_a_meaning),
        cmocka_unit_test(an_unknown_code_is_named_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
