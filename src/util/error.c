/* SPDX-License-Identifier: Apache-2.0 */
#include "util/error.h"

#include "util/text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *hf_code_name(hf_code code)
{
    switch (code) {
#define CODE_NAME(symbol, number, name, meaning)                                                   \
    case symbol: return name;
        HF_ERRORS(CODE_NAME)
#undef CODE_NAME
    }
    return "unknown";
}

const char *hf_code_meaning(hf_code code)
{
    switch (code) {
#define CODE_MEANING(symbol, number, name, meaning)                                                \
    case symbol: return meaning;
        HF_ERRORS(CODE_MEANING)
#undef CODE_MEANING
    }
    return "an error code that this version does not know";
}

static bool is_printable(char byte)
{
    return (unsigned char)byte >= 0x20 ? byte != 0x7f : byte == '\n' || byte == '\t';
}

/* A sequence that truncation cut in two is dropped instead of becoming a row of '?'. */
static bool is_cut_sequence(const char *bytes, size_t length)
{
    unsigned char lead = (unsigned char)bytes[0];
    size_t needed = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 1;
    if (length >= needed || lead > 0xf4)
        return false;
    for (size_t i = 1; i < length; i++)
        if (((unsigned char)bytes[i] & 0xc0) != 0x80)
            return false;
    return true;
}

static void make_presentable(char *text, size_t length, bool truncated)
{
    size_t at = 0;
    while (at < length) {
        size_t step = hf__utf8_sequence(text + at, length - at);
        if (step == 0 && truncated && is_cut_sequence(text + at, length - at)) {
            text[at] = '\0';
            return;
        }
        if (step == 0 || (step == 1 && !is_printable(text[at]))) {
            text[at] = '?';
            step = 1;
        }
        at += step;
    }
}

hf_code hf__fail(hf_error *err, hf_code code, const char *fmt, ...)
{
    if (!err)
        return code;

    char message[sizeof err->message] = "";
    va_list args;
    va_start(args, fmt);
    int length = vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    make_presentable(message, strlen(message), length >= (int)sizeof message);

    err->code = code;
    memset(err->sqlstate, 0, sizeof err->sqlstate);
    memcpy(err->message, message, sizeof message);
    return code;
}

hf_code hf__nomem(hf_error *err)
{
    return hf__fail(err, HF_NOMEM, "memory ran out; free some or raise the limit and try again");
}
