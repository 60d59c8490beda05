/* SPDX-License-Identifier: Apache-2.0 */
#include "outbox/secret.h"

#include <string.h>

#include "util/base64.h"
#include "util/buffer.h"
#include "util/digest.h"
#include "util/error.h"
#include "util/random.h"

#define PREFIX "whsec_"
#define LEAST 24
#define MOST 64

hf_code hf__webhook_secret_make(char out[HF_SECRET_TEXT], hf_error *err)
{
    unsigned char bytes[LEAST];
    if (!hf__random_bytes(bytes, sizeof bytes))
        return hf__fail(err, HF_INTERNAL, "the operating system has no random numbers to give");
    strcpy(out, PREFIX);
    hf__base64_encode(bytes, sizeof bytes, out + strlen(PREFIX));
    return HF_OK;
}

static int key_of(const char *secret, unsigned char key[MOST])
{
    if (strlen(secret) >= HF_SECRET_TEXT || strncmp(secret, PREFIX, strlen(PREFIX)) != 0)
        return -1;
    return hf__base64_decode(secret + strlen(PREFIX), key, MOST);
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
    unsigned char key[MOST];
    struct hf__digest digest;
    struct hf__buffer text = { 0 };
    int key_length = key_of(secret, key);
    if (key_length < 0)
        return hf__fail(err, HF_INVALID, "the subscription's secret is not valid: put a new one");
    hf__buffer_addf(&text, "%s.%lld.", id, (long long)timestamp);
    hf__buffer_add(&text, body, length);
    hf_code code = text.failed ? hf__nomem(err)
                               : hf__digest_keyed(&digest, key, (size_t)key_length, text.data,
                                                  text.length, err);
    if (code == HF_OK) {
        strcpy(out, "v1,");
        hf__base64_encode(digest.bytes, sizeof digest.bytes, out + 3);
    }
    hf__buffer_free(&text);
    return code;
}
