/* SPDX-License-Identifier: Apache-2.0 */
#include "util/base64.h"
#include "util/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* The examples of RFC 4648. */
static const struct {
    const char *bytes, *text;
} examples[] = {
    { "", "" },
    { "f", "Zg==" },
    { "fo", "Zm8=" },
    { "foo", "Zm9v" },
    { "foob", "Zm9vYg==" },
    { "fooba", "Zm9vYmE=" },
    { "foobar", "Zm9vYmFy" },
};

static void what_is_encoded_can_be_decoded(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        size_t length = strlen(examples[i].bytes);
        char text[HF__BASE64_TEXT(6)];
        unsigned char bytes[6];
        hf__base64_encode((const unsigned char *)examples[i].bytes, length, text);
        assert_string_equal(text, examples[i].text);
        assert_int_equal(hf__base64_decode(text, bytes, sizeof bytes), length);
        assert_memory_equal(bytes, examples[i].bytes, length);
    }
}

static void what_is_not_base64_or_too_long_is_refused(void **state)
{
    static const char *const bad[] = { "Zg", "Zg=", "Zg-_", "====", "Z g=", "Zm9vYmFy" };
    unsigned char bytes[5];
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(hf__base64_decode(bad[i], bytes, sizeof bytes), -1);
}

/* 43 characters of six bits; the last has the four that are left, so its lowest two are 0. */
static void base64url_has_its_own_alphabet_and_no_padding(void **state)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    char seen[65] = "";
    unsigned char bytes[32];
    char out[HF__BASE64_TEXT(32)];
    (void)state;
    for (int i = 0; i < 200; i++) {
        assert_true(hf__random_bytes(bytes, sizeof bytes));
        hf__base64url_encode(bytes, sizeof bytes, out);
        assert_int_equal(strlen(out), 43);
        assert_int_equal(strspn(out, alphabet), 43);
        assert_int_equal((strchr(alphabet, out[42]) - alphabet) % 4, 0);
        for (const char *p = out; *p; p++)
            seen[strchr(alphabet, *p) - alphabet] = 'x';
    }
    assert_int_equal(strlen(seen), 64); /* every character occurs */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_encoded_can_be_decoded),
        cmocka_unit_test(what_is_not_base64_or_too_long_is_refused),
        cmocka_unit_test(base64url_has_its_own_alphabet_and_no_padding),
    };
    return cmocka_run_group_tests_name("base64", tests, NULL, NULL);
}
