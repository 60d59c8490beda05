/* SPDX-License-Identifier: Apache-2.0 */
#include "util/secret.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* The examples of FIPS 180-4. */
static void a_digest_is_sha_256(void **state)
{
    char out[HF__DIGEST_TEXT];
    (void)state;
    assert_true(hf__digest("abc", 3, out));
    assert_string_equal(out, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_true(hf__digest("", 0, out));
    assert_string_equal(out, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

/* 43 characters of six bits; the last has the four that are left, so its lowest two are 0. */
static void a_secret_has_256_bits_as_base64url(void **state)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    char seen[65] = "";
    char out[HF__SECRET_TEXT];
    (void)state;
    for (int i = 0; i < 200; i++) {
        assert_true(hf__secret_make(out));
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
        cmocka_unit_test(a_digest_is_sha_256),
        cmocka_unit_test(a_secret_has_256_bits_as_base64url),
    };
    return cmocka_run_group_tests_name("secret", tests, NULL, NULL);
}
