/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/exit.h"

int cli_exit_of(hf_code code)
{
    switch (code) {
    case HF_OK: return CLI_OK;
    case HF_INVALID:
    case HF_TOO_LARGE: return CLI_USAGE;
    case HF_NOT_FOUND:
    case HF_UNKNOWN_WORKFLOW: return CLI_NOT_FOUND;
    case HF_CONFLICT:
    case HF_NOT_ALLOWED:
    case HF_STALE:
    case HF_REVISION:
    case HF_DISABLED: return CLI_REFUSED;
    case HF_UNAVAILABLE:
    case HF_STORE_FULL:
    case HF_READ_ONLY:
    case HF_SCHEMA_NEWER:
    case HF_SCHEMA_OLDER: return CLI_STORE;
    case HF_TIMEOUT: return CLI_TIMEOUT;
    case HF_NO_WORKER: return CLI_NO_WORKER;
    case HF_RUN_CANCELLED: return CLI_RUN_FAILED;
    case HF_LOCKED: return CLI_LOCKED;
    default: return CLI_FAILED;
    }
}
