/* SPDX-License-Identifier: Apache-2.0 */
#include "server/request.h"

#include "util/error.h"
#include "util/json_members.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

/* ---- What was asked ---- */

const char *hf__request_header(const struct hf__request *request, const char *name)
{
    for (size_t i = 0; i < request->header_count; i++)
        if (strcasecmp(request->headers[i].name, name) == 0)
            return request->headers[i].value;
    return NULL;
}

bool hf__request_wants_little(const struct hf__request *request)
{
    for (size_t i = 0; i < request->header_count; i++)
        if (strcasecmp(request->headers[i].name, "Prefer") == 0 &&
            strstr(request->headers[i].value, "return=minimal"))
            return true;
    return false;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

char *hf__percent_decode(struct hf__arena *arena, const char *text, size_t length, bool plus)
{
    char *out = hf__arena_alloc(arena, length + 1);
    size_t used = 0;
    for (size_t i = 0; out && i < length; i++) {
        int byte = (unsigned char)text[i];
        if (byte == '%') {
            int high = i + 2 < length ? hex_digit(text[i + 1]) : -1;
            int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
            byte = low >= 0 ? high * 16 + low : 0;
            i += 2;
        } else if (byte == '+' && plus) {
            byte = ' ';
        }
        if (byte == 0)
            return NULL;
        out[used++] = (char)byte;
    }
    if (out)
        out[used] = '\0';
    return out;
}

bool hf__request_is(const struct hf__request *request, const char *type)
{
    const char *given = hf__request_header(request, "Content-Type");
    size_t length = strlen(type);
    return given && strncasecmp(given, type, length) == 0 &&
           (given[length] == '\0' || strchr("; ", given[length]));
}

hf_code hf__request_body(struct hf__request *request, void *record, unsigned *given, hf_error *err)
{
    const char *body = request->body.data ? request->body.data : "";
    if (given)
        *given = 0;
    if (request->body.length == 0)
        body = "{}";
    else if (!hf__request_is(request, "application/json"))
        return hf__fail(err, HF_INVALID, "send the body as Content-Type: application/json");
    size_t length = strlen(body);
    if (request->body.length > 0 && length != request->body.length)
        return hf__fail(err, HF_INVALID, "the body has a NUL byte");
    return hf__members_read(record, request->route->body, &request->arena, body, length, given,
                            err);
}

static hf_code read_item(struct hf__request *request, const struct hf__array *array, char *place,
                         const char *item, size_t length, hf_error *err)
{
    char *copy = hf__arena_strndup(&request->arena, item, length);
    memcpy(place, array->blank, array->size);
    return copy ? hf__members_read(place, array->members, &request->arena, copy, length, NULL, err)
                : hf__nomem(err);
}

hf_code hf__request_array(struct hf__request *request, const struct hf__array *array, void *out,
                          size_t *count, hf_error *err)
{
    const char *item;
    size_t length;
    char **items = out;
    *count = 0;
    if (!array->json)
        return HF_OK;
    if (*array->json != '[')
        return hf__fail(err, HF_INVALID, "\"%s\" must be an array", array->name);
    for (size_t at = 0; hf__json_item_next(array->json, &at, &item, &length);)
        (*count)++;
    if (*count > array->most)
        return hf__fail(err, HF_TOO_LARGE, "\"%s\" has more than %zu items", array->name,
                        array->most);
    *items = hf__arena_calloc(&request->arena, *count + 1, array->size);
    hf_code code = *items ? HF_OK : hf__nomem(err);
    size_t at = 0;
    for (size_t i = 0; code == HF_OK && hf__json_item_next(array->json, &at, &item, &length); i++) {
        code = read_item(request, array, *items + i * array->size, item, length, err);
        if (code != HF_OK)
            return hf__fail(err, code, "%s, item %zu: %s", array->name, i + 1, err->message);
    }
    return code;
}

hf_code hf__request_query(struct hf__request *request, void *record, hf_error *err)
{
    hf_code code = HF_OK;
    for (size_t i = 0; code == HF_OK && i < request->query_count; i++) {
        const struct hf__pair *pair = &request->query[i];
        const struct hf__member *member = hf__member_find(request->route->query, pair->name);
        code = member ? hf__member_read_text(record, member, &request->arena, pair->value, err)
                      : hf__member_unknown(request->route->query, pair->name, err);
    }
    return code;
}

hf_code hf__request_id(const struct hf__request *request, int n, hf_id *out, hf_error *err)
{
    return hf_id_parse(request->args[n], out)
               ? HF_OK
               : hf__fail(err, HF_NOT_FOUND, "\"%.60s\" is not an id", request->args[n]);
}

hf_code hf__request_run(struct hf__request *request, hf_id *out, hf_error *err)
{
    const char *name = request->args[0];
    const char *slash = strchr(name, '/');
    hf_run *run = NULL;
    if (!slash)
        return hf__request_id(request, 0, out, err);
    if (hf_id_is_zero(request->named_run)) {
        char *workflow = hf__arena_strndup(&request->arena, name, (size_t)(slash - name));
        hf_code code = workflow ? hf_get_by_key(request->client, &run, workflow, slash + 1, err)
                                : hf__nomem(err);
        if (code != HF_OK)
            return code;
        request->named_run = run->id;
        hf_run_free(run);
    }
    *out = request->named_run;
    return HF_OK;
}

/* What comes before the checksum, if there is one. A W/ tells only that the answer was compressed. */
hf_code hf__request_if_match(const struct hf__request *request, int64_t *revision, hf_error *err)
{
    const char *text = hf__request_header(request, "If-Match");
    char *end = NULL;
    *revision = 0;
    if (!text || strcmp(text, "*") == 0)
        return HF_OK;
    text += strncmp(text, "W/", 2) == 0 ? 2 : 0;
    *revision = *text == '"' ? strtoll(text + 1, &end, 10) : 0;
    if (*revision > 0 && *end == '-')
        end += 1 + strspn(end + 1, "0123456789abcdef");
    if (*revision <= 0 || *revision > INT32_MAX || strcmp(end, "\"") != 0)
        return hf__fail(err, HF_INVALID,
                        "If-Match must be an ETag that a run was given with, as in \"3\"");
    return HF_OK;
}

bool hf__request_has(const struct hf__request *request, const char *etag)
{
    const char *at = hf__request_header(request, "If-None-Match");
    size_t length = strlen(etag);
    while (at && *at) {
        at += strspn(at, ", \t");
        at += strncmp(at, "W/", 2) == 0 ? 2 : 0;
        size_t given = *at == '"' ? strcspn(at + 1, "\"") + 2 : strcspn(at, ", \t");
        if (strncmp(at, etag, length) == 0 && given == length)
            return true;
        at += strnlen(at, given);
    }
    return false;
}

/* ---- The answer ---- */

void hf__reply_header(struct hf__request *request, const char *name, const char *value)
{
    char *copy = hf__arena_strdup(&request->arena, value);
    if (copy && request->answer_header_count < HF__MOST_HEADERS)
        request->answer_headers[request->answer_header_count++] = (struct hf__pair){ name, copy };
}

hf_code hf__reply_done(struct hf__request *request, int status, hf_error *err)
{
    if (request->out.failed)
        return hf__nomem(err);
    request->status = status;
    request->answered = true;
    return HF_OK;
}

hf_code hf__reply_nothing(struct hf__request *request)
{
    request->status = 204;
    request->answered = true;
    return HF_OK;
}

hf_code hf__reply_record(struct hf__request *request, const struct hf__field *fields,
                         const void *record, hf_error *err)
{
    hf__record_json(&request->out, fields, record);
    return hf__reply_done(request, request->route->status, err);
}

/* The revision alone would not do as the ETag: claims, steps and heartbeats change what is shown, and not the revision. */
hf_code hf__reply_run(struct hf__request *request, const hf_run *run, hf_error *err)
{
    char etag[48];
    hf_run shown = *run;
    if (hf__request_wants_little(request))
        shown.input = shown.state = shown.result = shown.error = NULL;
    hf_code code = hf__reply_record(request, hf__run_fields, &shown, err);
    if (code != HF_OK)
        return code;
    uLong sum = crc32_z(0, (const Bytef *)request->out.data, request->out.length);
    snprintf(etag, sizeof etag, "\"%" PRId64 "-%08lx\"", run->revision, sum);
    hf__reply_header(request, "ETag", etag);
    return HF_OK;
}

hf_code hf__reply_list(struct hf__request *request, const struct hf__field *fields,
                       const void *items, size_t count, size_t size, const char *next,
                       hf_error *err)
{
    struct hf__buffer *out = &request->out;
    hf__buffer_add_text(out, "{\"items\":[");
    for (size_t i = 0; i < count; i++) {
        hf__buffer_add_text(out, i > 0 ? "," : "");
        hf__record_json(out, fields, (const char *)items + i * size);
    }
    hf__buffer_add_text(out, "],\"next\":");
    hf__json_add_text(out, next);
    hf__buffer_add_text(out, "}");
    return hf__reply_done(request, request->route->status, err);
}
