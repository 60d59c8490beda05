/* SPDX-License-Identifier: Apache-2.0 */
#include "util/digest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* The examples of FIPS 180-4. */
static void a_digest_is_sha_256(void **state)
{
    struct hf__digest digest;
    char out[HF__DIGEST_TEXT];
    (void)state;
    assert_int_equal(hf__digest_of(&digest, "abc", 3, NULL), HF_OK);
    hf__digest_text(&digest, out);
    assert_string_equal(out, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_int_equal(hf__digest_of(&digest, "", 0, NULL), HF_OK);
    hf__digest_text(&digest, out);
    assert_string_equal(out, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

/* Test case 2 of RFC 4231. */
static void a_keyed_digest_is_hmac_sha_256(void **state)
{
    static const char text[] = "what do ya want for nothing?";
    struct hf__digest digest;
    char out[HF__DIGEST_TEXT];
    (void)state;
    assert_int_equal(hf__digest_keyed(&digest, "Jefe", 4, text, strlen(text), NULL), HF_OK);
    hf__digest_text(&digest, out);
    assert_string_equal(out, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_digest_is_sha_256),
        cmocka_unit_test(a_keyed_digest_is_hmac_sha_256),
    };
    return cmocka_run_group_tests_name("digest", tests, NULL, NULL);
}
