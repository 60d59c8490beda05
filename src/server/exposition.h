/* Lines of the Prometheus text format, version 0.0.4.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_SERVER_EXPOSITION_H
#define HF_SERVER_EXPOSITION_H

#include "kernel/metrics.h"
#include "util/buffer.h"

#define HF__EXPOSITION_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* A NULL name ends a list of labels. */
struct hf__label {
    const char *name;
    const char *value; /* any UTF-8 */
};

/* Begins a family: everything of one name stands together. */
void hf__expose_family(struct hf__buffer *out, const char *name, const char *type,
                       const char *help);
void hf__expose(struct hf__buffer *out, const char *name, const struct hf__label *labels,
                int64_t value);
/* A span in us, shown in seconds. */
void hf__expose_seconds(struct hf__buffer *out, const char *name, const struct hf__label *labels,
                        int64_t us);
/* `bounds` says what it counts: hf__time_bounds are shown in seconds. */
void hf__expose_histogram(struct hf__buffer *out, const char *name, const struct hf__label *labels,
                          const struct hf__histogram *histogram, const int64_t *bounds);

#endif
