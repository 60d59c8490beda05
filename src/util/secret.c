/* SPDX-License-Identifier: Apache-2.0 */
#include "util/secret.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>

enum { RANDOM_BYTES = 32, DIGEST_BYTES = 32 };

/* Up to 256 bytes come whole or not at all. */
static bool fill_random(unsigned char *out, size_t size)
{
    ssize_t got;
    do {
        got = getrandom(out, size, 0);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)size;
}

/* Without padding; 32 bytes are 43 characters, the last of which carries four bits. */
static void encode(const unsigned char *bytes, size_t length, char *out)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned held = 0;
    int bits = 0;
    for (size_t i = 0; i < length; i++) {
        held = held << 8 | bytes[i];
        for (bits += 8; bits >= 6; bits -= 6)
            *out++ = alphabet[held >> (bits - 6) & 63];
    }
    if (bits > 0)
        *out++ = alphabet[held << (6 - bits) & 63];
    *out = '\0';
}

bool hf__secret_make(char out[HF__SECRET_TEXT])
{
    unsigned char bytes[RANDOM_BYTES];
    bool ok = fill_random(bytes, sizeof bytes);
    if (ok)
        encode(bytes, sizeof bytes, out);
    explicit_bzero(bytes, sizeof bytes);
    return ok;
}

bool hf__digest(const void *bytes, size_t length, char out[HF__DIGEST_TEXT])
{
    unsigned char digest[DIGEST_BYTES];
    if (EVP_Digest(bytes, length, digest, NULL, EVP_sha256(), NULL) != 1)
        return false;
    for (int i = 0; i < DIGEST_BYTES; i++)
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
    return true;
}
