/* SPDX-License-Identifier: Apache-2.0 */
#include "util/random.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/types.h>

bool hf__random_bytes(void *out, size_t size)
{
    ssize_t got;
    do {
        got = getrandom(out, size, 0);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)size;
}

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void hf__random_seed(struct hf__random *random, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        random->state[i] = splitmix(&seed);
}

bool hf__random_seed_os(struct hf__random *random)
{
    return hf__random_bytes(random->state, sizeof random->state);
}

static uint64_t rotate_left(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

uint64_t hf__random_u64(struct hf__random *random)
{
    uint64_t *s = random->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t hf__random_below(struct hf__random *random, uint64_t limit)
{
    /* 2^64 mod limit: numbers below it would make the small remainders likelier. */
    uint64_t surplus = (0 - limit) % limit;
    uint64_t x;
    do {
        x = hf__random_u64(random);
    } while (x < surplus);
    return x % limit;
}

double hf__random_unit(struct hf__random *random)
{
    return (double)(hf__random_u64(random) >> 11) * 0x1.0p-53;
}
