/* What workers serve: whether a live one could run a workflow, asked at most once a second, and telling them of changes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLIENT_COVERAGE_H
#define HF_CLIENT_COVERAGE_H

#include "client/client.h"

/* *uncovered: no live worker serves the workflow for this client's tenant. */
hf_code hf__covered(hf_client *client, const char *workflow, bool *uncovered, hf_error *err);
/* Whether hf__covered can tell without asking the store. */
bool hf__covered_known(hf_client *client, const char *workflow);
/* Fills in how many live workers serve each workflow. */
hf_code hf__count_workers(hf_client *client, hf_workflow *workflows, size_t count, hf_error *err);
/* Workers learn of a new or changed workflow, or of a tenant that was disabled, at once. */
hf_code hf__tell_workers(hf_client *client, hf_error *err);
/* Whether a worker's tenants, a JSON array, include this one. */
bool hf__tenant_listed(const char *tenants, const char *tenant);
/* Whether "billing.*", "billing." or "billing.charge.v1" serves a workflow. */
bool hf__pattern_serves(const char *pattern, const char *workflow);

#endif
