/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* PostgreSQL refuses payloads of 8,000 bytes; a list longer than this becomes "any". */
enum { PAYLOAD_MAX = 7000, ID_HEX = 32 };

static const char hex_digits[] = "0123456789abcdef";

static void add_id(struct hf__buffer *out, const hf_id *id)
{
    char hex[ID_HEX];
    for (int i = 0; i < ID_HEX; i++)
        hex[i] = hex_digits[i % 2 ? id->bytes[i / 2] & 15 : id->bytes[i / 2] >> 4];
    hf__buffer_add(out, hex, sizeof hex);
}

void hf__postgres_wake_workers(struct hf__buffer *out, const struct hf__wake *wake)
{
    for (int i = 0; i < wake->lane_count && out->length <= PAYLOAD_MAX; i++)
        hf__buffer_addf(out, i ? " %" PRId32 : "%" PRId32, wake->lanes[i]);
    if (out->length > PAYLOAD_MAX) {
        hf__buffer_clear(out);
        hf__buffer_add_text(out, "0");
    }
    if (wake->lane_count > 0)
        hf__buffer_addf(out, "@%" PRId64, wake->earliest);
    if (wake->lane_count == 1 && wake->fresh) {
        hf__buffer_add_text(out, "#");
        add_id(out, wake->fresh);
    }
    if (wake->workflows_changed)
        hf__buffer_add_text(out, "!workflows");
    if (wake->leases_lost)
        hf__buffer_add_text(out, "!leases");
}

void hf__postgres_wake_runs(struct hf__buffer *out, const struct hf__wake *wake)
{
    static const hf_id any_run;
    if (wake->watched_count > PAYLOAD_MAX / (ID_HEX + 1)) {
        add_id(out, &any_run);
        return;
    }
    for (int i = 0; i < wake->watched_count; i++) {
        if (i)
            hf__buffer_add_text(out, " ");
        add_id(out, &wake->watched[i]);
    }
}

static int hear_any_lane(hf__hear hear, void *arg)
{
    hear(&(struct hf__heard){ .lanes = true }, arg);
    return 1;
}

/* Lane 0 for what is not a lane's number. */
static int32_t read_lane(const char *text, const char **end)
{
    char *after;
    long long lane = strtoll(text, &after, 10);
    bool whole = after != text && strchr(" @!", *after);
    *end = after + strcspn(after, " @!");
    return whole && lane >= -INT32_MAX && lane <= INT32_MAX ? (int32_t)lane : 0;
}

/* What is written behind the lanes, yet belongs to each of them. */
static int64_t read_number(const char *payload, char mark)
{
    const char *at = strchr(payload, mark);
    long long number = at ? strtoll(at + 1, NULL, 10) : 0;
    return number > 0 ? number : 0;
}

static int hex_digit(char digit)
{
    const char *found = digit ? strchr(hex_digits, digit) : NULL;
    return found ? (int)(found - hex_digits) : -1;
}

static bool read_id(const char *text, hf_id *out)
{
    for (size_t i = 0; i < sizeof out->bytes; i++) {
        int high = hex_digit(text[2 * i]);
        int low = high < 0 ? -1 : hex_digit(text[2 * i + 1]);
        if (low < 0)
            return false;
        out->bytes[i] = (uint8_t)(high << 4 | low);
    }
    return text[ID_HEX] == '\0' || strchr(" !~", text[ID_HEX]);
}

/* Of the one lane that is named; all zero for none. */
static hf_id read_fresh(const char *payload)
{
    const char *at = strchr(payload, '#');
    hf_id id;
    return at && read_id(at + 1, &id) ? id : (hf_id){ { 0 } };
}

static int hear_wake(const char *payload, hf__hear hear, void *arg)
{
    if (*payload == '?')
        return 0;
    if (*payload == '\0')
        return hear_any_lane(hear, arg);

    int heard = 0;
    struct hf__heard lane = { .lanes = true,
                              .earliest = read_number(payload, '@'),
                              .fresh = read_fresh(payload),
                              .place = read_number(payload, '~') };
    const char *at = payload;
    while (*at && *at != '@' && *at != '!') {
        lane.lane = read_lane(at, &at);
        hear(&lane, arg);
        heard++;
        at += strspn(at, " ");
    }
    if (strstr(at, "!workflows")) {
        hear(&(struct hf__heard){ .workflows_changed = true }, arg);
        heard++;
    }
    if (strstr(at, "!leases")) {
        hear(&(struct hf__heard){ .leases_lost = true }, arg);
        heard++;
    }
    return heard ? heard : hear_any_lane(hear, arg);
}

static int hear_runs(const char *payload, hf__hear hear, void *arg)
{
    int heard = 0;
    const char *at = payload;
    do {
        struct hf__heard run = { .run = true };
        if (!read_id(at, &run.run_id))
            run.run_id = (hf_id){ 0 };
        hear(&run, arg);
        heard++;
        at += strcspn(at, " ");
        at += strspn(at, " ");
    } while (*at);
    return heard;
}

int hf__postgres_hear(const char *channel, const char *payload, hf__hear hear, void *arg)
{
    if (strcmp(channel, HF__POSTGRES_WAKE_CHANNEL) == 0)
        return hear_wake(payload, hear, arg);
    if (strcmp(channel, HF__POSTGRES_RUN_CHANNEL) == 0)
        return hear_runs(payload, hear, arg);
    return 0;
}
