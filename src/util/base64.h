/* Base64 and base64url (RFC 4648).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_UTIL_BASE64_H
#define HF_UTIL_BASE64_H

#include <stddef.h>

/* The characters for so many bytes, padded, and the NUL. */
#define HF__BASE64_TEXT(bytes) (((bytes) + 2) / 3 * 4 + 1)

/* Padded. */
void hf__base64_encode(const unsigned char *bytes, size_t length, char *out);
/* The alphabet for addresses and headers, without padding. */
void hf__base64url_encode(const unsigned char *bytes, size_t length, char *out);
/* The number of bytes in a padded text; -1: it is none, or has more than `most`. */
int hf__base64_decode(const char *text, unsigned char *out, int most);

#endif
