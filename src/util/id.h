/* Making and ordering ids: UUIDs of version 7, which sort by the time they were made.
 * Text form and equality are public: hf_id_format, hf_id_parse, hf_id_equal in holdfast/types.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_UTIL_ID_H
#define HF_UTIL_ID_H

#include "util/random.h"

#include <holdfast/types.h>

/* 48 bits of milliseconds, 12 bits of the fraction of the millisecond, 62 random bits. now_us:
 * microseconds since the epoch. Ids made in one microsecond have no order among themselves. */
void hf__id_make(hf_id *out, int64_t now_us, struct hf__random *random);
/* The same, in the place of the last one made: of the same microsecond, it comes after it (its random bits count on in random steps). */
void hf__id_make_after(hf_id *last, int64_t now_us, struct hf__random *random);
/* Sets `out` to the id that comes `steps` after another of the same microsecond; false: there are not so many. */
bool hf__id_step(hf_id id, uint64_t steps, hf_id *out);
/* The lowest of the ids that are made in a millisecond since the epoch, or in the nearest that ids can tell. */
hf_id hf__id_at(int64_t ms);
/* As memcmp: negative, 0 or positive. */
int hf__id_compare(hf_id a, hf_id b);

#endif
