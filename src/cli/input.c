/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/input.h"

#include "cli/session.h"

#include "util/alloc.h"
#include "util/buffer.h"
#include "util/error.h"
#include "util/json.h"
#include "util/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 65536 };

#define DEFAULT_MAX_PAYLOAD 1048576
#define BESIDE_PAYLOAD (64 * 1024)

size_t cli_max_payload(void)
{
    int64_t given = cli_the_session.max_payload;
    return given ? (size_t)given : DEFAULT_MAX_PAYLOAD;
}

size_t cli_max_line(void)
{
    return cli_max_payload() + BESIDE_PAYLOAD;
}

static hf_code open_named(FILE **out, const char *name, hf_error *err)
{
    *out = strcmp(name, "-") == 0 ? stdin : fopen(name, "re");
    if (*out)
        return HF_OK;
    return hf__fail(err, HF_INVALID, "cannot read \"%.200s\": %s", name, strerror(errno));
}

static void close_named(FILE *file)
{
    if (file && file != stdin)
        fclose(file);
}

/* Reads one byte more than allowed at most, so that an endless file is refused and not swallowed. */
static hf_code read_bounded(struct hf__buffer *out, FILE *file, const char *what, const char *name,
                            hf_error *err)
{
    char block[BLOCK];
    size_t got;
    while ((got = fread(block, 1, sizeof block, file)) > 0) {
        hf__buffer_add(out, block, got);
        if (out->length > cli_max_payload())
            return hf__fail(err, HF_TOO_LARGE,
                            "%s from \"%.200s\" is larger than %zu bytes; store it elsewhere and "
                            "pass a reference",
                            what, name, cli_max_payload());
    }
    if (ferror(file))
        return hf__fail(err, HF_INVALID, "cannot read \"%.200s\": %s", name, strerror(errno));
    return out->failed ? hf__nomem(err) : HF_OK;
}

static hf_code read_source(struct hf__buffer *out, const char *what, const char *name,
                           hf_error *err)
{
    FILE *file;
    hf_code code = open_named(&file, name, err);
    if (code == HF_OK)
        code = read_bounded(out, file, what, name, err);
    close_named(file);
    return code;
}

static hf_code load(struct hf__buffer *out, const char *what, const char *source, hf_error *err)
{
    if (strcmp(source, "-") == 0)
        return read_source(out, what, "-", err);
    if (source[0] == '@')
        return read_source(out, what, source + 1, err);
    size_t length = strlen(source);
    if (length > cli_max_payload())
        return hf__fail(err, HF_TOO_LARGE, "%s is larger than %zu bytes", what, cli_max_payload());
    hf__buffer_add(out, source, length);
    return out->failed ? hf__nomem(err) : HF_OK;
}

static hf_code check_text(const char *what, const struct hf__buffer *text, hf_error *err)
{
    const char *data = text->data ? text->data : "";
    const char *nul = memchr(data, '\0', text->length);
    if (nul)
        return hf__fail(err, HF_INVALID, "%s has a NUL byte at byte %zu; it must be text", what,
                        (size_t)(nul - data));
    if (!hf__utf8_valid(data, text->length))
        return hf__fail(err, HF_INVALID, "%s is not valid UTF-8; re-encode it", what);
    return HF_OK;
}

static hf_code check_json(const char *what, const struct hf__buffer *text, hf_error *err)
{
    hf_code code = hf__json_check(text->data ? text->data : "", text->length, err);
    if (code == HF_OK)
        return HF_OK;
    return hf__fail(err, code, "%s is not JSON: %s (a text needs quotes: '\"text\"')", what,
                    err->message);
}

static hf_code take_checked(char **out, const char *what, const char *source, bool json,
                            hf_error *err)
{
    struct hf__buffer text = { 0 };
    hf_code code = load(&text, what, source, err);
    if (code == HF_OK)
        code = check_text(what, &text, err);
    if (code == HF_OK && json)
        code = check_json(what, &text, err);
    *out = code == HF_OK ? hf__buffer_take(&text) : NULL;
    if (code == HF_OK && !*out)
        code = hf__nomem(err);
    hf__buffer_free(&text);
    return code;
}

hf_code cli_input_text(char **out, const char *what, const char *source, hf_error *err)
{
    return take_checked(out, what, source, false, err);
}

hf_code cli_input_json(char **out, const char *what, const char *source, hf_error *err)
{
    return take_checked(out, what, source, true, err);
}

hf_code cli_lines_open(struct cli_lines *lines, const char *name, hf_error *err)
{
    *lines = (struct cli_lines){ .name = name };
    return open_named(&lines->file, name, err);
}

static bool make_room(struct cli_lines *lines)
{
    if (lines->length + 1 < lines->capacity)
        return true;
    size_t wanted = lines->capacity ? lines->capacity * 2 : 1024;
    char *grown = hf__realloc(lines->line, wanted);
    if (!grown)
        return false;
    lines->line = grown;
    lines->capacity = wanted;
    return true;
}

/* Reads up to the newline; what is beyond the limit is passed over. False: no memory. */
static bool read_line(struct cli_lines *lines, int first)
{
    for (int c = first; c != EOF && c != '\n'; c = getc_unlocked(lines->file)) {
        if (lines->length >= cli_max_line())
            lines->too_long = true;
        else if (!make_room(lines))
            return false;
        else
            lines->line[lines->length++] = (char)c;
    }
    if (!make_room(lines))
        return false;
    lines->line[lines->length] = '\0';
    return true;
}

bool cli_lines_next(struct cli_lines *lines, bool *failed, hf_error *err)
{
    lines->length = 0;
    lines->too_long = false;
    *failed = false;
    int first = getc_unlocked(lines->file);
    if (first == EOF && !ferror(lines->file))
        return false;
    lines->number++;
    if (first != EOF && !read_line(lines, first))
        *failed = hf__nomem(err) != HF_OK;
    else if (ferror(lines->file))
        *failed = hf__fail(err, HF_INVALID, "cannot read \"%.200s\": %s", lines->name,
                           strerror(errno)) != HF_OK;
    return !*failed;
}

void cli_lines_close(struct cli_lines *lines)
{
    close_named(lines->file);
    free(lines->line);
    *lines = (struct cli_lines){ 0 };
}
