/* SPDX-License-Identifier: Apache-2.0 */
#include "util/id.h"

#include <string.h>

static void put_big_endian(uint8_t *out, uint64_t value, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--) {
        out[i] = (uint8_t)(value & 0xff);
        value >>= 8;
    }
}

void hf__id_make(hf_id *out, int64_t now_us, struct hf__random *random)
{
    uint64_t now = now_us > 0 ? (uint64_t)now_us : 0;
    uint64_t fraction = now % 1000 * 4096 / 1000;
    put_big_endian(out->bytes, now / 1000, 6);
    put_big_endian(out->bytes + 6, 0x7000 | fraction, 2);
    put_big_endian(out->bytes + 8, hf__random_u64(random) >> 2 | UINT64_C(1) << 63, 8);
}

static uint64_t get_big_endian(const uint8_t *bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value = value << 8 | bytes[i];
    return value;
}

bool hf__id_step(hf_id id, uint64_t steps, hf_id *out)
{
    const uint64_t largest = (UINT64_C(3) << 62) - 1;
    uint64_t number = get_big_endian(id.bytes + 8);
    if (number > largest || steps > largest - number)
        return false;
    *out = id;
    put_big_endian(out->bytes + 8, number + steps, 8);
    return true;
}

void hf__id_make_after(hf_id *last, int64_t now_us, struct hf__random *random)
{
    hf_id id;
    hf__id_make(&id, now_us, random);
    if (memcmp(id.bytes, last->bytes, 8) != 0 ||
        !hf__id_step(*last, 1 + (hf__random_u64(random) >> 32), last))
        *last = id;
}

hf_id hf__id_at(int64_t ms)
{
    const int64_t last = (INT64_C(1) << 48) - 1;
    hf_id id = { { 0 } };
    put_big_endian(id.bytes, (uint64_t)(ms < 0 ? 0 : ms > last ? last : ms), 6);
    return id;
}

int hf__id_compare(hf_id a, hf_id b)
{
    return memcmp(a.bytes, b.bytes, sizeof a.bytes);
}

bool hf_id_equal(hf_id a, hf_id b)
{
    return hf__id_compare(a, b) == 0;
}

bool hf_id_is_zero(hf_id id)
{
    return hf_id_equal(id, (hf_id){ { 0 } });
}

static bool dash_follows(int byte)
{
    return byte == 3 || byte == 5 || byte == 7 || byte == 9;
}

void hf_id_format(hf_id id, char out[HF_ID_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < 16; i++) {
        *out++ = digits[id.bytes[i] >> 4];
        *out++ = digits[id.bytes[i] & 15];
        if (dash_follows(i))
            *out++ = '-';
    }
    *out = '\0';
}

/* -1 for what is no hexadecimal digit. */
static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

bool hf_id_parse(const char *text, hf_id *out)
{
    if (!text)
        return false;
    hf_id id;
    for (int i = 0; i < 16; i++) {
        int high = hex_value(text[0]);
        int low = high < 0 ? -1 : hex_value(text[1]);
        if (low < 0)
            return false;
        id.bytes[i] = (uint8_t)(high << 4 | low);
        text += 2;
        if (dash_follows(i) && *text++ != '-')
            return false;
    }
    if (*text)
        return false;
    *out = id;
    return true;
}
