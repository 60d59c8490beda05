/* The members of a JSON object as the text they were written in, so that no number loses a digit.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_UTIL_JSON_MEMBERS_H
#define HF_UTIL_JSON_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>

struct hf__json_member {
    const char *name; /* raw, without the quotes; escapes are left as they are */
    size_t name_length;
    const char *value; /* raw */
    size_t value_length;
};

/* Whether valid JSON is an object. */
bool hf__json_is_object(const char *json);
/* Walks the members of an object that hf__json_check accepted: start with *at = 0; false at the end. */
bool hf__json_member_next(const char *object, size_t *at, struct hf__json_member *out);

/* The same for the items of an array: `out` is the item's raw text. */
bool hf__json_item_next(const char *array, size_t *at, const char **out, size_t *length);

#endif
