/* The OpenAPI 3.1 document of the API, made from the table of routes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_SERVER_OPENAPI_H
#define HF_SERVER_OPENAPI_H

#include <holdfast/error.h>

#include <stddef.h>

/* The caller's to free(). */
hf_code hf__openapi_make(char **out, size_t *length, hf_error *err) HF_MUST_CHECK;

#endif
