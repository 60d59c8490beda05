/* Runs whose history a worker's code did not fit.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLIENT_FIT_H
#define HF_CLIENT_FIT_H

#include "kernel/engine.h"

/* Whether the run has waited for a fitting worker for as long as its workflow lets it: then it fails. */
hf_code hf__fit_is_over(struct hf__engine *engine, int tenant, hf_id run, bool *over,
                        hf_error *err);
/* A worker has joined, and its code may be new: runs of its tenants and workflows (JSON arrays of names and patterns) that wait
 * for one are due at once. */
hf_code hf__fit_try_again(struct hf__engine *engine, const char *tenants, const char *serves,
                          hf_error *err);

#endif
