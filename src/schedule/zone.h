/* Time zones: how far a place's clocks are from UTC, and when that changes. Read from the system's zone files; touches
 * neither TZ nor any other state of the process, so it is safe in threads.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_SCHEDULE_ZONE_H
#define HF_SCHEDULE_ZONE_H

#include "schedule/zone_rule.h"

#include <holdfast/error.h>

#include <stddef.h>

#define HF__ZONE_NAME_MAX 100 /* bytes of a zone's name */

/* Zeroed: UTC. */
struct hf__zone {
    int64_t *times; /* seconds since the epoch, rising; offsets[i] holds from times[i] */
    int32_t *offsets;
    size_t count;
    int32_t first; /* the offset before times[0] */
    struct hf__zone_rest rest;
};

/* A stretch of time with one offset. */
struct hf__zone_span {
    int64_t from;  /* seconds since the epoch; INT64_MIN: since ever */
    int64_t until; /* first second that is not part of it; INT64_MAX: for ever */
    int offset;    /* seconds east of UTC */
    int before;    /* the offset before it */
};

/* "UTC" is built in; others are IANA names, "Europe/Berlin". */
hf_code hf__zone_load(struct hf__zone *out, const char *name, hf_error *err)
    __attribute__((warn_unused_result));
/* The same from the bytes of a TZif file of version 2 or later. False: they are not one. */
bool hf__zone_parse(struct hf__zone *out, const uint8_t *bytes, size_t length)
    __attribute__((warn_unused_result));
void hf__zone_free(struct hf__zone *zone);

/* The span that holds a time. */
struct hf__zone_span hf__zone_at(const struct hf__zone *zone, int64_t seconds);

#endif
