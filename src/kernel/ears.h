/* Ears: who wants to hear of commits, in this process and in others.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_KERNEL_EARS_H
#define HF_KERNEL_EARS_H

#include "store/driver.h"

struct hf__ears;
struct hf__ear;

hf_code hf__ears_new(struct hf__ears **out, const struct hf__driver *driver,
                     struct hf__database *db, hf_error *err);
void hf__ears_free(struct hf__ears *ears);
/* The first ear starts the listening thread. */
hf_code hf__ears_add(struct hf__ears *ears, struct hf__ear **out, hf__hear hear, void *arg,
                     hf_error *err);
void hf__ears_remove(struct hf__ear *ear);
/* What this process itself has committed. */
void hf__ears_tell(struct hf__ears *ears, const struct hf__wake *wake);

#endif
