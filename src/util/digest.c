/* SPDX-License-Identifier: Apache-2.0 */
#include "util/digest.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <pthread.h>

#include "util/error.h"
#include "util/late.h"

static struct hf__late library = { .file = "libcrypto.so.3" };
static pthread_once_t once = PTHREAD_ONCE_INIT;

static struct {
    __typeof__(EVP_sha256) *sha256;
    __typeof__(EVP_Digest) *digest;
    __typeof__(HMAC) *hmac;
} crypto;

static void load(void)
{
    *(void **)&crypto.sha256 = hf__late_find(&library, "EVP_sha256");
    *(void **)&crypto.digest = hf__late_find(&library, "EVP_Digest");
    *(void **)&crypto.hmac = hf__late_find(&library, "HMAC");
}

static hf_code need(hf_error *err)
{
    pthread_once(&once, load);
    if (library.trouble[0])
        return hf__fail(err, HF_HANDLER_FAILED, "tokens, seals and signatures need %s: %s",
                        library.file, library.trouble);
    return HF_OK;
}

hf_code hf__digest_of(struct hf__digest *out, const void *bytes, size_t length, hf_error *err)
{
    hf_code code = need(err);
    if (code == HF_OK && crypto.digest(bytes, length, out->bytes, NULL, crypto.sha256(), NULL) != 1)
        code = hf__nomem(err);
    return code;
}

hf_code hf__digest_keyed(struct hf__digest *out, const void *key, size_t key_length,
                         const void *bytes, size_t length, hf_error *err)
{
    hf_code code = need(err);
    if (code == HF_OK &&
        !crypto.hmac(crypto.sha256(), key, (int)key_length, bytes, length, out->bytes, NULL))
        code = hf__nomem(err);
    return code;
}

void hf__digest_text(const struct hf__digest *digest, char out[HF__DIGEST_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < HF__DIGEST; i++) {
        out[2 * i] = digits[digest->bytes[i] >> 4];
        out[2 * i + 1] = digits[digest->bytes[i] & 15];
    }
    out[2 * HF__DIGEST] = '\0';
}
