/* SPDX-License-Identifier: Apache-2.0 */
#include "store/driver.h"

#include <string.h>

bool hf__error_is_data(const hf_error *err)
{
    /* SQLSTATE classes: triggered action exception, cardinality violation, data exception, integrity constraint violation,
     * triggered data change violation, external routine exceptions, check option violation, program limit exceeded,
     * what a trigger of the users' own raises, internal error: such as a row that is corrupt */
    static const char *const data_classes[] = { "09", "21", "22", "23", "27", "38",
                                                "39", "44", "54", "P0", "XX" };

    if (!err || err->code != HF_STORE)
        return false;
    for (size_t i = 0; i < sizeof data_classes / sizeof *data_classes; i++)
        if (strncmp(err->sqlstate, data_classes[i], 2) == 0)
            return true;
    return false;
}

bool hf__error_is_lock(const hf_error *err)
{
    return err && err->code == HF_STORE && strcmp(err->sqlstate, "55P03") == 0;
}
