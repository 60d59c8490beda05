/* Whatever is read as a duration or a time is in range and survives being written and read again.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "util/duration.h"

#include <string.h>

const char *const fuzz_seeds[] = {
    "1w2d3h4m5s6ms7us",
    "1.5s",
    "90",
    "0.000001h",
    "36525d",
    "99999999999999999999",
    "2026-11-15T21:20:51.123456Z",
    "2024-02-29T23:59:59+23:59",
    "1970-01-01T00:00:00-00:00",
    "9999-12-31T23:59:59.999999Z",
    NULL,
};

static void check_duration(int64_t us)
{
    char text[HF__DURATION_TEXT];
    int64_t back;
    hf__duration_format(us, text);
    FUZZ_EXPECT(strlen(text) < sizeof text);
    if (us >= 0 && us <= HF__DURATION_MAX)
        FUZZ_EXPECT(hf__duration_parse(text, &back, NULL) == HF_OK && back == us);
}

static void check_time(int64_t us)
{
    char text[HF__TIME_TEXT];
    int64_t back;
    hf__time_format(us, text);
    FUZZ_EXPECT(hf__time_parse(text, &back, NULL) == HF_OK);
    if (us >= 0 && us <= HF__TIME_MAX)
        FUZZ_EXPECT(back == us);
}

static void check_number(const uint8_t *data, size_t size)
{
    int64_t us = 0;
    memcpy(&us, data, size < sizeof us ? size : sizeof us);
    check_duration(us);
    check_time(us);
}

static void check_text(const char *text)
{
    int64_t us;
    if (hf__duration_parse(text, &us, NULL) == HF_OK) {
        FUZZ_EXPECT(us >= 0 && us <= HF__DURATION_MAX);
        check_duration(us);
    }
    if (hf__time_parse(text, &us, NULL) == HF_OK) {
        FUZZ_EXPECT(us >= 0 && us <= HF__TIME_MAX);
        check_time(us);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    FUZZ_EXPECT(text);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    check_text(text);
    if (size)
        check_number(data, size);
    free(text);
    return 0;
}
