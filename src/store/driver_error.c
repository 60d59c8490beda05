/* SPDX-License-Identifier: Apache-2.0 */
#include "store/driver.h"

#include <string.h>

bool hf__error_is_data(const hf_error *err)
{
    /* SQLSTATE classes: cardinality violation, data exception, integrity constraint violation,
     * program limit exceeded */
    static const char *const data_classes[] = { "21", "22", "23", "54" };

    if (!err || err->code != HF_STORE)
        return false;
    for (size_t i = 0; i < sizeof data_classes / sizeof *data_classes; i++)
        if (strncmp(err->sqlstate, data_classes[i], 2) == 0)
            return true;
    return false;
}
