/* SPDX-License-Identifier: Apache-2.0 */
#include "outbox/address.h"

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct block {
    uint8_t bytes[16];
    int bits;
    bool never; /* refused to everybody */
};

static const struct block blocks4[] = {
    { { 169, 254 }, 16, true },
    { { 100, 100, 100, 200 },
      32,
      true }, /* where clouds that do not use 169.254 hand out credentials */
    { { 168, 63, 129, 16 }, 32, true },
    { { 192, 0, 0, 192 }, 32, true },
    { { 0 }, 8, false },
    { { 10 }, 8, false },
    { { 100, 64 }, 10, false },
    { { 127 }, 8, false },
    { { 172, 16 }, 12, false },
    { { 192, 0, 0 }, 24, false },
    { { 192, 168 }, 16, false },
    { { 198, 18 }, 15, false },
    { { 224 }, 3, false },
};

static const struct block blocks6[] = {
    { { 0xfe, 0x80 }, 10, true },
    { { 0xfd, 0x00, 0x0e, 0xc2 }, 32, true },
    { { 0xfd, 0x20, 0x00, 0xce, [14] = 0x02, 0x54 }, 128, true }, /* the same in other clouds */
    { { 0xfd, 0x00, 0x00, 0x42, [15] = 0x42 }, 128, true },
    { { 0xfd, 0x00, 0x00, 0xc1, [12] = 0xa9, 0xfe, 0xa9, 0xfe }, 128, true },
    { { 0 }, 127, false }, /* unspecified and loopback */
    { { 0xfc }, 7, false },
    { { 0xff }, 8, false },
    { { 0x00, 0x64, 0xff, 0x9b }, 32, false }, /* IPv4 behind translators */
    { { [8] = 0xff, 0xff }, 96, false },
    { { 0x20, 0x01 }, 32, false }, /* and tunnels */
    { { 0x20, 0x02 }, 16, false },
};

static bool is_within(const uint8_t *bytes, const struct block *block)
{
    int whole = block->bits / 8, rest = block->bits % 8;
    if (memcmp(bytes, block->bytes, (size_t)whole) != 0)
        return false;
    return rest == 0 || (bytes[whole] ^ block->bytes[whole]) >> (8 - rest) == 0;
}

static bool allowed(const uint8_t *bytes, const struct block *blocks, size_t count,
                    bool public_only)
{
    for (size_t i = 0; i < count; i++)
        if ((public_only || blocks[i].never) && is_within(bytes, &blocks[i]))
            return false;
    return true;
}

static bool allowed4(const uint8_t *bytes, bool public_only)
{
    return allowed(bytes, blocks4, sizeof blocks4 / sizeof *blocks4, public_only);
}

/* The ways by which an IPv6 address leads to an IPv4 address: a prefix, and where the four bytes stand behind it. */
static const struct way {
    struct block prefix;
    uint8_t at[4];
} ways[] = {
    { { { 0 }, 96, false }, { 12, 13, 14, 15 } },                      /* compatible */
    { { { [10] = 0xff, 0xff }, 96, false }, { 12, 13, 14, 15 } },      /* mapped */
    { { { [8] = 0xff, 0xff }, 96, false }, { 12, 13, 14, 15 } },       /* translated */
    { { { 0x00, 0x64, 0xff, 0x9b }, 96, false }, { 12, 13, 14, 15 } }, /* NAT64 */
    { { { 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01 }, 48, false },
      { 12, 13, 14, 15 } }, /* of one's own, */
    { { { 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01 }, 48, false },
      { 6, 7, 9, 10 } }, /* with prefixes of */
    { { { 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01 }, 48, false },
      { 7, 9, 10, 11 } }, /* 96, 48, 56 and */
    { { { 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01 }, 48, false }, { 9, 10, 11, 12 } }, /* 64 bits */
    { { { 0x20, 0x02 }, 16, false }, { 2, 3, 4, 5 } },                            /* 6to4 */
    { { { 0x20, 0x01 }, 32, false }, { 4, 5, 6, 7 } }, /* Teredo's server */
};

/* Whether some IPv4 address that it leads to is refused to everybody. */
static bool leads_astray(const uint8_t *bytes)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        uint8_t four[4];
        for (int j = 0; j < 4; j++)
            four[j] = bytes[ways[i].at[j]];
        if (is_within(bytes, &ways[i].prefix) && !allowed4(four, false))
            return true;
    }
    return false;
}

bool hf__address_allowed(const struct sockaddr *address, bool public_only)
{
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
    uint8_t bytes[16];
    if (address->sa_family == AF_INET) {
        memcpy(bytes, &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
        return allowed4(bytes, public_only);
    }
    if (address->sa_family != AF_INET6)
        return false;
    memcpy(bytes, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, 16);
    if (memcmp(bytes, mapped, sizeof mapped) == 0)
        return allowed4(bytes + 12, public_only);
    if (leads_astray(bytes))
        return false;
    return allowed(bytes, blocks6, sizeof blocks6 / sizeof *blocks6, public_only);
}
