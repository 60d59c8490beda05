/* A durable function: an order that is charged, rests a moment, is approved by a person, and is packed by children.
 *
 *   cc order.c serve.c $(pkg-config --cflags --libs holdfast) -o order
 *   ./order sqlite:shop.db
 *   holdfast --store sqlite:shop.db trigger shop.order.v1 '{"items":3}' --key o-17
 *   holdfast --store sqlite:shop.db task list
 *   holdfast --store sqlite:shop.db task complete TASK approved
 *   holdfast --store sqlite:shop.db events shop.order.v1/o-17 --follow
 *
 * Kill it wherever you like and start it again: each order goes on where it was, and no card is charged twice. Without an
 * approval within ten minutes the money is given back. Regular customers ({"regular":true}) need none.
 * SPDX-License-Identifier: Apache-2.0 */
#include "serve.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define PARCELS 3

static void work_for(long milliseconds)
{
    const struct timespec time = { .tv_nsec = milliseconds * 1000 * 1000 };
    nanosleep(&time, NULL);
}

/* ---- The steps ---- */

/* A real one would hand the key to the bank, which then charges once, however often it is asked. */
static hf_code charge_card(hf_step *step, hf_error *err, void *arg)
{
    char receipt[700];
    const char *key = hf_step_key(step);
    work_for(100);
    if (hf_step_attempt(step) == 1 && key[35] % 4 == 0) {
        snprintf(err->message, sizeof err->message, "the bank does not answer");
        return HF_RETRY;
    }
    hf_try(hf_progress(arg, 25, "charged"));
    snprintf(receipt, sizeof receipt, "{\"receipt\":\"%s\"}", key);
    return hf_step_done(step, receipt);
}

static hf_code reserve_stock(hf_step *step, hf_error *err, void *arg)
{
    (void)err;
    work_for(100);
    hf_try(hf_progress(arg, 50, "approved, in stock"));
    return hf_step_done(step, NULL);
}

static hf_code give_back(hf_step *step, hf_error *err, void *arg)
{
    (void)err;
    (void)arg;
    work_for(100);
    return hf_step_done(step, "{\"given_back\":true}");
}

/* ---- The order ---- */

static hf_code charge(hf_ctx *ctx, const char **receipt, hf_error *err)
{
    hf_step_options options = HF_STEP_OPTIONS_INIT;
    options.max_attempts = 5;
    options.retry_base = HF_MILLISECONDS(500);
    options.timeout = HF_SECONDS(10);
    return hf_step_run(ctx, "charge", &options, charge_card, ctx, receipt, err);
}

/* Fans out: one child for each parcel, packed by whichever worker has a hand free. */
static hf_code pack(hf_ctx *ctx, int *packed)
{
    hf_trigger_spec specs[PARCELS];
    hf_id ids[PARCELS];
    hf_child_end ends[PARCELS];
    char inputs[PARCELS][16];
    for (int i = 0; i < PARCELS; i++) {
        snprintf(inputs[i], sizeof inputs[i], "%d", i + 1);
        specs[i] = (hf_trigger_spec)HF_TRIGGER_INIT;
        specs[i].workflow = "shop.pack.v1";
        specs[i].input = inputs[i];
    }
    hf_try(hf_children_start(ctx, "parcels", specs, PARCELS, ids));
    hf_try(hf_children_wait(ctx, "packed", ids, PARCELS, HF_WAIT_ALL, 0, ends));
    *packed = 0;
    for (int i = 0; i < PARCELS; i++)
        *packed += ends[i].status == HF_SUCCEEDED;
    return HF_OK;
}

/* A task for people: it stands among the tasks on the dashboard, and in `holdfast task list`. Regular customers need none. */
static hf_code ask_for_approval(hf_ctx *ctx, const char *input, const char **answer, bool *approved)
{
    const hf_new_task question = { .name = "Approve the order", .payload = input };
    *answer = "null";
    *approved = strstr(input, "\"regular\":true") != NULL;
    if (*approved)
        return HF_OK;
    hf_code code = hf_ask_person(ctx, "approval", &question, HF_MINUTES(10), answer);
    if (code == HF_TIMEOUT) /* nobody has answered */
        return HF_OK;
    *approved = code == HF_OK && strstr(*answer, "\"outcome\":\"approved\"") != NULL;
    return code;
}

static hf_code order(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    const char *receipt, *approval, *refund;
    bool approved;
    char result[900];
    int packed;
    (void)arg;
    hf_try(charge(ctx, &receipt, err));
    hf_try(hf_sleep(ctx, "time to think it over", HF_SECONDS(2)));

    hf_try(ask_for_approval(ctx, input, &approval, &approved));
    if (!approved) {
        hf_try(hf_step_run(ctx, "give back", NULL, give_back, NULL, &refund, err));
        return hf_return(ctx, refund);
    }
    hf_try(hf_step_run(ctx, "reserve stock", NULL, reserve_stock, ctx, NULL, err));
    hf_try(pack(ctx, &packed));
    hf_try(hf_emit(ctx, "order.shipped", receipt));
    hf_try(hf_progress(ctx, 100, "shipped"));
    snprintf(result, sizeof result, "{\"parcels\":%d,\"approval\":%.600s}", packed,
             strlen(approval) <= 600 ? approval : "null");
    return hf_return(ctx, result);
}

static hf_code pack_parcel(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    char result[64];
    (void)err;
    (void)arg;
    work_for(300);
    snprintf(result, sizeof result, "{\"parcel\":%.20s}", input);
    return hf_return(ctx, result);
}

int main(int argc, char **argv)
{
    static const struct served list[] = {
        { "shop.order.v1", order },
        { "shop.pack.v1", pack_parcel },
        { NULL, NULL },
    };
    return serve(argc, argv, list);
}
