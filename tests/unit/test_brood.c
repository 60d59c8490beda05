/* What a step remembers of the children that it started.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/brood.h"
#include "client/ids.h"
#include "util/id.h"

static bool read_text(const char *text, struct hf__brood *brood)
{
    json_t *json = json_loads(text, JSON_DECODE_ANY, NULL);
    bool good = hf__brood_read(json, brood);
    json_decref(json);
    return good;
}

static void what_was_written_is_read_again(void **state)
{
    struct hf__brood wrote = { hf__new_id(), 10000, 4000 }, read;
    char *text = hf__brood_write(&wrote);
    (void)state;
    assert_true(read_text(text, &read));
    assert_true(hf_id_equal(read.first, wrote.first));
    assert_int_equal(read.count, 10000);
    assert_int_equal(read.started, 4000);
    free(text);
}

static void of_a_list_all_are_started(void **state)
{
    struct hf__brood read;
    (void)state;
    assert_true(read_text("[\"a\",\"b\"]", &read));
    assert_int_equal(read.count, 2);
    assert_int_equal(read.started, 2);
    assert_true(read_text("[]", &read));
    assert_int_equal(read.count, 0);
}

static void what_is_neither_sets_nothing(void **state)
{
#define FIRST "{\"first\":\"01890000-0000-7000-8000-000000000000\""
    static const char *const texts[] = {
        "null",
        "7",
        "{}",
        FIRST "}",
        "{\"first\":\"x\",\"count\":5,\"started\":5}",
        "{\"count\":5,\"started\":5}",
        FIRST ",\"count\":5}",
        FIRST ",\"count\":5,\"started\":0}",
        FIRST ",\"count\":5,\"started\":6}",
        FIRST ",\"count\":-1,\"started\":-1}",
        FIRST ",\"count\":9223372036854775807,\"started\":1}",
        FIRST ",\"count\":\"5\",\"started\":5}",
    };
    struct hf__brood read = { .count = 77 };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_false(read_text(texts[i], &read));
        assert_int_equal(read.count, 77);
    }
}

static void a_row_of_ids_has_no_gap_and_comes_before_the_next_id(void **state)
{
    hf_id ids[1000], step, before = hf__new_id();
    (void)state;
    hf__new_row_of_ids(ids, 1000);
    hf__new_row_of_ids(NULL, 0);
    assert_true(hf__id_compare(before, ids[0]) < 0);
    for (size_t i = 0; i < 1000; i++) {
        assert_true(hf__id_step(ids[0], i, &step));
        assert_true(hf_id_equal(step, ids[i]));
    }
    for (int i = 0; i < 100; i++)
        assert_true(hf__id_compare(ids[999], hf__new_id()) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read_again),
        cmocka_unit_test(of_a_list_all_are_started),
        cmocka_unit_test(what_is_neither_sets_nothing),
        cmocka_unit_test(a_row_of_ids_has_no_gap_and_comes_before_the_next_id),
    };
    return cmocka_run_group_tests_name("brood", tests, NULL, NULL);
}
