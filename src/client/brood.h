/* The children that one call of a function has started, as its step remembers them: the list of their ids or, of many, the
 * first of ids that follow each other, and how many of them are started so far:
 *     {"first":"…","count":10000,"started":4000}
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLIENT_BROOD_H
#define HF_CLIENT_BROOD_H

#include <holdfast/types.h>

#include <jansson.h>

#define HF__BROOD_MOST 1000000

struct hf__brood {
    hf_id first;
    size_t count;
    size_t started; /* of them; they are started in their order */
};

/* To be freed; NULL: no memory. */
char *hf__brood_write(const struct hf__brood *brood);
/* Takes either form; of a list, only the number is read. False, and nothing is set: it is neither. */
bool hf__brood_read(const json_t *output, struct hf__brood *brood);

#endif
