/* Retention: ended runs go after the time that their workflow says, deleted ones after a time of grace. It spans tenants.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLIENT_RETENTION_H
#define HF_CLIENT_RETENTION_H

#include "client/client.h"

#define HF__DELETED_KEPT HF_DAYS(30) /* so long a deleted run can be restored */

/* One walk over all that has expired. */
struct hf__retention {
    struct hf__engine *engine;
    struct hf__arena arena;
    struct hf__table rules; /* (workflow, retention) */
    int rule;               /* at hand; past the last one: the deleted runs */
    int64_t since;          /* ends before that were looked at */
    int64_t now;            /* the store's clock at the beginning */
    int64_t removed;        /* runs */
    bool done;
};

hf_code hf__retention_begin(struct hf__retention *walk, hf_client *client, hf_error *err);
/* Removes one small batch; `done` is set after the last. */
hf_code hf__retention_step(struct hf__retention *walk, hf_error *err);
/* When the next run expires that had not at the beginning; INT64_MAX: none. */
hf_code hf__retention_next(struct hf__retention *walk, int64_t *at, hf_error *err);
void hf__retention_end(struct hf__retention *walk);

#endif
