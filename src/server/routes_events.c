/* CloudEvents 1.0 that come in: each is a signal to a run.
 * SPDX-License-Identifier: Apache-2.0 */
#include "server/request.h"
#include "server/routes.h"
#include "util/error.h"
#include "util/json.h"
#include "util/json_members.h"
#include "util/text.h"

#include <string.h>
#include <strings.h>

enum { MOST_EVENTS = 1000 }; /* in a batch */

struct incoming {
    const char *specversion, *id, *source, *type;
    const char *data;        /* JSON */
    const char *data_base64; /* handed on as it is */
    hf_id run;
    const char *workflow, *key;
};

#define NAMED(name_, field, kind_, about_)                                                         \
    {                                                                                              \
        .name = name_, .kind = HF__FIELD_##kind_, .offset = offsetof(struct incoming, field),      \
        .about = about_                                                                            \
    }

static const struct hf__member members[] = {
    NAMED("specversion", specversion, TEXT, "1.0"),
    NAMED("id", id, TEXT, "with the source, what a repeated event is known by"),
    NAMED("source", source, TEXT, "a URI"),
    NAMED("type", type, TEXT, "the signal's name"),
    NAMED("data", data, JSON, "the signal's payload"),
    NAMED("data_base64", data_base64, TEXT, "the same for bytes"),
    NAMED("holdfastrun", run, ID, "the run that it is for"),
    NAMED("holdfastworkflow", workflow, TEXT, "or its workflow"),
    NAMED("holdfastkey", key, TEXT, "and its key"),
    HF__MEMBERS_OTHERS,
    HF__MEMBERS_END,
};

static hf_code check(const struct incoming *event, hf_error *err)
{
    if (!event->specversion || strcmp(event->specversion, "1.0") != 0)
        return hf__fail(err, HF_INVALID, "only CloudEvents of specversion 1.0 are understood");
    if (!event->id || !*event->id || !event->source || !*event->source || !event->type ||
        !*event->type)
        return hf__fail(err, HF_INVALID, "a CloudEvent has an id, a source and a type");
    if (hf_id_is_zero(event->run) && !(event->workflow && event->key))
        return hf__fail(err, HF_INVALID,
                        "who is it for? add the attribute holdfastrun, or holdfastworkflow and "
                        "holdfastkey");
    return HF_OK;
}

static hf_code find_run(struct hf__request *request, struct incoming *event, hf_error *err)
{
    hf_run *run = NULL;
    if (!hf_id_is_zero(event->run))
        return HF_OK;
    hf_code code = hf_get_by_key(request->client, &run, event->workflow, event->key, err);
    if (code == HF_OK)
        event->run = run->id;
    hf_run_free(run);
    return code;
}

static hf_code payload_of(struct hf__request *request, struct incoming *event, hf_error *err)
{
    struct hf__buffer text = { 0 };
    if (event->data || !event->data_base64)
        return HF_OK;
    hf__json_add_text(&text, event->data_base64);
    event->data = text.failed ? NULL : hf__arena_strndup(&request->arena, text.data, text.length);
    hf__buffer_free(&text);
    return event->data ? HF_OK : hf__nomem(err);
}

static hf_code deliver(struct hf__request *request, struct incoming *event, int *duplicates,
                       hf_error *err)
{
    hf_signal_spec spec = HF_SIGNAL_INIT;
    bool duplicate = false;
    hf_code code = check(event, err);
    if (code == HF_OK)
        code = find_run(request, event, err);
    if (code == HF_OK)
        code = payload_of(request, event, err);
    if (code != HF_OK)
        return code;
    spec.id = hf__arena_printf(&request->arena, "%s#%s", event->source, event->id);
    spec.name = event->type;
    spec.payload = event->data;
    code =
        spec.id ? hf_signal(request->client, event->run, &spec, &duplicate, err) : hf__nomem(err);
    *duplicates += duplicate;
    return code;
}

/* ---- The three ways to send them ---- */

static hf_code take_structured(struct hf__request *request, const char *json, size_t length,
                               int *duplicates, hf_error *err)
{
    struct incoming event = { 0 };
    hf_code code = hf__members_read(&event, members, &request->arena, json, length, NULL, err);
    return code == HF_OK ? deliver(request, &event, duplicates, err) : code;
}

