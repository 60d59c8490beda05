/* Whatever is read as a cron expression fires, later than asked and not before it should; whatever is read as a time
 * zone file can be asked about any time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "schedule/cron.h"
#include "util/duration.h"

#include <string.h>

const char *const fuzz_seeds[] = {
    "*/15 * * * *",
    "0 30 2 29 feb ?",
    "0,20-40/5 8-18 * jan-mar mon-fri",
    "0 0 13 * 5-7",
    "50/5 23 1,15 */2 *",
    "@daily",
    "every 1h30m",
    "TZif2<UTC>0",
    "CET-1CEST,M3.5.0,M10.5.0/3",
    "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0",
    "EST5EDT,0/0,J365/25",
    NULL,
};

/* A small file around the data as the rule at its end. */
static size_t wrap(uint8_t *out, const char *rule)
{
    static const uint8_t head[44] = { 'T', 'Z', 'i', 'f', '2', [39] = 1, [43] = 4 };
    static const uint8_t type[10] = { 0, 0, 0x0e, 0x10, 0, 0, 'C', 'E', 'T', 0 };
    uint8_t *at = out;
    for (int i = 0; i < 2; i++) {
        memcpy(at, head, sizeof head);
        memcpy(at + sizeof head, type, sizeof type);
        at += sizeof head + sizeof type;
    }
    *at++ = '\n';
    memcpy(at, rule, strlen(rule));
    at += strlen(rule);
    *at++ = '\n';
    return (size_t)(at - out);
}

static void check_firings(const struct hf__cron *cron, const struct hf__zone *zone, int64_t at)
{
    for (int i = 0; i < 20 && at; i++) {
        int64_t next = hf__cron_next(cron, zone, at);
        FUZZ_EXPECT(next == 0 || (next > at && next <= HF__TIME_MAX && next % 1000000 == 0));
        FUZZ_EXPECT(next == 0 || hf__cron_next(cron, zone, next - 1) == next);
        if (next && i == 0)
            FUZZ_EXPECT(hf__cron_last(cron, zone, at, next) == next);
        at = next;
    }
}

static void check_spans(const struct hf__zone *zone, int64_t seconds)
{
    for (int i = 0; i < 20 && seconds < HF__TIME_MAX / 1000000; i++) {
        struct hf__zone_span span = hf__zone_at(zone, seconds);
        FUZZ_EXPECT(span.from <= seconds && span.until > seconds);
        seconds = span.until;
    }
}

static void check_zone(const uint8_t *bytes, size_t length)
{
    struct hf__zone zone;
    struct hf__cron cron;
    if (!hf__zone_parse(&zone, bytes, length))
        return;
    FUZZ_EXPECT(hf__cron_parse(&cron, "30 2 * * *", NULL) == HF_OK);
    check_spans(&zone, 0);
    check_spans(&zone, INT64_C(1767225600));
    check_firings(&cron, &zone, INT64_C(1767225600000000));
    hf__zone_free(&zone);
}

static void check_text(const char *text)
{
    struct hf__cron cron;
    struct hf__zone utc = { 0 };
    if (hf__cron_parse(&cron, text, NULL) == HF_OK) {
        FUZZ_EXPECT(hf__cron_next(&cron, &utc, INT64_C(1767225600000000)) > 0);
        check_firings(&cron, &utc, INT64_C(1767225600000000));
    }
    struct hf__zone zone;
    if (strlen(text) < 20 && hf__zone_load(&zone, text, NULL) == HF_OK)
        hf__zone_free(&zone);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    uint8_t *file = malloc(size + 200);
    FUZZ_EXPECT(text && file);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    check_text(text);
    check_zone((const uint8_t *)text, size);
    check_zone(file, wrap(file, text));
    free(file);
    free(text);
    return 0;
}
