/* Checks for text that comes from outside.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_UTIL_TEXT_H
#define HF_UTIL_TEXT_H

#include <holdfast/error.h>

#include <stdbool.h>
#include <stddef.h>

#define HF__NAME_MAX 200 /* bytes of a workflow, tenant or lock name */

/* Length (1..4) of the well-formed UTF-8 sequence at the start of these bytes; 0 if there is
 * none. */
size_t hf__utf8_sequence(const char *bytes, size_t length);
/* Strict: no overlong forms, no surrogates, nothing above U+10FFFF. */
bool hf__utf8_valid(const char *bytes, size_t length);

/* Names that the engine gives meaning to: 1..200 bytes of A-Z a-z 0-9 _ . : - that start with a
 * letter or digit, without ".." and without a dot at the end. `what` opens the error message, as
 * in "workflow name". NULL is refused. */
hf_code hf__name_check(const char *what, const char *name, hf_error *err)
    __attribute__((warn_unused_result));
/* Free text of the caller (keys, subjects, tags, actors, reasons): valid UTF-8 of 1..max_bytes
 * bytes without control characters. NULL is refused. */
hf_code hf__label_check(const char *what, const char *text, size_t max_bytes, hf_error *err)
    __attribute__((warn_unused_result));

#endif
