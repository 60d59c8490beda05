/* SPDX-License-Identifier: Apache-2.0 */
#include "server/routes.h"

const struct hf__route hf__schedule_routes[] = {
    HF__ROUTES_END,
};
