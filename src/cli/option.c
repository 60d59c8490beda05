/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/option.h"

#include "util/alloc.h"
#include "util/duration.h"
#include "util/error.h"
#include "util/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct cli_option *cli_option_next(struct cli_option_walk *walk,
                                         const struct cli_option *table)
{
    if (walk->inner && walk->inner[1].kind != CLI_END)
        return ++walk->inner;
    walk->inner = NULL;
    walk->outer = walk->outer ? walk->outer + 1 : table;
    if (!walk->outer || walk->outer->kind == CLI_END)
        return NULL;
    if (walk->outer->kind != CLI_INCLUDE)
        return walk->outer;
    walk->inner = walk->outer->value;
    return walk->inner;
}

const struct cli_option *cli_option_find(const struct cli_option *table, const char *name,
                                         size_t length)
{
    struct cli_option_walk walk = { 0 };
    const struct cli_option *option;
    while ((option = cli_option_next(&walk, table)))
        if (strlen(option->name) == length && memcmp(option->name, name, length) == 0)
            return option;
    return NULL;
}

const struct cli_option *cli_option_find_letter(const struct cli_option *table, char letter)
{
    struct cli_option_walk walk = { 0 };
    const struct cli_option *option;
    while ((option = cli_option_next(&walk, table)))
        if (option->letter == letter)
            return option;
    return NULL;
}

bool cli_option_takes_value(const struct cli_option *option)
{
    return option->kind != CLI_SWITCH && option->kind != CLI_MAYBE_DURATION;
}

hf_code cli_number_parse(const char *what, const char *text, int64_t min, int64_t max, int64_t *out,
                         hf_error *err)
{
    char *end = NULL;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    bool starts_well = (*text >= '0' && *text <= '9') || *text == '-' || *text == '+';
    if (!starts_well || end == text || *end)
        return hf__fail(err, HF_INVALID, "%s wants a whole number, not \"%.60s\"", what, text);
    if (errno == ERANGE || number < min || number > max)
        return hf__fail(err, HF_INVALID, "%s must be within %" PRId64 " and %" PRId64 ", not %.60s",
                        what, min, max, text);
    *out = number;
    return HF_OK;
}

static hf_code set_text(const char *what, const char *text, const char **out, hf_error *err)
{
    if (!hf__utf8_valid(text, strlen(text)))
        return hf__fail(err, HF_INVALID, "%s is not valid UTF-8; re-encode it", what);
    *out = text;
    return HF_OK;
}

static hf_code add_text(const char *what, const char *text, struct cli_texts *texts, hf_error *err)
{
    const char **grown = hf__realloc(texts->items, (texts->count + 1) * sizeof *grown);
    if (!grown)
        return hf__nomem(err);
    texts->items = grown;
    hf_code code = set_text(what, text, &texts->items[texts->count], err);
    if (code == HF_OK)
        texts->count++;
    return code;
}

static hf_code set_duration(const char *what, const char *text, int64_t min, int64_t *out,
                            hf_error *err)
{
    hf_code code = hf__duration_parse(text, out, err);
    if (code != HF_OK)
        return hf__fail(err, code, "%s: %s", what, err->message);
    if (*out == 0 && min < 0)
        return hf__fail(err, HF_INVALID, "%s must be longer than nothing", what);
    return HF_OK;
}

static hf_code set_time(const char *what, const char *text, int64_t *out, hf_error *err)
{
    hf_code code = hf__time_parse(text, out, err);
    return code == HF_OK ? HF_OK : hf__fail(err, code, "%s: %s", what, err->message);
}

static hf_code set_when(const char *what, const char *text, struct cli_when *when, hf_error *err)
{
    when->given = true;
    when->ago = hf__duration_parse(text, &when->value, NULL) == HF_OK;
    if (when->ago || hf__time_parse(text, &when->value, NULL) == HF_OK)
        return HF_OK;
    return hf__fail(err, HF_INVALID,
                    "%s wants a time like 2026-11-15T09:30:00Z or a duration before now like 2h, "
                    "not \"%.60s\"",
                    what, text);
}

static hf_code unknown_status(const char *name, hf_error *err)
{
    return hf__fail(
        err, HF_INVALID,
        "there is no status \"%.60s\"; it is pending, leased (a worker has it), waiting, "
        "paused, succeeded, failed or cancelled",
        name);
}

static hf_code add_statuses(const char *text, unsigned *set, hf_error *err)
{
    do {
        size_t length = strcspn(text, ",");
        char name[61];
        size_t kept = length < sizeof name ? length : sizeof name - 1;
        memcpy(name, text, kept);
        name[kept] = '\0';
        hf_status status;
        if (!hf_status_parse(name, &status))
            return unknown_status(name, err);
        *set |= 1u << status;
        text += length;
    } while (*text++ == ',');
    return HF_OK;
}

static hf_code set_maybe(const char *what, const char *text, struct cli_maybe *maybe, hf_error *err)
{
    maybe->given = true;
    maybe->value = -1;
    return text ? set_duration(what, text, 0, &maybe->value, err) : HF_OK;
}

static hf_code set_id(const char *what, const char *text, hf_id *out, hf_error *err)
{
    if (hf_id_parse(text, out))
        return HF_OK;
    return hf__fail(err, HF_INVALID, "%s wants a run's id, not \"%.60s\"", what, text);
}

static hf_code set_value(const struct cli_option *option, const char *what, const char *text,
                         hf_error *err)
{
    switch (option->kind) {
    case CLI_SWITCH: *(bool *)option->value = true; return HF_OK;
    case CLI_TEXT: return set_text(what, text, option->value, err);
    case CLI_TEXTS: return add_text(what, text, option->value, err);
    case CLI_NUMBER:
        return cli_number_parse(what, text, option->min, option->max, option->value, err);
    case CLI_DURATION:
        if (option->unit && text[strspn(text, "0123456789.")] == '\0' && strcmp(text, "0") != 0)
            return hf__fail(err, HF_INVALID, "%s needs a unit, as in %.20sd or %.20ss", what, text,
                            text);
        return set_duration(what, text, option->min, option->value, err);
    case CLI_MAYBE_DURATION: return set_maybe(what, text, option->value, err);
    case CLI_TIME: return set_time(what, text, option->value, err);
    case CLI_WHEN: return set_when(what, text, option->value, err);
    case CLI_STATUS_SET: return add_statuses(text, option->value, err);
    case CLI_ID: return set_id(what, text, option->value, err);
    case CLI_INCLUDE:
    case CLI_END: break;
    }
    return hf__fail(err, HF_INTERNAL, "%s has no kind", what);
}

hf_code cli_option_set(const struct cli_option *option, const char *text, hf_error *err)
{
    char what[64];
    snprintf(what, sizeof what, "--%s", option->name);
    if (cli_option_takes_value(option) && !text)
        return hf__fail(err, HF_INVALID, "%s needs a value: %s %s", what, what, option->argument);
    if (option->kind == CLI_SWITCH && text)
        return hf__fail(err, HF_INVALID, "%s takes no value", what);
    if (option->mask)
        *option->mask |= option->bit;
    return set_value(option, what, text, err);
}
