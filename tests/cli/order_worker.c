/* A worker with durable functions for the program's tests: order_worker STORE [REFUSES]
 *
 *   order   reserves, charges (the card is refused if the word REFUSES is there), packs three parcels as children, waits for
 *           the signal "approval", ends with its payload
 *   parcel  sleeps for an hour
 * SPDX-License-Identifier: Apache-2.0 */
#include <holdfast/holdfast.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { PARCELS = 3 };

static hf_worker *worker;

static void stop(int number)
{
    (void)number;
    hf_worker_stop(worker);
}

static hf_code charge(hf_step *step, hf_error *err, void *arg)
{
    if (*(const bool *)arg) {
        snprintf(err->message, sizeof err->message, "the card was refused");
        return HF_PERMANENT;
    }
    return hf_step_done(step, "{\"receipt\":12345678901234567890.10}");
}

static hf_code pack(hf_ctx *ctx)
{
    hf_trigger_spec parcels[PARCELS];
    hf_id ids[PARCELS];
    for (int i = 0; i < PARCELS; i++) {
        parcels[i] = (hf_trigger_spec)HF_TRIGGER_INIT;
        parcels[i].workflow = "parcel";
    }
    return hf_children_start(ctx, "pack", parcels, PARCELS, ids);
}

static hf_code order(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    hf_step reserve;
    const char *payload = NULL;
    (void)input;
    if (hf_step_begin(ctx, "reserve", &reserve))
        hf_try(hf_step_done(&reserve, "{\"shelf\":\"A-7\"}"));
    hf_try(hf_step_result(&reserve, err));
    hf_try(hf_progress(ctx, 40, "reserved"));
    hf_try(hf_step_run(ctx, "charge", NULL, charge, arg, NULL, err));
    hf_try(pack(ctx));
    hf_try(hf_wait_signal(ctx, "approval", HF_HOURS(1), &payload));
    return hf_return(ctx, payload);
}

static hf_code parcel(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)input;
    (void)err;
    (void)arg;
    return hf_sleep(ctx, "dry", HF_HOURS(1));
}

int main(int argc, char **argv)
{
    hf_client *client = NULL;
    hf_error err = { 0 };
    bool refuses = argc > 2;
    hf_worker_options options = HF_WORKER_OPTIONS_INIT;
    options.name = "packer";
    options.threads = 2;
    hf_code code = argc > 1 ? hf_open(&client, argv[1], NULL, &err) : HF_INVALID;
    if (code == HF_OK)
        code = hf_worker_new(&worker, client, &options, &err);
    if (code == HF_OK)
        code = hf_worker_handle(worker, "order", order, &refuses, &err);
    if (code == HF_OK)
        code = hf_worker_handle(worker, "parcel", parcel, NULL, &err);
    if (code == HF_OK) {
        signal(SIGTERM, stop);
        fprintf(stderr, "worker started\n");
        code = hf_worker_run(worker, &err);
    }
    if (code != HF_OK)
        fprintf(stderr, "order_worker: %s\n", err.message);
    hf_worker_free(worker);
    hf_close(client);
    return code == HF_OK ? 0 : 1;
}
