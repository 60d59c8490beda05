/* Events that leave: subscriptions, and the outbox.
 * SPDX-License-Identifier: Apache-2.0 */
#include "server/request.h"
#include "server/routes.h"

#include "util/error.h"

#include <holdfast/outbox.h>

#include <inttypes.h>
#include <string.h>

/* ---- Subscriptions ---- */

static hf_code list(struct hf__request *request, hf_error *err)
{
    hf_subscriptions *found = NULL;
    hf_code code = hf_subscription_list(request->client, &found, err);
    if (code == HF_OK)
        code = hf__reply_list(request, hf__subscription_fields, found->items, found->count,
                              sizeof *found->items, NULL, err);
    hf_subscriptions_free(found);
    return code;
}

static hf_code show(struct hf__request *request, hf_error *err)
{
    hf_subscription *found = NULL;
    hf_code code = hf_subscription_get(request->client, &found, request->args[0], err);
    if (code == HF_OK)
        code = hf__reply_record(request, hf__subscription_fields, found, err);
    hf_subscription_free(found);
    return code;
}

struct body {
    hf_subscription_spec spec;
    const char *mode;
};

#define SPEC(field, kind_, about_, ...)                                                            \
    {                                                                                              \
        .name = #field, .kind = HF__FIELD_##kind_, .offset = offsetof(struct body, spec.field),    \
        .about = about_, __VA_ARGS__                                                               \
    }

static const struct hf__member members[] = {
    SPEC(url, TEXT, "http or https", .required = true),
    SPEC(events, WORDS, "types, or prefixes that end with a star; none: all that runs emit",
         .count_offset = offsetof(struct body, spec.event_count)),
    SPEC(secret, TEXT, "whsec_ and base64; none: one is made"),
    SPEC(max_failures, INT, "in a row, before it is parked; default 10"),
    HF__MEMBER(struct body, mode, TEXT, "structured or binary"),
    HF__MEMBERS_END,
};

static const struct hf__part made_parts[] = {
    { .name = "secret", .maybe = true },
    { .name = NULL },
};

/* The secret is told with the answer in which it is new, and never again. */
static hf_code reply_put(struct hf__request *request, char *secret, hf_error *err)
{
    hf_code code = show(request, err);
    if (code == HF_OK && *secret) {
        request->out.length--; /* the brace that ends the record */
        hf__buffer_addf(&request->out, ",\"%s\":", made_parts[0].name);
        hf__json_add_text(&request->out, secret);
        hf__buffer_add_text(&request->out, "}");
        code = hf__reply_done(request, 200, err);
    }
    explicit_bzero(secret, HF_SECRET_TEXT);
    return code;
}

static hf_code put(struct hf__request *request, hf_error *err)
{
    struct body body = { .spec = HF_SUBSCRIPTION_INIT };
    char secret[HF_SECRET_TEXT] = "";
    hf_code code = hf__request_body(request, &body, NULL, err);
    body.spec.name = request->args[0];
    if (code == HF_OK && body.mode && !hf_event_mode_parse(body.mode, &body.spec.mode))
        code = hf__fail(err, HF_INVALID, "there is no mode \"%.60s\"", body.mode);
    if (code == HF_OK)
        code = hf_subscription_put(request->client, &body.spec, secret, err);
    return code == HF_OK ? reply_put(request, secret, err) : code;
}

static hf_code park(struct hf__request *request, hf_error *err)
{
    hf_code code = hf_subscription_park(request->client, request->args[0], err);
    return code == HF_OK ? show(request, err) : code;
}

static hf_code resume(struct hf__request *request, hf_error *err)
{
    hf_code code = hf_subscription_resume(request->client, request->args[0], err);
    return code == HF_OK ? show(request, err) : code;
}

static hf_code remove_one(struct hf__request *request, hf_error *err)
{
    hf_code code = hf_subscription_delete(request->client, request->args[0], err);
    return code == HF_OK ? hf__reply_nothing(request) : code;
}

struct tested {
    bool delivered;
    int status;          /* HTTP's, of the receiver; 0: there was no answer */
    const char *message; /* why not; NULL: it was */
};

