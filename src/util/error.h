/* Filling an hf_error.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_UTIL_ERROR_H
#define HF_UTIL_ERROR_H

#include <holdfast/error.h>

/* Fills err (may be NULL), clears its sqlstate and returns `code`, so that it can be returned in
 * one line. The message is cut to fit and is always valid UTF-8 without control characters other
 * than newline and tab: what is not becomes '?'. err->message itself may be among the arguments,
 * to wrap an error in more context. */
hf_code hf__fail(hf_error *err, hf_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Fills err with HF_NOMEM and returns it. */
hf_code hf__nomem(hf_error *err);

#endif
