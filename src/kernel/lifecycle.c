/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/lifecycle.h"

#include <string.h>

#include <holdfast/client.h>

const struct hf__lifecycle_row hf__lifecycle[] = {
    { HF_PENDING, HF_LEASED, "started", "a worker claims it when it is due" },
    { HF_WAITING, HF_LEASED, "started", "a worker claims it when a signal came or its time is up" },
    { HF_LEASED, HF_LEASED, "started", "a worker claims it when its lease has expired" },
    { HF_PAUSED, HF_LEASED, "started",
      "a worker claims it when its deadline or the end of its pause has passed" },
    { HF_LEASED, HF_SUCCEEDED, "succeeded", "its holder finished it" },
    { HF_LEASED, HF_FAILED, "failed",
      "its holder gave up: permanent, out of attempts or too late" },
    { HF_LEASED, HF_PENDING, "retried", "its holder failed and tries again later" },
    { HF_LEASED, HF_PENDING, "given_back",
      "its holder gives it back untouched, as a stopping worker does" },
    { HF_LEASED, HF_WAITING, "waiting", "its holder waits for a signal, a timer or children" },
    { HF_LEASED, HF_PAUSED, "paused",
      "a pause was asked for while it was held, or its holder waits for a person" },
    { HF_WAITING, HF_WAITING, "waiting", "an input was handled at once, without a claim" },
    { HF_WAITING, HF_SUCCEEDED, "succeeded", "an input handled at once finished it" },
    { HF_WAITING, HF_FAILED, "failed", "an input handled at once ended it" },
    { HF_PENDING, HF_PAUSED, "paused", "an operator pauses it" },
    { HF_WAITING, HF_PAUSED, "paused", "an operator pauses it" },
    { HF_PAUSED, HF_PENDING, "resumed", "an operator resumes it" },
    { HF_PAUSED, HF_WAITING, "resumed", "an operator resumes it; it was waiting before" },
    { HF_PENDING, HF_CANCELLED, "cancelled", "an operator cancels it" },
    { HF_LEASED, HF_CANCELLED, "cancelled", "an operator cancels it; its holder finds out" },
    { HF_WAITING, HF_CANCELLED, "cancelled", "an operator cancels it" },
    { HF_PAUSED, HF_CANCELLED, "cancelled", "an operator cancels it" },
    { HF_FAILED, HF_PENDING, "retried", "an operator retries it with all attempts" },
    { HF_CANCELLED, HF_PENDING, "retried", "an operator retries it with all attempts" },
};
const int hf__lifecycle_count = (int)(sizeof hf__lifecycle / sizeof *hf__lifecycle);

const struct hf__lifecycle_row *hf__lifecycle_find(hf_status from, hf_status to)
{
    for (int i = 0; i < hf__lifecycle_count; i++)
        if (hf__lifecycle[i].from == from && hf__lifecycle[i].to == to)
            return &hf__lifecycle[i];
    return NULL;
}

static const char *const status_names[] = {
#define STATUS_NAME(symbol, number, name) [number] = name,
    HF_STATUSES(STATUS_NAME)
#undef STATUS_NAME
};
#define STATUS_COUNT (sizeof status_names / sizeof *status_names)

const char *hf_status_name(hf_status status)
{
    return (size_t)status < STATUS_COUNT ? status_names[status] : "unknown";
}

bool hf_status_parse(const char *name, hf_status *out)
{
    for (size_t i = 0; name && i < STATUS_COUNT; i++)
        if (strcmp(name, status_names[i]) == 0) {
            *out = (hf_status)i;
            return true;
        }
    return false;
}

bool hf_status_finished(hf_status status)
{
    return status >= HF_SUCCEEDED;
}

static const char *const action_names[] = {
    [HF_CANCEL] = "cancel",   [HF_PAUSE] = "pause",   [HF_RESUME] = "resume",
    [HF_RETRY_RUN] = "retry", [HF_DELETE] = "delete", [HF_RESTORE] = "restore",
};

const char *hf_action_name(hf_action action)
{
    return (size_t)action < sizeof action_names / sizeof *action_names ? action_names[action]
                                                                       : "unknown";
}
