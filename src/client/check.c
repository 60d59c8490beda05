/* SPDX-License-Identifier: Apache-2.0 */
#include "client/check.h"

#include <string.h>

#include "kernel/chores.h"
#include "util/duration.h"
#include "util/error.h"
#include "util/json.h"
#include "util/text.h"

#define MAX_PRIORITY 1000
#define MAX_ATTEMPTS 1000000
#define MAX_FLOW_KEY 200
#define MAX_WEIGHT 1000
#define MAX_SLOTS 1000000
#define MAX_STARTS 1000000
#define MAX_INTERVAL HF_DAYS(31)
#define MAX_DEBOUNCE HF_DAYS(365)

hf_code hf__check_version(const char *what, int version, int known, hf_error *err)
{
    if (version >= 1 && version <= known)
        return HF_OK;
    return hf__fail(err, HF_INVALID,
                    "%s has version %d: initialise it with its _INIT macro (known: 1 to %d)", what,
                    version, known);
}

hf_code hf__check_json(const char *what, const char *json, size_t limit, hf_error *err)
{
    if (!json)
        return HF_OK;
    size_t length = strnlen(json, limit + 1);
    if (length > limit)
        return hf__fail(err, HF_TOO_LARGE,
                        "the %s is larger than %zu bytes: store large data elsewhere and pass a "
                        "reference, or raise max_payload",
                        what, limit);
    hf_error inner;
    if (hf__json_check(json, length, &inner) == HF_OK)
        return HF_OK;
    return hf__fail(err, HF_INVALID, "the %s is not JSON: %s", what, inner.message);
}

hf_code hf__check_optional_label(const char *what, const char *text, hf_error *err)
{
    return text ? hf__label_check(what, text, HF__MAX_LABEL, err) : HF_OK;
}

hf_code hf__check_time(const char *what, int64_t time, hf_error *err)
{
    if (time >= 0 && time <= HF__MAX_TIME)
        return HF_OK;
    return hf__fail(err, HF_INVALID, "%s must be a time between 1970 and 9999", what);
}

hf_code hf__check_duration(const char *what, int64_t duration, hf_error *err)
{
    if (duration >= 0 && duration <= HF_DAYS(36525))
        return HF_OK;
    return hf__fail(err, HF_INVALID, "%s must be between 0 and 100 years", what);
}

hf_code hf__check_range(const char *what, int64_t value, int64_t low, int64_t high, hf_error *err)
{
    if (value >= low && value <= high)
        return HF_OK;
    return hf__fail(err, HF_INVALID, "%s is %lld; it must be between %lld and %lld", what,
                    (long long)value, (long long)low, (long long)high);
}

static hf_code check_span(const char *what, int64_t value, int64_t low, int64_t high, hf_error *err)
{
    char texts[3][HF__DURATION_TEXT];
    if (value >= low && value <= high)
        return HF_OK;
    hf__duration_format(value, texts[0]);
    hf__duration_format(low, texts[1]);
    hf__duration_format(high, texts[2]);
    return hf__fail(err, HF_INVALID, "%s is %s; it must be between %s and %s", what, texts[0],
                    texts[1], texts[2]);
}

hf_code hf__check_workflow_name(const char *name, bool internal, hf_error *err)
{
    hf_code code = name ? hf__name_check("workflow name", name, err)
                        : hf__fail(err, HF_INVALID, "a workflow's name is missing");
    if (code == HF_OK && !internal &&
        strncmp(name, HF__CHORE_PREFIX, strlen(HF__CHORE_PREFIX)) == 0)
        code = hf__fail(err, HF_INVALID,
                        "names that begin with \"" HF__CHORE_PREFIX "\" are the engine's own");
    return code;
}

/* A family's stem may end with a dot, which a name may not. */
static hf_code check_stem(const char *pattern, size_t length, hf_error *err)
{
    char stem[HF__NAME_MAX + 1];
    if (length == 0)
        return HF_OK;
    if (length >= sizeof stem)
        return hf__fail(err, HF_INVALID, "the pattern \"%.40s...\" is longer than %d bytes",
                        pattern, HF__NAME_MAX);
    memcpy(stem, pattern, length);
    stem[length] = '\0';
    if (length > 1 && stem[length - 1] == '.')
        stem[length - 1] = '\0';
    return hf__name_check("pattern", stem, err);
}

