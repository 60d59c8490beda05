/* Triggering without waiting for the answer.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLIENT_TRIGGER_H
#define HF_CLIENT_TRIGGER_H

#include <holdfast/client.h>

#include "kernel/op.h"

/* One trigger under way; stays where it is until it is done. */
struct hf__trigger_call {
    void (*done)(struct hf__trigger_call *call,
                 void *arg); /* from the thread that flushes; must be quick */
    void *arg;
    hf_triggered out; /* out.code tells how it ended */
    hf_error err;
    struct hf__op op;
};

/* HF_OK: `done` will be called, or has been. Anything else: it was refused, and `done` is not called. */
hf_code hf__trigger_submit(hf_client *client, struct hf__trigger_call *call,
                           const hf_trigger_spec *spec);

#endif
