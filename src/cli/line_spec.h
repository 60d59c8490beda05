/* One line of `trigger --lines` as what to trigger.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_LINE_SPEC_H
#define HF_CLI_LINE_SPEC_H

#include "util/arena.h"

#include <holdfast/client.h>

/* Adds what the line says to `spec`; strings are kept in the arena. The line is a bare input, or with `full` an object
 * of members. */
hf_code cli_line_spec(hf_trigger_spec *spec, struct hf__arena *arena, const char *line,
                      size_t length, bool full, hf_error *err) HF_MUST_CHECK;

#endif
