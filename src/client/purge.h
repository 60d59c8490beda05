/* Removing runs for good.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLIENT_PURGE_H
#define HF_CLIENT_PURGE_H

#include "client/client.h"

/* Removes, in one transaction, those of the runs (tenant, id) that may still go, with all that belongs to them; adds to
 * *removed. */
hf_code hf__purge_rows(struct hf__engine *engine, const struct hf__table *runs, int64_t *removed,
                       hf_error *err);
/* Workers that have been dead for a day. */
hf_code hf__forget_workers(hf_client *client, hf_error *err);

#endif
