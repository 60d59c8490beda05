/* Ears: who wants to hear of commits, in this process and in others.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_KERNEL_EARS_H
#define HF_KERNEL_EARS_H

#include "kernel/flush.h"
#include "kernel/pool.h"

struct hf__ears;
struct hf__ear;

struct hf__ears_options {
    const struct hf__driver *driver;
    struct hf__database *db;
    struct hf__pool *pool; /* borrowed: in it a slot is kept free while the listener begins */
    int64_t max_lifetime;  /* us after which the listener's connection is replaced; 0: never */
    void (*submit)(struct hf__op *op, void *arg); /* what could not be done while listening */
    void *arg;
    struct hf__metrics *metrics; /* borrowed */
};

hf_code hf__ears_new(struct hf__ears **out, const struct hf__ears_options *options, hf_error *err);
/* Ends the listening; what this process commits is still told. */
void hf__ears_stop(struct hf__ears *ears);
void hf__ears_free(struct hf__ears *ears);
/* The first ear starts the listening thread. */
hf_code hf__ears_add(struct hf__ears *ears, struct hf__ear **out, hf__hear hear, void *arg,
                     hf_error *err);
void hf__ears_remove(struct hf__ear *ear);
/* From now on until it is removed, the ear's owner may be asked for a claim. */
void hf__ear_stand_by(struct hf__ear *ear, hf__stand_by claim);
/* What this process itself has committed. */
void hf__ears_tell(struct hf__ears *ears, const struct hf__wake *wake);
/* The claim of somebody in this process who waits for runs of this lane. NULL: nobody does. */
struct hf__op *hf__ears_ask(struct hf__ears *ears, int32_t lane, const int *priority);

#endif
