/* SHA-256, plain and keyed. libcrypto, which computes it, is loaded at the first digest: it costs a process a millisecond, and
 * hardly any of them needs one.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_UTIL_DIGEST_H
#define HF_UTIL_DIGEST_H

#include <stddef.h>

#include <holdfast/error.h>

enum {
    HF__DIGEST = 32,     /* bytes of SHA-256 */
    HF__DIGEST_TEXT = 65 /* in hexadecimal, with the NUL */
};

struct hf__digest {
    unsigned char bytes[HF__DIGEST];
};

/* HF_HANDLER_FAILED if libcrypto is not installed. */
hf_code hf__digest_of(struct hf__digest *out, const void *bytes, size_t length, hf_error *err)
    __attribute__((warn_unused_result));
/* HMAC (RFC 2104). */
hf_code hf__digest_keyed(struct hf__digest *out, const void *key, size_t key_length,
                         const void *bytes, size_t length, hf_error *err)
    __attribute__((warn_unused_result));
void hf__digest_text(const struct hf__digest *digest, char out[HF__DIGEST_TEXT]);

#endif
