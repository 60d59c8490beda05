/* Random bytes of the operating system, and a small fast generator of random numbers (xoshiro256**), repeatable from its
 * seed.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_UTIL_RANDOM_H
#define HF_UTIL_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of the operating system, fit for secrets: at most 256 bytes, which come whole or not at all. False: it has none to give. */
bool hf__random_bytes(void *out, size_t size) __attribute__((warn_unused_result));

/* Not for secrets. Not safe for use by two threads at once: one per thread, or under the owner's lock. */
struct hf__random {
    uint64_t state[4]; /* never all zero once seeded */
};

void hf__random_seed(struct hf__random *random, uint64_t seed);
/* Seeds from the operating system; false if it has no randomness to give. */
bool hf__random_seed_os(struct hf__random *random) __attribute__((warn_unused_result));
uint64_t hf__random_u64(struct hf__random *random);
/* 0 .. limit-1, each equally likely; limit must be above 0. */
uint64_t hf__random_below(struct hf__random *random, uint64_t limit);
/* 0 <= x < 1 */
double hf__random_unit(struct hf__random *random);

#endif
