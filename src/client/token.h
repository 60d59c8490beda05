/* For servers: whether callers need a token.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLIENT_TOKEN_H
#define HF_CLIENT_TOKEN_H

#include <holdfast/token.h>

/* Whether somebody has ever made a token, in any tenant. */
hf_code hf__token_any(hf_client *client, bool *found, hf_error *err) HF_MUST_CHECK;

#endif
