/* Workers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "server/request.h"
#include "server/routes.h"

static hf_code list(struct hf__request *request, hf_error *err)
{
    hf_worker_list *found = NULL;
    hf_code code = hf_workers(request->client, &found, err);
    if (code == HF_OK)
        code = hf__reply_list(request, hf__worker_fields, found->items, found->count,
                              sizeof *found->items, NULL, err);
    hf_worker_list_free(found);
    return code;
}

const struct hf__route hf__worker_routes[] = {
    HF__ROUTE("workers", "GET", "/v1/workers", "listWorkers", READ, list,
              "List workers, the dead ones among them",
              HF__ANSWERS(200, LIST, "Worker", hf__worker_fields)),
    HF__ROUTES_END,
};
