/* SPDX-License-Identifier: Apache-2.0 */
#include "util/late.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void what_is_there_is_found(void **state)
{
    struct hf__late library = { .file = "libc.so.6" };
    (void)state;
    assert_non_null(hf__late_find(&library, "malloc"));
    assert_string_equal(library.trouble, "");
}

static void the_first_trouble_is_told(void **state)
{
    struct hf__late library = { .file = "libc.so.6" };
    (void)state;
    assert_null(hf__late_find(&library, "no_such_function"));
    assert_null(hf__late_find(&library, "nor_this_one"));
    assert_non_null(strstr(library.trouble, "no_such_function"));
}

static void a_library_that_is_not_installed_is_named(void **state)
{
    struct hf__late library = { .file = "libnosuch.so.1" };
    (void)state;
    assert_null(hf__late_find(&library, "malloc"));
    assert_non_null(strstr(library.trouble, "libnosuch.so.1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_there_is_found),
        cmocka_unit_test(the_first_trouble_is_told),
        cmocka_unit_test(a_library_that_is_not_installed_is_named),
    };
    return cmocka_run_group_tests_name("late", tests, NULL, NULL);
}