hf_code hf__check_pattern(const char *pattern, hf_error *err)
{
    size_t length = pattern ? strlen(pattern) : 0;
    if (length == 0)
        return hf__fail(err, HF_INVALID,
                        "a pattern is empty: use \"billing.charge.v1\", "
                        "\"billing.*\" or \"*\"");
    return check_stem(pattern, pattern[length - 1] == '*' ? length - 1 : length, err);
}

/* Lower-case hex digits, at least one of them not 0. */
static bool is_trace_field(const char *text, size_t length)
{
    return strspn(text, "0123456789abcdef") >= length && strspn(text, "0") < length;
}

bool hf__trace_valid(const char *text)
{
    return strlen(text) == 55 && strncmp(text, "00-", 3) == 0 && is_trace_field(text + 3, 32) &&
           text[35] == '-' && is_trace_field(text + 36, 16) && text[52] == '-' &&
           strspn(text + 53, "0123456789abcdef") == 2;
}

static hf_code check_trace(const char *trace, hf_error *err)
{
    if (!trace || hf__trace_valid(trace))
        return HF_OK;
    return hf__fail(err, HF_INVALID,
                    "the trace is not a W3C traceparent of version 00, as in "
                    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 (lower-case hex)");
}

static hf_code check_tags(const hf_trigger_spec *spec, hf_error *err)
{
    if (spec->tag_count > HF__MAX_TAGS)
        return hf__fail(err, HF_INVALID, "a run can have at most %d tags", HF__MAX_TAGS);
    for (size_t i = 0; i < spec->tag_count; i++) {
        hf_code code =
            hf__label_check("tag", spec->tags[i] ? spec->tags[i] : "", HF__MAX_LABEL, err);
        if (code != HF_OK)
            return code;
    }
    return HF_OK;
}

hf_code hf__check_weight(const char *flow_key, int weight, hf_error *err)
{
    if (!flow_key)
        return hf__fail(err, HF_INVALID, "which flow key? \"\" is that of runs without one");
    hf_code code = *flow_key ? hf__label_check("flow key", flow_key, MAX_FLOW_KEY, err) : HF_OK;
    return code == HF_OK ? hf__check_range("weight", weight, 1, MAX_WEIGHT, err) : code;
}

static hf_code check_rate(const char *what, const hf_rate *rate, hf_error *err)
{
    hf_code code = hf__check_range(what, rate->count, 0, MAX_STARTS, err);
    if (code == HF_OK && rate->count &&
        (rate->interval < HF_MILLISECONDS(1) || rate->interval > MAX_INTERVAL))
        code = hf__fail(err, HF_INVALID, "the interval of a %s must be from 1 ms to 31 days", what);
    return code == HF_OK ? hf__check_range("burst", rate->burst, 0, MAX_STARTS, err) : code;
}

/* The limits of a workflow, as far as they are set. */
static hf_code check_limits(const hf_workflow *workflow, unsigned mask, hf_error *err)
{
    hf_code code = HF_OK;
    if (mask & HF_SET_MAX_RUNNING)
        code = hf__check_range("max_running", workflow->max_running, 0, MAX_SLOTS, err);
    if (code == HF_OK && mask & HF_SET_KEY_MAX_RUNNING)
        code = hf__check_range("key_max_running", workflow->key_max_running, 0, MAX_SLOTS, err);
    if (code == HF_OK && mask & HF_SET_RATE)
        code = check_rate("rate", &workflow->rate, err);
    if (code == HF_OK && mask & HF_SET_KEY_RATE)
        code = check_rate("key_rate", &workflow->key_rate, err);
    return code;
}

static hf_code check_times(const hf_trigger_spec *spec, hf_error *err)
{
    hf_code code = hf__check_time("run_at", spec->run_at, err);
    if (code == HF_OK)
        code = hf__check_time("timeout_at", spec->timeout_at, err);
    if (code == HF_OK)
        code = hf__check_duration("delay", spec->delay, err);
    if (code == HF_OK)
        code = hf__check_duration("timeout", spec->timeout, err);
    return code;
}

static hf_code check_debounce(const hf_trigger_spec *spec, hf_error *err)
{
    if (!spec->debounce_key)
        return spec->debounce_for || spec->debounce_at_most
                   ? hf__fail(err, HF_INVALID, "a debounce needs a key")
                   : HF_OK;
    hf_code code = hf__label_check("debounce key", spec->debounce_key, MAX_FLOW_KEY, err);
    if (code == HF_OK)
        code = check_span("debounce_for", spec->debounce_for, 1, MAX_DEBOUNCE, err);
    if (code == HF_OK && spec->debounce_at_most)
        code = check_span("debounce_at_most", spec->debounce_at_most, spec->debounce_for,
                          MAX_DEBOUNCE, err);
    if (code == HF_OK && (spec->run_at || spec->delay))
        code = hf__fail(err, HF_INVALID,
                        "a debounced run starts debounce_for after the last trigger: leave run_at "
                        "and delay away");
    return code;
}

hf_code hf__check_trigger(const hf_trigger_spec *spec, size_t max_payload, hf_error *err)
{
    hf_code code = hf__check_version("hf_trigger_spec", spec->version, HF_TRIGGER_VERSION, err);
    if (code == HF_OK)
        code = hf__check_workflow_name(spec->workflow, false, err);
    if (code == HF_OK)
        code = hf__check_json("input", spec->input, max_payload, err);
    if (code == HF_OK)
        code = hf__check_optional_label("key", spec->key, err);
    if (code == HF_OK && spec->flow_key)
        code = hf__label_check("flow key", spec->flow_key, MAX_FLOW_KEY, err);
    if (code == HF_OK)
        code = hf__check_optional_label("subject", spec->subject, err);
    if (code == HF_OK)
        code = hf__check_optional_label("reference", spec->reference, err);
    if (code == HF_OK)
        code = hf__check_optional_label("partition", spec->partition, err);
    if (code == HF_OK)
        code = check_trace(spec->trace, err);
    if (code == HF_OK)
        code = hf__check_range("priority", spec->priority, -MAX_PRIORITY, MAX_PRIORITY, err);
    if (code == HF_OK)
        code = hf__check_range("max_attempts", spec->max_attempts, 0, MAX_ATTEMPTS, err);
    if (code == HF_OK)
        code = check_times(spec, err);
    if (code == HF_OK)
        code = check_debounce(spec, err);
    return code == HF_OK ? check_tags(spec, err) : code;
}

/* Mail of these types tells what has happened in the store: who could send it could answer for a person. */
static const char *const engine_types[] = { "child", "continue", "retry", "task", "timer" };

/* Mail that the engine writes has ids that follow from what it tells: who took one first would have it dropped. */
static const char *const engine_ids[] = { "child:", "requeue:", "timer:" };

hf_code hf__check_sender(const hf_signal_spec *spec, hf_error *err)
{
    for (size_t i = 0; spec->type && i < sizeof engine_types / sizeof *engine_types; i++)
        if (strcmp(spec->type, engine_types[i]) == 0)
            return hf__fail(err, HF_INVALID,
                            "signals of type \"%s\" are the engine's own: leave the type away, or "
                            "choose another; a task is answered by completing it",
                            spec->type);
    for (size_t i = 0; spec->id && i < sizeof engine_ids / sizeof *engine_ids; i++)
        if (strncmp(spec->id, engine_ids[i], strlen(engine_ids[i])) == 0)
            return hf__fail(
                err, HF_INVALID,
                "signal ids that begin with \"%s\" are the engine's own: choose another",
                engine_ids[i]);
    return HF_OK;
}

hf_code hf__check_signal(const hf_signal_spec *spec, size_t max_payload, hf_error *err)
{
    hf_code code = hf__check_version("hf_signal_spec", spec->version, HF_SIGNAL_VERSION, err);
    if (code == HF_OK)
        code = hf__label_check("signal name", spec->name ? spec->name : "", HF__MAX_LABEL, err);
    if (code == HF_OK)
        code = hf__check_optional_label("signal id", spec->id, err);
    if (code == HF_OK && spec->type)
        code = hf__name_check("signal type", spec->type, err);
    if (code == HF_OK)
        code = hf__check_optional_label("token", spec->token, err);
    if (code == HF_OK)
        code = hf__check_json("payload", spec->payload, max_payload, err);
    if (code == HF_OK)
        code = hf__check_range("expected_revision", spec->expected_revision, 0, INT32_MAX, err);
    return code == HF_OK ? hf__check_duration("delay", spec->delay, err) : code;
}

hf_code hf__check_change(const hf_change *change, hf_error *err)
{
    if (!change)
        return HF_OK;
    hf_code code = hf__check_version("hf_change", change->version, HF_CHANGE_VERSION, err);
    if (code == HF_OK && change->reason)
        code = hf__label_check("reason", change->reason, HF__MAX_REASON, err);
    if (code == HF_OK)
        code = hf__check_range("expected_revision", change->expected_revision, 0, INT32_MAX, err);
    return code;
}

hf_code hf__check_filter(const hf_filter *filter, hf_error *err)
{
    hf_code code = hf__check_version("hf_filter", filter->version, HF_FILTER_VERSION, err);
    const char *const labels[][2] = {
        { "workflow", filter->workflow },
        { "prefix", filter->prefix },
        { "key", filter->key },
        { "subject", filter->subject },
        { "reference", filter->reference },
        { "tag", filter->tag },
        { "current_step", filter->current_step },
        { "cursor", filter->cursor },
        { "flow_key", filter->flow_key },
    };
    for (size_t i = 0; code == HF_OK && i < sizeof labels / sizeof *labels; i++)
        code = hf__check_optional_label(labels[i][0], labels[i][1], err);
    if (code == HF_OK)
        code = hf__check_time("created_after", filter->created_after, err);
    if (code == HF_OK)
        code = hf__check_time("created_before", filter->created_before, err);
    if (code == HF_OK)
        code = hf__check_range("limit", filter->limit, 0, 1000, err);
    return code;
}

static hf_code check_children(const char *policy, hf_error *err)
{
    if (!policy || strcmp(policy, "leave") == 0 || strcmp(policy, "cancel") == 0 ||
        strcmp(policy, "fail") == 0)
        return HF_OK;
    return hf__fail(err, HF_INVALID, "children must be leave, cancel or fail, not \"%.40s\"",
                    policy);
}

hf_code hf__check_workflow(const hf_workflow *workflow, unsigned mask, hf_error *err)
{
    hf_code code = hf__check_workflow_name(workflow->name, false, err);
    if (code == HF_OK && mask & HF_SET_MAX_ATTEMPTS)
        code = hf__check_range("max_attempts", workflow->max_attempts, 1, MAX_ATTEMPTS, err);
    if (code == HF_OK && mask & HF_SET_RETRY_BASE)
        code = check_span("retry_base", workflow->retry_base, 0, HF_DAYS(365), err);
    if (code == HF_OK && mask & HF_SET_RETRY_CAP)
        code = check_span("retry_cap", workflow->retry_cap, 0, HF_DAYS(365), err);
    if (code == HF_OK && mask & HF_SET_LEASE)
        code = check_span("lease", workflow->lease, HF_MILLISECONDS(100), HF_DAYS(1), err);
    if (code == HF_OK && mask & HF_SET_TIMEOUT)
        code = hf__check_duration("timeout", workflow->timeout, err);
    if (code == HF_OK && mask & HF_SET_RETENTION)
        code = hf__check_duration("retention", workflow->retention, err);
    if (code == HF_OK && mask & HF_SET_DEAD_LETTER && workflow->dead_letter)
        code = hf__check_workflow_name(workflow->dead_letter, false, err);
    if (code == HF_OK && mask & HF_SET_FIT_WITHIN)
        code = check_span("fit_within", HF_SECONDS(workflow->fit_within), 0, HF_DAYS(3650), err);
    if (code == HF_OK && mask & HF_SET_ON_CANCEL && workflow->on_cancel)
        code = hf__check_workflow_name(workflow->on_cancel, false, err);
    if (code == HF_OK && mask & HF_SET_CHILDREN)
        code = check_children(workflow->children, err);
    return code == HF_OK ? check_limits(workflow, mask, err) : code;
}
