/* What can be said of a run to be triggered.
 * SPDX-License-Identifier: Apache-2.0 */
#include "record/reader.h"

#include <holdfast/client.h>

#define SPEC(name_, field, kind_, about_, ...)                                                     \
    {                                                                                              \
        .name = name_, .kind = HF__FIELD_##kind_, .offset = offsetof(hf_trigger_spec, field),      \
        .about = about_, __VA_ARGS__                                                               \
    }

const struct hf__member hf__trigger_members[] = {
    SPEC("workflow", workflow, TEXT, "what to run"),
    SPEC("input", input, JSON, "any JSON"),
    SPEC("key", key, TEXT,
         "identity among the workflow's runs: the same key and input give the same run"),
    SPEC("flow_key", flow_key, TEXT, "limits and fair shares go by it"),
    SPEC("debounce", debounce_key, TEXT,
         "while a run with it has not begun, this replaces its input and puts it off"),
    SPEC("for", debounce_for, DURATION, "how long a debounced run is put off each time"),
    SPEC("at_most", debounce_at_most, DURATION, "and at most from the first time"),
    SPEC("priority", priority, INT, "-1000 to 1000; higher is more urgent"),
    SPEC("at", run_at, TIME, "not before this time"),
    SPEC("in", delay, DURATION, "not before this long from now"),
    SPEC("deadline", timeout_at, TIME, "fails when it has not ended by then"),
    SPEC("timeout", timeout, DURATION, "the deadline, from now"),
    SPEC("tags", tags, WORDS, "words to find it by",
         .count_offset = offsetof(hf_trigger_spec, tag_count)),
    SPEC("subject", subject, TEXT, "what it is about"),
    SPEC("reference", reference, TEXT, "a business reference"),
    SPEC("partition", partition, TEXT, "the caller's own shard key"),
    SPEC("max_attempts", max_attempts, INT, "in place of the workflow's"),
    SPEC("trace", trace, TEXT, "a W3C traceparent"),
    SPEC("require_worker", require_worker, BOOL, "refuse it when no live worker could run it"),
    HF__MEMBERS_END,
};
