/* Trying a subscription out: an event that is sent at once, past the outbox.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "client/ask.h"
#include "client/client.h"
#include "client/ids.h"
#include "kernel/chores.h"
#include "outbox/courier.h"
#include "util/clock.h"
#include "util/error.h"

static void note_receipt(void *tag, const struct hf__receipt *receipt, void *arg)
{
    (void)arg;
    *(struct hf__receipt *)tag = *receipt;
}

static hf_code carry(const struct hf__request *request, struct hf__receipt *receipt, hf_error *err)
{
    struct hf__courier *courier = NULL;
    hf_code code = hf__courier_new(&courier, err);
    if (code == HF_OK)
        code = hf__courier_send(courier, request, receipt, err);
    while (code == HF_OK && hf__courier_busy(courier) > 0)
        code = hf__courier_wait(courier, 1000, note_receipt, NULL, err);
    hf__courier_free(courier);
    return code;
}

static hf_code read_secret(hf_client *client, const char *name, char out[HF_SECRET_TEXT],
                           hf_error *err)
{
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_GET_SECRET);
    c[0] = hf__number(client->tenant_id);
    c[1] = hf__text(name);
    hf_code code = hf__ask_send(&ask, err);
    const char *secret =
        code == HF_OK && ask.out.nrows ? hf__as_text(hf__table_row(&ask.out, 0)[0]) : NULL;
    if (code == HF_OK && (!secret || strlen(secret) >= HF_SECRET_TEXT))
        code = hf__fail(err, HF_NOT_FOUND, "there is no subscription \"%s\" in this tenant", name);
    if (code == HF_OK)
        strcpy(out, secret);
    hf__ask_end(&ask);
    return code;
}

hf_code hf_subscription_test(hf_client *client, const char *name, int *status, hf_error *err)
{
    struct hf__arena arena = { 0 };
    hf_subscription *subscription = NULL;
    char secret[HF_SECRET_TEXT];
    hf_event_mode mode = HF_EVENT_STRUCTURED;
    struct hf__request request;
    struct hf__receipt receipt = { 0 };
    hf_code code = hf_subscription_get(client, &subscription, name, err);
    if (code == HF_OK)
        code = read_secret(client, name, secret, err);
    int64_t now = hf__clock_now(&hf__system_clock);
    if (code == HF_OK && hf_event_mode_parse(subscription->mode, &mode)) {
        struct hf__cloudevent event = {
            .id = hf__new_id(),
            .tenant = client->tenant,
            .workflow = HF__CHORE_DISPATCH,
            .run = subscription->run,
            .type = "holdfast.test",
            .created_at = now,
            .payload = "{\"message\":\"This is a test.\"}",
        };
        code = hf__cloudevent_request(&request, &event, subscription->url, secret, mode, now,
                                      &arena, err);
    }
    if (code == HF_OK)
        code = carry(&request, &receipt, err);
    if (status)
        *status = receipt.status;
    if (code == HF_OK && !receipt.taken)
        code = hf__fail(err, HF_HANDLER_FAILED, "the event was not taken: %s", receipt.error);
    hf_subscription_free(subscription);
    hf__arena_free(&arena);
    return code;
}
