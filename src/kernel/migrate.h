/* Brings a store's schema up to date.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_KERNEL_MIGRATE_H
#define HF_KERNEL_MIGRATE_H

#include "store/driver.h"

/* The schema in the store; 0: none yet. */
hf_code hf__schema_read(const struct hf__driver *driver, struct hf__conn *conn, int *version,
                        int *min_writer, hf_error *err);
/* Applies what is missing up to `newest`, one migration after the other, while workers of the version before go on. */
hf_code hf__migrate(const struct hf__driver *driver, struct hf__conn *conn, int newest,
                    hf_error *err);
/* HF_SCHEMA_NEWER when the store needs a program that knows more than `known`, HF_SCHEMA_OLDER when it lacks something. */
hf_code hf__schema_check(int version, int min_writer, int known, hf_error *err);

#endif
