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
    { { 0 }, 127, false }, /* unspecified and loopback */
    { { 0xfc }, 7, false },
    { { 0xff }, 8, false },
    { { 0x00, 0x64, 0xff, 0x9b }, 32, false }, /* IPv4 behind translators */
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

/* The IPv4 address that an IPv6 address leads to by way of a translator or a tunnel; NULL: none. */
static const uint8_t *embedded(const uint8_t *bytes)
{
    static const uint8_t translated[12] = { 0x00, 0x64, 0xff, 0x9b }, compatible[12] = { 0 };
    if (memcmp(bytes, translated, sizeof translated) == 0 ||
        memcmp(bytes, compatible, sizeof compatible) == 0)
        return bytes + 12;
    return bytes[0] == 0x20 && bytes[1] == 0x02 ? bytes + 2 : NULL;
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
    if (embedded(bytes) && !allowed4(embedded(bytes), false))
        return false;
    return allowed(bytes, blocks6, sizeof blocks6 / sizeof *blocks6, public_only);
}
