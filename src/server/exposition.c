/* SPDX-License-Identifier: Apache-2.0 */
#include "server/exposition.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Within a label the quote is special too. */
static void add_escaped(struct hf__buffer *out, const char *text, bool quoted)
{
    const char *special = quoted ? "\\\n\"" : "\\\n";
    while (*text) {
        size_t plain = strcspn(text, special);
        hf__buffer_add(out, text, plain);
        text += plain;
        if (*text)
            hf__buffer_addf(out, "\\%c", *text == '\n' ? 'n' : *text);
        text += *text != '\0';
    }
}

void hf__expose_family(struct hf__buffer *out, const char *name, const char *type, const char *help)
{
    hf__buffer_addf(out, "# HELP %s ", name);
    add_escaped(out, help, false);
    hf__buffer_addf(out, "\n# TYPE %s %s\n", name, type);
}

static void add_label(struct hf__buffer *out, int *count, const char *name, const char *value)
{
    hf__buffer_addf(out, "%s%s=\"", (*count)++ ? "," : "{", name);
    add_escaped(out, value, true);
    hf__buffer_add_text(out, "\"");
}

/* The name with its labels; `bound` NULL: it is no bucket. */
static void add_series(struct hf__buffer *out, const char *name, const char *suffix,
                       const struct hf__label *labels, const char *bound)
{
    int count = 0;
    hf__buffer_addf(out, "%s%s", name, suffix);
    for (; labels && labels->name; labels++)
        add_label(out, &count, labels->name, labels->value);
    if (bound)
        add_label(out, &count, "le", bound);
    hf__buffer_add_text(out, count ? "} " : " ");
}

void hf__expose(struct hf__buffer *out, const char *name, const struct hf__label *labels,
                int64_t value)
{
    add_series(out, name, "", labels, NULL);
    hf__buffer_addf(out, "%" PRId64 "\n", value);
}

static void write_seconds(char *out, size_t size, uint64_t us)
{
    snprintf(out, size, "%" PRIu64 ".%06" PRIu64, us / 1000000, us % 1000000);
    size_t length = strlen(out);
    while (out[length - 1] == '0')
        out[--length] = '\0';
    if (out[length - 1] == '.')
        out[length - 1] = '\0';
}

void hf__expose_seconds(struct hf__buffer *out, const char *name, const struct hf__label *labels,
                        int64_t us)
{
    char text[40];
    write_seconds(text, sizeof text, us > 0 ? (uint64_t)us : 0);
    add_series(out, name, "", labels, NULL);
    hf__buffer_addf(out, "%s\n", text);
}

void hf__expose_histogram(struct hf__buffer *out, const char *name, const struct hf__label *labels,
                          const struct hf__histogram *histogram, const int64_t *bounds)
{
    bool time = bounds == hf__time_bounds;
    char text[40];
    uint64_t total = 0;
    for (int i = 0; i <= HF__METRIC_BUCKETS; i++) {
        total += atomic_load_explicit(&histogram->counts[i], memory_order_relaxed);
        if (i == HF__METRIC_BUCKETS)
            strcpy(text, "+Inf");
        else if (time)
            write_seconds(text, sizeof text, (uint64_t)bounds[i]);
        else
            snprintf(text, sizeof text, "%" PRId64, bounds[i]);
        add_series(out, name, "_bucket", labels, text);
        hf__buffer_addf(out, "%" PRIu64 "\n", total);
    }
    uint64_t sum = atomic_load_explicit(&histogram->sum, memory_order_relaxed);
    if (time)
        write_seconds(text, sizeof text, sum);
    else
        snprintf(text, sizeof text, "%" PRIu64, sum);
    add_series(out, name, "_sum", labels, NULL);
    hf__buffer_addf(out, "%s\n", text);
    add_series(out, name, "_count", labels, NULL);
    hf__buffer_addf(out, "%" PRIu64 "\n", total);
}
