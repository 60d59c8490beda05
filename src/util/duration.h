/* Spans and points of time as people write them. Everything is int64 microseconds inside.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_UTIL_DURATION_H
#define HF_UTIL_DURATION_H

#include <holdfast/error.h>

#include <stdint.h>

#define HF__DURATION_TEXT 40 /* bytes that hf__duration_format may write, with the NUL */
#define HF__TIME_TEXT 28     /* bytes that hf__time_format may write, with the NUL */
#define HF__DURATION_MAX (INT64_C(36525) * 86400 * 1000000) /* us; 100 years */
#define HF__TIME_MAX INT64_C(253402300799999999)            /* us; the end of the year 9999 */

/* "250ms", "3d", "1h30m", "1.5s"; a bare number is seconds. Units w d h m s ms us, largest
 * first, each once; up to six decimals. Not negative, at most HF__DURATION_MAX. */
hf_code hf__duration_parse(const char *text, int64_t *out, hf_error *err)
    __attribute__((warn_unused_result));
/* "1h30m", "1.5s", "250ms", "0s"; what it writes is read back to the same value (but for
 * negative ones: "-5s"). */
void hf__duration_format(int64_t us, char out[HF__DURATION_TEXT]);

/* RFC 3339 with Z or an offset and up to six decimals, from 1970 to 9999. */
hf_code hf__time_parse(const char *text, int64_t *out, hf_error *err)
    __attribute__((warn_unused_result));
/* "2026-11-15T21:20:51.123Z", with six decimals where three would lose something. Beyond
 * 1970..9999 the nearest end is written. */
void hf__time_format(int64_t us, char out[HF__TIME_TEXT]);

#endif
