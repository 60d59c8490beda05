/* Lines out of a stream.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "util/alloc.h"
#include "util/line.h"

static void add(struct hf__lines *lines, const char *text)
{
    hf__lines_add(lines, text, strlen(text));
}

static void expect(struct hf__lines *lines, const char *text)
{
    char *line;
    size_t length;
    assert_int_equal(hf__lines_next(lines, &line, &length), HF__LINE_THERE);
    assert_string_equal(line, text);
    assert_int_equal(length, strlen(text));
}

static void expect_end(struct hf__lines *lines, enum hf__line_end end)
{
    char *line;
    size_t length;
    assert_int_equal(hf__lines_next(lines, &line, &length), end);
}

static void lines_come_whole_whatever_the_pieces(void **state)
{
    (void)state;
    struct hf__lines lines = { .limit = 10 };
    expect_end(&lines, HF__LINE_NONE);
    add(&lines, "on");
    expect_end(&lines, HF__LINE_NONE);
    add(&lines, "e\ntwo\n\nth");
    expect(&lines, "one");
    expect(&lines, "two");
    expect(&lines, "");
    expect_end(&lines, HF__LINE_NONE);
    add(&lines, "ree\n");
    expect(&lines, "three");
    expect_end(&lines, HF__LINE_NONE);
    hf__lines_free(&lines);
}

static void every_cut_of_a_text_gives_the_same_lines(void **state)
{
    (void)state;
    static const char text[] = "{\"do\":1}\n\n{\"do\":22}\nlast\n";
    for (size_t step = 1; step <= sizeof text; step++) {
        struct hf__lines lines = { .limit = 20 };
        static const char *const expected[] = { "{\"do\":1}", "", "{\"do\":22}", "last" };
        size_t seen = 0;
        for (size_t at = 0; at < sizeof text - 1; at += step) {
            char *line;
            size_t length, left = sizeof text - 1 - at;
            hf__lines_add(&lines, text + at, left < step ? left : step);
            while (hf__lines_next(&lines, &line, &length) == HF__LINE_THERE) {
                assert_true(seen < 4);
                assert_string_equal(line, expected[seen++]);
            }
        }
        assert_int_equal(seen, 4);
        hf__lines_free(&lines);
    }
}

static void the_limit_is_exact(void **state)
{
    (void)state;
    struct hf__lines lines = { .limit = 5 };
    add(&lines, "12345\n123456\n");
    expect(&lines, "12345");
    expect_end(&lines, HF__LINE_TOO_LONG);
    expect_end(&lines, HF__LINE_TOO_LONG);
    hf__lines_free(&lines);
}

static void a_line_without_end_is_noticed_before_its_newline(void **state)
{
    (void)state;
    struct hf__lines lines = { .limit = 5 };
    add(&lines, "12345");
    expect_end(&lines, HF__LINE_NONE);
    add(&lines, "6");
    expect_end(&lines, HF__LINE_TOO_LONG);
    hf__lines_free(&lines);
}

static void a_nul_byte_shows_in_the_length(void **state)
{
    (void)state;
    char *line;
    size_t length;
    struct hf__lines lines = { .limit = 10 };
    hf__lines_add(&lines, "a\0b\n", 4);
    assert_int_equal(hf__lines_next(&lines, &line, &length), HF__LINE_THERE);
    assert_int_equal(length, 3);
    assert_memory_equal(line, "a\0b", 4);
    hf__lines_free(&lines);
}

static void the_memory_does_not_grow_with_the_number_of_lines(void **state)
{
    (void)state;
    struct hf__lines lines = { .limit = 100 };
    for (int i = 0; i < 100000; i++) {
        add(&lines, "a line of some length\nand a half");
        expect(&lines, i ? "and a halfa line of some length" : "a line of some length");
    }
    assert_true(lines.bytes.capacity < 4096);
    hf__lines_free(&lines);
}

static void no_memory_is_told(void **state)
{
    (void)state;
    struct hf__lines lines = { .limit = 100 };
    hf__alloc_fail_after = 0;
    add(&lines, "text\n");
    assert_int_equal(hf__alloc_fail_after, -1);
    expect_end(&lines, HF__LINE_NO_MEMORY);
    hf__lines_free(&lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_whole_whatever_the_pieces),
        cmocka_unit_test(every_cut_of_a_text_gives_the_same_lines),
        cmocka_unit_test(the_limit_is_exact),
        cmocka_unit_test(a_line_without_end_is_noticed_before_its_newline),
        cmocka_unit_test(a_nul_byte_shows_in_the_length),
        cmocka_unit_test(the_memory_does_not_grow_with_the_number_of_lines),
        cmocka_unit_test(no_memory_is_told),
    };
    return cmocka_run_group_tests_name("line", tests, NULL, NULL);
}
