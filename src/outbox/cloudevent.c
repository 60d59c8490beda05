/* SPDX-License-Identifier: Apache-2.0 */
#include "outbox/cloudevent.h"

#include <string.h>

#include "outbox/secret.h"
#include "util/buffer.h"
#include "util/duration.h"
#include "util/error.h"

#define HEADERS 16 /* room for all */

struct headers {
    struct hf__arena *arena;
    const char **items;
    size_t count;
    bool failed;
};

static void add_header(struct headers *headers, const char *name, const char *value)
{
    const char *line = hf__arena_printf(headers->arena, "%s: %s", name, value);
    headers->failed |= line == NULL;
    headers->items[headers->count++] = line;
}

/* Percent-encoding of all bytes but those in `plain`, letters and digits. */
static const char *encoded(struct hf__arena *arena, const char *text, const char *plain)
{
    struct hf__buffer out = { 0 };
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        bool keep = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                    (*c >= '0' && *c <= '9') || strchr(plain, *c);
        if (keep)
            hf__buffer_add(&out, c, 1);
        else
            hf__buffer_addf(&out, "%%%02X", *c);
    }
    const char *copy = out.failed ? NULL : hf__arena_strdup(arena, out.data ? out.data : "");
    hf__buffer_free(&out);
    return copy;
}

/* As CloudEvents' HTTP binding wants it: printable ASCII as it is, but for the percent sign, quotes and the space. */
static const char *header_value(struct hf__arena *arena, const char *text)
{
    return encoded(arena, text, "!#$&'()*+,-./:;<=>?@[\\]^_`{|}~");
}

static const char *source_of(const struct hf__cloudevent *event, struct hf__arena *arena)
{
    static const char plain[] = "-._~:";
    char run[HF_ID_TEXT];
    hf_id_format(event->run, run);
    const char *tenant = encoded(arena, event->tenant, plain);
    const char *workflow = event->workflow ? encoded(arena, event->workflow, plain) : "-";
    if (!tenant || !workflow)
        return NULL;
    return hf__arena_printf(arena, "/holdfast/%s/%s/%s", tenant, workflow, run);
}

static void add_member(struct hf__buffer *json, const char *name, const char *text)
{
    if (!text)
        return;
    hf__buffer_addf(json, ",\"%s\":", name);
    hf__buffer_add_json_string(json, text, strlen(text));
}

/* What both modes write, in their own ways. */
struct attributes {
    char id[HF_ID_TEXT];
    char time[HF__TIME_TEXT];
    const char *source;
};

static const char *structured(const struct hf__cloudevent *event, const struct attributes *a,
                              struct hf__arena *arena)
{
    struct hf__buffer json = { 0 };
    hf__buffer_addf(&json, "{\"specversion\":\"1.0\",\"id\":\"%s\"", a->id);
    add_member(&json, "source", a->source);
    add_member(&json, "type", event->type);
    add_member(&json, "subject", event->subject);
    add_member(&json, "time", a->time);
    add_member(&json, "traceparent", event->trace);
    add_member(&json, "datacontenttype", "application/json");
    hf__buffer_addf(&json, ",\"data\":%s}", event->payload ? event->payload : "null");
    const char *body = json.failed ? NULL : hf__arena_strdup(arena, json.data);
    hf__buffer_free(&json);
    return body;
}

static void binary_headers(const struct hf__cloudevent *event, const struct attributes *a,
                           struct headers *headers)
{
    const struct {
        const char *name, *value;
    } rows[] = {
        { "ce-specversion", "1.0" },        { "ce-id", a->id },
        { "ce-source", a->source },         { "ce-type", event->type },
        { "ce-subject", event->subject },   { "ce-time", a->time },
        { "ce-traceparent", event->trace },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *value = rows[i].value ? header_value(headers->arena, rows[i].value) : NULL;
        headers->failed |= rows[i].value && !value;
        if (value)
            add_header(headers, rows[i].name, value);
    }
}

static hf_code sign(const char *secret, const struct attributes *a, int64_t now,
                    const struct hf__request *request, struct headers *headers, hf_error *err)
{
    char signature[HF__SIGNATURE_TEXT];
    int64_t seconds = now / 1000000;
    hf_code code =
        hf__secret_sign(secret, a->id, seconds, request->body, request->length, signature, err);
    if (code != HF_OK)
        return code;
    const char *timestamp = hf__arena_printf(headers->arena, "%lld", (long long)seconds);
    headers->failed |= timestamp == NULL;
    add_header(headers, "webhook-id", a->id);
    add_header(headers, "webhook-timestamp", timestamp ? timestamp : "");
    add_header(headers, "webhook-signature", signature);
    return HF_OK;
}

hf_code hf__cloudevent_request(struct hf__request *out, const struct hf__cloudevent *event,
                               const char *url, const char *secret, hf_event_mode mode, int64_t now,
                               struct hf__arena *arena, hf_error *err)
{
    struct headers headers = {
        .arena = arena,
        .items = hf__arena_calloc(arena, HEADERS, sizeof *headers.items),
    };
    struct attributes a = { .source = source_of(event, arena) };
    hf_id_format(event->id, a.id);
    hf__time_format(event->created_at, a.time);
    if (!headers.items || !a.source)
        return hf__nomem(err);
    if (mode == HF_EVENT_BINARY) {
        binary_headers(event, &a, &headers);
        add_header(&headers, "Content-Type", "application/json");
    } else {
        add_header(&headers, "Content-Type", "application/cloudevents+json; charset=utf-8");
    }
    const char *plain = event->payload ? event->payload : "null";
    *out = (struct hf__request){
        .url = url,
        .headers = headers.items,
        .body = mode == HF_EVENT_BINARY ? plain : structured(event, &a, arena),
    };
    if (headers.failed || !out->body)
        return hf__nomem(err);
    out->length = strlen(out->body);
    hf_code code = sign(secret, &a, now, out, &headers, err);
    return code == HF_OK && headers.failed ? hf__nomem(err) : code;
}
