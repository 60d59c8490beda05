/* SPDX-License-Identifier: Apache-2.0 */
#include "server/routes.h"

const struct hf__route hf__tenant_routes[] = {
    HF__ROUTES_END,
};
