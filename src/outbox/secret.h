/* Secrets and signatures of Standard Webhooks.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_OUTBOX_SECRET_H
#define HF_OUTBOX_SECRET_H

#include <holdfast/outbox.h>

#define HF__SIGNATURE_TEXT 64 /* "v1," and 32 bytes as base64, with the NUL */

/* A new one, from the operating system's randomness. */
hf_code hf__webhook_secret_make(char out[HF_SECRET_TEXT], hf_error *err);
/* "whsec_" and 24 to 64 bytes as base64. */
hf_code hf__secret_check(const char *secret, hf_error *err);
/* Over "id.timestamp.body". */
hf_code hf__secret_sign(const char *secret, const char *id, int64_t timestamp, const char *body,
                        size_t length, char out[HF__SIGNATURE_TEXT], hf_error *err);

#endif
