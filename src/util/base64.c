/* SPDX-License-Identifier: Apache-2.0 */
#include "util/base64.h"

#include <string.h>

#define COMMON "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

static const char plain[] = COMMON "+/";
static const char url[] = COMMON "-_";

/* Six bits a character, the last one filled up with zeros; no NUL. Returns the end. */
static char *encode(const char *alphabet, const unsigned char *bytes, size_t length, char *out)
{
    unsigned held = 0;
    int bits = 0;
    for (size_t i = 0; i < length; i++) {
        held = held << 8 | bytes[i];
        for (bits += 8; bits >= 6; bits -= 6)
            *out++ = alphabet[held >> (bits - 6) & 63];
    }
    if (bits > 0)
        *out++ = alphabet[held << (6 - bits) & 63];
    return out;
}

void hf__base64_encode(const unsigned char *bytes, size_t length, char *out)
{
    char *end = encode(plain, bytes, length, out);
    while ((end - out) % 4 != 0)
        *end++ = '=';
    *end = '\0';
}

void hf__base64url_encode(const unsigned char *bytes, size_t length, char *out)
{
    *encode(url, bytes, length, out) = '\0';
}

int hf__base64_decode(const char *text, unsigned char *out, int most)
{
    size_t length = strlen(text), digits = length;
    unsigned word = 0;
    int bits = 0, count = 0;
    if (length % 4 != 0)
        return -1;
    while (digits > 0 && length - digits < 2 && text[digits - 1] == '=')
        digits--;
    for (size_t i = 0; i < digits; i++) {
        const char *found = strchr(plain, text[i]);
        if (!found)
            return -1;
        word = word << 6 | (unsigned)(found - plain);
        bits += 6;
        if (bits < 8)
            continue;
        if (count == most)
            return -1;
        bits -= 8;
        out[count++] = (unsigned char)(word >> bits & 255);
    }
    return count;
}
