/* What `trigger` and its bulk form share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_TRIGGER_H
#define HF_CLI_TRIGGER_H

#include "cli/session.h"

/* Triggers one run per line of a file ("-" is stdin). `base` holds what every line starts from; base->workflow may be
 * NULL only if `full`. Each refused line is named on stderr. */
int cli_trigger_lines(struct cli_session *session, const char *file, bool full,
                      const hf_trigger_spec *base);

#endif
