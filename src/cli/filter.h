/* The options that choose runs, shared by list and by the changes in bulk.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_FILTER_H
#define HF_CLI_FILTER_H

#include "cli/option.h"
#include "cli/session.h"

extern const struct cli_option cli_filter_options[];

/* Whether any of them was given. */
bool cli_filter_given(void);
/* What they say, after cli_open (times before now are by the store's clock). */
hf_filter cli_filter(struct cli_session *session);

#endif