static hf_code take_batch(struct hf__request *request, const char *json, size_t length, int *count,
                          int *duplicates, hf_error *err)
{
    const char *item;
    size_t item_length;
    size_t at = 0;
    hf_code code = hf__json_check(json, length, err);
    if (code == HF_OK && json[strspn(json, " \t\r\n")] != '[')
        code = hf__fail(err, HF_INVALID, "a batch is an array");
    for (*count = 0; code == HF_OK && hf__json_item_next(json, &at, &item, &item_length);
         (*count)++) {
        char *copy = hf__arena_strndup(&request->arena, item, item_length);
        if (*count == MOST_EVENTS)
            code = hf__fail(err, HF_TOO_LARGE, "a batch has at most %d events", MOST_EVENTS);
        else
            code = copy ? take_structured(request, copy, item_length, duplicates, err)
                        : hf__nomem(err);
        if (code != HF_OK)
            return hf__fail(err, code, "event %d: %s", *count + 1, err->message);
    }
    return code;
}

/* Attributes are headers; the body is the data, JSON or text. */
static hf_code take_binary(struct hf__request *request, const char *body, size_t length,
                           int *duplicates, hf_error *err)
{
    struct incoming event = { 0 };
    hf_code code = HF_OK;
    for (size_t i = 0; code == HF_OK && i < request->header_count; i++) {
        const struct hf__pair *header = &request->headers[i];
        if (strncasecmp(header->name, "ce-", 3) != 0)
            continue;
        for (const struct hf__member *member = members; member->name; member++)
            if (strcasecmp(member->name, header->name + 3) == 0 && member->kind != HF__FIELD_JSON)
                code = hf__member_read_text(&event, member, &request->arena, header->value, err);
    }
    if (code == HF_OK && length > 0 && hf__request_is(request, "application/json")) {
        code = hf__json_check(body, length, err);
        event.data = body;
    } else if (length > 0) {
        if (!hf__utf8_valid(body, length))
            code = hf__fail(err, HF_INVALID, "bytes that are not text are sent as data_base64");
        event.data_base64 = body;
    }
    return code == HF_OK ? deliver(request, &event, duplicates, err) : code;
}

struct received {
    int accepted;
    int duplicates; /* of these */
};

static const struct hf__field received_fields[] = {
    { "accepted", HF__FIELD_INT, offsetof(struct received, accepted) },
    { "duplicates", HF__FIELD_INT, offsetof(struct received, duplicates) },
    { NULL, HF__FIELD_TEXT, 0 },
};

static hf_code receive(struct hf__request *request, hf_error *err)
{
    const char *body = request->body.data ? request->body.data : "";
    size_t length = request->body.length;
    struct received received = { .accepted = 1 };
    hf_code code;
    if (strlen(body) != length)
        return hf__fail(err, HF_INVALID, "the body has a NUL byte");
    if (hf__request_is(request, "application/cloudevents-batch+json"))
        code = take_batch(request, body, length, &received.accepted, &received.duplicates, err);
    else if (hf__request_is(request, "application/cloudevents+json"))
        code = take_structured(request, body, length, &received.duplicates, err);
    else if (hf__request_header(request, "ce-id"))
        code = take_binary(request, body, length, &received.duplicates, err);
    else
        code = hf__fail(err, HF_INVALID,
                        "send a CloudEvent: application/cloudevents+json, "
                        "application/cloudevents-batch+json, or headers ce-id and so on");
    return code == HF_OK ? hf__reply_record(request, received_fields, &received, err) : code;
}

const struct hf__route hf__event_routes[] = {
    HF__ROUTE("events", "POST", "/v1/events", "receiveEvent", TRIGGER, receive,
              "Take in a CloudEvent as a signal to a run",
              .details = "In structured, batch or binary mode. The event's type is the signal's "
                         "name, its data the "
                         "payload; an event of the same source and id is taken once. 202: it is "
                         "durable. A batch that is "
                         "refused may have been taken in part: send it again.",
              .body = members, .media = "application/cloudevents+json",
              HF__ANSWERS(202, ONE, "Received", received_fields),
              .example =
                  "{\"specversion\":\"1.0\",\"id\":\"e-1\",\"source\":\"/shop\",\"type\":\"paid\","
                  "\"data\":{\"sum\":3},\"holdfastworkflow\":\"billing.charge.v1\","
                  "\"holdfastkey\":\"order-42\"}"),
    HF__ROUTES_END,
};
