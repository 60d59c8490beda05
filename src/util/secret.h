/* Secrets that nobody can guess, and what is kept of them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_UTIL_SECRET_H
#define HF_UTIL_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#define HF__SECRET_TEXT 44 /* bytes that hf__secret_make writes, with the NUL */
#define HF__DIGEST_TEXT 65 /* bytes that hf__digest writes, with the NUL */

/* 256 random bits of the operating system as base64url; false if it has none to give. */
bool hf__secret_make(char out[HF__SECRET_TEXT]) __attribute__((warn_unused_result));
/* The SHA-256 of these bytes in hexadecimal; false if there is no memory. */
bool hf__digest(const void *bytes, size_t length, char out[HF__DIGEST_TEXT])
    __attribute__((warn_unused_result));

#endif
