/* The outbox: events that runs put into it are delivered to subscriptions as CloudEvents over HTTP, at least once and in
 * order per run.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HOLDFAST_OUTBOX_H
#define HOLDFAST_OUTBOX_H

#include <holdfast/client.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum hf_event_mode {
    HF_EVENT_STRUCTURED, /* one JSON object, application/cloudevents+json */
    HF_EVENT_BINARY      /* attributes as headers, data as the body */
} hf_event_mode;

HF_PUBLIC const char *hf_event_mode_name(hf_event_mode mode);
HF_PUBLIC bool hf_event_mode_parse(const char *text, hf_event_mode *out);

#define HF_SUBSCRIPTION_VERSION 1
#define HF_SECRET_TEXT 128 /* bytes of a secret, with the NUL */

typedef struct hf_subscription_spec {
    int version;               /* HF_SUBSCRIPTION_VERSION */
    const char *name;          /* unique in the tenant */
    const char *url;           /* http or https */
    const char *const *events; /* types, or prefixes that end with a star, like "order.*" */
    size_t event_count; /* 0: all that runs emit. The engine's own must be named: "holdfast.*" */
    const char *secret; /* "whsec_" and 24 to 64 bytes as base64; NULL: made, or as it was */
    hf_event_mode mode;
    int max_failures; /* in a row, before it is parked; 0: 10 */
} hf_subscription_spec;
#define HF_SUBSCRIPTION_INIT                                                                       \
    {                                                                                              \
        .version = HF_SUBSCRIPTION_VERSION                                                         \
    }

typedef struct hf_subscription {
    const char *name;
    const char *url;
    const char *events; /* JSON array */
    const char *mode;
    /* Active, retrying, parked, or ended (somebody ended its run: put it again). */
    const char *state;
    int max_failures;       /* in a row, before it is parked */
    int failures;           /* in a row, so far, of all or of one event */
    const char *last_error; /* of the last of them; NULL: none */
    int64_t retry_at;       /* when it is tried again; 0: not retrying */
    int64_t pending;        /* events still to be delivered, counted to 100000 */
    int64_t oldest_at;      /* when the oldest of them was written; 0: none */
    hf_id run;              /* of holdfast.dispatch, which delivers */
    int64_t created_at;
    int64_t updated_at;
} hf_subscription;

typedef struct hf_subscriptions {
    hf_subscription *items;
    size_t count;
} hf_subscriptions;

/* Creates the subscription, or changes the one of that name. It gets the events that are written from now on. `secret`
 * (may be NULL) receives the secret if the subscription is new or got a new one, "" otherwise: it is not shown again. */
HF_PUBLIC hf_code hf_subscription_put(hf_client *client, const hf_subscription_spec *spec,
                                      char secret[HF_SECRET_TEXT], hf_error *err) HF_MUST_CHECK;
/* The caller frees what it gets. */
HF_PUBLIC hf_code hf_subscription_get(hf_client *client, hf_subscription **out, const char *name,
                                      hf_error *err) HF_MUST_CHECK;
HF_PUBLIC hf_code hf_subscription_list(hf_client *client, hf_subscriptions **out,
                                       hf_error *err) HF_MUST_CHECK;
HF_PUBLIC void hf_subscription_free(hf_subscription *subscription);
HF_PUBLIC void hf_subscriptions_free(hf_subscriptions *subscriptions);
/* A parked subscription keeps its events until it is resumed, whether it was parked here or after failures. */
HF_PUBLIC hf_code hf_subscription_park(hf_client *client, const char *name,
                                       hf_error *err) HF_MUST_CHECK;
HF_PUBLIC hf_code hf_subscription_resume(hf_client *client, const char *name,
                                         hf_error *err) HF_MUST_CHECK;
/* What was not delivered to it never will be. */
HF_PUBLIC hf_code hf_subscription_delete(hf_client *client, const char *name,
                                         hf_error *err) HF_MUST_CHECK;

/* Sends an event of type "holdfast.test" from this process, past the outbox. HF_OK: the receiver took it; otherwise the
 * error says what it answered. `status` (may be NULL) receives the HTTP status, 0 if there was none. */
HF_PUBLIC hf_code hf_subscription_test(hf_client *client, const char *name, int *status,
                                       hf_error *err) HF_MUST_CHECK;

typedef struct hf_outbox_entry {
    hf_id id; /* of the CloudEvent, and webhook-id */
    int64_t position;
    hf_id run;
    const char *type;
    const char *payload; /* JSON */
    int64_t created_at;
    int64_t published_at; /* when the last subscription that wanted it got it; 0: not yet */
    int pending;          /* subscriptions that have not got it */
    int attempts;         /* of the one that was tried most */
    const char *last_error;
} hf_outbox_entry;

typedef struct hf_outbox_page {
    hf_outbox_entry *items;
    size_t count;
    const char *next; /* cursor of the next page; NULL: this is the last */
} hf_outbox_page;

#define HF_OUTBOX_FILTER_VERSION 1
typedef struct hf_outbox_filter {
    int version;        /* HF_OUTBOX_FILTER_VERSION */
    bool undelivered;   /* only what some subscription has not got yet */
    const char *type;   /* or a prefix that ends with a star; NULL: any */
    hf_id run;          /* zero: any */
    int limit;          /* 1..1000; default 50 */
    const char *cursor; /* hf_outbox_page.next of the page before; NULL: newest first */
} hf_outbox_filter;
#define HF_OUTBOX_FILTER_INIT                                                                      \
    {                                                                                              \
        .version = HF_OUTBOX_FILTER_VERSION                                                        \
    }

/* Newest first. A page whose events hold more than 16 MiB ends early, with a cursor to go on. */
HF_PUBLIC hf_code hf_outbox_list(hf_client *client, hf_outbox_page **out,
                                 const hf_outbox_filter *filter, hf_error *err) HF_MUST_CHECK;
HF_PUBLIC void hf_outbox_page_free(hf_outbox_page *page);

typedef struct hf_outbox_lag {
    int64_t undelivered; /* events, counted to 100000 */
    int64_t oldest_at;   /* when the oldest of them was written; 0: none */
} hf_outbox_lag;

/* How far delivery is behind. */
HF_PUBLIC hf_code hf_outbox_lag_get(hf_client *client, hf_outbox_lag *out,
                                    hf_error *err) HF_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