static const struct hf__field tested_fields[] = {
    { "delivered", HF__FIELD_BOOL, offsetof(struct tested, delivered) },
    { "status", HF__FIELD_INT, offsetof(struct tested, status) },
    { "message", HF__FIELD_TEXT, offsetof(struct tested, message) },
    { NULL, HF__FIELD_TEXT, 0 },
};

/* What the receiver says is the answer, whether it is good or not. */
static hf_code test(struct hf__request *request, hf_error *err)
{
    struct tested tested = { 0 };
    hf_error why = { 0 };
    hf_code code = hf_subscription_test(request->client, request->args[0], &tested.status, &why);
    if (code == HF_NOT_FOUND || code == HF_INVALID || code == HF_NOMEM || code == HF_UNAVAILABLE) {
        *err = why;
        return code;
    }
    tested.delivered = code == HF_OK;
    tested.message = code == HF_OK ? NULL : why.message;
    return hf__reply_record(request, tested_fields, &tested, err);
}

/* ---- The outbox ---- */

static const struct hf__member filter_members[] = {
    HF__MEMBER(hf_outbox_filter, undelivered, BOOL, "only what somebody has not got yet"),
    HF__MEMBER(hf_outbox_filter, type, TEXT, "or a prefix that ends with a star"),
    HF__MEMBER(hf_outbox_filter, run, ID, "of this run"),
    HF__MEMBER(hf_outbox_filter, limit, INT, "1 to 1000; default 50"),
    HF__MEMBER(hf_outbox_filter, cursor, TEXT, "`next` of the page before"),
    HF__MEMBERS_END,
};

static hf_code entries(struct hf__request *request, hf_error *err)
{
    hf_outbox_filter filter = HF_OUTBOX_FILTER_INIT;
    hf_outbox_page *page = NULL;
    hf_code code = hf__request_query(request, &filter, err);
    if (code == HF_OK)
        code = hf_outbox_list(request->client, &page, &filter, err);
    if (code == HF_OK)
        code = hf__reply_list(request, hf__outbox_fields, page->items, page->count,
                              sizeof *page->items, page->next, err);
    hf_outbox_page_free(page);
    return code;
}

#define ONE HF__ANSWERS(200, ONE, "Subscription", hf__subscription_fields)
#define PATH "/v1/subscriptions/{name}"

const struct hf__route hf__outbox_routes[] = {
    HF__ROUTE("outbox", "GET", "/v1/subscriptions", "listSubscriptions", READ, list,
              "List subscriptions",
              HF__ANSWERS(200, LIST, "Subscription", hf__subscription_fields)),
    HF__ROUTE("outbox", "GET", PATH, "getSubscription", READ, show, "Show a subscription", ONE),
    HF__ROUTE("outbox", "PUT", PATH, "putSubscription", ADMIN, put,
              "Create or change a subscription",
              .details = "A secret that is new is in the answer; it is never shown again.",
              .body = members, HF__ANSWERS(200, ONE, "SubscriptionMade", hf__subscription_fields),
              .parts = made_parts,
              .example = "{\"url\":\"https://example.com/hook\",\"events\":[\"order.*\"]}"),
    HF__ROUTE("outbox", "POST", PATH "/park", "parkSubscription", OPERATE, park,
              "Deliver nothing until it is resumed; events are kept", ONE),
    HF__ROUTE("outbox", "POST", PATH "/resume", "resumeSubscription", OPERATE, resume,
              "Deliver again", ONE),
    HF__ROUTE("outbox", "POST", PATH "/test", "testSubscription", OPERATE, test,
              "Send a test event and say what the receiver answered", .pace = HF__PACE_SLOW,
              HF__ANSWERS(200, ONE, "SubscriptionTest", tested_fields)),
    HF__ROUTE("outbox", "DELETE", PATH, "deleteSubscription", ADMIN, remove_one,
              "Delete a subscription", HF__ANSWERS(204, NONE, NULL, NULL)),
    HF__ROUTE("outbox", "GET", "/v1/outbox", "listOutbox", READ, entries,
              "List events of the outbox, newest first", .query = filter_members,
              HF__ANSWERS(200, LIST, "OutboxEvent", hf__outbox_fields)),
    HF__ROUTES_END,
};
