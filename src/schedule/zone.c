/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/zone.h"

#include "util/alloc.h"
#include "util/error.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ZONE_FOLDER "/usr/share/zoneinfo"
#define FILE_MAX 262144 /* bytes; real ones have a few thousand */
#define TIMES_MAX 20000
#define OFFSET_MAX (26 * 3600)

/* ---- The file ---- */

struct header {
    uint32_t ut_count, standard_count, leap_count, time_count, type_count, letter_count;
};

static uint32_t read32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static int64_t read64(const uint8_t *at)
{
    return (int64_t)((uint64_t)read32(at) << 32 | read32(at + 4));
}

enum { HEADER = 44 };

static bool read_header(const uint8_t *bytes, size_t length, struct header *out)
{
    if (length < HEADER || memcmp(bytes, "TZif", 4) != 0 || bytes[4] < '2')
        return false;
    out->ut_count = read32(bytes + 20);
    out->standard_count = read32(bytes + 24);
    out->leap_count = read32(bytes + 28);
    out->time_count = read32(bytes + 32);
    out->type_count = read32(bytes + 36);
    out->letter_count = read32(bytes + 40);
    return out->ut_count <= 256 && out->standard_count <= 256 && out->leap_count <= 1000 &&
           out->time_count <= TIMES_MAX && out->type_count >= 1 && out->type_count <= 256 &&
           out->letter_count <= 2048;
}

/* Bytes of the data that follow a header, with times of `width` bytes. */
static size_t data_size(const struct header *h, size_t width)
{
    return h->time_count * (width + 1) + h->type_count * 6u + h->letter_count +
           h->leap_count * (width + 4) + h->standard_count + h->ut_count;
}

static bool read_offset(const uint8_t *types, uint32_t type, int32_t *out)
{
    *out = (int32_t)read32(types + type * 6u);
    return *out >= -OFFSET_MAX && *out <= OFFSET_MAX;
}

static bool read_changes(struct hf__zone *zone, const struct header *h, const uint8_t *data)
{
    const uint8_t *indexes = data + h->time_count * 8u;
    const uint8_t *types = indexes + h->time_count;
    zone->times = hf__calloc(h->time_count + 1u, sizeof *zone->times);
    zone->offsets = hf__calloc(h->time_count + 1u, sizeof *zone->offsets);
    if (!zone->times || !zone->offsets || !read_offset(types, 0, &zone->first))
        return false;
    for (uint32_t i = 0; i < h->time_count; i++) {
        zone->times[i] = read64(data + i * 8u);
        if (indexes[i] >= h->type_count || (i && zone->times[i] <= zone->times[i - 1]) ||
            !read_offset(types, indexes[i], &zone->offsets[i]))
            return false;
    }
    zone->count = h->time_count;
    return true;
}

/* The line after the data. Empty: the last offset holds for ever. */
static bool read_footer(struct hf__zone *zone, const uint8_t *bytes, size_t length)
{
    const char *text = (const char *)bytes;
    if (length < 2 || text[0] != '\n')
        return false;
    const char *end = memchr(text + 1, '\n', length - 1);
    if (!end)
        return false;
    if (end == text + 1) {
        zone->rest.standard = zone->count ? zone->offsets[zone->count - 1] : zone->first;
        return true;
    }
    return hf__zone_rest_parse(&zone->rest, text + 1, end);
}

/* The data is there twice: with times of 4 bytes for old programs, then with 8. */
bool hf__zone_parse(struct hf__zone *out, const uint8_t *bytes, size_t length)
{
    struct header h;
    *out = (struct hf__zone){ 0 };
    if (!read_header(bytes, length, &h))
        return false;
    size_t old = HEADER + data_size(&h, 4);
    if (length < old || !read_header(bytes + old, length - old, &h) || h.leap_count > 0)
        return false;
    size_t begin = old + HEADER, size = data_size(&h, 8);
    if (length - begin < size)
        return false;
    if (read_changes(out, &h, bytes + begin) &&
        read_footer(out, bytes + begin + size, length - begin - size))
        return true;
    hf__zone_free(out);
    return false;
}

