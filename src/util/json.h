/* Checking and comparing JSON that is stored as text.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_UTIL_JSON_H
#define HF_UTIL_JSON_H

#include <holdfast/error.h>

#include <stdbool.h>
#include <stddef.h>

#define HF__JSON_MAX_DEPTH 128 /* arrays and objects inside one another */

/* HF_OK if the text is one JSON value by RFC 8259 in strict UTF-8. Numbers may have any size;
 * \u0000 is accepted, half a surrogate pair is not. Allocates nothing. The error says at which
 * byte (from 0) and what was expected there. */
hf_code hf__json_check(const char *text, size_t length, hf_error *err)
    __attribute__((warn_unused_result));
/* Whether two NUL-terminated documents mean the same: the order of members and white space do not
 * count, of a member twice the last counts, numbers are compared by their exact value (1 is 1.0).
 * Documents with \u0000 are the same only where their texts are, but for white space. NULL equals
 * NULL only. What is not JSON equals nothing but its own bytes. */
bool hf__json_equal(const char *a, const char *b);

#endif
