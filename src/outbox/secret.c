/* SPDX-License-Identifier: Apache-2.0 */
#include "outbox/secret.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "outbox/library.h"
#include "util/buffer.h"
#include "util/error.h"

#define PREFIX "whsec_"
#define LEAST 24
#define MOST 64

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Room for 4 bytes for each 3 begun, and the NUL. */
static void encode(const unsigned char *bytes, size_t length, char *out)
{
    for (size_t i = 0; i < length; i += 3) {
        unsigned word = (unsigned)bytes[i] << 16 |
                        (i + 1 < length ? (unsigned)bytes[i + 1] << 8 : 0u) |
                        (i + 2 < length ? bytes[i + 2] : 0u);
        *out++ = alphabet[word >> 18 & 63];
        *out++ = alphabet[word >> 12 & 63];
        *out++ = i + 1 < length ? alphabet[word >> 6 & 63] : '=';
        *out++ = i + 2 < length ? alphabet[word & 63] : '=';
    }
    *out = '\0';
}

/* The bytes of a base64 text; -1: it is none, or has more than MOST. */
static int decode(const char *text, unsigned char out[MOST])
{
    size_t length = strlen(text), digits = length;
    unsigned word = 0;
    int bits = 0, count = 0;
    if (length % 4 != 0)
        return -1;
    while (digits > 0 && length - digits < 2 && text[digits - 1] == '=')
        digits--;
    for (size_t i = 0; i < digits; i++) {
        const char *found = strchr(alphabet, text[i]);
        if (!found)
            return -1;
        word = word << 6 | (unsigned)(found - alphabet);
        bits += 6;
        if (bits < 8)
            continue;
        if (count == MOST)
            return -1;
        bits -= 8;
        out[count++] = (unsigned char)(word >> bits & 255);
    }
    return count;
}

hf_code hf__webhook_secret_make(char out[HF_SECRET_TEXT], hf_error *err)
{
    unsigned char bytes[LEAST];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return hf__fail(err, HF_INTERNAL, "the operating system gave no random bytes");
    strcpy(out, PREFIX);
    encode(bytes, sizeof bytes, out + strlen(PREFIX));
    return HF_OK;
}

static int key_of(const char *secret, unsigned char key[MOST])
{
    if (strlen(secret) >= HF_SECRET_TEXT || strncmp(secret, PREFIX, strlen(PREFIX)) != 0)
        return -1;
    return decode(secret + strlen(PREFIX), key);
}

hf_code hf__secret_check(const char *secret, hf_error *err)
{
    unsigned char key[MOST];
    if (key_of(secret, key) >= LEAST)
        return HF_OK;
    return hf__fail(err, HF_INVALID,
                    "a secret is \"" PREFIX "\" and 24 to 64 bytes as base64: leave it out to "
                    "have one made");
}

hf_code hf__secret_sign(const char *secret, const char *id, int64_t timestamp, const char *body,
                        size_t length, char out[HF__SIGNATURE_TEXT], hf_error *err)
{
    const struct hf__library *library;
    unsigned char key[MOST], digest[EVP_MAX_MD_SIZE];
    unsigned digest_length = 0;
    struct hf__buffer text = { 0 };
    int key_length = key_of(secret, key);
    hf_code code = hf__library_get(&library, err);
    if (code == HF_OK && key_length < 0)
        code = hf__fail(err, HF_INVALID, "the subscription's secret is not valid: put a new one");
    if (code != HF_OK)
        return code;
    hf__buffer_addf(&text, "%s.%lld.", id, (long long)timestamp);
    hf__buffer_add(&text, body, length);
    if (text.failed ||
        !library->f_HMAC(library->f_EVP_sha256(), key, key_length, (const unsigned char *)text.data,
                         text.length, digest, &digest_length)) {
        code = hf__nomem(err);
    } else {
        strcpy(out, "v1,");
        encode(digest, digest_length, out + 3);
    }
    hf__buffer_free(&text);
    return code;
}