void hf__zone_free(struct hf__zone *zone)
{
    free(zone->times);
    free(zone->offsets);
    *zone = (struct hf__zone){ 0 };
}

static bool name_is_good(const char *name)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/";
    size_t length = strnlen(name, HF__ZONE_NAME_MAX + 1);
    return length > 0 && length <= HF__ZONE_NAME_MAX && isalpha((unsigned char)name[0]) &&
           name[strspn(name, allowed)] == '\0' && name[length - 1] != '/' && !strstr(name, "//");
}

/* The whole file; NULL: there is none that could be a zone. */
static uint8_t *read_file(const char *name, size_t *length)
{
    char path[sizeof ZONE_FOLDER + 1 + HF__ZONE_NAME_MAX];
    struct stat stat;
    uint8_t *bytes = NULL;
    snprintf(path, sizeof path, ZONE_FOLDER "/%s", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return NULL;
    *length = 0;
    if (fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_size <= FILE_MAX)
        bytes = hf__calloc(1, (size_t)stat.st_size + 1);
    while (bytes && *length < (size_t)stat.st_size) {
        ssize_t got = read(fd, bytes + *length, (size_t)stat.st_size - *length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        *length += (size_t)got;
    }
    close(fd);
    return bytes;
}

hf_code hf__zone_load(struct hf__zone *out, const char *name, hf_error *err)
{
    *out = (struct hf__zone){ 0 };
    if (strcmp(name, "UTC") == 0)
        return HF_OK;
    size_t length = 0;
    uint8_t *bytes = name_is_good(name) ? read_file(name, &length) : NULL;
    bool good = bytes && hf__zone_parse(out, bytes, length);
    free(bytes);
    if (good)
        return HF_OK;
    return hf__fail(err, HF_INVALID,
                    "there is no time zone \"%.100s\": use UTC or a name from " ZONE_FOLDER
                    ", like Europe/Berlin (the system's package tzdata holds them)",
                    name);
}

/* ---- Looking ---- */

/* The span of a time that no listed change comes after. */
static struct hf__zone_span rest_at(const struct hf__zone *zone, int64_t seconds)
{
    const struct hf__zone_rest *rest = &zone->rest;
    struct hf__zone_span span = {
        .from = zone->count ? zone->times[zone->count - 1] : INT64_MIN,
        .until = INT64_MAX,
        .offset = zone->count ? zone->offsets[zone->count - 1] : rest->standard,
    };
    span.before = zone->count > 1 ? zone->offsets[zone->count - 2] : zone->first;
    if (!zone->count)
        span.before = span.offset;
    if (!rest->changes)
        return span;
    struct hf__zone_change changes[HF__ZONE_CHANGES];
    int count = hf__zone_rest_changes(rest, seconds, changes);
    for (int i = 0; i < count; i++) {
        if (changes[i].at > seconds) {
            span.until = changes[i].at;
            break;
        }
        if (changes[i].at <= span.from)
            continue; /* listed */
        span.before = span.offset;
        span.from = changes[i].at;
        span.offset = changes[i].offset;
    }
    return span;
}

struct hf__zone_span hf__zone_at(const struct hf__zone *zone, int64_t seconds)
{
    size_t low = 0, high = zone->count; /* the first change after the time */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (zone->times[middle] > seconds)
            high = middle;
        else
            low = middle + 1;
    }
    if (low == zone->count)
        return rest_at(zone, seconds);
    return (struct hf__zone_span){
        .from = low ? zone->times[low - 1] : INT64_MIN,
        .until = zone->times[low],
        .offset = low ? zone->offsets[low - 1] : zone->first,
        .before = low > 1 ? zone->offsets[low - 2] : zone->first,
    };
}
