/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/children.h"

#include "cli/field.h"

int64_t cli_counts_total(const int64_t counts[HF_STATUS_COUNT])
{
    int64_t total = 0;
    for (int status = 0; status < HF_STATUS_COUNT; status++)
        total += counts[status];
    return total;
}

void cli_counts_add(struct hf__buffer *out, const int64_t counts[HF_STATUS_COUNT])
{
    /* What needs a look comes first. */
    static const hf_status order[] = { HF_FAILED, HF_CANCELLED, HF_LEASED,   HF_WAITING,
                                       HF_PAUSED, HF_PENDING,   HF_SUCCEEDED };
    const char *separator = "";
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        char count[CLI_COUNT_TEXT];
        if (counts[order[i]] == 0)
            continue;
        cli_count_text(counts[order[i]], count);
        hf__buffer_addf(out, "%s%s %s", separator, count, hf_status_name(order[i]));
        separator = ", ";
    }
}
