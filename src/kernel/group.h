/* Group commit: callers hand in operations, one thread per group applies whatever has gathered while the last flush was
 * on its way; a lone caller does it itself. Nobody is told "done" before it is durable.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_KERNEL_GROUP_H
#define HF_KERNEL_GROUP_H

#include "kernel/flush.h"

struct hf__group;

struct hf__group_options {
    const struct hf__driver *driver;
    struct hf__database *db;
    int64_t connect_limit; /* us that operations wait for a store that is away, by default */
    int64_t max_lifetime;  /* us after which the connection is replaced; 0: never */
    void (*woke)(const struct hf__wake *wake, void *arg);
    hf__stand_by claim;          /* asked for the claim of a run that a trigger brings */
    void *arg;                   /* of both */
    struct hf__metrics *metrics; /* borrowed */
    int64_t max_payload;         /* as the flusher's; 0: its own */
    bool shares_mail, defers;    /* as the flusher's */
};

hf_code hf__group_start(struct hf__group **out, const struct hf__group_options *options,
                        hf_error *err);
/* Applies what was handed in, then stops. */
void hf__group_stop(struct hf__group *group);
void hf__group_submit(struct hf__group *group, struct hf__op *op);
/* As hf__group_submit, by a caller who waits for the answer: where nobody else is there, it flushes by itself. To wake the
 * thread and to be woken by it would take a lone caller as long as a good part of the flush. */
void hf__group_apply(struct hf__group *group, struct hf__op *op);
/* How many wait for the next flush, at about this moment. */
size_t hf__group_queued(struct hf__group *group);

#endif
